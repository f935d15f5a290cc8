"""Data from the program's memory: arrays, and objects that bring records one by one.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from . import _declarations as c
from ._library import callback_type, decode, encode
from .arrays import Tensor, numpy, to_tensor

_NAMELESS = ("data is a dict of arrays by the names of tops, or a generator of such dicts for batches, "
             "not a %s: ({\"data\": x, \"label\": y} for x, y in loader) makes one of a DataLoader")
_PARTS = ("the records of '%s' have several parts: an array, or an object that brings records, is for "
          "one top. Join them, {\"data\": numpy.stack([x for x, _ in dataset]), ...}, or give a "
          "generator of batches, ({\"data\": x, \"label\": y} for x, y in loader)")
_TYPES = {"f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}


def gather(batches: Iterable[Mapping[str, Any]]) -> Dict[str, Any]:
    """What a generator yields, as arrays to train with: it is read to its end. Each thing that it
    yields is a batch, {"data": [N, ...], "label": [N]}."""
    if numpy is None:
        raise ImportError("joining batches needs NumPy: pip install numpy")
    parts: Dict[str, List[Any]] = {}
    for batch in batches:
        if not isinstance(batch, Mapping):
            raise TypeError(_NAMELESS % type(batch).__name__)
        if parts and set(parts) != set(batch):
            raise ValueError(f"a batch has {sorted(batch)}, and those before it {sorted(parts)}")
        for name, values in batch.items():
            parts.setdefault(name, []).append(numpy.asarray(values))
    if not parts:
        raise ValueError("there is no batch")
    return {name: numpy.concatenate(items) for name, items in parts.items()}


class Given:
    """One array as the library takes it, with all that must live as long as it is used."""

    def __init__(self, name: str, values: Any,
                 failed: Callable[[BaseException], Any]) -> None:
        self.struct = c.lockstep_array()
        self._name = encode(name)
        self.struct.name = self._name
        if hasattr(values, "__getitem__") and hasattr(values, "__len__") and not isinstance(
                values, (list, tuple, Tensor)) and not _is_array(values):
            self._bring(values, failed)
        else:
            self._share(values)

    def _shape(self, shape: Iterable[int], kind: str) -> None:
        extents = [int(extent) for extent in shape]
        if not 1 <= len(extents) <= c.LOCKSTEP_AXES_MAX:
            raise ValueError(f"{self._name!r} has {len(extents)} axes; the first counts the records")
        self.struct.rank = len(extents)
        self.struct.extent[:len(extents)] = extents
        self._type = kind.encode()
        self.struct.type = self._type

    def _share(self, values: Any) -> None:
        """All records at once, without a copy where they lie in C order."""
        if numpy is None:
            self._kept: Any = to_tensor(values)
            self._shape(self._kept.shape, "<f4")
            self.struct.data = ctypes.cast(self._kept.pointer, ctypes.c_void_p).value
            return
        if not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
            values = numpy.from_dlpack(values)
        shape = numpy.shape(values)
        array = numpy.ascontiguousarray(values)
        if array.dtype == numpy.float64:  # NumPy's default, which the library would not round
            array = array.astype(numpy.float32)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if array.dtype.str[1:] not in _TYPES:
            raise TypeError(f"{self._name!r} has elements of type {array.dtype}")
        self._kept = array
        self._shape(shape, array.dtype.str)
        self.struct.data = array.ctypes.data or ctypes.addressof(ctypes.c_char())

    def _bring(self, records: Any, failed: Callable[[BaseException], Any]) -> None:
        """Record by record, as `records[i]`, when the library asks for it."""
        whole = records[0]
        if _has_parts(whole):
            raise TypeError(_PARTS % decode(self._name))
        first = _record(whole, None)
        shape = tuple(first.shape)
        kind = getattr(first.dtype, "str", "<f4")
        self._shape((len(records),) + shape, kind)

        def read(_user: Any, index: int, record: int) -> int:
            try:
                made = _record(records[index], kind)
                if tuple(made.shape) != shape:
                    raise ValueError(f"record {index} has the shape {tuple(made.shape)}, and "
                                     f"record 0 {shape}")
                ctypes.memmove(record, _address(made), _bytes(made))
            except BaseException as raised:  # pylint: disable=broad-except
                failed(raised)
                return 1
            return 0

        self._kept = callback_type(c.lockstep_array, "read")(read)
        self.struct.read = self._kept


def _has_parts(record: Any) -> bool:
    """Whether it is several things, as the items of PyTorch's datasets are: (picture, class)."""
    if isinstance(record, Mapping):
        return True
    if not isinstance(record, (tuple, list)):
        return False
    arrays = [hasattr(part, "__len__") or bool(getattr(part, "shape", ())) for part in record]
    return any(arrays) and (isinstance(record, tuple) or not all(arrays))


def _record(values: Any, kind: Optional[str]) -> Any:
    """One record: NumPy's array of its type (the first one's), or without NumPy a Tensor."""
    if numpy is None:
        return to_tensor(values)
    array = numpy.ascontiguousarray(values, dtype=kind)
    if kind is None and array.dtype == numpy.float64:
        array = array.astype("<f4")
    return array.reshape(numpy.shape(values))


def _address(record: Any) -> int:
    return int(record.__array_interface__["data"][0])


def _bytes(record: Any) -> int:
    return int(getattr(record, "nbytes", 4 * record.size))


def _is_array(values: Any) -> bool:
    if any(hasattr(values, name) for name in ("__array_interface__", "__array__", "__dlpack__")):
        return True
    try:
        memoryview(values)
    except TypeError:
        return False
    return True


def named(arrays: Optional[Mapping[str, Any]], data: Any,
          test_data: Any) -> List[Tuple[str, Any]]:
    """All of them with the names that the library knows them by. Generators are read."""
    found = list((arrays or {}).items())
    for prefix, given in (("", data), ("test:", test_data)):
        if given is not None:
            if hasattr(given, "__getitem__") and not isinstance(given, (Mapping, list, tuple)):
                raise TypeError(_NAMELESS % type(given).__name__)
            given = given if isinstance(given, Mapping) else gather(given)
            found += [(prefix + name, values) for name, values in given.items()]
    return found
