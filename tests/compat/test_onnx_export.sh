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

# Samples that a Filter layer leaves out are none of the output's, also behind a second one, whose
# selector has been filtered itself. Without the layers the rows are the same.
cat >"$work/filter.prototxt" <<'END'
layer { name: "data" type: "Input" top: "data" top: "first" top: "second"
  input_param { shape { dim: 4 dim: 6 } shape { dim: 4 } shape { dim: 4 dim: 1 } } }
layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc" inner_product_param { num_output: 12 } }
layer { name: "left" type: "Filter" bottom: "fc" bottom: "second" bottom: "first" top: "left" top: "of_second" }
layer { name: "again" type: "Filter" bottom: "left" bottom: "of_second" top: "last" }
layer { name: "maps" type: "Reshape" bottom: "last" top: "maps" reshape_param { shape { dim: 0 dim: 3 dim: 2 dim: 2 } } }
layer { name: "out" type: "Convolution" bottom: "maps" top: "out" convolution_param { num_output: 2 kernel_size: 2 } }
END
sed -e '/type: "Filter"/d' -e 's/bottom: "last"/bottom: "fc"/' -e 's/ top: "first" top: "second"//' \
    -e 's/ shape { dim: 4 } shape { dim: 4 dim: 1 }//' "$work/filter.prototxt" >"$work/all.prototxt"
"$python" - "$work" "$LOCKSTEP" <<'END'
import json
import subprocess
import sys
import numpy as np
import onnx
import onnxruntime
work, program = sys.argv[1:]
random = np.random.default_rng(1)
header, data = {}, b""
for name, shape in (("fc.weight", [12, 6]), ("fc.bias", [12]), ("out.weight", [2, 3, 2, 2]), ("out.bias", [2])):
    raw = random.normal(size=shape).astype("<f4").tobytes()
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
head = json.dumps(header).encode()
open(work + "/filter.safetensors", "wb").write(len(head).to_bytes(8, "little") + head + data)
x = random.normal(size=(7, 6)).astype("f4")
first, second = np.array([1, 0, 2, 1, 0, 1, 1], "f4"), np.array([[0], [1], [1], [0], [1], [-1], [1]], "f4")
for batch in ("dynamic", "7"):
    outs = []
    for name in ("filter", "all"):
        model = f"{work}/{name}_{batch}.onnx"
        subprocess.run([program, "export", "--onnx", "--model", f"{work}/{name}.prototxt", "--weights",
                        work + "/filter.safetensors", "-o", model, "--batch", batch], check=True,
                       stdout=subprocess.DEVNULL)
        onnx.checker.check_model(model, full_check=True)
        reader = onnxruntime.InferenceSession(model)
        given = {"data": x, "first": first, "second": second}
        outs.append(reader.run(["out"], {i.name: given[i.name] for i in reader.get_inputs()})[0])
    kept = (first != 0) & (second[:, 0] != 0)
    assert len(outs[0]) == kept.sum() == 3, outs[0].shape
    assert np.abs(outs[0] - outs[1][kept]).max() < 1e-6
END
