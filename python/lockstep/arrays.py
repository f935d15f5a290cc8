"""Numbers in memory, between Python and the library.

With NumPy installed all that the package returns are NumPy's arrays; without it they are Tensors,
which have the buffer protocol's memoryview, NumPy's array interface and DLPack (torch.from_dlpack
and others), all of them without a copy.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

numpy: Any
try:
    import numpy
except ImportError:
    numpy = None

Shape = Tuple[int, ...]
_CPU = (1, 0)  # DLPack: kDLCPU, device 0


def size_of(shape: Sequence[int]) -> int:
    """The product of extents."""
    size = 1
    for extent in shape:
        size *= extent
    return size


# ---- DLPack ----


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _DLManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = [("dl_tensor", _DLTensor), ("manager_ctx", ctypes.c_void_p),
                             ("deleter", _Deleter)]
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_NAME = b"dltensor"  # lives as long as every capsule
# By address of the managed tensor: what must live until its taker lets go.
_lent: Dict[int, Any] = {}


def _delete_lent(managed: Any) -> None:
    _lent.pop(ctypes.addressof(managed.contents), None)


def _destroy_capsule(capsule: int) -> None:
    """Of a capsule that was not taken (a taker renames it)."""
    api = ctypes.pythonapi
    valid = api.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)
    if valid(capsule, _NAME):
        pointer = api.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
        _lent.pop(pointer(capsule, _NAME), None)


_delete = _Deleter(_delete_lent)
_destroy = _Destructor(_destroy_capsule)


class Tensor:
    """fp32 numbers of a shape, in C order, in memory of their own."""

    dtype = "float32"

    def __init__(self, shape: Sequence[int],
                 memory: Optional["ctypes.Array[ctypes.c_float]"] = None) -> None:
        self.shape: Shape = tuple(int(extent) for extent in shape)
        self._memory = memory if memory is not None else (
            ctypes.c_float * max(1, size_of(self.shape)))()

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return size_of(self.shape)

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def pointer(self) -> Any:
        """For a call of the library."""
        return ctypes.cast(self._memory, ctypes.POINTER(ctypes.c_float))

    def memoryview(self) -> Any:
        """The numbers, to read and to write; of one axis where there is none."""
        view = memoryview(self._memory).cast("B")[:4 * self.size]
        return view.cast("f", self.shape) if self.shape and self.size else view.cast("f")

    def tolist(self) -> Any:
        """The numbers in lists of lists; one number where there is no axis."""
        return self.memoryview().tolist() if self.shape else self._memory[0]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("one number has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __float__(self) -> float:
        if self.size != 1:
            raise TypeError("not one number")
        return float(self._memory[0])

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f4", "version": 3,
                "data": (ctypes.addressof(self._memory), False)}

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _CPU

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        """A capsule that shares this memory, which lives until the taker lets go of it."""
        if stream is not None:
            raise ValueError("memory of the processor has no streams")
        if dl_device is not None and tuple(dl_device) != _CPU:
            raise BufferError("these numbers lie in the processor's memory")
        memory = type(self._memory).from_buffer_copy(self._memory) if copy else self._memory
        extents = (ctypes.c_int64 * max(1, self.ndim))(*self.shape)
        managed = _DLManagedTensor()
        managed.dl_tensor = _DLTensor(ctypes.addressof(memory), _CPU[0], _CPU[1], self.ndim,
                                      2, 32, 1, extents, None, 0)
        managed.deleter = _delete
        _lent[ctypes.addressof(managed)] = (managed, memory, extents)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _Destructor)
        return make(ctypes.addressof(managed), _NAME, _destroy)

    def __repr__(self) -> str:
        return f"Tensor(shape={self.shape})"


Array = Any  # numpy.ndarray where NumPy is installed, else Tensor


def result(tensor: Tensor) -> Array:
    """What the package returns: the same memory as NumPy's array, where there is NumPy."""
    return numpy.asarray(tensor) if numpy is not None else tensor


# ---- What callers hand in ----


def _flatten(values: Any, shape: List[int], depth: int, out: List[float]) -> None:
    if isinstance(values, (int, float)):
        if depth != len(shape):
            raise ValueError("lists of different depths")
        out.append(float(values))
        return
    if depth == len(shape):
        if out:
            raise ValueError("lists of different depths")
        shape.append(len(values))
    if len(values) != shape[depth]:
        raise ValueError("lists of different lengths")
    for value in values:
        _flatten(value, shape, depth + 1, out)


def to_tensor(values: Any) -> Tensor:
    """Numbers as fp32 in C order: NumPy's arrays, whatever has a buffer or DLPack, and lists. Memory
    that has this form already is shared."""
    if isinstance(values, Tensor):
        return values
    if numpy is not None:
        if not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
            values = numpy.from_dlpack(values)
        array = numpy.ascontiguousarray(values, dtype=numpy.float32)
        shape = numpy.shape(values)
        if not array.flags.writeable:
            array = array.copy()
        if array.size == 0:
            return Tensor(shape)
        return Tensor(shape, (ctypes.c_float * array.size).from_buffer(
            memoryview(array.reshape(-1))))
    if isinstance(values, (list, tuple, int, float)):
        extents: List[int] = []
        numbers: List[float] = []
        _flatten(values, extents, 0, numbers)
        made = Tensor(extents)
        memory: Any = made._memory
        memory[:len(numbers)] = numbers
        return made
    view: Any = memoryview(values)
    if view.format not in ("f", "<f", "=f") or not view.c_contiguous:
        raise TypeError("without NumPy, numbers are fp32 ('f') in C order: format "
                        f"'{view.format}' is not")
    if view.nbytes == 0 or view.readonly:
        made = Tensor(view.shape)
        if view.nbytes:
            made.memoryview().cast("B")[:] = view.cast("B")
        return made
    return Tensor(view.shape, (ctypes.c_float * (view.nbytes // 4)).from_buffer(view.cast("B")))


Number = Union[int, float]
