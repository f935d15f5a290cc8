#!/bin/bash
# Transformers that torch exports to ONNX: outputs and losses of the imported nets, and of what they
# export again, against PyTorch and onnxruntime (tools/reference/onnx_transformers.py).
# $LOCKSTEP_PYTHON names a python that has the packages; without any, skipped.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
python=${LOCKSTEP_PYTHON:-python3}
if ! "$python" -c 'import torch, torchvision, onnx, onnxscript, onnxruntime' 2>/dev/null; then
    echo "skipped: $python lacks torch, torchvision, onnx, onnxscript or onnxruntime" \
        "(LOCKSTEP_PYTHON)"
    exit 77
fi
cases="vit gpt gpt_explicit gpt_tied encoder_places_first decoder gated convnext"
if "$python" -c 'import transformers' 2>/dev/null; then
    cases="$cases hf_vit hf_bert_masked hf_gpt2"
fi
# shellcheck disable=SC2086
HF_HUB_OFFLINE=1 "$python" "$LOCKSTEP_SOURCE/tools/reference/onnx_transformers.py" "$LOCKSTEP" \
    "$LOCKSTEP_BUILD/liblockstep.so" $cases
