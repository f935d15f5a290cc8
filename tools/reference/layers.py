"""Caffe's layers in PyTorch, in double precision; the gradients are PyTorch's.

A function a layer type: (layer, bottoms, parameters, net) -> tops. What is written here follows
Caffe's documentation and sources (layers/*.cpp), not Lockstep.
SPDX-License-Identifier: BSD-2-Clause
"""

import math

import torch
import torch.nn.functional as F

import attention
import boxes
import detections
import forks
import functions
import language
import mixing
import normalization
import pairs
import recurrent
import sequences

FLT_MIN = 1.17549435e-38


def window(param, name, axes, default=None):
    """Of each spatial axis: a field given once, once an axis, or as <name>_h and <name>_w."""
    short = {"kernel_size": "kernel"}.get(name, name)
    if param.has(short + "_h") or param.has(short + "_w"):
        return param.get(short + "_h", default), param.get(short + "_w", default)
    values = param.all(name) or [default]
    return tuple(values) if len(values) > 1 else (values[0],) * axes


def windows(layer, x, parameters, functions):
    """A function for 1, 2, 3 spatial axes on each bottom; what stands before the channels is put
    together and taken apart again."""
    p = layer.sub("convolution_param")
    axis = p.get("axis", 1) % x[0].dim()
    axes = x[0].dim() - axis - 1
    group = x[0].shape[axis] if layer.get("type") == "ConvolutionDepthwise" else 1
    options = dict(
        stride=window(p, "stride", axes, 1),
        padding=window(p, "pad", axes, 0),
        dilation=window(p, "dilation", axes, 1),
        groups=p.get("group", group),
    )
    bias = parameters[1] if len(parameters) > 1 else None
    tops = []
    for one in x:
        y = functions[axes - 1](one.flatten(0, axis - 1), parameters[0], bias, **options)
        tops.append(y.reshape(one.shape[:axis] + y.shape[1:]))
    return tops


def convolution(layer, x, parameters, net):
    return windows(layer, x, parameters, (F.conv1d, F.conv2d, F.conv3d))


def deconvolution(layer, x, parameters, net):
    functions = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
    return windows(layer, x, parameters, functions)


def interp(layer, x, parameters, net):
    p = layer.sub("interp_param")
    begin, end = -p.get("pad_beg", 0), -p.get("pad_end", 0)
    left = x[0][:, :, begin : x[0].shape[2] - end, begin : x[0].shape[3] - end]
    size = []
    for i in (2, 3):
        shrunk = (left.shape[i] - 1) // p.get("shrink_factor", 1) + 1
        size.append(shrunk + (shrunk - 1) * (p.get("zoom_factor", 1) - 1))
    if p.has("height"):
        size = [p.get("height"), p.get("width")]
    if len(x) > 1:
        size = x[1].shape[2:]
    return [F.interpolate(left, size=tuple(size), mode="bilinear", align_corners=True)]


def upsample(layer, x, parameters, net):
    p = layer.sub("upsample_param")
    if len(x) == 1:
        factors = (p.get("scale_h", p.get("scale", 2)), p.get("scale_w", p.get("scale", 2)))
        return [F.interpolate(x[0], scale_factor=factors, mode="nearest")]
    size = (p.get("upsample_h", 2 * x[0].shape[2]), p.get("upsample_w", 2 * x[0].shape[3]))
    if p.get("pad_out_h", False):
        size = (size[0] - 1, size[1])
    return [F.max_unpool2d(x[0], x[1], 2, 2, output_size=size)]


def crop(layer, x, parameters, net):
    p = layer.sub("crop_param")
    y, first = x[0], p.get("axis", 2) % x[0].dim()
    offsets = p.all("offset") or [0]
    for axis in range(first, y.dim()):
        offset = offsets[0] if len(offsets) == 1 else offsets[axis - first]
        y = y.narrow(axis, offset, x[1].shape[axis])
    return [y]


