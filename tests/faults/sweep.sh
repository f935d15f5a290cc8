#!/bin/bash
# Sweeps: their runs have the bytes of trainings by hand; halving decides the same for any number
# of runs at a time; a sweep that was stopped or killed goes on, and leaves no training behind; what
# fails comes last; what makes no sense is refused.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

test_net swept >net.prototxt
small_solver 'test_interval: 10 average_loss: 5' >solver.prototxt
sweep() {
    local wanted=$1 texts=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    expect "$wanted" "${texts[@]}" -- "$LOCKSTEP" sweep --solver solver.prototxt "$@"
}

# ---- Combinations, the same bits as by hand, a run that diverges.
sweep 0 '^\[.*base_lr=0.1 batch=8: test/accuracy = [0-9.]+ after 20 updates' \
    '^\[.*base_lr=3e38 batch=16: FAILED: .*(not finite|is nan|inf)' \
    '^Result: test/accuracy$' 'To train the best one again: .*lockstep train --solver solver.prototxt --set' \
    -- --set base_lr=0.1,3e38 --set batch=16,8 --parallel 2 --output first
[ "$(grep -oE '(done|failed)$' log | tr '\n' ' ')" = 'done done failed failed ' ] ||
    fail "what fails does not come last: $(cat log)"
for batch in 16 8; do
    expect 0 -- "$LOCKSTEP" train --solver solver.prototxt --set base_lr=0.1 --set batch=$batch \
        --snapshot-prefix hand$batch
    cmp hand${batch}_iter_20.safetensors "first/base_lr=0.1,batch=$batch/snapshot_iter_20.safetensors" ||
        fail "batch $batch: other bytes than by hand"
done
cmp -s hand16_iter_20.safetensors hand8_iter_20.safetensors && fail "batch changes nothing"
grep -q '"batch": 8,' "first/base_lr=0.1,batch=8/log.json" || fail "batch=8 does not reach the net"
grep -q '"state": "failed"' first/sweep.json || fail "no failure in sweep.json"
grep -q 'content="lockstep"' first/report.html || fail "no report"

# The same again trains nothing; the failures are known.
before=$(cat first/*/log.json | wc -l)
cp first/sweep.json before.json
sweep 0 'FAILED' -- --set base_lr=0.1,3e38 --set batch=16,8 --output first
[ "$(cat first/*/log.json | wc -l)" = "$before" ] || fail "what is finished is trained again"
cmp first/sweep.json before.json || fail "another sweep.json"
# With one more value only its runs are trained.
sweep 0 'batch=8: test' 'batch=4: test' -- --set base_lr=0.1 --set batch=16,8,4 --output more
sweep 0 '!batch=8: test' 'batch=2: test' -- --set base_lr=0.1 --set batch=16,8,4,2 --output more
# Another definition, or other data, is told.
sed -i 's/momentum: 0.9/momentum: 0.8/' solver.prototxt
sweep 2 'has a run of another definition' -- --set base_lr=0.1 --set batch=16,8 --output more
sed -i 's/momentum: 0.8/momentum: 0.9/' solver.prototxt
sed -i 's/count: 64/count: 32/' net.prototxt
sweep 2 'has a run of another definition' -- --set base_lr=0.1 --set batch=16,8 --output more
sed -i 's/count: 32/count: 64/' net.prototxt

# Other data, too.
cp net.prototxt digits.prototxt
idx_images 60 8 >images
idx_labels 60 >labels
small_net 'backend: IDX source: "images" label_source: "labels"' >net.prototxt
sweep 0 '^\[2/2\]' -- --set base_lr=0.1,0.01 --output idx
sweep 0 '!^\[' -- --set base_lr=0.1,0.01 --output idx
printf x | poke images 20
sweep 5 'trained on other data' 'the runs in idx cannot go on' -- --set base_lr=0.1,0.01 --output idx
mv digits.prototxt net.prototxt

