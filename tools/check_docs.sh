#!/bin/bash
# Checks that what README.md and docs/ name is there: tools/check_docs.sh [ROOT]
#   - every file or folder in backquotes ("engine/step.c", "src/data/", "tests/nets/") exists, from
#     the root, or from src/ or docs/ or include/lockstep/;
#   - every name of C in backquotes that begins with ls_, LS_ or lockstep_ is in the sources;
#   - README.md names every layer type, and every source of data;
#   - in the tables "The life of ..." of docs/architecture.md each function is in the file that its
#     row names, and no table has more than 20 functions.
# Prints each offence as file:line and exits 1 if there is any.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
cd "${1:-$(dirname "$0")/..}"

offences=0
offence()
{
    echo "$1"
    offences=1
}

# Whether a path is there; "ops/cpu" and "engine/reducer.h" are meant from src/.
is_there()
{
    local from
    for from in . src docs include include/lockstep; do
        if [ -e "$from/$1" ]; then
            echo "$from/$1"
            return 0
        fi
    done
    return 1
}

words=$(mktemp)
trap 'rm -f "$words"' EXIT
# Words of C in the sources, one a line.
grep -rhoE --include='*.[ch]' --include='*.def' '[A-Za-z_][A-Za-z0-9_]*' src include | sort -u >"$words"

for doc in README.md docs/*.md; do
    # "LINE:TEXT" of what is in backquotes, fenced and indented blocks left out.
    while IFS=: read -r line text; do
        text=${text#const }
        text=${text#struct }
        text=${text#enum }
        case "$text" in
        *[\ \<\>*@\{\}\|\"=,]* | *NAME* | */x.c | */test_x.c | ../* | -*) continue ;;
        esac
        if [[ $text =~ ^[a-z_.]+(/[A-Za-z0-9_.]+)+/?$ || $text =~ ^[a-z_]+\.(c|h|md|def|sh|prototxt)$ ]]; then
            [[ $text == build/* ]] || is_there "$text" >/dev/null ||
                offence "$doc:$line: there is no file or folder '$text'"
        elif [[ $text =~ ^(ls_|LS_|lockstep_)[A-Za-z0-9_]+$ ]]; then
            grep -qx "$text" "$words" || offence "$doc:$line: nothing is called '$text'"
        fi
    done < <(awk '/^    / { next } { n = split($0, part, "`"); for (i = 2; i <= n; i += 2) print NR ":" part[i] }' "$doc")
done

# Types and sources, each in one line of their files, or in a macro's.
while read -r name; do
    grep -qw "$name" README.md || offence "README.md: does not name $name"
done < <(grep -hoE '^    \.type = "[A-Za-z0-9]+"|^[A-Z_]+\((ls_layer_)?[a-z0-9_]+, "[A-Z][A-Za-z0-9]*"' src/layers/*.c |
    grep -oE '"[A-Za-z0-9]+"' | tr -d '"'
    grep -h -A1 'struct ls_source_type ls_source_' src/data/*.c | grep -oE '\.name = "[A-Z0-9_]+"' | grep -oE '[A-Z0-9_]{3,}')

# The rows of "The life of ...": title, functions and the file of each.
doc=docs/architecture.md
declare -A count=()
while IFS='|' read -r line title functions file; do
    if ! path=$(is_there "$file"); then
        offence "$doc:$line: there is no file '$file'"
        continue
    fi
    for function in $functions; do
        count[$title]=$((${count[$title]:-0} + 1))
        grep -qE "^[a-z].*\b$function\(" "$path" ||
            offence "$doc:$line: '$function' is not a function of $file"
    done
done < <(awk -F'|' '
    /^## / { life = $0 ~ /^## The life of /; title = substr($0, 4) }
    life && /^\|.*`/ {
        first = ""; second = ""
        for (i = 1; i <= NF; i++)
            if ($i ~ /`/) { if (first == "") first = $i; else if (second == "") second = $i }
        gsub(/[`,]/, "", first); gsub(/[` ]/, "", second)
        print NR "|" title "|" first "|" second
    }' "$doc")
[ "${#count[@]}" -ge 2 ] || offence "$doc: the tables of \"The life of ...\" were not found"
for title in "${!count[@]}"; do
    [ "${count[$title]}" -le 20 ] ||
        offence "$doc: '$title' has ${count[$title]} functions, more than 20"
done
[ "$offences" -eq 0 ] || exit 1
echo "docs: every file and function that they name is there"
