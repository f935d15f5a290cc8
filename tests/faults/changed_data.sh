#!/bin/bash
# Data that change during a training or before a resume: other records, labels, mean files, lists
# and class names are found, at once or an epoch later, and named; files that become shorter end a
# training with a snapshot; moved data are the same data.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# An epoch has 10 updates.
idx_images 160 12 >good_images
idx_labels 160 >good_labels
restore() {
    rm -rf images labels s_iter_*
    cp good_images images
    cp good_labels labels
}
# pixel RECORD: changes one pixel of a record.
pixel() {
    byte 251 | poke images $((16 + $1 * 144 + 70))
}
# solver RATE UPDATES INTERVAL
solver() {
    small_solver 'display: 1' | sed "s/base_lr: .*/base_lr: $1/; s/max_iter: .*/max_iter: $2/
        s/snapshot: 10/snapshot: $3/" >solver.prototxt
}
solver 0.0001 40 10
data="backend: IDX source: 'images' label_source: 'labels'"
small_net "$data shuffle: true" "$data" >net.prototxt

# ---- A resume: one epoch later --------------------------------------------------------------------
restore
train 0
sha256sum <s_iter_40.safetensors >whole
# late STOP RECORD: stops, changes a record that was trained on, goes on.
late() {
    restore
    train 0 -- --iterations "$1"
    pixel "$2"
    train 4 "images: record $2: other bytes than in the first epoch" '!Optimization Done' -- \
        --resume auto
    [ ! -e s_iter_40.safetensors ] || fail "a training on mixed data was finished"
}
late 20 80
small_net "$data" >net.prototxt
late 7 80 # the epoch that is interrupted has the old record, the next one the new one
small_net "$data last_batch: DROP" | sed 's/batch_size: 16/batch_size: 15/' >net.prototxt
late 12 155 # which no batch has
small_net "$data shuffle: true last_batch: DROP" | sed 's/batch_size: 16/batch_size: 15/' >net.prototxt
late 12 80
small_net "$data shuffle: true" "$data" >net.prototxt
restore
train 0 -- --iterations 20
pixel 80
pixel 81
train 4 'images: several records: other bytes than in the first epoch' -- --resume auto
# Unchanged, on other numbers of workers, with a cache and in pieces: the same file.
for workers in 1 3; do
    restore
    expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers $workers --iterations 7
    train 0 -- --resume auto --iterations 23
    expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers $workers --resume auto
    sha256sum <s_iter_40.safetensors | cmp -s - whole || fail "other bytes in pieces"
done

# ---- A resume: at once ----------------------------------------------------------------------------
# changed TEXT COMMAND: after 20 updates the resume is refused.
changed() {
    local text=$1
    shift
    restore
    train 0 -- --iterations 20
    eval "$*"
    train 5 "the snapshot was trained on other data .*$text" '!Iteration 20' -- \
        --resume s_iter_20.safetensors
}
changed 'labels' 'byte 7 | poke labels 100'
changed 'first record' 'pixel 0'
changed 'last record' 'pixel 159'
restore
"$LOCKSTEP" mean --backend IDX --source images --label-source labels mean.binaryproto >log 2>&1 ||
    fail "no mean file"
small_net "$data shuffle: true" "$data" |
    sed 's/transform_param { scale: 0.00390625 }/transform_param { mean_file: "mean.binaryproto" scale: 0.004 }/' \
        >net.prototxt
changed 'mean file' 'byte 67 | poke mean.binaryproto 100'
small_net "$data shuffle: true" "$data" >net.prototxt

# The same classes in another order, as folders named by numbers had it in earlier versions.
restore
"$LOCKSTEP" convert --backend IDX --source images --label-source labels named >log 2>&1 ||
    fail "no database"
small_net "backend: LMDB source: 'named'" >net.prototxt
printf '%s\n' 0 1 10 2 3 4 5 6 7 8 >named/class_names.txt
train 0 -- --iterations 20
printf '%s\n' 0 1 2 3 4 5 6 7 8 10 >named/class_names.txt
train 5 "classes have other numbers in the snapshot: class 2 is '10' there, and '2' in named" \
    '!Iteration 20' -- --resume s_iter_20.safetensors
