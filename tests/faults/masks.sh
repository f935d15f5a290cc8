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
finish
