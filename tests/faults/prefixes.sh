#!/bin/bash
# The snapshots that a training resumes from and overwrites: from the best one, under another
# prefix, over those of an earlier training, beside a running training.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# run STATUS [TEXT...] -- OPTIONS...: a training that overwrites nothing unasked.
run() {
    local wanted=$1 texts=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    expect "$wanted" ${texts[@]+"${texts[@]}"} -- "$LOCKSTEP" train --solver solver.prototxt \
        --workers 2 "$@"
}

# ---- From the best one ----------------------------------------------------------------------------
small_solver 'test_interval: 10 test_iter: 0 snapshot_best: "loss"' |
    sed 's/max_iter: 20/max_iter: 40/' >solver.prototxt
run 0 'Best loss so far: .*kept as a_best.safetensors' -- --snapshot-prefix a --log-json a.json
cmp a_best.safetensors a_iter_40.safetensors || fail "the best one is not the last one"
# Under another prefix; copied alone; another snapshot than the best one.
mkdir copy
cp a_best.safetensors copy/x.safetensors
run 0 'iteration 40' 'kept as b_best' -- --resume a_best.safetensors --snapshot-prefix b
run 0 'iteration 40' 'kept as c_best' -- --resume copy/x.safetensors --snapshot-prefix c
run 0 'iteration 40' 'kept as d_best' -- --resume a_iter_40.safetensors --snapshot-prefix d
run 0 'iteration 40' -- --resume a_iter_40.safetensors --snapshot-prefix e --iterations 40
for prefix in b c d e; do
    cmp a_iter_40.safetensors ${prefix}_iter_40.safetensors || fail "$prefix: no snapshot, or another"
done
# Under its own prefix, when its number is gone.
rm a_iter_40.safetensors
# A report finds it by the log.
expect 0 '!goes without' -- "$LOCKSTEP" report a.json -o a.html --model net.prototxt
grep -q 'what they were taken for' a.html || fail "the report does not know the best snapshot"
run 0 'Resuming from a_best.safetensors, iteration 40' 'kept as a_best' -- --snapshot-prefix a \
    --resume a_best.safetensors
cmp a_iter_40.safetensors b_iter_40.safetensors || fail "from the best one: other bytes"
# Where the best one is not the last: rates that make it worse from 20 on, one file kept.
run 0 'Stopped after iteration' -- --snapshot-prefix w --iterations 20
run 0 'Optimization Done' -- --snapshot-prefix w --resume w_iter_20.safetensors --set base_lr=1.5 \
    --set snapshot_keep=1
[ ! -e w_iter_20.safetensors ] || fail "snapshot_keep has kept it"
run 0 'Resuming from w_best.safetensors' 'Optimization Done' -- --snapshot-prefix w \
    --resume w_best.safetensors --set snapshot_keep=1

