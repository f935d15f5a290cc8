#!/bin/bash
# TensorBoard reads what --tensorboard writes: curves with the figures of the log, histograms,
# filters, texts; what a resume or a new run makes void is gone. Skipped where the package is not
# there; $LOCKSTEP_PYTHON names a python that has it.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
python=${LOCKSTEP_PYTHON:-python3}
if ! "$python" -c 'import tensorboard' 2>/dev/null; then
    echo "skipped: $python lacks tensorboard (LOCKSTEP_PYTHON)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >net.prototxt <<'TEXT'
layer {
  name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {
    shape { dim: 8 dim: 3 dim: 6 dim: 6 } shape { dim: 8 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 }
  }
}
layer {
  name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } }
}
layer {
  name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
TEXT
cat >solver.prototxt <<'TEXT'
net: "net.prototxt" base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" max_iter: 20 display: 5
test_iter: 1 test_interval: 10 snapshot: 10 snapshot_prefix: "s" random_seed: 3 weight_decay: 0.001
TEXT
train() {
    "$LOCKSTEP" train --solver solver.prototxt --workers 2 --tensorboard runs/one "$@" >log 2>&1 ||
        { cat log; exit 1; }
}
train --log-json first.json
train --resume s_iter_10.safetensors --log-json second.json
"$python" - <<'PYTHON' || { echo "FAILED: what TensorBoard reads is not what was written"; exit 1; }
import json, logging
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
logging.disable(logging.WARNING)
board = EventAccumulator("runs/one", size_guidance={"scalars": 0, "histograms": 0, "images": 0, "tensors": 0})
board.Reload()
tags = board.Tags()
losses = {e.step: e.value for e in board.Scalars("loss")}
assert sorted(losses) == list(range(1, 21)), sorted(losses)
assert len(board.Scalars("loss")) == 20, "what the resume repeated is there twice"
events = [json.loads(line) for name in ("first.json", "second.json") for line in open(name)]
near = lambda a, b: abs(a - b) <= 1e-6 * (1 + abs(b))
for e in events:
    if e["event"] == "progress":
        assert near(losses[e["iteration"]], e["data_loss"]), e
    if e["event"] == "test":
        for o in e["outputs"]:
            found = [s.value for s in board.Scalars("test/" + o["name"]) if s.step == e["iteration"]]
            assert found and all(near(f, o["values"][0]) for f in found), (e, found)
    if e["event"] == "statistics":
        for p in e["parameters"]:
            norm = [s.value for s in board.Scalars("weight_norm/" + p["name"]) if s.step == e["iteration"]]
            assert len(norm) == 1 and near(norm[0], p["weight_norm"]), p
            h = [s.histogram_value for s in board.Histograms("gradients/" + p["name"]) if s.step == e["iteration"]]
            assert len(h) == 1, "histograms"
            assert list(h[0].bucket)[1:] == p["gradient_histogram"]["counts"], p["name"]
            assert all(near(a, b) for a, b in zip(h[0].bucket_limit, p["gradient_histogram"]["edges"]))
            assert near(h[0].sum_squares, p["gradient_norm"] ** 2) and h[0].num == sum(h[0].bucket)
assert {"penalty", "learning_rate", "train/loss", "norms/gradient"} <= set(tags["scalars"]), tags
assert [e.step for e in board.Histograms("weights/conv.weight")] == [1, 6, 11, 16]
picture = board.Images("filters/conv.weight")[-1]
assert (picture.width, picture.height) == (49, 49) and picture.encoded_image_string[:4] == b"\x89PNG"
texts = {tag: board.Tensors(tag)[-1].tensor_proto.string_val[0].decode() for tag in tags["tensors"]}
assert "    " in texts["definition/text_summary"] if "definition/text_summary" in texts else True
assert "InnerProduct" in texts["definition"] and "solver: SGD" in texts["run"], texts.keys()
assert board.SummaryMetadata("definition").plugin_data.plugin_name == "text"
PYTHON
train --overwrite --set max_iter=5
"$python" - <<'PYTHON' || { echo "FAILED: a new run does not take the place of the one before"; exit 1; }
import logging
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
logging.disable(logging.WARNING)
board = EventAccumulator("runs/one", size_guidance={"scalars": 0})
board.Reload()
assert [e.step for e in board.Scalars("loss")] == [1, 2, 3, 4, 5]
PYTHON
