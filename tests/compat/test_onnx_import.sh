#!/bin/bash
# Imported models: modules of PyTorch (tools/reference/onnx_modules.py), and every node test of the
# ONNX package (onnx_nodes.py). $LOCKSTEP_PYTHON names a python that has both packages.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
python=${LOCKSTEP_PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$LOCKSTEP_SOURCE"
if ! "$python" -c 'import numpy, onnx, torch' 2>/dev/null; then
    echo "skipped: $python lacks numpy, onnx or torch (LOCKSTEP_PYTHON)"
    exit 77
fi
if "$python" -c 'import torchvision' 2>/dev/null; then # 20 steps of training, here and in PyTorch
    "$python" -W ignore tools/reference/onnx_training.py "$LOCKSTEP" lstm unet
fi
"$python" tools/reference/onnx_modules.py "$LOCKSTEP_BUILD/liblockstep.so" "$work"
"$python" tools/reference/onnx_nodes.py "$LOCKSTEP_BUILD/liblockstep.so" "$work"
