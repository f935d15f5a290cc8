#!/bin/bash
# Fields of forks that are honoured: a net with them becomes, bit for bit, what the net becomes that
# says the same in Caffe's words, on one worker and on three, and so do its tests.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/faults.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# become NAME WORKERS SED: trains the small net, changed; NAME.weights and NAME.text are what it
# becomes and what it says.
become() {
    small_net | sed "$3" >net.prototxt
    small_solver "test_interval: 10 test_initialization: false display: 1" >solver.prototxt
    expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers "$2"
    cp s_iter_20.safetensors "$1.weights"
    grep -oE 'Iteration [0-9]+, .*(loss|accuracy) = [0-9.]+|Test net .*' log >"$1.text"
    [ -s "$1.text" ] || fail "$1: nothing was said"
}

# same NAME FORK CAFFE: two changes of the small net that mean the same.
same() {
    become caffe 1 "$3"
    local workers
    for workers in 1 3; do
        become fork "$workers" "$2"
        expect 0 -- "$LOCKSTEP" diff fork.weights caffe.weights
        cmp -s fork.text caffe.text || fail "$1, $workers workers: $(diff fork.text caffe.text | head)"
    done
}

pool='s/kernel_size: 2 stride: 2/kernel_size: 3 stride: 2'
loss='s/bottom: "ip" bottom: "label" top: "loss"/& loss_param'
drop='s/^  name: "ip" .*/  name: "drop" type: "Dropout" bottom: "pool" top: "drop"'
ip='\n}\nlayer {\n  name: "ip" type: "InnerProduct" bottom: "drop" top: "ip"/'
half='\n}\nlayer {\n  name: "half" type: "Power" bottom: "drop" top: "drop"\n  power_param { scale: 0.5 }'
same "ceil_mode: false" "$pool ceil_mode: false/" "$pool round_mode: FLOOR/"
same "ceil_mode: true" "$pool ceil_mode: true/" "$pool/"
same engine 's/num_output: 4/& engine: MKLDNN/' 's/x/x/'
same class_weighting "$loss { weight_by_label_freqs: true class_weighting: [1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5] }/" \
    "$loss { class_weight: [1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5] }/"
same weight_by_label_freqs "$loss { weight_by_label_freqs: false class_weighting: [1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5] }/" 's/x/x/'
same crop_h 's/scale: 0.00390625/& crop_h: 10 crop_w: 10/' 's/scale: 0.00390625/& crop_size: 10/'
same scale_train "$drop\n  dropout_param { dropout_ratio: 0.5 scale_train: false }$ip" \
    "$drop\n  dropout_param { dropout_ratio: 0.5 }$half$ip"
same "ignored parameters" 's/name: "pool"/& quantization_param { } lrn_param { }/' 's/x/x/'

# A divisor that is given, here the batch. Tests show the sum over all batches divided by it.
small_net() {
    test_net small "data=backend: SYNTHETIC synthetic_param { count: 320 height: 12 width: 12 }" \
        "test_data=backend: SYNTHETIC synthetic_param { count: 20 height: 12 width: 12 }"
}
same PRE_FIXED "$loss { normalization: PRE_FIXED pre_fixed_normalizer: 16 } exclude { phase: TEST }/" \
    "$loss { normalization: BATCH_SIZE } exclude { phase: TEST }/"
small_net | sed "$loss { normalization: PRE_FIXED pre_fixed_normalizer: 20 }/" >net.prototxt
expect 0 'loss = [12]\.' -- "$LOCKSTEP" test --model net.prototxt --weights fork.weights
finish
