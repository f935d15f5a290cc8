"""Caffe's names, for scripts that were written for its Python module:

    from lockstep import caffe

Nets are in their test phase, and run any number of samples; a solver trains on all workers. What
cannot be had here is an AttributeError that says what to write instead. docs/python.md has a table.
SPDX-License-Identifier: BSD-2-Clause"""
from typing import Any

from ..arrays import numpy as _numpy

if _numpy is None:
    raise ImportError("lockstep.caffe needs NumPy: pip install numpy")

from . import absent, io
from .nets import Net
from .solvers import (AdaDeltaSolver, AdaGradSolver, AdamSolver, NesterovSolver, RMSPropSolver,
                      SGDSolver, get_solver)
from .settings import (TEST, TRAIN, set_device, set_mode_cpu, set_mode_gpu, set_random_seed)

absent.add(__name__)
__version__ = "1.0.0"  # whose names these are
_INSTEAD = {
    "Classifier": "use Net with caffe.io.Transformer, or lockstep.Net(...).predict_picture(path)",
    "Detector": "use Net with caffe.io.Transformer",
    "NetSpec": absent.NET_SPEC,
    "to_proto": absent.NET_SPEC,
    "layer_type_list": "docs/caffe.md has a table of all layers",
    "get_solver_from_file": "get_solver(path)",
    "set_solver_count": "one process uses all workers by itself",
    "set_solver_rank": "one process uses all workers by itself",
    "set_multiprocess": "one process uses all workers by itself",
    "Layer": "layers of one's own are plugins in C (docs/caffe.md)",
    "NCCL": "one process uses all workers by itself",
    "init_log": "events are for callbacks: lockstep.Trainer(..., on_event=...)",
    "draw": "'lockstep draw' draws a net",
}


def __getattr__(name: str) -> Any:
    hint = _INSTEAD.get(name)
    raise AttributeError(f"lockstep.caffe has no '{name}'" + (f": {hint}" if hint else ""))


__all__ = ["AdaDeltaSolver", "AdaGradSolver", "AdamSolver", "NesterovSolver", "Net",
           "RMSPropSolver", "SGDSolver", "TEST", "TRAIN", "get_solver", "io", "set_device",
           "set_mode_cpu", "set_mode_gpu", "set_random_seed"]
