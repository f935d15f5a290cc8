#!/usr/bin/env python3
"""Modules of PyTorch through ONNX and Lockstep's import: onnx_modules.py LIBRARY WORK [NAME...]

Each module gets random weights and inputs of 3 samples, is exported by torch.onnx.export and
imported; what Lockstep predicts must be what PyTorch computes in double, to 1e-5 of the largest.
Modules of REFUSED must be refused, with these words. Needs torch, numpy and onnx.
SPDX-License-Identifier: BSD-2-Clause"""
import os
import sys
import warnings

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_nodes  # noqa: E402

warnings.simplefilter("ignore")


class Of(nn.Module):
    """A function, perhaps of a module's result."""

    def __init__(self, function, module=None):
        super().__init__()
        self.function, self.module = function, module if module is not None else nn.Identity()

    def forward(self, *x):
        return self.function(self.module(*x))


class Recurrent(nn.Module):
    """A recurrent module, and what is read of it."""

    def __init__(self, cell, read="all", **options):
        super().__init__()
        self.body, self.read = cell(5, 4, **options), read

    def forward(self, x, *state):
        y, last = self.body(x, *state)
        last = last if isinstance(last, torch.Tensor) else last[0]
        return {"all": y, "last": y[:, -1], "hidden": last[-1]}[self.read]


def resize(**options):
    return Of(lambda x: F.interpolate(x, **options))


