"""What writes a training's events to files: the log, a report, TensorBoard, metrics.

Each takes the library's events as they are. One that fails says so once, as a RuntimeWarning; the
training goes on without it. SPDX-License-Identifier: BSD-2-Clause"""
import contextlib
import ctypes
import datetime
import json
import math
import os
import time
import warnings
from typing import Any, Dict, List, Optional, TextIO

from . import _declarations as c
from ._library import Handle, create, decode, encode, library, status_of
from .errors import LockstepError, UsageError

_TRAINING = ("iteration_end", "epoch", "loss", "data_loss", "penalty", "learning_rate",
             "samples_per_second", "seconds")
_RUN = ("version", "environment", "net", "solver", "lr_policy", "base_lr", "seed", "iteration_end",
        "max_iter", "display", "test_interval", "snapshot_interval", "batch", "iter_size",
        "micro_batches", "micro_batch", "samples", "iterations_per_epoch", "ranks", "workers",
        "learned", "fixed", "flops_per_sample", "memory", "memory_limit")
_AUDIT = ("host", "rank", "worker", "core", "micro_batch", "first_sample", "last_sample", "name",
          "differing")
_OFTEN = (c.LOCKSTEP_EVENT_PROGRESS, c.LOCKSTEP_EVENT_HASH)


def _short(value: float) -> float:
    """With no more digits than a float has; an int where it is whole, as the program writes it."""
    text = ctypes.create_string_buffer(32)
    library.lockstep_number_text(value, text)
    return int(text.value) if text.value.lstrip(b"-").isdigit() else float(text.value)


def _plain(value: Any) -> Any:
    """A member as JSON has it: no NaN, no infinities, no bytes, no more digits than a float has."""
    if isinstance(value, float):
        return _short(value) if math.isfinite(value) else None
    return decode(value) if isinstance(value, bytes) else value


def _members(struct: Any, names: Any) -> Dict[str, Any]:
    return {name: _plain(getattr(struct, name)) for name in names}


def _histogram(struct: Any) -> Dict[str, Any]:
    return {"edges": [_plain(edge) for edge in struct.edges[:struct.count + 1]],
            "counts": list(struct.counts[:struct.count])}


def _statistics(struct: Any) -> Dict[str, Any]:
    norms = ("weight_norm", "gradient_norm", "update_norm")
    parameters = []
    for i in range(struct.parameter_count):
        item = struct.parameters[i]
        parameters.append(dict(_members(item, ("name",) + norms),
                               weight_histogram=_histogram(item.weights),
                               gradient_histogram=_histogram(item.gradient)))
    return dict({"parameters": parameters}, **_members(struct, norms))


def _outputs(event: Any) -> List[Dict[str, Any]]:
    found = []
    for i in range(event.output_count):
        item = event.outputs[i]
        found.append({"name": decode(item.name),
                      "values": [_plain(value) for value in item.values[:item.count]],
                      "loss_weight": _plain(item.loss_weight),
                      **({"classes": [None if name is None else decode(name)
                                      for name in item.classes[:item.count]]}
                         if item.classes else {}),
                      **({"better": "max" if item.better > 0 else "min"} if item.better else {})})
    return found


def _now() -> str:
    now = datetime.datetime.now(datetime.timezone.utc)
    return now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z"


def event_line(event: Any, elapsed: float) -> str:
    """An event as `lockstep train --log-json` writes it (docs/report.md)."""
    kind = event.kind
    made: Dict[str, Any] = {"event": c.lockstep_event_kind[kind][len("EVENT_"):].lower(),
                            "iteration": event.iteration, "time": _now(), "elapsed": elapsed}
    if event.text is not None:
        made["text"] = decode(event.text)
    if event.run:
        run = _members(event.run.contents, _RUN)
        made.update({{"learned": "parameters_learned", "fixed": "parameters_fixed"}.get(name, name):
                     value for name, value in run.items()})
    if kind in (c.LOCKSTEP_EVENT_PROGRESS, c.LOCKSTEP_EVENT_DISPLAY):
        made.update(_members(event, _TRAINING))
    if event.audit:
        made["wrong"] = "update" if event.audit.contents.own else "audit"
        made.update(_members(event.audit.contents, _AUDIT))
    if kind == c.LOCKSTEP_EVENT_HASH:
        made.update(weights=f"{event.weights_hash:016x}", chain=f"{event.chain:016x}",
                    chain_begin=event.chain_begin)
    if event.statistics:
        made.update(_statistics(event.statistics.contents))
    if kind == c.LOCKSTEP_EVENT_TEST:
        made.update(_members(event, ("epoch", "test_net", "samples")))
        if event.data_loss != 0:
            made.update(_members(event, ("loss", "data_loss")))
    if kind in (c.LOCKSTEP_EVENT_TEST, c.LOCKSTEP_EVENT_END):
        made["skipped"] = event.skipped
    if kind == c.LOCKSTEP_EVENT_END:
        made.update(_members(event, ("iteration_end", "loss", "data_loss")))
    if kind in (c.LOCKSTEP_EVENT_TEST, c.LOCKSTEP_EVENT_DISPLAY):
        made["outputs"] = _outputs(event)
    return json.dumps(made, allow_nan=False)


class Observer:
    """What takes events, and ends."""

    def event(self, event: Any, line: str) -> None:
        """One event: the library's struct, and its line of a log."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing follows."""


def _open(path: str, how: int, named: bool) -> TextIO:
    """Opens a file for writing as the library does: not through another user's link."""
    descriptor = ctypes.c_int(-1)
    try:
        status_of("lockstep_file_open", encode(path), how, int(named), ctypes.byref(descriptor))
    except LockstepError as failure:
        raise OSError(str(failure)) from failure
    return open(descriptor.value, "a", encoding="utf-8")


