#!/bin/bash
# Weights are fp32 whatever the precision of the training that they come from: snapshots and caffemodels of
# one precision serve trainings, tests and predictions in the other. In which precision these compute is
# said by the definition alone; in BF16 they say the same on every instruction set and device.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

cp "$LOCKSTEP_SOURCE"/examples/digits/lenet_*.prototxt .
sed -i 's/batch_size: 64/batch_size: 14/; s/batch_size: 100/batch_size: 10/; s/count: 10000 /count: 20 /' \
    lenet_train_test.prototxt
sed 's/test_interval: 500/test_interval: 3/' lenet_solver.prototxt >fp32.solver
echo 'snapshot_format: BINARYPROTO' >>fp32.solver
{ cat fp32.solver && echo 'precision: BF16'; } >bf16.solver
sed 's/name: "conv2"/name: "conv2" precision: FP32/' lenet_train_test.prototxt >mixed_train_test.prototxt
sed 's/lenet_train_test/mixed_train_test/' bf16.solver >mixed.solver

train() { # train SOLVER PREFIX [OPTIONS]
    expect 0 -- "$LOCKSTEP" train --solver "$1.solver" --overwrite --snapshot-prefix "$2" --iterations 2 "${@:3}"
}
train fp32 fp32
train bf16 bf16
for precision in fp32 bf16; do
    [ -s ${precision}_iter_2.caffemodel ] || fail "no caffemodel of a training in $precision"
    tail -c +9 ${precision}_iter_2.safetensors | head -c "$(od -An -tu8 -N8 ${precision}_iter_2.safetensors)" >header
    grep -q '"dtype":"F32"' header || fail "no weights in fp32 after a training in $precision"
    ! grep -q '"dtype":"BF16"' header || fail "weights in bf16 after a training in $precision"
done

# Figures and predictions: the same from either kind of file, others in another precision.
says() { # says MODEL WEIGHTS TO [OPTIONS]
    expect 0 'accuracy' -- "$LOCKSTEP" test --model "$1" --weights "$2" "${@:4}"
    grep 'Test net output' log >"$3"
    expect 0 '"value": ' -- "$LOCKSTEP" predict --model "$1" --weights "$2" --samples 3 --format json "${@:4}"
    cat log >>"$3"
}
for weights in fp32 bf16; do
    for model in fp32 bf16 mixed; do
        says $model.solver ${weights}_iter_2.safetensors $model.$weights
        says $model.solver ${weights}_iter_2.caffemodel other
        cmp $model.$weights other || fail "$model: a caffemodel of a training in $weights is other weights than the snapshot"
    done
    says lenet_train_test.prototxt ${weights}_iter_2.safetensors other
    cmp fp32.$weights other || fail "weights of a training in $weights decide the precision of a net that says none"
    ! cmp -s fp32.$weights bf16.$weights || fail "$weights: predictions do not depend on the precision"
    ! cmp -s mixed.$weights bf16.$weights || fail "$weights: the precision of a layer is of no effect"
    for where in '--isa sse41' '--isa avx2' '--isa avx512' '--isa avx512_bf16' '--isa amx' '--device reference'; do
        # shellcheck disable=SC2086 # an option and its value
        "$LOCKSTEP" test --model bf16.solver --weights bf16_iter_2.safetensors --iterations 1 $where >log 2>&1 || continue
        # shellcheck disable=SC2086
        says bf16.solver ${weights}_iter_2.safetensors other $where
        cmp bf16.$weights other || fail "$where: other predictions in BF16"
    done
done

# Trainings go on from weights of the other precision, the same from either kind of file.
for pair in 'fp32 bf16' 'bf16 fp32' 'mixed fp32'; do
    read -r solver weights <<<"$pair"
    train "$solver" on --weights ${weights}_iter_2.safetensors
    cp on_iter_2.safetensors from_snapshot
    train "$solver" on --weights ${weights}_iter_2.caffemodel
    cmp on_iter_2.safetensors from_snapshot || fail "$solver from weights in $weights: the kind of file changes the training"
    train "$solver" on
    ! cmp -s on_iter_2.safetensors from_snapshot || fail "$solver from weights in $weights: they are of no effect"
done
finish
