#!/bin/bash
# Small nets on several ranks, to the byte: dropout, clipping by the norm of all gradients, factors
# of a large inner product, averaged weights; then batches that neither micro-batches nor ranks
# divide, with several of them an update, and a test in between.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1

# net BATCH: digits, a convolution, two inner products with dropout between.
net() {
    cat <<TEXT
layer {
  name: "d" type: "Data" top: "data" top: "label"
  transform_param { scale: 0.00390625 mirror: true crop_size: 20 }
  data_param {
    backend: SYNTHETIC batch_size: $1 shuffle: true
    synthetic_param { count: 300 height: 24 width: 24 }
  }
}
layer {
  name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 6 kernel_size: 5 weight_filler { type: "xavier" } }
}
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer {
  name: "wide" type: "InnerProduct" bottom: "conv" top: "wide"
  inner_product_param { num_output: 120 weight_filler { type: "xavier" } }
}
layer {
  name: "drop" type: "Dropout" bottom: "wide" top: "wide" dropout_param { dropout_ratio: 0.4 }
}
layer {
  name: "ip" type: "InnerProduct" bottom: "wide" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
}
layer {
  name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
TEXT
}

net 64 >net.prototxt
small_solver 'clip_gradients: 0.5 weight_decay: 0.001 weight_average { decay: 0.9 } type: "Adam"' |
    sed '/^momentum/d' >solver.prototxt
alone 6
jobs

net 37 >net.prototxt
small_solver 'iter_size: 2 test_interval: 3 test_iter: 3 type: "Nesterov"' >solver.prototxt
alone 6
jobs
for kind in "${kinds[@]}"; do
    uneven "$kind" 1 2 3
    job "$kind" 4 1 --balance dynamic
done
finish
