#!/bin/bash
# Caffe's tools, by their names, flags and arguments.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for name in convert_imageset compute_image_mean upgrade_net_proto_text upgrade_net_proto_binary \
    upgrade_solver_proto_text device_query; do
    ln -s "$LOCKSTEP" $name
done
fail() {
    cat log
    echo "FAILED: $*"
    exit 1
}
# says STATUS TEXT COMMAND...
says() {
    local expected=$1 text=$2 status=0
    shift 2
    "$@" >log 2>&1 || status=$?
    [ "$status" = "$expected" ] || fail "$*: exit status $status instead of $expected"
    grep -qF -- "$text" log || fail "$*: does not say '$text'"
}
same() { "$LOCKSTEP" diff "$1" "$2" >log 2>&1 || fail "$1 and $2 differ"; }

# ---- Older definitions ----
cat >old.prototxt <<'TEXT'
name: "old"
input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv" blobs_lr: 1 blobs_lr: 2
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layers { name: "relu" type: RELU bottom: "conv" top: "conv" }
TEXT
says 0 "Wrote upgraded NetParameter text proto to new.prototxt" \
    ./upgrade_net_proto_text old.prototxt new.prototxt
grep -q 'type: "Convolution"' new.prototxt || fail "no new type"
grep -q 'type: "Input"' new.prototxt || fail "no Input layer"
grep -q 'layers' new.prototxt && fail "old layers"
"$LOCKSTEP" shapes --model old.prototxt >old.shapes
"$LOCKSTEP" shapes --model new.prototxt >new.shapes
cmp -s old.shapes new.shapes || fail "another net"
says 0 "binary proto to new.binary" ./upgrade_net_proto_binary old.prototxt new.binary
"$LOCKSTEP" shapes --model new.binary | cmp -s - old.shapes || fail "another net in binary"
cat >old_solver.prototxt <<'TEXT'
net: "new.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 1 solver_type: ADAM
TEXT
says 0 "SolverParameter" ./upgrade_solver_proto_text old_solver.prototxt new_solver.prototxt
grep -q 'type: "Adam"' new_solver.prototxt || fail "solver_type is not upgraded"
says 2 "INPUT and OUTPUT must be given" ./upgrade_net_proto_text old.prototxt
says 3 "missing.prototxt" ./upgrade_net_proto_text missing.prototxt out.prototxt
[ ! -e out.prototxt ] || fail "something was written"

# ---- Pictures: as raw records, then as files in records, they train the same ----
mkdir pictures
i=0
for name in png png-palette png-interlaced jpeg jpeg-progressive jpeg-sampled-oddly; do
    tail -c +2 "$LOCKSTEP_SOURCE/tests/fuzz/corpus/records/$name" >"pictures/$i.${name%%-*}"
    echo "$i.${name%%-*} $((i % 3))" >>list.txt
    i=$((i + 1))
done
says 0 "Processed $i files." ./convert_imageset --resize_height=12 --resize_width=14 \
    -logtostderr=1 pictures/ list.txt raw_lmdb
says 2 "exists already" ./convert_imageset pictures/ list.txt raw_lmdb
says 0 "Processed $i files." ./convert_imageset --resize_height=12 --resize_width=14 --encoded \
    --backend=lmdb pictures/ list.txt png_lmdb
says 0 "Processed $i files." ./convert_imageset --resize_height=12 --resize_width=14 \
    --encode_type=jpg pictures/ list.txt jpg_lmdb
says 0 "Processed $i files." ./convert_imageset --encoded pictures/ list.txt files_lmdb
says 0 "Processed $i files." ./convert_imageset --gray --shuffle --seed 3 --resize_height=12 \
    --resize_width=14 pictures/ list.txt gray_lmdb
for name in raw png jpg; do
    says 0 "Number of channels: 3" ./compute_image_mean ${name}_lmdb $name.binaryproto
    grep -q 'mean_value channel \[2\]' log || fail "no means"