def inner_product(layer, x, parameters, net):
    p = layer.sub("inner_product_param")
    axis = p.get("axis", 1)
    axis = axis + x[0].dim() if axis < 0 else axis
    w = parameters[0] if p.get("transpose", False) else parameters[0].t()
    y = x[0].flatten(axis) @ w
    return [y + parameters[1] if len(parameters) > 1 else y]


def pooled_size(size, kernel, stride, pad, clip, floor):
    room = size + 2 * pad - kernel
    out = (room // stride if floor else -(-room // stride)) + 1
    if clip and (out - 1) * stride >= size + pad:
        out -= 1
    return out


def edges(x, kernel, stride, pad, out, value):
    """x with `value` around it, so that windows without padding make `out`."""
    widths = []
    for i in reversed(range(len(out))):  # F.pad begins with the last axis
        after = (out[i] - 1) * stride[i] + kernel[i] - pad[i] - x.shape[2 + i]
        widths += [pad[i], after]
    return F.pad(x, widths, value=value)


def average(x, kernel, stride, pad, out):
    """Caffe's divisor: positions of the window up to the padding's end, but not beyond."""
    padded, volume = edges(x, kernel, stride, pad, out, 0.0), math.prod(kernel)
    pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[len(out) - 1]
    sums = pool(padded, kernel, stride) * volume
    divisor = torch.ones((), dtype=x.dtype)
    for i in range(len(out)):
        first = torch.arange(out[i]) * stride[i] - pad[i]
        extents = torch.clamp(first + kernel[i], max=x.shape[2 + i] + pad[i]) - first
        divisor = divisor[..., None] * extents.to(x.dtype)
    return sums / divisor


def pooling(layer, x, parameters, net):
    p = layer.sub("pooling_param")
    x = x[0]
    size = x.shape[2:]
    axes = len(size)
    whole = p.get("global_pooling", False)
    kernel = tuple(size) if whole else window(p, "kernel_size", axes)
    stride, pad = window(p, "stride", axes, 1), window(p, "pad", axes, 0)
    floor = p.get("round_mode", "CEIL") == "FLOOR"
    clip = any(pad)
    out = [pooled_size(size[i], kernel[i], stride[i], pad[i], clip, floor) for i in range(axes)]
    if p.get("pool", "MAX") == "STOCHASTIC":
        if net.phase == "TRAIN":
            raise ValueError("random numbers are each library's own")
        return [average(x * x, kernel, stride, pad, out) / average(x, kernel, stride, pad, out)]
    if p.get("pool", "MAX") == "AVE":
        return [average(x, kernel, stride, pad, out)]
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[axes - 1]
    if len(layer.all("top")) > 1:
        return list(pool(x, kernel, stride, return_indices=True, ceil_mode=not floor))
    return [pool(edges(x, kernel, stride, pad, out, -math.inf), kernel, stride)]


def lrn(layer, x, parameters, net):
    p = layer.sub("lrn_param")
    n, alpha, beta = p.get("local_size", 5), p.get("alpha", 1.0), p.get("beta", 0.75)
    square = x[0] * x[0]
    if p.get("norm_region", "ACROSS_CHANNELS") == "WITHIN_CHANNEL":
        pad = (n - 1) // 2
        size = [pooled_size(s, n, 1, pad, True, False) for s in square.shape[2:]]
        return [x[0] * (1 + alpha * average(square, (n, n), (1, 1), (pad, pad), size)) ** -beta]
    channels = square.shape[1]
    padded = F.pad(square, (0, 0, 0, 0, n // 2, n // 2))
    total = sum(padded[:, i : i + channels] for i in range(n))
    return [x[0] * (p.get("k", 1.0) + alpha / n * total) ** -beta]


def relu(layer, x, parameters, net):
    slope = layer.sub("relu_param").get("negative_slope", 0.0)
    return [torch.where(x[0] > 0, x[0], slope * x[0])]


def sigmoid(layer, x, parameters, net):
    return [torch.sigmoid(x[0])]


def tanh(layer, x, parameters, net):
    return [torch.tanh(x[0])]


def dropout(layer, x, parameters, net):
    if net.phase == "TRAIN":
        raise ValueError("random numbers are each library's own")
    return [x[0]]


def softmax(layer, x, parameters, net):
    axis = layer.sub("softmax_param").get("axis", 1)
    if len(x) == 1:
        return [torch.softmax(x[0], axis)]
    parts = torch.exp(x[0] - x[0].max().detach()) * (x[1].round() != 0)
    return [parts / parts.sum(axis, keepdim=True).clamp(min=1e-300)]


def flatten(layer, x, parameters, net):
    p = layer.sub("flatten_param")
    return [x[0].flatten(p.get("axis", 1), p.get("end_axis", -1))]


def reshape(layer, x, parameters, net):
    """Extents of 0 copy, -1 is what remains; in place of num_axes axes from `axis` on."""
    p = layer.sub("reshape_param")
    old = list(x[0].shape)
    begin = p.get("axis", 0)
    begin = begin + len(old) + 1 if begin < 0 else begin
    count = p.get("num_axes", -1)
    end = len(old) if count == -1 else begin + count
    new = [old[begin + i] if d == 0 else d for i, d in enumerate(p.sub("shape").all("dim"))]
    return [x[0].reshape(old[:begin] + new + old[end:])]


def slice_(layer, x, parameters, net):
    p = layer.sub("slice_param")
    axis = p.get("axis", p.get("slice_dim", 1))
    points = p.all("slice_point")
    if points:
        return list(torch.tensor_split(x[0], points, axis))
    return list(torch.chunk(x[0], len(layer.all("top")), axis))


def tile(layer, x, parameters, net):
    p = layer.sub("tile_param")
    return [torch.cat([x[0]] * p.get("tiles"), p.get("axis", 1))]


def reduction(layer, x, parameters, net):
    p = layer.sub("reduction_param")
    axis = p.get("axis", 0)
    axis = axis + x[0].dim() if axis < 0 else axis
    runs = x[0].reshape(x[0].shape[:axis] + (-1,))
    operation = p.get("operation", "SUM")
    if operation == "MEAN":
        y = runs.mean(-1)
    else:
        y = {"SUM": runs, "ASUM": runs.abs(), "SUMSQ": runs * runs}[operation].sum(-1)
    return [p.get("coeff", 1.0) * y]


def argmax(layer, x, parameters, net):
    """The largest numbers of each sample; ties are for tests elsewhere."""
    p = layer.sub("argmax_param")
    if p.has("axis"):
        values, places = torch.topk(x[0], p.get("top_k", 1), p.get("axis"))
        return [values if p.get("out_max_val", False) else places.to(values.dtype)]
    values, places = torch.topk(x[0].flatten(1), p.get("top_k", 1), 1)
    places = places.to(values.dtype)
    both = [places, values] if p.get("out_max_val", False) else [places]
    return [torch.stack(both, 1)]


def concat(layer, x, parameters, net):
    p = layer.sub("concat_param")
    return [torch.cat(x, p.get("axis", p.get("concat_dim", 1)))]


def eltwise(layer, x, parameters, net):
    p = layer.sub("eltwise_param")
    operation = p.get("operation", "SUM")
    y = x[0] * (p.all("coeff") + [1.0])[0] if operation == "SUM" else x[0]
    for i, other in enumerate(x[1:], 1):
        if operation == "SUM":
            y = y + (p.all("coeff")[i] if p.has("coeff") else 1.0) * other
        else:
            y = y * other if operation == "PROD" else torch.maximum(y, other)
    return [y]


def silence(layer, x, parameters, net):
    return []


def split(layer, x, parameters, net):
    return [x[0] for _ in layer.all("top")]


# ---- Losses ----------------------------------------------------------------------------------


def normalizer(layer, default, full, valid, outer):
    p = layer.sub("loss_param")
    mode = p.get("normalization", default)
    if not p.has("normalization") and p.has("normalize"):
        mode = "VALID" if p.get("normalize") else "BATCH_SIZE"
    return max(1.0, {"FULL": full, "VALID": valid, "BATCH_SIZE": outer, "NONE": 1}[mode])


def cross_entropy(layer, scores, label, full):
    """PyTorch's own, for what Caffe does not have: scores [N, C, d], label [N, d]; without `full`
    those of each position."""
    p = layer.sub("loss_param")
    rest = {"label_smoothing": p.get("label_smoothing", 0.0)}
    if p.has("class_weight"):
        rest["weight"] = torch.tensor(p.all("class_weight"), dtype=scores.dtype)
    if p.has("ignore_label"):
        rest["ignore_index"] = p.get("ignore_label")
    if full is None:
        return F.cross_entropy(scores, label, reduction="none", **rest)
    if p.get("normalization", "VALID") == "WEIGHTS":
        return F.cross_entropy(scores, label, reduction="mean", **rest)
    valid = int((label != p.get("ignore_label", -1)).sum())
    total = F.cross_entropy(scores, label, reduction="sum", **rest)
    return total / normalizer(layer, "VALID", full, valid, scores.shape[0])


def softmax_loss(layer, x, parameters, net):
    axis = layer.sub("softmax_param").get("axis", 1)
    scores, label = x[0], x[1].round().long()
    outer = math.prod(scores.shape[:axis])
    inner = math.prod(scores.shape[axis + 1 :])
    scores = scores.reshape(outer, scores.shape[axis], inner)
    label = label.reshape(outer, inner)
    if layer.sub("loss_param").has("class_weight") or layer.sub("loss_param").has("label_smoothing"):
        loss = cross_entropy(layer, scores, label, outer * inner)
        each = cross_entropy(layer, scores, label, None)
        return [loss, torch.softmax(scores, 1).reshape(x[0].shape), each.reshape(x[1].shape)]
    counted = label != layer.sub("loss_param").get("ignore_label", -1)
    picked = torch.where(counted, label, torch.zeros_like(label))
    prob = torch.softmax(scores, 1)
    mine = prob.gather(1, picked[:, None, :])[:, 0, :]
    terms = -torch.log(torch.clamp(mine, min=FLT_MIN)) * counted
    divisor = normalizer(layer, "VALID", outer * inner, int(counted.sum()), outer)
    loss = terms.sum() / divisor
    metrics = layer.sub("softmax_param").all("metric")
    if metrics:
        rows = scores.transpose(1, 2).flatten(0, 1)
        numbers = x[2] if len(x) > 2 else None
        flat = [value.reshape(-1) for value in (picked, counted, terms)]
        return [loss] + language.figures(metrics, rows, *flat, numbers)
    return [loss, prob.reshape(x[0].shape), terms.reshape(x[1].shape)]


def sigmoid_cross_entropy_loss(layer, x, parameters, net):
    score, target = x[0].flatten(1), x[1].flatten(1)
    p = layer.sub("loss_param")
    counted = torch.ones_like(target, dtype=torch.bool)
    if p.has("ignore_label"):
        counted = target.long() != p.get("ignore_label")
    terms = F.softplus(score) - score * target
    divisor = normalizer(
        layer, "BATCH_SIZE", target.numel(), int(counted.sum()), target.shape[0]
    )
    return [(terms * counted).sum() / divisor]


def multinomial_logistic_loss(layer, x, parameters, net):
    rows = x[0].shape[0]
    p = layer.sub("loss_param")
    logs = torch.log(torch.clamp(x[0].flatten(1), min=1e-20))
    weight = None
    if p.has("class_weight"):
        weight = torch.tensor(p.all("class_weight"), dtype=logs.dtype)
    label, ignored = x[1].long().reshape(rows), p.get("ignore_label", -1)
    mean = p.get("normalization", "BATCH_SIZE") == "WEIGHTS"
    how = "mean" if mean else "sum"
    loss = F.nll_loss(logs, label, weight=weight, ignore_index=ignored, reduction=how)
    valid = int((label != ignored).sum())
    return [loss if mean else loss / normalizer(layer, "BATCH_SIZE", rows, valid, rows)]


def euclidean_loss(layer, x, parameters, net):
    difference = x[0].flatten(1) - x[1].flatten(1)
    return [(difference * difference).sum() / (2 * x[0].shape[0])]


def accuracy(layer, x, parameters, net):
    """A hit: at most top_k scores are as large as the true one, itself counted."""
    p = layer.sub("accuracy_param")
    axis = p.get("axis", 1)
    scores = x[0].movedim(axis, -1).reshape(-1, x[0].shape[axis])
    label = x[1].long().reshape(-1)
    if p.has("ignore_label"):
        keep = label != p.get("ignore_label")
        scores, label = scores[keep], label[keep]
    mine = scores.gather(1, label[:, None])
    hit = ((scores >= mine).sum(1) <= p.get("top_k", 1)).double()
    classes = [hit[label == c] for c in range(scores.shape[1])]
    each = torch.stack([c.mean() if len(c) else torch.zeros((), dtype=hit.dtype) for c in classes])
    return [hit.mean() if len(hit) else torch.zeros(()), each]


def mean_iou(layer, x, parameters, net):
    p = layer.sub("mean_iou_param")
    axis = p.get("axis", 1)
    scores = x[0].movedim(axis, -1).reshape(-1, x[0].shape[axis])
    label = x[1].long().reshape(-1)
    if p.has("ignore_label"):
        keep = label != p.get("ignore_label")
        scores, label = scores[keep], label[keep]
    taken = scores.argmax(1)
    classes = range(scores.shape[1])
    both = [((taken == c) & (label == c)).sum().item() for c in classes]
    either = [((taken == c) | (label == c)).sum().item() for c in classes]
    each = [b / e if e else 0.0 for b, e in zip(both, either)]
    occur = [b / e for b, e in zip(both, either) if e]
    mean = sum(occur) / len(occur) if occur else 0.0
    return [torch.tensor(mean), torch.tensor(each)]


TYPES = {
    **attention.TYPES,
    **boxes.TYPES,
    **detections.TYPES,
    **forks.TYPES,
    **functions.TYPES,
    **mixing.TYPES,
    **normalization.TYPES,
    **language.TYPES,
    **pairs.TYPES,
    **recurrent.TYPES,
    **sequences.TYPES,
    "Accuracy": accuracy,
    "ArgMax": argmax,
    "Concat": concat,
    "Convolution": convolution,
    "ConvolutionDepthwise": convolution,
    "Crop": crop,
    "Deconvolution": deconvolution,
    "DepthwiseConvolution": convolution,
    "Dropout": dropout,
    "Eltwise": eltwise,
    "EuclideanLoss": euclidean_loss,
    "Flatten": flatten,
    "InnerProduct": inner_product,
    "Interp": interp,
    "LRN": lrn,
    "MeanIoU": mean_iou,
    "MultinomialLogisticLoss": multinomial_logistic_loss,
    "Pooling": pooling,
    "ReLU": relu,
    "Reduction": reduction,
    "Reshape": reshape,
    "Sigmoid": sigmoid,
    "SigmoidCrossEntropyLoss": sigmoid_cross_entropy_loss,
    "Silence": silence,
    "Slice": slice_,
    "Softmax": softmax,
    "SoftmaxWithLoss": softmax_loss,
    "SoftmaxWithLossOHEM": softmax_loss,
    "Split": split,
    "TanH": tanh,
    "Tile": tile,
    "Upsample": upsample,
}
