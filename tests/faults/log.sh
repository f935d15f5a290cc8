#!/bin/bash
# The log in JSON: every field means the same in every event, and speeds are those of training.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# field EVENT NAME: a line for each of these events, the iteration and the value of the field.
field() {
    sed -n 's/^{"event": "'"$1"'", "iteration": \([0-9]*\),.* "'"$2"'": \([^,}]*\).*/\1 \2/p' log.json
}

small_net >net.prototxt
small_solver 'display: 5 weight_decay: 0.01' >solver.prototxt
expect 0 -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --log-json log.json

# A display tells the loss of the update that its progress told, under the same number.
for name in loss data_loss; do
    field display $name >displays
    [ "$(wc -l <displays)" = 4 ] || fail "there are other displays than four: $(cat displays)"
    [ "$(field progress $name | grep -c -x -F -f displays)" = 4 ] ||
        fail "$name of displays and of progress differ"
done
[ "$(field display loss)" = "$(field display data_loss)" ] || fail "loss is not data_loss"
field display penalty >displays
[ "$(field progress penalty | grep -v ' null$')" = "$(cat displays)" ] ||
    fail "progress has another penalty than the displays, and those that were not measured"
! field display penalty | grep -q ' 0$\| null$' || fail "a display has no penalty"

# The facts of the run are figures.
[ "$(head -n 1 log.json | cut -c 1-15)" = '{"event": "run"' ] || fail "the log does not begin with the run"
for fact in batch=16 iter_size=1 workers=1 ranks=1 samples=300 max_iter=20 display=5 seed=3; do
    [ "$(field run "${fact%=*}")" = "0 ${fact#*=}" ] || fail "$fact is said as $(field run "${fact%=*}")"
done
field end loss | grep -q '^20 [0-9]' || fail "the end tells no loss"

# Less than an epoch is worth a warning where the definition says so, not where a run is cut.
epoch='warning: [0-9]+ iterations are less than an epoch .18.75.'
expect 0 "$epoch" -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --set max_iter=10
expect 0 "!$epoch" -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --iterations 10
expect 0 "!$epoch" -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --set max_iter=18

# A log without displays tells the loss all the same, also the last one.
small_solver 'display: 0' >solver.prototxt
expect 0 '^Iteration 0 .*loss = ' '^Iteration 10 .*loss = ' '^Iteration 19.*loss = ' 'Optimization Done' \
    -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --snapshot-prefix other
finish
