#!/bin/bash
# Data that are cut off, damaged or lie about their size, and labels that name no class: each is
# reported with its file and, where there is one, its record; nothing is trained on it.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# ---- IDX ------------------------------------------------------------------------------------------
idx_images 40 12 >good_images
idx_labels 40 >good_labels
restore() {
    rm -rf images labels
    cp good_images images
    cp good_labels labels
}
small_net "backend: IDX source: 'images' label_source: 'labels'" >net.prototxt
restore
train 0 'Optimization Done' -- --set base_lr=0.00001

# broken TEXT COMMAND...: after the command the training must fail for its data.
broken() {
    local text=$1
    shift
    restore
    eval "$*"
    train 4 "$text" '!Iteration'
}
for size in 0 1 3 4 7 15 16 17 1000 5775; do
    broken '^lockstep: images: (is cut off|is empty)' "truncate -s $size images"
done
for size in 0 3 7 8 47; do
    broken '^lockstep: labels: (is cut off|is empty)' "truncate -s $size labels"
done
broken '^lockstep: images: has something behind its end' 'byte 1 >>images'
broken '^lockstep: labels: has something behind its end' 'byte 1 >>labels'
broken '^lockstep: images: ' 'byte 31 139 8 | poke images 0'
broken '^lockstep: images: is an IDX file of type 0x0d' 'byte 13 | poke images 2'
broken '^lockstep: images: has rank 1.*exchanged' 'cp labels images'
broken '^lockstep: labels: has rank 3.*exchanged' 'cp images labels'
broken '^lockstep: images: .*rank' 'byte 255 | poke images 3'
for at in 4 8 12; do
    for number in 0 4294967295 2147483648 65536 65537; do
        broken '^lockstep: images: ' "be32 $number | poke images $at"
    done
done
broken '^lockstep: images: ' 'for i in 1 2 3; do be32 2147483647; done | poke images 4'
broken '^lockstep: labels: ' 'be32 4294967295 | poke labels 4'
broken '^lockstep: labels: has 30 labels for 40 images.*belong together' 'idx_labels 30 >labels'
gz='gzip -n images; mv images.gz images'
broken '^lockstep: images: is a damaged or incomplete gzip file' "$gz; truncate -s 1000 images"
broken '^lockstep: images: is a damaged or incomplete gzip file' "$gz; byte 1 2 3 4 | poke images 200"
broken '^lockstep: images: ' "$gz; byte 99 | poke images \$((\$(stat -c %s images) - 8))"
# A small file that unpacks to a large one is not unpacked beyond what its header says.
broken '^lockstep: images: ' 'head -c 50000000 /dev/zero | gzip >images'
broken '^lockstep: images: ' '(head -c 16 good_images; head -c 50000000 /dev/zero) | gzip >images'

# Labels: with the layer that does not know them.
broken "^lockstep: images: record 17: its label 10 is none of the 10 classes of layer 'loss' \
\(net.prototxt:28:1\)" 'byte 10 | poke labels 25'
broken "images: record 39: its label 255 is none of the 10 classes" 'byte 255 | poke labels 47'
# A softmax and the loss behind it are one step: the loss is the layer that takes labels.
mv net.prototxt whole.prototxt
sed 's/.*type: "SoftmaxWithLoss".*/layer { name: "p" type: "Softmax" bottom: "ip" top: "p" }\
layer { name: "loss" type: "MultinomialLogisticLoss" bottom: "p" bottom: "label" top: "loss" }/' \
    whole.prototxt >net.prototxt
broken "record 17: its label 10 is none of the 10 classes of layer 'loss' \
\(net.prototxt:29:1\)" 'byte 10 | poke labels 25'
small_net "backend: IDX source: 'images' label_source: 'labels'" |
    sed 's/bottom: "label" top: "loss"/& loss_param { ignore_label: 255 }/
         s/top: "accuracy"/& accuracy_param { ignore_label: 255 }/' >net.prototxt
restore
byte 255 | poke labels 47
train 0 'Optimization Done' -- --set base_lr=0.00001
broken "record 12: its label 11 is none" 'byte 255 | poke labels 47; byte 11 | poke labels 20'

# A test net's label, and that of a net that is only tested.
restore
cp labels test_labels
byte 12 | poke test_labels 11
small_net "backend: IDX source: 'images' label_source: 'labels'" \
    "backend: IDX source: 'images' label_source: 'test_labels'" >net.prototxt
train 4 "images: record 3: its label 12 is none of the 10 classes of layer 'accuracy'" \
    '!Iteration' -- --set test_interval=5
small_net >net.prototxt
sed 's/num_output: 10/num_output: 9/' net.prototxt >nine.prototxt
expect 4 "its label 9 is none of the 9 classes of layer" -- "$LOCKSTEP" train --overwrite --solver \
    solver.prototxt --set net=nine.prototxt

# ---- CIFAR ----------------------------------------------------------------------------------------
cifar_records 20 >good
rm -f cifar
restore() {
    rm -rf cifar
    cp good cifar
}
small_net "backend: CIFAR source: 'cifar'" >net.prototxt
restore
train 0 'Optimization Done' -- --set base_lr=0.00001
for size in 0 1 3072 3074 61459; do
    broken '^lockstep: cifar: ' "truncate -s $size cifar"
