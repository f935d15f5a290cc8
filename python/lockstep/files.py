"""Files of models: to and from ONNX, from one format of weights to another, what differs.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
from typing import Any, Iterable, List, Optional

from . import _declarations as c
from ._library import assign, callback_type, decode, encode, library, status_of, strings
from .net import Net
from .training import Path


def _lines(kind: Any, found: List[str]) -> Any:
    """A function of the library's `kind` that keeps the lines that it is called with."""
    return kind(lambda _user, line: found.append(decode(line)))


def export_onnx(definition: Path, weights: Path, path: Path, *, opset: int = 0, batch: int = 0,
                external: bool = False, preprocessing: bool = False, output: Optional[str] = None,
                **options: Any) -> List[str]:
    """Writes a net with its weights as a model of ONNX, as `lockstep export --onnx` does. batch: 0
    for any number of samples; output: the blob that the model ends with; other options are those of
    Net. Returns what the model takes for granted, a sentence each."""
    said: List[str] = []
    made = c.lockstep_onnx_options()
    library.lockstep_onnx_options_init(ctypes.byref(made))
    assign(made, opset=opset, batch=batch)
    made.external, made.preprocessing = int(external), int(preprocessing)
    made.tell = tell = _lines(callback_type(c.lockstep_onnx_options, "tell"), said)
    with Net(definition, weights, **options) as net:
        model = net._model if output is None else net._cut_at(output)
        status_of("lockstep_model_export_onnx", model.get(), encode(path), ctypes.byref(made))
    del tell
    return said


def import_onnx(path: Path, prefix: Path, *, loss: Optional[str] = None, solver: bool = False,
                tie: bool = False, shapes: Iterable[str] = ()) -> List[str]:
    """Makes a net of a model of ONNX, as `lockstep import` does: PREFIX_deploy.prototxt,
    PREFIX.safetensors, and with a loss ("softmax", "euclidean") a definition to train. What the user
    should know of it is a RuntimeWarning. Returns the files that were written."""
    import warnings
    said: List[str] = []
    written: List[str] = []
    names = list(shapes)
    kept = strings(names)
    options = c.lockstep_import_options()
    library.lockstep_import_options_init(ctypes.byref(options))
    options.shapes, options.shape_count = ctypes.cast(kept, type(options.shapes)), len(names)
    options.loss, options.solver, options.tie = encode(loss), int(solver), int(tie)
    options.note = note = _lines(callback_type(c.lockstep_import_options, "note"), said)
    tell = _lines(c.FUNCTIONS["lockstep_import_onnx"][1][3], written)
    status_of("lockstep_import_onnx", encode(path), encode(prefix), ctypes.byref(options), tell,
              None)
    del note
    for sentence in said:
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)
    return written


def convert_weights(source: Path, path: Path, *, map: Optional[Path] = None) -> List[str]:
    """Writes weights in the format that the ending of the new name says (.caffemodel, .h5,
    .safetensors), or with `map` under other names (docs/weights.md). Returns lines about what was
    left out."""
    said: List[str] = []
    name = "lockstep_convert_weights" if map is None else "lockstep_convert_weight_names"
    given = [encode(source), encode(path)] + ([] if map is None else [encode(map)])
    status_of(name, *given, _lines(c.FUNCTIONS[name][1][len(given)], said), None)
    return said


def diff(first: Path, second: Path) -> List[str]:
    """What differs between two files of weights, two nets or two solvers, a line each; an empty
    list where nothing does."""
    said: List[str] = []
    status = status_of("lockstep_diff", encode(first), encode(second),
                       _lines(c.FUNCTIONS["lockstep_diff"][1][2], said), None,
                       allowed=(c.LOCKSTEP_DIFFERENT,))
    return said if status == c.LOCKSTEP_DIFFERENT else []


__all__ = ["convert_weights", "diff", "export_onnx", "import_onnx"]
