"""Modules of Caffe's that are not here: they can be imported, and what is taken from them is an
AttributeError that says what to use instead.
SPDX-License-Identifier: BSD-2-Clause"""
import sys
import types
from typing import Any

_TEXT = ("write the definition as prototxt text (docs/caffe.md), with 'block { repeat: N }' for what "
         "repeats, or import a model of PyTorch: lockstep.import_onnx")
_MESSAGES = ("lockstep.structure.layers(path) lists a net's layers with their shapes, "
             "lockstep.Trainer(path, set={...}) overrides fields of a solver, and Caffe's own "
             "caffe_pb2 reads and writes the same files")


class Absent(types.ModuleType):
    """A module with nothing in it."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(name, "Not here: " + hint)
        self._hint = hint

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self.__name__} has no '{name}': {self._hint}")


def add(package: str) -> None:
    """Puts them where `from caffe import layers` and `from caffe.proto import caffe_pb2` look."""
    for name, hint in (("layers", _TEXT), ("params", _TEXT), ("net_spec", _TEXT),
                       ("proto", _MESSAGES), ("proto.caffe_pb2", _MESSAGES)):
        made = sys.modules[f"{package}.{name}"] = Absent(f"{package}.{name}", hint)
        parent, _, last = f"{package}.{name}".rpartition(".")
        setattr(sys.modules[parent], last, made)


NET_SPEC = _TEXT
