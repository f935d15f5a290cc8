#!/bin/bash
# Layers of Caffe and its forks that have no other test of whole trainings: the same bytes on any number of
# workers and ranks and after a resume, on the CPU and on the reference device.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

drawn() { # drawn BATCH SIDE
    printf 'layer { name: "drawn" type: "Data" top: "data" top: "label" transform_param { scale: 0.004 }
        data_param { backend: SYNTHETIC batch_size: %d synthetic_param { count: 100 height: %d width: %d } } }\n' "$1" "$2" "$2"
}
solver() { # solver NET [TEXT]
    printf 'net: "%s.prototxt" base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" max_iter: 4 display: 1 random_seed: 3 micro_batch: 2\n%s\n' \
        "$1" "${2:-}" >"$1_solver.prototxt"
}
# floats NUMBER...: as 32-bit numbers, of those with few bits
floats() {
    awk 'BEGIN { for (i = 1; i < ARGC; i++) { x = ARGV[i]; s = 0; e = 127; if (x == 0) { printf "\\000\\000\\000\\000"; continue }
        if (x < 0) { s = 128; x = -x } while (x >= 2) { x /= 2; e++ } while (x < 1) { x *= 2; e-- }
        m = (x - 1) * 8388608; printf "\\%03o\\%03o\\%03o\\%03o", m % 256, int(m / 256) % 256, int(m / 65536) % 128 + 128 * (e % 2), s + int(e / 2) } }' "$@"
}
# A BlobProto of 100 numbers: field 5, packed, 400 bytes.
blob() { printf '\052\220\003'; printf "$(floats "$@")"; }

# The losses of pairs and margins, and tables.
{
    drawn 10 8
    cat <<'NET'
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "x" inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "ip2" type: "InnerProduct" bottom: "data" top: "z" inner_product_param { num_output: 10 weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "table" type: "Embed" bottom: "label" top: "t" embed_param { num_output: 10 input_dim: 10 weight_filler { type: "uniform" } } }
layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "t" top: "y" }
layer { name: "flag" type: "Threshold" bottom: "label" top: "flag" threshold_param { threshold: 4 } }
layer { name: "hinge" type: "HingeLoss" bottom: "y" bottom: "label" top: "hinge" loss_weight: 0.1 hinge_loss_param { norm: L2 } }
layer { name: "near" type: "ContrastiveLoss" bottom: "x" bottom: "z" bottom: "flag" top: "near" contrastive_loss_param { margin: 3 } }
layer { name: "smooth" type: "SmoothL1Loss" bottom: "x" bottom: "z" top: "smooth" smooth_l1_loss_param { sigma: 2 } }
layer { name: "gain" type: "InfogainLoss" bottom: "y" bottom: "label" top: "gain" infogain_loss_param { source: "gains" } }
NET
} >pairs.prototxt
solver pairs
blob $(awk 'BEGIN { for (i = 0; i < 10; i++) for (k = 0; k < 10; k++) print i == k ? 1 + i / 8 : 0.0625 }') >gains
expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver pairs_solver.prototxt --workers 1,2,3,5 --ranks 1,2 \
    --iterations 4 --resume random:1
expect 0 -- "$LOCKSTEP" verify --solver pairs_solver.prototxt --device reference --workers 1,3 --iterations 3

# Layers that move or scale numbers, and draw them.
{
    drawn 10 8
    cat <<'NET'
layer { name: "conv" type: "Convolution" bottom: "data" top: "x" convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "each" type: "ConvolutionDepthwise" bottom: "x" top: "d" convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "norm" type: "CuDNNBatchNorm" bottom: "d" top: "d" }
layer { name: "relu" type: "ReLU6" bottom: "d" top: "r" }
layer { name: "shuffle" type: "ShuffleChannel" bottom: "r" top: "s" shuffle_channel_param { group: 2 } }
layer { name: "unit" type: "Normalize" bottom: "s" top: "u" norm_param { across_spatial: false channel_shared: false scale_filler { value: 5 } } }
layer { name: "pool" type: "Pooling" bottom: "x" top: "p" pooling_param { pool: AVE global_pooling: true } }
layer { name: "axpy" type: "Axpy" bottom: "p" bottom: "u" bottom: "x" top: "a" }
layer { name: "selu" type: "SeLu" bottom: "a" top: "a2" }
layer { name: "draw" type: "Pooling" bottom: "r" top: "drawn" pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 } }
layer { name: "squares" type: "Reorg" bottom: "a2" top: "q" reorg_param { stride: 2 } }
layer { name: "join" type: "Concat" bottom: "q" bottom: "drawn" top: "j" }
layer { name: "turn" type: "Permute" bottom: "j" top: "t" permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "columns" type: "Im2col" bottom: "t" top: "c" convolution_param { kernel_size: 3 stride: 2 } }
layer { name: "pyramid" type: "SPP" bottom: "j" top: "cells" spp_param { pyramid_height: 3 } }
layer { name: "ip" type: "InnerProduct" bottom: "c" top: "y1" inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "ip2" type: "InnerProduct" bottom: "cells" top: "y2" inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "y1" bottom: "y2" top: "y" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss" }
NET
} >moved.prototxt
solver moved
expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver moved_solver.prototxt --workers 1,2,3,5 --ranks 1,2 \
    --iterations 4 --resume random:1
