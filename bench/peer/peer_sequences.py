"""Layers of bench/sequences.py as PyTorch modules.

SPDX-License-Identifier: BSD-2-Clause
"""

import torch
from torch import nn
from torch.nn import functional


class Positions(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.table = nn.Parameter(torch.randn(shape) * 0.02)

    def forward(self, x):
        return x + self.table


class Attention(nn.Module):
    def __init__(self, set):
        super().__init__()
        self.heads, self.causal = set["num_heads"], set["causal"]

    def forward(self, x, mask=None):
        batch, steps, channels = x.shape
        q, k, v = x.view(batch, steps, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if mask is not None:
            mask = mask[:, None, None, :].bool()
        x = functional.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal)
        return x.transpose(1, 2).reshape(batch, steps, channels // 3)


class LinearSoftmaxLoss(nn.Module):
    """Scores by the embedding's own table, and the mean of their losses."""

    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, x, label):
        scores = functional.linear(x, self.table.weight)
        return functional.cross_entropy(scores.flatten(0, 1), label.flatten())


def embedding(layer, set):
    table = nn.Embedding(set["input_dim"], set["num_output"])
    nn.init.normal_(table.weight, std=0.02)
    return table


MODULES = {
    "Embed": embedding,
    "Bias": lambda layer, set: Positions(layer.shape_in),
    "LayerNorm": lambda layer, set: nn.LayerNorm(layer.shape_in[-1]),
    "Attention": lambda layer, set: Attention(set),
    "GELU": lambda layer, set: nn.GELU(approximate=set["approximate"].lower()),
    "TanH": lambda layer, set: nn.Tanh(),
}

# What only moves numbers.
FUNCTIONS = {
    "First": lambda x: x[:, 0],
    "Mean": lambda x: x.mean(1),
    "Patches": lambda x: x.flatten(2).transpose(1, 2),
}
