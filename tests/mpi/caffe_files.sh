#!/bin/bash
# Several ranks write Caffe's files with gradients, go on from them, and tell of debug_info, with
# the bytes and lines of a process alone.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/mpi.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
. "${LOCKSTEP_SOURCE:?}/tests/support/mpi.sh" || exit 1
mpi_or_skip

small_net >net.prototxt
small_solver 'snapshot_format: HDF5 snapshot_diff: true debug_info: true display: 10' >solver.prototxt
train 0
grep '^    \[' log >lines
[ "$(wc -l <lines)" -gt 20 ] || fail "debug_info tells little"
mkdir alone
mv s_iter_* alone
train 0 -- --resume alone/s_iter_10.solverstate.h5
mkdir again
mv s_iter_* again
for kind in $(mpi_kinds); do
    for ranks in 2 3; do
        expect 0 -- "mpirun.$kind" -n $ranks "$LOCKSTEP" train --overwrite --solver solver.prototxt
        grep '^    \[' log | cmp - lines || fail "$kind, $ranks ranks: other lines"
        for file in alone/*; do
            cmp "$file" "${file#alone/}" || fail "$kind, $ranks ranks: other bytes"
        done
        expect 0 -- "mpirun.$kind" -n $ranks "$LOCKSTEP" train --overwrite --solver solver.prototxt \
            --resume alone/s_iter_10.solverstate.h5
        for file in again/*; do
            cmp "$file" "${file#again/}" || fail "$kind, $ranks ranks: other bytes after a resume"
        done
    done
done
finish
