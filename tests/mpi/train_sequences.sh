#!/bin/bash
# Nets of sequences on several ranks: attention with dropout over packed documents and over lengths that
# differ, tied tables, streams that go on from update to update; where ranks take what they can, and resumed on
# another number of them. The same bytes as of one process.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1
# shellcheck source=tests/support/sequences.sh
. "$LOCKSTEP_SOURCE/tests/support/sequences.sh" || exit 1

# resumed KIND: two updates on two ranks, the others on three.
resumed() {
    expect 0 '^Workers: 2 on 2 ranks ' -- "mpirun.$1" -n 2 "$LOCKSTEP" train --overwrite --solver solver.prototxt \
        --workers 1 --iterations 2 --snapshot-prefix half
    job "$1" 3 1 --resume half_iter_2.safetensors
}

sequence_data
for r in "${!sequences[@]}"; do
    sequence_solver "${sequences[r]}"
    alone 4
    for k in "${!kinds[@]}"; do
        if [ -n "${LOCKSTEP_ALL:-}" ] || [ $(((r + k) % 2)) = 0 ]; then # else in turn
            job "${kinds[k]}" 2 2 --balance dynamic
        fi
        if [ -n "${LOCKSTEP_ALL:-}" ] || [ $(((r + k) % 2)) = 1 ]; then
            resumed "${kinds[k]}"
        fi
    done
done
finish
