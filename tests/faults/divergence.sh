#!/bin/bash
# A training that diverges ends with exit code 6, names iteration, layer and samples, and leaves
# the last good snapshot; it diverges at the same samples on any number of workers.
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
first in the micro-batch of samples [0-9]+ to [0-9]+: the data 'data' have -?(inf|NaN), sample [0-9]+ \
\(SYNTHETIC: record [0-9]+\)\. hint: .*transform_param" '!base_lr, warm-up' \
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
    "^lockstep: net.prototxt:28:1: the loss 'loss' of layer 'loss' is not finite: the data 'data' have .*\. hint: " -- \
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

    # Workers that meet at sync points do not wait for the one whose kernel failed.
    sed '/name: "conv"/,/^}/ { s/num_output: 4/num_output: 16 algorithm: DIRECT/
/^}/ a layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "conv" }
}' net.prototxt >normed.prototxt
    grep -q BatchNorm normed.prototxt || fail "no batch norm: $(cat normed.prototxt)"
    sed 's/net.prototxt/normed.prototxt/' solver.prototxt >normed_solver.prototxt
    for after in {110..149}; do
        expect 7 'oneDNN could not carry out .*out of memory' -- env LD_PRELOAD="$LOCKSTEP_BUILD/tests/libfailing_calls.so" \
            FAIL_CALL=dnnl_primitive_execute FAIL_ERRNO=1 FAIL_AFTER=$after timeout -s KILL 60 "$LOCKSTEP" train \
            --overwrite --solver normed_solver.prototxt --workers 3 --snapshot-prefix normed
    done
else
    echo "no kernel of oneDNN here: its failures are not tested"
fi

# The rate rises in iteration 20. The log has the first sign; the end names it, the snapshots and the
# newest from before the sign, from which a lower rate trains to the end.
small_solver | sed 's/snapshot: 10/snapshot: 1/; s/max_iter: 20/max_iter: 40/
    s/"fixed"/"step" stepsize: 20 gamma: 1e6/' >solver.prototxt
rm -f s_iter_*
train 6 'not finite' '^lockstep: snapshots: (s_iter_[0-9]+.safetensors, ){4}s_iter_[0-9]+.safetensors; ' \
    -- --set momentum=0
sign=$(grep -oE "^Iteration [0-9]+: the gradient of '[a-z.]+' is 2\^[0-9]+ times as large as any lately, or more, \
which can be the first sign of divergence: .* a lower base_lr" log | grep -oE '^Iteration [0-9]+' | head -n 1)
sign=${sign#Iteration }
if [ "${sign:-0}" -gt 20 ]; then
    check_output 'a divergence' "the first sign was in iteration $sign: a gradient 2\^8 times as large \
as any lately, or more\. hint: .*lower base_lr: --resume s_iter_$((sign - 1)).safetensors\$"
else
    fail "the first sign was in iteration '$sign'"
fi
expect 6 "^warning: the loss may have exploded before s_iter_[0-9]+.safetensors: shortly before it, in iterations \
$sign to [0-9]+, gradients were 2\^8 times.* with a lower base_lr: --resume s_iter_$((sign - 1)).safetensors\$" \
    -- "$LOCKSTEP" train --solver solver.prototxt --set momentum=0 --resume auto
expect 0 '!exploded' 'Optimization Done' -- "$LOCKSTEP" train --solver solver.prototxt --set momentum=0 \
    --resume s_iter_20.safetensors --set gamma=1

# A loss can explode without that sign.
small_solver | sed 's/max_iter: 20/max_iter: 30/; s/"fixed"/"step" stepsize: 20 gamma: 100/' >solver.prototxt
rm -f s_iter_*
train 0 'Optimization Done' '!first sign' -- --set momentum=0
expect 0 "^warning: the loss may have exploded before s_iter_30.safetensors: its loss is [0-9.]+, and that of earlier \
ones at most [0-9.]+; to go on from before that, with a lower base_lr: --resume s_iter_20.safetensors\$" -- \
    "$LOCKSTEP" train --solver solver.prototxt --set momentum=0 --set max_iter=31 --resume auto
expect 0 '!exploded' -- "$LOCKSTEP" train --solver solver.prototxt --set momentum=0 --set gamma=1 \
    --set max_iter=31 --snapshot-prefix t --resume s_iter_20.safetensors

# Where the sign was in the first snapshot's weights, there is none to go back to.
rm -f s_iter_*
train 6 'snapshots: s_iter_.* first sign was in iteration 1:.* none of them is from before that: start again' \
    -- --set base_lr=1e6 --set momentum=0 --set snapshot=1
small_solver | sed 's/snapshot: 10/snapshot: 1/; s/max_iter: 20/max_iter: 500/' >solver.prototxt

# verify says so, too.
expect 6 'not finite' -- "$LOCKSTEP" verify --solver solver.prototxt --workers 1,2 --set base_lr=1e30
finish
