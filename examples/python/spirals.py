#!/usr/bin/env python3
"""A training on NumPy's arrays, its curves, and what the net says of new points.

    ./run wheel && pip install numpy build/wheel/lockstep-*.whl
    python3 spirals.py

In a notebook the curves grow as a picture; here they are lines.
SPDX-License-Identifier: BSD-2-Clause"""
import os

import numpy

import lockstep
from lockstep.notebook import LiveCurves

FOLDER = os.path.dirname(os.path.abspath(__file__))


def make(count, seed):
    """Points of three spirals, and which."""
    random = numpy.random.default_rng(seed)
    label = random.integers(0, 3, count)
    way = random.uniform(0.05, 1, count)
    angle = 4 * way + 2 * numpy.pi / 3 * label + random.normal(0, 0.1, count)
    point = way[:, None] * numpy.stack([numpy.cos(angle), numpy.sin(angle)], 1)
    return {"point": point.astype(numpy.float32), "label": label}


def main():
    """Trains, and asks the net about points that it has not seen."""
    result = lockstep.train(os.path.join(FOLDER, "spirals_solver.prototxt"), data=make(3000, 1),
                            test_data=make(500, 2), snapshot_prefix="spirals", overwrite=True,
                            on_event=LiveCurves())
    net = lockstep.Net(os.path.join(FOLDER, "spirals.prototxt"), result.snapshot)
    new = make(5, 3)
    print("new points are of", net.predict(new["point"]).argmax(1), "and were", new["label"])
    print("accuracy", round(result["accuracy"], 3))


if __name__ == "__main__":
    main()
