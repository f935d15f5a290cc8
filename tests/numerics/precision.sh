#!/bin/bash
# precision: BF16, by the program: a training gives the same bytes in every form, and after a resume; it is
# another training than one in FP32, which does not go on from its snapshots; plans, tests and
# predictions know it, and weights go from one to the other.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

cp "$LOCKSTEP_SOURCE"/examples/digits/lenet_*.prototxt .
sed -i 's/batch_size: 64/batch_size: 14/; s/batch_size: 100/batch_size: 10/; s/count: 10000 /count: 20 /' \
    lenet_train_test.prototxt
sed -i 's/test_interval: 500/test_interval: 3/; s/display: 100/display: 1/' lenet_solver.prototxt
cp lenet_solver.prototxt bf16_solver.prototxt
echo 'precision: BF16' >>bf16_solver.prototxt
cp lenet_solver.prototxt fp32_solver.prototxt
echo 'precision: FP32' >>fp32_solver.prototxt

verify() { expect 0 'Verified' -- "$LOCKSTEP" verify --solver "$1" --iterations 3 "${@:2}"; }
hash() { sed -nE 's/^ .* ([0-9a-f]{64})  .*/\1/p' log | sort -u; }
train() { expect 0 -- "$LOCKSTEP" train --solver "$1" --overwrite --snapshot-prefix "$2" --iterations 3 "${@:3}"; }

# The same bytes, of another training than in FP32, which is the default.
verify bf16_solver.prototxt --workers 1,2,3,5 --ranks 1,2 --memory full,least --resume random:2
bf16=$(hash)
verify lenet_solver.prototxt --workers 1,2
fp32=$(hash)
verify fp32_solver.prototxt --workers 1,2
[ "$(hash)" = "$fp32" ] || fail "FP32 is not the default"
[ -n "$bf16" ] || fail "no hash of a training in BF16"
[ "$bf16" != "$fp32" ] || fail "BF16 computes what FP32 does: $bf16"
verify bf16_solver.prototxt --workers 1,3 --ranks 1,2 --resume random:1 --device reference
[ "$(hash)" = "$bf16" ] || fail "the reference device has other bits in BF16"

# Figures near those of FP32, also where every micro-batch is audited.
figures() { sed -nE 's/.*(Iteration [0-9]+).* (loss = [0-9.e+-]+)$/\1 \2/p' log; }
train lenet_solver.prototxt f --workers 1
figures >fp32.txt
train bf16_solver.prototxt b --workers 2 --audit 1
figures >bf16.txt
[ "$(wc -l <fp32.txt)" -ge 3 ] || fail "a training says no losses"
paste -d ' ' fp32.txt bf16.txt | awk '{ d = $5 - $10; if (d < 0) d = -d; if (d > 0.02 * $5) exit 1 }' ||
    fail "figures differ: $(paste fp32.txt bf16.txt)"
train bf16_solver.prototxt c --workers 1
cmp b_iter_3.safetensors c_iter_3.safetensors || fail "an audit changes the bytes"

# It belongs to the definition.
grep -qa 'precision: BF16' b_iter_3.safetensors || fail "a snapshot does not tell the precision"
! grep -qa 'precision' f_iter_3.safetensors || fail "a training that says no precision tells one"
expect 5 'the snapshot was made with another precision: FP32, now BF16' -- "$LOCKSTEP" train \
    --solver bf16_solver.prototxt --resume f_iter_3.safetensors --snapshot-prefix x --iterations 4
expect 3 "precision.*HALF|HALF.*precision" -- "$LOCKSTEP" train --solver lenet_solver.prototxt --set precision=HALF

# No processor is part of its numeric environment: it goes on with another instruction set, without a word of it.
for word in isa onednn cache; do
    ! grep -qaE "(\\\\n|\")$word=" b_iter_3.safetensors || fail "a snapshot names $word"
done
if "$LOCKSTEP" --version | grep -qE '^isa=avx512'; then
    expect 0 -- "$LOCKSTEP" train --solver bf16_solver.prototxt --overwrite --snapshot-prefix n --iterations 2 --isa avx2
    expect 0 '!numeric' '!avx2' -- "$LOCKSTEP" train --solver bf16_solver.prototxt --snapshot-prefix n \
        --resume n_iter_2.safetensors --iterations 3
    cmp n_iter_3.safetensors c_iter_3.safetensors || fail "a resume with another instruction set is another training"
fi

# Nor is what multiplies bf16, where the processor has it; a plan names it.
for unit in avx512_bf16 amx; do
    "$LOCKSTEP" --version | grep -q "^$unit=for BF16\$" || continue
    expect 0 "lockstep:bf16:$unit" -- "$LOCKSTEP" plan --solver bf16_solver.prototxt --isa $unit
    expect 0 -- "$LOCKSTEP" train --solver bf16_solver.prototxt --overwrite --snapshot-prefix n --iterations 3 --isa $unit
    cmp n_iter_3.safetensors c_iter_3.safetensors || fail "$unit gives another training"
done

# Nor is the device: what the reference device begins the CPU goes on with, and the other way.
train bf16_solver.prototxt r --device reference
cmp r_iter_3.safetensors c_iter_3.safetensors || fail "a snapshot of the reference device is another one"
expect 0 -- "$LOCKSTEP" train --solver bf16_solver.prototxt --overwrite --snapshot-prefix d --iterations 2
expect 0 '!numeric' -- "$LOCKSTEP" train --solver bf16_solver.prototxt --snapshot-prefix d \
    --resume d_iter_2.safetensors --iterations 3 --device reference