def unet_block(up):
    """Down, up and a joined path, as in the usual unet."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.middle = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
            self.up = nn.ConvTranspose2d(8, 4, 2, 2) if up == "learned" else nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=up == "corners"),
                nn.Conv2d(8, 4, 1))
            self.out = nn.Conv2d(8, 1, 1)

        def forward(self, x):
            down = torch.relu(self.down(x))
            middle = torch.relu(self.middle(F.max_pool2d(down, 2)))
            return torch.sigmoid(self.out(torch.cat((self.up(middle), down), dim=1)))
    return Block()


PLANES = (3, 4, 6, 7)
MODULES = {
    "nearest": (resize(scale_factor=2), PLANES),
    "nearest_sides": (resize(scale_factor=(3, 2)), PLANES),
    "nearest_size": (resize(size=(9, 5)), PLANES),
    "nearest_row": (resize(scale_factor=2), (3, 4, 6)),
    "nearest_volume": (resize(scale_factor=2), (3, 2, 3, 4, 5)),
    "bilinear": (resize(scale_factor=2, mode="bilinear"), PLANES),
    "bilinear_three": (resize(scale_factor=(3, 4), mode="bilinear"), PLANES),
    "bilinear_one_axis": (resize(size=(6, 21), mode="bilinear"), PLANES),
    "bilinear_size": (resize(size=(9, 5), mode="bilinear"), PLANES),
    "bilinear_half": (resize(size=(3, 4), mode="bilinear"), PLANES),
    "bilinear_corners": (resize(size=(11, 14), mode="bilinear", align_corners=True), PLANES),
    "bilinear_corner": (resize(size=(1, 9), mode="bilinear", align_corners=True), PLANES),
    "linear_row": (resize(size=9, mode="linear"), (3, 4, 6)),
    "bicubic": (resize(scale_factor=2, mode="bicubic"), PLANES),
    "bicubic_size": (resize(size=(9, 5), mode="bicubic", align_corners=True), PLANES),
    "unet_learned": (unet_block("learned"), (3, 3, 8, 12)),
    "unet_bilinear": (unet_block("middles"), (3, 3, 8, 12)),
    "unet_corners": (unet_block("corners"), (3, 3, 8, 12)),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1, groups=2), PLANES),
    "transposed_long": (nn.ConvTranspose2d(4, 6, 2, 3, 0, output_padding=2), PLANES),
    "transposed_sides": (nn.ConvTranspose2d(4, 6, (3, 4), (2, 1), (0, 2), output_padding=(1, 0),
                                            dilation=(2, 1), bias=False), PLANES),
    "transposed_row": (nn.ConvTranspose1d(4, 6, 3, 2, 1, output_padding=1), (3, 4, 6)),
    "average": (nn.AvgPool2d(3, 2, 1), PLANES),
    "average_within": (nn.AvgPool2d(3, 2, 1, count_include_pad=False), PLANES),
    "average_ceil": (nn.AvgPool2d(3, 2, 1, ceil_mode=True), (3, 4, 6, 8)),
    "average_ceil_within": (nn.AvgPool2d((2, 3), (3, 2), (1, 0), ceil_mode=True,
                                         count_include_pad=False), (3, 4, 8, 8)),
    "average_row": (nn.AvgPool1d(4, 3, 2, count_include_pad=False), (3, 4, 9)),
    "maximum_ceil": (nn.MaxPool2d(3, 2, 1, ceil_mode=True), (3, 4, 6, 8)),
    "maximum_ceil_plain": (nn.MaxPool2d(3, 2, ceil_mode=True), (3, 4, 8, 11)),
    "pad_mirror": (nn.ReflectionPad2d((1, 2, 3, 0)), PLANES),
    "pad_edge": (nn.ReplicationPad2d((1, 2, 3, 0)), PLANES),
    "pad_number": (nn.ConstantPad2d((1, -2, -3, 2), 0.5), PLANES),
    "steps": (Of(lambda x: torch.cat((x[..., ::2, 1::2], x[:, :, 1::2, :-1:2]), 1)), (3, 4, 6, 8)),
    "chosen": (Of(lambda x: x[:, [2, 0, 0, 3]]), PLANES),
    "hard": (Of(lambda x: F.hardswish(x) + F.hardsigmoid(3 * x) + F.relu6(5 * x)), PLANES),
    "squeezed": (Of(lambda x: x.mean((2, 3), keepdim=True).squeeze(-1).squeeze(2)), PLANES),
    "flat": (Of(lambda x: x.flatten(2).unsqueeze(1).transpose(1, 3)), PLANES),
    "lstm": (Recurrent(nn.LSTM, batch_first=True), (3, 6, 5)),
    "lstm_two": (Recurrent(nn.LSTM, batch_first=True, num_layers=2, bidirectional=True),
                 (3, 6, 5)),
    "lstm_last": (Recurrent(nn.LSTM, "last", batch_first=True, bias=False), (3, 6, 5)),
    "lstm_hidden": (Recurrent(nn.LSTM, "hidden", batch_first=True, bidirectional=True), (3, 6, 5)),
    "lstm_steps_first": (Recurrent(nn.LSTM), (6, 3, 5)),
    "gru": (Recurrent(nn.GRU, batch_first=True), (3, 6, 5)),
    "gru_two": (Recurrent(nn.GRU, batch_first=True, num_layers=2, bidirectional=True), (3, 6, 5)),
    "gru_last": (Recurrent(nn.GRU, "hidden", batch_first=True, bias=False), (3, 6, 5)),
    "gru_state": (Recurrent(nn.GRU), (6, 3, 5), (1, 3, 4)),
}
REFUSED = {
    "rnn": (Recurrent(nn.RNN, batch_first=True), "GRU or an LSTM", (3, 6, 5)),
    "dilated": (nn.MaxPool2d(2, 1, dilation=2), "dilation", PLANES),
    "samples": (Of(lambda x: x[1:]), "samples out of a batch", PLANES),
    "samples_mixed": (Of(lambda x: x.softmax(0)), "mix the samples", PLANES),
}


def export(module, shapes, path):
    inputs = tuple(torch.randn(shape) for shape in shapes)
    torch.onnx.export(module.eval(), inputs, path, dynamo=False, opset_version=18,
                      input_names=["x", "h"][:len(inputs)], output_names=["y"])
    with torch.no_grad():
        return inputs, module.double()(*[x.double() for x in inputs]).numpy()


def check(name, module, shapes, folder):
    prefix = os.path.join(folder, name)
    inputs, wanted = export(module, shapes, prefix + "_torch.onnx")
    model = onnx_nodes.onnx.load(prefix + "_torch.onnx")
    text = onnx_nodes.import_model(model, prefix)
    ours = onnx_nodes.predict(prefix, text, dict(zip("xh", (x.numpy() for x in inputs))))
    largest = np.abs(wanted).max()
    if not onnx_nodes.is_same(ours / largest, wanted / largest, 0, 1e-5):
        raise onnx_nodes.Fault("other outputs than PyTorch's")
    print("%s: %d layers, as PyTorch" % (name, text.count("layer {")), flush=True)


def refuse(name, module, words, shapes, folder):
    prefix = os.path.join(folder, name)
    export(module, shapes, prefix + "_torch.onnx")
    try:
        onnx_nodes.import_model(onnx_nodes.onnx.load(prefix + "_torch.onnx"), prefix)
    except onnx_nodes.Refused as problem:
        if words in str(problem):
            print("%s: refused" % name, flush=True)
            return
        raise
    raise onnx_nodes.Fault("it is not refused")


def main():
    library, folder, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    onnx_nodes.open_library(os.path.abspath(library))
    torch.manual_seed(1)
    torch.set_num_threads(1)
    failed = 0
    for name, (module, *rest) in {**MODULES, **REFUSED}.items():
        if names and name not in names:
            continue
        try:
            if name in REFUSED:
                refuse(name, module, rest[0], rest[1:], folder)
            else:
                check(name, module, rest, folder)
        except Exception as problem:  # all modules, then the verdict
            print("%s: FAILED: %s: %s" % (name, type(problem).__name__, problem), flush=True)
            failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
