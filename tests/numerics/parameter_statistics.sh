#!/bin/bash
# The event "statistics": figures that can be worked out by hand, at displays alone, the same on any
# number of workers, and the same bytes as without it.
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
small_solver 'display: 10 micro_batch: 5' >solver.prototxt
# Six weights of 0.5, gradients of 4, a rate of 1/16: weights of 0.25 are left.
train 0 -- --set base_lr=0.0625 --log-json log.json --statistics
[ "$(grep -c '"event": "statistics"' log.json)" = 2 ] || fail "not once for each of the two displays"
grep '"event": "statistics"' log.json | head -n 1 >first.json
for text in '"iteration": 1,' '"name": "ip.weight", "weight_norm": 0.612372' '"gradient_norm": 9.79795' \
    '"update_norm": 0.612372' '"weight_histogram": {"edges": \[-0.25, 0.75\], "counts": \[6\]}' \
    '"gradient_histogram": {"edges": \[2, 6\], "counts": \[6\]}'; do
    grep -q -e "$text" first.json || {
        fail "no word of $text:"
        cat first.json
    }
done
train 0 'warning: statistics of parameters are found at displays' -- \
    --set display=0 --log-json log.json --statistics
! grep -q '"event": "statistics"' log.json || fail "statistics without displays"
train 0 -- --log-json log.json
! grep -q '"event": "statistics"' log.json || fail "statistics without --statistics"
expect 2 'train: --statistics go to the log' -- "$LOCKSTEP" train --solver solver.prototxt --statistics
train 0 -- --report page --statistics # a page has a log of its own
grep -q '"event": "statistics"' page/log.json || fail "no statistics in the log of a page"

small_net >net.prototxt
small_solver "display: 5 micro_batch: 3" >solver.prototxt
train 0 -- --snapshot-prefix plain
for workers in 1 3; do
    expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers $workers \
        --snapshot-prefix "w$workers" --log-json "w$workers.json" --statistics
    cmp plain_iter_20.safetensors "w${workers}_iter_20.safetensors" ||
        fail "$workers workers: other bytes than without statistics"
    sed -n '/"statistics"/s/"time": [^,]*, "elapsed": [^,]*, //p' "w$workers.json" >"lines$workers"
done
cmp lines1 lines3 || fail "other statistics on other workers"

# The same figures of the end for Prometheus.
train 0 -- --metrics lockstep.prom
for text in '^lockstep_running 0$' '^lockstep_iteration 20$' '^lockstep_ranks 1$' '^lockstep_loss [0-9]' \
    '^lockstep_last_snapshot_time_seconds 1[0-9]' '^lockstep_resident_memory_bytes [0-9]'; do
    grep -q -e "$text" lockstep.prom || fail "no word of $text in lockstep.prom"
done
expect 7 'none/x' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --metrics none/x
expect 7 'cannot make the folder' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt \
    --tensorboard solver.prototxt/x
finish
