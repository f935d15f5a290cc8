"""Lockstep: data-parallel training whose result does not depend on the number of workers.

    import lockstep
    result = lockstep.train("solver.prototxt", workers=8)

docs/python.md has more. SPDX-License-Identifier: BSD-2-Clause"""
from . import errors, events, job, notebook, structure
from ._library import decode as _decode, library as _c
from .arrays import Tensor
from .errors import (DataError, DefinitionError, DifferentError, DivergedError, InternalError,
                     LockstepError, LostError, Problem, ResourceError, StoppedError, UsageError,
                     WeightsError)
from .job import Job
from .net import Blob, Net, TestResult
from .parameters import Arrays
from .training import Result, Solver, Trainer, train

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
           "WeightsError", "build_info", "default_workers", "errors", "events", "job", "notebook",
           "structure", "train"]
