#!/bin/bash
# The example of an LSTM that reads a text character by character, with Lockstep's documentation as
# the text: it learns, with the same bytes on 1 and 3 workers and from a snapshot, which has the
# states that go on from update to update.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
command -v python3 >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$LOCKSTEP_SOURCE"/examples/char_lstm/* .
cat "$LOCKSTEP_SOURCE"/docs/*.md | tr 'A-Z' 'a-z' | tr -cd 'a-z \n' | head -c 100000 >input.txt

# The stream ends with update 43, and begins again.
train()
{
    local prefix=$1
    shift
    "$LOCKSTEP" train --solver char_lstm_solver.prototxt --set test_interval=25 --set max_iter=50 \
        --snapshot-prefix "$prefix" "$@" >log 2>&1 || { cat log; exit 1; }
}
train w1 --workers 1
train w3 --workers 3
loss=$(sed -n 's/.*Test net output #1: loss = \([0-9.e-]*\).*/\1/p' log | tail -1)
python3 -c "import sys; sys.exit(not float(sys.argv[1]) < 3.0)" "$loss" ||
    { echo "FAILED: the loss of the test is $loss"; exit 1; }
train half --workers 3 --iterations 30
train half --workers 1 --resume half_iter_30.safetensors
for prefix in w3 half; do
    cmp w1_iter_50.safetensors ${prefix}_iter_50.safetensors
done
for name in hidden cell; do
    grep -qa "state.sample.lstm.$name" w1_iter_50.safetensors ||
        { echo "FAILED: the snapshot has no state 'lstm.$name'"; exit 1; }
done

# Where every window begins a stream, other weights are trained.
sed -i 's/order: STREAMS/order: FORWARD/' char_lstm_train_test.prototxt
train alone --workers 3
cmp -s w1_iter_50.safetensors alone_iter_50.safetensors &&
    { echo "FAILED: states do not go on from update to update"; exit 1; }

# The vocabulary is that of the snapshot: another text is refused.
sed -i 's/order: FORWARD/order: STREAMS/' char_lstm_train_test.prototxt
tr 'q' '#' <input.txt >other && mv other input.txt
for command in "train --solver char_lstm_solver.prototxt --resume w3_iter_50.safetensors --set max_iter=60" \
    "test --model char_lstm_train_test.prototxt --weights w3_iter_50.safetensors"; do
    # shellcheck disable=SC2086
    "$LOCKSTEP" $command >log 2>&1 && { echo "FAILED: $command takes another vocabulary"; exit 1; }
    grep -q "class names\|its vocabulary has" log || { cat log; exit 1; }
done
echo "a text character by character: the same bytes on 1 and 3 workers and resumed, loss $loss"
