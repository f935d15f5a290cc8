#!/bin/bash
# Signals: SIGINT and SIGTERM stop with a snapshot (exit code 75), from which a resume continues
# to the bytes of an uninterrupted run; the second one stops at once; SIGHUP only writes a
# snapshot.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# So long that it is still under way when the signal comes, and cut for the runs that end.
fields='display: 1 test_interval: 50'
small_solver "$fields" | sed 's/max_iter: 20/max_iter: 1000000/; s/snapshot: 10/snapshot: 0/' \
    >solver.prototxt

# start: begins a training in the background and waits until it has displayed an iteration.
start() {
    : >log
    "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2 "$@" >log 2>&1 </dev/null &
    pid=$!
    local i
    for ((i = 0; i < 6000; i++)); do
        ! grep -q '^Iteration [3-9]' log || return 0
        kill -0 $pid 2>/dev/null || break
        sleep 0.01
    done
    fail "the training does not begin"
    cat log
}
# ends STATUS TEXT...: waits for it.
ends() {
    local wanted=$1 status=0
    shift
    wait $pid || status=$?
    [ $status = "$wanted" ] || {
        fail "status $status instead of $wanted"
        tail -n 20 log | cut -c 1-400
    }
    check_output "a signal" "$@"
}

for signal in INT TERM; do
    rm -f s_iter_*
    # A background process of a shell without job control may begin with SIGINT ignored; the
    # program catches it all the same.
    start
    kill -$signal $pid
    ends 75 'Stopping with a snapshot; the same signal again stops at once' \
        'Snapshotting to s_iter_[0-9]+.safetensors' 'Optimization stopped early' \
        'To go on: .*lockstep train --solver solver.prototxt --resume s_iter_[0-9]+.safetensors'
    snapshots=(s_iter_*.safetensors)
    [ ${#snapshots[@]} = 1 ] || fail "not one snapshot: ${snapshots[*]}"
    stopped=${snapshots[0]##*_iter_}
    stopped=${stopped%.safetensors}
    total=$((stopped + 15))
    expect 0 "Resuming from ${snapshots[0]}, iteration $stopped" -- "$LOCKSTEP" train --overwrite --solver \
        solver.prototxt --workers 3 --resume "${snapshots[0]}" --iterations $total
    expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --snapshot-prefix whole \
        --iterations $total
    cmp s_iter_$total.safetensors whole_iter_$total.safetensors ||
        fail "SIG$signal and resume: other bytes than without"
    # And again from where it stopped, with auto.
    rm s_iter_$total.safetensors
    expect 0 "iteration $stopped" -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2 \
        --resume auto --iterations $total
    cmp s_iter_$total.safetensors whole_iter_$total.safetensors || fail "auto: other bytes"
done

# SIGHUP: a snapshot, and on; then an end.
rm -f s_iter_*
start
kill -HUP $pid
for ((i = 0; i < 6000; i++)); do
    ! ls s_iter_*.safetensors >/dev/null 2>&1 || break
    sleep 0.01
done
kill -0 $pid 2>/dev/null || fail "SIGHUP ended the training"
snapshots=(s_iter_*.safetensors)
kill -TERM $pid
ends 75 'Snapshotting'
number=${snapshots[0]##*_iter_}
expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --snapshot-prefix whole \
    --iterations "${number%.safetensors}"
cmp "${snapshots[0]}" "whole_iter_$number" || fail "the snapshot of SIGHUP has other bytes"

# The second one: at once, by the signal itself. The step under way is kept from ending by data
# that take long: pictures that are large and many in a batch.
small_net "backend: SYNTHETIC synthetic_param { count: 60000 height: 400 width: 400 }" |
    sed 's/batch_size: 16/batch_size: 3000/; s/^  convolution_param.*/  convolution_param { num_output: 1 kernel_size: 3 stride: 8 }/' \
        >net.prototxt
rm -f s_iter_*
: >log
"$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --set test_interval=0 \
    >log 2>&1 </dev/null &
pid=$!
for ((i = 0; i < 6000; i++)); do
    ! grep -q 'Random seed' log || break
    sleep 0.01
done
kill -TERM $pid
# Two signals that wait together are one: the first must have been delivered.
until grep -q '^ShdPnd:[[:space:]]*0*$' /proc/$pid/status; do
    sleep 0.01
done
kill -TERM $pid
ends 143
[ -z "$(ls s_iter_* 2>/dev/null)" ] || fail "the second signal wrote: $(ls s_iter_*)"
[ -z "$(find . -name '.*.tmp')" ] || fail "the second signal left something: $(find . -name '.*.tmp')"

# Two signals close together while it writes one snapshot after the other: whatever the second one
# interrupts, no half of a file remains.
small_solver 'display: 1 test_interval: 50' |
    sed 's/max_iter: 20/max_iter: 1000000/; s/snapshot: 10/snapshot: 1 snapshot_keep: 2/' >solver.prototxt
small_net >net.prototxt
for round in 1 2 3 4 5 6; do
    start
    kill -INT $pid
    sleep 0.00$round
    kill -TERM $pid 2>/dev/null
    wait $pid
    rm -f s_iter_*
done
[ -z "$(find . -name '.*.tmp')" ] || fail "signals left something: $(find . -name '.*.tmp')"
finish
