"""A net with weights: forward passes, predictions, tests.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
import os
import threading
import warnings
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Type

from . import _declarations as c
from ._calls import Calls, Listener
from ._library import Handle, assign, create, decode, encode, library, status_of, strings
from .arrays import Array, Shape, Tensor, numpy, result, to_tensor
from .events import Output, outputs_of
from .errors import LockstepError
from .parameters import Arrays
from .training import Path


@dataclass(frozen=True)
class Blob:
    """An input or output of a net: its name, and its extents for one sample. `axis` is the axis of
    samples; its extent is 1, or that of a batch in a net that mixes samples."""

    name: str
    shape: Shape
    axis: int

    def join(self, samples: int) -> Shape:
        """Its extents for so many samples, in front where the axis of samples is the first."""
        if self.axis == 0 and self.shape:
            return (self.shape[0] * samples,) + self.shape[1:]
        return (samples,) + self.shape


@dataclass(frozen=True)
class TestResult:
    """What a test came to."""

    outputs: Dict[str, Output]
    samples: int

    def __getitem__(self, name: str) -> Output:
        """An output: result["accuracy"]."""
        return self.outputs[name]


class _Model:
    """The library's model that ends with one blob (None: with what the net ends with)."""

    def __init__(self, make: Callable[[Optional[str]], ctypes.c_void_p],
                 blob: Optional[str]) -> None:
        self._handle = Handle(make(blob), "lockstep_model_free")
        self.inputs = [self._extents(decode(library.lockstep_model_input_name(self.get(), i)), i)
                       for i in range(library.lockstep_model_input_count(self.get()))]
        name = library.lockstep_model_output_name(self.get())
        self.output = self._extents(blob or decode(name), None) if name is not None else None
        self.parameters = Arrays("lockstep_model", self.get, "lockstep_model_read_parameter",
                                 "lockstep_model_write_parameter")

    def get(self) -> ctypes.c_void_p:
        return self._handle.get("net")

    def _extents(self, name: str, index: Optional[int]) -> Blob:
        extent = (ctypes.c_int64 * c.LOCKSTEP_AXES_MAX)()
        axis = ctypes.c_int()
        if index is None:
            rank = library.lockstep_model_output_extents(self.get(), extent, ctypes.byref(axis))
        else:
            rank = library.lockstep_model_input_extents(self.get(), index, extent,
                                                        ctypes.byref(axis))
        return Blob(name, tuple(extent[:rank]), axis.value)

    def run(self, given: Mapping[str, Tensor], samples: int) -> Tensor:
        """What it ends with, of samples one behind the other. Of several inputs the first may be
        the only one, where the others are but labels."""
        assert self.output is not None
        made = Tensor(self.output.join(samples))
        if len(self.inputs) > 1 and set(given) == {self.inputs[0].name}:
            status_of("lockstep_model_predict", self.get(), given[self.inputs[0].name].pointer,
                      samples, made.pointer)
            return made
        pointers = (ctypes.POINTER(ctypes.c_float) * max(1, len(self.inputs)))()
        for i, blob in enumerate(self.inputs):
            pointers[i] = given[blob.name].pointer
        status_of("lockstep_model_predict_inputs", self.get(), pointers, samples, made.pointer)
        return made

    def close(self) -> None:
        self._handle.close()


