#!/bin/bash
# Groups of parameters: which parameter has which settings; the same bytes on any number of workers
# and ranks and after resumes, with several rules in one training; what a resume refuses; groups that
# match nothing.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

sed '/momentum/d; s/base_lr: 0.01/base_lr: 0.002/; s/snapshot: 10/snapshot: 4/; s/max_iter: 20/max_iter: 12/' \
    solver.prototxt >base.prototxt

# make TEXT...: a solver of the base and lines.
make() {
    cp base.prototxt solver.prototxt
    printf '%s\n' "$@" >>solver.prototxt
}

# same TEXT...: trainings of such a solver in many forms have the same bytes; in more forms with
# LOCKSTEP_ALL=1.
workers=1,3 ranks=1,3
[ -z "${LOCKSTEP_ALL:-}" ] || workers=1,2,3,5 ranks=1,2,3
same() {
    make "$@"
    expect 0 'compute the same bytes' -- "$LOCKSTEP" verify --solver solver.prototxt --workers $workers \
        --ranks $ranks --memory full,least --resume random:2
}

groups='param_group { name: "vectors" max_axes: 1 type: "AdamW" momentum: 0.8 decay_mult: 0 }
param_group { match: "ip.*" type: "SGD" base_lr: 0.008 momentum: 0.5 weight_decay: 0.001 }'
rest='momentum: 0.9 momentum2: 0.98 weight_decay: 0.1 clip_gradients: 0.5 iter_size: 2'
for type in Lion LAMB Muon Adafactor Adam AdaDelta; do
    same "type: '$type' $rest weight_average { decay: 0.9 }" "$groups"
done

# Adafactor without momentum, with settings of a group.
same "type: 'Adafactor' weight_decay: 0.01" 'param_group { match: "ip.*" momentum: 0.9
  adafactor_param { relative_step: false scale_parameter: false } }'
train 0 --
train 5 'another momentum: unset, now 0.5' -- --resume s_iter_4.safetensors --set momentum=0.5
sed -i 's/relative_step: false/clip: 2/' solver.prototxt
train 5 'adafactor_param' -- --resume s_iter_4.safetensors

# Muon's own settings in a group; and it is for matrices alone.
same "type: 'Muon' $rest" 'param_group { max_axes: 1 type: "AdamW" momentum: 0.8 }
param_group { match: "ip.*" muon_param { nesterov: false scale: MATCH_RMS newton_schulz: 4 } }'
make "type: 'Muon' momentum: 0.95"
train 3 "solver.prototxt:[0-9]+:[0-9]+: Muon is for weights of two axes or more, but 'conv.bias' has 1. hint: give such parameters another type: param_group . max_axes: 1 type: .AdamW. momentum: 0.9" --
expect 3 "Muon is for weights of two axes or more" -- "$LOCKSTEP" plan --solver solver.prototxt
make "momentum: 0.9" "param_group { match: 'ip.*' type: 'Muon' }"
train 3 "but 'ip.bias' has 1" --
make "type: 'Muon' momentum: 0.95" "param_group { match: '*.bias' lr_mult: 2 }" # no type of its own
train 3 "but 'conv.bias' has 1" --
make "type: 'Muon' momentum: 0.95" "param_group { match: '*.bias' lr_mult: 0 type: 'SGD' }"
train 0 '^|' --
sed -i 's/0.95/0.95 muon_param { newton_schulz: 3 }/' solver.prototxt
train 5 'muon_param' -- --resume s_iter_4.safetensors

make "type: 'LAMB' $rest" "$groups"
expect 0 '^conv.weight +the rest +LAMB +1 +0.1$' '^conv.bias +vectors +AdamW +1 +0$' \
    '^ip.weight +group 2 +SGD +4 +0.001$' '^ip.bias +vectors +AdamW' -- "$LOCKSTEP" plan --solver solver.prototxt
