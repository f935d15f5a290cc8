#!/bin/bash
# Batch statistics and their fields with values out of range: each problem is reported with its
# place before anything is trained; weights with impossible averages are refused; a resume keeps
# its groups.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# norm_net [BATCH_NORM [BEHIND [LOSS]]]: the small net with batch norm behind its convolution, then
# layers from "norm" to "act", and what stands in loss_param.
norm_net() {
    local behind='layer { name: "act" type: "ReLU" bottom: "norm" top: "act" }'
    small_net | sed "/name: \"pool\"/i\\
  name: \"norm\" type: \"BatchNorm\" bottom: \"conv\" top: \"norm\" batch_norm_param { ${1:-} }\\
}\\
${2:-$behind}\\
layer {" | sed "s/bottom: \"conv\" top: \"pool\"/bottom: \"act\" top: \"pool\"/
        s/top: \"loss\" }/top: \"loss\" loss_param { ${3:-} } }/"
}
at='^lockstep: net.prototxt:[0-9]+:[0-9]+: '

# refused TEXT [BATCH_NORM [BEHIND [LOSS]]]: such a net is not trained.
refused() {
    local text=$1
    shift
    norm_net "$@" >net.prototxt
    train 3 "$at$text" '!Iteration' '!nan \(\*'
}
# behind TYPE FIELDS: a layer from "norm" to "act".
behind() {
    echo "layer { name: \"q\" type: \"$1\" bottom: \"norm\" top: \"act\" $2 }"
}
norm_net >net.prototxt
train 0 'Optimization Done' '!nan'

# ---- Batch norm -------------------------------------------------------------------------------------
for eps in nan inf -1 0; do
    refused 'norm: eps [-a-z0-9]+ must be a number above 0.*hint: 1e-5 is usual' "eps: $eps"
done
for kept in nan -0.1 1.5; do
    refused 'norm: moving_average_fraction [-a-z0-9.]+ must be from 0 to 1' \
        "moving_average_fraction: $kept"
done
refused "the value -1 of field 'group' is out of range" 'group: -1'
refused 'norm: group 4294967295 is more samples than a batch may have' 'group: 4294967295'
refused 'norm: scale filler: .*std nan' 'scale_filler { type: "gaussian" std: nan }'
refused 'norm: there is nothing to fill without scale_bias' 'scale_bias: false bias_filler { }'
refused 'norm: normalises by saved averages, but there are none.*--weights' 'use_global_stats: true'
refused 'q: normalises by saved averages, but there are none.*--weights' '' \
    "$(behind BN 'bn_param { frozen: true }')"
refused 'q: slope_filler belongs to the form of BN that keeps averages' '' \
    "$(behind BN 'bn_param { scale_filler { } slope_filler { } }')"
refused 'q: eps has no effect with bn_mode: INFERENCE' '' \
    "$(behind BN 'bn_param { bn_mode: INFERENCE eps: 1 }')"

# ---- Parameters that are shared ---------------------------------------------------------------------
share() {
    norm_net '' "$(behind "$2" "$3")" | sed 's/top: "norm" batch/top: "norm" '"$1"' batch/' \
        >net.prototxt
}
all='param { name: "m" } param { name: "v" } param { name: "f" }'
share "$all" BatchNorm "$all"
train 0 'Optimization Done' '!nan'
share 'param { name: "m" }' BatchNorm 'param { name: "m" }'
train 3 "${at}q: shares some of its moving averages with another layer, but its variance with" \
    '!Iteration'
share 'param { name: "m" } param { name: "v" }' BatchNorm 'param { name: "v" } param { name: "m" }'
train 3 "${at}q: shares 'norm.variance' of layer 'norm'.* for its mean" '!Iteration'
share 'param { name: "m" }' Bias 'param { name: "m" }'
train 3 "${at}q: shares 'norm.mean' of layer 'norm', which is a moving average, for its bias, which \
is learned" '!Iteration'
share 'param { name: "m" } param { name: "m" }' ReLU ''
train 3 "${at}norm: shares 'norm.mean' of layer 'norm'.* for its variance" '!Iteration'

# ---- Other layers -----------------------------------------------------------------------------------
while read -r type text fields; do
    refused "q: ${text//_/.}" '' "$(behind "$type" "$fields")"
done <<'LAYERS'
Scale num_axes_4_.*beyond_the_axes_of_'norm' scale_param { num_axes: 4 }
Bias the_axes_of_'label' bottom: "label" bias_param { axis: 1 }
GroupNorm the_4_channels.*into_3_groups group_norm_param { groups: 3 }
GroupNorm groups_must_be_at_least_1 group_norm_param { groups: 0 }
LayerNorm axis_0_.*runs_over_the_samples layer_norm_param { axis: 0 }
MVN eps_nan mvn_param { eps: nan }
InstanceNorm scale_filler_is_for_affine instance_norm_param { scale_filler { } }
Deconvolution the_top_would_have_-?[0-9]+_positions convolution_param { num_output: 4 kernel_size: 3 pad: 9 }
Deconvolution the_top_would_be_ convolution_param { num_output: 4 kernel_size: 3 stride: 2147483647 }
Interp height_0_is_out_of_range interp_param { height: 0 width: 3 }
Interp the_size_of_the_top_is_given_twice interp_param { height: 3 width: 3 zoom_factor: 2 }
Crop 10_positions_from_1_on crop_param { offset: 1 } bottom: "conv"
Reshape an_extent_of_-1_can_be_given_only_once reshape_param { shape { dim: -1 dim: -1 } }
Reshape .*cannot_be_made reshape_param { shape { dim: 0 dim: 7 } }
Reshape the_top_would_be reshape_param { shape { dim: 0 dim: 4611686018427387904 dim: 4 } }
Slice slice_points_must_increase slice_param { slice_point: 4 } top: "other"
Tile tiles_0_must_be_at_least_1 tile_param { tiles: 0 }
Reduction axis_7_is_out_of_range reduction_param { axis: 7 }
ArgMax top_k_5_must_be_1_to_4 argmax_param { axis: 1 top_k: 5 }
PReLU slope_filler.*nan prelu_param { filler { value: nan } }
Power power_must_be_a_finite_number power_param { power: nan }
Log with_scale_0 log_param { scale: 0 }
LAYERS

