#!/bin/bash
# Looking at what is on disk: lists of snapshots, with damaged ones, and comparisons of weights in
# several formats and of definitions.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

small_net >net.prototxt
small_solver 'snapshot_format: BINARYPROTO' >solver.prototxt
train 0 -- || cat log

# ---- Snapshots of a training ----------------------------------------------------------------------
expect 0 'Size    Before  File$' '^ +10 .* s_iter_10.safetensors \(and caffemodel, solverstate\)$' '^2 snapshots, .*; 0 damaged' -- \
    "$LOCKSTEP" list s
expect 0 '"iteration": 20, .*"whole": true' -- "$LOCKSTEP" list --json s_iter_10.safetensors
ln s_iter_10.safetensors s_best.safetensors
expect 0 'BEST s_iter_10.safetensors' '!s_best' -- "$LOCKSTEP" list s
rm s_iter_10.safetensors # pruned: the best one stays
expect 0 '^ +10 .*BEST s_best.safetensors$' -- "$LOCKSTEP" list s_best.safetensors
head -c 2000 s_iter_20.safetensors >s_iter_30.safetensors
cp s_iter_20.safetensors s_iter_40.safetensors
cp s_iter_20.safetensors s_iter_50.safetensors
printf 'x' | poke s_iter_50.safetensors "$(($(stat -c %s s_iter_50.safetensors) - 1))"
: >s_iter_60.safetensors
mkdir s_iter_70.safetensors
expect 5 'DAMAGED s_iter_30.safetensors: ' 'DAMAGED s_iter_40.safetensors: is of iteration 20' \
    'DAMAGED s_iter_50.safetensors: .*checksum' 'DAMAGED s_iter_60' 'DAMAGED s_iter_70' '; 5 damaged' -- \
    "$LOCKSTEP" list s
expect 5 '^lockstep: t: there are no snapshots of this prefix .*hint: there are some of s$' -- "$LOCKSTEP" list t
expect 5 'none/t: there are no snapshots' -- "$LOCKSTEP" list none/t
expect 2 'PREFIX must be given' -- "$LOCKSTEP" list

# ---- Weights --------------------------------------------------------------------------------------
expect 0 '^The same weights: [0-9]+ tensors' -- "$LOCKSTEP" diff s_iter_20.caffemodel s_iter_20.safetensors
expect 8 "^tensor 'ip.weight': .* at most by [0-9.e-]+ \(element [0-9]+\)" -- \
    "$LOCKSTEP" diff s_iter_10.caffemodel s_iter_20.safetensors
sed 's/name: "ip"/name: "other"/' net.prototxt >renamed.prototxt
expect 0 -- "$LOCKSTEP" train --solver solver.prototxt --set net=renamed.prototxt --snapshot-prefix r
expect 8 "^layer 'ip': only in s_iter" "^layer 'other': only in r_iter" -- \
    "$LOCKSTEP" diff s_iter_20.caffemodel r_iter_20.caffemodel
expect 5 's_iter_30.safetensors: ' -- "$LOCKSTEP" diff s_iter_30.safetensors s_iter_20.caffemodel
expect 2 'cannot compare net.prototxt .* with s_iter_20.caffemodel' -- \
    "$LOCKSTEP" diff net.prototxt s_iter_20.caffemodel
expect 2 'cannot compare s_iter_60' -- "$LOCKSTEP" diff s_iter_60.safetensors s_iter_20.caffemodel

# ---- Definitions ----------------------------------------------------------------------------------
expect 0 '^The same definitions$' -- "$LOCKSTEP" diff net.prototxt net.prototxt
expect 8 "^layer 'ip' \(InnerProduct\): only in net.prototxt \(net.prototxt:[0-9]+:[0-9]+\)" \
    "^layer 'other' .*only in renamed.prototxt" 'definitions differ in 2 places' -- \
    "$LOCKSTEP" diff net.prototxt renamed.prototxt
sed 's/num_output: 4/num_output: 5/' net.prototxt >wide.prototxt
expect 8 "num_output: 4 \(net.prototxt:[0-9]+:[0-9]+\) and 5 \(wide.prototxt:" -- \
    "$LOCKSTEP" diff net.prototxt wide.prototxt
sed 's/net: *"net.prototxt"/net: "wide.prototxt" weight_decay: 0.5/' solver.prototxt >other_solver.prototxt
expect 8 '^weight_decay: .* and 0.5 \(other_solver.prototxt:' 'num_output: 4 \(net.prototxt' -- \
    "$LOCKSTEP" diff solver.prototxt other_solver.prototxt
expect 2 'cannot compare net.prototxt' -- "$LOCKSTEP" diff net.prototxt solver.prototxt
printf 'name: "x" layer { nonsense: 3 }\n' >broken.prototxt
expect 3 'broken.prototxt:1:19: .*nonsense' -- "$LOCKSTEP" diff net.prototxt broken.prototxt
finish
