#!/bin/bash
# The device is an option of every command that computes: a training on the reference device gives
# the same bytes on any number of workers and ranks and after a resume, figures near those of the
# CPU, and snapshots that name the device, so that another one does not go on without being told to.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

cp "$LOCKSTEP_SOURCE"/examples/digits/lenet_*.prototxt .
sed -i 's/batch_size: 64/batch_size: 8/; s/batch_size: 100/batch_size: 10/; s/count: 10000 /count: 20 /' \
    lenet_train_test.prototxt
sed -i 's/test_interval: 500/test_interval: 3/; s/display: 100/display: 1/' lenet_solver.prototxt
solver=(--solver lenet_solver.prototxt)

train=("$LOCKSTEP" train "${solver[@]}" --overwrite)

# Names
expect 0 'devices=cpu, reference' -- "$LOCKSTEP" --version
expect 2 "no device 'abacus'" 'cpu, reference' -- "${train[@]}" --device abacus --snapshot-prefix a --iterations 1
expect 2 "device reference has no instruction sets" -- \
    "${train[@]}" --device reference --snapshot-prefix a --isa avx2 --iterations 1

# The same bytes; figures near those of the CPU.
hash() { sed -nE 's/^ .* ([0-9a-f]{64})  .*/\1/p' log | sort -u; }
expect 0 -- "$LOCKSTEP" verify "${solver[@]}" --workers 1,2 --iterations 3
other=$(hash)
expect 0 -- "$LOCKSTEP" verify "${solver[@]}" --device reference --workers 1,3 --ranks 1,2 --iterations 3 \
    --resume random:1
[ -n "$(hash)" ] && [ "$(hash)" != "$other" ] || fail "verify computes the same on two devices: $other"
figures() { sed -nE 's/.*(Iteration [0-9]+).* (loss = [0-9.e+-]+)$/\1 \2/p' log; }
expect 0 -- "${train[@]}" --device cpu --snapshot-prefix c --iterations 3 --workers 1
figures >cpu.txt
expect 0 -- "${train[@]}" --device reference --snapshot-prefix r --iterations 3 --workers 2
figures >reference.txt
[ "$(wc -l <cpu.txt)" -ge 3 ] || fail "the CPU's training says no losses"
paste -d ' ' cpu.txt reference.txt | awk '{ d = $5 - $10; if (d < 0) d = -d; if (d > 1e-4 * $5) exit 1 }' ||
    fail "figures differ: $(paste cpu.txt reference.txt)"

# A snapshot names its device, and goes on there alone.
grep -qa 'device=reference' r_iter_3.safetensors || fail "a snapshot does not name its device"
! grep -qa 'device=' c_iter_3.safetensors || fail "a snapshot of the CPU names a device"
expect 0 'Resuming' -- \
    "${train[@]}" --device reference --snapshot-prefix r2 --resume r_iter_3.safetensors --iterations 4
expect 8 'device reference, here cpu' '--device reference' -- \
    "${train[@]}" --device cpu --snapshot-prefix x --resume r_iter_3.safetensors --iterations 4
expect 8 'device cpu, here reference' '--device cpu' -- \
    "${train[@]}" --device reference --snapshot-prefix x --resume c_iter_3.safetensors --iterations 4
expect 0 'device=reference until 3' -- \
    "${train[@]}" --device cpu --snapshot-prefix x --resume r_iter_3.safetensors --iterations 4 --allow-other-numerics

# Every command that computes.
expect 0 'accuracy' -- \
    "$LOCKSTEP" test --model lenet_train_test.prototxt --weights r_iter_3.safetensors --device reference
expect 0 'Resuming' 'the same weights as in r2_iter_4' -- "$LOCKSTEP" replay "${solver[@]}" --device reference \
    --from r_iter_3.safetensors --to 4 --expect r2_iter_4.safetensors
expect 8 'device reference, here cpu' '--device reference' -- \
    "$LOCKSTEP" replay "${solver[@]}" --from r_iter_3.safetensors --to 4
predict=("$LOCKSTEP" predict --model lenet_train_test.prototxt --weights r_iter_3.safetensors --samples 4 --format json)
values() { sed -E 's/"value": /\n/g' | sed -nE 's/^([0-9][0-9.e+-]*).*/\1/p'; }
"${predict[@]}" --device cpu | values >cpu.txt
"${predict[@]}" --device reference | values >reference.txt
[ "$(wc -l <cpu.txt)" = 20 ] || fail "predictions have no values: $(cat cpu.txt)"
! cmp -s cpu.txt reference.txt || fail "predict computes the same on two devices"
paste -d ' ' cpu.txt reference.txt | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4 * $1) exit 1 }' ||
    fail "predictions differ: $(paste cpu.txt reference.txt)"
expect 0 'reference' -- "$LOCKSTEP" plan "${solver[@]}" --device reference --json
expect 0 -- "$LOCKSTEP" time "${solver[@]}" --device reference --iterations 1
for command in "plan ${solver[*]}" "time ${solver[*]}" "verify ${solver[*]}" "tune ${solver[*]}" \
    "test --model lenet_train_test.prototxt --weights r_iter_3.safetensors" \
    "predict --model lenet_train_test.prototxt --weights r_iter_3.safetensors --samples 1" \
    "replay ${solver[*]} --from r_iter_3.safetensors --to 4" \
    "plan --model lenet_train_test.prototxt"; do
    # shellcheck disable=SC2086 # words
    expect 2 "no device 'abacus'" -- "$LOCKSTEP" $command --device abacus
done
finish
