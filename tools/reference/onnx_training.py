#!/usr/bin/env python3
"""Networks of torchvision, exported to ONNX and imported, train here as they do in PyTorch.

    onnx_training.py PROGRAM [--steps 20] [--size 64] [NETWORK ...]

Each network gets random weights, is exported in its training form, and trained with SGD on random
pictures by PyTorch and by PROGRAM ("build/lockstep"): the losses of all steps are printed side by
side, and must differ by at most 1e-4. Batch norms of few numbers amplify rounding: resnet18 stays
within 1e-6 for 6 steps of pictures of 64 x 64, but not for 20, and losses of shufflenet_v2_x0_5
differ by 0.08 after 5 steps between fp32 and fp64 in PyTorch itself. Dropout, whose draws cannot be the same, is switched off.
Needs torch, torchvision and onnx.

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision

BATCH = 8
CLASSES = 10
NETWORKS = ["mobilenet_v3_small", "squeezenet1_1"]
# Where a network's pooling needs larger pictures than others.
SIZES = {"vgg11_bn": 224, "vgg11": 224, "alexnet": 224}
LEARNING_RATE = 0.001  # small: with larger steps batch norms of few numbers amplify rounding
SOLVER = """net: "net_train_test.prototxt"
base_lr: %g
lr_policy: "fixed"
momentum: 0.9
max_iter: %d
display: 1
snapshot_prefix: "net"
"""


def make_network(name, size):
    torch.manual_seed(1)
    options = {"weights": None, "num_classes": CLASSES}
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=False, init_weights=False)
    network = getattr(torchvision.models, name)(**options)
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return network.train()


def train_there(network, pictures, labels, steps):
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=0.9)
    losses = []
    for step in range(steps):
        part = slice(step * BATCH, (step + 1) * BATCH)
        loss = torch.nn.functional.cross_entropy(network(pictures[part]), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_here(program, folder, steps):
    run = lambda *arguments: subprocess.run([program, *arguments], cwd=folder, check=True,
                                            stdout=subprocess.DEVNULL)
    run("import", "-o", "net", "--loss", "softmax", "net.onnx")
    path = os.path.join(folder, "net_train_test.prototxt")
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace("batch_size: 32", "batch_size: %d" % BATCH)
                   .replace("shuffle: true", "shuffle: false"))
    with open(os.path.join(folder, "solver.prototxt"), "w") as file:
        file.write(SOLVER % (LEARNING_RATE, steps))
    run("train", "--solver", "solver.prototxt", "--weights", "net.safetensors",
        "--log-json", "log.jsonl", "--workers", "1")
    with open(os.path.join(folder, "log.jsonl")) as file:
        events = [json.loads(line) for line in file]
    return [event["loss"] for event in events if event["event"] == "progress"]


def compare(program, name, size, steps):
    network = make_network(name, size)
    generator = torch.Generator().manual_seed(2)
    pictures = torch.randn(steps * BATCH, 3, size, size, generator=generator)
    labels = torch.randint(0, CLASSES, (steps * BATCH,), generator=generator)
    with tempfile.TemporaryDirectory() as folder:
        state = {key: value.clone() for key, value in network.state_dict().items()}
        torch.onnx.export(network, (pictures[:BATCH],), os.path.join(folder, "net.onnx"),
                          dynamo=False, opset_version=17, input_names=["input"],
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        network.load_state_dict(state)  # the export has run it once
        for phase in ("train", "test"):
            os.mkdir(os.path.join(folder, phase))
            numpy.save(os.path.join(folder, phase, "input.npy"), pictures.numpy())
            numpy.save(os.path.join(folder, phase, "label.npy"), labels.numpy().astype("i4"))
        here = train_here(program, folder, steps)
    there = train_there(network, pictures, labels, steps)
    if len(here) < steps:
        sys.exit("%s: %d losses of %d" % (name, len(here), steps))
    most = max(abs(a - b) for a, b in zip(here, there))
    print("%-20s first %.6f %.6f  last %.6f %.6f  largest difference %.2g"
          % (name, there[0], here[0], there[-1], here[steps - 1], most), flush=True)
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--size", type=int, default=64)
    options = parser.parse_args()
    torch.set_num_threads(1)
    program = os.path.abspath(options.program)
    worst = [compare(program, name, SIZES.get(name, options.size), options.steps)
             for name in options.networks]
    sys.exit(0 if max(worst) <= 1e-4 else 1)


if __name__ == "__main__":
    main()
