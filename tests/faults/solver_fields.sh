#!/bin/bash
# Each field of Caffe's solver has its effect: on the weights, on what is told, or on the files; and
# those that have none change no byte.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# run NAME [FIELDS]: trains the base solver with these fields in place of its own; the log is
# NAME.log, the weights NAME.weights.
base='base_lr: 0.01
lr_policy: "step"
gamma: 0.5
stepsize: 6
momentum: 0.9
weight_decay: 0.01
max_iter: 12
display: 4
snapshot_format: BINARYPROTO
random_seed: 3'
run() {
    local name=$1 line key fields=$2
    { echo "net: \"net.prototxt\" snapshot_prefix: \"$name\""
      printf '%s\n' "$fields"
      while read -r line; do
          key=${line%%:*}
          printf '%s' "$fields" | grep -qE "(^| )$key: " || printf '%s\n' "$line"
      done <<<"$base"; } >"$name.prototxt"
    expect 0 -- "$LOCKSTEP" train --overwrite --solver "$name.prototxt" --workers 2
    cp log "$name.log"
    rm -f "$name.weights"
    for line in "$name"_iter_12.caffemodel "$name"_iter_10.caffemodel; do
        [ ! -e "$line" ] || [ -e "$name.weights" ] || cp "$line" "$name.weights"
    done
}
other() {
    run "$1" "$2"
    ! cmp -s base.weights "$1.weights" || fail "$2: changes nothing"
}
same() {
    run "$1" "$2"
    cmp base.weights "$1.weights" || fail "$2: changes the weights"
}
said() {
    grep -qE -e "$2" "$1.log" || { fail "$1: no word of '$2'"; tail -n 20 "$1.log"; }
}
run base ''
said base 'Iteration 4 .*loss = '

other rate 'base_lr: 0.02'
other policy 'lr_policy: "exp"'
other inv 'lr_policy: "inv" power: 0.5'
other power 'lr_policy: "inv" power: 0.7'
cmp -s inv.weights power.weights && fail "power changes nothing"
other gamma 'gamma: 0.25'
other stepsize 'stepsize: 3'
other multistep 'lr_policy: "multistep" stepvalue: 2 stepvalue: 5'
other momentum 'momentum: 0.5'
other decay 'weight_decay: 0.1'
other l1 'regularization_type: "L1"'
same l2 'regularization_type: "L2"'
other length 'max_iter: 10'
other size 'iter_size: 2'
other clip 'clip_gradients: 0.1'
same unclipped 'clip_gradients: -1'
other seed 'random_seed: 4'
other adam 'type: "Adam"'
other delta 'type: "Adam" delta: 0.1'
other second 'type: "Adam" momentum2: 0.9'
cmp -s adam.weights delta.weights && fail "delta changes nothing"
cmp -s adam.weights second.weights && fail "momentum2 changes nothing"
other rms 'type: "RMSProp" momentum: 0'
other rms2 'type: "RMSProp" momentum: 0 rms_decay: 0.5'
cmp -s rms.weights rms2.weights && fail "rms_decay changes nothing"
run enumerated 'solver_type: ADAM'
cmp adam.weights enumerated.weights || fail "solver_type: ADAM is not type: \"Adam\""
other started 'weights: "adam_iter_12.caffemodel"'
expect 0 'Iteration' -- "$LOCKSTEP" train --overwrite --solver started.prototxt --workers 2 \
    --weights rate_iter_12.caffemodel --snapshot-prefix over
cmp -s over_iter_12.caffemodel started.weights && fail "--weights does not win over the solver's"

# What is told.
same shown 'display: 1'
said shown 'Iteration 5 .*loss = '
same window 'average_loss: 5 display: 1'
[ "$(grep -c '^Iteration .*loss = ' window.log)" = "$(grep -c '^Iteration .*loss = ' shown.log)" ] ||
    fail "average_loss: other lines"
[ "$(grep '^Iteration 6 ' window.log | sed 's/.*loss/loss/')" != \
    "$(grep '^Iteration 6 ' shown.log | sed 's/.*loss/loss/')" ] || fail "average_loss changes no loss"
same debugged 'debug_info: true'
said debugged '^    \[Forward\] Layer .*data: '
same device 'device_id: 1 layer_wise_reduce: false solver_mode: CPU'

