#!/bin/bash
# Trains two small networks on 1, 2 and 3 workers and compares the SHA-256 of what they become with
# tests/golden/table.txt, of which README.md shows these lines: tools/check_bits.sh PROGRAM OUTPUT
# As tools/check_bits.sh --lines it prints what README.md shows, as --write it puts that there.
#
# Exit status: 0, also where the table does not know this environment, which is said; 8 if workers
# differ, or the bits are others than the table has for this environment; 2 if nothing could be
# compared. LOCKSTEP_GOLDEN_TABLE: another table; LOCKSTEP_CHECK_WORKERS: other numbers than "1 2 3".
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
program=$1
output=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
table=${LOCKSTEP_GOLDEN_TABLE:-$root/tests/golden/table.txt}

die() {
    printf 'check: %s\n' "$*" >&2
    exit 2
}

# The lines of README.md.
lines() {
    awk '$1 == "net" && $2 ~ /^check_/ {
             what = $2
             where = $6 == "any" ? "every processor" : $6 ", oneDNN " $8 ", caches " $10
         }
         $1 == "sha256" && what != "" { printf "    %-11s  %s  %s\n", what, $2, where; what = "" }' "$table"
}

# Puts them in the place of those that README.md has.
write_lines() {
    lines >"$root/README.lines"
    awk -v lines="$root/README.lines" '
        /^    check_[a-z]* +[0-9a-f]+ / {
            while (!done && (getline line < lines) > 0)
                print line
            done = 1
            next
        }
        { print }' "$root/README.md" >"$root/README.new"
    rm "$root/README.lines"
    mv "$root/README.new" "$root/README.md"
}

# What the program says of itself: value NAME
value() { sed -n "s/^$1=\([^ ]*\).*/\1/p" "$output/version"; }

# The SHA-256 of all tensors of a safetensors file: of what comes behind 8 bytes that say how long
# the header is, and the header.
tensors_of() {
    local header
    header=$(od -An -N8 -tu8 "$1" | tr -d ' ')
    tail -c +$((header + 9)) "$1" | sha256sum | cut -d' ' -f1
}

# known NET: the hash that the table has for this environment, or nothing.
known() {
    awk -v net="$1" -v numerics="$numerics" -v isa="$isa" -v onednn="$onednn" -v cache="$cache" '
        $1 == "net" {
            here = $2 == net && $4 == numerics &&
                ($6 == "any" || ($6 == isa && $8 == onednn && $10 == cache))
        }
        $1 == "sha256" && here { print $2; exit }' "$table"
}

# train NET: on 1, 2 and 3 workers; sets hash.
train() {
    local workers mine
    hash=""
    for workers in ${LOCKSTEP_CHECK_WORKERS:-1 2 3}; do
        "$program" train --solver "$root/tests/golden/nets/$1.prototxt" --overwrite --workers $workers \
            --snapshot-prefix "$output/$1_$workers" >"$output/log" 2>&1 || {
            cat "$output/log" >&2
            die "the training of $1 failed"
        }
        mine=$(tensors_of "$output/$1_${workers}_iter_20.safetensors")
        if [ -n "$hash" ] && [ "$mine" != "$hash" ]; then
            printf 'DIFFERENT: %s on %d workers gives %s,\n           on 1 worker %s\n' \
                "$1" $workers "$mine" "$hash"
            differs=1
        fi
        hash=${hash:-$mine}
    done
}

case $program in
--lines) lines && exit ;;
--write) write_lines && exit ;;
esac
[ -x "$program" ] || die "there is no program '$program'"
[ -r "$table" ] || die "there is no table '$table'"
mkdir -p "$output"
rm -f "$output"/check_*
"$program" --version >"$output/version"
numerics=$(value numerics) isa=$(value isa) onednn=$(value onednn) cache=$(value cache)
printf 'numerics %s, %s, oneDNN %s, caches %s\n' "$numerics" "$isa" "$onednn" "$cache"
differs=0
unknown=0
for net in check_own check_lenet; do
    train $net
    want=$(known $net)
    printf '%-12s %s  (workers: %s)\n' $net "$hash" "${LOCKSTEP_CHECK_WORKERS:-1 2 3}"
    if [ -z "$want" ]; then
        echo "             not known for this environment"
        unknown=1
    elif [ "$want" = "$hash" ]; then
        echo "             the bits that README.md states"
    else
        printf 'DIFFERENT:   README.md states\n             %s\n' "$want"
        differs=1
    fi
done
if [ $differs = 1 ]; then
    echo "These are not the bits that they should be. Please report this with the lines above and"
    echo "those of '$program --version'."
    exit 8
fi
if [ $unknown = 1 ]; then
    echo "A part of this network is computed by oneDNN, whose bits depend on what the first line"
    echo "names; the table does not have this environment yet. './run golden --write' adds it: please"
    echo "send in the change of tests/golden/table.txt with the lines of '$program --version'."
fi
