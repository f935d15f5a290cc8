#!/bin/bash
# Audits on several ranks: a core that computes wrongly is named with its rank and host, in the log
# and in status.json, and the snapshot has the bytes of a training on sound cores.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1
faulty=$LOCKSTEP_BUILD/tests/lockstep_faulty
[ -x "$faulty" ] || {
    echo "skipped: $faulty is not built"
    exit 77
}

small_net >net.prototxt
small_solver >solver.prototxt
alone 20
for kind in "${kinds[@]}"; do
    for balance in static dynamic; do
        expect 0 'Audits: 100 % .* by another rank' \
            'rank 1 on [^ ]+, worker 0 on core [0-9]+ computed micro-batch .* wrongly' \
            '!rank 0 on' 'computations were wrong' -- env LOCKSTEP_FAULT=1,0,19,gradient \
            LOCKSTEP_MPI="$LOCKSTEP_BUILD/liblockstep_$kind.so" "mpirun.$kind" -n 2 "$faulty" \
            train --solver solver.prototxt --workers 1 --snapshot-prefix job --audit 1 \
            --balance "$balance" --log-json job.json
        compare "$kind, $balance"
        grep -q '"status": "finished".*"wrong": [1-9].*"last_wrong": ".*rank 1 on .*core' \
            status.json || fail "status.json does not say it: $(cat status.json)"
        grep -q '"event": "audit".*"host": "[^"].*"rank": 1, "worker": 0' job.json ||
            fail "the JSON log does not say it"
    done
done
expect 8 'audited' -- "mpirun.${kinds[0]}" -n 1 "$LOCKSTEP" train --overwrite --solver solver.prototxt \
    --workers 1 --audit 0.5 : -n 1 "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1
finish
