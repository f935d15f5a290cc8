"""What a training tells while it goes on: one dataclass for each kind of event.
SPDX-License-Identifier: BSD-2-Clause"""
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional, Tuple, Type

from . import _declarations as c
from ._library import decode

__all__ = ["Event", "Start", "Warned", "Notice", "Detail", "Update", "Display", "Tested", "Written",
           "Ended", "Run", "Audited", "Hashed", "Statistics", "ParameterStatistics", "Histogram",
           "Output"]


class Output(float):
    """An output of a net: a loss, an accuracy, figures per class. It is a number, the first of its
    figures, which is all there is of a loss or an accuracy; `values` has all of them."""

    name: str
    values: Tuple[float, ...]
    loss_weight: float  #: 0: not part of the loss

    def __new__(cls, name: str, values: Tuple[float, ...], loss_weight: float = 0.0) -> "Output":
        made = super().__new__(cls, values[0] if values else math.nan)
        made.name, made.values, made.loss_weight = name, tuple(values), loss_weight
        return made

    def __getnewargs__(self) -> Any:
        return self.name, self.values, self.loss_weight

    def __repr__(self) -> str:
        if len(self.values) == 1:
            return float.__repr__(self)
        return f"Output({self.name!r}, {len(self.values)} values)"

    @property
    def value(self) -> float:
        """The same as a float without its name."""
        return float(self)


@dataclass(frozen=True)
class Event:
    """What all events have."""

    iteration: int      #: updates done so far
    iteration_end: int  #: where this run will stop


@dataclass(frozen=True)
class Start(Event):
    """A line of what matters about this run; there are many of them."""

    text: str = ""


@dataclass(frozen=True)
class Warned(Event):
    """A warning."""

    text: str = ""


@dataclass(frozen=True)
class Notice(Event):
    """Something worth a line in a log."""

    text: str = ""


@dataclass(frozen=True)
class Detail(Event):
    """A line for logs, which the program shows with --verbose."""

    text: str = ""


@dataclass(frozen=True)
class Update(Event):
    """After every update."""

    epoch: float = 0.0  #: passes over the training data so far; 0 if unknown
    loss: float = 0.0   #: of the data, without the penalty, mean over average_loss updates
    penalty: float = math.nan  #: of weight decay; NaN where it was not measured
    learning_rate: float = 0.0
    samples_per_second: float = 0.0  #: since the last event of this kind
    seconds: float = 0.0             #: the same


@dataclass(frozen=True)
class Display(Update):
    """Every `display` iterations."""

    outputs: Dict[str, Output] = field(default_factory=dict)


@dataclass(frozen=True)
class Tested(Event):
    """A finished test phase."""

    epoch: float = 0.0
    loss: float = 0.0  #: where the solver has test_compute_loss, else 0
    test_net: int = 0  #: -1: the train data, un-augmented
    samples: int = 0   #: how many were tested
    skipped: int = 0   #: bad records that others stood in for
    outputs: Dict[str, Output] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Output:
        """An output: event["accuracy"]."""
        return self.outputs[name]


@dataclass(frozen=True)
class Written(Event):
    """A snapshot was written."""

    path: str = ""


@dataclass(frozen=True)
class Ended(Event):
    """Training is done."""

    skipped: int = 0


@dataclass(frozen=True)
class Run(Event):
    """What the run is, in figures; once, before the lines of Start. `figures` has the members of
    the C interface's struct lockstep_run."""

    figures: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Audited(Event):
    """A core has computed wrongly; `finding` has the members of struct lockstep_audit."""

    text: str = ""
    finding: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Hashed(Event):
    """Every 20 iterations: the hash of all weights, and the chain of them."""

    text: str = ""
    weights_hash: int = 0
    chain: int = 0
    chain_begin: int = 0


@dataclass(frozen=True)
class Histogram:
    """counts[i] numbers are from edges[i] to below edges[i + 1]."""

    edges: Tuple[float, ...]
    counts: Tuple[int, ...]


