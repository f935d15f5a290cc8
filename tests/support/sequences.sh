# Nets of sequences, and their data in this folder. Sourced behind tests/support/faults.sh.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# What each row of a test trains: tests/nets/sequence_NET.prototxt with this in the solver.
# shellcheck disable=SC2034 # for those that source this
sequences=(
    'packed|micro_batch: 2 iter_size: 2 type: "AdamW" base_lr: 0.01'
    'packed|micro_batch: 3 precision: BF16 clip_gradients: 1 base_lr: 0.1'
    'buckets|micro_batch: 1 iter_size: 2 base_lr: 0.1'
    'buckets|micro_batch: 2 algorithm: PORTABLE weight_decay: 0.01 base_lr: 0.1'
    'streams|micro_batch: 1 base_lr: 0.1'
    'streams|micro_batch: 2 iter_size: 2 base_lr: 0.1'
)

# sequence_numbers COUNT BELOW: whole numbers below BELOW, a line each.
sequence_numbers() {
    awk -v count="$1" -v below="$2" 'BEGIN {
        state = 12345
        for (i = 0; i < count; i++) {
            state = (state * 1103 + 12345) % 1048576
            print int(state / 1024) % below
        }
    }'
}

# sequence_array FILE: an array of int32 as NumPy has it, of the numbers below 65536 that are read.
sequence_array() {
    awk '{ text = text sprintf("\\%03o\\%03o\\0\\0", $1 % 256, int($1 / 256)) }
        END {
            head = sprintf("{\"descr\": \"<i4\", \"fortran_order\": False, \"shape\": (%d,), }", NR)
            gsub(/"/, "\047", head)
            printf "\\223NUMPY\\001\\000v\\000%-117s\\n%s", head, text
        }' >array.text
    # shellcheck disable=SC2059 # the format is made of escapes
    printf "$(cat array.text)" >"$1"
}

# A text of the letters a to i, and 90 records of 1 to 23 words below 200 with tags below 5.
sequence_data() {
    sequence_numbers 900 9 | awk '{ printf "%c", 97 + $1 }' >text.txt
    sequence_numbers 90 23 | awk '{ print sum + 0; sum += 1 + $1 } END { print sum }' >offsets.text
    local words
    words=$(tail -n 1 offsets.text)
    sequence_numbers "$words" 200 | sequence_array words.npy
    sequence_numbers "$words" 5 | sequence_array tags.npy
    sequence_array words.offsets.npy <offsets.text
    cp words.offsets.npy tags.offsets.npy
}

# sequence_solver ROW: solver.prototxt and net.prototxt.
sequence_solver() {
    local net=${1%%|*} fields=${1#*|} streams=6
    [[ $fields != *iter_size* ]] || streams=12
    case $net in
    packed) test_net sequence_packed >net.prototxt ;;
    buckets) test_net sequence_buckets >net.prototxt ;;
    streams) test_net sequence_streams streams=$streams >net.prototxt ;;
    *) return 1 ;;
    esac
    printf 'net: "net.prototxt" lr_policy: "fixed" max_iter: 8 random_seed: 3 display: 0 snapshot_prefix: "net"\n%s\n' \
        "$fields" >solver.prototxt
}
