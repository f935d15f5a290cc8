#!/usr/bin/env python3
"""Networks of torchvision, exported to ONNX and imported, train here as they do in PyTorch.

    onnx_training.py PROGRAM [--steps 20] [NETWORK ...]

Each network gets random weights, is exported in its training form, and trained with SGD on random
pictures by PyTorch and by PROGRAM ("build/lockstep"): the losses of all steps are printed side by
side, and must differ by at most 1e-4. So that rounding does not decide, pictures look alike by
class, the last batch norm of each block of a resnet begins with zeros, and base_lr is what the
network bears: of resnet18 with other pictures and weights, 0.001 and batches of 8, PyTorch's losses
in fp32 and in fp64 part by 0.09 within 20 steps, those of shufflenet_v2_x0_5 by 0.08, of
efficientnet_b0 with 0.0005 by 0.4. Dropout, whose draws cannot be the same, is switched off.
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

CLASSES = 10
# By network: the side of its pictures (or steps of its sequences), samples of a batch, base_lr.
SETTINGS = {
    "lstm": (12, 8, 0.05),
    "unet": (16, 4, 0.01),
    "mobilenet_v3_small": (64, 16, 5e-4),
    "squeezenet1_1": (64, 16, 5e-4),
    "resnet18": (64, 16, 5e-4),
    "convnext_tiny": (32, 4, 5e-4),
    "efficientnet_b0": (96, 16, 1e-5),
}
USUAL = (64, 16, 1e-4)
SOLVER = """net: "net_train_test.prototxt"
base_lr: %g
lr_policy: "fixed"
momentum: 0.9
max_iter: %d
display: 1
snapshot_prefix: "net"
"""


class UNet(torch.nn.Module):
    """Two levels, one path up by a transposed convolution, the other by bilinear enlargement."""

    def __init__(self):
        super().__init__()
        def block(inputs, outputs):
            return torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                                       torch.nn.BatchNorm2d(outputs), torch.nn.ReLU())
        self.down, self.middle, self.bottom = block(3, 8), block(8, 12), block(12, 16)
        self.up, self.joined = torch.nn.ConvTranspose2d(16, 12, 2, 2), block(24, 12)
        self.last, self.scores = block(20, 8), torch.nn.Conv2d(8, CLASSES, 1)

    def forward(self, x):
        pool, resize = torch.nn.functional.max_pool2d, torch.nn.functional.interpolate
        first = self.down(x)
        second = self.middle(pool(first, 2))
        up = self.joined(torch.cat((self.up(self.bottom(pool(second, 2))), second), 1))
        up = resize(up, scale_factor=2, mode="bilinear")
        return self.scores(self.last(torch.cat((up, first), 1)))


class Reader(torch.nn.Module):
    """Sequences of 8 numbers to classes, by what an LSTM has read at their ends."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.scores = torch.nn.Linear(12, CLASSES)

    def forward(self, x):
        return self.scores(self.body(x)[0][:, -1])


def make_network(name):
    torch.manual_seed(1)
    if name in ("unet", "lstm"):
        return (UNet if name == "unet" else Reader)().train()
    options = {"weights": None, "num_classes": CLASSES}
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=False, init_weights=False)
    if name.startswith("resnet"):
        options.update(zero_init_residual=True)
    network = getattr(torchvision.models, name)(**options)
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return network.train()


def make_data(name, size, count):
    """Samples that look alike by class, and labels; of a unet a label for each pixel."""
    generator = torch.Generator().manual_seed(2)
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    if name == "lstm":
        classes = torch.randn(CLASSES, size, 8, generator=generator)
        return classes[labels] + torch.randn(count, size, 8, generator=generator), labels

    def pictures(number, side):
        return torch.nn.functional.interpolate(
            torch.randn(number, 3, side, side, generator=generator), size=size, mode="bilinear")
    samples = pictures(CLASSES, 8)[labels] + 0.5 * pictures(count, 16)
    if name == "unet":
        labels = (samples.mean(1) * 2 + CLASSES / 2).long().clamp(0, CLASSES - 1)
    return samples, labels


def train_there(network, samples, labels, steps, batch, base_lr):
    optimizer = torch.optim.SGD(network.parameters(), lr=base_lr, momentum=0.9)
    losses = []
    for step in range(steps):
        part = slice(step * batch, (step + 1) * batch)
        loss = torch.nn.functional.cross_entropy(network(samples[part]), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_here(program, folder, steps, batch, base_lr):
    run = lambda *arguments: subprocess.run([program, *arguments], cwd=folder, check=True,
                                            stdout=subprocess.DEVNULL)
    run("import", "-o", "net", "--loss", "softmax", "net.onnx")
    path = os.path.join(folder, "net_train_test.prototxt")
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace("batch_size: 32", "batch_size: %d" % batch)
                   .replace("shuffle: true", "shuffle: false"))
    with open(os.path.join(folder, "solver.prototxt"), "w") as file:
        file.write(SOLVER % (base_lr, steps))
    run("train", "--solver", "solver.prototxt", "--weights", "net.safetensors",
        "--log-json", "log.jsonl", "--workers", "1")
    with open(os.path.join(folder, "log.jsonl")) as file:
        events = [json.loads(line) for line in file]
    return [event["loss"] for event in events if event["event"] == "progress"]


def compare(program, name, steps):
    size, batch, base_lr = SETTINGS.get(name, USUAL)
    network = make_network(name)
    samples, labels = make_data(name, size, steps * batch)
    with tempfile.TemporaryDirectory() as folder:
        state = {key: value.clone() for key, value in network.state_dict().items()}
        torch.onnx.export(network, (samples[:batch],), os.path.join(folder, "net.onnx"),
                          dynamo=False, opset_version=17, input_names=["input"],
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        network.load_state_dict(state)  # the export has run it once
        for phase in ("train", "test"):
            os.mkdir(os.path.join(folder, phase))
            numpy.save(os.path.join(folder, phase, "input.npy"), samples.numpy())
            numpy.save(os.path.join(folder, phase, "label.npy"), labels.numpy().astype("i4"))
        here = train_here(program, folder, steps, batch, base_lr)
    there = train_there(network, samples, labels, steps, batch, base_lr)
    if len(here) < steps:
        sys.exit("%s: %d losses of %d" % (name, len(here), steps))
    most = max(abs(a - b) for a, b in zip(here, there))
    print("%-20s first %.6f %.6f  last %.6f %.6f  largest difference %.2g"
          % (name, there[0], here[0], there[-1], here[steps - 1], most), flush=True)
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("networks", nargs="*", default=list(SETTINGS))
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    program = os.path.abspath(options.program)
    worst = [compare(program, name, options.steps)
             for name in options.networks]
    sys.exit(0 if max(worst) <= 1e-4 else 1)


if __name__ == "__main__":
    main()
