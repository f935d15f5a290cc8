#!/bin/bash
# GPT-2, BERT and ViT of the transformers package, and names of torchvision, against the definitions
# of examples/, in both directions: tools/reference/transformers.py. Skipped where the package is
# not there; $LOCKSTEP_PYTHON names a python that has it.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
python=${LOCKSTEP_PYTHON:-python3}
if ! "$python" -c 'import h5py, numpy, torch, transformers, safetensors.torch' 2>/dev/null; then
    echo "skipped: $python lacks h5py, numpy, torch, transformers or safetensors (LOCKSTEP_PYTHON)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
HF_HUB_OFFLINE=1 "$python" "$LOCKSTEP_SOURCE/tools/reference/transformers.py" "$LOCKSTEP" "$work" 2>"$work/log" ||
    { cat "$work/log"; exit 1; }
