#!/bin/bash
# `./run demo --check`: README.md names the golden bits of the table, the program gives these
# bits, and other bits or an environment that the table lacks are reported.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tool=$LOCKSTEP_SOURCE/tools/check_bits.sh
table=$LOCKSTEP_SOURCE/tests/golden/table.txt
fail() {
    cat "$work/log" 2>/dev/null || true
    echo "FAILED: $*"
    exit 1
}

"$tool" --lines >"$work/lines"
grep -q '^    check_own .* every processor$' "$work/lines" || fail "the table has no check_own"
grep -q '^    check_lenet .* avx2, oneDNN ' "$work/lines" || fail "the table has no check_lenet"
grep '^    check_[a-z]*  *[0-9a-f]* ' "$LOCKSTEP_SOURCE/README.md" >"$work/readme" || true
cmp "$work/lines" "$work/readme" || fail "README.md states other hashes than tests/golden/table.txt"

# check STATUS TEXT...: the tool with the table at hand.
check() {
    local status=0 want=$1
    shift
    LOCKSTEP_GOLDEN_TABLE=$work/table "$tool" "$LOCKSTEP" "$work/out" >"$work/log" 2>&1 || status=$?
    [ $status = "$want" ] || fail "exit status $status, not $want"
    while [ $# -gt 0 ]; do
        grep -q "$1" "$work/log" || fail "no word of '$1'"
        shift
    done
}

cp "$table" "$work/table"
check 0 'the bits that README.md states'
hash=$(awk '$1 == "net" { own = $2 == "check_own" } $1 == "sha256" && own { print $2 }' "$table")
grep -q "^check_own  *$hash" "$work/log" || fail "check_own gives other bits"
# One digit of the table changed. (One number of workers is enough from here on.)
export LOCKSTEP_CHECK_WORKERS=2
sed "s/$hash/${hash%?}x/" "$table" >"$work/table"
check 8 "DIFFERENT:   README.md states" 'Please report this'
sed '/^net check_lenet/s/cache .*/cache 1,2/' "$table" >"$work/table"
check 0 'not known for this environment' "golden --write' adds it"
echo "checked"
