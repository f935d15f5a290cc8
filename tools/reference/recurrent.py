"""Recurrent layers, step by step on PyTorch's cells, whose gates are in another order than Caffe's.

A function a layer type, as in layers.py. The state goes on from update to update, sequence by
sequence, without a gradient.
SPDX-License-Identifier: BSD-2-Clause
"""

import math

import torch


def sizes(layer, x):
    p = layer.sub("recurrent_param")
    return p.get("num_output"), math.prod(x[0].shape[2:]), p.get("expose_hidden", False)


def shapes(parts, names):
    """`names`: of x, its bias, x_static, h, its bias (or None), and of what follows."""

    def of(layer, x):
        hidden, inputs, exposed = sizes(layer, x)
        states = 2 if parts == 4 else 1
        rows = parts * hidden
        found = [(names[0], (rows, inputs)), (names[1], (rows,))]
        if len(x) > 2 + (states if exposed else 0):
            found.append((names[2], (rows, math.prod(x[2].shape[1:]))))
        found.append((names[3], (rows, hidden)))
        if names[4]:
            found.append((names[4], (rows,)))
        return found + [(n, (hidden, hidden) if n[0] == "W" else (hidden,)) for n in names[5:]]

    return of


def ordered(w, order):
    """The rows of w in parts, in another order."""
    return torch.cat([w.chunk(len(order))[i] for i in order])


LSTM = [0, 1, 3, 2]  # PyTorch has i, f, g, o


def lstm_cell(x, state, w, still, u):
    none = torch.zeros(w[0].shape[0], dtype=x.dtype)
    given = torch.cat([x, still[0]], 1) if still else x
    inner = torch.cat([w[0], still[1]], 1) if still else w[0]
    return torch.lstm_cell(given, state, ordered(inner, LSTM), ordered(u[0], LSTM),
                           ordered(w[1], LSTM), none)


def gru_cell(x, state, w, still, u):
    given = torch.cat([x, still[0]], 1) if still else x
    inner = torch.cat([w[0], still[1]], 1) if still else w[0]
    return (torch.gru_cell(given, state[0], inner, u[0], w[1], u[1]),)


def rnn_cell(x, state, w, still, u):
    given = torch.cat([x, still[0]], 1) if still else x
    inner = torch.cat([w[0], still[1]], 1) if still else w[0]
    none = torch.zeros(w[0].shape[0], dtype=x.dtype)
    return (torch.rnn_tanh_cell(given, state[0], inner, u[0], w[1], none),)


def layer_of(cell, states, biases):
    def run(layer, x, parameters, net):
        hidden, inputs, exposed = sizes(layer, x)
        parameters, still, cont = list(parameters), None, x[1]
        if len(x) > 2 + (states if exposed else 0):
            still = (x[2].flatten(1), parameters.pop(2))
        w, u, rest = parameters[:2], parameters[2 : 3 + biases], parameters[3 + biases :]
        kept = net.__dict__.setdefault("states", {})
        state = [s[0] for s in x[-states:]] if exposed else kept.get(layer.get("name"))
        if state is None:
            state = [torch.zeros(x[0].shape[1], hidden, dtype=x[0].dtype)] * states
        tops = []
        for t in range(x[0].shape[0]):
            state = [s * cont[t][:, None] for s in state]
            state = cell(x[0][t].flatten(1), state, w, still, u)
            tops.append(state[0])
        kept[layer.get("name")] = [s.detach() for s in state]
        top = torch.stack(tops)
        if rest:
            top = torch.tanh(top @ rest[0].t() + rest[1])
        return [top] + [s[None] for s in state][: len(layer.all("top")) - 1]

    return run


def lstm_unit(layer, x, parameters, net):
    i, f, o, g = x[1].chunk(4, 2)
    c = torch.sigmoid(f) * x[0] * x[2][..., None] + torch.sigmoid(i) * torch.tanh(g)
    return [c, torch.sigmoid(o) * torch.tanh(c)]


SHAPES = {
    "GRU": shapes(3, ["W_x", "b_x", "W_x_static", "W_h", "b_h"]),
    "LSTM": shapes(4, ["W_xc", "b_c", "W_xc_static", "W_hc", None]),
    "RNN": shapes(1, ["W_xh", "b_h", "W_xh_static", "W_hh", None, "W_ho", "b_o"]),
}

TYPES = {
    "GRU": layer_of(gru_cell, 1, 1),
    "LSTM": layer_of(lstm_cell, 2, 0),
    "LSTMUnit": lstm_unit,
    "RNN": layer_of(rnn_cell, 1, 0),
}
