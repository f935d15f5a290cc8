#!/bin/bash
# Definitions whose data are not there: what stands in for them, where its shapes come from, and
# that trainings on it have the same bytes for any number of workers.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() {
    cat log
    echo "FAILED: $*"
    exit 1
}
# says STATUS TEXT ARGUMENTS...: the program ends so, and says this.
says() {
    local expected=$1 text=$2 status=0
    shift 2
    "$LOCKSTEP" "$@" >log 2>&1 || status=$?
    [ "$status" = "$expected" ] || fail "$*: exit status $status instead of $expected"
    grep -qF -- "$text" log || fail "$*: does not say '$text'"
}
# solver NAME: with the net of that name; trainings on 1, 2, 3 and 5 workers agree.
solver() {
    cat >"$1_solver.prototxt" <<TEXT
net: "$1.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 3 momentum: 0.9
test_interval: 2 test_iter: 1
TEXT
}
exact() {
    says 0 "Verified: 4 trainings of 3 updates compute the same bytes." \
        verify --solver "$1_solver.prototxt" --workers 1,2,3,5 --dummy-data "${@:2}"
}

# Pictures with a crop; classes from the number of scores.
cat >classes.prototxt <<'TEXT'
layer { name: "data" type: "Data" top: "data" top: "label"
  transform_param { crop_size: 12 mean_value: 1 mean_value: 2 mean_value: 3 mirror: true }
  data_param { source: "nowhere_lmdb" backend: LMDB batch_size: 10 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" }
TEXT
solver classes
says 0 "(test): random data, for there is no 'nowhere_lmdb': data 10 x 3 x 12 x 12, label 10 (whole numbers from 0 to 6)" \
    plan --model classes.prototxt
says 0 "layer 'data' (train): random data, for" plan --solver classes_solver.prototxt
says 0 "10 x 4 x 10 x 10" shapes --model classes.prototxt
says 0 "data 6 x 1 x 20 x 30, label 6 (whole numbers from 0 to 6)" \
    shapes --model classes.prototxt --input data=6,1,20,30
says 0 "weight 4 x 1 x 3 x 3, bias 4" shapes --model classes.prototxt --input data=6,1,20,30
says 0 "ip" time --solver classes_solver.prototxt --iterations 1
exact classes
exact classes --input data=6,1,20,30,label=6

# Windows of a text, which the definition tells, and targets of a loss that makes its own logits.
cat >text.prototxt <<'TEXT'
layer { name: "text" type: "Data" top: "tokens" top: "target"
  data_param { source: "nowhere.txt" backend: TEXT batch_size: 3 text_param { window: 8 } } }
layer { name: "place" type: "Positions" bottom: "tokens" top: "place" }
layer { name: "wpe" type: "Embed" bottom: "place" top: "position"
  embed_param { input_dim: 8 num_output: 4 bias_term: false weight_filler { type: "xavier" } } }
layer { name: "wte" type: "Embed" bottom: "tokens" top: "token"
  embed_param { input_dim: 9 num_output: 4 bias_term: false weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "token" bottom: "position" top: "sum" }
layer { name: "loss" type: "LinearSoftmaxLoss" bottom: "sum" bottom: "target" top: "loss"
  linear_softmax_loss_param { num_output: 7 weight_filler { type: "xavier" } } }
TEXT
solver text
says 0 "tokens 3 x 8 (whole numbers from 0 to 8), target 3 x 8 (whole numbers from 0 to 6)" \
    plan --model text.prototxt
exact text

# Indices and targets whose shapes the caller says, regions of pictures, tops of another batch.
cat >indices.prototxt <<'TEXT'
layer { name: "data" type: "HDF5Data" top: "words" top: "next" top: "other"
  hdf5_data_param { source: "nowhere.txt" batch_size: 4 } }
layer { name: "table" type: "Embed" bottom: "words" top: "e"
  embed_param { input_dim: 9 num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "score" type: "InnerProduct" bottom: "e" top: "score"
  inner_product_param { num_output: 7 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "next" top: "loss"
  softmax_param { axis: 2 } }
layer { name: "rest" type: "Silence" bottom: "other" }
TEXT
says 0 "words 4 x 3 (whole numbers from 0 to 8), next 4 x 3 (whole numbers from 0 to 6)" \
    plan --model indices.prototxt --input words=4,3 --input next=4,3
says 3 "nothing says the shape of words: --input words=4,... does" plan --model indices.prototxt
# Arrays whose shapes the definition says, with the samples along any axis.
cat >arrays.prototxt <<'TEXT'
layer { name: "data" type: "Data" top: "data" top: "steps" top: "label"
  data_param { source: "nowhere.npy" backend: NPY batch_size: 6
    tensor { shape { dim: 1 dim: 5 dim: 7 } } tensor { sample_axis: 1 shape { dim: 4 dim: 2 } } tensor { } } }
layer { name: "rest" type: "Silence" bottom: "steps" }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
TEXT
says 0 "data 6 x 1 x 5 x 7, steps 4 x 6 x 2, label 6 (whole numbers from 0 to 2)" plan --model arrays.prototxt
cat >regions.prototxt <<'TEXT'
layer { name: "data" type: "Input" top: "data" top: "rois"
  input_param { shape { dim: [1, 3, 16, 16] } shape { dim: [4, 5] } } }
layer { name: "roi" type: "ROIPooling" bottom: "data" bottom: "rois" top: "roi"
  roi_pooling_param { pooled_h: 2 pooled_w: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "roi" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1 }
TEXT
solver regions
says 0 "Optimization Done." train --solver regions_solver.prototxt --dummy-data
cat >captions.prototxt <<'TEXT'
layer { name: "pictures" type: "ImageData" top: "data" top: "label" transform_param { crop_size: 8 }
  image_data_param { source: "nowhere.txt" batch_size: 10 } }
layer { name: "rest" type: "Silence" bottom: "label" }
layer { name: "texts" type: "HDF5Data" top: "cont" top: "words" top: "next"
  hdf5_data_param { source: "nowhere.txt" batch_size: 5 } }
layer { name: "table" type: "Embed" bottom: "words" top: "e"
  embed_param { input_dim: 9 num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "picture" type: "InnerProduct" bottom: "data" top: "picture"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "lstm" type: "LSTM" bottom: "e" bottom: "cont" bottom: "picture" top: "h"
  recurrent_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "score" type: "InnerProduct" bottom: "h" top: "score"
  inner_product_param { num_output: 7 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "next" top: "loss"
  softmax_param { axis: 2 } }
TEXT
says 3 "hint: --input cont=5,N says its shape" plan --model captions.prototxt
says 0 "next 5 x 10 (whole numbers from 0 to 6)" plan --model captions.prototxt \
    --input cont=5,10 --input words=5,10 --input next=5,10
grep -q "data 10 x 3 x 8 x 8" log || fail "the batch of pictures is changed"

# Sources whose pictures have one size.
sed "s/source: \"nowhere_lmdb\" backend: LMDB/source: 'nowhere' backend: CIFAR/
    s/crop_size: 12 mean_value.*mirror/mirror/" classes.prototxt >kind.prototxt
says 0 "data 10 x 3 x 32 x 32, label 10" plan --model kind.prototxt

# A net that normalises by saved averages can be tried without any.
cat >averages.prototxt <<'TEXT'
layer { name: "data" type: "Data" top: "data" top: "label"
  transform_param { crop_size: 12 mean_value: 1 }
  data_param { source: "nowhere_lmdb" backend: LMDB batch_size: 10 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "conv" batch_norm_param { use_global_stats: true } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
TEXT
solver averages
says 0 "1 layer (train) normalises by saved averages: mean 0 and variance 1, unless --weights" \
    train --solver averages_solver.prototxt --dummy-data --snapshot-prefix averages
exact averages

# Sizes that the net fits: a pair of channels that share a layer, planes that are put back.
cat >pairs.prototxt <<'TEXT'
layer { name: "pair" type: "Data" top: "pair" top: "similar"
  data_param { source: "nowhere_lmdb" backend: LMDB batch_size: 6 } }
layer { name: "cut" type: "Slice" bottom: "pair" top: "a" top: "b" slice_param { slice_point: 1 } }
layer { name: "one" type: "Convolution" bottom: "a" top: "x" param { name: "w" } param { name: "v" }
  convolution_param { num_output: 2 kernel_size: 5 stride: 9 weight_filler { type: "xavier" } } }
layer { name: "two" type: "Convolution" bottom: "b" top: "y" param { name: "w" } param { name: "v" }
  convolution_param { num_output: 2 kernel_size: 5 stride: 9 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "ContrastiveLoss" bottom: "x" bottom: "y" bottom: "similar" top: "loss" }
TEXT
solver pairs
says 0 "pair 6 x 2 x 224 x 224, similar 6 (whole numbers from 0 to 1); the size is assumed" \
    plan --model pairs.prototxt
exact pairs
cat >planes.prototxt <<'TEXT'
layer { name: "data" type: "Data" top: "data" top: "label"
  data_param { source: "nowhere_lmdb" backend: LMDB batch_size: 4 } }
layer { name: "pool" type: "Pooling" bottom: "data" top: "small" top: "places"
  pooling_param { kernel_size: 8 stride: 8 } }
layer { name: "score" type: "Convolution" bottom: "small" top: "score"
  convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "up" type: "Upsample" bottom: "score" bottom: "places" top: "up"
  upsample_param { upsample_h: 360 upsample_w: 480 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "up" bottom: "label" top: "loss" }
TEXT
says 0 "data 4 x 3 x 360 x 480, label 4 x 1 x 360 x 480 (whole numbers from 0 to 2); the size" \
    plan --model planes.prototxt
sed -i 's/upsample_h: 360/upsample_h: 361/' planes.prototxt
says 3 "a height of 361" plan --model planes.prototxt

# True boxes.
cat >boxes.prototxt <<'TEXT'
layer { name: "data" type: "AnnotatedData" top: "data" top: "boxes"
  transform_param { crop_size: 16 }
  data_param { source: "nowhere_lmdb" backend: LMDB batch_size: 6 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 16 kernel_size: 4 stride: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "RegionLoss" bottom: "conv" bottom: "boxes" top: "loss"
  region_loss_param { side: 4 num: 2 num_class: 3 biases: [1, 1, 2, 2] } }
TEXT
solver boxes
says 0 "data 6 x 3 x 16 x 16, boxes 6 x 1 x 4 x 8 (boxes of classes 1 to 3)" plan --model boxes.prototxt
exact boxes

# The same of YOLOv3's loss, and what no rule of it reads.
sed 's/"RegionLoss"/"Yolov3"/; s/region_loss_param { side: 4/yolov3_param { side: 5 noobject_scale: 0.5 object_scale: 5/
    s/biases: .*/biases: [4, 4, 9, 9, 2, 2] mask: [0, 1] } }/' boxes.prototxt >yolo.prototxt
solver yolo
says 0 "data 6 x 3 x 16 x 16, boxes 6 x 1 x 4 x 8 (boxes of classes 1 to 3)" plan --model yolo.prototxt
for field in side noobject_scale object_scale; do
    says 0 "loss: $field is ignored: layers of type Yolov3 do not read it" plan --model yolo.prototxt
done
exact yolo

# Figures of a test of found boxes, whose file of sizes is not there.
cat >found.prototxt <<'TEXT'
layer { name: "data" type: "AnnotatedData" top: "data" top: "boxes"
  transform_param { crop_size: 16 }
  data_param { source: "nowhere_lmdb" backend: LMDB batch_size: 6 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 28 kernel_size: 16 weight_filler { type: "xavier" } } }
layer { name: "rows" type: "Reshape" bottom: "conv" top: "rows" reshape_param { shape { dim: [0, 1, 4, 7] } } }
layer { name: "right" type: "DetectionEvaluate" bottom: "rows" bottom: "boxes" top: "right"
  detection_evaluate_param { num_classes: 3 name_size_file: "nowhere.txt" } }
TEXT
says 0 "right: name_size_file is left out: dummy data have no sizes of pictures" plan --model found.prototxt
says 0 "boxes 6 x 1 x 4 x 8 (boxes of classes 1 to 2)" plan --model found.prototxt

# A net whose data are of the training alone is planned as one; --phase chooses.
sed 's/type: "Data"/type: "Data" include { phase: TRAIN }/' classes.prototxt >learned.prototxt
says 0 'Net "train"' plan --model learned.prototxt
says 3 "it is there with phase TRAIN" plan --model learned.prototxt --phase TEST
says 0 'Net "test"' plan --model classes.prototxt
says 0 'Net "train"' plan --model classes.prototxt --phase TRAIN
says 2 "--phase is TRAIN or TEST" plan --model classes.prototxt --phase BOTH

# A net without a loss is planned with one where gradients go: not behind an accuracy.
sed '/SoftmaxWithLoss/d' classes.prototxt >scores.prototxt
says 0 "mean_ip" plan --model scores.prototxt --phase TRAIN
# Unknown fields do not hide what else is wrong, and data that are not there are no part of it.
sed 's/type: "ReLU"/type: "Zap" zap_param { }/' classes.prototxt >unknown.prototxt
for phase in TRAIN TEST; do
    says 3 "there is no layer type 'Zap'" plan --model unknown.prototxt --phase $phase
    if grep -q "there is no file" log; then fail "a missing source is told"; fi
done
solver unknown
says 3 "there is no layer type 'Zap'" plan --solver unknown_solver.prototxt --dummy-data
if grep -q "there is no file" log; then fail "a missing source is told"; fi
sed -i 's/base_lr/zap: 1 base_lr/' classes_solver.prototxt
says 3 "unknown field 'zap'" plan --solver classes_solver.prototxt --dummy-data
if grep -q "there is no file" log; then fail "a missing source is told"; fi
solver classes

# What a definition says in vain is told.
sed 's/type: "ReLU"/& quantization_param { } lrn_param { }/' classes.prototxt >vain.prototxt
solver vain
for plan in "--model vain.prototxt" "--solver vain_solver.prototxt"; do
    # shellcheck disable=SC2086
    says 0 "fields of forks that change no number are ignored: quantization_param (Ristretto; 1 time)" plan $plan
    # shellcheck disable=SC2086
    says 0 "relu: lrn_param is ignored: layers of type ReLU do not read it" plan $plan
done

# Only what is asked for, and only what can be.
says 4 "there is no file or folder 'nowhere_lmdb'" train --solver classes_solver.prototxt
says 2 "the definition has no input 'dta'" plan --model classes.prototxt --input dta=1,3,8,8
for wrong in data data= data=1, data=1,,3 data=0,3 data=1,-3 =1 data=1,3x data=99999999999 \
    data=1,2,3,4,5,6,7,8,9; do
    says 2 "is not the name of a blob with its shape" plan --model classes.prototxt \
        --input "$wrong"
done

# No size anywhere.
sed 's/crop_size: 12//' classes.prototxt >no_size.prototxt
says 0 "data 10 x 3 x 224 x 224, label 10 (whole numbers from 0 to 6); the size is assumed" \
    plan --model no_size.prototxt

# Scores for each position; the labels are a data layer of their own.
cat >maps.prototxt <<'TEXT'
layer { name: "data" type: "Data" top: "data" transform_param { crop_size: 9 }
  data_param { source: "pictures" backend: LMDB batch_size: 6 } }
layer { name: "label" type: "Data" top: "label"
  data_param { source: "maps" backend: LMDB batch_size: 6 } }
layer { name: "score" type: "Convolution" bottom: "data" top: "score"
  convolution_param { num_output: 5 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
TEXT
solver maps
says 0 "layer 'label' (test): random data, for there is no 'maps': label 6 x 1 x 9 x 9 (whole numbers from 0 to 4)" \
    plan --model maps.prototxt
exact maps

# Labels that are cut; targets; zeros and ones.
cat >many.prototxt <<'TEXT'
layer { name: "data" type: "Data" top: "data" top: "labels" transform_param { crop_size: 6 }
  data_param { source: "a" backend: LMDB batch_size: 9 } }
layer { name: "more" type: "Data" top: "target"
  data_param { source: "b" backend: LMDB batch_size: 9 } }
layer { name: "flags" type: "Data" top: "flags"
  data_param { source: "c" backend: LMDB batch_size: 9 } }
layer { name: "cut" type: "Slice" bottom: "labels" top: "first" top: "second"
  slice_param { axis: 1 } }
layer { name: "a" type: "InnerProduct" bottom: "data" top: "a"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "b" type: "InnerProduct" bottom: "data" top: "b"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss1" type: "SoftmaxWithLoss" bottom: "a" bottom: "first" top: "loss1" }
layer { name: "loss2" type: "SoftmaxWithLoss" bottom: "b" bottom: "second" top: "loss2" }
layer { name: "loss3" type: "EuclideanLoss" bottom: "a" bottom: "target" top: "loss3" }
layer { name: "loss4" type: "SigmoidCrossEntropyLoss" bottom: "b" bottom: "flags" top: "loss4" }
TEXT
solver many
says 0 "labels 9 x 2 (whole numbers from 0 to 2)" plan --model many.prototxt
grep -qF "target 9 x 4" log || fail "targets"
grep -qF "flags 9 x 3 (whole numbers from 0 to 1)" log || fail "flags"
exact many

# A net for prediction keeps its Input layer, with another shape; in a training it is replaced.
cat >deploy.prototxt <<'TEXT'
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 } }
TEXT
says 0 "5 x 4 x 14 x 14" shapes --model deploy.prototxt --input data=5,3,16,16
says 0 "Net" plan --model deploy.prototxt --input data=5,3,16,16
sed 's/type: "Convolution"/type: "Convolution" loss_weight: 1/
     s/num_output/weight_filler { type: "xavier" } num_output/' deploy.prototxt >input.prototxt
solver input
says 0 "layer 'data' (train): random data: data 2 x 3 x 8 x 8" plan --solver input_solver.prototxt
exact input

# Such a training writes nothing, and what is under the prefix does not matter, unless it is told where.
echo old >classes_solver_iter_2.safetensors
says 0 "Optimization Done." train --solver classes_solver.prototxt --dummy-data
grep -q 'Snapshotting' log && fail "a snapshot of a trial"
[ "$(cat classes_solver_iter_*)" = old ] || fail "a trial wrote over a snapshot"
rm classes_solver_iter_2.safetensors
# A snapshot of a training on such data goes on, and says how.
prefix=(--snapshot-prefix classes_solver)
says 0 "Optimization Done." train --solver classes_solver.prototxt --dummy-data "${prefix[@]}" --workers 1 --log-json whole.json
mv classes_solver_iter_3.safetensors whole.safetensors
says 0 "--snapshot-prefix classes_solver --dummy-data --input data=10,3,12,12 --workers 2" train --solver classes_solver.prototxt \
    --dummy-data --input data=10,3,12,12 --workers 2 --iterations 1 "${prefix[@]}"
says 0 "Optimization Done." train --solver classes_solver.prototxt --dummy-data --input data=10,3,12,12 --workers 2 "${prefix[@]}" \
    --resume classes_solver_iter_1.safetensors
says 0 "" diff whole.safetensors classes_solver_iter_3.safetensors

# A solver that counts in epochs can be tried out, too: one of random data is one iteration.
sed 's/max_iter: 3/max_epoch: 3 warmup_epoch: 1/; s/test_interval: 2/test_interval_epoch: 1/' classes_solver.prototxt \
    >epochs_solver.prototxt
says 0 "Memory" plan --solver epochs_solver.prototxt
says 0 "an epoch counts as one iteration" train --solver epochs_solver.prototxt --dummy-data
grep -q '^Iteration 3, Testing' log || fail "3 epochs of random data are not 3 iterations"
# Random numbers of the definition's own have no epochs, whatever looks at them.
sed -i 's/net: "[^"]*"/net: "own.prototxt"/' epochs_solver.prototxt
cat >own.prototxt <<'TEXT'
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 4 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
TEXT
says 3 "max_epoch counts in epochs" plan --solver epochs_solver.prototxt
says 3 "max_epoch counts in epochs" train --solver epochs_solver.prototxt
