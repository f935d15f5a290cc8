"""Functions of one number, PReLU, and normalisation of each sample by itself.

SPDX-License-Identifier: BSD-2-Clause
"""

import math

import torch
import torch.nn.functional as F


def elu(layer, x, parameters, net):
    return [F.elu(x[0], layer.sub("elu_param").get("alpha", 1.0))]


def swish(layer, x, parameters, net):
    return [x[0] * torch.sigmoid(layer.sub("swish_param").get("beta", 1.0) * x[0])]


def absval(layer, x, parameters, net):
    return [x[0].abs()]


def bnll(layer, x, parameters, net):
    return [F.softplus(x[0])]


def log_base(p):
    base = p.get("base", -1.0)
    return 1.0 if base == -1 else math.log(base)


def exp(layer, x, parameters, net):
    p = layer.sub("exp_param")
    return [torch.exp(log_base(p) * (p.get("scale", 1.0) * x[0] + p.get("shift", 0.0)))]


def log(layer, x, parameters, net):
    p = layer.sub("log_param")
    return [torch.log(p.get("scale", 1.0) * x[0] + p.get("shift", 0.0)) / log_base(p)]


def power(layer, x, parameters, net):
    p = layer.sub("power_param")
    base = p.get("shift", 0.0) + p.get("scale", 1.0) * x[0]
    return [base ** p.get("power", 1.0)]


def clip(layer, x, parameters, net):
    p = layer.sub("clip_param")
    return [x[0].clamp(p.get("min"), p.get("max"))]


def threshold(layer, x, parameters, net):
    return [(x[0] > layer.sub("threshold_param").get("threshold", 0.0)).to(x[0].dtype)]


def prelu_shapes(layer, x):
    shared = layer.sub("prelu_param").get("channel_shared", False)
    return [("slope", () if shared else (x.shape[1],))]


def prelu(layer, x, parameters, net):
    return [F.prelu(x[0], parameters[0].reshape(-1))]


def mvn(layer, x, parameters, net):
    p = layer.sub("mvn_param")
    axes = tuple(range(1 if p.get("across_channels", False) else 2, x[0].dim()))
    y = x[0] - x[0].mean(axes, keepdim=True)
    if not p.get("normalize_variance", True):
        return [y]
    deviation = (y * y).mean(axes, keepdim=True).sqrt() + p.get("eps", 1e-9)
    return [y / deviation]


def affine_shapes(name, default, shape):
    def shapes(layer, x):
        if not layer.sub(name).get("affine", default):
            return []
        return [("scale", shape(layer, x)), ("bias", shape(layer, x))]

    return shapes


def channels(layer, x):
    return (x.shape[1],)


def behind_axis(layer, x):
    return tuple(x.shape[layer.sub("layer_norm_param").get("axis", 1) % x.dim() :])


def factors(parameters):
    return parameters if parameters else [None, None]


def group_norm(layer, x, parameters, net):
    p = layer.sub("group_norm_param")
    groups, eps = p.get("groups", 32), p.get("eps", 1e-5)
    return [F.group_norm(x[0], groups, *factors(parameters), eps)]


def layer_norm(layer, x, parameters, net):
    p = layer.sub("layer_norm_param")
    shape = behind_axis(layer, x[0])
    return [F.layer_norm(x[0], shape, *factors(parameters), p.get("eps", 1e-5))]


def instance_norm(layer, x, parameters, net):
    scale, bias = factors(parameters)
    eps = layer.sub("instance_norm_param").get("eps", 1e-5)
    return [F.instance_norm(x[0], weight=scale, bias=bias, eps=eps)]


SHAPES = {
    "GroupNorm": affine_shapes("group_norm_param", True, channels),
    "InstanceNorm": affine_shapes("instance_norm_param", False, channels),
    "LayerNorm": affine_shapes("layer_norm_param", True, behind_axis),
    "PReLU": prelu_shapes,
}

TYPES = {
    "AbsVal": absval,
    "BNLL": bnll,
    "Clip": clip,
    "ELU": elu,
    "Exp": exp,
    "GroupNorm": group_norm,
    "InstanceNorm": instance_norm,
    "LayerNorm": layer_norm,
    "Log": log,
    "MVN": mvn,
    "PReLU": prelu,
    "Power": power,
    "Swish": swish,
    "Threshold": threshold,
}
