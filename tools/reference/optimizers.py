"""Rules of update that Caffe does not have, and groups of parameters.

Each rule is a function of the settings, the parameter's state (a dictionary), its weights, its
gradient, the rate and the number of the update from 1 on; it returns the change of the weights.
Run by itself this file compares them with PyTorch's own optimizers, where those are there.
SPDX-License-Identifier: BSD-2-Clause
"""

import fnmatch
import math

import torch


class Settings:
    """The solver's fields, those of a group in their place."""

    def __init__(self, solver, group=None):
        self.solver, self.group = solver, group

    def get(self, field, default=None):
        if self.group is not None and self.group.has(field):
            return self.group.get(field)
        return self.solver.get(field, default)

    def sub(self, field):
        if self.group is not None and self.group.has(field):
            return self.group.sub(field)
        return self.solver.sub(field)

    def rate(self):
        """What the policy's rate is multiplied by."""
        if self.group is None:
            return 1.0
        own = self.group.get("base_lr")
        base = own / self.solver.get("base_lr") if own is not None else 1.0
        return base * self.group.get("lr_mult", 1.0)

    def decay(self):
        mult = 1.0 if self.group is None else self.group.get("decay_mult", 1.0)
        return mult * self.get("weight_decay", 0.0)


def settings(solver, name, axes):
    """The settings of a parameter: those of the first group that matches."""
    for group in solver.all("param_group"):
        patterns = group.all("match")
        named = not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns)
        if named and group.get("min_axes", 0) <= axes <= group.get("max_axes", 99):
            return Settings(solver, group)
    return Settings(solver)


def moments(s, state, w, g):
    mu, b2 = s.get("momentum", 0.0), s.get("momentum2", 0.999)
    state["m"] = mu * state.get("m", torch.zeros_like(w)) + (1 - mu) * g
    state["v"] = b2 * state.get("v", torch.zeros_like(w)) + (1 - b2) * g * g
    return mu, b2


def adam_direction(s, state, w, g, t):
    """Adam's step for a rate of 1, with delta added behind the correction."""
    mu, b2 = moments(s, state, w, g)
    root = torch.sqrt(state["v"] / (1 - b2**t))
    return state["m"] / (1 - mu**t) / (root + s.get("delta", 1e-8))


def adamw(s, state, w, g, lr, decay, t):
    return -lr * (adam_direction(s, state, w, g, t) + decay * w)


def lion(s, state, w, g, lr, decay, t):
    mu, b2 = s.get("momentum", 0.0), s.get("momentum2", 0.999)
    m = state.get("m", torch.zeros_like(w))
    state["m"] = b2 * m + (1 - b2) * g
    return -lr * (torch.sign(mu * m + (1 - mu) * g) + decay * w)


def lamb(s, state, w, g, lr, decay, t):
    d = adam_direction(s, state, w, g, t) + decay * w
    weights, direction = float(w.norm()), float(d.norm())
    trust = weights / direction if weights > 0 and direction > 0 else 1.0
    return -lr * trust * d


def rms(x):
    return math.sqrt(float((x * x).mean()))


def adafactor(s, state, w, g, lr, decay, t):
    p = s.sub("adafactor_param")
    new = t ** -p.get("decay_power", 0.8)
    squares = g * g + p.get("square_min", 1e-30)
    if g.dim() > 1:  # the last two axes are matrices
        for key, axis in (("rows", -1), ("columns", -2)):
            mean = squares.mean(dim=axis)
            state[key] = state.get(key, torch.zeros_like(mean)) * (1 - new) + new * mean
        rows = state["rows"] / state["rows"].mean(dim=-1, keepdim=True)
        v = rows[..., :, None] * state["columns"][..., None, :]
    else:
        state["v"] = state.get("v", torch.zeros_like(squares)) * (1 - new) + new * squares
        v = state["v"]
    u = g / torch.sqrt(v)
    u = u / max(1.0, rms(u) / p.get("clip", 1.0))
    step = min(lr, 1 / math.sqrt(t)) if p.get("relative_step", True) else lr
    if p.get("scale_parameter", True):
        step *= max(p.get("scale_min", 1e-3), rms(w))
    u = step * u
    mu = s.get("momentum", 0.0)
    if mu > 0:
        u = state["m"] = mu * state.get("m", torch.zeros_like(u)) + (1 - mu) * u
    return -u - lr * decay * w


def newton_schulz(x, steps, delta):
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / (x.norm() + delta)
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return x.T if tall else x


def muon(s, state, w, g, lr, decay, t):
    p, mu = s.sub("muon_param"), s.get("momentum", 0.0)
    state["m"] = mu * state.get("m", torch.zeros_like(w)) + (1 - mu) * g
    u = mu * state["m"] + (1 - mu) * g if p.get("nesterov", True) else state["m"]
    u = u.reshape(u.shape[0], -1)
    o = newton_schulz(u, p.get("newton_schulz", 5), s.get("delta", 1e-8))
    rows, columns = u.shape
    if p.get("scale", "ORIGINAL") == "ORIGINAL":
        scale = math.sqrt(max(1.0, rows / columns))
    else:
        scale = 0.2 * math.sqrt(max(rows, columns))
    return -lr * (scale * o.reshape(w.shape) + decay * w)


RULES = {"Lion": lion, "LAMB": lamb, "Adafactor": adafactor, "Muon": muon}


def check():
    """The rules beside PyTorch's, in double precision, Muon's iterations too."""
    import textformat

    torch.bfloat16 = torch.float64

    makers = {
        "AdamW": (
            adamw,
            "momentum: 0.9 momentum2: 0.99 delta: 1e-3",
            lambda p: torch.optim.AdamW(p, 0.01, (0.9, 0.99), 1e-3, weight_decay=0.1),
        ),
        "Adafactor": (
            adafactor,
            "adafactor_param { square_min: 1e-200 }",
            lambda p: torch.optim.Adafactor(p, 0.01, weight_decay=0.1),
        ),
        "Muon": (
            muon,
            "momentum: 0.95 delta: 1e-30 muon_param { scale: MATCH_RMS }",
            lambda p: torch.optim.Muon(
                p, 0.01, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"
            ),
        ),
    }
    generator = torch.Generator().manual_seed(1)
    for name, (rule, text, make) in makers.items():
        if not hasattr(torch.optim, name):
            continue
        s, differs = Settings(textformat.read(text)), 0.0
        for shape in ((7, 5), (4, 6)) if name == "Muon" else ((7, 5), (6,), (3, 4, 2, 5)):
            w = torch.randn(shape, dtype=torch.float64, generator=generator)
            theirs = torch.nn.Parameter(w.clone())
            optimizer, state = make([theirs]), {}
            for t in range(1, 9):
                g = torch.randn(shape, dtype=torch.float64, generator=generator)
                theirs.grad = g.clone()
                optimizer.step()
                w = w + rule(s, state, w, g, 0.01, 0.1, t)
            differs = max(differs, float((w - theirs.detach()).abs().max()))
        print("%-10s differs from torch.optim by %.3g" % (name, differs))


if __name__ == "__main__":
    check()
