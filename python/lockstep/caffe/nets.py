"""caffe.Net.
SPDX-License-Identifier: BSD-2-Clause"""
import functools
import os
import shutil
import tempfile
from collections import OrderedDict
from typing import Any, Dict, Iterable, List, Optional

import numpy

from .. import net as own
from .. import training
from .._library import Handle, create, encode, strings
from ..errors import LockstepError
from ..structure import layers
from .blobs import Blob, Computed, Input, Parameters
from .settings import TEST, TRAIN


def _fill(path: str, level: int, stages: List[str]) -> str:
    """Weights of a net that has none: what its fillers say, in a file."""
    solver = training.Solver.__new__(training.Solver)
    solver.path, solver.raised = path, []
    solver._handle = Handle(create("lockstep_solver_of_net", encode(path), level, strings(stages),
                                   len(stages)), "lockstep_solver_free")
    solver.use_dummy_data(all=True)
    folder = tempfile.mkdtemp()
    with training.Trainer(solver, snapshot_prefix=os.path.join(folder, "net")) as trainer:
        written = trainer.snapshot(os.path.join(folder, "net.safetensors"))
    assert written is not None
    return written


class LayerNames:
    """Names of a net's layers, and of what they read and write."""

    @property
    def layers(self) -> List[Any]:
        """With `type` and `name`."""
        raise NotImplementedError

    @property
    def _layer_names(self) -> List[str]:
        return [layer.name for layer in self.layers]

    @property
    def top_names(self) -> Dict[str, List[str]]:
        """By layer the names of its tops."""
        return OrderedDict((layer.name, list(layer.tops)) for layer in self.layers)

    @property
    def bottom_names(self) -> Dict[str, List[str]]:
        """By layer the names of its bottoms."""
        return OrderedDict((layer.name, list(layer.bottoms)) for layer in self.layers)