class Net:
    """A net in its test phase with weights.

        net = lockstep.Net("deploy.prototxt", "digits_iter_1000.safetensors")
        scores = net.forward({"data": pictures})["prob"]

    definition: a net or a solver prototxt. weights: a snapshot, safetensors, a caffemodel or Caffe's
    HDF5. The options are those of struct lockstep_model_options in lockstep/model.h. Several threads
    may use a net: one call goes on at a time, on all workers, and the others wait."""

    def __init__(self, definition: Path, weights: Path, *, workers: int = 0, level: int = 0,
                 stages: Iterable[str] = (), memory: int = 0, isa: Optional[str] = None,
                 device: Optional[str] = None, labels: Optional[Path] = None,
                 mean: Optional[str] = None, scale: float = 0.0, resize: int = 0,
                 oversample: bool = False, map: Optional[Path] = None,
                 on_event: Optional[Listener] = None) -> None:
        self._calls = Calls()
        self._lock = threading.RLock()  # a call at a time; other threads wait
        if on_event is not None:
            self._calls.listeners.append(on_event)
        options = c.lockstep_model_options()
        library.lockstep_model_options_init(ctypes.byref(options))
        assign(options, workers=workers, level=level, memory=memory, scale=scale, resize=resize)
        options.isa, options.device = encode(isa), encode(device)
        options.labels, options.mean, options.map = encode(labels), encode(mean), encode(map)
        options.oversample = int(oversample)
        names = list(stages)
        self._stages = strings(names)
        options.stages = ctypes.cast(self._stages, type(options.stages))
        options.stage_count = len(names)
        options.callbacks = self._calls.struct()
        self._options = options
        self.definition, self.weights = os.fspath(definition), os.fspath(weights)
        self._model = _Model(self._make, None)
        self._cut: Dict[str, _Model] = {}  # by the blob that they end with
        self._changed: Dict[str, Array] = {}  # parameters that are not the file's any more
        self._looked = False  # at numbers that may be pixels as they are: one warning will do
        self._doubted = False  # pixels that may be divided by 255 already: the same

    def _make(self, blob: Optional[str]) -> ctypes.c_void_p:
        self._options.output = encode(blob)
        self._options.iterations = 0
        with self._calls:
            return create("lockstep_model_load", encode(self.definition), encode(self.weights),
                          ctypes.byref(self._options))

    # ---- What it is ----

    @property
    def inputs(self) -> List[Blob]:
        """What it is given, in the order of the definition."""
        return list(self._model.inputs)

    @property
    def output(self) -> Optional[Blob]:
        """What it ends with; None where that does not belong to samples."""
        return self._model.output

    @property
    def parameters(self) -> "NetParameters":
        """Weights by name; assigning to one changes it."""
        return NetParameters(self)

    def class_name(self, index: int) -> Optional[str]:
        """The name of a class, where the weights or `labels` have them."""
        name = library.lockstep_model_class_name(self._model.get(), index)
        return decode(name) if name is not None else None

    # ---- Running it ----

    def _cut_at(self, blob: str) -> _Model:
        if self._model.output is not None and blob == self._model.output.name:
            return self._model
        if blob not in self._cut:
            model = _Model(self._make, blob)
            for name, values in self._changed.items():
                if name in model.parameters:
                    model.parameters[name] = values
            self._cut[blob] = model
        return self._cut[blob]

    def forward(self, inputs: Mapping[str, Any],
                blobs: Optional[Iterable[str]] = None) -> Dict[str, Array]:
        """A forward pass: arrays of all inputs by name, [N, ...] each, to the output, or to each of
        `blobs`, with the samples along the same axis as in the definition. N may be any number. (Of
        each blob that is not the output a net of its own is kept, which ends there.)"""
        given: Dict[str, Tensor] = {}
        samples = -1
        known = {blob.name: blob for blob in self._model.inputs}
        for name, values in inputs.items():
            if name not in known:
                raise KeyError(f"the net has no input '{name}'; it has {', '.join(known) or 'none'}")
            given[name], count = _split(known[name], to_tensor(values))
            if name == self._model.inputs[0].name:
                self._look_at(values, given[name])
            if samples not in (-1, count):
                raise ValueError(f"'{name}' has {count} samples, and others have {samples}")
            samples = count
        with self._lock:
            return self._run(given, samples, blobs)

    def _run(self, given: Dict[str, Tensor], samples: int,
             blobs: Optional[Iterable[str]]) -> Dict[str, Array]:
        if blobs is None:
            if self._model.output is None:
                raise ValueError("the net ends with nothing that belongs to samples: name blobs")
            blobs = [self._model.output.name]
        found = {}
        for name in blobs:
            model = self._cut_at(name)
            first = model.inputs[0].name if model.inputs else ""
            for blob in model.inputs:
                if blob.name not in given and set(given) != {first}:
                    raise KeyError(f"input '{blob.name}' is missing")
            if model.output is None:
                raise ValueError(f"'{name}' is an input, or does not belong to samples")
            found[name] = _join(model.output, model.run(given, samples), samples)
        return found

    def _range(self) -> Optional[Tuple[float, float]]:
        """What pixels of 0 to 255 become by the transformation of the training; None: they stay as
        they are, or it is not known."""
        least, most = ctypes.c_double(), ctypes.c_double()
        found = library.lockstep_model_input_range(self._model.get(), ctypes.byref(least),
                                                   ctypes.byref(most))
        return (least.value, most.value) if found else None

    def _look_at(self, values: Any, tensor: Tensor) -> None:
        """Warns, once, of numbers that training would have transformed."""
        with self._lock:
            usual = None if self._looked else self._range()
        if usual is None:
            return
        whole = "int" in str(getattr(values, "dtype", ""))
        room = 0.01 * (usual[1] - usual[0])
        least, most = _extremes(tensor)
        if whole or least < usual[0] - room or most > usual[1] + room:
            self._looked = True
            what = f"whole numbers ({values.dtype})" if whole else f"numbers from {least:g} to {most:g}"
            warnings.warn(
                f"the net is given {what}, but was trained on pixels transformed to "
                f"{usual[0]:g} ... {usual[1]:g}: net.transform(pixels) does that", stacklevel=4)

    def _doubt(self, pixels: Any, tensor: Tensor) -> None:
        """Warns, once, of pixels that are transformed already, as by PyTorch's ToTensor."""
        if self._doubted or "int" in str(getattr(pixels, "dtype", "")) or self._range() is None:
            return
        least, most = _extremes(tensor)
        if least < 0 or 0 < most <= 1:
            self._doubted = True
            warnings.warn(f"transform() takes pixels of 0 to 255, and these are {least:g} to "
                          f"{most:g}: were they transformed before?", stacklevel=3)

    def transform(self, pixels: Any) -> Array:
        """What the training did with pictures: pixels of 0 to 255, [N, C, H, W] or one [C, H, W], to
        what predict() takes. Channels have the net's order (blue, green, red of what was decoded
        from files). Pictures have the size of those of the training; or that of the net's input, which
        are not cropped again."""
        if not self._model.inputs:
            raise ValueError("the net has no inputs: test() runs it over its own data")
        given = to_tensor(pixels)
        if given.ndim not in (3, 4):
            raise ValueError(f"pictures are [N, C, H, W] or [C, H, W], not of shape {given.shape}")
        self._doubt(pixels, given)
        shape = (ctypes.c_int64 * 3)()
        library.lockstep_model_input_shape(self._model.get(), shape)
        count = given.shape[0] if given.ndim == 4 else 1
        made = Tensor(given.shape[:given.ndim - 3] + tuple(shape))
        with self._lock:
            status_of("lockstep_model_transform", self._model.get(), given.pointer,
                      (ctypes.c_int64 * 3)(*given.shape[-3:]), count, made.pointer)
        return result(made)

    def predict(self, values: Any) -> Array:
        """The output for samples of the one input, [N, ...], as the net takes them: transformed
        already (`transform` does it); others may be labels alone."""
        if not self._model.inputs:
            raise ValueError("the net has no inputs: test() runs it over its own data")
        outputs = self.forward({self._model.inputs[0].name: values})
        return next(iter(outputs.values()))

    def predict_picture(self, path: Path) -> Array:
        """The output for a JPEG or PNG picture, transformed as in training: by the data layer of the
        definition, or as the snapshot has it."""
        made = Tensor((library.lockstep_model_output_size(self._model.get()),))
        with self._lock:
            status_of("lockstep_model_predict_picture", self._model.get(), encode(path),
                      made.pointer)
        return result(made)

    def test(self) -> TestResult:
        """Runs it over its own data, every sample once."""
        outputs = ctypes.POINTER(c.lockstep_output)()
        count, samples = ctypes.c_size_t(), ctypes.c_int64()
        with self._lock, self._calls:
            status_of("lockstep_model_test", self._model.get(), ctypes.byref(outputs),
                      ctypes.byref(count), ctypes.byref(samples))
            return TestResult(outputs_of(outputs, count.value), samples.value)

    def save(self, path: Path) -> None:
        """Writes its weights: as a caffemodel or Caffe's HDF5 where `path` ends so (.caffemodel,
        .h5), else as safetensors."""
        status_of("lockstep_model_save", self._model.get(), encode(path))

    def close(self) -> None:
        """Frees its memory and its threads."""
        with self._lock, self._calls.alone("net"):
            for model in [self._model] + list(self._cut.values()):
                model.close()
            self._cut.clear()

    def __enter__(self) -> "Net":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class NetParameters(Arrays):
    """Parameters of a net and of those that end earlier."""

    def __init__(self, net: Net) -> None:  # pylint: disable=super-init-not-called
        self.__dict__.update(net._model.parameters.__dict__)
        self._net = net

    def __setitem__(self, name: str, values: Any) -> None:
        super().__setitem__(name, values)
        self._net._changed[name] = self.tensor(name)
        for model in self._net._cut.values():
            if name in model.parameters:
                model.parameters[name] = self._net._changed[name]


