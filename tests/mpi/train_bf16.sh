#!/bin/bash
# precision: BF16 on ranks whose processors are of different types: one rank is pinned to a narrower
# instruction set, or computes on another device, and a snapshot goes on with another one. The same
# bytes as of one process.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1

"$LOCKSTEP" --version | grep -qE '^isa=avx512' || {
    echo "skipped: needs a processor with two instruction sets that have FMA"
    exit 77
}
test_net ranks_small batch=37 >net.prototxt
small_solver 'precision: BF16 iter_size: 2 type: "Nesterov"' >solver.prototxt
alone 4
common=(--overwrite --solver solver.prototxt --snapshot-prefix job)
for kind in "${kinds[@]}"; do
    expect 0 '^Workers: 3 on 2 ranks ' -- "mpirun.$kind" \
        -n 1 "$LOCKSTEP" train "${common[@]}" --iterations 4 --workers 2 --isa avx2 : \
        -n 1 "$LOCKSTEP" train "${common[@]}" --iterations 4 --workers 1 --isa avx512
    compare "$kind, ranks of two instruction sets"
    expect 0 '^Workers: 3 on 2 ranks ' -- "mpirun.$kind" \
        -n 1 "$LOCKSTEP" train "${common[@]}" --iterations 4 --workers 2 --device reference : \
        -n 1 "$LOCKSTEP" train "${common[@]}" --iterations 4 --workers 1
    compare "$kind, ranks of two devices"
done
finish
