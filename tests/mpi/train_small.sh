#!/bin/bash
# Small nets on several ranks: dropout, clipping by the norm of all gradients, factors of a large
# inner product, averaged weights; then batches that neither micro-batches nor ranks divide, with
# several of them in an update, and a test in between. The same bytes.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1

test_net ranks_small batch=64 >net.prototxt
small_solver 'clip_gradients: 0.5 weight_decay: 0.001 weight_average { decay: 0.9 } type: "Adam"' |
    sed '/^momentum/d' >solver.prototxt
alone 6
jobs

test_net ranks_small batch=37 >net.prototxt
small_solver 'iter_size: 2 test_interval: 3 test_iter: 3 type: "Nesterov"' >solver.prototxt
alone 6
jobs
for kind in "${kinds[@]}"; do
    uneven "$kind" 1 2 3
    job "$kind" 4 1 --balance dynamic
done
finish
