#!/bin/bash
# Audits by the program, on a build with a core that computes wrongly now and then: the core is
# named in the log, and the snapshot has the bytes of a training on sound cores. `replay` compares
# the hashes of weights in the log.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
faulty=${LOCKSTEP_BUILD:?}/tests/lockstep_faulty
[ -x "$faulty" ] || {
    echo "SKIPPED: $faulty is not built"
    exit 77
}
small_solver 'snapshot: 30' | sed '/^snapshot: 10/d; s/max_iter: 20/max_iter: 60/' >solver.prototxt

# run STATUS PREFIX PROGRAM [OPTIONS...]: trains to PREFIX_iter_60 with a log PREFIX.json.
run() {
    local wanted=$1 prefix=$2 program=$3
    shift 3
    expect "$wanted" -- "$program" train --solver solver.prototxt --snapshot-prefix "$prefix" \
        --log-json "$prefix.json" "$@"
    cp log "$prefix.log"
}
# said PREFIX TEXT...: the output of that run must hold it.
said() {
    cp "$1.log" log
    check_output "$@"
}

# ---- Hashes ----------------------------------------------------------------------------------
run 0 right "$LOCKSTEP" --workers 1
said right 'Hash of the weights: [0-9a-f]{16}; chain of the hashes every 20 iterations since 0: [0-9a-f]{16}'
hash=$(grep -o 'Hash of the weights.*' right.log)
[ "$(grep -c '"event": "hash"' right.json)" = 4 ] || fail "not three links and an end"
run 0 cut "$LOCKSTEP" --workers 3 --iterations 30
run 0 cut "$LOCKSTEP" --workers 2 --resume cut_iter_30.safetensors
grep -qF "$hash" cut.log || fail "another chain after a resume, on other numbers of workers"
cmp right_iter_60.safetensors cut_iter_60.safetensors || fail "other bytes after a resume"

# ---- Audits ----------------------------------------------------------------------------------
run 0 audited "$LOCKSTEP" --workers 2 --audit 0.4
said audited 'Audits: 40 % .* by another worker' \
    'Audits: [1-9][0-9]* micro-batches were computed a second time, with the same bits'
cmp right_iter_60.safetensors audited_iter_60.safetensors || fail "audits change the bytes"
run 0 lonely "$LOCKSTEP" --workers 1 --audit 0.1 --iterations 2
said lonely 'by the same worker' 'Hash of the weights: [0-9a-f]{16}$' # no link yet

export LOCKSTEP_FAULT=0,1,28,gradient
run 0 wrong "$faulty" --workers 2
! cmp -s right_iter_60.safetensors wrong_iter_60.safetensors || fail "the faulty core is not faulty"
run 0 found "$faulty" --workers 2 --audit 1
said found 'worker 1 on core [0-9]+ computed micro-batch [0-9]+ .* wrongly' \
    'audits: [0-9]+ micro-batches were computed a second time; [1-9][0-9]* computations were wrong' \
    '!worker 0 on core'
grep -q '"event": "audit".*"wrong": "update".*"worker": 1, "core": [0-9]' found.json ||
    fail "no word of it in the JSON log"
cmp right_iter_60.safetensors found_iter_60.safetensors || fail "what was found is not put right"
# One worker, a part of the micro-batches: of some seeds, those that draw the wrong one.
export LOCKSTEP_FAULT=0,0,300,gradient
hits=0
for seed in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    [ $hits -lt 2 ] || break
    rm -f part_iter_* whole_iter_*
    run 0 part "$faulty" --workers 1 --audit 0.5 --set random_seed=$seed
    # 480 micro-batches and 240 audits: two bits are wrong, and both must be found.
    [ "$(grep -c 'the update is computed again\|the update is right' part.log)" = 2 ] || continue
    hits=$((hits + 1))
    run 0 whole "$LOCKSTEP" --workers 2 --set random_seed=$seed
    cmp part_iter_60.safetensors whole_iter_60.safetensors || fail "seed $seed: not put right"
done
[ $hits != 0 ] || fail "no seed of sixteen has drawn what is wrong"
unset LOCKSTEP_FAULT

expect 2 'no number from 0 to 1' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --audit 5

# ---- Replaying -------------------------------------------------------------------------------
replay=("$LOCKSTEP" replay --solver solver.prototxt --from right_iter_30.safetensors --to 60)
files=$(ls)
expect 0 'Iteration 40: weights [0-9a-f]{16}, as in the log' \
    'the same as in 3 lines of the log; the same weights as in right_iter_60.safetensors' \
    -- "${replay[@]}" --workers 2 --log right.json --expect right_iter_60.safetensors
[ "$files" = "$(ls)" ] || fail "replay has written something"
expect 8 'wrong.json: the trainings part after iteration 30 and not later than 40' \
    -- "${replay[@]}" --workers 2 --log wrong.json
expect 8 'wrong_iter_60.safetensors: .*part after iteration 30 and not later than 60' \
    -- "${replay[@]}" --workers 2 --expect wrong_iter_60.safetensors
expect 0 'nothing was compared' -- "${replay[@]}"
expect 2 'is of iteration 30, not of 60' '!Iteration 40' -- "${replay[@]}" --workers 2 --expect right_iter_30.safetensors
sed -E '/"iteration": 30,/s/("weights": ")[0-9a-f]{4}/\1ffff/' cut.json >another.json
expect 8 'another.json: has other weights for iteration 30 .*another training' \
    -- "${replay[@]}" --log another.json
expect 2 'has no hashes' -- "${replay[@]}" --workers 2 --log net.prototxt
expect 2 'cannot be read' -- "${replay[@]}" --workers 2 --log there-is-none
expect 2 'to N is missing' -- "$LOCKSTEP" replay --solver solver.prototxt --from \
    right_iter_30.safetensors
expect 2 'is before the snapshot' -- "$LOCKSTEP" replay --solver solver.prototxt --from \
    right_iter_60.safetensors --to 30
# The same weights, after others in an earlier link.
sed -E 's/("chain": ")[0-9a-f]{4}/\1ffff/' right.json >other.json
expect 8 'had others before' -- "${replay[@]}" --workers 2 --log other.json
finish
