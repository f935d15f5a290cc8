#!/bin/bash
# Produces every figure that the documentation states: ./run results calls it with the folder for its
# output as the first argument. Further arguments choose: mnist cifar-quick cifar-full resnet20
# nuclei weights bench (default: all), and those that take hours, which only their names choose:
# seeds-mnist seeds-cifar-full seeds-resnet20 seeds-nuclei (each with five seeds in FP32 and in BF16). Needs the data sets that tests use; what lacks its data is skipped, and said so.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
folder=$(realpath "$1")
shift
what=" ${*:-mnist cifar-quick cifar-full resnet20 nuclei weights bench} "
root=$(cd "$(dirname "$0")/.." && pwd)
lockstep=${LOCKSTEP:-$root/build/lockstep}
data=${LOCKSTEP_DATA:-$root/../shared/data}
examples=$root/examples

say() { printf '%s\n' "$*"; }
wants() { case $what in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# The last accuracy of a log.
accuracy() { sed -n 's/.*: accuracy = \([0-9.]*\).*/\1/p' "$1" | tail -n 1; }

# train NAME SOLVER OPTIONS...: a training with its log; the time that it took.
train() {
    local name=$1 solver=$2 start=$SECONDS
    shift 2
    "$lockstep" train --solver "$solver" --overwrite --snapshot-prefix "$folder/$name" "$@" \
        >"$folder/$name.log" 2>&1
    say "$name: accuracy $(accuracy "$folder/$name.log"), $((SECONDS - start)) s"
}

mnist() {
    [ -r "$data/mnist/train-images-idx3-ubyte.gz" ] || { say "mnist: skipped, no data"; return; }
    cd "$data/mnist"
    train lenet "$examples/mnist/lenet_solver.prototxt"
}

# CIFAR-10's binary files, unpacked into the folder if they are packed.
cifar_data() {
    cifar=$data/cifar10
    [ -r "$cifar/data_batch_1.bin.xz" ] || [ -r "$cifar/data_batch_1.bin" ] || return 1
    [ ! -r "$cifar/data_batch_1.bin" ] || return 0
    mkdir -p "$folder/cifar10"
    local file
    for file in "$cifar"/*.bin.xz; do
        local to
        to=$folder/cifar10/$(basename "$file" .xz)
        [ -r "$to" ] || xz -dc "$file" >"$to"
    done
    cifar=$folder/cifar10
}

cifar_quick() {
    cifar_data || { say "cifar10_quick: skipped, no data"; return; }
    cd "$cifar"
    train cifar10_quick "$examples/cifar10/cifar10_quick_solver.prototxt"
    train cifar10_quick_lr1 "$examples/cifar10/cifar10_quick_solver_lr1.prototxt" \
        --resume "$folder/cifar10_quick_iter_4000.safetensors"
}

cifar_full() {
    cifar_data || { say "cifar10_full: skipped, no data"; return; }
    cd "$cifar"
    train cifar10_full "$examples/cifar10/cifar10_full_solver.prototxt" --iterations 10000
}

resnet20() {
    cifar_data || { say "resnet20: skipped, no data"; return; }
    cd "$cifar"
    train resnet20 "$examples/cifar10/resnet20_solver.prototxt"
}

# Enters the folder of the pictures of nuclei and their instance maps, unpacked if they are packed.
nuclei_data() {
    local nuclei=$data/nuclei
    if [ ! -d "$nuclei/images" ]; then
        [ -r "$nuclei/nuclei256.tar.zst" ] || { say "nuclei: skipped, no data"; return 1; }
        command -v zstd >/dev/null || { say "nuclei: skipped, zstd is missing"; return 1; }
        mkdir -p "$folder/nuclei"
        zstd -qdc "$nuclei/nuclei256.tar.zst" | tar -xf - -C "$folder/nuclei"
        nuclei=$(dirname "$(find "$folder/nuclei" -type d -name images | head -n 1)")
    fi
    cd "$nuclei"
}

nuclei() {
    nuclei_data || return 0
    train nuclei "$examples/nuclei/fcn_solver.prototxt"
    say "nuclei: mean IoU $(sed -n 's/.*mean_iou = \([0-9.]*\).*/\1/p' "$folder/nuclei.log" | tail -n 1)"
}

# Weights that Caffe trained, tested here.
weights() {
    local models=$data/caffemodels file
    [ -d "$models" ] || { say "weights: skipped, no data"; return; }
    cd "$data/mnist"
    for file in bvlc_examples_2014/lenet_iter_10000 lenet_2015/lenet_iter_10000; do
        "$lockstep" test --model "$examples/mnist/lenet_train_test.prototxt" \
            --weights "$models/$file.caffemodel" >"$folder/test.log"
        say "Caffe's $file on MNIST: accuracy $(accuracy "$folder/test.log")"
    done
}

# seeds NAME FIGURE SOLVER OPTIONS...: the training with five seeds in both precisions, sorted.
seeds() {
    local name=$1 figure=$2 precision seed log
    shift 2
    for precision in FP32 BF16; do
        for seed in 1 2 3 4 5; do
            train "$name-$precision-$seed" "$@" --set precision=$precision \
                --set random_seed=$seed >>"$folder/seeds.txt"
            log=$folder/$name-$precision-$seed.log
            sed -n "s/.*[: ]$figure = \([0-9.]*\).*/\1/p" "$log" | tail -n 1
        done | sort -n | tr '\n' ' ' >"$folder/seeds"
        say "$name, $figure in $precision, five seeds: $(cat "$folder/seeds")"
    done
}

seeds_mnist() {
    cd "$data/mnist"
    seeds lenet accuracy "$examples/mnist/lenet_solver.prototxt"
}

seeds_cifar_full() {
    cifar_data && cd "$cifar"
    seeds cifar10_full accuracy "$examples/cifar10/cifar10_full_solver.prototxt" --iterations 10000
}

seeds_resnet20() {
    cifar_data && cd "$cifar"
    seeds resnet20 accuracy "$examples/cifar10/resnet20_solver.prototxt"
}

seeds_nuclei() {
    nuclei_data
    seeds nuclei mean_iou "$examples/nuclei/fcn_solver.prototxt"
}

if wants mnist; then mnist; fi
if wants cifar-quick; then cifar_quick; fi
if wants cifar-full; then cifar_full; fi
if wants resnet20; then resnet20; fi
if wants nuclei; then nuclei; fi
if wants weights; then weights; fi
if wants seeds-mnist; then seeds_mnist; fi
if wants seeds-cifar-full; then seeds_cifar_full; fi
if wants seeds-resnet20; then seeds_resnet20; fi
if wants seeds-nuclei; then seeds_nuclei; fi
if wants bench; then
    "$root/bench/bench.sh" --json "$folder/bench.json"
fi
