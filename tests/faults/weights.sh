#!/bin/bash
# Weights and snapshots that are damaged, lie about their sizes or belong to another net; resuming
# a training that was changed, and finding the newest complete snapshot.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

small_solver 'snapshot_format: BINARYPROTO' >solver.prototxt
train 0
mkdir good
mv s_iter_* good
snapshot=good/s_iter_10.safetensors
last=good/s_iter_20.safetensors
caffemodel=good/s_iter_20.caffemodel
[ -s $snapshot ] && [ -s $caffemodel ] || fail "there are no weights to damage"
size=$(stat -c %s $snapshot)

# ---- Damage ---------------------------------------------------------------------------------------
# le64 NUMBER: the length at the beginning of a safetensors file.
le64() {
    local i value=$1
    for i in 1 2 3 4 5 6 7 8; do
        byte $((value & 255))
        value=$((value >> 8))
    done
}

# damaged TEXT COMMAND...: no one may take `w.safetensors` after the command.
damaged() {
    local text=$1
    shift
    cp $snapshot w.safetensors
    eval "$*"
    train 5 "^lockstep: w.safetensors: $text" '!Iteration' -- --resume w.safetensors
    train 5 "^lockstep: w.safetensors: $text" '!Iteration' -- --weights w.safetensors
    expect 5 "^lockstep: w.safetensors: $text" -- "$LOCKSTEP" test --model net.prototxt \
        --weights w.safetensors
}
for length in 0 1 7 8 9 100 $((size / 2)) $((size - 1)); do
    damaged '' "truncate -s $length w.safetensors"
done
damaged '' 'byte 0 >>w.safetensors'
damaged '' 'noise 4000 >w.safetensors'
for length in 0 1 2 100 4294967295 9223372036854775807 -1; do
    damaged '' "le64 $length | poke w.safetensors 0"
done
# A flipped bit, wherever it is.
for at in 8 20 300 1500 2500 $((size - 5000)) $((size - 2000)) $((size - 8)) $((size - 1)); do
    old=$(od -An -tu1 -j "$at" -N 1 $snapshot)
    damaged '' "byte $((old ^ 4)) | poke w.safetensors $at"
