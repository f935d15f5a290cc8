#!/bin/bash
# Caffe's files beside snapshots: written for every type of solver in both formats, they hold what
# the snapshot holds, and a training goes on from them with the same bytes on any number of
# workers. Files that are damaged, missing or of another training are refused.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# differs A B: the lines that `lockstep diff` has about arrays of A and B.
differs() {
    "$LOCKSTEP" diff "$1" "$2" 2>/dev/null | grep '^tensor' | grep -v "row_exponents\|state.losses"
}

# ---- There and back -------------------------------------------------------------------------------
# typed TYPE MOMENTUM FORMAT [FIELDS]: a solver; trains it, and goes on from its files.
typed() {
    local type=$1 end=""
    [ "$3" = BINARYPROTO ] || end=.h5
    sed "s/^momentum: .*/momentum: $2 type: \"$type\" weight_decay: 0.001 snapshot_format: $3 ${4:-}/; \
        s/\"fixed\"/\"multistep\" gamma: 0.5 stepvalue: 3 stepvalue: 9/" small.solver >solver.prototxt
    train 0
    rm -rf "$type$3"
    mkdir "$type$3"
    mv s_iter_* "$type$3"
    local state=$type$3/s_iter_10.solverstate$end
    # The weights are looked for beside the state where they are not under the name that it has.
    train 0 "Going on from Caffe's $state, iteration 10" -- --resume "$state" --set max_iter=10 \
        --snapshot-prefix same
    [ -z "$(differs "$type$3/s_iter_10.safetensors" same_iter_10.safetensors)" ] ||
        fail "$type, $3: other arrays than those of the snapshot"
    for workers in 1 3; do
        expect 0 'Iteration 10, lr = 0.0025' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt \
            --resume "$state" --workers $workers --snapshot-prefix w --set display=5
        rm -rf w$workers
        mkdir w$workers
        mv w_iter_20.* w$workers
    done
    for file in w_iter_20.safetensors "w_iter_20.solverstate$end" "w_iter_20.caffemodel$end"; do
        cmp "w1/$file" "w3/$file" || fail "$type, $3: other bytes on 3 workers"
    done
}
cp solver.prototxt small.solver
for type in SGD Nesterov Adam AdaDelta; do
    typed $type 0.9 BINARYPROTO
done
for type in AdaGrad RMSProp; do
    typed $type 0 HDF5
done
typed Adam 0.9 HDF5 'snapshot_diff: true'
typed SGD 0 BINARYPROTO 'snapshot_diff: true'

# A Caffe that goes on counts its steps itself: three values are behind update 10 of SGD's steps.
[ "$(od -An -tu1 -v -j $(($(stat -c %s SGDBINARYPROTO/s_iter_10.solverstate) - 2)) SGDBINARYPROTO/s_iter_10.solverstate | tr -d ' ')" = 322 ] ||
    fail "current_step is not 2 at the end of the state"

# ---- What is refused ------------------------------------------------------------------------------
sed 's/^momentum: .*/& snapshot_format: BINARYPROTO/' small.solver >solver.prototxt
good=SGDBINARYPROTO/s_iter_10.solverstate
sed 's/^momentum: .*/momentum: 0.9 type: "Adam"/' small.solver >adam.prototxt
expect 5 "$good: has .* blobs of history; the solver .Adam. has 2 for each" -- "$LOCKSTEP" train \
    --overwrite --solver adam.prototxt --resume $good
expect 5 "of another type of solver" -- "$LOCKSTEP" train --overwrite --solver adam.prototxt \
    --set type=AdamW --resume $good
sed 's/num_output: 10/num_output: 11/' net.prototxt >other.prototxt
cmp -s net.prototxt other.prototxt && fail "there is no other net"
expect 5 "blob [0-9]* of the history has shape .* parameter '.*' has" -- "$LOCKSTEP" train \
    --overwrite --solver solver.prototxt --set net=other.prototxt --resume $good
mkdir alone
cp $good alone/x.solverstate
train 5 "alone/x.solverstate: its weights 's_iter_10.caffemodel' are not there" -- \
    --resume alone/x.solverstate
for length in 0 1 30 1000; do
    cp $good alone/x.solverstate
    cp SGDBINARYPROTO/s_iter_10.caffemodel alone/s_iter_10.caffemodel
    truncate -s $length alone/x.solverstate
    train 5 '!Iteration' -- --resume alone/x.solverstate
    cp AdamHDF5/s_iter_10.solverstate.h5 alone/x.solverstate.h5
    truncate -s $length alone/x.solverstate.h5
    train 5 '!Iteration' -- --resume alone/x.solverstate.h5
done
train 5 'absent.solverstate: cannot open' -- --resume absent.solverstate

# ---- What Caffe does not have ---------------------------------------------------------------------
rm -f s_iter_*
sed 's/^momentum: .*/momentum: 0.9 type: "AdamW" snapshot_format: HDF5/' small.solver >solver.prototxt
train 0 'Caffe has no AdamW: its weights are written, but no .solverstate'
[ -s s_iter_20.caffemodel.h5 ] || fail "AdamW: no weights for Caffe"
[ ! -e s_iter_20.solverstate.h5 ] || fail "AdamW: a state that no Caffe could read"

# Old files go with the snapshots that they belong to.
rm -f s_iter_*
sed 's/^momentum: .*/& snapshot_keep: 1 snapshot_format: HDF5/' small.solver >solver.prototxt
train 0
[ "$(echo s_iter_*)" = "s_iter_20.caffemodel.h5 s_iter_20.safetensors s_iter_20.solverstate.h5" ] ||
    fail "what is left: $(echo s_iter_*)"
finish