done
cmp -s raw.binaryproto png.binaryproto || fail "pictures as PNG are other pictures"
cmp -s raw.binaryproto jpg.binaryproto && fail "JPEG lost nothing: were its pictures written?"
says 0 "Number of channels: 1" ./compute_image_mean --backend=lmdb gray_lmdb
# The very files: what is decoded from them while training is what the files give themselves.
train() { # BACKEND SOURCE SIZES SNAPSHOTS
    cat >net.prototxt <<TEXT
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { crop_size: 2 }
  data_param { backend: $1 source: "$2" batch_size: 2 $3 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 0.001 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
TEXT
    cat >solver.prototxt <<'TEXT'
net: "net.prototxt" base_lr: 0.0001 lr_policy: "fixed" max_iter: 6
TEXT
    "$LOCKSTEP" train --solver solver.prototxt --snapshot-prefix "$4" >log 2>&1 ||
        fail "train on $2"
}
train LMDB raw_lmdb "" raw
train LMDB png_lmdb "" png
same raw_iter_6.safetensors png_iter_6.safetensors
# They were resized as ImageData and OpenCV do it.
train IMAGES list.txt 'root_folder: "pictures/" new_height: 12 new_width: 14 antialias: false' cv
same raw_iter_6.safetensors cv_iter_6.safetensors
train IMAGES list.txt 'root_folder: "pictures/"' own
train LMDB files_lmdb "" files
same own_iter_6.safetensors files_iter_6.safetensors
says 2 "databases are written as lmdb" ./convert_imageset --backend=leveldb pictures/ list.txt x
says 2 "pictures cannot be written as 'gif'" ./convert_imageset --encode_type=gif \
    --resize_height=12 --resize_width=14 pictures/ list.txt x
[ ! -e x ] || fail "half a database"
says 2 "too few arguments" ./convert_imageset pictures/ list.txt

# ---- The machine ----
says 0 "Device id:" ./device_query
says 0 "isa=" "$LOCKSTEP" device_query -logtostderr
says 0 "usage: lockstep convert_imageset" "$LOCKSTEP" help convert_imageset

# ---- Classes of pictures ----
cat >deploy.prototxt <<'TEXT'
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 2 dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
TEXT
printf 'n01 a cat\r\nn02 a dog\nn03 a fish\n' >names.txt
"$LOCKSTEP" convert-weights own_iter_6.safetensors own.caffemodel --model net.prototxt >log 2>&1 ||
    fail "convert-weights"
classify() { "$LOCKSTEP" classify --model deploy.prototxt --weights own.caffemodel "$@" pictures/0.png; }
says 0 "n03 a fish" classify --labels names.txt
grep -q "n01 a cat" log || fail "not all classes"
classify --labels names.txt --format csv >plain
classify --labels names.txt --format csv --mean 100,100,100 >means
cmp -s plain means && fail "--mean changes nothing"
classify --labels names.txt --format csv --mean 100,100,100 --scale 0.5 >scaled
cmp -s means scaled && fail "--scale changes nothing"
classify --labels names.txt --format csv --resize 40 >resized
cmp -s plain resized && fail "--resize changes nothing"
says 0 "n01 a cat" classify --labels names.txt --mean raw.binaryproto
# Ten views: another mean than the centre alone. The mean of probabilities is one of probabilities.
classify --labels names.txt --format csv --resize 40 --oversample >views
cmp -s views resized && fail "--oversample changes nothing"
says 2 "there are no corners to cut out. hint: --resize" classify --oversample
says 0 "n0" classify --labels names.txt --output ip
says 2 "the net has no blob 'probe'. hint: the net ends with 'prob'; 'lockstep shapes'" classify --output probe
says 2 "missing.txt" classify --labels missing.txt
printf '\n\n' >blank.txt
says 2 "blank.txt: there are no names in it. hint: it has the name of a class on each line" classify --labels blank.txt
says 2 "is no number above 0" classify --scale x
says 2 "the net has a data layer" "$LOCKSTEP" classify --model net.prototxt \
    --weights own.caffemodel --mean 1,2,3 pictures/0.png
says 2 "PICTURES must be given" "$LOCKSTEP" classify --model deploy.prototxt --weights own.caffemodel

# ---- Features: trained on again, they give what the net behind the blob gives ----
ln -s "$LOCKSTEP" extract_features
cat >features.prototxt <<'TEXT'
layer { name: "data" type: "Data" top: "data" top: "label"
  data_param { backend: SYNTHETIC batch_size: 10 synthetic_param { count: 30 } } }
layer { name: "hidden" type: "InnerProduct" bottom: "data" top: "hidden"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "hidden" top: "hidden" }
layer { name: "ip" type: "InnerProduct" bottom: "hidden" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
TEXT
cat >features_solver.prototxt <<'TEXT'
net: "features.prototxt" base_lr: 0.00001 lr_policy: "fixed" max_iter: 2
TEXT
"$LOCKSTEP" train --solver features_solver.prototxt --snapshot-prefix f >log 2>&1 || fail "train"
says 0 "Extracted features of 40 query images for feature blob ip" ./extract_features \
    f_iter_2.safetensors features.prototxt hidden,ip hidden_lmdb,ip_lmdb 4 lmdb GPU DEVICE_ID=0
grep -q 'ignored' log && fail "layers behind a blob are told as if the net had none of them"
says 0 "Number of channels: 5" ./compute_image_mean hidden_lmdb
grep -q 'mean_value channel \[0\]: -' log && fail "what ReLU left is below 0"
says 0 "Number of channels: 10" ./compute_image_mean ip_lmdb
grep mean_value log >one
says 0 "query images" ./extract_features f_iter_2.safetensors features.prototxt ip again_lmdb 4 lmdb \
    -workers 1
says 0 "Number of channels: 10" ./compute_image_mean again_lmdb
grep mean_value log | cmp -s - one || fail "other features on one worker"
says 2 "has no blob 'fc7'" ./extract_features f_iter_2.safetensors features.prototxt fc7 x_lmdb 1 lmdb
says 2 "has no blob 'fc7'" ./extract_features f_iter_2.safetensors features.prototxt ip,fc7 \
    x_lmdb,y_lmdb 1 lmdb
[ ! -e x_lmdb ] || fail "one of two databases was written"
for names in "ip,hidden x_lmdb" "ip x_lmdb,y_lmdb" ",ip x_lmdb,y_lmdb" ", ,"; do
    # shellcheck disable=SC2086
    says 2 "must be equal" ./extract_features f_iter_2.safetensors features.prototxt $names 1 lmdb
done
says 2 "must be equal" ./extract_features f_iter_2.safetensors features.prototxt "" "" 1 lmdb
says 2 "ip_lmdb: exists already" ./extract_features f_iter_2.safetensors features.prototxt \
    hidden,ip x_lmdb,ip_lmdb 1 lmdb
says 3 "blob 'loss' does not belong to samples. hint: losses and accuracies are results of a test" \
    ./extract_features f_iter_2.safetensors features.prototxt ip,loss x_lmdb,y_lmdb 1 lmdb
[ ! -e x_lmdb ] || fail "one of two databases was written"
# Tops of the data layer; of several tops of a layer that which was asked for.
says 0 "query images for feature blob label" ./extract_features f_iter_2.safetensors \
    features.prototxt data,label data_lmdb,label_lmdb 3 lmdb
says 0 "Number of channels: 1" ./compute_image_mean data_lmdb
says 0 "Number of channels: 1" ./compute_image_mean label_lmdb
grep -qE 'mean_value channel \[0\]: [1-8]\.' log || fail "the mean of 30 digits is not near their middle"
sed -e '/name: "loss"/d' features.prototxt >sliced.prototxt
echo 'layer { name: "s" type: "Slice" bottom: "ip" top: "a" top: "b" slice_param { slice_point: 3 } }' \
    >>sliced.prototxt
says 0 "feature blob b" ./extract_features f_iter_2.safetensors sliced.prototxt a,b a_lmdb,b_lmdb 4 lmdb
says 0 "Number of channels: 3" ./compute_image_mean a_lmdb
grep mean_value log >slices
says 0 "Number of channels: 7" ./compute_image_mean b_lmdb
grep mean_value log >>slices
cut -d: -f2 one >numbers
cut -d: -f2 slices | cmp -s - numbers || fail "slices are not parts of their bottom"
"$LOCKSTEP" draw --model features.prototxt -o features.svg
grep -q '>50 FLOP<' features.svg || fail "how the picture tells of small costs"