# ---- Over an earlier training ---------------------------------------------------------------------
small_solver >solver.prototxt
rm -f ./*.safetensors
run 0 'Optimization Done' -- --log-json log.json
cp s_iter_20.safetensors log.json copy
run 2 '^lockstep: s_iter_20.safetensors: snapshots of an earlier training are there. hint: --resume auto' \
    '!Iteration' '!Batch' -- --log-json log.json
cmp log.json copy/log.json || fail "the log of the earlier training is gone"
run 2 'are there' -- --set random_seed=4
run 2 'are there' -- --resume copy/s_iter_20.safetensors
[ "$(find . -newer copy/log.json -name 's_*' | wc -l)" = 0 ] || fail "something was written"
run 0 'Optimization Done' -- --overwrite --set random_seed=4 --log-json log.json
! cmp -s s_iter_20.safetensors copy/s_iter_20.safetensors || fail "not written over"
head -n 1 log.json | grep -q '"\(run\|start\)"' || fail "the log does not begin with the training"
[ "$(grep -c '"event": "end"' log.json)" = 1 ] || fail "the log has two trainings"
run 0 'iteration 20' -- --resume s_iter_20.safetensors --set random_seed=4 --log-json log.json
[ "$(grep -c '"event": "end"' log.json)" = 2 ] || fail "a resume does not continue the log"

# ---- auto -----------------------------------------------------------------------------------------
# The newest is of another training, with the default's seed or another rate: it is passed over.
rm -f ./*.safetensors
run 0 -- --set max_iter=40
rm s_iter_10.safetensors
run 0 -- --overwrite --set base_lr=0.002 --iterations 10
run 0 'warning: skipping s_iter_40.safetensors: the snapshot was made with another base_lr: 0.01, now 0.002' \
    'Resuming from s_iter_10.safetensors' 'Optimization Done' -- --resume auto --set base_lr=0.002
# None fits: what is meant must be said.
run 5 '^lockstep: s_iter_40.safetensors: .*another base_lr: 0.01, now 0.3. hint: --resume s_iter_40' \
    '!Iteration' -- --resume auto --set base_lr=0.3
run 5 's_iter_40.safetensors: .*another random_seed' -- --resume auto --set random_seed=8
# A length that changes is said loudly; a changed rate stands in all later snapshots.
run 0 'warning: Resume changes max_iter: 40 -> 41' -- --resume auto --set max_iter=41
run 0 '^Resume changes base_lr: 0.01 -> 0.02' '!warning: Resume' -- --set base_lr=0.02 \
    --resume s_iter_40.safetensors --set max_iter=50
run 0 'Resuming from s_iter_50' -- --resume auto --set base_lr=0.02 --set max_iter=60
grep -aq '"course":"40 base_lr: 0.01 -> 0.02"' s_iter_60.safetensors || fail "no trace of two rates"
! grep -aq '"course"' s_iter_41.safetensors || fail "a course without a change of rates"

# ---- Comparing ------------------------------------------------------------------------------------
cp s_iter_40.safetensors first.safetensors
run 0 'Optimization Done' -- --snapshot-prefix d --set max_iter=40 --set display=7
expect 0 'definition, display: unset and 7' '^The same tensors: [0-9]+' '!^tensor' -- \
    "$LOCKSTEP" diff first.safetensors d_iter_40.safetensors
run 0 'Optimization Done' -- --snapshot-prefix d --set random_seed=4 --overwrite
expect 8 "^tensor 'conv.weight': 36 of 36 elements differ, by [0-9.e-]+ of their norm, at most by [0-9.e-]+ \(element [0-9]+\); the first is 0: -?[0-9.e-]+ and" \
    "note 'iteration': 40 and 20" 'definition, random_seed: 3 and 4' \
    '^lockstep: [0-9]+ tensors differ, 2 of them weights|^lockstep: [0-9]+ tensors differ, [34]' -- \
    "$LOCKSTEP" diff first.safetensors d_iter_20.safetensors
expect 5 'none.safetensors: cannot open' -- "$LOCKSTEP" diff first.safetensors none.safetensors

# ---- Two at once ----------------------------------------------------------------------------------
small_solver 'display: 1' | sed 's/max_iter: 20/max_iter: 1000000/; s/snapshot: 10/snapshot: 0/' \
    >solver.prototxt
rm -f ./*.safetensors
"$LOCKSTEP" train --solver solver.prototxt --workers 1 >first 2>&1 </dev/null &
pid=$!
for ((i = 0; i < 3000; i++)); do
    ! grep -q '^Iteration [3-9]' first || break
    sleep 0.01
done
if flock -n .s.lock true; then
    echo "this file system has no locks: two trainings at once are not tested"
else
    run 2 "^lockstep: .s.lock: another training writes these snapshots: process $pid on " \
        '!Iteration' -- --overwrite
    run 0 'Stopped after iteration' -- --snapshot-prefix other --iterations 2
fi
# One that was killed holds nothing any more.
kill -9 $pid
wait $pid 2>/dev/null
run 0 'Stopped after iteration' -- --iterations 2
[ ! -e .s.lock ] || fail "the lock is left"
finish
