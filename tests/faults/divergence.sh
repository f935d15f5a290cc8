#!/bin/bash
# A training that diverges ends with exit code 6, names iteration, layer and samples, and leaves the
# last good snapshot; it is found on the same samples on any number of workers.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

small_solver | sed 's/snapshot: 10/snapshot: 1/; s/max_iter: 20/max_iter: 500/' >solver.prototxt
train 6 "^lockstep: .*iteration [0-9]+: .*not finite" 'hint: a lower base_lr' '!Optimization Done' \
    -- --set base_lr=1e30
first=$(grep '^lockstep: ' log)
for workers in 1 3 5; do
    rm -f s_iter_*
    expect 6 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers $workers --set base_lr=1e30
    [ "$(grep '^lockstep: ' log)" = "$first" ] ||
        fail "$workers workers say '$(grep '^lockstep: ' log)' instead of '$first'"
done

# The loss: with the layer's place and the samples of the micro-batch.
small_net | sed 's/scale: 0.00390625/scale: 1e38/' >net.prototxt
rm -f s_iter_*
train 6 "^lockstep: net.prototxt:28:1: iteration 0: the loss 'loss' of layer 'loss' is not finite, \
first in the micro-batch of samples [0-9]+ to [0-9]+\. hint: .*base_lr.*the weights are those" \
    '!Snapshotting'
small_net >net.prototxt

# The last snapshot is whole, and a lower rate goes on from it.
rm -f s_iter_*
train 6 'Snapshotting to s_iter_1.safetensors' -- --set base_lr=3e9 --set momentum=0
newest=$(grep -o 's_iter_[0-9]*.safetensors' log | tail -n 1)
expect 0 -- "$LOCKSTEP" test --model net.prototxt --weights s_iter_1.safetensors
[ -s "$newest" ] || fail "the last snapshot is not there"
train 0 'Resuming from s_iter_1.safetensors' 'Resume changes base_lr' -- --set momentum=0 \
    --resume s_iter_1.safetensors --set base_lr=1e-9 --set max_iter=3
[ -z "$(find . -name '.*.tmp')" ] || fail "left behind: $(find . -name '.*.tmp')"

# A test of a net whose loss is not finite says so behind its figures, and ends with the same code.
small_net | sed 's/scale: 0.00390625/scale: 1e38/' >net.prototxt
expect 6 'Test net output #[0-9]+: accuracy = ' 'Test net output #[0-9]+: loss = -?(nan|inf)' \
    'Tested 300 samples' \
    "^lockstep: net.prototxt:28:1: the loss 'loss' of layer 'loss' is not finite. hint: " -- \
    "$LOCKSTEP" test --model net.prototxt --weights s_iter_1.safetensors
small_net >net.prototxt
expect 0 -- "$LOCKSTEP" test --model net.prototxt --weights s_iter_1.safetensors

# A library that fails is no divergence: the layer is named, with what was wrong.
if "$LOCKSTEP" plan --model net.prototxt | grep -qE '^(conv|ip) .*(jit|brg|gemm)' && ! sanitized; then
    for workers in 1 2; do
        for failure in '7 1 out of memory' '1 5 '; do
            read -r status number text <<<"$failure"
            expect "$status" "^lockstep: .*(conv|ip)\b.*oneDNN could not carry out [a-z_ ]*.*$text" '!not finite' \
                '!base_lr 1' -- env LD_PRELOAD="$LOCKSTEP_BUILD/tests/libfailing_calls.so" \
                FAIL_CALL=dnnl_primitive_execute FAIL_ERRNO="$number" FAIL_AFTER=200 "$LOCKSTEP" train --overwrite \
                --solver solver.prototxt --workers $workers --snapshot-prefix "failing$status$workers"
        done
    done
else
    echo "no kernel of oneDNN here: its failures are not tested"
fi

# verify says so, too.
expect 6 'not finite' -- "$LOCKSTEP" verify --solver solver.prototxt --workers 1,2 --set base_lr=1e30
finish
