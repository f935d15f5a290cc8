#!/bin/bash
# The log of a job goes into a file: plain lines, although Open MPI gives its ranks a terminal.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1

small_net >net.prototxt
small_solver 'display: 2' >solver.prototxt
export TERM=xterm
for kind in "${kinds[@]}"; do
    expect 0 '^Iteration 2 .*, loss = ' '!'$'\r' '!'$'\033' -- "mpirun.$kind" -n 2 "$LOCKSTEP" train --overwrite \
        --solver solver.prototxt --workers 1 --iterations 4 --snapshot-prefix "$kind"
done
finish
