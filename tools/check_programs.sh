#!/bin/bash
# Every program that scripts and tests call must come with a package that ./run installs, or with
# Debian's base (the packages that are essential or required): tools/check_programs.sh [ROOT].
#
# Read are run, .ci/run and all .sh files: words that stand where a command does; and C files of the
# tests that start programs: first words of strings. What is a program on this machine counts, unless
# its package may be there or the file asks `command -v` for it first. (A program that is not here
# cannot be seen. The test that calls it fails here.) Prints each offence as file:line and exits 1 if
# there is any.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
export LC_ALL=C
cd "${1:-$(dirname "$0")/..}"

if ! dpkg-query -W bash >/dev/null 2>&1; then
    echo "skipped: not a Debian, whose packages are the ones that are known"
    exit 77
fi

# Where a command stands in a line of a shell script: what goes before it, and what behind. (A word
# with a bracket behind it at the beginning of a line is a pattern of `case`.)
inside="[|;&({\`]|\\\$\\(|\\b(?:then|do|else|if|elif|while|until|exec|time|env|nohup|setsid)\\s|!"
inside="$inside|\\s--\\s|\\bxargs(?: -\\S+(?: \\d+| \"\\S+\")?)*\\s|\\btimeout(?: -\\S+(?: \\d+)?)*(?: \\S+)?\\s"
inside="$inside|(?:-c|\\btrap) ['\"]"
word='[A-Za-z][A-Za-z0-9_.+-]+'
commands="(?:^|$inside)\\s*\\K$word(?=[\\s;|&]|\$)(?! *=| in )|(?:$inside)\\s*\\K$word(?=\\))"

# FILE:LINE:WORD of all that may be a program.
words() {
    local file files
    mapfile -t files < <({
        echo run
        echo .ci/run
        find tools tests bench examples -name '*.sh'
    } | sort)
    for file in "${files[@]}"; do
        # Without comments and programs in awk, which begin with a quotation mark that ends a line.
        [ ! -e "$file" ] || sed -E -e 's/(^|[[:space:]])#.*//' \
            -e "/[ =]'\$/,/'/ { /[ =]'\$/! { /'/! s/.*//; s/.*'// } }" "$file" |
            { grep -noP "$commands" || true; } | sed "s|^|$file:|"
    done
    mapfile -t files < <(grep -rlE '\b(system|popen|exec[lv]p?e?|posix_spawnp?)\(' tests \
        --include='*.[ch]' || true)
    [ ${#files[@]} = 0 ] || grep -HnoP "\"\\K[a-z][a-z0-9.-]+(?= |\")" "${files[@]}" || true
}

# The packages that may be called upon, a line each: also those that the ones in the lists need.
packages() {
    {
        sed -n '/^[a-z]*_packages="/,/"$/p' run | sed 's/^[a-z]*_packages=//; s/"//g'
        sed -nE 's/.*\bneed ([a-z][a-z0-9+. -]*).*/\1/p' run # named in its place
    } | tr -s ' ' '\n' | awk '
        FILENAME == "-" { list[++n] = $1; next }
        {
            split($0, field, "|")
            if (field[2] == "yes" || field[3] == "required")
                list[++n] = field[1]
            needs[field[1]] = field[4]
        }
        END {
            for (i = 1; i <= n; i++) {
                if (list[i] in seen)
                    continue
                seen[list[i]] = 1
                print list[i]
                count = split(needs[list[i]], other, ", *")
                for (j = 1; j <= count; j++) {
                    sub("[ :|].*", "", other[j]) # versions; what would do, too
                    list[++n] = other[j]
                }
            }
        }' - <(dpkg-query -W -f '${Package}|${Essential}|${Priority}|${Pre-Depends}, ${Depends}\n')
}

# Programs of the words: "WORD PATH" for each file of that name, also for each that could take its
# place by Debian's alternatives.
paths() {
    local name path
    while read -r name; do
        case $(type -t "$name" || true) in # none of the shell's own words
        keyword | builtin) continue ;;
        esac
        for path in $(type -aP "$name"); do
            echo "$name $path"
            if [[ $(readlink "$path") == /etc/alternatives/* ]]; then
                update-alternatives --query "$(basename "$(readlink "$path")")" 2>/dev/null |
                    sed -n "s|^Alternative: |$name |p"
            fi
        done
    done
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
words >"$folder/words"
packages | sort -u >"$folder/packages"
cut -d : -f 3 "$folder/words" | sort -u | paths | sort -u >"$folder/paths"

# "PACKAGE PATH": dpkg may know a file of /usr/bin as one of /bin.
cut -d ' ' -f 2 "$folder/paths" | sed -E 'p; s|^/usr||' | sort -u |
    { xargs dpkg-query -S 2>/dev/null || true; } |
    awk -F ': ' '{
        sub("^/bin/", "/usr/bin/", $2)
        sub("^/sbin/", "/usr/sbin/", $2)
        count = split($1, names, ", ")
        for (i = 1; i <= count; i++) {
            sub(":.*", "", names[i])
            print names[i], $2
        }
    }' >"$folder/owners"

awk -v folder="$folder" '
    FILENAME == folder "/packages" { allowed[$1] = 1; next }
    FILENAME == folder "/owners" {
        owner[$2] = owner[$2] == "" ? $1 : owner[$2] ", " $1
        if ($1 in allowed)
            good_path[$2] = 1
        next
    }
    {
        found[$1] = 1
        if ($2 in good_path)
            good[$1] = 1
        else if ($2 in owner)
            of[$1] = owner[$2]
    }
    END {
        for (name in found)
            if (!(name in good))
                print name, name in of ? "of the package " of[name] : "of no package"
    }' "$folder/packages" "$folder/owners" "$folder/paths" | sort >"$folder/strangers"

failed=0
while read -r name rest; do
    while IFS=: read -r file line _; do
        ! grep -qE "(command -v|which) $name\b|^ *$name\(\)" "$file" || continue
        echo "$file:$line: calls $name, $rest, which is in no list of ./run"
        failed=1
    done < <(grep -E ":$name\$" "$folder/words")
done <"$folder/strangers"
exit $failed
