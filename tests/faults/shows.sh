#!/bin/bash
# lockstep show: each kind of file, whole and damaged, under names that say nothing.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

small_net >net.prototxt
small_solver 'snapshot_format: BINARYPROTO' >solver.prototxt
train 0 -- --log-json run
# show STATUS TEXT... -- FILE...
show() {
    local wanted=$1 texts=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    expect "$wanted" "${texts[@]}" -- "$LOCKSTEP" show "$@"
}

# ---- Weights --------------------------------------------------------------------------------------
cp s_iter_20.safetensors a
cp s_iter_20.caffemodel b
cp s_iter_20.solverstate c
show 0 'a: safetensors' 'written by: .*snapshot' '^  iteration: 20$' 'conv.weight +4x1x3x3 +F32' -- a
show 0 'definition: .* lines, .*--full' -- a
show 0 'type: "InnerProduct"' -- --full a
show 0 "Caffe's weights" '^  ip\[0\] ' 'solver state' 'iteration: 20' 'weights: s_iter_20.caffemodel' -- b c
sed 's/"ip"/"a_layer_whose_name_is_long"/g' net.prototxt >long.prototxt # files get names whole
train 0 -- --set net=long.prototxt --snapshot-prefix long
show 0 '^  a_layer_whose_name_is_long.weight ' -- long_iter_20.safetensors
head -c 3000 a >d
show 5 '^lockstep: d: ' -- d
printf 'x' | poke a "$(($(stat -c %s a) - 1))"
show 5 '^lockstep: a: .*checksum' -- a
head -c 2000 b >d
show 5 '^lockstep: d: ' -- d
expect 5 '"file": "a", "problem": ".*checksum' -- "$LOCKSTEP" show --json a

# ---- Data -----------------------------------------------------------------------------------------
cifar_records 3 >pictures
show 0 "CIFAR-10" 'records: 3' 'label 2$' -- pictures
byte 77 | poke pictures 3073 # no class: token ids look so
show 2 'unknown kind' -- pictures
cifar_records 3 >pictures
expect 4 "pictures: is a part of CIFAR-10.*folder" -- "$LOCKSTEP" init pictures --yes
idx_images 12 6 >images
idx_labels 12 >labels
gzip -c labels >packed
show 0 'records: 12' 'image: 1x6x6 U8' '^      0 ' '!^      3 ' -- --records 3 images
show 0 'labels: 12' 'begins with: 0 1 2' -- labels packed
head -c 200 images >short
show 4 '^lockstep: short: ' -- short
head -c 6 labels >short
show 2 '^lockstep: short: is a file of unknown kind' -- short
expect 0 -- "$LOCKSTEP" convert --backend IDX --source images --label-source labels lmdb
expect 0 -- "$LOCKSTEP" mean --backend LMDB --source lmdb mean
show 0 'an LMDB database' 'records: 12' 'image 1x6x6 U8; label 3' -- lmdb
show 0 '^#0 +#1' -- --draw --records 2 lmdb/data.mdb
show 0 $'\033\\[[0-9;]*m' '^#0 +#1' -- --color always --records 2 lmdb/data.mdb
show 0 '!^#0 +#1' '^ +0 +image' -- --records 2 lmdb/data.mdb
show 0 'mean files' '^  blob +1x6x6 ' -- mean
head -c 5000 lmdb/data.mdb >cut
show 4 '^lockstep: cut: ' -- cut
grey 6 5 9 >picture
show 0 'size: 5 x 6 pixels, grey' -- picture
head -c 50 picture >short
show 4 '^lockstep: short: ' -- short
mkdir -p tree/cat tree/dog
cp picture tree/cat/a.png
cp picture tree/dog/b.png
show 0 'holds: 0 files and 2 folders' 'classes: cat ' 'records: 2' 'a.png' -- tree
mkdir nothing
show 0 'holds: 0 files' 'no: there is no folder for a class' -- nothing
{
    printf '\223NUMPY\001\000\166\000'
    printf "%-117s\n" "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }"
    byte 1 0 2 0 3 0
} >array
show 0 'array +3 +U16 +1 +3 +2 ' 'begins with: 1 2 3' -- array
head -c 132 array >short
show 4 '^lockstep: short: ' -- short

# ---- Texts ----------------------------------------------------------------------------------------
show 0 'how far: 20 of 20 iterations, ended' 'base_lr: 0.01' 'loss: [0-9.]+ at iteration 20' -- run
show 0 'layers: ' 'conv +Convolution  data -> conv' -- net.prototxt
show 0 'base_lr: 0.01' -- solver.prototxt
printf '{"a": 1, "b": [2, 3], "c": "x"}' >tree.json
show 0 'a: 1' 'b: a list of 2' 'c: x' -- tree.json
printf '{"a": 1,' >broken
show 4 '^lockstep: broken:1:' -- broken
printf 'layer { name: "a" type: \n' >broken.prototxt
show 3 '^lockstep: broken.prototxt:[0-9]+:' -- broken.prototxt
printf 'one\ntwo\033[2J\n' >lines
show 2 'a file of unknown kind' '!'$'\033' -- lines
printf 'one\ntwo\n' >lines
show 0 'lines: 2' '^ +1  two$' -- lines

# ---- Neither --------------------------------------------------------------------------------------
noise 0 >empty
printf '\001\002\003\377' >unknown
show 2 '^lockstep: empty: is empty' '^lockstep: unknown: is a file of unknown kind' 'as 16-bit numbers: 513' \
    '^lockstep: none: cannot open' 'lines: 2' -- empty unknown none lines
show 5 '^lockstep: none: cannot open' -- none
show 5 'is not a file' -- /dev/null
finish
