"""Parameters by their names ("conv1.weight"), as mappings of arrays.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

from . import _declarations as c
from ._library import decode, library, status_of
from .arrays import Array, Shape, Tensor, result, size_of, to_tensor


class _Named(Mapping[str, Array]):
    """What has a number by its name, and is copied at each look."""

    _index: Dict[str, int]

    def shape(self, name: str) -> Shape:
        """The extents, without reading it; () for one number."""
        raise NotImplementedError

    def tensor(self, name: str) -> Tensor:
        """A copy, also where NumPy is installed."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Array:
        return result(self.tensor(name))

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name}: {self.shape(name)}" for name in self) + "}"


class Arrays(_Named):
    """Arrays of a trainer or net by the names of its parameters, in the net's order. Each look is a
    copy of what is there now: weights lie in blocks of channels, as the processor likes them best,
    beside others of their bucket, and the library makes further copies of them in other layouts
    and types, which an assignment brings up to date. To change one, assign to it:
    `parameters["ip.weight"] = array`."""

    def __init__(self, kind: str, pointer: Callable[[], Any], read: str,
                 write: Optional[str] = None) -> None:
        self._pointer, self._kind = pointer, kind
        self._read, self._write = read, write
        count = getattr(library, f"{kind}_parameter_count")(pointer())
        self._index = {
            decode(getattr(library, f"{kind}_parameter_name")(pointer(), i)): i
            for i in range(count)}

    def shape(self, name: str) -> Shape:
        """The extents of a parameter, without reading it."""
        extent = (ctypes.c_int64 * c.LOCKSTEP_AXES_MAX)()
        rank = getattr(library, f"{self._kind}_parameter_shape")(
            self._pointer(), self._index[name], extent)
        return tuple(extent[:rank])

    def tensor(self, name: str) -> Tensor:
        """A copy, also where NumPy is installed."""
        made = Tensor(self.shape(name))
        status_of(self._read, self._pointer(), self._index[name], made.pointer, made.size)
        return made

    def __setitem__(self, name: str, values: Any) -> None:
        if self._write is None:
            raise TypeError("these arrays cannot be changed")
        shape = self.shape(name)
        given = to_tensor(values)
        if given.shape != shape and not (given.size == size_of(shape) and given.ndim == 1):
            raise ValueError(f"{name} has the shape {shape}, not {given.shape}")
        status_of(self._write, self._pointer(), self._index[name], given.pointer, given.size)


class Blobs(_Named):
    """Blobs of a trainer's net, or their gradients, by name. Each look is a copy."""

    def __init__(self, pointer: Callable[[], Any], gradient: bool) -> None:
        self._pointer, self._gradient = pointer, gradient
        self._index = {}
        for i in range(library.lockstep_trainer_blob_count(pointer())):
            if not gradient or library.lockstep_trainer_blob_has_gradient(pointer(), i):
                self._index[decode(library.lockstep_trainer_blob_name(pointer(), i))] = i

    def shape(self, name: str) -> Shape:
        """The extents of a blob, without reading it; () for one number."""
        extent = (ctypes.c_int64 * c.LOCKSTEP_AXES_MAX)()
        rank = library.lockstep_trainer_blob_shape(self._pointer(), self._index[name], extent)
        return tuple(extent[:rank])

    def tensor(self, name: str) -> Tensor:
        """A copy, also where NumPy is installed."""
        made = Tensor(self.shape(name))
        status_of("lockstep_trainer_read_blob", self._pointer(), self._index[name],
                  int(self._gradient), made.pointer, made.size)
        return made
