#!/bin/bash
# lockstep check: every bad record of all sources is listed, with its number, name and reason.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

small_solver 'test_interval: 10' >solver.prototxt

# Good data, as text and as JSON.
expect 0 "^train, layer 'd', SYNTHETIC: 300 records, 0 bad" '^All records of 2 sources are good' -- \
    "$LOCKSTEP" check --solver solver.prototxt
expect 0 '"event": *"source"' '"bad": *0' -- "$LOCKSTEP" check --model net.prototxt --json
expect 2 'give --solver FILE or --model FILE' -- "$LOCKSTEP" check
expect 2 'give --solver FILE or --model FILE' -- "$LOCKSTEP" check --solver a --model b

# Labels that no layer knows, on any number of threads in one order.
idx_images 60 12 >images
idx_labels 60 >labels
byte 99 | poke labels 15
byte 10 | poke labels 67
small_net "backend: IDX source: 'images' label_source: 'labels'" >net.prototxt
for workers in 1 3; do
    expect 4 "^train, layer 'd', images: record 7: its label 99 is none of the 10 classes of layer 'loss'" \
        "^test, layer 'd', images: record 59: its label 10 is none" "images: 60 records, 2 bad" \
        '^lockstep: 4 bad records' -- "$LOCKSTEP" check --solver solver.prototxt --workers $workers
done
grep -c 'its label' log | grep -qx 4 || fail "not every bad label was listed once"

# Numbers that are taken although they cannot be meant are warnings, here and once in a training.
idx_labels 60 >labels
cat >odd.prototxt <<'EOF'
layer { name: "d" type: "Data" top: "x" top: "t" transform_param { scale: 0.004 }
  data_param { backend: IDX source: "images" label_source: "labels" batch_size: 10 } }
layer { name: "s" type: "InnerProduct" bottom: "x" top: "s" inner_product_param { num_output: 1 } }
layer { name: "loss" type: "SigmoidCrossEntropyLoss" bottom: "s" bottom: "t" top: "loss" }
EOF
echo 'net: "odd.prototxt" base_lr: 0.001 lr_policy: "fixed" max_iter: 20 warmup_iter: 30 snapshot_prefix: "o"' \
    >odd_solver.prototxt
odd="images: record [0-9]+: its target [0-9] is outside of 0 to 1.* 'loss' "
expect 0 "^warning: train, layer 'd', $odd.*; [0-9]+ records have such numbers .*odd.prototxt:4:1" 'are good, but there are 2 warnings' \
    'warm-up of 30 iterations is longer than the training' -- "$LOCKSTEP" check --solver odd_solver.prototxt
expect 0 '"event": *"warning"' -- "$LOCKSTEP" check --solver odd_solver.prototxt --json
for workers in 1 3; do
    expect 0 "^warning: train net, $odd" -- "$LOCKSTEP" train --solver odd_solver.prototxt --overwrite --workers $workers
    [ "$(grep -c 'outside of 0 to 1' log)" = 1 ] || fail "a warning is not said once"
done
sed -i 's/SigmoidCrossEntropyLoss/EuclideanLoss/' odd.prototxt
expect 0 '!outside' -- "$LOCKSTEP" check --solver odd_solver.prototxt

# All labels alike, or ignored.
(printf '\0\0\010\001\0\0\0\074' && head -c 60 /dev/zero) >zeros
small_net "backend: IDX source: 'images' label_source: 'zeros'" >net.prototxt
expect 0 "^warning: train, layer 'd', images: all labels of layer 'loss' are 0" -- \
    "$LOCKSTEP" check --solver solver.prototxt

# Numbers of a table's rows, as training has them; of a text, how many rows it needs.
cat >text.prototxt <<'EOF'
layer { name: "d" type: "Data" top: "tokens" top: "target" data_param {
  backend: TEXT source: "text.txt" batch_size: 2 text_param { window: 4 } } }
layer { name: "table" type: "Embed" bottom: "tokens" top: "x" embed_param { input_dim: 5 num_output: 2 } }
layer { name: "scores" type: "InnerProduct" bottom: "x" top: "s" inner_product_param { num_output: 7 axis: 2 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "s" bottom: "target" top: "loss" softmax_param { axis: -1 } }
EOF
echo 'net: "text.prototxt" type: "SGD" base_lr: 0.1 lr_policy: "fixed" max_iter: 3 snapshot_prefix: "t"' \
    >text_solver.prototxt
echo abcdefabcdef >text.txt
expect 4 "text.txt: record 1.*: its number 5 is none of the 5 rows of layer 'table'" -- \
    "$LOCKSTEP" check --solver text_solver.prototxt
expect 4 "its number 5 is none of the 5 rows of layer 'table' .*vocabulary has 7 characters: input_dim: 7" -- \
    "$LOCKSTEP" train --solver text_solver.prototxt
sed -i 's/input_dim: 5/input_dim: 7/; s/num_output: 7/num_output: 6/' text.prototxt
expect 4 "its label 6 is none of the 6 classes of layer 'loss'.*7 characters: .* needs num_output: 7" -- \
    "$LOCKSTEP" train --solver text_solver.prototxt
sed -i 's/num_output: 6/num_output: 7/; s/softmax_param { axis: -1 }//' text.prototxt
expect 3 "'s' has 7 positions to label.*hint: softmax_param \{ axis: -1 \}" -- \
    "$LOCKSTEP" train --solver text_solver.prototxt
sed -i 's/top: "loss"/& softmax_param { axis: -1 }/' text.prototxt
expect 0 '!none of' -- "$LOCKSTEP" train --solver text_solver.prototxt

# Pictures: two that are damaged, one of which is the first; one is gone.
mkdir -p p/a p/b
for i in 1 2 3; do
    grey 14 15 $((40 * i)) >p/a/$i.png
    grey 13 16 $((30 * i)) >p/b/$i.png
done
head -c 60 p/a/2.png >p/a/1.png
echo nothing >p/b/2.png
small_net "backend: IMAGES source: 'p' new_height: 12 new_width: 12 is_color: false" >net.prototxt
expect 4 'record 0 \(a/1.png\): ' 'record 4 \(b/2.png\): .*neither JPEG nor PNG' '!record 0: ' '!record 4: ' \
    'p: 6 records, 2 bad' '^lockstep: 4 bad records' -- "$LOCKSTEP" check --solver solver.prototxt
expect 4 '"record": *4' '"name": *"b/2.png"' -- \
    "$LOCKSTEP" check --solver solver.prototxt --json

# Sizes that the net cannot take: each with a record.
mkdir -p q/a
for size in 12 12 13 14 12 13; do
    grey $size 12 90 >"q/a/$((i++)).png"
done
small_net "backend: IMAGES source: 'q' is_color: false" >net.prototxt
expect 3 'train, layer .d., q: 6 records, 0 bad' 'for samples of 1 x 13 x 12: ' \
    'for samples of 1 x 14 x 12: ' '!for samples of 1 x 12 x 12' 'has this size, 1 x 13 x 12' \
    'has this size, 1 x 14 x 12' -- "$LOCKSTEP" check --solver solver.prototxt

# What cannot be opened at all is told as training tells it.
small_net "backend: IDX source: 'nothing' label_source: 'labels'" >net.prototxt
expect 4 "there is no file or folder 'nothing'" -- "$LOCKSTEP" check --solver solver.prototxt

finish
