#!/usr/bin/env python3
"""Makes the reference values under tests/compat/reference from PyTorch.

    python3 tools/reference/make.py [NAME...]        (needs torch and numpy; no other step)

A file of cases, tests/compat/cases/NAME.cases, has blocks that begin with "== name"; a block
whose name begins with "@" is a fragment, put in wherever a line of a case is that name alone. A
line "@layers FILE [in MESSAGE FIELDS]" is replaced by the layers of a definition of the source tree
but for its Data layers; the fields are added to every such message in them.
A case is a solver with its net; comments in it say which files of numbers it reads:

    # idx: FILE DIMENSIONS... [below N] [repeat N]      # cifar: FILE RECORDS [repeat N]
    # solver: a solver of the source tree     # set: FIELD=VALUE of it
    # gain: LAYER FACTOR of its weights
    # samples: how many elements of each parameter are kept (24)
    # updates: how many (5)       # tolerance: of a comparison (1e-4)
    # workers: numbers of workers that it is run on, one after the other (2)

The values are those of the updates from the weights of generator.py. For each case:

    case NAME
    loss L1 L2 ...                 data loss before each update
    test OUTPUT VALUES...          of the first test net, after the last update
    param NAME SIZE SCALE [around V]   elements; the power of two that its weights are made with
                                       and what is added to them
    gradient NORM P0 P1 P2 P3 : S0 S1 ...     of the first update: norm, projections on arrays of
    change NORM P0 P1 P2 P3 : S0 S1 ...       signs, elements; what all updates add to weights

SPDX-License-Identifier: BSD-2-Clause
"""

import math
import os
import re
import sys

import numpy as np
import torch

import generator
import textformat
from net import Net
from solver import train

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
UPDATES, TOLERANCE = 5, 1e-4


def layers_of(words):
    """The lines of "@layers": the layers of a definition each begin with a line "layer {..."."""
    text = open(os.path.join(ROOT, words[1])).read()
    layers = re.split(r"^(?=layer \{)", text, flags=re.MULTILINE)[1:]
    text = "".join(layer for layer in layers if 'type: "Data"' not in layer)
    if len(words) > 3:
        text = text.replace(words[3] + " {", words[3] + " { " + " ".join(words[4:]))
    return text


def blocks(path):
    """(name, text) of each case of a file, with its fragments put in."""
    fragments, cases, name = {}, [], None
    for line in open(path):
        if line.startswith("== "):
            name = line.split()[1]
            if name.startswith("@"):
                fragments[name] = ""
            else:
                cases.append([name, ""])
        elif name is not None:
            text = fragments.get(line.strip(), line)
            if line.startswith("@layers "):
                text = layers_of(line.split())
            if name.startswith("@"):
                fragments[name] += text
            else:
                cases[-1][1] += text
    return cases


def notes(text, kind):
    return [match.split() for match in re.findall(r"^# %s: (.*)$" % kind, text, re.MULTILINE)]


def option(words, name, default):
    return int(words[words.index(name) + 1]) if name in words else default


def setting(text, kind, default):
    """A number that a note gives."""
    words = notes(text, kind)
    return type(default)(words[0][0]) if words else default


def data_files(text):
    files = {}
    for words in notes(text, "idx"):
        size = []
        for word in words[1:]:
            if not word.isdigit():
                break
            size.append(int(word))
        files[words[0]] = records(words, size, option(words, "below", 256))
    for words in notes(text, "cifar"):
        files[words[0]] = records(words, [int(words[1]), 3073], 256)
        files[words[0]][:, 0] %= 10
    return files


def records(words, size, below):
    """The bytes of a file, with its first `repeat` records again and again."""
    different = min(size[0], option(words, "repeat", size[0]))
    count = different * math.prod(size[1:])
    first = generator.data_bytes(words[0], count, below).reshape([different] + size[1:])
    return first[np.arange(size[0]) % different]


def definitions(text):
    """(solver, net) of a case."""
    if not notes(text, "solver"):
        solver = textformat.read(text)
        return solver, solver.get("net_param")
    path = os.path.join(ROOT, notes(text, "solver")[0][0])
    overrides = "".join("%s\n" % " ".join(words).replace("=", ": ") for words in notes(text, "set"))
    solver = textformat.read(open(path).read() + overrides)
    return solver, textformat.read(open(os.path.join(os.path.dirname(path), solver.get("net"))).read())


