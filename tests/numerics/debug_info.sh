#!/bin/bash
# debug_info: means that can be worked out by hand, the same lines and bytes on any number of
# workers, and the same bytes as without it.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

cat >net.prototxt <<'TEXT'
layer {
  name: "data" type: "DummyData" top: "data" top: "target"
  dummy_data_param {
    shape { dim: 12 dim: 3 } shape { dim: 12 dim: 2 }
    data_filler { type: "constant" value: -2 } data_filler { type: "constant" value: -1 }
  }
}
layer {
  name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 bias_term: false weight_filler { type: "constant" value: 0.5 } }
}
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "target" top: "loss" }
TEXT
small_solver 'display: 10 micro_batch: 5 debug_info: true' >solver.prototxt
# Of 12 samples: ip is -3, the loss 12 x 2 x 2^2 / 24, its gradient 2 / 12, the weights' 12 x 2 / 6.
train 0 \
    '^    \[Forward\] Layer data, top blob data data: 2$' \
    '^    \[Forward\] Layer data, top blob target data: 1$' \
    '^    \[Forward\] Layer ip, top blob ip data: 3$' \
    '^    \[Forward\] Layer ip, param blob 0 data: 0.5$' \
    '^    \[Forward\] Layer loss, top blob loss data: 4$' \
    '^    \[Backward\] Layer loss, bottom blob ip diff: 0.166667$' \
    '^    \[Backward\] Layer ip, param blob 0 diff: 4$' \
    '^    \[Backward\] All net params \(data, diff\): L1 norm = \(3, 24\); L2 norm = \(1.22474, 9.79796\)$'
[ "$(grep -c 'All net params' log)" = 2 ] || fail "not once for each of the two displays"
train 0 '!Forward' -- --set display=0

# A net with layers that are made one (convolution and ReLU), in both precisions.
small_net >net.prototxt
for precision in FP32 BF16; do
    small_solver "display: 5 micro_batch: 3 precision: $precision iter_size: 2" >solver.prototxt
    train 0 -- --snapshot-prefix plain
    for workers in 1 2 3; do
        expect 0 'All net params' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt \
            --set debug_info=true --workers $workers --snapshot-prefix "w$workers"
        grep '^    \[' log >"lines$workers"
        cmp plain_iter_20.safetensors "w${workers}_iter_20.safetensors" ||
            fail "$precision, $workers workers: other bytes than without debug_info"
    done
    { cmp lines1 lines2 && cmp lines1 lines3; } || fail "$precision: other lines on other workers"
done
finish
