"""Lockstep: data-parallel training whose result does not depend on the number of workers.

    import lockstep
    result = lockstep.train("solver.prototxt", workers=8)

docs/python.md has more. SPDX-License-Identifier: BSD-2-Clause"""
from typing import Any

from . import errors, events, job, notebook, structure
from ._library import decode as _decode, library as _c
from .arrays import Tensor
from .errors import (DataError, DefinitionError, DifferentError, DivergedError, InternalError,
                     LockstepError, LostError, Problem, ResourceError, StoppedError, UsageError,
                     WeightsError)
from .files import convert_weights, diff, export_onnx, import_onnx
from .job import Job
from .net import Blob, Net, TestResult
from .parameters import Arrays
from .training import Result, Solver, Trainer, train

_PROGRAM = "it is a command of the program: subprocess.run([\"lockstep\", \"%s\", ...])"
_INSTEAD = {name: _PROGRAM % name for name in
            ("check", "generate", "init", "plan", "plot", "replay", "report", "show", "sweep",
             "tokenize", "tune", "verify")}
_INSTEAD.update({"export": "export_onnx(definition, weights, path) writes ONNX",
                 "test": "lockstep.Net(definition, weights).test()",
                 "predict": "lockstep.Net(definition, weights).predict(x) or .predict_picture(path)"})

__version__ = _decode(_c.lockstep_version())


def build_info() -> str:
    """What the library is built on and what it found here; many lines."""
    return _decode(_c.lockstep_build_info())


def default_workers() -> int:
    """How many workers are used unless told otherwise: the cores that this process may use."""
    return int(_c.lockstep_default_workers())


__all__ = ["Arrays", "Blob", "DataError", "DefinitionError", "DifferentError", "DivergedError",
           "InternalError", "Job", "LockstepError", "LostError", "Net", "Problem", "ResourceError",
           "Result", "Solver", "StoppedError", "Tensor", "TestResult", "Trainer", "UsageError",
           "WeightsError", "build_info", "convert_weights", "default_workers", "diff", "errors",
           "events", "export_onnx", "import_onnx", "job", "notebook", "structure", "train"]


def __getattr__(name: str) -> Any:
    hint = _INSTEAD.get(name)
    raise AttributeError(f"lockstep has no '{name}'" + (f": {hint}" if hint else ""))
