#!/bin/bash
# What the house may weigh: holds the tree, and the build where one is named, against tools/budget.txt.
#
#     budget.sh [--write] [BUILD]
#
# A line of the table is a name, a limit, and why it was raised last. Names: `lines FOLDER` (that are not
# blank, of .c, .h, .def, .cu and .cc files) and `files FOLDER` for each folder of src/ and of tests/;
# `functions` of the public headers (tests/compat/abi); `commands`. With a BUILD that was made from
# nothing: its `steps`, and the `seconds` of its tasks, which another machine may need twice, but not
# three times. What exceeds its limit by N is named, and the status is 1. --write lowers limits to what
# there is and adds lines that are missing; it raises none.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
build=""
write=""
for option; do
    case $option in
    --write) write=1 ;;
    *) build=$(realpath "$option") ;;
    esac
done
cd "$(dirname "$0")/.."
table=tools/budget.txt

# Folders as their sizes are told: of src/ops each device.
folders() {
    find src tests -mindepth 1 -maxdepth 1 -type d ! -name nets ! -path src/ops
    find src/ops -mindepth 1 -maxdepth 1 -type d
}

sizes() {
    local folder
    folders | LC_ALL=C sort | while read -r folder; do
        find "$folder" -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.cu' -o -name '*.cc' \) -print0 |
            xargs -0 -r cat | grep -c '[^[:space:]]' | sed "s|^|lines $folder |"
        printf 'files %s %s\n' "$folder" "$(find "$folder" -type f | wc -l)"
    done
    printf 'functions %s\n' "$(grep -c '^function' tests/compat/abi/liblockstep.so.0)"
    printf 'commands %s\n' "$(find src/cli -name 'cmd_*.c' | wc -l)"
    [ -n "$build" ] || return 0
    # Begin, end (in milliseconds) and output of each step; an output that was made twice counts once.
    awk '!/^#/ && $1 ~ /^[0-9]+$/ { took[$4] = $2 - $1 }
        END {
            for (output in took) {
                milliseconds += took[output]
                steps++
            }
            printf "steps %d\nseconds %d\n", steps, milliseconds / 1000
        }' "$build/.ninja_log"
}

sizes | awk -v table="$table" -v write="$write" '
function named(line,    words, count) {
    count = split(line, words, " ")
    return words[1] ~ /^(lines|files)$/ ? words[1] " " words[2] : words[1]
}
BEGIN {
    while ((getline line < table) > 0) {
        if (line ~ /^#/ || line == "") {
            heading = heading line "\n"
            continue
        }
        name = named(line)
        split(substr(line, length(name) + 2), rest, " ")
        limit[name] = rest[1]
        reason[name] = substr(line, length(name) + length(rest[1]) + 3)
        order[++lines] = name
    }
    close(table)
}
{
    name = named($0)
    is[name] = $NF
    if (!(name in limit)) {
        if (!write) {
            print "budget: " name ": no line in " table
            excess = 1
        }
        order[++lines] = name
        limit[name] = $NF
        next
    }
    allowed = name == "seconds" ? 3 * limit[name] : limit[name]
    if ($NF > allowed) {
        printf "budget: %s: %d, %d more than %s permits\n", name, $NF, $NF - allowed, table
        excess = 1
    }
}
END {
    if (write) {
        printf "%s", heading > table
        for (i = 1; i <= lines; i++) {
            name = order[i]
            if (name in is && is[name] < limit[name] && name != "seconds")
                limit[name] = is[name]
            print name, limit[name] (reason[name] == "" ? "" : " " reason[name]) > table
        }
    }
    exit excess
}'