cmp d_iter_3.safetensors c_iter_3.safetensors || fail "a resume on another device is another training"

# A layer in FP32 is another one in a training in BF16, and no other one in a training in FP32.
sed 's/name: "pool1"/name: "pool1" precision: FP32/' lenet_train_test.prototxt >pool_train_test.prototxt
for solver in lenet bf16; do
    sed 's/lenet_train_test/pool_train_test/' ${solver}_solver.prototxt >pool_${solver}_solver.prototxt
done
expect 5 "another layer 'pool1': precision: BF16, now FP32" -- "$LOCKSTEP" train \
    --solver pool_bf16_solver.prototxt --resume b_iter_3.safetensors --snapshot-prefix x --iterations 4
expect 0 -- "$LOCKSTEP" train --solver pool_lenet_solver.prototxt --resume f_iter_3.safetensors \
    --overwrite --snapshot-prefix x --iterations 4

# A layer that rounds nothing has no use for it, and the user is told.
sed 's/name: "digits"/name: "digits" precision: BF16/' lenet_train_test.prototxt >data_train_test.prototxt
sed 's/lenet_train_test/data_train_test/' lenet_solver.prototxt >data_solver.prototxt
train data_solver.prototxt x --workers 1
grep -q "^warning: layer 'digits': precision changes nothing, because this Data layer rounds nothing$" log ||
    fail "a precision without effect is not told"
! grep -q '^Precision' log || fail "FP32 is told as another precision"
train bf16_solver.prototxt x --workers 1
grep -q '^Precision: BF16$' log || fail "a training does not say its precision"

# Winograd's algorithm is not quietly left out.
sed 's/kernel_size: 5/& algorithm: WINOGRAD/' lenet_train_test.prototxt >winograd_train_test.prototxt
sed 's/lenet_train_test/winograd_train_test/' bf16_solver.prototxt >winograd_solver.prototxt
expect 3 'winograd_train_test.prototxt:[0-9]+:[0-9]+: conv1: WINOGRAD computes in fp32 only' \
    -- "$LOCKSTEP" plan --solver winograd_solver.prototxt

# Windows that reach too far are refused, also where each channel has a group.
far() { # far DILATION: a window of 2 x 2 that reaches so far, and as much padding
    cat >far_solver.prototxt <<EOF
base_lr: 0.1 lr_policy: "fixed" max_iter: 1 precision: BF16
net_param {
  layer {
    name: "d" type: "Data" top: "data" top: "label"
    data_param { backend: SYNTHETIC batch_size: 1 synthetic_param { count: 2 channels: 3 height: 8 width: 8 } }
  }
  layer {
    name: "c" type: "Convolution" bottom: "data" top: "c"
    convolution_param { num_output: 3 group: 3 kernel_size: 2 dilation: $1 pad: $(($1 / 2)) }
  }
  layer { name: "ip" type: "InnerProduct" bottom: "c" top: "ip" inner_product_param { num_output: 10 } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
}
EOF
}
far 100
expect 0 -- "$LOCKSTEP" plan --solver far_solver.prototxt
far 100000
expect 3 'far_solver.prototxt:7:3: c: .*windows that reach over more than 2\^31 places are too large' \
    -- "$LOCKSTEP" plan --solver far_solver.prototxt
far 2147483644
expect 3 'far_solver.prototxt:7:3: c: .*a window of more than 2\^20 places along an axis is too large' \
    -- "$LOCKSTEP" plan --solver far_solver.prototxt

# Plans.
expect 0 '^Precision: BF16$' 'plain BF16' '^Bits: any x86-64 computes the same$' -- "$LOCKSTEP" plan --solver bf16_solver.prototxt
expect 0 '!Precision' '!BF16' -- "$LOCKSTEP" plan --solver lenet_solver.prototxt
expect 0 '"bf16_layers": 0' -- "$LOCKSTEP" plan --solver lenet_solver.prototxt --json
expect 0 '^warning: convolution of layer .conv1. .* has only a slow kernel here: lockstep:bf16:sse41' -- \
    "$LOCKSTEP" plan --solver bf16_solver.prototxt --isa sse41
sed 's/name: "conv1"/name: "conv1" precision: FP32/' lenet_train_test.prototxt >mixed_train_test.prototxt
sed 's/lenet_train_test/mixed_train_test/' bf16_solver.prototxt >mixed_solver.prototxt
expect 0 '^Precision: BF16 in [1-9] of [1-9] layers$' -- "$LOCKSTEP" plan --solver mixed_solver.prototxt
verify mixed_solver.prototxt --workers 1,3 --memory full,least
[ "$(hash)" != "$bf16" ] || fail "a layer does not override the precision"

# Weights are fp32 in either case.
for model in lenet_train_test.prototxt bf16_solver.prototxt; do
    for weights in b_iter_3.safetensors f_iter_3.safetensors; do
        expect 0 'accuracy' -- "$LOCKSTEP" test --model "$model" --weights "$weights"
        expect 0 '"value": ' -- "$LOCKSTEP" predict --model "$model" --weights "$weights" --samples 2 --format json
        cp log "$weights.$model.txt"
    done
    ! cmp -s "b_iter_3.safetensors.$model.txt" "f_iter_3.safetensors.$model.txt" ||
        fail "predictions do not depend on the weights"
done
! cmp -s b_iter_3.safetensors.*.txt || fail "predictions do not depend on the precision"
train bf16_solver.prototxt w --weights f_iter_3.safetensors
finish
