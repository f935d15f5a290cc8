"""Losses of pairs and margins, embeddings.

SPDX-License-Identifier: BSD-2-Clause
"""

import torch


def hinge_loss(layer, x, parameters, net):
    scores, label = x[0].flatten(1), x[1].long().reshape(-1)
    sign = torch.ones_like(scores).scatter(1, label[:, None], -1.0)
    part = torch.relu(1 + sign * scores)
    if layer.sub("hinge_loss_param").get("norm", "L1") == "L2":
        part = part * part
    return [part.sum() / scores.shape[0]]


class Contrastive(torch.autograd.Function):
    """Caffe's gradient divides by the distance and 1e-4 more."""

    @staticmethod
    def forward(ctx, a, b, similar, margin, legacy):
        apart = a - b
        square = (apart * apart).sum(1)
        distance = square.sqrt()
        left = torch.relu(margin - (square if legacy else distance))
        terms = torch.where(similar, square, left if legacy else left * left)
        away = -(left > 0).to(a.dtype) if legacy else -left / (distance + 1e-4)
        slope = torch.where(similar, torch.ones_like(away), away)
        ctx.save_for_backward(slope[:, None] * apart / a.shape[0])
        return terms.sum() / (2 * a.shape[0])

    @staticmethod
    def backward(ctx, dy):
        (slope,) = ctx.saved_tensors
        return dy * slope, -dy * slope, None, None, None


def contrastive_loss(layer, x, parameters, net):
    p = layer.sub("contrastive_loss_param")
    similar = x[2].reshape(-1).long() != 0
    margin, legacy = p.get("margin", 1.0), p.get("legacy_version", False)
    return [Contrastive.apply(x[0].flatten(1), x[1].flatten(1), similar, margin, legacy)]


def smooth_l1_loss(layer, x, parameters, net):
    """PyTorch's Huber loss, whose bend is at beta = 1 / sigma^2, and is as steep behind it."""
    sigma = layer.sub("smooth_l1_loss_param").get("sigma", 1.0)
    rows, positions = x[0].shape[0], x[0][:, :1].numel()
    p, ohem = layer.sub("loss_param"), layer.get("type") == "SmoothL1LossOHEM"
    divisors = {
        "BATCH_SIZE": rows,
        "FULL": positions,
        "VALID": positions,
        "PRE_FIXED": p.get("pre_fixed_normalizer", 1.0),
    }
    divisor = divisors[p.get("normalization", "VALID" if ohem else "BATCH_SIZE")]
    inside = x[2] if len(x) > 2 else torch.ones_like(x[0])
    outside = x[3] if len(x) > 3 else torch.ones_like(x[0])
    terms = torch.nn.functional.smooth_l1_loss(
        inside * x[0], inside * x[1], reduction="none", beta=1 / sigma**2
    )
    return [(outside * terms).sum() / divisor, (outside * terms).sum(1, keepdim=True)]


def embed(layer, x, parameters, net):
    y = torch.nn.functional.embedding(x[0].round().long(), parameters[0])
    return [y + parameters[1] if len(parameters) > 1 else y]


def embed_shapes(layer, x):
    p = layer.sub("embed_param")
    shapes = [("weight", (p.get("input_dim"), p.get("num_output")))]
    return shapes + ([("bias", (p.get("num_output"),))] if p.get("bias_term", True) else [])


SHAPES = {"Embed": embed_shapes}

LOSSES = {"ContrastiveLoss", "HingeLoss", "SmoothL1Loss", "SmoothL1LossOHEM"}

TYPES = {
    "ContrastiveLoss": contrastive_loss,
    "Embed": embed,
    "HingeLoss": hinge_loss,
    "SmoothL1Loss": smooth_l1_loss,
    "SmoothL1LossOHEM": smooth_l1_loss,
}
