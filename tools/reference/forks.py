"""Layers of Caffe's forks, and some of Caffe's own, that move or scale numbers.

SPDX-License-Identifier: BSD-2-Clause
"""

import math

import torch
import torch.nn.functional as F


def permute(layer, x, parameters, net):
    order = layer.sub("permute_param").all("order")
    return [x[0].permute(order + [i for i in range(x[0].dim()) if i not in order])]


def shuffle_channel(layer, x, parameters, net):
    return [F.channel_shuffle(x[0], layer.sub("shuffle_channel_param").get("group", 1))]


def reorg(layer, x, parameters, net):
    """Darknet's: number by number, as its sources have it."""
    p = layer.sub("reorg_param")
    s = p.get("stride")
    n, c, h, w = x[0].shape
    b, k, j, i = torch.meshgrid(*map(torch.arange, (n, c, h, w)), indexing="ij")
    less = c // (s * s)
    column, row = i * s + (k // less) % s, j * s + (k // less) // s
    there = (column + w * s * (row + h * s * (k % less + less * b))).flatten()
    flat = x[0].flatten()
    if p.get("reverse", False):
        y = torch.zeros_like(flat).scatter(0, there, flat)
        return [y.reshape(n, less, h * s, w * s)]
    return [flat[there].reshape(n, c * s * s, h // s, w // s)]


def axpy(layer, x, parameters, net):
    factor = x[0].reshape(x[0].shape[:2] + (1,) * (x[1].dim() - 2))
    return [factor * x[1] + x[2]]


def normalize(layer, x, parameters, net):
    p = layer.sub("norm_param")
    axes = tuple(range(1, x[0].dim())) if p.get("across_spatial", True) else 1
    length = ((x[0] * x[0]).sum(axes, keepdim=True) + p.get("eps", 1e-10)).sqrt()
    scale = parameters[0]
    if scale.dim() > 0:
        scale = scale.reshape((-1,) + (1,) * (x[0].dim() - 2))
    return [x[0] / length * scale]


def normalize_shapes(layer, x):
    shared = layer.sub("norm_param").get("channel_shared", True)
    return [("scale", () if shared else (x.shape[1],))]


def relu6(layer, x, parameters, net):
    slope = layer.sub("relu_param").get("negative_slope", 0.0)
    return [torch.clamp(torch.where(x[0] > 0, x[0], slope * x[0]), max=6.0)]


def selu(layer, x, parameters, net):
    return [F.selu(x[0])]


def im2col(layer, x, parameters, net):
    import layers

    p = layer.sub("convolution_param")
    kernel = layers.window(p, "kernel_size", 2)
    stride, pad = layers.window(p, "stride", 2, 1), layers.window(p, "pad", 2, 0)
    dilation = layers.window(p, "dilation", 2, 1)
    y = F.unfold(x[0], kernel, dilation, pad, stride)
    size = [
        (x[0].shape[2 + i] + 2 * pad[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
        for i in range(2)
    ]
    return [y.reshape(y.shape[0], y.shape[1], size[0], size[1])]


def spp(layer, x, parameters, net):
    import layers

    p = layer.sub("spp_param")
    rows = []
    for level in range(p.get("pyramid_height")):
        cells = 2**level
        kernel = tuple(math.ceil(size / cells) for size in x[0].shape[2:])
        pad = tuple((k * cells - size + 1) // 2 for k, size in zip(kernel, x[0].shape[2:]))
        out = [cells, cells]
        if p.get("pool", "MAX") == "AVE":
            y = layers.average(x[0], kernel, kernel, pad, out)
        else:
            y = F.max_pool2d(
                layers.edges(x[0], kernel, kernel, pad, out, -math.inf), kernel, kernel
            )
        rows.append(y.flatten(1))
    return [torch.cat(rows, 1)]


SHAPES = {"Normalize": normalize_shapes}

TYPES = {
    "Axpy": axpy,
    "Im2col": im2col,
    "Normalize": normalize,
    "Permute": permute,
    "ReLU6": relu6,
    "Reorg": reorg,
    "SELU": selu,
    "SPP": spp,
    "SeLu": selu,
    "ShuffleChannel": shuffle_channel,
}
