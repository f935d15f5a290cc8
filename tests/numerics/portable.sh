#!/bin/bash
# algorithm: PORTABLE, by the program: trainings in FP32 have the same bytes on every instruction set, with
# any number of workers and ranks, and after a resume on another set; plans and snapshots say so. It belongs
# to the definition, of which layers may say their own part.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

sets=sse41
for set in avx2 avx512; do
    "$LOCKSTEP" plan --solver "$LOCKSTEP_SOURCE/examples/digits/lenet_solver.prototxt" --isa $set >log 2>&1 && sets=$sets,$set
done
drawn() { # drawn BATCH SIDE
    printf 'layer { name: "drawn" type: "Data" top: "data" top: "label" transform_param { scale: 0.004 }
        data_param { backend: SYNTHETIC batch_size: %d synthetic_param { count: 100 height: %d width: %d } } }\n' "$1" "$2" "$2"
}
without_data() { awk 'BEGIN { RS = "\nlayer "; ORS = "" } NR > 1 && !/type: "(Data|Accuracy)"/ { print "\nlayer " $0 }' "$1"; }
solver() { # solver NET [TEXT]
    printf 'net: "%s.prototxt" base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" max_iter: 3 display: 1\n%s\n' "$1" "${2:-}"
}
{ drawn 9 28 && without_data "$LOCKSTEP_SOURCE/examples/digits/lenet_train_test.prototxt"; } >lenet.prototxt
{ drawn 4 32 && without_data "$LOCKSTEP_SOURCE/examples/cifar10/cifar10_quick_train_test.prototxt"; } >quick.prototxt
{
    drawn 10 13
    cat <<'NET'
layer { name: "first" type: "Convolution" bottom: "data" top: "a"
  convolution_param { num_output: 18 kernel_size: 3 stride: 2 pad: 1 bias_term: false weight_filler { type: "msra" } } }
layer { name: "norm" type: "BatchNorm" bottom: "a" top: "a" }
layer { name: "scale" type: "Scale" bottom: "a" top: "a" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "a" top: "a" }
layer { name: "halves" type: "Convolution" bottom: "a" top: "b"
  convolution_param { num_output: 18 group: 2 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "each" type: "Convolution" bottom: "a" top: "c"
  convolution_param { num_output: 18 group: 18 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "sum" type: "Eltwise" bottom: "b" bottom: "c" top: "d" }
layer { name: "up" type: "Deconvolution" bottom: "d" top: "e"
  convolution_param { num_output: 5 kernel_size: 4 stride: 2 pad: 1 weight_filler { type: "msra" } } }
layer { name: "ip" type: "InnerProduct" bottom: "e" top: "f"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "f" bottom: "label" top: "loss" }
NET
} >norms.prototxt

{
    drawn 10 12
    cat <<'NET'
layer { name: "each" type: "Convolution" bottom: "data" top: "a"
  convolution_param { num_output: 21 kernel_size: 3 pad: 4 algorithm: PORTABLE weight_filler { type: "msra" } } }
layer { name: "relu" type: "ReLU" bottom: "a" top: "a" }
layer { name: "groups" type: "Convolution" bottom: "a" top: "b"
  convolution_param { num_output: 30 group: 3 kernel_size: 3 stride: 2 pad: 1 weight_filler { type: "msra" } } }
layer { name: "norm" type: "BatchNorm" bottom: "b" top: "b" }
layer { name: "padded" type: "Convolution" bottom: "b" top: "c"
  convolution_param { num_output: 24 group: 2 kernel_size: 3 pad: 3 weight_filler { type: "msra" } } }
layer { name: "up" type: "Deconvolution" bottom: "c" top: "d"
  convolution_param { num_output: 24 group: 24 kernel_size: 16 stride: 8 pad: 4 weight_filler { type: "bilinear" } } }
layer { name: "ip" type: "InnerProduct" bottom: "c" top: "e"
  inner_product_param { num_output: 10 algorithm: PORTABLE weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "e" bottom: "label" top: "loss" }
layer { name: "area" type: "Reduction" bottom: "d" top: "area" loss_weight: 1e-4 reduction_param { operation: SUMSQ } }
NET
} >groups.prototxt

# The same bytes everywhere, which are not those of the default.
verify() { expect 0 'Verified' -- "$LOCKSTEP" verify --solver "$1" "${@:2}"; }
hash() { sed -nE 's/^ .* ([0-9a-f]{64})  .*/\1/p' log | sort -u; }
for net in lenet quick norms; do
    solver $net >$net.solver
    solver $net 'algorithm: PORTABLE' >portable_$net.solver
    verify portable_$net.solver --iterations 2 --workers 1,2,3 --isa "$sets"
    portable=$(hash)
    [ "$(wc -w <<<"$portable")" = 1 ] || fail "$net: instruction sets differ: $portable"
    verify portable_$net.solver --iterations 2 --workers 2 --ranks 1,2 --memory full,least --resume random:1
    [ "$(hash)" = "$portable" ] || fail "$net: forms differ"
    verify $net.solver --iterations 2 --workers 1,2
    [ "$(hash)" != "$portable" ] || fail "$net: PORTABLE computes what AUTO does"
    verify portable_$net.solver --iterations 2 --workers 1,2 --device reference
    [ "$(hash)" = "$portable" ] || fail "$net: the reference device has other bits"
    expect 0 '^Bits: any x86-64 computes the same$' -- "$LOCKSTEP" plan --solver portable_$net.solver --device reference
    expect 0 '^Bits: any x86-64 computes the same$' 'lockstep:portable:' '!Precision' -- "$LOCKSTEP" plan --solver portable_$net.solver
done
expect 0 '"any_processor": 1' -- "$LOCKSTEP" plan --solver portable_norms.solver --json
expect 0 '"any_processor": 0' -- "$LOCKSTEP" plan --solver norms.solver --json
expect 0 '!any x86-64' '^Bits: depend on oneDNN' -- "$LOCKSTEP" plan --solver norms.solver

# With AUTO, convolutions that oneDNN is bad at are computed so, too, with FMA: on any such set, in any form. But
# not on all processors, which a plan does not say then. Without FMA they are oneDNN's.
solver groups >groups.solver
verify groups.solver --iterations 2 --workers 1,2,3 --isa "$sets"
if [ "$sets" = sse41 ]; then
    expect 0 '^Bits: depend on oneDNN' -- "$LOCKSTEP" plan --solver groups.solver
else
    verify groups.solver --iterations 2 --workers 1,3 --isa "${sets#*,}"
    groups=$(hash)
    [ "$(wc -w <<<"$groups")" = 1 ] || fail "groups: instruction sets with FMA differ: $groups"
    verify groups.solver --iterations 2 --workers 2 --ranks 1,2 --memory full,least --balance static,dynamic --resume random:1
    [ "$(hash)" = "$groups" ] || fail "groups: forms differ"
    expect 0 '!SLOW' '!any x86-64' '^Bits: no step is oneDNN' 'lockstep:portable:' -- "$LOCKSTEP" plan --solver groups.solver
    expect 0 '"any_processor": 0' '"depends_on_onednn": 0' -- "$LOCKSTEP" plan --solver groups.solver --json
    verify groups.solver --iterations 2 --workers 1,2 --isa sse41
    [ "$(hash)" != "$groups" ] || fail "groups: oneDNN has another order"
fi

# No processor is part of its numeric environment: it goes on with another instruction set, without a word of it.
train() { expect 0 "${@:3}" -- "$LOCKSTEP" train --solver "$1" --overwrite --snapshot-prefix "$2" "${more[@]}"; }
more=(--iterations 3) && train portable_norms.solver all
for word in isa onednn cache; do
    ! grep -qaE "(\\\\n|\")$word=" all_iter_3.safetensors || fail "a snapshot names $word"
done
more=(--iterations 2 --isa sse41) && train portable_norms.solver part
more=(--iterations 3 --isa "${sets##*,}" --resume part_iter_2.safetensors) && train portable_norms.solver part '!numeric'
cmp part_iter_3.safetensors all_iter_3.safetensors || fail "a resume with another instruction set is another training"

more=(--iterations 2 --device reference) && train portable_norms.solver part
more=(--iterations 3 --resume part_iter_2.safetensors) && train portable_norms.solver part '!numeric'
cmp part_iter_3.safetensors all_iter_3.safetensors || fail "a resume from another device is another training"
# The devices lay weights out differently, and the norm of gradients is added up as they lie.
solver norms 'algorithm: PORTABLE clip_gradients: 0.5' >clipped.solver
more=(--iterations 2 --device reference) && train clipped.solver part
expect 8 'another numeric environment.*net' -- "$LOCKSTEP" train --solver clipped.solver --snapshot-prefix part \
    --resume part_iter_2.safetensors --iterations 3
verify norms.solver --iterations 2 --workers 1,2 --device reference
[ "$(hash)" != "$portable" ] || fail "the reference device makes all nets portable"

# It belongs to the definition.
grep -qa 'algorithm: PORTABLE' all_iter_3.safetensors || fail "a snapshot does not tell the algorithm"
more=(--iterations 1) && train norms.solver other
! grep -qa 'algorithm' other_iter_1.safetensors || fail "a training that says no algorithm tells one"
expect 5 'the snapshot was made with another algorithm: AUTO, now PORTABLE' -- "$LOCKSTEP" train \
    --solver portable_norms.solver --resume other_iter_1.safetensors --snapshot-prefix x --iterations 2

# Layers say their own: all that have products, or other ones than the solver.
sed -E 's/(convolution|inner_product)_param \{/& algorithm: PORTABLE/' norms.prototxt >layers.prototxt
solver layers >layers.solver
verify layers.solver --iterations 2 --workers 1,2
[ "$(hash)" = "$portable" ] || fail "layers that are PORTABLE compute something else"
sed 's/inner_product_param {/& algorithm: AUTO/' norms.prototxt >mixed.prototxt
solver mixed 'algorithm: PORTABLE' >mixed.solver
expect 0 '!any x86-64' 'halves .*lockstep:portable' '!ip .*lockstep:portable' -- "$LOCKSTEP" plan --solver mixed.solver
verify mixed.solver --iterations 2 --workers 1,3
[ "$(hash)" != "$portable" ] || fail "a layer does not override the solver"
solver norms 'algorithm: PORTABLE precision: BF16' >both.solver
solver norms 'precision: BF16' >bf16.solver
verify bf16.solver --iterations 2 --workers 1,2
bf16=$(hash)
verify both.solver --iterations 2 --workers 1,2
[ "$(hash)" = "$bf16" ] || fail "BF16 has other bits with PORTABLE"

# What there is not.
expect 3 'algorithm.*WINOGRAD|WINOGRAD.*algorithm' -- "$LOCKSTEP" plan --solver norms.solver --set algorithm=WINOGRAD
sed 's/inner_product_param {/& algorithm: DIRECT/' norms.prototxt >direct.prototxt
solver direct >direct.solver
expect 3 'direct.prototxt:[0-9]+' 'DIRECT' 'AUTO.*PORTABLE' -- "$LOCKSTEP" plan --solver direct.solver
sed '/"up"/,/}/s/convolution_param {/& algorithm: WINOGRAD/' norms.prototxt >winograd.prototxt
solver winograd 'algorithm: PORTABLE' >winograd.solver
expect 3 'winograd.prototxt:[0-9]+' 'up: a Deconvolution has no WINOGRAD' 'PORTABLE' -- "$LOCKSTEP" plan --solver winograd.solver
finish
