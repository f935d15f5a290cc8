#!/bin/bash
# Snapshots that cannot be written: a full disk, a limit on files, a killed process. Good
# snapshots stay good, nothing is left half-written, and a resume continues to the same bytes.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
train 0
mkdir good
mv s_iter_*.safetensors good
size=$(stat -c %s good/s_iter_10.safetensors)

# is_good FILE: it has the bytes that this snapshot has without any fault.
is_good() {
    cmp -s "$1" "good/s_iter_${1##*_iter_}" || fail "$1 is not what it should be"
}
no_leftovers() {
    [ -z "$(find "$1" -name '.*.tmp')" ] || fail "half-written: $(find "$1" -name '.*.tmp')"
}

# ---- A full disk, where this user may make one ----------------------------------------------------
mkdir disk
# For a snapshot, its last page, the lock and status.json.
if mount -t tmpfs -o size=$(((size / 4096 + 3) * 4096)) tmpfs disk 2>/dev/null; then
    undo="umount -l '$work/disk'"
    train 7 '^Snapshotting to disk/s_iter_10' \
        '^lockstep: disk/s_iter_20.safetensors: .*No space left on device. hint: free some space' \
        -- --snapshot-prefix disk/s
    is_good disk/s_iter_10.safetensors
    no_leftovers disk
    [ ! -e disk/s_iter_20.safetensors ] || fail "a snapshot on a full disk"
    # The old file of the same name stays, too.
    train 7 'warning: the snapshot of iteration 10 was not written: disk/s_iter_10.*No space left' \
        '^lockstep: disk/s_iter_20.safetensors: .*No space left' -- --snapshot-prefix disk/s
    is_good disk/s_iter_10.safetensors
    no_leftovers disk
    # A snapshot between two updates is no reason to end, unless it is to be one. At the end it is,
    # where no later one was written.
    train 7 'warning: the snapshot of iteration 20 was not written: disk/s_iter_20.*No space left' \
        'an older snapshot is there: disk/s_iter_10' \
        'warning: [1-9] snapshots? could not be written, the first one at iteration 20' \
        '!Optimization Done' -- --snapshot-prefix disk/s --set max_iter=30 --set snapshot=20 \
        --set snapshot_after_train=false
    train 7 '^lockstep: disk/s_iter_10.safetensors: .*No space left' '!Iteration 30' \
        '!Training goes on' '!Optimization Done' -- --snapshot-prefix disk/s --snapshot-required \
        --set max_iter=200000
    no_leftovers disk
    # Room again: the run goes on.
    mount -o remount,size=1m disk
    train 0 'Resuming from disk/s_iter_10.safetensors' -- --snapshot-prefix disk/s --resume auto
    is_good disk/s_iter_20.safetensors
    # Not even room for a name.
    rm disk/*
    mount -o remount,size=4k,nr_inodes=1 disk
    train 7 'disk/s: cannot create: No space left on device. hint: free some space' '!Iteration' \
        -- --snapshot-prefix disk/s
    # Other outputs.
    mount -o remount,size=16k,nr_inodes=100 disk
    idx_images 300 12 >images
    idx_labels 300 >labels
    expect 7 'No space left|out of space|disk' -- "$LOCKSTEP" convert --backend IDX \
        --source images --label-source labels disk/db
    [ ! -e disk/db ] || fail "half a database"
    rm -rf disk/*
    cifar_records 3 >cifar
    mount -o remount,size=8k disk
    expect 7 'No space left' -- "$LOCKSTEP" mean --backend CIFAR --source cifar disk/mean.binaryproto
    [ -z "$(ls -A disk)" ] || fail "half a mean: $(ls -A disk)"
    train 7 'disk/log: the log could not be written completely' -- --snapshot-prefix out \
        --log-json disk/log --set display=1 --set max_iter=200 --set snapshot=0
    umount disk
    undo=""
else
    echo "no disk can be mounted: full disks are not tested"
fi

# ---- A limit on the size of files -----------------------------------------------------------------
cp good/s_iter_10.safetensors s_iter_10.safetensors
expect 7 'iteration 10 was not written: s_iter_10.safetensors: .*File too large' \
    '^lockstep: s_iter_20.safetensors: .*File too large. hint: raise the limit' -- bash -c \
    "ulimit -f $((size / 1024 / 2)); exec '$LOCKSTEP' train --overwrite --solver solver.prototxt"
is_good s_iter_10.safetensors
no_leftovers .

# ---- Killed at any time ---------------------------------------------------------------------------
# A snapshot after every update, and a kill somewhere in it: whatever is there under a snapshot's
# name is whole, and a resume gives the bytes of an uninterrupted run.
train 0 -- --set snapshot=1 --snapshot-prefix every
small_solver | sed 's/"s"/"k"/; s/snapshot: 10/snapshot: 1/' >solver.prototxt
killed=0
for ((round = 0; round < 12; round++)); do
    rm -f k_iter_* .k_iter_*
    "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2 >log 2>&1 &
    pid=$!
    # After a few snapshots, and then a little later each time.
    for ((wait = 0; wait < 2000; wait++)); do
        [ ! -e "k_iter_$((round / 2 + 1)).safetensors" ] || break
        sleep 0.002
    done
    sleep "0.00$((round % 3))"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    [ $? = 137 ] && killed=$((killed + 1))
    for file in k_iter_*.safetensors; do
        [ -e "$file" ] || continue
        cmp -s "$file" "every_iter_${file##*_iter_}" || fail "killed: $file is damaged"
    done
    train 0 '!skipping' -- --resume auto
    cmp -s k_iter_20.safetensors every_iter_20.safetensors || fail "killed and resumed: other bytes"
done
[ $killed -gt 0 ] || fail "nothing was killed"
finish