printf '%s\n' 0 1 11 2 3 4 5 6 7 8 >named/class_names.txt
train 5 "the snapshot was trained on other data .*class names" -- --resume s_iter_20.safetensors
small_net "$data shuffle: true" "$data" >net.prototxt

# ---- An older snapshot says nothing of its data ---------------------------------------------------
# ---- Within a training ----------------------------------------------------------------------------
# The file changes while it is trained on: found an epoch later. A training that is stopped by its
# signal tells where it is.
restore
solver 0.0000001 1000000 0
rm -f log
"$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2 >log 2>&1 &
running=$!
undo="kill $running 2>/dev/null"
for ((i = 0; i < 600; i++)); do
    grep -q 'Iteration 20 ' log && break
    sleep 0.05
done
pixel 33
status=0
wait $running || status=$?
[ $status = 4 ] || fail "status $status of a training whose data changed"
check_output 'data changed' 'images: record 33: other bytes than in the first epoch'

# The same with a file that becomes shorter: a message and a snapshot, no signal.
shorter() {
    local file=$1 text=$2
    rm -f s_iter_* log
    "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2 >log 2>&1 &
    running=$!
    undo="kill $running 2>/dev/null"
    for ((i = 0; i < 600; i++)); do
        grep -q 'Iteration 20 ' log && break
        sleep 0.05
    done
    truncate -s 3000 "$file"
    status=0
    wait $running || status=$?
    [ $status = 4 ] || fail "status $status of a training whose file '$file' was cut off"
    check_output "$file cut off" "$text" 'Snapshotting'
    set -- s_iter_*.safetensors
    [ -e "$1" ] || fail "no snapshot of a training whose file '$file' was cut off"
}
restore
shorter images 'images: has become shorter: it had 23056 bytes'
cifar_records 40 >batch.bin
small_net "backend: CIFAR source: 'batch.bin'" >net.prototxt
shorter batch.bin 'batch.bin: has become shorter'
restore
"$LOCKSTEP" convert --backend IDX --source images --label-source labels db >log 2>&1 ||
    fail "no database"
small_net "backend: LMDB source: 'db'" >net.prototxt
shorter db/data.mdb 'data.mdb: has become shorter'

# ---- Moved data -----------------------------------------------------------------------------------
restore
solver 0.0001 40 10
mkdir -p elsewhere
cp images labels elsewhere/
small_net "$data shuffle: true" "$data" >net.prototxt
train 0 -- --iterations 20
sed "s/'images'/'elsewhere\/images'/; s/'labels'/'elsewhere\/labels'/" net.prototxt >moved
mv moved net.prototxt
mv images gone
train 0 '!Resume changes' -- --resume auto
sha256sum <s_iter_40.safetensors | cmp -s - whole || fail "other bytes of moved data"

# ---- The matrix of a loss -------------------------------------------------------------------------
# matrix FILE BYTE: a BlobProto (field 5, packed) of 10 x 10 numbers, all 0.5 but the last.
matrix() {
    {
        byte 42 144 3
        for ((i = 0; i < 99; i++)); do byte 0 0 0 63; done
        byte 0 0 "$2" 63
    } >"$1"
}
restore
solver 0.0001 10 5
small_net "$data" "$data" | sed 's/type: "SoftmaxWithLoss"/type: "InfogainLoss"/
    s/top: "loss"/& infogain_loss_param { source: "gains" }/' >net.prototxt
matrix gains 0
train 0
cp s_iter_10.safetensors whole
rm s_iter_10.safetensors
train 0 '!is not known' -- --resume s_iter_5.safetensors
cmp s_iter_10.safetensors whole || fail "other bytes after a resume with the same matrix"
mkdir -p other
mv gains other/moved
sed 's/"gains"/"other\/moved"/' net.prototxt >moved
mv moved net.prototxt
train 0 '!Resume changes' -- --resume s_iter_5.safetensors
cmp s_iter_10.safetensors whole || fail "other bytes with a matrix that has moved"
matrix other/moved 128
train 5 "s_iter_5.safetensors: the snapshot was made with another matrix in a file of infogain_loss_param: 'loss [0-9a-f]{16}', now 'loss [0-9a-f]{16}'. hint: a resume continues the same" \
    -- --resume s_iter_5.safetensors

finish
