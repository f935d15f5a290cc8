#!/bin/bash
# Prints the path of an interpreter that has PyTorch: $LOCKSTEP_PEER_PYTHON, or that of a virtual
# environment in the build folder, which is made the first time.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${LOCKSTEP_BUILD:-$root/build}/bench/peer

die() {
    printf 'bench: %s\n' "$*" >&2
    exit 1
}

# An index with the build for processors alone, which is smaller in every way, may be named by
# PIP_INDEX_URL.
make() {
    printf '== Installing PyTorch in %s (once)\n' "$folder" >&2
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    if ! { python3 -m venv "$folder" && "$folder/bin/pip" install torch numpy &&
        touch "$folder/ready"; } >"$folder.log" 2>&1; then
        tail -n 20 "$folder.log" >&2
        die "PyTorch could not be installed; LOCKSTEP_PEER_PYTHON may name an interpreter with it"
    fi
}

peer=${LOCKSTEP_PEER_PYTHON:-}
if [ -z "$peer" ]; then
    [ -e "$folder/ready" ] || make
    peer=$folder/bin/python
fi
[ -x "$(command -v "$peer")" ] || die "there is no interpreter '$peer'"
echo "$peer"
