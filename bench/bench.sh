#!/bin/bash
# Measures Lockstep against PyTorch: ./run bench calls it when the programs are built. All arguments
# go to bench.py, or behind --ranks to ranks.py (several ranks), which say what they are (--help).
#
# The peer's environment is a virtual environment in the build folder, made once; or any interpreter
# that has PyTorch, named by LOCKSTEP_PEER_PYTHON.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${LOCKSTEP_BUILD:-$root/build}

make_peer() {
    local folder=$1 log=$1.log
    printf '== Installing PyTorch in %s (once)\n' "$folder" >&2
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    # Whoever has an index with the build for processors alone, which is smaller in every way, sets
    # PIP_INDEX_URL.
    if ! { python3 -m venv "$folder" && "$folder/bin/pip" install torch numpy &&
        touch "$folder/ready"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "PyTorch could not be installed; LOCKSTEP_PEER_PYTHON may name an interpreter with it"
    fi
}

die() {
    printf 'bench: %s\n' "$*" >&2
    exit 1
}

peer=${LOCKSTEP_PEER_PYTHON:-}
if [ -z "$peer" ]; then
    [ -e "$build/bench/peer/ready" ] || make_peer "$build/bench/peer"
    peer=$build/bench/peer/bin/python
fi
[ -x "$(command -v "$peer")" ] || die "there is no interpreter '$peer'"
program=bench.py
if [ "${1:-}" = --ranks ]; then
    program=ranks.py
    shift
fi
exec python3 "$root/bench/$program" --build "$build" --peer "$peer" "$@"
