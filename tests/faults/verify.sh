#!/bin/bash
# lockstep verify: forms of a training within this process and instruction sets in processes of
# their own end in one table; the exit code tells the result, and no files are left behind.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

small_solver 'test_interval: 4 test_iter: 1' >solver.prototxt
export TMPDIR=$work

# The hash is that of the tensors of what train writes.
expect 0 '^30/30 updates  100%' 'Verified: 5 trainings of 6 updates compute the same bytes\.$' '  1 worker$' \
    '  2 ranks of 2 workers until update' '!an epoch' -- "$LOCKSTEP" verify --solver solver.prototxt \
    --iterations 6 --workers 1,2 --ranks 1,2 --resume random
hash=$(grep '  1 worker$' log | grep -oE '[0-9a-f]{64}')
expect 0 -- "$LOCKSTEP" train --solver solver.prototxt --iterations 6 --snapshot-prefix t
header=$(od -An -t u8 -N 8 t_iter_6.safetensors)
[ "$(tail -c +$((header + 9)) t_iter_6.safetensors | sha256sum)" = "$hash  -" ] ||
    fail "verify says $hash of the tensors"

# Instruction sets: each with its rows; a set that does not exist takes nothing from the others.
expect 0 'generic: 1 worker$' 'sse41: 2 workers$' '^generic and sse41: ' \
    'Verified: 4 trainings of 6 updates compute the same bytes within each' -- \
    "$LOCKSTEP" verify --solver solver.prototxt --iterations 6 --workers 1,2 --isa generic,sse41
expect 2 'sse99' 'generic: 2 workers$' '!Verified' -- "$LOCKSTEP" verify --solver solver.prototxt --iterations 6 \
    --workers 1,2 --isa generic,sse99

expect 2 '400 trainings or more; it runs at most 256' -- "$LOCKSTEP" verify \
    --solver solver.prototxt --workers "$(seq -s, 20)" --ranks "$(seq -s, 20)"
expect 7 'no folder can be made there' 'TMPDIR' -- env TMPDIR=/nowhere "$LOCKSTEP" verify \
    --solver solver.prototxt --workers 1,2
# Each instruction set has a process of its own, which needs a pipe. With few enough files there is
# none; with fewer the program does not start.
for limit in $(seq 4 16); do
    status=0
    (ulimit -n "$limit" && exec "$LOCKSTEP" verify --solver solver.prototxt --iterations 6 \
        --workers 1,2 --isa generic,sse41) >log 2>&1 || status=$?
    ! grep -q 'verify: no pipe can be made: ' log || break
done
grep -q 'no pipe can be made' log && [ "$status" = 7 ] || fail "without a pipe: $status: $(cat log)"
[ -z "$(find . -name 'lockstep-verify*')" ] || fail "left behind: $(find . -name 'lockstep-verify*')"
finish