class Log(Observer):
    """A file with a line for each event. A training that begins anew empties it when it begins;
    one that is resumed goes on behind what is there."""

    def __init__(self, path: Any, named: bool = True) -> None:
        self._path = os.fspath(path)
        self._named = named  # by the user, who may have links and pipes of his own
        with _open(self._path, c.LOCKSTEP_FILE_APPEND, named):
            pass  # whether it can be written is known before the training begins
        self._early: List[str] = []
        self._file: Optional[TextIO] = None

    def event(self, event: Any, line: str) -> None:
        if self._file is None and event.kind == c.LOCKSTEP_EVENT_RUN:
            self._begin(event.run.contents.first_iteration > 0)
        if self._file is None:
            self._early.append(line)
            return
        try:
            self._file.write(line + "\n")
            if event.kind not in _OFTEN:
                self._file.flush()
        except OSError:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Closes the file without what could not be written."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()

    def _begin(self, resumed: bool) -> None:
        cut_off = False
        if resumed and os.path.getsize(self._path) > 0:
            with open(self._path, "rb") as file:
                file.seek(-1, os.SEEK_END)
                cut_off = file.read(1) != b"\n"
        self._file = _open(self._path, c.LOCKSTEP_FILE_APPEND if resumed else
                           c.LOCKSTEP_FILE_ANEW, self._named)
        self._file.write("\n" * cut_off + "".join(line + "\n" for line in self._early))
        self._early.clear()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()  # which may fail, and closes it all the same


class Report(Observer):
    """A folder with log.json, the events, and report.html, the page that they make, which is
    written anew at most every five seconds."""

    def __init__(self, folder: Any, name: str, definition: Optional[bytes]) -> None:
        self._folder = os.fspath(folder)
        os.makedirs(os.path.dirname(os.path.abspath(self._folder)), exist_ok=True)
        status_of("lockstep_folder_make", encode(self._folder))
        self._page = os.path.join(self._folder, "report.html")
        self._events = os.path.join(self._folder, "log.json")
        self._name, self._definition = encode(name), definition
        self._check_page()
        self._lines = Handle(create("lockstep_log_new"), "lockstep_log_free")
        if os.path.exists(self._events) and os.path.getsize(self._events) > 0:
            status_of("lockstep_log_read", self._lines.get("log"), encode(self._events))
        self._log = Log(self._events, named=False)
        self._begun = False
        self._early: List[str] = []
        self._written = -math.inf

    def _check_page(self) -> None:
        if os.path.exists(self._page):
            with open(self._page, "rb") as file:
                head = file.read(4096)
            if head and b'content="lockstep"' not in head:
                raise UsageError(f"{self._page} was not written by lockstep: name another folder")

    def _take(self, line: str) -> None:
        data = line.encode()
        status_of("lockstep_log_line", self._lines.get("log"), data, len(data))

    def event(self, event: Any, line: str) -> None:
        if not self._begun and event.kind == c.LOCKSTEP_EVENT_RUN:
            self._begun = True
            if event.run.contents.first_iteration == 0:
                self._lines.close()
                self._lines = Handle(create("lockstep_log_new"), "lockstep_log_free")
            for early in self._early:
                self._take(early)
        if self._begun:
            self._take(line)
        else:
            self._early.append(line)
        self._log.event(event, line)
        last = event.kind == c.LOCKSTEP_EVENT_END
        due = event.kind not in _OFTEN and time.monotonic() - self._written >= 5
        if self._begun and (last or due):
            self._write(refresh=0 if last else 15)

    def _write(self, refresh: int) -> None:
        options = c.lockstep_page_options()
        library.lockstep_page_options_init(ctypes.byref(options))
        names = (ctypes.c_char_p * 1)(self._name)
        options.names = ctypes.cast(names, type(options.names))
        options.definition, options.refresh = self._definition, refresh
        logs = (ctypes.c_void_p * 1)(self._lines.get("log"))
        self._written = time.monotonic()
        status_of("lockstep_page_write", encode(self._page), logs, 1, ctypes.byref(options))

    def close(self) -> None:
        self._log.close()
        if self._begun:
            self._write(refresh=0)
        self._begun = False


class Writer(Observer):
    """What the library writes itself: TensorBoard's files, Prometheus' metrics."""

    def __init__(self, kind: str, path: Any) -> None:
        self._kind = kind
        self._handle = Handle(create(f"lockstep_{kind}_new", encode(path)), f"lockstep_{kind}_free")

    def event(self, event: Any, line: str) -> None:
        status_of(f"lockstep_{self._kind}_event", self._handle.get(self._kind), ctypes.byref(event))

    def close(self) -> None:
        try:
            status_of(f"lockstep_{self._kind}_flush", self._handle.get(self._kind))
        finally:
            self._handle.close()


class Observers:
    """All of a training's."""

    def __init__(self) -> None:
        self._items: List[Observer] = []
        self._begun = time.monotonic()

    def add(self, observer: Observer) -> None:
        """Another one."""
        self._items.append(observer)

    def event(self, event: Any) -> None:
        """Hands an event on to all that have not failed."""
        if not self._items:
            return
        line = event_line(event, time.monotonic() - self._begun)
        for observer in list(self._items):
            try:
                observer.event(event, line)
            except (LockstepError, OSError) as failure:
                self._items.remove(observer)
                warnings.warn(f"{failure}; the training goes on without it", RuntimeWarning,
                              stacklevel=2)

    def close(self) -> None:
        """Ends them all."""
        items, self._items = self._items, []
        for observer in items:
            try:
                observer.close()
            except (LockstepError, OSError) as failure:
                warnings.warn(str(failure), RuntimeWarning, stacklevel=2)