done
broken '^lockstep: cifar: ' 'byte 7 >>cifar'
broken "^lockstep: cifar: record 2: its label 10 is none|^lockstep: cifar: .*label" \
    "byte 10 | poke cifar 6146"

# ---- Pictures -------------------------------------------------------------------------------------
pictures=$LOCKSTEP_SOURCE/tests/fuzz/corpus/records
if [ -s "$pictures/jpeg" ] && [ -s "$pictures/png" ]; then # seeds, behind a byte for the fuzzer
    restore() {
        rm -rf folder
        mkdir -p folder/a folder/b
        for i in 1 2 3; do
            tail -c +2 "$pictures/jpeg" >"folder/a/$i.jpg"
            tail -c +2 "$pictures/png" >"folder/b/$i.png"
        done
    }
    small_net "backend: IMAGES source: 'folder' new_height: 16 new_width: 16" >net.prototxt
    restore
    train 0 'Optimization Done' -- --set base_lr=0.00001
    bad_picture() {
        local text=$1
        shift
        restore
        eval "$*"
        train 4 "$text" -- --set base_lr=0.00001
    }
    for size in 0 1 10 60; do
        bad_picture '^lockstep: .*folder/a/2.jpg' "truncate -s $size folder/a/2.jpg"
        bad_picture '^lockstep: .*folder/b/3.png' "truncate -s $size folder/b/3.png"
    done
    bad_picture '^lockstep: .*folder/b/1.png' 'seq 100 >folder/b/1.png'
    bad_picture '^lockstep: .*folder/b/1.png' 'be32 2147483647 | poke folder/b/1.png 16'
    bad_picture '^lockstep: .*folder/b/1.png' 'be32 65536 | poke folder/b/1.png 16
        be32 65536 | poke folder/b/1.png 20'
    bad_picture '^lockstep: .*folder/a/1.jpg' 'rm folder/a/1.jpg; mkfifo folder/a/1.jpg'
    bad_picture '^lockstep: .*folder' 'rm -r folder/a folder/b'
    bad_picture '^lockstep: .*folder' 'rm folder/*/*'
    # A list file: lines without a label, labels that are none, pictures that are not there.
    restore
    list() {
        # shellcheck disable=SC2059
        printf "$1" >list.txt
        shift
        small_net "backend: IMAGES source: 'list.txt' new_height: 16 new_width: 16" >net.prototxt
        train 4 "$@" -- --set base_lr=0.00001
    }
    list 'folder/a/1.jpg 0\nfolder/b/none.png 1\n' 'folder/b/none.png'
    list 'folder/a/1.jpg 0\nfolder/b/1.png\n' 'list.txt:2'
    list 'folder/a/1.jpg 0\nfolder/b/1.png one\n' 'list.txt:2'
    list 'folder/a/1.jpg 0\nfolder/b/1.png 99999999999999\n' 'list.txt:2'
    list 'folder/a/1.jpg 0\nfolder/b/1.png 10\n' 'list.txt: record 1 .*folder/b/1.png.*: its label 10'
    list 'folder/a/1.jpg 0\nfolder/b/1.png -3\n' '(list.txt:2|its label -3)'
    list '' 'list.txt'
    list '\n\n' 'list.txt'
fi

# ---- LMDB -----------------------------------------------------------------------------------------
idx_images 60 12 >images
idx_labels 60 >labels
expect 0 -- "$LOCKSTEP" convert --backend IDX --source images --label-source labels good_db
restore() {
    rm -rf db
    cp -r good_db db
}
small_net "backend: LMDB source: 'db'" >net.prototxt
restore
train 0 'Optimization Done' -- --set base_lr=0.00001
for size in 0 1 100 4095 4096 8192 12288; do
    broken '^lockstep: db' "truncate -s $size db/data.mdb"
done
broken '^lockstep: db' 'rm db/data.mdb'
broken '^lockstep: db' 'rm db/data.mdb; mkdir db/data.mdb'
broken '^lockstep: db' 'noise 20000 >db/data.mdb'
broken '^lockstep: db' 'head -c 20000 /dev/zero >db/data.mdb'
# Numbers of the two first pages and of all others: an error or a training, never more.
size=$(stat -c %s good_db/data.mdb)
for ((at = 16; at < 160; at += 8)); do
    restore
    be32 4294967295 | poke db/data.mdb $at
    be32 4294967295 | poke db/data.mdb $((4096 + at))
    timeout 60 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --set base_lr=0.00001 \
        --iterations 2 >log 2>&1
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || [ $status = 3 ] || fail "LMDB, byte $at: status $status"
    check_output "LMDB, byte $at"
done
for ((page = 2; page * 4096 < size && page < 6; page++)); do
    for at in 0 10 12 14 16 18 40 2000 4000; do
        restore
        be32 4294967295 | poke db/data.mdb $((page * 4096 + at))
        timeout 60 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --iterations 2 \
            --set base_lr=0.00001 >log 2>&1
        status=$?
        case $status in 0 | 3 | 4 | 6) ;; *) fail "LMDB, page $page, byte $at: status $status" ;; esac
        check_output "LMDB, page $page, byte $at"
    done
done
finish
