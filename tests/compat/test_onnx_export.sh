#!/bin/bash
# Exported models: small nets of tests/compat/onnx and some of bench/nets, by onnx.checker and
# against onnxruntime (tools/reference/onnx_export.py); and without any package: what is refused,
# external data, bytes that do not change. $LOCKSTEP_PYTHON names a python that has both.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
python=${LOCKSTEP_PYTHON:-python3}
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
    echo "skipped: $python lacks numpy, onnx or onnxruntime (LOCKSTEP_PYTHON)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$LOCKSTEP_SOURCE"
nets=()
for net in lenet cifar10_full lstm tf_cifar10; do
    nets+=("bench/nets/${net}_train_test.prototxt")
done
nets+=(examples/gpt/char_train_test.prototxt=examples/gpt/char_deploy.prototxt)
"$python" tools/reference/onnx_export.py "$LOCKSTEP" "$LOCKSTEP_BUILD/liblockstep.so" \
    tests/compat/onnx "$work" tests/compat/onnx/*.prototxt "${nets[@]}"

"$LOCKSTEP" export --onnx --model "$work/products.prototxt" \
    --weights "$work/lenet_train_test.safetensors" -o "$work/x.onnx" 2>"$work/log" && exit 1
grep -q "layer 'ip1' has shape" "$work/log" # weights of another net
test ! -e "$work/x.onnx"

# Weights beside the model: the same outputs, and the package finds them.
"$LOCKSTEP" export --onnx --model "$work/lenet_train_test.prototxt" --external --opset 13 \
    --batch 2 --weights "$work/lenet_train_test.safetensors" -o "$work/e.onnx"
"$LOCKSTEP" export --onnx --model "$work/lenet_train_test.prototxt" --opset 13 \
    --batch 2 --weights "$work/lenet_train_test.safetensors" -o "$work/i.onnx"
test "$(stat -c %s "$work/e.onnx")" -lt 20000
"$python" - "$work" <<'END'
import sys
import numpy as np
import onnx
import onnxruntime
work = sys.argv[1]
onnx.checker.check_model(work + "/e.onnx", full_check=True)
data = np.random.default_rng(1).random((2, 1, 28, 28), "f4")
outs = [onnxruntime.InferenceSession(f"{work}/{name}.onnx").run(None, {"data": data})[0]
        for name in "ei"]
assert (outs[0] == outs[1]).all()
END
