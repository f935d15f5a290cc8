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
expect 4 "none of the 7 classes of layer 'table'" -- "$LOCKSTEP" train --solver index_solver.prototxt --overwrite --snapshot-prefix i
finish
