#!/bin/bash
# The example of arrays, as NumPy writes them: it trains, with the same bytes on 1 and 3 workers.
# Skipped where there is no NumPy.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
python3 -c 'import numpy' 2>/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$LOCKSTEP_SOURCE"/examples/arrays/* .
python3 make_arrays.py
for workers in 1 3; do
    "$LOCKSTEP" train --solver arrays_solver.prototxt --workers $workers --snapshot-prefix "w$workers" >log 2>&1 ||
        { cat log; exit 1; }
done
cmp w1_iter_400.safetensors w3_iter_400.safetensors
loss=$(sed -n 's/.*Test net output #0: loss = \([0-9.e-]*\).*/\1/p' log | tail -1)
python3 -c "import sys; sys.exit(not float(sys.argv[1]) < 0.1)" "$loss" || { echo "FAILED: the loss of the test is $loss"; exit 1; }
echo "arrays of NumPy: the same bytes on 1 and 3 workers, loss $loss"
