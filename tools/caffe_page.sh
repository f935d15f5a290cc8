#!/bin/bash
# The tables of docs/caffe.md, made of the sources: tools/caffe_page.sh [--write]
#   layer types   src/layers: types, their parameter messages, what the first comment of the file says in a list of
#                 types (" *   Type: ..."), else its first sentence
#   sources       src/data: names and summaries
#   solver fields proto/lockstep.proto: SolverParameter, with its comments
#   commands      src/cli: names and summaries
# Without --write the page is compared with them; exit code 1 and the difference where it is old.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
page=docs/caffe.md

# The types that Caffe registers.
caffe_types='AbsVal Accuracy ArgMax BNLL BatchNorm BatchReindex Bias Clip Concat ContrastiveLoss Convolution Crop
Data Deconvolution Dropout DummyData ELU Eltwise Embed EuclideanLoss Exp Filter Flatten HDF5Data HDF5Output
HingeLoss Im2col ImageData InfogainLoss InnerProduct Input LRN LSTM LSTMUnit Log MVN MemoryData
MultinomialLogisticLoss PReLU Parameter Pooling Power Python RNN ReLU Reduction Reshape SPP Scale Sigmoid
SigmoidCrossEntropyLoss Silence Slice Softmax SoftmaxWithLoss Split Swish TanH Threshold Tile WindowData'

own_types='Attention GroupNorm InstanceNorm LayerNorm LinearSoftmaxLoss MeanIoU SyncBN SyncBatchNorm GRU EmbeddingBag GELU GLU Gather MatMul Pad Positions RMSNorm SiLU'

# summary FILE: the first sentence of its first comment, without the name in front of a colon.
summary() {
    awk '
        { line = $0; sub(/^\/\* /, "", line); sub(/^ \*( |$)/, "", line) }
        line == "" || line ~ /SPDX/ { exit }
        { text = text (text == "" ? "" : " ") line }
        END {
            sub(/ ?\*\/$/, "", text)
            if (match(text, /\. [A-Z]/) || match(text, /[.:]$/)) text = substr(text, 1, RSTART - 1)
            gsub(/\|/, "\\|", text); gsub(/\*/, "\\*", text)
            print text
        }' "$1"
}

# of_type FILE TYPE: what a list in its first comment says of a type, without further clauses and sources.
of_type() {
    awk -v type="$2" '
        / \*\/$/ || /SPDX/ { exit }
        index($0, " *   " type ":") == 1 || index($0, " *   " type " (also ") == 1 {
            inside = 1; sub(/^[^:]*: /, ""); text = $0; next
        }
        inside && !/^ \*     / { exit }
        inside { sub(/^ \* +/, ""); text = text " " $0 }
        END {
            if (match(text, /; |\. | \([A-Z]|\.$/)) text = substr(text, 1, RSTART - 1)
            gsub(/\|/, "\\|", text); gsub(/\*/, "\\*", text)
            print text
        }' "$1"
}

layers() {
    echo '| type | parameters | of | what it computes |'
    echo '|---|---|---|---|'
    {
        for file in src/layers/*.c; do
            text=$(summary "$file")
            awk -v text="$text" '
                /^const struct ls_layer_type ls_layer_/ { inside = 1; type = ""; parameter = "" }
                /LS_RECURRENT_TYPE,/ { parameter = "recurrent_param" }
                inside && /\.type = "/ { split($0, part, "\""); type = part[2] }
                /\.parameter = "/ { split($0, part, "\""); parameter = part[2] }
                inside && /^};/ { print type "@" parameter "@" FILENAME "@" text; inside = 0 }
                /^[A-Z_]+\((ls_layer_)?[a-z0-9_]+, "[A-Z]/ {
                    split($0, part, "\"")
                    print part[2] "@" (part[4] != "" ? part[4] : parameter) "@" FILENAME "@" text
                }' "$file"
        done | while IFS=@ read -r type parameter file text; do
            own=$(of_type "$file" "$type")
            text=${own:-$text} of=forks
            [[ " ${caffe_types//$'\n'/ } " = *" $type "* ]] && of=Caffe
            [[ " $own_types " = *" $type "* ]] && of=Lockstep
            [[ ! $text =~ ^[A-Za-z0-9,\ ]*${type}[A-Za-z0-9,\ ]*:\  ]] || text=${text#*: }
            [ -z "$parameter" ] || parameter="\`$parameter\`"
            echo "| \`$type\` | $parameter | $of | $text |"
        done
        awk '/^} aliases\[\] = \{/ { inside = 1 }
            inside && split($0, part, "\"") >= 4 {
                print "| `" part[2] "` |  | forks | another name of `" part[4] "` |"
            }
            /^};/ { inside = 0 }' src/layers/table.c
        for type in $caffe_types; do
            grep -qE "(\.type = |^[A-Z_]+\((ls_layer_)?[a-z0-9_]+, )\"$type\"" src/layers/*.c ||
                echo "| \`$type\` | | Caffe | not in this version |"
        done
    } | sort -f
}

# named FOLDER STRUCT: "| `name` | summary |" of each record of a type, sorted.
named() {
    awk -v kind="struct $2" '
        index($0, kind) && /= \{$/ { inside = 1; name = "" }
        inside && /\.name = "/ { split($0, part, "\""); name = part[2] }
        inside && /\.summary = "/ { split($0, part, "\""); print "| `" name "` | " part[2] " |" }
        /^};/ { inside = 0 }' src/"$1"/*.c | sort
}

# The comment of a field stands above it or behind it, or above the enum that is its type.
solver_fields() {
    echo '| field | default | what it does |'
    echo '|---|---|---|'
    awk '
        /^message SolverParameter \{/ { inside = 1; next }
        inside && /^\}/ { exit }
        !inside { next }
        /^  enum / { of[$2] = above; skip = 1 }
        skip { if (/\}/) skip = 0; above = ""; next }
        /^ *$/ { above = ""; next }
        /^ *\/\// {
            line = $0; sub(/^ *\/\/ ?/, "", line)
            above = above (above == "" ? "" : " ") line
            next
        }
        /^  (optional|repeated) / {
            text = above == "" ? of[$2] : above; above = ""; value = ""
            if (match($0, /\/\/ /)) text = substr($0, RSTART + 3)
            if (match($0, /default = [^\]]*/)) value = "`" substr($0, RSTART + 10, RLENGTH - 10) "`"
            gsub(/\|/, "\\|", text)
            print "| `" $3 "` | " value " | " text " |"
        }' proto/lockstep.proto
}

# section NAME: what stands between the marks of a table.
section() {
    case $1 in
    layers) layers ;;
    sources)
        echo "| \`backend\` | records |"
        echo '|---|---|'
        named data ls_source_type
        ;;
    solver) solver_fields ;;
    commands)
        echo '| command | |'
        echo '|---|---|'
        named cli ls_cli_command
        ;;
    esac
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk '/^<!-- table: / { print; print "@" $3; skip = 1 } /^<!-- end -->/ { skip = 0 } !skip { print }' "$page" |
    while IFS= read -r line; do
        case $line in
        @*) section "${line#@}" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done >"$folder/page"
if [ "${1:-}" = --write ]; then
    cp "$folder/page" "$page"
elif ! diff -u "$page" "$folder/page"; then
    echo "$page is not up to date: tools/caffe_page.sh --write" >&2
    exit 1
fi
