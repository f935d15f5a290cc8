"""Batch normalisation in its forms, Scale and Bias. Statistics are PyTorch's batch_norm on whole
groups of samples, whatever micro-batches Lockstep cuts them into.

SPDX-License-Identifier: BSD-2-Clause
"""

import torch
import torch.nn.functional as F


def along(x, axis, factor):
    """`factor`, whose axes are those of x from `axis` on, shaped so that it broadcasts."""
    shape = [1] * x.dim()
    shape[axis : axis + factor.dim()] = factor.shape
    return factor.reshape(shape)


def factor_shape(x, p):
    axis, count = p.get("axis", 1), p.get("num_axes", 1)
    axis = axis + x.dim() if axis < 0 else axis
    return tuple(x.shape[axis:]) if count < 0 else tuple(x.shape[axis : axis + count])


def scale_shapes(layer, x):
    p = layer.sub("scale_param")
    bias = p.get("bias_term", False)
    if len(layer.all("bottom")) > 1:
        return []
    return [("scale", factor_shape(x, p))] + ([("bias", factor_shape(x, p))] if bias else [])


def bias_shapes(layer, x):
    two = len(layer.all("bottom")) > 1
    return [] if two else [("bias", factor_shape(x, layer.sub("bias_param")))]


def scale(layer, x, parameters, net):
    p = layer.sub("scale_param")
    axis = p.get("axis", 1) % x[0].dim()
    values = ([x[1]] if len(x) > 1 else []) + parameters
    y = x[0] * along(x[0], axis, values[0])
    return [y + along(x[0], axis, values[1]) if len(values) > 1 else y]


def bias(layer, x, parameters, net):
    axis = layer.sub("bias_param").get("axis", 1) % x[0].dim()
    return [x[0] + along(x[0], axis, x[1] if len(x) > 1 else parameters[0])]


# ---- Batch normalisation ---------------------------------------------------------------------


def is_segnet(p):
    return p.has("scale_filler") or p.has("shift_filler") or p.has("bn_mode")


def batch_norm_shapes(layer, x):
    p = layer.sub("batch_norm_param")
    channels = (x.shape[1],)
    learned = p.get("scale_bias", False) or p.has("scale_filler") or p.has("bias_filler")
    averages = [("mean", channels), ("variance", channels), ("factor", (1,))]
    return averages + ([("scale", channels), ("bias", channels)] if learned else [])


def bn_shapes(layer, x):
    shape = (1, x.shape[1], 1, 1)
    averages = [] if is_segnet(layer.sub("bn_param")) else [("mean", shape), ("variance", shape)]
    return [("scale", shape), ("bias", shape)] + averages


def groups(count, batch, size):
    """Each batch by itself, in even groups of at most `size` samples (0: all)."""
    bounds = []
    for first in range(0, count, batch):
        here = min(batch, count - first)
        number = -(-here // size) if size > 0 else 1
        bounds += [
            (first + i * here // number, first + (i + 1) * here // number) for i in range(number)
        ]
    return bounds


def by_batch(x, net, p, scale, bias, eps, watch):
    """Normalises group by group; watch(mean, variance, values) sees each group's statistics."""
    parts = []
    for begin, end in groups(x.shape[0], net.batch, p.get("group", 0)):
        part = x[begin:end]
        axes = [i for i in range(x.dim()) if i != 1]
        values = part.numel() // part.shape[1]
        if values == 1:  # PyTorch refuses it; the variance is 0, and so is the gradient
            parts.append(torch.zeros_like(part) * part)
        else:
            parts.append(F.batch_norm(part, None, None, None, None, True, 0.0, eps))
        watch(part.detach().mean(axes), part.detach().var(axes, unbiased=False), values)
    y = torch.cat(parts)
    y = y if scale is None else y * along(y, 1, scale.reshape(-1))
    return y if bias is None else y + along(y, 1, bias.reshape(-1))


def advance(average, keep, add, statistic):
    value = average.value.detach()
    average.value = keep * value + add * statistic.reshape(value.shape)


def unbiased(variance, values):
    return variance * (values / (values - 1) if values > 1 else 1.0)


def batch_norm(layer, x, parameters, net):
    p = layer.sub("batch_norm_param")
    eps, keep = p.get("eps", 1e-5), p.get("moving_average_fraction", 0.999)
    mean, variance, factor = parameters[:3]
    scale, bias = parameters[3:] if len(parameters) > 3 else (None, None)
    if p.get("use_global_stats", net.phase == "TEST"):
        c = float(factor.detach())
        return [F.batch_norm(x[0], mean / c, variance / c, scale, bias, False, 0.0, eps)]

    def watch(mean, variance, values):
        averages = net.owned[layer.get("name")]
        if net.phase == "TRAIN":
            advance(averages[0], keep, 1, mean)
            advance(averages[1], keep, 1, unbiased(variance, values))
            advance(averages[2], keep, 1, torch.ones_like(factor.detach()))

    return [by_batch(x[0], net, p, scale, bias, eps, watch)]


def bn(layer, x, parameters, net):
    p = layer.sub("bn_param")
    segnet = is_segnet(p)
    scale, bias = parameters[0].reshape(-1), parameters[1].reshape(-1)
    eps, keep = p.get("eps", 1e-9 if segnet else 1e-5), p.get("momentum", 0.9)
    if p.get("bn_mode", "LEARN") == "INFERENCE":
        return [x[0] * along(x[0], 1, scale) + along(x[0], 1, bias)]
    if not segnet and (p.get("frozen", False) or net.phase == "TEST"):
        mean, variance = parameters[2].reshape(-1), parameters[3].reshape(-1)
        return [F.batch_norm(x[0], mean, variance, scale, bias, False, 0.0, eps)]

    def watch(mean, variance, values):
        if not segnet and net.phase == "TRAIN":
            averages = net.owned[layer.get("name")]
            advance(averages[2], keep, 1 - keep, mean)
            advance(averages[3], keep, 1 - keep, unbiased(variance, values))

    return [by_batch(x[0], net, p, scale, bias, eps, watch)]


def is_fixed(layer, name):
    """What no solver trains."""
    if layer.get("type") in ("BatchNorm", "SyncBN", "SyncBatchNorm", "BN"):
        if name in ("mean", "variance", "factor"):
            return True
    return layer.get("type") == "BN" and layer.sub("bn_param").get("frozen", False)


SHAPES = {
    "BN": bn_shapes,
    "BatchNorm": batch_norm_shapes,
    "Bias": bias_shapes,
    "Scale": scale_shapes,
    "SyncBN": batch_norm_shapes,
    "SyncBatchNorm": batch_norm_shapes,
}

TYPES = {
    "BN": bn,
    "BatchNorm": batch_norm,
    "Bias": bias,
    "Scale": scale,
    "SyncBN": batch_norm,
    "SyncBatchNorm": batch_norm,
}