# ---- Halving, one at a time and three, on any number of cores.
mkdir a b
rates='base_lr=0.0001,0.03,3e38,0.1,0.01'
halve() {
    local so_far=$failures
    (cd "$1" || exit 1
    shift
    expect 0 'After 5 updates 2 of 5 runs go on' 'After 10 updates 1 of 5 runs go on' -- \
        "$LOCKSTEP" sweep --solver ../solver.prototxt --set "$rates" --halving 5 --metric loss "$@"
    [ "$failures" = "$so_far" ]) || fail "halving with $*"
}
halve a --parallel 1 --workers 1
halve b --parallel 3 --workers 4
cmp a/sweep/sweep.json b/sweep/sweep.json || fail "halving depends on --parallel"
[ "$(grep -o '"state": "stopped"' a/sweep/sweep.json | wc -l)" = 3 ] || fail "not 3 runs are stopped"
# What an earlier sweep trained past a rung has that rung's figures all the same.
mkdir c
(cd c && expect 0 -- "$LOCKSTEP" sweep --solver ../solver.prototxt --set base_lr=0.03,3e38,0.01)
before=$(sha256sum c/sweep/*/log.json c/sweep/*/snapshot_iter_*)
halve c --parallel 2
cmp a/sweep/sweep.json c/sweep/sweep.json || fail "halving depends on an earlier sweep"
echo "$before" | sha256sum --check --quiet || fail "what was trained is trained over"
best=$(sed -n 's/.*"runs": \[{"place": 1, [^{]*"folder": "\(base_lr=[^"]*\)".*/\1/p' a/sweep/sweep.json)
[ -n "$best" ] || fail "no best run: $(cat a/sweep/sweep.json)"
expect 0 -- "$LOCKSTEP" train --solver solver.prototxt --set "$best" --snapshot-prefix hand
cmp hand_iter_20.safetensors "a/sweep/$best/snapshot_iter_20.safetensors" ||
    fail "a run that was stopped at rungs has other bytes than one by hand"

# ---- Stopped and killed.
long=(--set max_iter=1000000 --set test_interval=1000000)
longer=(--set max_iter=900 --set test_interval=900 --set snapshot=0)
wait_for_runs() {
    local i
    for ((i = 0; i < 3000; i++)); do
        [ "$(grep -l '"event": "test"' "$1"/*/log.json 2>/dev/null | wc -l)" = 2 ] && sleep 0.05 && return
        sleep 0.01
    done
    fail "the runs do not begin: $(cat log)"
}
# ends_all FOLDER: no process trains in there any more.
ends_all() {
    local i own="${1%?}[${1: -1}]/base_lr" # what looks for it is no such process
    for ((i = 0; i < 1000; i++)); do
        cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -q -- "$own" || return 0
        sleep 0.02
    done
    fail "trainings of $1 are left"
}
for signal in INT KILL; do
    rm -rf "$work/s-$signal"
    "$LOCKSTEP" sweep --solver solver.prototxt --set base_lr=0.1,0.01 "${long[@]}" --parallel 2 \
        --output "$work/s-$signal" >log 2>&1 </dev/null &
    pid=$!
    wait_for_runs "$work/s-$signal"
    kill -$signal $pid
    status=0
    wait $pid 2>/dev/null || status=$?
    ends_all "$work/s-$signal"
    [ $signal = KILL ] || [ $status = 75 ] || fail "SIG$signal: status $status: $(cat log)"
    [ $signal = KILL ] || check_output "SIGINT" 'Stopping with snapshots' 'To go on: .*lockstep sweep'
    [ "$(find "$work/s-$signal" -name 'snapshot_iter_*' | wc -l)" -ge 2 ] || fail "SIG$signal: no snapshots"