# Tests: one net in several states, nets in files of their own, and nets inside the solver.
same tested 'test_interval: 6 test_iter: 2'
said tested 'Iteration 0, Testing net \(#0\)'
said tested 'Iteration 12, Testing net \(#0\)'
same late 'test_interval: 6 test_iter: 2 test_initialization: false'
grep -q 'Iteration 0, Testing' late.log && fail "test_initialization: false is tested before"
same lossy 'test_interval: 6 test_iter: 2 test_compute_loss: true'
said lossy 'Test loss: '
same states 'test_interval: 6 test_iter: 1 test_iter: 2 test_state { } test_state { stage: "late" }'
said states 'Testing net \(#1\)'
# The best of the tests: the layer of the output says which way, else the solver.
sed '/name: "loss"/i layer { name: "mean" type: "Reduction" bottom: "ip" top: "mean" include { phase: TEST } }' \
    net.prototxt >mean.prototxt
echo 'net: "mean.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 12 test_interval: 3 display: 0
snapshot_best: "mean" snapshot_prefix: "mean"' >mean_solver.prototxt
expect 3 "snapshot_best: whether a larger or a smaller 'mean' is better is not known. hint: .*snapshot_best_mode: MIN" \
    '!Iteration' -- "$LOCKSTEP" train --solver mean_solver.prototxt --workers 2
for mode in MAX MIN; do
    rm -f mean_best.safetensors
    expect 0 -- "$LOCKSTEP" train --overwrite --solver mean_solver.prototxt --workers 2 --set snapshot_best_mode=$mode
    sort=$([ $mode = MAX ] && echo -gr || echo -g)
    best=$(grep -o 'mean = [^ ]*' log | cut -c 8- | sort "$sort" | head -n 1)
    first=$(grep -o -m 1 'mean = [^ ]*' log | cut -c 8-)
    [ "$best" = "$first" ] || grep -qF "Best mean so far: $best, kept as mean_best.safetensors" log ||
        fail "$mode: $best is not the best"
done
cp net.prototxt second.prototxt
same files 'test_interval: 6 test_iter: 1 test_net: "second.prototxt"'
said files 'Testing net \(#0\)'
same inside "test_interval: 6 test_iter: 1 test_net_param { $(tr '\n' ' ' <net.prototxt) }"
said inside 'Testing net \(#0\)'
sed -i 's/^net: "net.prototxt"/train_net: "net.prototxt"/' base.prototxt
expect 0 -- "$LOCKSTEP" train --overwrite --solver base.prototxt --workers 2
cmp base.weights base_iter_12.caffemodel || fail "train_net is not net"
for field in net_param train_net_param; do
    { sed 's/^train_net: "net.prototxt"//' base.prototxt
      echo "$field { $(tr '\n' ' ' <net.prototxt) }"; } >within.prototxt
    expect 0 -- "$LOCKSTEP" train --overwrite --solver within.prototxt --workers 2
    cmp base.weights base_iter_12.caffemodel || fail "$field is not net"
done
sed 's/"net.prototxt"/"staged.prototxt"/' base.prototxt >staged_solver.prototxt
sed '/name: "loss"/i layer { name: "twice" type: "Power" bottom: "ip" top: "ip" power_param { scale: 2 } include { stage: "twice" } }' \
    net.prototxt >staged.prototxt
expect 0 -- "$LOCKSTEP" train --overwrite --solver staged_solver.prototxt --workers 2
cmp base.weights base_iter_12.caffemodel || fail "a stage that is not given"
echo 'train_state { stage: "twice" }' >>staged_solver.prototxt
expect 0 -- "$LOCKSTEP" train --overwrite --solver staged_solver.prototxt --workers 2
cmp -s base.weights base_iter_12.caffemodel && fail "train_state changes nothing"

# Files.
same snapshots 'snapshot: 5'
[ "$(ls snapshots_iter_*.safetensors | wc -l)" = 3 ] || fail "snapshot: 5 leaves $(ls snapshots_iter_*)"
run without 'snapshot: 5 snapshot_after_train: false'
[ ! -e without_iter_12.safetensors ] || fail "snapshot_after_train: false leaves a last one"
run diff 'snapshot_format: HDF5'
[ -s diff_iter_12.caffemodel.h5 ] || fail "snapshot_format: HDF5 leaves no HDF5"
run diffs 'snapshot_format: HDF5 snapshot_diff: true'
[ "$(stat -c %s diffs_iter_12.caffemodel.h5)" -gt $(($(stat -c %s diff_iter_12.caffemodel.h5) * 3 / 2)) ] ||
    fail "snapshot_diff adds nothing"
finish
