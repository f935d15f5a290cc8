#!/usr/bin/env python3
"""Arrays for the example: fields, numbers, and what they are mixed to. Needs NumPy.

    python3 make_arrays.py [FOLDER]
"""
import os
import sys

import numpy

folder = sys.argv[1] if len(sys.argv) > 1 else "."
random = numpy.random.default_rng(1)
for name, count in (("train", 2000), ("test", 400)):
    field = random.standard_normal((count, 1, 8, 8), dtype=numpy.float32)
    numbers = random.integers(0, 5, (count, 6), dtype=numpy.uint8)
    target = numpy.stack([field.mean((1, 2, 3)), numbers.mean(1), field.max((1, 2, 3)) / 4], 1)
    for kind, array in (("field", field), ("numbers", numbers), ("target", target)):
        if array.dtype == numpy.float64:  # NumPy's default; Lockstep does not round it
            array = array.astype(numpy.float32)
        numpy.save(os.path.join(folder, f"{name}_{kind}.npy"), array)