# What is refused of a tile along the samples is only what no longer fits behind it.
refused "loss: its bottoms must agree in axis 0, but 'ip' is 32 10" '' \
    "$(behind Tile 'tile_param { tiles: 2 axis: 0 }')"

# ---- Losses -----------------------------------------------------------------------------------------
ten() {
    local i
    for ((i = 0; i < 10; i++)); do printf 'class_weight: %s ' "$1"; done
}
for smoothing in 1 -0.1 nan; do
    refused "loss: label_smoothing $smoothing must be at least 0 and below 1" '' '' \
        "label_smoothing: $smoothing"
done
refused 'loss: class_weight must be given once for each of the 10 classes' '' '' 'class_weight: 1'
refused 'loss: class_weight must be finite.*class 0 is nan' '' '' "$(ten nan)"
refused 'loss: normalization: WEIGHTS divides by class weights' '' '' 'normalization: WEIGHTS'
norm_net '' '' "$(ten 0) normalization: WEIGHTS" >net.prototxt
train 0 'loss = 0 ' '!nan' -- --set display=10

# ---- Micro-batches of whole groups ------------------------------------------------------------------
# follows TEXT [BATCH_NORM [BEHIND]]
follows() {
    local text=$1
    shift
    norm_net "$@" >net.prototxt
    train 3 "^lockstep: solver.prototxt:[0-9]+:[0-9]+: follow_groups: $text" '!Iteration'
}
small_solver 'follow_groups: true' >solver.prototxt
follows "the group of layer 'norm' is the whole batch, which would be one micro-batch"
follows "the net's layers have groups of different sizes: layer 'norm' has groups of 3, layer \
'q' has groups of 4. hint: give them all the same group" 'group: 3' \
    "$(behind BatchNorm 'batch_norm_param { group: 4 }')"
small_net >net.prototxt
train 3 'solver.prototxt:[0-9]+:[0-9]+: follow_groups: no layer of the train net normalises'
norm_net 'group: 5' >net.prototxt
train 0 'Optimization Done' '!nan'

# ---- A training goes on as it was -------------------------------------------------------------------
small_solver >solver.prototxt
norm_net >net.prototxt
train 0
for change in 'group: 4' 'eps: 0.001' 'moving_average_fraction: 0.5' 'scale_bias: true'; do
    norm_net "$change" >net.prototxt
    train 5 "s_iter_10.safetensors: the snapshot was made with another layer 'norm': \
batch_norm_param.${change%%:*}: .*hint: .*--weights" '!Iteration' -- --resume s_iter_10.safetensors
done

cp s_iter_10.safetensors base.safetensors

# ---- Weights ----------------------------------------------------------------------------------------
number() { # VALUE: as four bytes
    case $1 in
    0) byte 0 0 0 0 ;;
    1) byte 0 0 128 63 ;;
    -1) byte 0 0 128 191 ;;
    nan) byte 0 0 192 127 ;;
    inf) byte 0 0 128 127 ;;
    esac
}
# weights MEAN VARIANCE FACTOR: a file of averages, the first of four channels with these numbers.
weights() {
    local value
    local text='{"norm.mean":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"norm.variance":{'
    text+='"dtype":"F32","shape":[4],"data_offsets":[16,32]},"norm.factor":{"dtype":"F32","shape":'
    text+='[1],"data_offsets":[32,36]}}'
    byte ${#text} 0 0 0 0 0 0 0
    printf '%s' "$text"
    for value in "$1" 1 0 0 "$2" 1 1 1 "$3"; do
        number "$value"
    done
}
# with STATUS TEXT MEAN VARIANCE FACTOR: such averages, in a test and in a training that uses them.
with() {
    norm_net >net.prototxt
    weights "$3" "$4" "$5" >w.safetensors
    expect "$1" "$2" '!nan' -- "$LOCKSTEP" test --model net.prototxt \
        --weights base.safetensors,w.safetensors
    norm_net 'use_global_stats: true' >net.prototxt
    train "$1" "$2" '!nan \(\*' -- --weights w.safetensors
}
with 0 '' 1 1 1
with 0 '' 1 0 1
with 3 "${at}norm: normalises by saved averages, but there are none" 0 0 0
damaged="^lockstep: w.safetensors: blob [0-2] \((mean|variance|factor)\) of layer 'norm': element 0 is"
for bad in 'inf 1 1' '1 -1 1' '1 inf 1' '1 1 -1' '1 1 inf'; do
    # shellcheck disable=SC2086
    with 5 "$damaged" $bad
done
norm_net >net.prototxt
weights 1 nan 1 >w.safetensors
expect 5 "$damaged nan, which is no finite number" -- "$LOCKSTEP" test --model net.prototxt \
    --weights base.safetensors,w.safetensors
# A file that has the other layers only.
small_net >net.prototxt
train 0 -- --snapshot-prefix other
norm_net >net.prototxt
expect 5 "other_iter_20.safetensors: has no weights of these layers of the net: 'norm'" -- "$LOCKSTEP" test \
    --model net.prototxt --weights other_iter_20.safetensors
finish
