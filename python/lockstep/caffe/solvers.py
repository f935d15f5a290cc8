"""caffe.SGDSolver and its kind.
SPDX-License-Identifier: BSD-2-Clause"""
import os
from collections import OrderedDict
from typing import Any, Dict, List, Optional

import numpy

from ..training import Trainer
from . import settings
from .blobs import Blob, Computed, Parameters


class _SolverNet:
    """solver.net and solver.test_nets: parameters, which all of them share, and figures."""

    def __init__(self, solver: "SGDSolver", test: int) -> None:
        self._solver, self._test = solver, test
        self._figures: Dict[str, Any] = {}
        self.blobs: Dict[str, Blob] = _Figures(self)

    @property
    def params(self) -> Parameters:
        return self._solver._params

    def forward(self) -> Dict[str, Any]:
        """Of a test net: runs it over all its data (not one batch), and returns its outputs."""
        if self._test < 0:
            raise AttributeError("the train net runs in step(1)")
        self._solver._params.push()
        outputs = self._solver.trainer.evaluate(self._test)
        self._figures = {name: numpy.array(output.values if len(output.values) > 1
                                           else output.values[0], numpy.float32)
                         for name, output in outputs.items()}
        return dict(self._figures)

    @property
    def outputs(self) -> List[str]:
        return list(self._figures)

    def copy_from(self, weights: Any) -> None:
        """Starts from the weights of a file, before the first step."""
        self._solver._begin(weights=os.fspath(weights))

    def save(self, path: Any) -> None:
        """Writes a snapshot; solver.net.params have the weights."""
        self._solver._params.push()
        self._solver.trainer.snapshot(path)

    def __getattr__(self, name: str) -> Any:
        hint = {"backward": ": step(1) does a forward and a backward pass",
                "layers": ": lockstep.structure.layers(path) lists them"}.get(name, "")
        raise AttributeError(f"a solver's net has no '{name}'{hint}")


class _Figures(OrderedDict):
    """Blobs of a solver's net: what it ends with. Activations are not kept."""

    def __init__(self, net: _SolverNet) -> None:
        super().__init__()
        self._net = net

    def __missing__(self, name: str) -> Blob:
        return Computed(lambda: self._find(name))

    def _find(self, name: str) -> Any:
        net = self._net
        if net._test < 0 and name in net._solver._losses:
            return numpy.array(net._solver.trainer.loss, numpy.float32)
        if name in net._figures:
            return net._figures[name]
        raise AttributeError(
            f"'{name}' is not kept while a net trains: " +
            ("its loss is, after step()" if net._test < 0 else "what it ends with is, after "
             "forward()") + "; of other blobs, save the weights and make a caffe.Net")


class SGDSolver:
    """Trains what a solver prototxt says (its own `type`, whatever this class is called)."""

    def __init__(self, path: Any, **options: Any) -> None:
        self._path, self._options = os.fspath(path), options
        self._begin()

    def _begin(self, **start: Any) -> None:
        given = dict(self._options, **start)
        if settings.seed is not None:
            given["set"] = dict(given.get("set") or {}, random_seed=settings.seed)
        self.trainer = Trainer(self._path, **given)
        self._params = Parameters(self.trainer.parameters, self.trainer.gradients)
        self._losses = {"loss"}
        self.net = _SolverNet(self, -1)
        self.test_nets = [_SolverNet(self, i) for i in range(self.trainer.test_count)]

    @property
    def iter(self) -> int:
        """Updates done so far."""
        return self.trainer.iteration

    def step(self, count: int) -> float:
        """So many updates; the loss of the last one."""
        self._params.push()
        loss = self.trainer.step(count)
        self._params.pull()
        return loss

    def solve(self, resume: Optional[Any] = None) -> None:
        """The whole training, with tests and snapshots."""
        if resume is not None:
            self.restore(resume)
        self._params.push()
        self.trainer.run()
        self._params.pull()

    def restore(self, path: Any) -> None:
        """Goes on from a snapshot."""
        self._begin(resume=os.fspath(path))

    def snapshot(self) -> Optional[str]:
        """Writes a snapshot where the solver says."""
        self._params.push()
        return self.trainer.snapshot()

    def __getattr__(self, name: str) -> Any:
        hint = {"add_callback": ": solver.trainer.add_listener(function) is called with events",
                "apply_update": ": step(1) computes gradients and applies them",
                "param": ": lockstep.Trainer(path, set={...}) overrides fields"}.get(name, "")
        raise AttributeError(f"a solver has no '{name}'{hint}")


class NesterovSolver(SGDSolver):
    """As SGDSolver: the file says the type."""


class AdaGradSolver(SGDSolver):
    """As SGDSolver: the file says the type."""


class RMSPropSolver(SGDSolver):
    """As SGDSolver: the file says the type."""


class AdaDeltaSolver(SGDSolver):
    """As SGDSolver: the file says the type."""


class AdamSolver(SGDSolver):
    """As SGDSolver: the file says the type."""


def get_solver(path: Any) -> SGDSolver:
    """The solver of a prototxt, of whatever type."""
    return SGDSolver(path)