done
# A header that promises more than memory has, or places beyond the end.
header() {
    local text=$1
    le64 ${#text}
    printf '%s' "$text"
    noise 64
}
damaged '' "header '{\"conv.weight\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\
\"data_offsets\":[0,64]}}' >w.safetensors"
damaged '' "header '{\"conv.weight\":{\"dtype\":\"F32\",\"shape\":[-16],\
\"data_offsets\":[0,64]}}' >w.safetensors"
damaged '' "header '{\"conv.weight\":{\"dtype\":\"F32\",\"shape\":[16],\
\"data_offsets\":[18446744073709551600,64]}}' >w.safetensors"
damaged '' "header '{\"conv.weight\":{\"dtype\":\"F32\",\"shape\":[1e30],\
\"data_offsets\":[0,64]}}' >w.safetensors"
damaged '' "header '{\"conv.weight\":{\"dtype\":\"X9\",\"shape\":[16],\
\"data_offsets\":[0,64]}}' >w.safetensors"
damaged '' "header '{\"conv.weight\"' >w.safetensors"
damaged '' "header '$(head -c 20000 /dev/zero | tr '\0' '[')' >w.safetensors"

# Caffemodels have no checksum: what cannot be read is refused, and nothing crashes.
for length in 0 1 50 1000 2000; do
    head -c $length $caffemodel >w.caffemodel
    expect 5 '^lockstep: w.caffemodel: ' -- "$LOCKSTEP" test --model net.prototxt \
        --weights w.caffemodel
done
for at in 0 1 2 8 30 60 90 120 150 200 400; do
    for value in 0 255 128; do
        cp $caffemodel w.caffemodel
        byte $value $value $value | poke w.caffemodel $at
        timeout 60 "$LOCKSTEP" test --model net.prototxt --weights w.caffemodel >log 2>&1
        status=$?
        [ $status = 0 ] || [ $status = 5 ] || fail "caffemodel, byte $at: status $status"
        check_output "caffemodel, byte $at"
    done
done

# ---- Weights of another net -----------------------------------------------------------------------
small_net | sed 's/num_output: 10/num_output: 12/' >twelve.prototxt
for file in $snapshot $caffemodel; do
    expect 5 "^lockstep: $file: .*ip.*10.*12|^lockstep: $file: .*ip.*12.*10" -- "$LOCKSTEP" train --overwrite \
        --solver solver.prototxt --set net=twelve.prototxt --weights $file
    expect 5 "^lockstep: $file: .*ip" -- "$LOCKSTEP" test --model twelve.prototxt --weights $file
    small_net | sed 's/name: "ip"/name: "ip2"/' >other.prototxt
    # Fine-tuning: a layer of another name and shape is trained from scratch; one of the same shape is
    # either meant to have the old weights, or that is said. A test of such weights means nothing.
    tune=("$LOCKSTEP" train --overwrite --solver solver.prototxt --weights "$file" --snapshot-prefix other --set
        net=other.prototxt)
    expect 5 "$file: 'ip2.weight' would stay random, although 'ip.weight' of its shape.*call the layer 'ip'.*--partial-weights" \
        '!Iteration' -- "${tune[@]}"
    expect 0 "$file: 2 of 4 tensors taken; not taken: 'ip.weight', 'ip.bias'" \
        "$file: not in the file.*'ip2.weight' .random., 'ip2.bias'$" "!is taken by" -- "${tune[@]}" --partial-weights
    expect 0 "$file: 'conv.weight' .* is taken by 'conv.weight'" "$file: 'ip.bias' .* is not taken" \
        "'ip2.bias' is in no file" -- "${tune[@]}" --set partial_weights=true --verbose
    expect 5 "$file: has no weights of these layers of the net: 'ip2'" '!Test net' -- "$LOCKSTEP" test \
        --model other.prototxt --weights $file
    small_net | sed 's/name: "ip"/name: "ip2"/; s/num_output: 10/num_output: 12/' >other.prototxt
    expect 0 "2 of 4 tensors taken" "not in the file.*'ip2.weight'" -- "${tune[@]}"
    small_net | sed 's/name: "ip"/name: "ip2"/; s/name: "conv"/name: "conv2"/' >other.prototxt
    expect 5 "$file: no layer of the file is a layer of the net" -- "$LOCKSTEP" train --overwrite --solver \
        solver.prototxt --set net=other.prototxt --weights $file
done
expect 0 "$snapshot: 4 of 4 tensors taken" '!not taken' -- "$LOCKSTEP" test --model net.prototxt --weights $snapshot
# Names that begin with what PyTorch's DataParallel puts there.
echo 'map { from: "module.{x}.weight" to: "{x}.weight" } map { from: "module.{x}.bias" to: "{x}.bias" }' >module.map
expect 0 '' -- "$LOCKSTEP" convert-weights --map module.map $snapshot module.safetensors
train 5 "module.safetensors: no layer of the file.*hint: PyTorch's DataParallel puts 'module.'" -- --weights module.safetensors
train 0 "module.safetensors: 4 of 4 tensors taken" -- --weights module.safetensors --map module.map
train 5 "^lockstep: $caffemodel: is no safetensors file. hint: .*--weights" -- --resume $caffemodel
train 5 "^lockstep: net.prototxt: is no safetensors file, or" -- --resume net.prototxt
expect 0 '^The same weights: 4 tensors' -- "$LOCKSTEP" diff $caffemodel $caffemodel
train 5 "',' has an empty file name" -- --weights ,
train 5 "has an empty file name" -- --weights "$snapshot,"
train 5 "^lockstep: none: cannot open" -- --weights "$snapshot,none"
expect 5 "" -- "$LOCKSTEP" predict --model net.prototxt --weights none picture.png

# ---- Resuming what was changed --------------------------------------------------------------------
resume=(--resume $snapshot --snapshot-prefix r)
train 0 'Resuming from good/s_iter_10.safetensors, iteration 10' -- "${resume[@]}"
cmp -s r_iter_20.safetensors $last || fail "a resumed run has other bytes"
allowed() {
    train 0 "Resume changes $1" 'Optimization Done' -- "${resume[@]}" --set "$2"
}
allowed 'base_lr: 0.01 -> 0.02' base_lr=0.02
allowed 'max_iter: 20 -> 15' max_iter=15
allowed 'display: .* -> 7' display=7
allowed 'snapshot: 10 -> 5' snapshot=5
allowed 'lr_policy: "fixed" -> "poly"' 'lr_policy="poly" power: 1'
refused() {
    train 5 "^lockstep: $snapshot: the snapshot was made with another $1.*hint: .*--weights" \
        '!Iteration' -- "${resume[@]}" "${@:2}"
}
refused 'random_seed: 3, now 4' --set random_seed=4
refused 'micro_batch' --set micro_batch=4
refused 'momentum' --set momentum=0.8
refused 'type' --set 'type="Nesterov"'
refused 'iter_size' --set iter_size=2
refused '.*weight_decay' --set weight_decay=0.1
small_net | sed 's/batch_size: 16/batch_size: 8/' >other.prototxt
refused '.*batch_size.*16, now 8' --set net=other.prototxt
grep -q micro_batch log && fail 'a micro-batch that follows from the batch is named'
small_net | sed 's/kernel_size: 2/kernel_size: 3/' >other.prototxt
refused '.*kernel_size: .2., now .3.' --set net=other.prototxt
small_net | sed 's/name: "ip"/name: "ip2"/' >other.prototxt
refused '.*ip' --set net=other.prototxt
small_net | sed 's/count: 300/count: 301/' >other.prototxt
refused '.*count' --set net=other.prototxt
# Other data under the same name.
idx_images 60 12 >images
idx_labels 60 >labels
small_net "backend: IDX source: 'images' label_source: 'labels'" >net.prototxt
train 0 -- --snapshot-prefix i --set base_lr=0.00001
idx_images 61 12 >images
idx_labels 61 >labels
train 5 'i_iter_10.safetensors: the snapshot was trained on other data' '!Iteration' -- \
    --resume i_iter_10.safetensors --snapshot-prefix i --set base_lr=0.00001
small_net >net.prototxt

# ---- auto -----------------------------------------------------------------------------------------
rm -f ./*.safetensors
train 0 'No snapshot s_iter_\*.safetensors to resume from: starting afresh' -- --resume auto
cmp -s s_iter_20.safetensors $last || fail "a run that started afresh has other bytes"
rm s_iter_20.safetensors
train 0 'Resuming from s_iter_10.safetensors, iteration 10' -- --resume auto
cmp -s s_iter_20.safetensors $last || fail "a resumed run has other bytes"
truncate -s 3000 s_iter_20.safetensors
cp s_iter_10.safetensors s_iter_17.safetensors
noise 3000 >s_iter_19.safetensors
mkdir s_iter_18.safetensors
: >s_iter_16.safetensors
touch s_iter_.safetensors s_iter_x.safetensors s_iter_010.safetensors \
    s_iter_99999999999999999999.safetensors .s_iter_30.safetensors.1.0.tmp
train 0 'warning: skipping s_iter_20.safetensors: ' 'warning: skipping s_iter_19.safetensors: ' \
    'warning: skipping s_iter_18.safetensors: is a directory' \
    'warning: skipping s_iter_17.safetensors: is a snapshot of iteration 10' \
    'warning: skipping s_iter_16.safetensors: ' \
    'Resuming from s_iter_10.safetensors, iteration 10' -- --resume auto
cmp -s s_iter_20.safetensors $last || fail "a run resumed past damaged files has other bytes"
truncate -s 3000 s_iter_10.safetensors
truncate -s 3000 s_iter_20.safetensors
train 0 'skipping s_iter_10.safetensors' 'starting afresh' -- --resume auto
cmp -s s_iter_20.safetensors $last || fail "a run that started afresh has other bytes"
# auto does not pass over a whole snapshot of another training.
train 5 's_iter_20.safetensors: the snapshot was made with another random_seed.*--weights s_iter_20' '!nevertheless' -- --resume auto \
    --set random_seed=9
# ---- Names of blobs -------------------------------------------------------------------------------
# Weights of every layer type are found by their names: nothing keeps what its filler says.
small_solver 'max_iter: 2 snapshot: 2' | sed '/^max_iter: 20/d; /^snapshot: 10/d' >solver.prototxt
rnn() {
    cat <<TEXT
layer { name: "d" type: "DummyData" top: "data" top: "cont" top: "label" top: "still"
  dummy_data_param { shape { dim: 5 dim: 8 dim: 6 } shape { dim: 5 dim: 8 } shape { dim: 5 dim: 8 }
    shape { dim: 8 dim: 3 } data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 }
    data_filler { type: "constant" value: 1 } data_filler { type: "gaussian" } } }
layer { name: "r" type: "$1" bottom: "data" bottom: "cont" bottom: "still" top: "h"
  recurrent_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "h" top: "ip"
  inner_product_param { num_output: 3 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
  softmax_param { axis: 2 } }
TEXT
}
for type in LSTM RNN GRU; do
    rnn $type >net.prototxt
    train 0
    mv s_iter_2.safetensors recurrent.safetensors
    train 0 '!not in the file' '!ignored' -- --weights recurrent.safetensors
    expect 0 -- "$LOCKSTEP" prune --weights recurrent.safetensors --sparsity 0.5 -o mask.safetensors
    train 0 'masked' -- --weights recurrent.safetensors --set mask=mask.safetensors
done
# An option for weights, without weights.
train 2 'weights may be partial, but there are none to start from' '!Iteration' -- --partial-weights
finish
