#!/bin/bash
# Language models: tables that are tied to the scores, and losses that hold no scores. The same bytes on any
# number of workers and ranks, with any limit on memory, after a resume; what ends a training says where it is.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# words FILE COUNT LENGTH BELOW SALT: an IDX file of bytes, COUNT samples of 1 x LENGTH x 1.
words() {
    awk -v n="$2" -v t="$3" -v below="$4" -v salt="$5" 'BEGIN {
        printf "\\0\\0\\010\\004\\0\\0\\0\\%03o\\0\\0\\0\\001\\0\\0\\0\\%03o\\0\\0\\0\\001", n, t
        for (i = 0; i < n * t; i++) printf "\\%03o", (i * 37 + int(i / 7) * salt + salt) % below }' >words.text
    printf "$(cat words.text)" >"$1"
}
data() { # data TOP FILE BATCH
    printf 'layer { name: "%s" type: "Data" top: "%s" data_param { backend: IDX source: "%s" batch_size: %d } }\n' "$1" "$1" "$2" "$3"
}
solver() { # solver NET TEXT
    printf 'net: "%s.prototxt" base_lr: 0.1 momentum: 0.9 lr_policy: "fixed" max_iter: 4 display: 1 random_seed: 3\n%s\n' \
        "$1" "$2" >"$1_solver.prototxt"
}
# model CLASSES INPUTS HEAD: from words to the loss
model() {
    cat <<NET
layer { name: "table" type: "Embed" bottom: "word" top: "x" param { name: "w" }
  embed_param { num_output: $2 input_dim: $1 bias_term: false weight_filler { type: "gaussian" std: 0.05 } } }
layer { name: "mix" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { axis: 4 num_output: $2 weight_filler { type: "xavier" } } }
layer { name: "act" type: "TanH" bottom: "y" top: "y" }
layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "y" top: "h" }
$3
NET
}
fused() { # fused CLASSES [TEXT]
    printf 'layer { name: "scores" type: "LinearSoftmaxLoss" bottom: "h" bottom: "next" top: "loss" param { name: "w" }
  linear_softmax_loss_param { num_output: %d %s } loss_param { ignore_label: 3 } }\n' "$1" "${2:-}"
}
losses() { grep -oE '#0: loss = [0-9]+\.[0-9]{3}' log; }

words w.idx 60 9 250 11
words n.idx 60 9 250 29

# Small: rows are those of the table, exponents are the rows'.
{ data word w.idx 20; data next n.idx 20; model 301 113 "$(fused 301)"; } >small.prototxt
solver small 'micro_batch: 3 iter_size: 2 weight_decay: 0.001'
expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver small_solver.prototxt --workers 1,2,3,5 --ranks 1,2,3 \
    --memory full,least --iterations 3 --resume random:1
solver small 'micro_batch: 3 precision: BF16 clip_gradients: 1'
expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver small_solver.prototxt --workers 1,3 --ranks 1,2 --iterations 3 --isa avx2,sse41
solver small 'micro_batch: 3 algorithm: PORTABLE type: "Adam" base_lr: 0.001'
sed -i 's/base_lr: 0.1 //' small_solver.prototxt
expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver small_solver.prototxt --workers 1,3 --ranks 1,2 --iterations 3
expect 0 -- "$LOCKSTEP" train --solver small_solver.prototxt --device reference --workers 2
mv small_solver_iter_4.safetensors reference.safetensors
expect 0 -- "$LOCKSTEP" train --solver small_solver.prototxt --workers 3
cmp -s small_solver_iter_4.safetensors reference.safetensors || fail "the reference device gives other bits"

# Large: more than 8 MiB of weights, micro-batches of more than one block of positions. What two layers give is
# near it, also where a third use of the table adds to the sum.
{ data word w.idx 60; data next n.idx 60; model 4201 512 "$(fused 4201)"; } >large.prototxt
solver large 'micro_batch: 30'
expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver large_solver.prototxt --workers 1,2,3 --ranks 1,2 --iterations 2
expect 0 -- "$LOCKSTEP" train --solver large_solver.prototxt --workers 2
losses >fused.text
two='layer { name: "scores" type: "InnerProduct" bottom: "h" top: "z" param { name: "w" } inner_product_param { axis: 4 num_output: 4201 bias_term: false } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "next" top: "loss" softmax_param { axis: 4 } loss_param { ignore_label: 3 } }'
{ data word w.idx 60; data next n.idx 60; model 4201 512 "$two"; } >two.prototxt
solver two 'micro_batch: 30'
expect 0 -- "$LOCKSTEP" train --solver two_solver.prototxt --workers 2
losses >two.text
[ "$(wc -l <fused.text)" -ge 4 ] && cmp -s fused.text two.text || fail "one layer and two differ: $(diff fused.text two.text | head)"

# The weights go to a net whose scores are an InnerProduct of the same name.
for net in large two; do
    expect 0 -- "$LOCKSTEP" test --model $net.prototxt --weights large_solver_iter_4.safetensors
    grep -oE 'loss = [0-9]+\.[0-9]{4}' log >$net.tested
done
[ -s large.tested ] && cmp -s large.tested two.tested || fail "tests differ: $(diff large.tested two.tested | head)"

# Labels that are all ignored: the loss is 0, the weights stay.
words same.idx 60 9 1 0
{ data word w.idx 20; data next same.idx 20; model 301 113 "$(fused 301 | sed 's/ignore_label: 3/ignore_label: 0/')"; } >none.prototxt
solver none 'micro_batch: 3'
expect 0 'loss = 0' -- "$LOCKSTEP" train --solver none_solver.prototxt

# Words and labels that are none: the record is named.
{ data word w.idx 20; data next n.idx 20; model 301 113 "$(fused 240)"; } | sed 's/ param { name: "w" }//g' >labels.prototxt
solver labels 'micro_batch: 3'
expect 4 'n.idx.*label 24[0-9] is none of the 240 classes' -- "$LOCKSTEP" train --solver labels_solver.prototxt
{ data word w.idx 20; data next n.idx 20; model 249 113 "$(fused 301)"; } | sed 's/ param { name: "w" }//g' >ids.prototxt
solver ids 'micro_batch: 3'
expect 4 'w.idx.*249.*input_dim' -- "$LOCKSTEP" train --solver ids_solver.prototxt

# A number that is none ends the training before the weights change.
{ data word w.idx 20; data next n.idx 20; model 301 113 "$(fused 301)"; } |
    sed 's/type: "TanH" bottom: "y" top: "y"/type: "Log" bottom: "y" top: "y"/' >nan.prototxt
solver nan 'micro_batch: 3'
expect 6 "the loss 'loss' of layer 'scores' is not finite, first in the micro-batch of samples" -- "$LOCKSTEP" train --solver nan_solver.prototxt
finish
