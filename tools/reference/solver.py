"""Caffe's solvers: rates, weight decay, clipping and the rules of update.

The batches of one update are taken as one batch (iter_size does not change what a loss is divided
by) and the gradient that is clipped is their mean: where Lockstep departs from Caffe.
SPDX-License-Identifier: BSD-2-Clause
"""

import math

import torch

import optimizers


def rate(solver, t):
    base = solver.get("base_lr")
    policy = solver.get("lr_policy", "fixed")
    gamma, power = solver.get("gamma", 0.0), solver.get("power", 0.0)
    if policy == "fixed":
        value = base
    elif policy == "step":
        value = base * gamma ** (t // solver.get("stepsize"))
    elif policy == "exp":
        value = base * gamma**t
    elif policy == "inv":
        value = base * (1 + gamma * t) ** -power
    elif policy == "multistep":
        value = base * gamma ** sum(s <= t for s in solver.all("stepvalue"))
    elif policy == "poly":
        value = base * (1 - t / solver.get("max_iter")) ** power
    elif policy == "sigmoid":
        value = base / (1 + math.exp(-gamma * (t - solver.get("stepsize"))))
    elif policy == "cosine":
        low = solver.get("lr_min", 0.0)
        value = low + (base - low) * (1 + math.cos(math.pi * t / solver.get("max_iter"))) / 2
    else:
        raise ValueError(policy)
    warmup = solver.get("warmup_iter", 0)
    if t < warmup:
        start = solver.get("warmup_start", 0.0)
        value *= start + (1 - start) * (t + 1) / warmup
    return value


class Rule:
    """One parameter's history and its update."""

    def __init__(self, solver, parameter, name):
        self.settings = optimizers.settings(solver, name, parameter.value.dim())
        self.parameter = parameter
        self.state = {}
        self.first = torch.zeros_like(parameter.value)
        self.second = torch.zeros_like(parameter.value)

    def decayed(self, gradient, w):
        decay = self.settings.decay() * self.parameter.decay
        if self.settings.get("regularization_type", "L2") == "L1":
            return gradient + decay * torch.sign(w)
        return gradient + decay * w

    def step(self, gradient, lr, t):
        """The change of the weights; t counts updates from 0."""
        kind = self.settings.get("type", self.settings.get("solver_type", "SGD"))
        kind = {"NESTEROV": "Nesterov"}.get(kind, kind)
        mu = self.settings.get("momentum", 0.0)
        r = lr * self.settings.rate() * self.parameter.rate
        w = self.parameter.value.detach()
        decay = self.settings.decay() * self.parameter.decay
        if kind in optimizers.RULES:
            rule = optimizers.RULES[kind]
            return rule(self.settings, self.state, w, gradient, r, decay, t + 1)
        if kind == "AdamW" and self.settings.get("corrected_delta", False):
            return optimizers.adamw(self.settings, self.state, w, gradient, r, decay, t + 1)
        g = gradient if kind == "AdamW" else self.decayed(gradient, w)
        if kind == "SGD":
            self.first = mu * self.first + r * g
            return -self.first
        if kind == "Nesterov":
            old, self.first = self.first, mu * self.first + r * g
            return -((1 + mu) * self.first - mu * old)
        b2 = self.settings.get("momentum2", 0.999)
        self.first = mu * self.first + (1 - mu) * g
        self.second = b2 * self.second + (1 - b2) * g * g
        correction = math.sqrt(1 - b2 ** (t + 1)) / (1 - mu ** (t + 1))
        delta = self.settings.get("delta", 1e-8)
        step = -r * correction * self.first / (torch.sqrt(self.second) + delta)
        if kind == "AdamW":
            step = step - r * decay * w
        elif kind != "Adam":
            raise ValueError(kind)
        return step


def clip(solver, gradients):
    limit = solver.get("clip_gradients", -1.0)
    norm = math.sqrt(sum(float((g * g).sum()) for g in gradients.values()))
    if limit > 0 and norm > limit:
        return {name: g * (limit / norm) for name, g in gradients.items()}
    return gradients


def positions(net, solver, t):
    """The samples of update t; batches wrap around the end of the data."""
    size = net.batch * solver.get("iter_size", 1)
    return [(t * size + i) % net.count for i in range(size)]


def train(net, solver, updates, watch):
    """Trains; calls watch(t, loss, gradients) after each update's gradients are known."""
    rules = {}
    for t in range(updates):
        loss = net.loss(net.forward(positions(net, solver, t)))
        learned = {k: p for k, p in net.parameters.items() if p.rate != 0}
        values = torch.autograd.grad(loss, [p.value for p in learned.values()])
        gradients = dict(zip(learned, values))
        watch(t, float(loss), gradients)
        lr = rate(solver, t)
        for name, gradient in clip(solver, gradients).items():
            parameter = net.parameters[name]
            rule = rules.setdefault(name, Rule(solver, parameter, name))
            step = rule.step(gradient, lr, t)
            parameter.value = (parameter.value.detach() + step).requires_grad_(True)
