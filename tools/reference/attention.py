"""Attention, by PyTorch's scaled_dot_product_attention.

SPDX-License-Identifier: BSD-2-Clause
"""

import math

import torch
from torch.nn.functional import scaled_dot_product_attention


def turned(x, positions, p):
    """Rotary positions. x [N, heads, T, D], positions [N, T]."""
    dims, theta = p.get("dims", 0) or x.shape[-1], p.get("theta", 10000.0)
    power = -2.0 * torch.arange(dims // 2, dtype=x.dtype) / dims
    angle = positions.to(x.dtype)[:, None, :, None] * theta**power
    cosine, sine = torch.cos(angle), torch.sin(angle)
    neighbours = p.get("pairs", "HALVES") == "NEIGHBOURS"
    part, rest = x[..., :dims], x[..., dims:]
    a, b = (part[..., 0::2], part[..., 1::2]) if neighbours else part.chunk(2, -1)
    first, second = a * cosine - b * sine, b * cosine + a * sine
    both = torch.stack([first, second], -1).flatten(-2) if neighbours else torch.cat([first, second], -1)
    return torch.cat([both, rest], -1)


def seen(p, extras, n, heads, queries, keys):
    """Which pairs count, [N, heads, queries, keys], and what is added."""
    i = torch.arange(queries)[:, None] + keys - queries
    j = torch.arange(keys)[None, :]
    counts, added = torch.ones(n, heads, queries, keys, dtype=torch.bool), 0.0
    if p.get("causal", False):
        counts &= j <= i
    if p.get("window", 0):
        counts &= (i - j).abs() < p.get("window")
    for kind, x in extras.items():
        if kind == "KEY_LENGTHS":
            counts &= (j < x.reshape(n, 1))[:, None, None]
        elif kind == "KEY_MASK":
            counts &= (x.reshape(n, 1, 1, keys) != 0)
        elif kind == "SEGMENTS":
            counts &= (x.reshape(n, 1, queries, 1) == x.reshape(n, 1, 1, keys))
        elif kind in ("MASK", "ADDED_MASK"):
            whole = x if x.dim() == 4 else x[:, None]
            if kind == "MASK":
                counts &= whole != 0
            else:
                added = whole.detach()
    return counts, added


def heads_of(x, heads):
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def attention(layer, x, parameters, net):
    p = layer.sub("attention_param")
    heads = p.get("num_heads")
    kv_heads = p.get("num_kv_heads", 0) or heads
    kinds = p.all("extra")
    operands, extras = x[: len(x) - len(kinds)], dict(zip(kinds, x[len(x) - len(kinds) :]))
    if len(operands) == 1:
        depth = operands[0].shape[2] // (heads + 2 * kv_heads)
        operands = operands[0].split([heads * depth, kv_heads * depth, kv_heads * depth], 2)
    q, k, v = heads_of(operands[0], heads), heads_of(operands[1], kv_heads), heads_of(operands[2], kv_heads)
    n, queries, keys = q.shape[0], q.shape[2], k.shape[2]
    if p.has("rotary"):
        place = extras.get("POSITIONS")
        place = torch.arange(keys, dtype=q.dtype).expand(n, keys) if place is None else place.reshape(n, keys)
        q, k = turned(q, place[:, keys - queries :], p.sub("rotary")), turned(k, place, p.sub("rotary"))
    k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, v))
    counts, added = seen(p, extras, n, heads, queries, keys)
    none = ~counts.any(-1, keepdim=True)  # PyTorch's softmax of nothing is no number
    mask = torch.zeros(counts.shape, dtype=q.dtype).masked_fill(~(counts | none), -math.inf) + added
    y = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=p.get("scale", q.shape[-1] ** -0.5))
    return [y.masked_fill(none, 0.0).transpose(1, 2).flatten(2)]


TYPES = {"Attention": attention}