solver moved 'precision: BF16'
expect 0 -- "$LOCKSTEP" verify --solver moved_solver.prototxt --workers 1,3 --iterations 3
expect 0 -- "$LOCKSTEP" verify --solver moved_solver.prototxt --device reference --workers 1,2 --iterations 2

# Boxes: matches are counted over the whole update.
{
    drawn 10 16
    cat <<'NET'
layer { name: "truths" type: "DummyData" top: "item" top: "low" top: "high" top: "rest"
  dummy_data_param {
    shape { dim: [10, 3, 3] } shape { dim: [10, 3, 2] } shape { dim: [10, 3, 2] } shape { dim: [10, 3, 1] }
    data_filler { value: 1 } data_filler { type: "uniform" min: 0 max: 0.6 }
    data_filler { type: "uniform" min: 0.3 max: 1 } data_filler { value: 0 }
  } }
layer { name: "truth" type: "Concat" bottom: "item" bottom: "low" bottom: "high" bottom: "rest" top: "truth" concat_param { axis: 2 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "x" convolution_param { num_output: 8 kernel_size: 3 stride: 2 weight_filler { type: "msra" } } }
layer { name: "unit" type: "Normalize" bottom: "x" top: "u" norm_param { across_spatial: false channel_shared: false scale_filler { value: 5 } } }
layer { name: "prior" type: "PriorBox" bottom: "u" bottom: "data" top: "prior" prior_box_param { min_size: 4 max_size: 8 aspect_ratio: 2 step: 2 variance: 0.1 } }
layer { name: "place" type: "Convolution" bottom: "u" top: "p" convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "score" type: "Convolution" bottom: "u" top: "s" convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "pt" type: "Permute" bottom: "p" top: "pt" permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "st" type: "Permute" bottom: "s" top: "st" permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "pf" type: "Flatten" bottom: "pt" top: "pf" }
layer { name: "sf" type: "Flatten" bottom: "st" top: "sf" }
layer { name: "silence" type: "Silence" bottom: "label" }
layer { name: "loss" type: "MultiBoxLoss" bottom: "pf" bottom: "sf" bottom: "prior" bottom: "truth" top: "loss"
  multibox_loss_param { num_classes: 2 code_type: CENTER_SIZE } }
NET
} >boxes.prototxt
solver boxes 'iter_size: 2'
expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver boxes_solver.prototxt --workers 1,2,3,5 --ranks 1,2 \
    --iterations 4 --resume random:1
expect 0 -- "$LOCKSTEP" verify --solver boxes_solver.prototxt --device reference --workers 1,3 --iterations 2
# Predictions decide on the matches, which are counted at a sync point.
for mode in 'mining_type: HARD_EXAMPLE sample_size: 9 nms_param { nms_threshold: 0.7 }' 'use_prior_for_matching: false bp_inside: true'; do
    sed "s/multibox_loss_param {/& $mode/" boxes.prototxt >mined.prototxt
    solver mined 'iter_size: 2'
    expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver mined_solver.prototxt --workers 1,2,3,5 --ranks 1,2 \
        --iterations 4 --resume random:1
    expect 0 -- "$LOCKSTEP" verify --solver mined_solver.prototxt --device reference --workers 1,3 --iterations 2
done
# A divisor that is given, here the samples of an update.
for divisor in 'BATCH_SIZE' 'PRE_FIXED pre_fixed_normalizer: 20' 'NONE'; do
    sed "s/multibox_loss_param/loss_param { normalization: $divisor } &/" boxes.prototxt >"${divisor%% *}.prototxt"
    solver "${divisor%% *}" 'iter_size: 2'
    expect 0 -- "$LOCKSTEP" train --solver "${divisor%% *}_solver.prototxt" --workers 2
    grep -oE 'Iteration [0-9]+, .*loss = [0-9.]+' log | grep -oE 'loss = [0-9.]+' >"${divisor%% *}.text"
done
expect 0 -- "$LOCKSTEP" diff BATCH_SIZE_solver_iter_4.safetensors PRE_FIXED_solver_iter_4.safetensors
expect 8 -- "$LOCKSTEP" diff BATCH_SIZE_solver_iter_4.safetensors NONE_solver_iter_4.safetensors
[ -s BATCH_SIZE.text ] && cmp -s BATCH_SIZE.text PRE_FIXED.text || fail "a given divisor: $(diff BATCH_SIZE.text PRE_FIXED.text | head)"
awk '/^layer/ { keep = !/"loss"|"truths?"/ } keep' boxes.prototxt >found.prototxt
cat >>found.prototxt <<'NET'
layer { name: "rows" type: "Reshape" bottom: "sf" top: "r" reshape_param { shape { dim: [0, -1, 2] } } }
layer { name: "prob" type: "Softmax" bottom: "r" top: "q" softmax_param { axis: 2 } }
layer { name: "qf" type: "Flatten" bottom: "q" top: "qf" }
layer { name: "found" type: "DetectionOutput" bottom: "pf" bottom: "qf" bottom: "prior" top: "found"
  detection_output_param { num_classes: 2 code_type: CENTER_SIZE keep_top_k: 3 nms_param { nms_threshold: 0.45 top_k: 9 }
    save_output_param { output_directory: "nowhere" } } }
NET
expect 0 'found' '10 x 1 x 3 x 7|10 1 3 7' -- "$LOCKSTEP" shapes --model found.prototxt

# Two large inner products that share their weights: neither gradient is exchanged as factors.
{
    drawn 10 32
    cat <<'NET'
layer { name: "bend" type: "TanH" bottom: "data" top: "b" }
layer { name: "one" type: "InnerProduct" bottom: "data" top: "x" param { name: "w" } param { name: "v" }
  inner_product_param { num_output: 1024 weight_filler { type: "xavier" } } }
layer { name: "two" type: "InnerProduct" bottom: "b" top: "z" param { name: "w" } param { name: "v" }
  inner_product_param { num_output: 1024 weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "z" top: "y" }
layer { name: "ip" type: "InnerProduct" bottom: "y" top: "s" inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "s" bottom: "label" top: "loss" }
NET
} >twice.prototxt
solver twice
expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver twice_solver.prototxt --workers 1,2,3,5 --ranks 1,2 --iterations 3

# Where all scores are equal, an infogain loss is the sum of the label's row times log 10.
{
    drawn 100 8
    cat <<'NET'
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "x" inner_product_param { num_output: 10 } param { lr_mult: 0 } }
layer { name: "gain" type: "InfogainLoss" bottom: "x" bottom: "label" top: "gain" infogain_loss_param { source: "rows" } }
layer { name: "soft" type: "SoftmaxWithLoss" bottom: "x" bottom: "label" top: "soft" loss_weight: 0 }
NET
} >equal.prototxt
solver equal
blob $(awk 'BEGIN { for (i = 0; i < 10; i++) for (k = 0; k < 10; k++) print k == 3 ? 2 : 0 }') >rows
expect 0 'gain = 4\.6051' 'soft = 2\.3025' -- "$LOCKSTEP" train --solver equal_solver.prototxt --overwrite --snapshot-prefix e --iterations 1
mkdir elsewhere
expect 0 -- bash -c 'cd elsewhere && exec "$0" plan --solver ../equal_solver.prototxt' "$LOCKSTEP"
printf '\052\004\000\000\000\000' >rows
expect 3 "the matrix in 'rows' has 1 numbers, but 10 classes need 100" -- "$LOCKSTEP" plan --solver equal_solver.prototxt
printf 'no message' >rows
expect 3 "'rows' is not a BlobProto in binary form" -- "$LOCKSTEP" plan --solver equal_solver.prototxt
rm rows
expect 3 "'rows': cannot open" 'equal.prototxt:[0-9]+:[0-9]+' -- "$LOCKSTEP" plan --solver equal_solver.prototxt

# An index that is none names the sample and the layer.
{
    drawn 10 8
    cat <<'NET'
layer { name: "table" type: "Embed" bottom: "label" top: "t" embed_param { num_output: 10 input_dim: 7 weight_filler { type: "uniform" } } }
layer { name: "soft" type: "SoftmaxWithLoss" bottom: "t" bottom: "label" top: "soft" }
NET
} >index.prototxt
solver index
expect 4 "none of the 7 rows of layer 'table'" -- "$LOCKSTEP" train --solver index_solver.prototxt --overwrite --snapshot-prefix i
expect 4 "its number 9 is none of the 7 rows of layer 'table'" -- "$LOCKSTEP" check --solver index_solver.prototxt
{
    drawn 10 8
    cat <<'NET'
layer { name: "list" type: "Reshape" bottom: "label" top: "list" reshape_param { shape { dim: 0 dim: 1 } } }
layer { name: "bag" type: "EmbeddingBag" bottom: "list" top: "t" embedding_bag_param { num_output: 10 input_dim: 7 } }
layer { name: "soft" type: "SoftmaxWithLoss" bottom: "t" bottom: "label" top: "soft" }
NET
} >bag.prototxt
solver bag
expect 4 "none of the 7 rows of layer 'bag'.*padding_index" -- "$LOCKSTEP" train --solver bag_solver.prototxt --overwrite --snapshot-prefix i
finish