@dataclass(frozen=True)
class ParameterStatistics:
    """Of a parameter that is trained; norms are L2."""

    name: str
    size: int
    weight_norm: float
    gradient_norm: float
    update_norm: float
    weights: Histogram
    gradient: Histogram


@dataclass(frozen=True)
class Statistics(Event):
    """Behind a Display, where statistics are wanted. The norms are those of all parameters."""

    parameters: Tuple[ParameterStatistics, ...] = ()
    weight_norm: float = 0.0
    gradient_norm: float = 0.0
    update_norm: float = 0.0


def outputs_of(items: Any, count: int) -> Dict[str, Output]:
    """Outputs of the library's, in its order."""
    found = {}
    for i in range(count):
        item = items[i]
        name = decode(item.name)
        found[name] = Output(name, tuple(item.values[:item.count]), item.loss_weight)
    return found


def _members(pointer: Any) -> Dict[str, Any]:
    struct = pointer.contents
    found = {}
    for name, _ in struct._fields_:
        value = getattr(struct, name)
        found[name] = decode(value) if isinstance(value, bytes) else value
    return found


def _text(kind: Type[Any]) -> Callable[[Any, int, int], Event]:
    return lambda e, now, end: kind(now, end, decode(e.text))


def _update(e: Any, now: int, end: int) -> Event:
    return Update(now, end, e.epoch, e.loss, e.penalty, e.learning_rate, e.samples_per_second,
                  e.seconds)


def _display(e: Any, now: int, end: int) -> Event:
    return Display(now, end, e.epoch, e.loss, e.penalty, e.learning_rate, e.samples_per_second,
                   e.seconds, outputs_of(e.outputs, e.output_count))


def _tested(e: Any, now: int, end: int) -> Event:
    return Tested(now, end, e.epoch, e.loss, e.test_net, e.samples, e.skipped,
                  outputs_of(e.outputs, e.output_count))


def _hashed(e: Any, now: int, end: int) -> Event:
    return Hashed(now, end, decode(e.text), e.weights_hash, e.chain, e.chain_begin)


def _histogram(h: Any) -> Histogram:
    return Histogram(tuple(h.edges[:h.count + 1]), tuple(h.counts[:h.count]))


def _statistics(e: Any, now: int, end: int) -> Event:
    found = e.statistics.contents
    items = [found.parameters[i] for i in range(found.parameter_count)]
    return Statistics(
        now, end, tuple(ParameterStatistics(decode(p.name), p.size, p.weight_norm, p.gradient_norm,
                                            p.update_norm, _histogram(p.weights),
                                            _histogram(p.gradient)) for p in items),
        found.weight_norm, found.gradient_norm, found.update_norm)


_MAKERS: Dict[int, Callable[[Any, int, int], Event]] = {
    c.LOCKSTEP_EVENT_START: _text(Start),
    c.LOCKSTEP_EVENT_WARNING: _text(Warned),
    c.LOCKSTEP_EVENT_NOTICE: _text(Notice),
    c.LOCKSTEP_EVENT_DETAIL: _text(Detail),
    c.LOCKSTEP_EVENT_PROGRESS: _update,
    c.LOCKSTEP_EVENT_DISPLAY: _display,
    c.LOCKSTEP_EVENT_TEST: _tested,
    c.LOCKSTEP_EVENT_SNAPSHOT: _text(Written),
    c.LOCKSTEP_EVENT_END: lambda e, now, end: Ended(now, end, e.skipped),
    c.LOCKSTEP_EVENT_RUN: lambda e, now, end: Run(now, end, _members(e.run)),
    c.LOCKSTEP_EVENT_AUDIT: lambda e, now, end: Audited(now, end, decode(e.text),
                                                        _members(e.audit)),
    c.LOCKSTEP_EVENT_HASH: _hashed,
    c.LOCKSTEP_EVENT_STATISTICS: _statistics,
}


def make_event(struct: Any) -> Optional[Event]:
    """An event of the library's; None for a kind that this package does not know."""
    make = _MAKERS.get(struct.kind)
    return make(struct, struct.iteration, struct.iteration_end) if make is not None else None
