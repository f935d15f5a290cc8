"""Layers of sequences: gated functions, RMSNorm, products of matrices, places, bags of rows.

Numbers of rows and places are rounded: the noise of make.py is in them, too.

SPDX-License-Identifier: BSD-2-Clause
"""

import torch
import torch.nn.functional as F


def gelu(layer, x, parameters, net):
    by_tanh = layer.sub("gelu_param").get("approximate", "NONE") == "TANH"
    return [F.gelu(x[0], approximate="tanh" if by_tanh else "none")]


def silu(layer, x, parameters, net):
    return [F.silu(x[0])]


GATES = {
    "SIGMOID": torch.sigmoid,
    "SILU": F.silu,
    "GELU": F.gelu,
    "GELU_TANH": lambda x: F.gelu(x, approximate="tanh"),
    "RELU": F.relu,
    "NONE": lambda x: x,
}


def glu(layer, x, parameters, net):
    p = layer.sub("glu_param")
    value, gate = x if len(x) > 1 else x[0].chunk(2, p.get("axis", -1))
    if p.get("gate_first", False):
        value, gate = gate, value
    return [value * GATES[p.get("gate", "SIGMOID")](gate)]


def behind_axis(layer, x):
    return tuple(x.shape[layer.sub("rms_norm_param").get("axis", -1) % x.dim() :])


def rms_norm_shapes(layer, x):
    if not layer.sub("rms_norm_param").get("affine", True):
        return []
    return [("scale", behind_axis(layer, x))]


def rms_norm(layer, x, parameters, net):
    p = layer.sub("rms_norm_param")
    axes = tuple(range(-len(behind_axis(layer, x[0])), 0))
    y = x[0] / (x[0].pow(2).mean(axes, keepdim=True) + p.get("eps", 1e-6)).sqrt()
    return [y * parameters[0] if parameters else y]


def matmul(layer, x, parameters, net):
    p = layer.sub("matmul_param")
    a = x[0].transpose(-1, -2) if p.get("transpose_a", False) else x[0]
    b = x[1].transpose(-1, -2) if p.get("transpose_b", False) else x[1]
    return [p.get("scale", 1.0) * (a @ b)]


def gather(layer, x, parameters, net):
    axis = layer.sub("gather_param").get("axis", 1) % x[0].dim()
    index = x[1].round().long()
    return [torch.stack([one.index_select(axis - 1, i) for one, i in zip(x[0], index)])]


def pad(layer, x, parameters, net):
    """Place by place, since F.pad reflects the last axes only."""
    p = layer.sub("pad_param")
    axes, y = p.all("axis") or [-1], x[0]
    before, after = p.all("before") or [0], p.all("after") or [0]
    for i, axis in enumerate(axes):
        extent = y.shape[axis]
        first = before[i] if len(before) > 1 else before[0]
        last = after[i] if len(after) > 1 else after[0]
        places = torch.arange(-first, extent + last)
        inside = (places >= 0) & (places < extent)
        mode = p.get("mode", "CONSTANT")
        if mode == "REFLECT":
            places = (extent - 1) - ((extent - 1) - places.abs()).abs()
        y = y.index_select(axis, places.clamp(0, extent - 1))
        if mode == "CONSTANT":
            shape = [1] * y.dim()
            shape[axis] = -1
            y = torch.where(inside.reshape(shape), y, torch.full_like(y, p.get("value", 0.0)))
    return [y]


def positions(layer, x, parameters, net):
    samples, places = x[0].shape[:2]
    y = torch.zeros(samples, places, dtype=x[0].dtype)
    for n in range(samples):
        for t in range(1, places):
            anew = len(x) > 1 and x[1][n, t].round() != x[1][n, t - 1].round()
            y[n, t] = 0 if anew else y[n, t - 1] + 1
    return [y + layer.sub("positions_param").get("offset", 0)]


def embedding_bag_shapes(layer, x):
    p = layer.sub("embedding_bag_param")
    return [("weight", (p.get("input_dim"), p.get("num_output")))]


def embedding_bag(layer, x, parameters, net):
    p = layer.sub("embedding_bag_param")
    index = x[0].round().long()
    lengths = [b for b in x[1:] if b.dim() == index.dim() - 1]
    weights = [b for b in x[1:] if b.dim() == index.dim()]
    counts = torch.ones_like(x[0], dtype=torch.bool)
    if lengths:
        counts = torch.arange(index.shape[-1]) < lengths[0].round()[..., None]
    if p.has("padding_index"):
        counts &= index != p.get("padding_index")
    rows = F.embedding(index, parameters[0]) * counts[..., None]
    if weights:
        rows = rows * weights[0][..., None]
    y = rows.sum(-2)
    if p.get("mode", "SUM") == "MEAN":
        y = y / counts.sum(-1, keepdim=True).clamp(min=1)
    return [y]


SHAPES = {"EmbeddingBag": embedding_bag_shapes, "RMSNorm": rms_norm_shapes}

TYPES = {
    "EmbeddingBag": embedding_bag,
    "GELU": gelu,
    "GLU": glu,
    "Gather": gather,
    "MatMul": matmul,
    "Pad": pad,
    "Positions": positions,
    "RMSNorm": rms_norm,
    "SiLU": silu,
}