done
# What was killed goes on from its snapshots: the same command, and a line cut off in a log is no harm.
# On a fast machine it may have ended before it was killed.
for ((attempt = 0; attempt < 10; attempt++)); do
    rm -rf killed
    "$LOCKSTEP" sweep --solver solver.prototxt --set base_lr=0.1,0.01 "${longer[@]}" --parallel 2 \
        --output killed >log 2>&1 </dev/null &
    pid=$!
    wait_for_runs killed
    kill -KILL $pid
    wait $pid 2>/dev/null || true
    ends_all killed
    [ -e killed/base_lr=0.1/snapshot_iter_900.safetensors ] || break
done
printf '{"event": "prog' >>killed/base_lr=0.1/log.json
sweep 0 'base_lr=0.1: test/accuracy' -- --set base_lr=0.1,0.01 "${longer[@]}" \
    --parallel 2 --output killed
grep -qxF '{"event": "prog' killed/base_lr=0.1/log.json || fail "a line goes on behind one that was cut off"
grep -q 'Resuming from killed/base_lr=0.1/' killed/base_lr=0.1/output.txt || fail "it began anew"
expect 0 -- "$LOCKSTEP" train --solver solver.prototxt --set base_lr=0.1 "${longer[@]}" --snapshot-prefix whole
cmp whole_iter_900.safetensors killed/base_lr=0.1/snapshot_iter_900.safetensors ||
    fail "a run that was killed has other bytes"

# ---- What is drawn, shown and refused.
sweep 0 '^5 runs' '--set base_lr=0.0[0-9]+ --set batch=[1-4]$' '!loss' -- --random 5 --seed 3 \
    --set base_lr=log:1e-2..9e-2 --set batch=int:1..4 --dry-run --output dry
[ ! -e dry ] || fail "--dry-run makes a folder"
sweep 2 'sweep: --set FIELD=VALUES is missing' --
sweep 2 'a value is missing' -- --set base_lr=
sweep 2 "a field, '='" -- --set =1
sweep 2 "'base_lr' is set twice" -- --set base_lr=1 --set base_lr=2
sweep 2 'these are 1331 combinations, and a sweep has at most 1000 runs.*--random N' -- \
    --set base_lr=1,2,3,4,5,6,7,8,9,10,11 --set gamma=1,2,3,4,5,6,7,8,9,10,11 \
    --set power=1,2,3,4,5,6,7,8,9,10,11
sweep 2 'there are only 2 combinations' -- --set base_lr=1,2 --random 3
sweep 2 'of a range values must be drawn.*--random N' -- --set base_lr=log:1e-3..1
sweep 3 "unknown field 'base_lrr'.*did you mean 'base_lr'" -- --set base_lrr=1,2
sweep 3 'a batch is a number of samples' -- --set batch=0
sweep 2 "'middle' is neither" -- --set base_lr=1 --best middle
sweep 2 '--factor goes with --halving' -- --set base_lr=1 --factor 2
sweep 2 '--seed goes with --random' -- --set base_lr=1 --seed 2
sweep 2 "test/acuracy.*no such output.*did you mean test/accuracy" -- --set base_lr=0.1,0.2 \
    --metric test/acuracy --output typo
mkdir others
echo mine >others/sweep.json
sweep 2 'others/sweep.json was not written by lockstep' -- --set base_lr=0.1 --output others
# A pipe in the place of a file is told, and not waited for.
for file in sweep.json report.html base_lr=0.1,batch=16/definition base_lr=0.1,batch=16/log.json; do
    mv "first/$file" kept
    mkfifo "first/$file"
    sweep 7 "first/$file: cannot be read: No such device" -- --set base_lr=0.1,3e38 --set batch=16,8 --output first
    mv kept "first/$file"
done
[ "$(cat others/sweep.json)" = mine ] || fail "a file was written over"
# One value of several that cannot be used: told, and last.
sweep 0 'batch=0: FAILED: .*a number of samples' 'batch=8: test' -- --set batch=0,8 --output values
finish
