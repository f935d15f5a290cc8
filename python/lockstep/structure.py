"""A net's layers with their shapes and what they cost, without weights.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Tuple

from . import _declarations as c
from ._library import Handle, create, decode, encode, library, strings
from .arrays import Shape
from .training import Path


@dataclass(frozen=True)
class Layer:
    """A layer of a net in one phase."""

    name: str
    type: str
    bottoms: Tuple[str, ...]
    tops: Dict[str, Shape]        #: for a whole batch
    parameters: Dict[str, Shape]  #: "weight", "bias"; also those that it shares
    flops: float                  #: of a sample forward, two a multiply-add


def _shapes(blobs: Any, count: int) -> Dict[str, Shape]:
    return {decode(blobs[i].name): tuple(blobs[i].extent[:blobs[i].rank]) for i in range(count)}


def layers(path: Path, *, phase: Optional[str] = None, level: int = 0,
           stages: Iterable[str] = ()) -> List[Layer]:
    """The layers of a net or a solver's net, in order. phase: "TRAIN" or "TEST"."""
    options = c.lockstep_net_options()
    library.lockstep_net_options_init(ctypes.byref(options))
    names = list(stages)
    kept = strings(names)
    options.phase, options.level = encode(phase), level
    options.stages, options.stage_count = ctypes.cast(kept, type(options.stages)), len(names)
    handle = Handle(create("lockstep_net_load", encode(path), ctypes.byref(options)),
                    "lockstep_net_free")
    count = ctypes.c_size_t()
    items = library.lockstep_net_layers(handle.get("net"), ctypes.byref(count))
    found = []
    for i in range(count.value):
        item = items[i]
        found.append(Layer(decode(item.name), decode(item.type),
                           tuple(decode(item.bottoms[b]) for b in range(item.bottom_count)),
                           _shapes(item.tops, item.top_count),
                           _shapes(item.parameters, item.parameter_count), item.flops))
    handle.close()
    return found