class Net(LayerNames):
    """A net in its test phase: Net(definition, weights, caffe.TEST), or as newer versions of Caffe
    have it, Net(definition, caffe.TEST, weights=...). Without weights they are filled as the
    definition says."""

    def __init__(self, network_file: Any, *arguments: Any, phase: Optional[int] = None,
                 level: int = 0, stages: Iterable[str] = (),
                 weights: Optional[Any] = None) -> None:
        for argument in arguments:
            if isinstance(argument, int):
                phase = argument
            elif weights is None:
                weights = argument
            else:
                raise TypeError("Net(definition, weights, phase)")
        if phase == TRAIN:
            raise ValueError("nets run in their test phase: Net(path, weights, caffe.TEST); "
                             "caffe.SGDSolver(path).net is one that trains, with gradients")
        if phase not in (None, TEST):
            raise ValueError(f"there is no phase {phase}")
        names, path = list(stages), os.fspath(network_file)
        filled = _fill(path, level, names) if weights is None else None
        self._options: Dict[str, Any] = {"level": level, "stages": names}
        self._path = path
        try:
            self._net = own.Net(path, filled or weights or "", **self._options)
        finally:
            if filled is not None:
                shutil.rmtree(os.path.dirname(filled))
        self._filled = filled is not None
        self._source: Optional[Any] = None  # whose parameters it has
        self._find_blobs()
        self.params = Parameters(self._net.parameters)

    def _find_blobs(self) -> None:
        self._layers = layers(self._path, phase="TEST", level=self._options["level"],
                              stages=self._options["stages"])
        self.inputs = [blob.name for blob in self._net.inputs]
        self.blobs: Dict[str, Blob] = OrderedDict()
        read = {bottom for layer in self._layers for bottom in layer.bottoms}
        self.outputs: List[str] = []
        for layer in self._layers:
            for name, shape in layer.tops.items():
                if name in self.inputs:
                    self.blobs[name] = Input(shape)
                else:
                    self.blobs[name] = Computed(functools.partial(self._compute, name), shape)
                    if name not in read and name not in self.outputs:
                        self.outputs.append(name)
        self._given: Optional[Dict[str, Any]] = None  # the inputs of the last forward()
        self._fed = False  # numbers came in: from then on zeros are numbers, too
        self._figures: Dict[str, Any] = {}  # of a test over the net's own data
        self._reads = any(layer.type != "Input" for layer in self._layers
                          if not layer.bottoms and set(layer.tops) & set(self.inputs))

    def _compute(self, name: str) -> Any:
        if name in self._figures:
            return self._figures[name]
        if self._figures:
            raise AttributeError(f"'{name}' was not kept: a net with data layers is tested over all "
                                 "its data; forward(data=..., blobs=[...]) computes blobs of arrays")
        if self._given is None:
            return None
        self._push()
        if self._filled and name not in self._net._cut:
            self._keep_weights()
        return numpy.asarray(self._net.forward(self._given, [name])[name])

    def _keep_weights(self) -> None:
        """Weights that were filled are in no file that a net of another blob could be read from."""
        folder = tempfile.mkdtemp()
        try:
            self._net.weights = os.path.join(folder, "net.safetensors")
            self._net.save(self._net.weights)
            for blob in self.blobs:
                if blob not in self.inputs:
                    self._cut(blob)
        finally:
            shutil.rmtree(folder)
        self._filled = False

    def _cut(self, blob: str) -> None:
        try:
            self._net._cut_at(blob)
        except LockstepError:
            pass  # it does not belong to samples: found when it is looked at

    def forward(self, blobs: Optional[Iterable[str]] = None, start: Optional[str] = None,
                end: Optional[str] = None, **inputs: Any) -> Dict[str, Any]:
        """A forward pass of what lies in the input blobs, or is given by name: what the net ends
        with, and `blobs`. A net with data layers that was never given anything is tested over all
        its data: its losses and accuracies."""
        if start is not None or end is not None:
            raise AttributeError("a net runs from its inputs to the blobs that are asked for: "
                                 "forward(blobs=[...])")
        for name, values in inputs.items():
            if name not in self.inputs:
                raise KeyError(f"the net has no input '{name}'; it has {', '.join(self.inputs)}")
            self.blobs[name].data[...] = values
        self._figures = {}
        self._fed = (self._fed or bool(inputs) or
                     any(self.blobs[name].data.any() for name in self.inputs))
        if self._reads and not self._fed:
            self._push()
            self._figures = {name: numpy.array(output.values if len(output.values) > 1
                                               else output.values[0], numpy.float32)
                             for name, output in self._net.test().outputs.items()}
            return {name: self.blobs[name].data for name in list(self._figures) + list(blobs or ())}
        self._given = {name: self.blobs[name].data.copy() for name in self.inputs}
        found = {name: self.blobs[name].data for name in blobs or ()}
        for name in self.outputs:
            try:
                found[name] = self.blobs[name].data
            except LockstepError:  # a loss or an accuracy, which is a result of a test
                if not self._reads:
                    raise
        return found

    def forward_all(self, blobs: Optional[Iterable[str]] = None, **inputs: Any) -> Dict[str, Any]:
        """The same for any number of samples."""
        for name, values in inputs.items():
            if name in self.inputs:
                self.blobs[name].reshape(*numpy.shape(values))
        return self.forward(blobs, **inputs)

    def reshape(self) -> None:
        """Nothing to do: forward() takes inputs as they are."""

    def copy_from(self, weights: Any) -> None:
        """Reads weights of a file."""
        self._net.close()
        self._net = own.Net(self._path, os.fspath(weights), **self._options)
        self._filled, self._source = False, None
        self.params = Parameters(self._net.parameters)

    def share_with(self, other: Any) -> None:
        """From now on it runs with the parameters of another net or of a solver's net, layer by
        layer of the same name, as they are then."""
        for name, parameters in self.params.items():
            for mine, its in zip(parameters, other.params.get(name, ())):
                if mine.shape != its.shape:
                    raise ValueError(f"{name} has parameters of the shape {mine.shape} here, and "
                                     f"{its.shape} there")
        self._source = other

    def _push(self) -> None:
        """Brings the net what its parameters are now."""
        shared = self._source.params if self._source is not None else {}
        for name, parameters in self.params.items():
            for mine, its in zip(parameters, shared.get(name, ())):
                mine.data[...] = its.data
        self.params.push()

    def save(self, path: Any) -> None:
        """Writes the weights, as a caffemodel where the name ends so."""
        self._push()
        self._net.save(path)

    @property
    def layers(self) -> List[Any]:
        """With `type` and `name`."""
        return list(self._layers)

    @property
    def _blob_names(self) -> List[str]:
        return list(self.blobs)

    def save_hdf5(self, path: Any) -> None:
        """Writes the weights as HDF5."""
        if not os.fspath(path).endswith(".h5"):
            raise ValueError("the name of a file of HDF5 ends in .h5")
        self.save(path)

    load_hdf5 = copy_from

    @property
    def layer_dict(self) -> Dict[str, Any]:
        """Layers by their names."""
        return OrderedDict((layer.name, layer) for layer in self._layers)

    def __getattr__(self, name: str) -> Any:
        hints = {"backward": "a solver's net has gradients: solver.net.forward(), then "
                             "solver.net.blobs[name].diff and solver.net.params[name][i].diff",
                 "set_input_arrays": "lockstep.Trainer(solver, data={...}) trains on arrays",
                 "clear_param_diffs": "gradients are those of one update",
                 "forward_backward_all": "solver.net.forward() computes gradients, too"}
        hint = hints.get(name)
        raise AttributeError(f"Net has no '{name}'" + (f": {hint}" if hint else ""))
