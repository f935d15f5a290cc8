#!/bin/bash
# Pictures with label maps, and pictures of different sizes: files that are missing, damaged or do
# not belong together are reported by name; nothing is trained on them.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# segmenting [DATA [LOSS]]: a net that gives each pixel one of three classes.
segmenting() {
    cat <<TEXT
layer {
  name: "d" type: "Data" top: "data" top: "label"
  transform_param { scale: 0.00390625 }
  data_param { backend: IMAGE_PAIRS batch_size: 2 ${1-source: \"x\" label_source: \"y\"} }
}
layer {
  name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 3 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } }
}
layer {
  name: "loss" type: "SoftmaxWithLoss" bottom: "conv" bottom: "label" top: "loss"
  loss_param { ${2:-} }
}
TEXT
}

mkdir good good/x good/y
for i in 1 2 3 4; do
    grey 8 9 $((40 * i)) >good/x/$i.png
    grey 8 9 $((i % 3)) >good/y/$i.png
done
restore() {
    rm -rf x y list
    cp -r good/x good/y .
}
small_solver >solver.prototxt
segmenting >net.prototxt
restore
train 0 'Optimization Done'

# broken TEXT COMMAND...: after the command the training must fail for its data.
broken() {
    local text=$1
    shift
    restore
    eval "$*"
    train 4 "$text" '!Iteration'
}

# ---- Files that do not belong together --------------------------------------------------------------
broken '^lockstep: x/3.png: has no label map: there is no file .y/3.png.' 'rm y/3.png'
broken '^lockstep: y/3.png: record 2: has 8 x 8 labels .*its picture .x/3.png. has 8 x 9 pixels' \
    'grey 8 8 1 >y/3.png'
broken '^lockstep: y/3.png: record 2: has 8 x 9 labels .*its picture .x/3.png. has 9 x 9 pixels' \
    'grey 9 9 1 >x/3.png'
broken '^lockstep: x: has no .jpg' 'rm x/*'
broken "there is no file or folder 'y'" 'rm -r y'

# ---- Maps that are none -----------------------------------------------------------------------------
broken '^lockstep: y/2.png: record 1: a label map must be a PNG file' 'seq 100 >y/2.png'
broken '^lockstep: y/2.png: record 1: a label map has one number for each pixel' 'png 8 9 2 8 3 1 >y/2.png'
broken '^lockstep: y/2.png: record 1: a label map has one number for each pixel' 'png 8 9 4 8 2 1 >y/2.png'
for size in 0 7 20 32; do
    broken '^lockstep: y/2.png: ' "truncate -s $size y/2.png"
done
broken '^lockstep: y/2.png: record 1: damaged PNG' 'truncate -s 80 y/2.png'
broken '^lockstep: y/2.png: record 1: damaged PNG' 'byte 1 2 3 | poke y/2.png 60'
broken '^lockstep: y/2.png: ' 'rm y/2.png; mkfifo y/2.png'

# ---- Labels -----------------------------------------------------------------------------------------
# Sixteen bits: 2 x 257 is no class, and is not taken for its high byte.
broken 'x: record 1 \(2.png\): its label 514 is none of the 3 classes' 'png 8 9 0 16 2 2 >y/2.png'
broken 'x: record 1 \(2.png\): its label 3 is none of the 3 classes' 'grey 8 9 3 >y/2.png'
restore
png 8 9 0 16 2 2 >y/2.png
segmenting 'source: "x" label_source: "y" label_clip: 2' >net.prototxt
train 0 'Optimization Done'
restore
grey 8 9 255 >y/2.png
segmenting 'source: "x" label_source: "y"' 'ignore_label: 255' >net.prototxt
train 0 'Optimization Done'

# ---- Definitions ------------------------------------------------------------------------------------
# refused TEXT DATA: a definition that makes no sense.
refused() {
    segmenting "$2" >net.prototxt
    train 3 "$1" '!Iteration'
}
restore
refused 'needs a folder of label maps' 'source: "x"'
refused 'label_source is for folders' 'source: "x/1.png" label_source: "y"'
refused 'root_folder is for list files' 'source: "x" label_source: "y" root_folder: "x"'
refused 'label_pad is 65536; it must lie in 0 .. 65535' 'source: "x" label_source: "y" label_pad: 65536'
segmenting 'source: "x" label_clip: 1' | sed 's/IMAGE_PAIRS/IMAGES/' >net.prototxt
train 3 'label_clip is for IMAGE_PAIRS' '!Iteration'
printf 'x/1.png y/1.png\nx/2.png\n' >list
segmenting 'source: "list"' >net.prototxt
train 4 '^lockstep: list:2: no picture and map'
printf 'x/1.png y/1.png\nx/2.png y/9.png\n' >list
train 4 '^lockstep: list:2: there is no such file: "y/9.png"'
printf 'x/1.png y/1.png\nx/2.png\ty/2.png\n' >list
train 0 'Optimization Done'

# ---- Predictions: maps are no classes of pictures ------------------------------------------------------
snapshots=(s_iter_*.safetensors)
expect 3 'predict names the class of a picture, but this net classifies each of [0-9]+ positions.*hint' \
    '!1\.0000' -- "$LOCKSTEP" predict --model net.prototxt --weights "${snapshots[0]}" --samples 1

segmenting | sed 's/num_output: 3/num_output: 1/; s/SoftmaxWithLoss/EuclideanLoss/' >map.prototxt
train 0 -- --set net=map.prototxt --set base_lr=0.000001 --snapshot-prefix map
snapshots=(map_iter_*.safetensors)
expect 3 'this net gives 72 numbers that are no scores of classes.*hint' \
    -- "$LOCKSTEP" predict --model map.prototxt --weights "${snapshots[0]}" --samples 1

# ---- Different sizes --------------------------------------------------------------------------------
segmenting >net.prototxt
broken '^lockstep: x/2.png: record 1: the picture is too large' \
    'png 1 9 0 8 1 3 >x/2.png; { be32 30000; be32 30000; byte 8 0 0 0 0; } | chunk IHDR | poke x/2.png 8'
restore
for i in 2 3; do
    grey 12 $((5 + i)) 9 >x/$i.png
    grey 12 $((5 + i)) 1 >y/$i.png
done
train 0 'Optimization Done'
sed 's/scale: 0.00390625/& pad: 13 pad_mode: REFLECT/' net.prototxt >reflect.prototxt
train 3 'a reflecting pad must be smaller than the records' -- --set net=reflect.prototxt
sed 's/scale: 0.00390625/& pad: 7 pad_mode: REFLECT/' net.prototxt >reflect.prototxt
train 4 'x: record 1 \(2.png\): it is smaller than the reflecting pad' -- --set net=reflect.prototxt
sed 's/scale: 0.00390625/& mean_file: "none"/' net.prototxt >mean.prototxt
train 3 'mean_file needs records of one size' -- --set net=mean.prototxt
finish
