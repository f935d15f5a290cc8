#!/bin/bash
# Too little memory: exit code 7 and a message, with any limit; never a crash, and no file left
# half-written. (tests/faults/test_memory.c fails every single allocation; this uses real limits.)
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
if sanitized; then
    echo "skipped: a sanitizer's shadow does not fit any limit"
    exit 77
fi

# A training that needs some memory of its own: 64 MiB of weights and as much again for each of
# their gradients and histories.
small_net | sed 's/num_output: 4 /num_output: 200 /; s/num_output: 10/num_output: 3000/' >net.prototxt
small_solver | sed 's/max_iter: 20/max_iter: 2/' >solver.prototxt
for limit in $(seq 20000 30000 500000) 650000 800000 1000000; do
    status=0
    (
        ulimit -v "$limit"
        exec timeout 120 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2
    ) >log 2>&1 </dev/null || status=$?
    case $status in
    0 | 7) ;;
    139) skipped=$((${skipped:-0} + 1)); continue ;; # see below
    127 | 126 | 125) continue ;; # not even enough to load the program
    1) # a library cannot be loaded, or gives up while it is
        grep -q 'error while loading\|cannot allocate\|^libgomp: ' log || fail "limit $limit: $(cat log)"
        check_output "limit $limit" '!^lockstep' '!Iteration'
        ;;
    *) fail "limit $limit: status $status: $(tail -n 3 log)" ;;
    esac
    [ $status != 7 ] || check_output "limit $limit" '^lockstep: .*(memory|thread)'
    [ -z "$(find . -name '.*.tmp')" ] || fail "limit $limit: half a snapshot"
done
[ $status = 0 ] || fail "1 GB is not enough"
# oneDNN 2.6 itself may crash where memory ends while it generates code; that may happen, seldom.
[ "${skipped:-0}" -le 1 ] || fail "$skipped limits end in a crash"

# A tensor that no memory holds: said with what it is, before anything is filled.
small_net | sed 's/num_output: 10/num_output: 15000000/' >net.prototxt
status=0
(
    ulimit -v 3000000
    exec timeout 120 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2
) >log 2>&1 </dev/null || status=$?
[ $status = 7 ] || fail "a large layer: status $status: $(tail -n 3 log)"
check_output "a large layer" '^lockstep: .*out of memory' '!Iteration'

# More threads than the system gives.
small_net >net.prototxt
status=0
(
    ulimit -v 3000000
    exec timeout 120 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 4096
) >log 2>&1 </dev/null || status=$?
[ $status = 7 ] || fail "4096 workers: status $status: $(tail -n 3 log)"
check_output "4096 workers" '^lockstep: .*(cannot start thread|out of memory)'
finish
