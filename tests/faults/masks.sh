#!/bin/bash
# Masks from the outside: what a definition or a file of masks may not say, fine-tuning, resumes
# with other masks, ranks, and what train and plan tell.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

small_net >plain.prototxt
small_solver >solver.prototxt

# masked TEXT: the small net, with a mask of the inner product's weights.
masked() {
    sed "s/type: \"InnerProduct\"/& param { $1 }/" plain.prototxt >net.prototxt
    cmp -s plain.prototxt net.prototxt && fail "the net has no inner product"
}

# ---- Definitions ----------------------------------------------------------------------------------
masked 'mask { }'
train 3 'net.prototxt:[0-9]+:[0-9]+: ip: the mask of its weight masks nothing. hint: write slice'
masked 'mask { source: "" }'
train 3 'net.prototxt:[0-9]+:[0-9]+: ip: the mask of its weight masks nothing. hint: write slice'
masked 'mask { slice { } source: "m.safetensors" }'
train 3 'net.prototxt:[0-9]+:[0-9]+: ip: the mask of its weight has both slices and a file'
masked 'mask { slice { range { axis: 2 } } slice { range { begin: 4 end: 4 } range { axis: -1 end: 100000 } } }'
train 3 'ip: mask: there is no axis 2 in a parameter of shape' \
    'ip: mask: indices from 4 to 4 are none' \
    'ip: mask: .end. is 100000, but axis 1 of a parameter of shape'
masked 'mask { slice { range { begin: -1 } } }'
train 3 'ip: mask: indices from -1 to 10 are none'
masked 'mask { source: "nowhere.safetensors" }'
train 5 'nowhere.safetensors'

# Layers that share a parameter: the mask stands in the first, and may be repeated.
# shares FIRST SECOND: a net with two inner products that share their weights.
shares() {
    sed -e "s/type: \"InnerProduct\"/& param { name: \"w\" $1 }/" \
        -e 's/bottom: "ip" bottom: "label" top: "loss"/bottom: "two" bottom: "label" top: "loss"/' \
        plain.prototxt >net.prototxt
    echo "layer { name: \"two\" type: \"InnerProduct\" bottom: \"pool\" top: \"two\" param { name: \"w\" $2 }
  inner_product_param { num_output: 10 } }" >two
    sed -i -e '/name: "loss"/{' -e 'h' -e 'r two' -e 'd' -e '}' net.prototxt
    echo 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "two" bottom: "label" top: "loss" }' \
        >>net.prototxt
}
one='mask { slice { range { end: 3 } } }' same='mask { slice { range { axis: 0 begin: 0 end: 3 } } }'
shares "$one" "$same"
train 0 ', 300 masked'
shares "$one" ''
train 0 ', 300 masked'
shares "$one" 'mask { slice { range { end: 4 } } }'
train 3 "net.prototxt:[0-9]+:[0-9]+: two: parameter 'ip.weight' has another mask in layer 'ip'. hint: give it in the first"
shares '' "$one"
train 3 "net.prototxt:[0-9]+:[0-9]+: two: parameter 'ip.weight' has no mask in layer 'ip'"
shares "$one" 'mask { source: "m" }'
train 3 "two: parameter 'ip.weight' has another mask"

# ---- Trainings ------------------------------------------------------------------------------------
masked 'mask { slice { range { end: 3 } } }'
train 0 'Parameters: [0-9]+ learned, 0 fixed, [0-9]+ masked .zero.'
mv s_iter_20.safetensors masked.safetensors
mv s_iter_10.safetensors middle.safetensors
cp net.prototxt masked.prototxt

# Weights of a training without a mask: those that are masked become zero, so that a training from
# them ends as one from weights that have zeros there.
cp plain.prototxt net.prototxt
train 0 '!masked'
mv s_iter_20.safetensors whole.safetensors
cp masked.prototxt net.prototxt
train 0 -- --weights whole.safetensors
mv s_iter_20.safetensors tuned.safetensors
expect 8 'ip.weight' -- "$LOCKSTEP" diff whole.safetensors tuned.safetensors

# A resume goes on with the same mask, and with no other.
train 0 -- --resume middle.safetensors
cmp s_iter_20.safetensors masked.safetensors || fail "other bytes after a resume"
cp plain.prototxt net.prototxt
train 5 'middle.safetensors: the snapshot was made with another ' -- --resume middle.safetensors
masked 'mask { slice { range { end: 4 } } }'
train 5 'middle.safetensors: the snapshot was made with another ' -- --resume middle.safetensors

# ---- Pruning --------------------------------------------------------------------------------------
cp plain.prototxt net.prototxt
expect 0 'conv.weight +36 weights, +29 masked .80.56 %.' 'ip.weight +1000 weights, +800 masked' \
    'Wrote masks to mask.safetensors: 829 of 1036 weights stay zero .80.02 %.' -- "$LOCKSTEP" prune \
    --weights whole.safetensors --sparsity 0.8 -o mask.safetensors
train 0 'Parameters: 221 learned, 0 fixed, 829 masked .zero.' -- --set mask=mask.safetensors \
    --weights whole.safetensors
cp s_iter_20.safetensors pruned.safetensors
# Its zeros are the first that are pruned: the same mask again.
expect 0 '829 of 1036' -- "$LOCKSTEP" prune --weights pruned.safetensors --sparsity 0.8 -o again.safetensors
cmp mask.safetensors again.safetensors || fail "another mask of pruned weights"
expect 0 '' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 3 --set mask=again.safetensors \
    --weights whole.safetensors
cmp s_iter_20.safetensors pruned.safetensors || fail "other bytes on 3 workers"
expect 0 '^Weights: 221 learned; 829 masked .zero. of conv, ip; the backward pass ends at conv$' -- \
    "$LOCKSTEP" plan --solver solver.prototxt --set mask=mask.safetensors
expect 0 '"masked": 800' -- "$LOCKSTEP" plan --json --solver solver.prototxt --set mask=mask.safetensors
# Files of masks lie beside the definition, too.
mkdir elsewhere
masks_elsewhere() {
    expect 0 ", $1 masked" -- bash -c 'cd elsewhere && exec "$0" train --overwrite --snapshot-prefix . "$@"' \
        "$LOCKSTEP" --solver ../solver.prototxt "${@:2}"
}
masks_elsewhere 829 --set mask=mask.safetensors
masked 'mask { source: "mask.safetensors" }'
masks_elsewhere 800
cp plain.prototxt net.prototxt
expect 0 '^Wrote masks to mask.safetensors: 500 of 1000 ' -- "$LOCKSTEP" prune --weights whole.safetensors \
    --sparsity 0.5 --layers 'i*' --scope global -o mask.safetensors
expect 2 "no layer has a name like 'fc'" -- "$LOCKSTEP" prune --weights whole.safetensors \
    --sparsity 0.5 --layers fc -o mask.safetensors
sed 's/name: "ip"/name: "other"/' plain.prototxt >net.prototxt
train 5 "mask.safetensors: there is a mask 'ip.weight', but no parameter of this name" -- \
    --set mask=mask.safetensors
sed 's/num_output: 10/num_output: 11/' plain.prototxt >net.prototxt
train 5 "mask.safetensors: the mask 'ip.weight' has shape .*, but the parameter " -- \
    --set mask=mask.safetensors
cp masked.prototxt net.prototxt
train 5 "mask.safetensors: 'ip.weight' has a mask here and another one in its layer" -- \
    --set mask=mask.safetensors
cp plain.prototxt net.prototxt
train 5 "whole.safetensors: the mask 'conv.weight' has another number than 0 and 1" -- \
    --set mask=whole.safetensors
finish