def numbers(array, samples):
    array = array.detach().numpy().reshape(-1)
    figures = [math.sqrt(float(array @ array))]
    figures += [float(array @ generator.signs(k, array.size)) for k in range(4)]
    kept = [array[i] for i in generator.places(array.size, samples)]
    return "%s : %s" % (
        " ".join("%.9g" % f for f in figures),
        " ".join("%.7g" % v for v in kept),
    )


def check_sense(name, run, other, why):
    """A case is of use if `other`, a less precise run, comes to the same numbers: none is zero but
    for rounding, and nothing lies so near to the kink of a ReLU or a maximum that rounding
    decides. Nor is a loss so near to zero that it is the rounding of a probability of 1."""
    tolerance = setting(run.text, "tolerance", TOLERANCE)
    worst = tolerance / 5
    for got, want in zip(other.losses, run.losses):
        if not abs(got - want) < tolerance * abs(want):
            raise SystemExit("%s: %s: a loss is %.3g, not %.3g" % (name, why, got, want))
    for key, parameter in run.net.parameters.items():
        rounding = len(run.losses) * float(parameter.value.detach().abs().max()) * 2.0**-24
        rounding *= math.sqrt(parameter.value.numel())
        compared = [("change", other.changes[key], run.changes[key], rounding)]
        if key in run.gradients:
            compared.append(("gradient", other.gradients[key], run.gradients[key], 0.0))
        for what, got, want, allowed in compared:
            error = float((got.double() - want).norm())
            if not error < worst * float(want.norm()) + allowed:
                raise SystemExit(
                    "%s: %s: %s of %s is off by %.2g"
                    % (name, why, what, key, error / float(want.norm()))
                )


def check_senses(name, text, run):
    check_sense(name, run, Run(text, torch.float32), "in fp32")
    for trial in range(3):
        torch.manual_seed(trial)
        check_sense(name, run, Run(text, torch.float64, 1e-7), "with noise %d" % trial)


def test_lines(run):
    test = Net(run.definition, "TEST", run.files, run.net.gains, shared=run.net.parameters)
    test.average_precision = run.solver.get("ap_version", "Integral")
    with torch.no_grad():
        blobs = test.forward(list(range(test.count)))
    for name, value in test.outputs(blobs).items():
        yield "test %s %s" % (name, " ".join("%.9g" % v for v in value.reshape(-1).tolist()))


class Run:
    """A case, trained in one precision; `noise` is that of Net."""

    def __init__(self, text, dtype, noise=0.0):
        self.text = text
        self.solver, self.definition = definitions(text)
        self.files = data_files(text)
        gains = {w[0]: float(w[1]) for w in notes(text, "gain")}
        self.net = Net(self.definition, "TRAIN", self.files, gains, dtype, noise)
        self.losses, self.gradients = [], {}
        train(self.net, self.solver, setting(text, "updates", UPDATES), self.watch)
        self.changes = {
            key: (p.value - p.start).detach() for key, p in self.net.parameters.items()
        }

    def watch(self, t, loss, gradients):
        self.losses.append(loss)
        if t == 0:
            self.gradients = gradients


def case_lines(name, text):
    run = Run(text, torch.float64)
    check_senses(name, text, run)
    samples = setting(text, "samples", 24)
    yield "case %s" % name
    yield "loss " + " ".join("%.9g" % l for l in run.losses)
    if run.solver.has("test_interval"):
        yield from test_lines(run)
    for key, parameter in run.net.parameters.items():
        around = " around %g" % parameter.around if parameter.around != 0 else ""
        size = parameter.value.numel()
        yield "param %s %d %.9g%s" % (parameter.name, size, parameter.scale, around)
        if key in run.gradients:
            yield "gradient " + numbers(run.gradients[key], samples)
        yield "change " + numbers(run.changes[key], samples)


def main(names):
    torch.set_default_dtype(torch.float64)
    folder = os.path.join(ROOT, "tests", "compat")
    for file in sorted(os.listdir(os.path.join(folder, "cases"))):
        name, ending = os.path.splitext(file)
        if ending != ".cases" or (names and name not in names):
            continue
        with open(os.path.join(folder, "reference", name + ".txt"), "w") as out:
            for case, text in blocks(os.path.join(folder, "cases", file)):
                out.writelines(line + "\n" for line in case_lines(case, text))
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
