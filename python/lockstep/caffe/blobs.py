"""Blobs with .data and .diff, as Caffe's.
SPDX-License-Identifier: BSD-2-Clause"""
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy

from ..parameters import Arrays, Blobs


class Blob:
    """What all have: extents under Caffe's old names, too."""

    data: Any

    @property
    def shape(self) -> Tuple[int, ...]:
        """Its extents."""
        return tuple(self.data.shape)

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return int(self.data.size)

    def _legacy(self, axis: int) -> int:
        return self.shape[axis] if axis < len(self.shape) else 1

    num = property(lambda self: self._legacy(0))
    channels = property(lambda self: self._legacy(1))
    height = property(lambda self: self._legacy(2))
    width = property(lambda self: self._legacy(3))

    @property
    def diff(self) -> Any:
        """The gradient of the loss with respect to it, where there is one."""
        raise AttributeError("a net that is not trained has no gradients: those of a solver's net "
                             "are solver.net.blobs[name].diff")

    def reshape(self, *extents: int) -> None:
        """Of inputs: other extents."""
        raise AttributeError("the shape of this blob follows from those of the inputs: reshape "
                             "these")


class Input(Blob):
    """What a net is given: an array that may be written to, and reshaped."""

    def __init__(self, shape: Tuple[int, ...]) -> None:
        self.data = numpy.zeros(shape, numpy.float32)

    def reshape(self, *extents: int) -> None:
        """Other extents; zeros where these are others."""
        if tuple(extents) != self.shape:
            self.data = numpy.zeros(extents, numpy.float32)


class Computed(Blob):
    """What a net computes: found when it is looked at, of the inputs of the last forward(). Before
    the first one (find() gives None) it is zeros of `shape`, as in Caffe."""

    def __init__(self, find: Callable[[], Any], shape: Tuple[int, ...] = ()) -> None:
        self._find, self._first = find, shape

    @property
    def data(self) -> Any:
        """Its numbers, which are computed where they have not been."""
        found = self._find()
        return numpy.zeros(self._first, numpy.float32) if found is None else found


class Activation(Blob):
    """What a net that trains has computed in the last update, and the gradient of its loss."""

    def __init__(self, values: Blobs, gradients: Blobs, name: str,
                 computed: Callable[[], bool]) -> None:
        self._values, self._gradients, self._name = values, gradients, name
        self._computed = computed

    @property
    def data(self) -> Any:
        """A copy of its numbers: zeros before the first pass, as in Caffe."""
        if not self._computed():
            return numpy.zeros(self.shape, numpy.float32)
        return numpy.asarray(self._values[self._name])

    @property
    def shape(self) -> Tuple[int, ...]:
        """Its extents."""
        return self._values.shape(self._name)

    @property
    def diff(self) -> Any:
        """A copy of the gradient."""
        if self._name not in self._gradients:
            raise AttributeError(f"'{self._name}' has no gradient: the backward pass does not come "
                                 "there (SGDSolver(path, data_gradients=True) has those of data)")
        if not self._computed():
            return numpy.zeros(self.shape, numpy.float32)
        return numpy.asarray(self._gradients[self._name])


class Parameter(Blob):
    """A parameter: an array that may be written to. What was written is brought to the net before
    it runs the next time."""

    def __init__(self, arrays: Arrays, name: str, gradients: Optional[Arrays]) -> None:
        self._arrays, self._name, self._gradients = arrays, name, gradients
        self._array: Any = None  # what the caller has; None: it was not looked at
        self._known: Any = None  # what the net has

    @property
    def data(self) -> Any:
        """An array that may be written to."""
        if self._array is None:
            self._known = numpy.array(self._arrays[self._name])
            self._array = self._known.copy()
        return self._array

    @data.setter
    def data(self, values: Any) -> None:
        self.data[...] = values

    @property
    def diff(self) -> Any:
        """The gradient of the last update."""
        if self._gradients is None:
            raise AttributeError("a net that is not trained has no gradients: those of a solver's "
                                 "net are solver.net.params[name][i].diff, after step()")
        return numpy.asarray(self._gradients[self._name])

    def push(self) -> None:
        """Before the net runs."""
        if self._array is not None and self._array.tobytes() != self._known.tobytes():
            self._arrays[self._name] = self._array
            self._known = self._array.copy()

    def pull(self) -> None:
        """After the net was trained: the caller's array shows it."""
        if self._array is not None:
            self._known = numpy.array(self._arrays[self._name])
            self._array[...] = self._known


class Parameters(OrderedDict[str, List[Parameter]]):
    """By layer the list of its parameters: weight, bias ..."""

    def __init__(self, arrays: Arrays, gradients: Optional[Arrays] = None) -> None:
        found: Dict[str, List[Parameter]] = OrderedDict()
        for name in arrays:
            layer = name.rpartition(".")[0]
            found.setdefault(layer, []).append(Parameter(arrays, name, gradients))
        super().__init__(found)

    def push(self) -> None:
        """Brings the net what was written, before it runs."""
        for parameters in self.values():
            for parameter in parameters:
                parameter.push()

    def pull(self) -> None:
        """Shows what was trained."""
        for parameters in self.values():
            for parameter in parameters:
                parameter.pull()
