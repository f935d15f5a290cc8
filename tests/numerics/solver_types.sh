#!/bin/bash
# Every solver type, from end to end: it learns, gives the same bytes on any number of workers,
# and a resume continues to the bytes of an uninterrupted run.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# check TYPE FIELDS: trains 60 updates.
check() {
    local type=$1 workers
    sed '/momentum/d; s/"s"/"'"$type"'_1"/; s/max_iter: 20/max_iter: 60/; s/snapshot: 10/snapshot: 30/' \
        base.prototxt >solver.prototxt
    echo "type: \"$type\" test_interval: 60 $2" >>solver.prototxt
    expect 0 'Optimization Done' "Solver: $type," -- "$LOCKSTEP" train --overwrite --solver solver.prototxt \
        --workers 1
    # The test's loss falls from that of the first weights.
    awk '/ loss = /{ for (i = 1; i < NF; i++) if ($i == "loss" && $(i + 1) == "=") value[++n] = $(i + 2) }
         END { exit !(n == 2 && value[2] < 0.9 * value[1]) }' <(grep 'Test net output' log) ||
        fail "$type does not learn: $(grep 'Test net output.*loss' log)"
    for workers in 2 3; do
        expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers $workers \
            --snapshot-prefix "${type}_$workers"
        cmp "${type}_1_iter_60.safetensors" "${type}_${workers}_iter_60.safetensors" ||
            fail "$type: other bytes on $workers workers"
    done
    expect 0 'iteration 30' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 3 \
        --resume "${type}_2_iter_30.safetensors" --snapshot-prefix "${type}_r"
    cmp "${type}_1_iter_60.safetensors" "${type}_r_iter_60.safetensors" ||
        fail "$type: other bytes after a resume"
    cmp -s "${type}_1_iter_60.safetensors" "${last:-/dev/null}" && fail "$type is like the one before"
    last=${type}_1_iter_60.safetensors
}
cp solver.prototxt base.prototxt
check SGD 'momentum: 0.9'
check Nesterov 'momentum: 0.9'
check Adam 'momentum: 0.9'
check AdamW 'momentum: 0.9 weight_decay: 0.01'
check LAMB 'momentum: 0.9 momentum2: 0.99 weight_decay: 0.1'
check Muon 'momentum: 0.95 weight_decay: 0.1 param_group { max_axes: 1 type: "AdamW" momentum: 0.9 }'
check AdaGrad 'delta: 1e-6'
check RMSProp 'rms_decay: 0.95 delta: 1e-6'
sed -i 's/base_lr: 0.01/base_lr: 0.003/' base.prototxt
check Lion 'momentum: 0.9 momentum2: 0.98 weight_decay: 0.1'
sed -i 's/base_lr: 0.003/base_lr: 1/' base.prototxt
check AdaDelta 'momentum: 0.95 delta: 1e-5'
check Adafactor ''

# Caffe's rules for momentum and rms_decay; what a type does not read is said.
sed 's/base_lr: 1/base_lr: 0.01/' base.prototxt >solver.prototxt
train 3 "momentum cannot be used with type 'AdaGrad'" -- --set type=AdaGrad
train 3 "momentum cannot be used with type 'RMSProp'" -- --set type=RMSProp
train 3 'rms_decay must be at least 0 and below 1, not 1' -- --set type=RMSProp --set momentum=0 \
    --set rms_decay=1
train 0 "rms_decay does nothing with type 'SGD'" -- --set rms_decay=0.5
echo 'muon_param { }' >>solver.prototxt
train 0 "muon_param does nothing with type 'SGD'" --
finish