expect 0 '"name": ?"ip.weight", ?"group": ?"group 2", ?"type": ?"SGD", ?"rate": ?4' -- bash -c \
    "'$LOCKSTEP' plan --solver solver.prototxt --json | tr -d '\n' | tr -s ' '"
train 0 'Parameters of vectors: 2, by AdamW, rate x 1, weight decay 0' \
    'Parameters of the rest: 1, by LAMB' --
mv s_iter_12.safetensors whole.safetensors
train 0 'Resuming' -- --resume s_iter_4.safetensors
cmp whole.safetensors s_iter_12.safetensors || fail 'other bytes after a resume'

# A group belongs to the definition; its rate may change.
sed -i 's/momentum: 0.5/momentum: 0.6/' solver.prototxt
train 5 'another param_group\[1\].momentum: 0.5, now 0.6' -- --resume s_iter_4.safetensors
sed -i 's/momentum: 0.6/momentum: 0.5/; s/base_lr: 0.008/base_lr: 0.02/' solver.prototxt
train 0 'Resume changes param_group\[1\].base_lr: 0.008 -> 0.02' -- --resume s_iter_4.safetensors
cmp -s whole.safetensors s_iter_12.safetensors && fail 'the rate of a group changes nothing'

# A multiplier of 0 leaves weights as they are; those of layers multiply those of groups. LAMB moves
# a bias that begins with zeros, whose norm is 0, too.
make "type: 'LAMB' $rest" "param_group { match: 'conv.*' lr_mult: 0 }"
train 0 --
"$LOCKSTEP" diff s_iter_4.safetensors s_iter_12.safetensors >log 2>&1
check_output 'what a group without a rate learns' "!tensor 'conv" "tensor 'ip.weight'" "tensor 'ip.bias'"
sed 's/convolution_param/param { lr_mult: 2 decay_mult: 3 } convolution_param/' net.prototxt >n && mv n net.prototxt
make "momentum: 0.9 weight_decay: 0.01 param_group { match: 'conv.weight' lr_mult: 0.25 decay_mult: 0.5 }"
expect 0 '^conv.weight +group 1 +SGD +0.5 +0.015$' -- "$LOCKSTEP" plan --solver solver.prototxt

# Caffe has one rule for all parameters.
make "momentum: 0.9 snapshot_format: BINARYPROTO" "param_group { match: 'ip.*' type: 'Nesterov' }"
train 0 'Caffe has no groups of several types of solvers: its weights are written' --
[ -s s_iter_12.caffemodel ] || fail 'no weights for Caffe'
[ ! -e s_iter_12.solverstate ] || fail 'a state that no Caffe could read'
make "momentum: 0.9 snapshot_format: BINARYPROTO" "param_group { match: 'ip.*' lr_mult: 2 }"
train 0 '!Caffe has no' --
train 0 "Going on from Caffe's" -- --resume s_iter_4.solverstate
make "type: 'Lion' momentum: 0.9 momentum2: 0.99"
train 5 'Caffe has no Lion, so this is of another type of solver' -- --resume s_iter_4.solverstate

# Patterns that match nothing.
make "param_group { match: 'ip.wieght' }"
train 3 "solver.prototxt:[0-9]+:[0-9]+: param_group matches 'ip.wieght', but no parameter.*did you mean 'ip.weight'" --
make "param_group { match: '*.bias' match: 'nothing*' }"
train 3 "matches 'nothing\*', but no parameter has such a name. hint: names are like 'conv.weight'" --
make "param_group { max_axes: 0 }"
train 3 'no parameter has that many axes. hint: a bias has one axis' --
make "param_group { match: '*.bias' min_axes: 3 }"
train 3 'no parameter that this param_group matches has that many axes' --
make "param_group { match: '*' }" "param_group { match: 'ip.*' lr_mult: 2 }"
train 3 'all parameters that this param_group matches belong to groups before it. hint: put it before' --
expect 3 'belong to groups before it' -- "$LOCKSTEP" plan --solver solver.prototxt
finish