def _extremes(tensor: Tensor) -> Tuple[float, float]:
    """The least and the largest number, without NumPy of the first ones."""
    if tensor.size == 0:
        return 0.0, 0.0
    if numpy is not None:
        array = numpy.asarray(tensor)
        return float(array.min()), float(array.max())
    some = tensor._memory[:min(tensor.size, 10000)]
    return min(some), max(some)


def _split(blob: Blob, values: Tensor) -> Tuple[Tensor, int]:
    """Samples one behind the other, and how many there are."""
    wanted = f"'{blob.name}' has the shape {values.shape}; "
    if blob.axis == 0 or not blob.shape or blob.axis < 0:
        rows = blob.shape[0] if blob.shape else 1
        if values.ndim != max(1, len(blob.shape)) or values.shape[1:] != blob.shape[1:] or (
                values.shape[0] % rows != 0) or values.shape[0] == 0:
            raise ValueError(wanted + f"it takes {('N',) + blob.shape[1:]}"
                             + (f", N a multiple of {rows}" if rows > 1 else ""))
        return values, values.shape[0] // rows
    if numpy is None:
        raise ImportError(f"'{blob.name}' has samples along axis {blob.axis}: that needs NumPy")
    rows = blob.shape[blob.axis]
    others = values.shape[:blob.axis] + values.shape[blob.axis + 1:]
    if values.ndim != len(blob.shape) or values.shape[blob.axis] % rows != 0 or (
            others != blob.shape[:blob.axis] + blob.shape[blob.axis + 1:]):
        raise ValueError(wanted + f"one sample has {blob.shape}, along axis {blob.axis}")
    count = values.shape[blob.axis] // rows
    parts = numpy.split(numpy.asarray(values), count, axis=blob.axis)
    return to_tensor(numpy.stack(parts)), count


def _join(blob: Blob, values: Tensor, samples: int) -> Array:
    if blob.axis <= 0 or numpy is None:
        return result(values)
    parts = numpy.asarray(values).reshape((samples,) + blob.shape)
    return numpy.concatenate(list(parts), axis=blob.axis)



__all__ = ["Blob", "Net", "NetParameters", "TestResult"]
