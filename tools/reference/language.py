"""What language models end with: a product and a softmax loss behind it, in one.

A function a layer type, as in layers.py.
SPDX-License-Identifier: BSD-2-Clause
"""

import math

import torch


def figures(metrics, scores, picked, counted, nats, numbers):
    """What each metric is, of rows of scores and the classes picked in them."""
    best = (scores >= scores.gather(1, picked[:, None])).sum(1).eq(1) & counted
    known = {
        "PERPLEXITY": lambda: torch.exp(nats.sum() / counted.sum()),
        "BITS_PER_BYTE": lambda: nats.sum() / math.log(2) / (numbers.reshape(-1) * counted).sum(),
        "ACCURACY": lambda: best.to(scores.dtype).sum() / counted.sum(),
    }
    return [known[name]().detach() for name in metrics]


def linear_softmax_loss(layer, x, parameters, net):
    import layers  # which imports this file

    p = layer.sub("linear_softmax_loss_param")
    axis = p.get("axis", -1) % x[0].dim()
    outer = math.prod(x[0].shape[:axis])
    scores = x[0].reshape(outer, -1) @ parameters[0].T
    if len(parameters) > 1:
        scores = scores + parameters[1]
    label = x[1].round().long().reshape(outer, 1)
    param = layer.sub("loss_param")
    counted = (label != param.get("ignore_label", -1))[:, 0]
    picked = torch.where(counted, label[:, 0], torch.zeros_like(label[:, 0]))
    nats = -torch.log_softmax(scores, 1).gather(1, picked[:, None])[:, 0] * counted
    if param.has("class_weight") or param.has("label_smoothing"):
        loss = layers.cross_entropy(layer, scores[:, :, None], label, outer)
    else:
        loss = nats.sum() / layers.normalizer(layer, "VALID", outer, int(counted.sum()), outer)
    numbers = x[2] if len(x) > 2 else None
    return [loss] + figures(p.all("metric"), scores, picked, counted, nats, numbers)


def linear_softmax_loss_shapes(layer, x):
    p = layer.sub("linear_softmax_loss_param")
    inputs = math.prod(x.shape[p.get("axis", -1) % x.dim() :])
    shapes = [("weight", (p.get("num_output"), inputs))]
    return shapes + ([("bias", (p.get("num_output"),))] if p.get("bias_term", False) else [])


SHAPES = {"LinearSoftmaxLoss": linear_softmax_loss_shapes}

LOSSES = {"LinearSoftmaxLoss"}

TYPES = {"LinearSoftmaxLoss": linear_softmax_loss}
