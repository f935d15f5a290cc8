#!/bin/bash
# Measures Lockstep against PyTorch: ./run bench calls it when the programs are built. All arguments
# go to bench.py, or behind --ranks to ranks.py (several ranks), which say what they are (--help).
#
# bench/peer/python.sh makes the peer's environment; LOCKSTEP_PEER_PYTHON may name another.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${LOCKSTEP_BUILD:-$root/build}

peer=$("$root/bench/peer/python.sh")
program=bench.py
if [ "${1:-}" = --ranks ]; then
    program=ranks.py
    shift
fi
exec python3 "$root/bench/$program" --build "$build" --peer "$peer" "$@"
