#!/bin/bash
# The example program of the library trains, and its model is the one that the command line makes
# from the same definition, on another number of workers, byte for byte.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    cat "$work/log"
    echo "FAILED: $*"
    exit 1
}
solver=$LOCKSTEP_SOURCE/examples/digits/lenet_solver.prototxt
example=$LOCKSTEP_BUILD/examples/library/train

for workers in 2 3; do
    "$example" "$solver" 15 $workers "$work/example$workers" >"$work/log" 2>&1 ||
        fail "exit status $? on $workers workers"
    grep -q '^15: loss [0-9]' "$work/log" || fail "no loss"
    grep -q '^accuracy = 0\.[0-9]' "$work/log" || fail "no accuracy"
done
cmp "$work/example2" "$work/example3" || fail "2 and 3 workers differ"

"$LOCKSTEP" train --overwrite --solver "$solver" --iterations 15 --workers 1 --snapshot-prefix "$work/cli" \
    >"$work/log" 2>&1 || fail "lockstep train"
cmp "$work/example2" "$work/cli_iter_15.safetensors" || fail "the command line's model differs"

status=0
"$example" "$work/missing.prototxt" 1 1 "$work/none" >"$work/log" 2>&1 || status=$?
[ $status = 3 ] || fail "a missing solver gives exit status $status"
grep -q 'missing.prototxt' "$work/log" || fail "which file is missing?"
echo "the example's model is the command line's"
