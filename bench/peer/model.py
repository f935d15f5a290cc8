"""A network of networks.py as a PyTorch module.

SPDX-License-Identifier: BSD-2-Clause
"""

import torch
from torch import nn
from torch.nn import functional

import peer_sequences


class WithinChannelNorm(nn.Module):
    """Local response normalisation over a square of each channel."""

    def __init__(self, size, alpha, beta):
        super().__init__()
        self.size, self.alpha, self.beta = size, alpha, beta

    def forward(self, x):
        mean = functional.avg_pool2d(x * x, self.size, 1, self.size // 2)
        return x * (mean * self.alpha + 1) ** -self.beta


def convolution(layer, set):
    kind = {2: nn.Conv2d, 3: nn.Conv3d}[len(layer.shape_in) - 1]
    return kind(layer.shape_in[0], set["num_output"], set["kernel_size"], set["stride"],
                set["pad"], groups=set["group"], bias=set["bias_term"])


def deconvolution(layer, set):
    kind = {2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}[len(layer.shape_in) - 1]
    return kind(layer.shape_in[0], set["num_output"], set["kernel_size"], set["stride"])


def pooling(layer, set):
    if set.get("global_pooling"):
        return nn.AdaptiveAvgPool2d(1)
    rank = len(layer.shape_in) - 1
    kinds = {("MAX", 2): nn.MaxPool2d, ("AVE", 2): nn.AvgPool2d, ("MAX", 3): nn.MaxPool3d}
    return kinds[set["pool"], rank](set["kernel_size"], set["stride"], set["pad"], ceil_mode=True)


def inner_product(layer, set):
    if "axis" in set:  # of the last axis, at each position
        return nn.Linear(layer.shape_in[-1], set["num_output"])
    inputs = 1
    for extent in layer.shape_in:
        inputs *= extent
    linear = nn.Linear(inputs, set["num_output"])
    return linear if len(layer.shape_in) == 1 else nn.Sequential(nn.Flatten(), linear)


def lrn(layer, set):
    if set["norm_region"] == "WITHIN_CHANNEL":
        return WithinChannelNorm(set["local_size"], set["alpha"], set["beta"])
    return nn.LocalResponseNorm(set["local_size"], set["alpha"], set["beta"])


def batch_norm(layer, set):
    kind = {2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[len(layer.shape_in) - 1]
    return kind(layer.shape_in[0], momentum=0.1)


class LastState(nn.Module):
    """The last state of an LSTM over the rows of a picture."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.cells = nn.LSTM(inputs, outputs)

    def forward(self, x):
        return self.cells(x[:, 0].transpose(0, 1).contiguous())[0][-1]


# Scale is part of PyTorch's batch norm; Eltwise and Concat are functions.
MODULES = {"Convolution": convolution, "Deconvolution": deconvolution, "Pooling": pooling,
           "InnerProduct": inner_product, "LRN": lrn, "BatchNorm": batch_norm,
           "LSTM": lambda layer, set: LastState(layer.shape_in[2], set["num_output"]),
           "ReLU": lambda layer, set: nn.ReLU(inplace=True),
           "Dropout": lambda layer, set: nn.Dropout(set["dropout_ratio"]), **peer_sequences.MODULES}


class Model(nn.Module):
    """Runs the layers in order and forgets each blob after its last use."""

    def __init__(self, network, train):
        super().__init__()
        self.steps = []  # (module or name of a function, bottoms, top, blobs to forget)
        self.inputs = network.inputs
        self.mains = [x for x, _ in network.outputs] if train else [network.outputs[-1][0]]
        layers = [layer for layer in network.layers
                  if layer.type != "Scale" and (train or not layer.train_only)]
        self.parts, named = nn.ModuleList(), {}
        for i, layer in enumerate(layers):
            step = peer_sequences.FUNCTIONS.get(layer.type, layer.type)
            if step in MODULES:
                step = named[layer.name] = MODULES[step](layer, layer.set)
                self.parts.append(step)
            elif step == "LinearSoftmaxLoss":
                step = peer_sequences.LinearSoftmaxLoss(named[layer.set["tied"]])
            last = [x for x in {*layer.bottoms, layer.top} if x not in self.mains and
                    not any(x in later.bottoms for later in layers[i + 1:])]
            self.steps.append((step, layer.bottoms, layer.top, last))
        for part in self.modules():
            if isinstance(part, (nn.Conv2d, nn.Conv3d)):
                nn.init.kaiming_normal_(part.weight)

    def forward(self, *inputs):
        blobs = dict(zip(self.inputs, inputs))
        del inputs
        for step, bottoms, top, last in self.steps:
            if step == "Eltwise":  # the branch is its own, and batch norm does not need it again
                blobs[top] = blobs[bottoms[1]].add_(blobs[bottoms[0]])
            elif step == "Concat":
                blobs[top] = torch.cat([blobs[x] for x in bottoms], 1)
            else:
                blobs[top] = step(*[blobs[x] for x in bottoms])
            for name in last:
                del blobs[name]
        return [blobs[x] for x in self.mains]
