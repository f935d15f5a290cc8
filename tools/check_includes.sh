#!/bin/bash
# Checks who includes whom: tools/check_includes.sh [ROOT]
#   - a folder of src/ includes only folders that stand before it (the order of ls_module in
#     CMakeLists.txt, then monitor, cli) and that its line there names; itself; and the public
#     header; and a line names no folder that is not included;
#   - monitor and cli include nothing else than the public header, themselves and each other in
#     that order;
#   - ls_devices stands for a folder of src/ops/ after the other, and src/ops/; a device need not
#     include all that its line names, and its headers are for that device alone;
#   - no file includes itself by way of others;
#   - every quoted include names a file that exists.
# Prints each offence as file:line and exits 1 if there is any.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
cd "${1:-$(dirname "$0")/..}"

# The lines of ls_module, and those that ls_devices stands for.
modules()
{
    local line uses folder
    while read -r line; do
        case "$line" in
        'ls_module('*)
            line=${line#*\(}
            echo "${line%%)*}"
            ;;
        'ls_devices('*)
            uses=${line#*\(}
            for folder in src/ops/*/; do
                folder=${folder#src/}
                echo "${folder%/} ${uses%%)*}"
            done
            echo "ops base device"
            ;;
        esac
    done <CMakeLists.txt
}
uses=$(modules | tr '\n' ';')
order=$(modules | cut -d' ' -f1 | tr '\n' ' ')
if [ -z "$order" ]; then
    echo "CMakeLists.txt names no folders of src/" >&2
    exit 1
fi
files=$(cd src && find . -name '*.[ch]' -o -name '*.def' | sed 's|^\./||' | sort | tr '\n' ' ')

# shellcheck disable=SC2086 # the list of files is words
(cd src && grep -n '^[ \t]*#[ \t]*include[ \t]*"' $files /dev/null) |
    awk -F: -v order="$order monitor cli" -v files="$files" -v uses="$uses" '
# The folder of a file as the order names it: the longest that fits.
function folder(file,    i, best) {
    best = ""
    for (i = 1; i <= count; i++)
        if (index(file, name[i] "/") == 1 && length(name[i]) > length(best))
            best = name[i]
    return best
}
function offence(text) {
    print "src/" text
    offences++
}
# Depth first; state 1: on the path, 2: done.
function visit(file,    parts, n, i) {
    state[file] = 1
    n = split(edges[file], parts, " ")
    for (i = 1; i <= n; i++) {
        if (state[parts[i]] == 1)
            offence(file ": is in a circle of includes with " parts[i])
        else if (state[parts[i]] == 0)
            visit(parts[i])
    }
    state[file] = 2
}
# use[a, b]: folder a may include b; used[a, b]: it does.
function read_uses(    lines, words, n, m, i, j) {
    n = split(uses, lines, ";")
    for (i = 1; i <= n; i++) {
        m = split(lines[i], words, " ")
        for (j = 2; j <= m; j++)
            use[words[1], words[j]] = 1
    }
}
function check_uses(    pair, names) {
    for (pair in use)
        if (!(pair in used)) {
            split(pair, names, SUBSEP)
            if (names[1] ~ /^ops\//)
                continue
            offence(names[1] "/: includes nothing of " names[2] ", which ls_module in CMakeLists.txt names")
        }
}
BEGIN {
    count = split(order, name, " ")
    for (i = 1; i <= count; i++)
        rank[name[i]] = i
    read_uses()
    n = split(files, list, " ")
    for (i = 1; i <= n; i++) {
        exists[list[i]] = 1
        if (folder(list[i]) == "")
            offence(list[i] ": its folder is not in the order (ls_module in CMakeLists.txt)")
    }
}
{
    file = $1
    line = $2
    match($0, /"[^"]*"/)
    target = substr($0, RSTART + 1, RLENGTH - 2)
    if (target ~ /^lockstep\/[a-z]+\.h$/ || target ~ /^(lockstep|onnx)\.pb-c\.h$/ || target == "lockstep_names.h" || target == "device_interface.h")
        next
    if (!exists[target]) {
        offence(file ":" line ": \"" target "\" is not a path from src/ to a file")
        next
    }
    from = folder(file)
    to = folder(target)
    if (rank[to] > rank[from])
        offence(file ":" line ": " from " stands before " to " and must not include " target)
    else if (from != to && from != "monitor" && from != "cli" && !((from, to) in use))
        offence(file ":" line ": " from " does not name " to " in its ls_module in CMakeLists.txt")
    used[from, to] = 1
    if ((from == "monitor" || from == "cli") && to != "monitor" && to != "cli")
        offence(file ":" line ": " from " may include only lockstep/lockstep.h, not " target)
    if (to ~ /^ops\// && from != to)
        offence(file ":" line ": the header of a device, " target ", is for that device alone")
    edges[file] = edges[file] " " target
    edge_count++
}
END {
    for (i = 1; i <= n; i++)
        if (state[list[i]] == 0)
            visit(list[i])
    check_uses()
    if (edge_count == 0)
        offence(": no includes were found; is this the right folder?")
    if (offences > 0)
        exit 1
    print n " files, " edge_count " includes: in order"
}'
