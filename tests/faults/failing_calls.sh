#!/bin/bash
# Snapshots while system calls fail now and then, or are slow: training continues, all files are
# complete, and either the last snapshot is there or the exit code reports it.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
preload=${LOCKSTEP_BUILD:?}/tests/libfailing_calls.so
if sanitized; then
    echo "a sanitizer must come first: no calls are made to fail"
    exit 77
fi
small_solver 'snapshot_format: BINARYPROTO weight_average { decay: 0.9 }' |
    sed 's/snapshot: 10/snapshot: 5/' >solver.prototxt
train 0
mkdir good
mv s_iter_* good

# failing CALL [NAME=VALUE...] -- STATUS TEXT... [-- OPTIONS]: a training in which CALL fails.
failing() {
    local variables=(FAIL_CALL="$1" LD_PRELOAD="$preload") status texts=()
    shift
    while [ "$1" != -- ]; do
        variables+=("$1")
        shift
    done
    status=$2
    shift 2
    while [ $# != 0 ] && [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    [ $# = 0 ] || shift
    rm -f s_iter_*
    expect "$status" ${texts[@]+"${texts[@]}"} -- env "${variables[@]}" "$LOCKSTEP" train \
        --solver solver.prototxt --workers 2 "$@"
    [ -z "$(find . -name '.s*')" ] || fail "left behind: $(find . -name '.s*')"
    for file in s_iter_*; do
        [ ! -e "$file" ] || [ $# != 0 ] || cmp "$file" "good/$file" || fail "$file has other bytes"
    done
}
all_there() {
    for n in 5 10 15 20; do
        [ -e s_iter_$n.safetensors ] && [ -e s_iter_$n.caffemodel ] || fail "no snapshot $n"
    done
}

# Nothing fails, but each sync takes long, so that updates and snapshots overlap.
failing fsync FAIL_ERRNO=0 FAIL_SLEEP=0.1 -- 0 'Snapshotting to s_iter_20' '!warning'
all_there

# A file without a name cannot be named: EPERM, EXDEV. It is found before the first update.
failing linkat FAIL_ERRNO=1 -- 0 'Snapshotting to s_iter_20' '!warning'
all_there
failing linkat FAIL_ERRNO=18 -- 0 'Snapshotting to s_iter_20' '!warning'
all_there
# And later, when it went well before.
failing linkat FAIL_ERRNO=1 FAIL_AFTER=2 -- 0 'Snapshotting to s_iter_20' '!warning'
all_there

# A disk that fails once (each snapshot syncs its file, the folder, and those of the caffemodel).
failing fsync FAIL_COUNT=1 -- 0 \
    'warning: the snapshot of iteration 5 was not written: s_iter_5.safetensors: cannot sync: Input' \
    'Training goes on; the next one is due at iteration 10' 'Snapshotting to s_iter_20' \
    'warning: 1 snapshot could not be written, the first one at iteration 5' 'Optimization Done'
[ ! -e s_iter_5.safetensors ] && [ -e s_iter_10.safetensors ] || fail "$(ls)"
failing fsync FAIL_COUNT=1 -- 7 '^lockstep: s_iter_5.safetensors: cannot sync: Input' \
    '!Snapshotting to s_iter_20' -- --snapshot-required
# Where the run ends no other one is due, though the schedule goes on.
failing fsync -- 7 'Training goes on; the next one is due at iteration 10' '!due at iteration 15' \
    '^lockstep: s_iter_10.safetensors: cannot sync: Input' -- --iterations 10
# Always: the last one had to succeed.
failing fsync -- 7 'iteration 15 was not written' \
    '^lockstep: s_iter_20.safetensors: cannot sync: Input/output error' '!Optimization Done'
[ -z "$(ls s_iter_* 2>/dev/null)" ] || fail "what was never synced is there"
# The last attempt of the thread only: what comes at the end is tried once more.
failing fsync FAIL_AFTER=12 FAIL_COUNT=1 -- 0 'iteration 20 was not written' \
    'Snapshotting to s_iter_20' 'Optimization Done'

# What should go cannot be removed: a warning, and all is there.
failing unlink FAIL_AFTER=1 FAIL_ERRNO=13 FAIL_COUNT=2 -- 0 \
    'warning: s_iter_5.safetensors: cannot remove: Permission denied' \
    'Snapshotting to s_iter_20' '!could not be written' 'Optimization Done' -- --set snapshot_keep=1

# A copy does not fit a limit on memory: the same bytes, and training waits.
small_net | sed 's/num_output: 4 /num_output: 400 /' >net.prototxt
train 0 'Memory:' '!Training waits'
rm -r good
mkdir good
mv s_iter_* good
# A disk that is slow: said at the start (its third sync is that of the larger file of two).
failing fsync FAIL_ERRNO=0 FAIL_AFTER=2 FAIL_COUNT=1 FAIL_SLEEP=1.2 -- 0 \
    'warning: a snapshot of 1\.[0-9] MiB is expected to take about ([3-9][0-9]\.[0-9] s|[0-9]+ min [0-9]+ s) here: schedulers' \
    'Snapshotting to s_iter_20'
train 7 'needs at least' -- --memory 1MiB
least=$(sed -n 's/.*needs at least \([0-9.]*\) MiB.*/\1/p' log)
failing linkat FAIL_COUNT=0 -- 0 'Training waits while snapshots are written: a copy to write from' \
    'Snapshotting to s_iter_20' -- --memory "${least}9MiB"
all_there
for file in s_iter_*; do
    cmp "$file" "good/$file" || fail "without a copy: $file has other bytes"
done
failing fsync FAIL_AFTER=4 FAIL_COUNT=1 -- 0 \
    'iteration 5 was not written: .*Training goes on; .*iteration 10' 'Snapshotting to s_iter_20' \
    -- --memory "${least}9MiB"
finish
