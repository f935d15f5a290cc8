#!/bin/bash
# The demo: tools/demo.sh PROGRAM OUTPUT [DIR]
#
# Trains LeNet (examples/mnist) on synthetic digits, or on what is in DIR: the four files of MNIST
# (any data set in their format), or a sub-folder of pictures for each class. Everything is written
# to the folder OUTPUT: the definitions, the log, the model. LOCKSTEP_DEMO_UPDATES: how long.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
program=$1
output=$2
directory=${3:-}
examples=$(dirname "$0")/../examples/mnist
updates=${LOCKSTEP_DEMO_UPDATES:-}

die() {
    printf 'demo: %s\n' "$*" >&2
    exit 2
}
step() { printf '\n== %s\n' "$*"; }
# A string of the definition language: quotes and backslashes are escaped.
quoted() { printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"; }

# data_layer PHASE TRANSFORM PARAMETERS
data_layer() {
    cat <<TEXT
layer {
  name: "data"
  type: "Data"
  top: "data"
  top: "label"
  include { phase: $1 }
  transform_param { $2 }
  data_param { $3 }
}
TEXT
}

# The first of some file names that is in the directory, with or without .gz.
first_file() {
    local name ending
    for name in "$@"; do
        for ending in "" .gz; do
            if [ -f "$directory/$name$ending" ]; then
                printf '%s' "$directory/$name$ending"
                return
            fi
        done
    done
}

synthetic_layers() {
    kind="synthetic digits, drawn by Lockstep (no DIR was given)"
    own="./run demo DIR    # DIR: MNIST's files, or a sub-folder of pictures for each class"
    data_layer TRAIN "scale: 0.00390625" "backend: SYNTHETIC batch_size: 64 shuffle: true
    synthetic_param { count: 60000 }"
    data_layer TEST "scale: 0.00390625" "backend: SYNTHETIC batch_size: 100
    synthetic_param { first: 60000 count: 10000 }"
}

idx_layers() {
    kind="the digits in $directory"
    data_layer TRAIN "scale: 0.00390625" "backend: IDX batch_size: 64 shuffle: true
    source: $(quoted "$1") label_source: $(quoted "$2")"
    data_layer TEST "scale: 0.00390625" "backend: IDX batch_size: 100
    source: $(quoted "$3") label_source: $(quoted "$4")"
}

picture_layers() {
    local common
    kind="the pictures in $directory, $classes classes; a tenth is held out"
    common="backend: IMAGES source: $(quoted "$directory") new_height: 32 new_width: 32
    on_bad_record: SKIP"
    data_layer TRAIN "scale: 0.00390625 mirror: true" "$common batch_size: 64 shuffle: true
    split: \"train:0.9\""
    # Shuffled, so that the first samples, which are shown, are of several classes.
    data_layer TEST "scale: 0.00390625" "$common batch_size: 100 shuffle: true
    split: \"test:0.9\""
}

# find_pictures FOLDER OPTIONS...: the JPEG and PNG files that lie in a folder itself.
find_pictures() {
    local folder=$1
    shift
    find -L "$folder" -maxdepth 1 -type f \
        \( -iname '*.jpg' -o -iname '*.jpeg' -o -iname '*.png' \) "$@"
}

# Sub-folders with a picture in them.
count_classes() {
    local folder count=0
    for folder in "$directory"/*/; do
        [ -n "$(find_pictures "$folder" -print -quit)" ] && count=$((count + 1))
    done
    echo $count
}

# The updates for a folder of pictures: a hundred epochs, but 200 to 2000 updates. More would take
# long, as pictures are read from their files, or only learn few pictures by heart.
picture_updates() {
    local folder count=0 updates
    for folder in "$directory"/*/; do
        count=$((count + $(find_pictures "$folder" -printf x | wc -c)))
    done
    updates=$((100 * count / 64))
    echo $((updates < 200 ? 200 : updates > 2000 ? 2000 : updates))
}

# Writes the data layers to the file $1 and sets kind, classes, own, and length: the updates that
# take a minute or two on two cores.
choose_data() {
    length=6000
    own="./run demo $directory"
    classes=10
    if [ -z "$directory" ]; then
        synthetic_layers >"$1"
        return
    fi
    [ -d "$directory" ] || die "there is no folder '$directory'"
    directory=$(cd "$directory" && pwd)
    local files=() pair set what rank
    for pair in "train images 3" "train labels 1" "t10k images 3" "t10k labels 1"; do
        read -r set what rank <<<"$pair"
        files+=("$(first_file "$set-$what-idx$rank-ubyte" "$set-$what.idx$rank-ubyte")")
    done
    if [ -n "${files[0]}${files[1]}${files[2]}${files[3]}" ]; then
        for pair in 0 1 2 3; do
            [ -n "${files[pair]}" ] || die "$directory has not all four files of MNIST:
    train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte
    (each may have .gz behind it)"
        done
        idx_layers "${files[@]}" >"$1"
        return
    fi
    classes=$(count_classes)
    [ "$classes" -ge 2 ] || die "$directory has neither MNIST's four files nor two or more folders
    with JPEG or PNG pictures, one folder for each class"
    length=$(picture_updates)
    picture_layers >"$1"
}

# The example's net without its Data layers, for another number of classes.
lenet_body() {
    awk -v classes="$classes" '
        /^layer \{/ { layer = ""; inside = 1 }
        !inside { next }
        { layer = layer $0 "\n" }
        /^\}/ {
            if (layer !~ /type: "Data"/) {
                if (layer ~ /name: "ip2"/)
                    sub(/num_output: [0-9]+/, "num_output: " classes, layer)
                printf "%s", layer
            }
            inside = 0
        }' "$examples/lenet_train_test.prototxt"
}

# say_overfitting LOG: where the last test is clearly worse than the best one, what that means.
say_overfitting() {
    sed -n 's/^{"event": "test", "iteration": \([0-9]*\),.*"accuracy", "values": \[\([0-9.e-]*\)\].*/\1 \2/p' "$1" |
        awk 'NR == 1 || $2 > best { best = $2; at = $1 }
            { last = $2; end = $1 }
            END {
                if (NR > 1 && last < best - 0.005)
                    printf "\nIt overfits: after %d updates the accuracy on samples that it does not train on was\n" \
                        "%.3f, after %d updates it is %.3f. More pictures, or fewer updates, would help; the\n" \
                        "model that is kept is the best one.\n", at, best, end, last
            }'
}

[ -x "$program" ] || die "there is no program '$program'"
mkdir -p "$output"
rm -f "$output"/lenet*
choose_data "$output/lenet_data.tmp"
{
    printf '# Written by the demo for %s.\nname: "LeNet"\n' "${kind//$'\n'/ }"
    cat "$output/lenet_data.tmp"
    lenet_body
} >"$output/lenet_train_test.prototxt"
rm "$output/lenet_data.tmp"
updates=${updates:-$length}
sed -e "s|^net:.*|net: \"lenet_train_test.prototxt\"|" \
    -e "s|^max_iter:.*|max_iter: $updates|" \
    -e "s|^test_interval:.*|test_interval: $(((updates + 5) / 6))|" \
    -e "s|^display:.*|display: $(((updates + 11) / 12))|" \
    -e "s|^snapshot:.*|snapshot: 0 snapshot_keep: 1 snapshot_best: \"accuracy\"|" \
    "$examples/lenet_solver.prototxt" | sed -n '/^[a-z]/p' >"$output/lenet_solver.prototxt"

step "Training LeNet on $kind"
model=$output/lenet_best.safetensors
"$program" train --solver "$output/lenet_solver.prototxt" --overwrite \
    --snapshot-prefix "$output/lenet" --log-json "$output/lenet_log.json"
say_overfitting "$output/lenet_log.json"

step "Testing the best of these models on all samples that were held out"
"$program" test --model "$output/lenet_train_test.prototxt" --weights "$model"

step "Ten of them"
"$program" predict --model "$output/lenet_train_test.prototxt" --weights "$model" \
    --samples 10 --draw

step "The promise: the same bits on 1, 2 and 3 workers"
"$program" verify --solver "$output/lenet_solver.prototxt" --workers 1,2,3 --iterations 10

short=${program#"$PWD"/}
cat <<TEXT

== What is where
The model:       $model
Its definition:  $output/lenet_train_test.prototxt, $output/lenet_solver.prototxt
Train it again:  $short train --solver $output/lenet_solver.prototxt
Same bits on any number of workers:
                 $short verify --solver $output/lenet_solver.prototxt --workers 1,2,3
Your own data:   $own
TEXT
