"""caffe.SGDSolver and its kind.
SPDX-License-Identifier: BSD-2-Clause"""
import functools
import os
from collections import OrderedDict
from typing import Any, Dict, List, Optional

import numpy

from ..errors import UsageError
from ..files import convert_weights
from ..structure import layers
from ..training import Trainer
from . import settings
from .blobs import Activation, Blob, Computed, Parameters
from .nets import LayerNames


class _Figures(OrderedDict[str, Blob]):
    """Blobs of a test net: those that it ends with."""

    def __missing__(self, name: str) -> Blob:
        raise AttributeError(f"a test net has figures of its last forward() over all data ("
                             f"{', '.join(self) or 'none yet'}), and no blob '{name}' of a batch: "
                             "caffe.Net(path, weights, caffe.TEST) has the blobs of arrays that it "
                             "is given, with share_with(solver.net) in place of weights")


class _TestNet(LayerNames):
    """solver.test_nets[i]: figures of its tests, and the parameters that all nets share."""

    _phase = "TEST"

    def __init__(self, solver: "SGDSolver", index: int) -> None:
        self._solver, self._index = solver, index
        self._figures: Dict[str, Any] = {}

    @property
    def params(self) -> Parameters:
        """By layer the list of its parameters: those that are trained."""
        return self._solver._params

    @property
    def blobs(self) -> Dict[str, Blob]:
        """What the net ends with, after forward()."""
        return _Figures((name, Computed(functools.partial(self._figures.__getitem__, name)))
                        for name in self._figures)

    @property
    def layers(self) -> List[Any]:
        """With `type` and `name`."""
        return layers(self._solver._path, phase=self._phase)

    def forward(self, **parts: Any) -> Dict[str, Any]:
        """Runs it over all its data (not one batch), and returns its outputs."""
        if parts:
            raise AttributeError("a net of a solver runs as a whole: forward(); for a part of it, "
                                 "caffe.Net(path, weights, caffe.TEST).forward(blobs=[...])")
        self._solver._params.push()
        outputs = self._solver.trainer.evaluate(self._index)
        self._figures = {name: numpy.array(output.values if len(output.values) > 1
                                           else output.values[0], numpy.float32)
                         for name, output in outputs.items()}
        return dict(self._figures)

    @property
    def outputs(self) -> List[str]:
        """The names of what it ends with, after forward()."""
        return list(self._figures)

    def share_with(self, other: Any) -> None:
        """Nothing to do with a net of the same solver: its nets share their parameters."""
        if getattr(other, "_solver", None) is not self._solver:
            raise ValueError("nets of a solver share their parameters with each other alone: copy "
                             "arrays, net.params[name][i].data[...] = ...")

    def copy_from(self, weights: Any) -> None:
        """Starts from the weights of a file, before the first step."""
        self._solver._begin(weights=os.fspath(weights))

    def save(self, path: Any) -> None:
        """Writes a snapshot; solver.net.params have the weights."""
        self._solver._params.push()
        self._solver.trainer.snapshot(path)

    def __getattr__(self, name: str) -> Any:
        hint = {"backward": ": solver.net has gradients",
                "save_hdf5": ": save(path), and lockstep.convert_weights(path, 'net.h5')",
                "reshape": ": its shapes are those of the definition"}.get(name, "")
        raise AttributeError(f"a solver's net has no '{name}'{hint}")


class _TrainNet(_TestNet):
    """solver.net: what the last update, or forward(), has computed, with gradients."""

    _phase = "TRAIN"

    @property
    def blobs(self) -> Dict[str, Blob]:
        """Blobs with .data and .diff, of all samples of the last update."""
        trainer = self._solver.trainer
        return OrderedDict((name, Activation(trainer.blobs, trainer.blob_gradients, name,
                                             self._has_computed)) for name in trainer.blobs)

    def _has_computed(self) -> bool:
        trainer = self._solver.trainer
        return trainer.has_gradients or trainer.iteration > self._solver._first

    def forward(self, **parts: Any) -> Dict[str, Any]:
        """The forward (and the backward) pass of the batch that step(1) will take: its losses and
        other figures. The data do not go on."""
        if parts:
            super().forward(**parts)  # says what to do
        self._solver._params.push()
        self._solver.trainer.compute_gradients()
        return {name: numpy.asarray(self._solver.trainer.blobs[name]) for name in self.outputs}

    def backward(self, **parts: Any) -> Dict[str, Any]:
        """The gradients of forward(), which that has computed: blobs[...].diff, params[...].diff."""
        if parts:
            super().forward(**parts)
        self._solver._params.push()
        if not self._solver.trainer.has_gradients:
            self.forward()
        return {}

    @property
    def outputs(self) -> List[str]:
        """Losses and other figures."""
        trainer = self._solver.trainer
        return [name for name in trainer.blobs
                if name not in trainer.blob_gradients and trainer.blobs.shape(name) == ()]


class SGDSolver:
    """Trains what a solver prototxt says (its own `type`, whatever this class is called). The
    options are those of lockstep.Trainer; blobs=False trains without keeping what
    solver.net.blobs show."""

    def __init__(self, path: Any, **options: Any) -> None:
        self._path, self._options = os.fspath(path), options
        self._begin()

    def _begin(self, **start: Any) -> None:
        given = dict(self._options, **start)
        if settings.seed is not None:
            given["set"] = dict(given.get("set") or {}, random_seed=settings.seed)
        self.trainer = self._make(given)
        self._first = self.trainer.iteration
        self._params = Parameters(self.trainer.parameters, self.trainer.gradients)
        self.net = _TrainNet(self, -1)
        self.test_nets = [_TestNet(self, i) for i in range(self.trainer.test_count)]

    def _make(self, options: Dict[str, Any]) -> Trainer:
        """With blobs to look at, where they can be kept."""
        if "blobs" in options:
            return Trainer(self._path, **options)
        try:
            return Trainer(self._path, blobs=True, **options)
        except UsageError:  # of another kind: it comes again
            return Trainer(self._path, **options)

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
        """Writes a snapshot where the solver says, and its weights as a caffemodel beside it."""
        self._params.push()
        written = self.trainer.snapshot()
        if written is not None and written.endswith(".safetensors"):
            convert_weights(written, written[:-len(".safetensors")] + ".caffemodel")
        return written

    def __getattr__(self, name: str) -> Any:
        hint = {"add_callback": ": solver.trainer.add_listener(function) is called with events",
                "apply_update": ": step(1) computes gradients and applies them",
                "param": ": solver.trainer.solver.text() is the definition, and "
                         "SGDSolver(path, set={...}) overrides fields",
                "test_net": ": test_nets[0]",
                "share_weights": ": a net's share_with(solver.net)"}.get(name, "")
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
