#!/bin/bash
# Ranks with different limits on memory and numbers of workers, which take micro-batches from a
# work queue: large products are gathered on some ranks and not on others; two batches in an
# update, and a test of several batches. The same bytes.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1

test_net ranks_memory >net.prototxt
small_solver 'micro_batch: 3 iter_size: 2 test_interval: 2 test_iter: 3' >solver.prototxt
alone 4

# least WORKERS: the least memory that each of two ranks can do with.
least() {
    "mpirun.${kinds[0]}" -n 2 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers "$1" \
        --balance dynamic --memory 1MiB 2>&1 </dev/null |
        awk -v RS='needs at least ' 'NR == 2 { printf "%.1fMiB", $1 }'
}
one=$(least 1) two=$(least 2)
[ -n "$one" ] && [ -n "$two" ] || fail "no message says the least"

# limits KIND OPTIONS : OPTIONS: two ranks.
limits() {
    local kind=$1 line word
    shift
    line=(-n 1 "$LOCKSTEP" train --overwrite)
    for word in "$@"; do
        if [ "$word" = : ]; then
            line+=("${common[@]}" : -n 1 "$LOCKSTEP" train --overwrite)
        else
            line+=("$word")
        fi
    done
    expect 0 ' on 2 ranks ' 'Optimization Done|Stopped after iteration' -- "mpirun.$kind" "${line[@]}" "${common[@]}"
    compare "$kind: $*"
}
common=(--solver solver.prototxt --iterations 4 --snapshot-prefix job --timeout 60
    --balance dynamic)
for kind in "${kinds[@]}"; do
    limits "$kind" --workers 1 --memory "$one" : --workers 3 --memory 2GiB
    limits "$kind" --workers 1 : --workers 2 --memory "$two"
    limits "$kind" --workers 1 --memory "$one" : --workers 1
    limits "$kind" --workers 2 --memory "$two" : --workers 1
done
finish
