#!/bin/bash
# Names: tools/check_names.sh [ROOT] prints each offence as file:line and exits 1 if there is any.
#
#  * A struct, union or enum tag is defined in one file only. (Each transport has its own kind of
#    operation under way, and each generation of oneDNN its descriptor of memory.)
#  * Static functions of engine/ and transport/ begin with their module's name, so that a backtrace
#    says where it is.
#  * A header declares the functions of the file of its name, where there is one: a reader finds a
#    function by the header that he includes. (What only the files of one part share is in its
#    *_inner.h.)
#  * sizeof(float) outside of devices: how large an element is says its type (ls_layout_bytes,
#    ls_dtype_size); an array of the host's own is sized by its element, `n * sizeof *array`.
#  * Files are opened for writing, and folders made, by base/output.c and base/atomic_file.c alone: they follow
#    no link that another user may have laid.
#  * The words that docs/glossary.md has given up do not come back: not in src/ and include/, nor in tests,
#    benchmarks, examples and the Python package.
#  * Nor do the phrases that readers stumble over come back: in documents, help texts and messages.
#  * What trainings write (weights, states, logs, pages) is committed below tests/ alone, where a test
#    reads it.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
export LC_ALL=C
cd "${1:-$(dirname "$0")/..}"
# Folders whose headers are checked for functions of other files.
headed='base transport engine solver api cli'
found=$(
    # ---- Tags ----
    grep -rnoE '^(struct|union|enum) ls_[a-z0-9_]+ \{' src include --include='*.[ch]' |
        awk -F'[: ]' '{
            if ($4 == "ls_transport_op" || $4 == "ls_md")
                next
            if ($4 in file && file[$4] != $1)
                print $1 ":" $2 ": " $3 " " $4 " is also defined in " file[$4]
            else
                file[$4] = $1
        }'
    # ---- Static functions ----
    for file in src/engine/*.c src/transport/*.c src/transport/mpi/*.c; do
        module=$(basename "$file" .c)
        case $module in
        failure_*) module=detector ;;
        mpi_transport) module=mpi ;;
        progress_thread) module=progress ;;
        work_queue) module=queue ;;
        thread_pool) module=pool ;;
        esac
        { grep -nE '^static [^=;]*\b[a-z_0-9]+\(' "$file" || true; } |
            sed -E 's/^([0-9]+):static .*[ *]([a-z_0-9]+)\(.*/\1 \2/' |
            awk -v file="$file" -v module="$module" \
                'index($2, module "_") != 1 && $2 !~ /^ls_/ { print file ":" $1 ": " $2 " does not begin with " module "_" }'
    done
    # ---- Functions and their headers ----
    for folder in $headed; do
        awk '
            FNR == 1 { stem = FILENAME; sub(/\.[ch]$/, "", stem); header = FILENAME ~ /h$/ }
            header { declares[stem] = 1 }
            !header { defines[stem] = 1 }
            /^[a-z]/ && !/^(static|typedef|extern|struct [a-z_]+;|enum )/ && match($0, /ls_[a-z0-9_]+\(/) {
                name = substr($0, RSTART, RLENGTH - 1)
                if (header)
                    declared[name] = stem "|" FNR
                else if ($0 !~ /;$/)
                    defined[name] = stem
            }
            END {
                for (name in declared) {
                    split(declared[name], at, "|")
                    if (name in defined && defined[name] != at[1] && at[1] in defines && at[1] !~ /_inner$/)
                        print at[1] ".h:" at[2] ": " name " is a function of " defined[name] ".c"
                }
            }' "src/$folder"/*.[ch]
    done
    # ---- Sizes ----
    grep -rnE 'sizeof ?\(float\)' src include --include='*.[ch]' | grep -v '^src/ops/' |
        sed -E 's/^([^:]+:[0-9]+):.*/\1: sizeof(float): an element is as large as its type says/' || true
    # ---- Files that are written ----
    grep -rnE 'O_CREAT|O_TRUNC|\bcreat ?\(|\bf(re)?open(64)? ?\([^;]*"[wa+]|\bfopen ?\([^";]*$|\bmkdir(at)? ?\(' src --include='*.[ch]' |
        grep -vE '^src/(base/(output|atomic_file)|observe/tensorboard|data/lmdb_write)\.[ch]:|fdopen' |
        sed -E 's/^([^:]+:[0-9]+):.*/\1: opened for writing, or made, not by base\/output.h/' || true
    # ---- Words ----
    words='travels?|couriers?|parcels?|peers|tickets?|gauged?|stopwatch|feeds?|nobody|whoever|somebody|everybody'
    words_of_prose='\b([Nn]obody|[Ww]hoever|[Ss]omebody|[Ee]verybody)\b'
    grep -rniwE "$words" src include tests bench examples python \
        --include='*.[ch]' --include='*.sh' --include='*.py' |
        grep -vE '^(src/observe/metrics.c|tests/unit/observe/test_metrics.c):.*gauge' | # a type of Prometheus
        sed -E 's/^([^:]+:[0-9]+):.*/\1: a word that docs\/glossary.md has given up/' || true
    # ---- Phrases ----
    # In README.md, docs/, help texts and messages; the glossary says what to write instead.
    phrases='\b(is|are|was|were|be|been|being) told\b|what is lost|under way, or broken|of no kind that|which is no number'
    phrases="$phrases|rather what is|tops of [0-9%]|numbers each\\)|so that they keep|anew over|what the others say|\\bdeals?\\b"
    phrases="$phrases|least[, ]+(and )?largest|largest[, ]+(and )?least|is a figure\\b"
    opening='Of [^,.|"]{1,60}, '
    {
        grep -nE "$phrases|$words_of_prose|(^|[.:] |\* |\| )$opening" README.md docs/*.md | grep -v '^docs/glossary.md:' || true
        grep -rnE "\"([^\"]*($phrases|$words_of_prose|[.:] $opening)|$opening)" src include --include='*.[ch]' || true
        grep -rnE "$phrases|[.:] $opening" python/lockstep --include='*.py' || true
    } | sed -E 's/^([^:]+:[0-9]+):.*/\1: a phrase that docs\/glossary.md has given up/'
    # ---- What trainings write ----
    { ! command -v git >/dev/null || git ls-files 2>/dev/null || true; } | # a copy may have no git
        grep -E '\.(safetensors|solverstate|caffemodel|jsonl|html|onnx)$' | grep -v '^tests/' |
        sed 's/$/:1: what a training writes does not belong to the tree/' || true
)
[ -z "$found" ] || {
    printf '%s\n' "$found"
    exit 1
}
echo "$(find src include -name '*.[ch]' | wc -l) files: names in order"
