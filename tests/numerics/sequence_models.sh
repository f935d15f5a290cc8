#!/bin/bash
# Nets of sequences, whole: packed documents, lengths that differ, streams that go on; attention with dropout,
# tables that are tied to the scores, rows of tables, blocks that repeat, several batches in an update. The same
# bytes on any number of workers and ranks, with any limit on memory, after a resume.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/faults.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
# shellcheck source=tests/support/sequences.sh
. "$LOCKSTEP_SOURCE/tests/support/sequences.sh" || exit 1

sequence_data
for row in "${sequences[@]}"; do
    sequence_solver "$row"
    expect 0 'same|identical|equal' -- "$LOCKSTEP" verify --solver solver.prototxt --workers 1,2,3,5 --ranks 1,2,3 \
        --memory full,least --iterations 4 --resume random:1
done
finish
