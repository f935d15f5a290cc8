"""Training: a Trainer, and train(), which is one from beginning to end.
SPDX-License-Identifier: BSD-2-Clause"""
import contextlib
import ctypes
import os
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Type, Union

from . import _declarations as c
from ._calls import Calls, Listener
from ._library import (Handle, assign, callback_type, create, decode, encode, library, status_of,
                       strings)
from ._observers import Log, Report, Writer
from .data import Given, named
from .errors import LockstepError, make_error
from .events import Display, Event, Output, Tested, Update, Written, outputs_of
from .job import Job, current
from .parameters import Arrays, Blobs

Path = Union[str, "os.PathLike[str]"]
Settings = Union[None, Mapping[str, Any], Iterable[str]]


def _setting(name: str, value: Any) -> str:
    if isinstance(value, bool):
        value = "true" if value else "false"
    return f"{name}={value}"


def settings_list(settings: Settings) -> List[str]:
    """{"base_lr": 0.1} or ["base_lr=0.1"], as --set has it."""
    if settings is None:
        return []
    if isinstance(settings, Mapping):
        return [_setting(name, value) for name, value in settings.items()]
    return [str(item) for item in settings]


class Solver:
    """A solver with its nets, read and checked: what a Trainer trains.

    set: fields of it, {"base_lr": 0.1}. arrays: NumPy's arrays in place of the .npy files that Data
    layers of backend NPY name. data, test_data: what Input and MemoryData layers of the train net
    and of the test nets bring, by their tops' names: arrays, or objects with a length whose items
    are records, which are asked for from any thread as they are needed and are the same each time;
    or a generator of batches, which is read to its end first. Arrays are not copied: leave them as
    they are."""

    def __init__(self, path: Path, *, set: Settings = None,
                 arrays: Optional[Mapping[str, Any]] = None, data: Any = None,
                 test_data: Any = None) -> None:
        given = settings_list(set)
        self.path = os.fspath(path)
        self._given: List[Given] = []  # what the library reads from
        self.raised: List[BaseException] = []  # by what brings records
        self._handle = Handle(create("lockstep_solver_load", encode(path), strings(given),
                                     len(given)), "lockstep_solver_free")
        self._use_arrays(named(arrays, data, test_data))

    def _use_arrays(self, items: List[Tuple[str, Any]]) -> None:
        self._given = [Given(name, values, self.raised.append) for name, values in items]
        structs = (c.lockstep_array * max(1, len(items)))(*[g.struct for g in self._given])
        status_of("lockstep_solver_use_arrays", self.pointer, structs, len(items))

    @property
    def pointer(self) -> ctypes.c_void_p:
        """For calls of the library."""
        return self._handle.get("solver")

    def text(self) -> str:
        """The definition that snapshots carry: the solver with its train net inside of it."""
        error = library.lockstep_error_new()
        try:
            text = library.lockstep_solver_text(self.pointer, error)
            if text is None:
                raise make_error(library.lockstep_error_status(error),
                                 decode(library.lockstep_error_text(error)))
            return decode(text)
        finally:
            library.lockstep_error_free(error)

    def use_dummy_data(self, inputs: Iterable[str] = (), *, all: bool = False,
                       tell: Optional[Callable[[str], Any]] = None) -> None:
        """Random data in place of those that are not there (or of `all`). `inputs` are shapes with
        the batch, as "data=10,3,224,224". Before a trainer is made."""
        told: List[str] = []
        options = c.lockstep_dummy_options()
        library.lockstep_dummy_options_init(ctypes.byref(options))
        items = list(inputs)
        kept = strings(items)
        options.inputs = ctypes.cast(kept, type(options.inputs))
        options.input_count, options.all = len(items), int(all)
        callback = callback_type(options, "tell")(lambda _user, line: told.append(decode(line)))
        options.tell = callback
        status_of("lockstep_solver_use_dummy_data", self.pointer, ctypes.byref(options))
        for line in told if tell is not None else ():
            tell(line)  # type: ignore[misc]


def _only(kind: Type[Event], listener: Callable[[Any], Any]) -> Listener:
    """A listener of events of one class alone; a Display is an Update, too."""
    def choose(event: Event) -> None:
        if type(event) is kind:
            listener(event)
    return choose


@dataclass(frozen=True)
class Result:
    """What a training came to."""

    iteration: int
    loss: float  #: of the last update's data
    snapshot: Optional[str]  #: the last one that was written
    tests: Dict[int, Dict[str, Output]]  #: outputs of the last test, by test net
    #: one for each `display`; pandas.DataFrame(map(vars, ...))
    history: Tuple[Update, ...] = field(default=(), repr=False)

    def __getitem__(self, name: str) -> Output:
        """An output of the last test: result["accuracy"]."""
        for outputs in self.tests.values():
            if name in outputs:
                return outputs[name]
        raise KeyError(name)


class Trainer:
    """A training that is driven step by step.

        trainer = lockstep.Trainer("solver.prototxt", workers=8)
        trainer.step(100)
        print(trainer.loss, trainer.parameters["conv1.weight"].mean())

    solver: a solver prototxt, or a Solver; set, arrays, data and test_data are for the former, as
    Solver takes them. workers: 0 for one a core; the trained bits do not depend on it. weights:
    files to start from; partial_weights: parameters may stay random although the files have tensors
    of their shape that nothing takes. resume: a snapshot, or "auto". on_event: called with every event
    (lockstep.events), on_update, on_display and on_test with these alone; a callback that raises
    stops the training, and what it raised is raised again.

    What is written beside snapshots, as `lockstep train` writes it: log_json, a file of events;
    statistics of parameters with each display; report, a folder with a page; tensorboard, a folder
    of event files; metrics, a file for Prometheus; trace, a file for Perfetto. If one of them can no
    longer be written, there is a RuntimeWarning, and the training goes on.

    blobs: what the train net computes can be looked at (blobs, blob_gradients); data_gradients:
    that includes gradients of the data. job: the Job that this process is a rank of; True: that of
    mpirun, where it has started the process; None: the process trains alone. The other options are
    those of struct lockstep_train_options in lockstep/train.h.

    One thread at a time uses a trainer: in another one step(), run(), evaluate() and close() are a
    RuntimeError meanwhile. Other threads of the program go on."""

    def __init__(self, solver: Union[Path, Solver], *, set: Settings = None,
                 arrays: Optional[Mapping[str, Any]] = None, data: Any = None,
                 test_data: Any = None, workers: int = 0, weights: Optional[Path] = None,
                 map: Optional[Path] = None, partial_weights: bool = False,
                 resume: Optional[Path] = None, snapshot_prefix: Optional[Path] = None,
                 memory: int = 0,
                 isa: Optional[str] = None, device: Optional[str] = None, audit: float = 0.0,
                 overwrite: bool = False, snapshot_required: bool = False,
                 allow_other_numerics: bool = False, statistics: bool = False,
                 log_json: Optional[Path] = None, report: Optional[Path] = None,
                 tensorboard: Optional[Path] = None, metrics: Optional[Path] = None,
                 trace: Optional[Path] = None, trace_limit: int = 0, blobs: bool = False,
                 data_gradients: bool = False, job: Union[None, bool, Job] = True,
                 on_update: Optional[Callable[[Update], Any]] = None,
                 on_display: Optional[Callable[[Display], Any]] = None,
                 on_test: Optional[Callable[[Tested], Any]] = None,
                 on_event: Union[None, Listener, Iterable[Listener]] = None) -> None:
        if not isinstance(solver, Solver):
            solver = Solver(solver, set=set, arrays=arrays, data=data, test_data=test_data)
        elif any(given is not None for given in (set, arrays, data, test_data)):
            raise TypeError("set, arrays and data are for a solver that is read here: give them to "
                            "Solver()")
        self._handle: Optional[Handle] = None
        if trace_limit and trace is None:
            raise ValueError("trace_limit is for a trace: name its file")
        self.solver = solver
        self._calls = Calls()
        self._job = current() if job is True else job or None
        if self._job is None or self._job.rank == 0:
            self._observe(log_json, report, tensorboard, metrics)
        self._tests: Dict[int, Dict[str, Output]] = {}
        self._history: List[Update] = []
        self._snapshot: Optional[str] = None
        self._computed = -1  # the iteration whose gradients compute_gradients() has found
        self.add_listener(self._note)
        if on_update is not None:
            self.add_listener(_only(Update, on_update))
        if on_display is not None:
            self.add_listener(_only(Display, on_display))
        if on_test is not None:
            self.add_listener(_only(Tested, on_test))
        for listener in (on_event,) if callable(on_event) else on_event or ():
            self.add_listener(listener)
        options = c.lockstep_train_options()
        library.lockstep_train_options_init(ctypes.byref(options))
        assign(options, workers=workers, memory=memory, audit=audit, trace_limit=trace_limit)
        options.isa, options.device = encode(isa), encode(device)
        options.weights, options.map = encode(weights), encode(map)
        options.partial_weights = int(partial_weights)
        options.resume, options.snapshot_prefix = encode(resume), encode(snapshot_prefix)
        options.overwrite, options.snapshot_required = int(overwrite), int(snapshot_required)
        options.allow_other_numerics = int(allow_other_numerics)
        options.statistics = int(statistics or report is not None or tensorboard is not None)
        options.trace = encode(trace)
        options.blobs, options.data_gradients = int(blobs), int(data_gradients)
        if self._job is not None:
            options.job = self._job.pointer
            self._job.add_user(self)
        options.callbacks = self._calls.struct()
        with self._guard():
            self._handle = Handle(create("lockstep_trainer_create", solver.pointer,
                                         ctypes.byref(options)), "lockstep_trainer_free")
        self._parameters = Arrays("lockstep_trainer", self._get, "lockstep_trainer_read_parameter",
                                  "lockstep_trainer_write_parameter")
        self._gradients = Arrays("lockstep_trainer", self._get, "lockstep_trainer_read_gradient")
        self._blobs = Blobs(self._get, gradient=False)
        self._blob_gradients = Blobs(self._get, gradient=True)

    def _get(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise ValueError("this trainer was not made")
        return self._handle.get("trainer")

    def _observe(self, log_json: Optional[Path], report: Optional[Path],
                 tensorboard: Optional[Path], metrics: Optional[Path]) -> None:
        add = self._calls.observers.add
        if log_json is not None:
            add(Log(log_json))
        if report is not None:
            add(Report(report, self.solver.path, self.solver.text().encode()))
        for kind, path in (("tensorboard", tensorboard), ("metrics", metrics)):
            if path is not None:
                add(Writer(kind, path))

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """Around a call that may call back: what Python raised meanwhile comes before what the
        library says of it."""
        self.solver.raised.clear()
        with self._calls:
            try:
                yield
            except LockstepError as failure:
                if self.solver.raised:
                    raise self.solver.raised[0] from failure
                raise

    def add_listener(self, listener: Listener) -> None:
        """Another function that is called with every event."""
        self._calls.listeners.append(listener)

    def _note(self, event: Event) -> None:
        if isinstance(event, Display):
            self._history.append(event)
        elif isinstance(event, Tested):
            self._tests[event.test_net] = event.outputs
        elif isinstance(event, Written):
            self._snapshot = event.path

    # ---- Training ----

    def run(self, iterations: Optional[int] = None) -> Result:
        """The whole training: tests, displays and snapshots where the solver wants them, until
        max_iter, or until `iterations` updates in total. Ctrl-C and stop() write a snapshot: the
        one raises KeyboardInterrupt, the other returns."""
        if iterations is not None and not 0 <= iterations < 2**63:
            raise ValueError(f"{iterations} updates are not possible")
        with self._guard():
            status_of("lockstep_trainer_run", self._get(),
                      -1 if iterations is None else iterations, allowed=(c.LOCKSTEP_STOPPED,))
        return self.result()

    def step(self, count: int = 1) -> float:
        """`count` updates and nothing else: no tests, no events. Returns the loss of the last
        one. Ctrl-C between two of them writes a snapshot and raises KeyboardInterrupt."""
        if count < 0:
            raise ValueError("a negative number of updates")
        interrupted = True
        try:
            with self._guard():
                for _ in range(count):
                    status_of("lockstep_trainer_step", self._get(), 1)
                    if self._calls.stopping:
                        break
            interrupted = False
        finally:
            if interrupted and self._calls.last_interrupted:
                self.snapshot()
        return self.loss

    def stop(self) -> None:
        """Ends run() after the update at hand, with a snapshot. For callbacks and other threads."""
        self._calls.ask(c.LOCKSTEP_SNAPSHOT_AND_STOP)

    def compute_gradients(self) -> float:
        """The forward and the backward pass of the update that comes next, without the update: the
        loss. gradients, blobs and blob_gradients are of it then; the update takes the same data."""
        with self._guard():
            status_of("lockstep_trainer_gradients", self._get())
        self._computed = self.iteration
        return self.loss

    def evaluate(self, index: int = 0) -> Dict[str, Output]:
        """Runs test net `index` over its data: its outputs by name, evaluate()["accuracy"]."""
        outputs = ctypes.POINTER(c.lockstep_output)()
        count = ctypes.c_size_t()
        with self._guard():
            status_of("lockstep_trainer_evaluate", self._get(), index, ctypes.byref(outputs),
                      ctypes.byref(count))
        return outputs_of(outputs, count.value)

    def snapshot(self, path: Optional[Path] = None) -> Optional[str]:
        """Writes a snapshot, to `path` or where the solver says; where it is."""
        with self._guard():
            status_of("lockstep_trainer_snapshot", self._get(), encode(path))
        if path is not None:
            self._snapshot = os.fspath(path)
        return self._snapshot

    # ---- What it has ----

    @property
    def iteration(self) -> int:
        """Updates done so far."""
        return int(library.lockstep_trainer_iteration(self._get()))

    @property
    def loss(self) -> float:
        """Of the last update's data."""
        return float(library.lockstep_trainer_loss(self._get()))

    @property
    def has_gradients(self) -> bool:
        """Whether gradients of this iteration's batch were computed, by compute_gradients()."""
        return self._computed == self.iteration

    @property
    def test_count(self) -> int:
        """Test nets."""
        return int(library.lockstep_trainer_test_count(self._get()))

    @property
    def parameters(self) -> Arrays:
        """Weights by name; assigning to one changes it."""
        return self._parameters

    @property
    def gradients(self) -> Arrays:
        """Of the last update's data loss, by the names of the parameters, before clipping and
        decay."""
        return self._gradients

    @property
    def blobs(self) -> Blobs:
        """What the train net has computed in the last update, by the names of its blobs: arrays for
        all of the update's samples, losses and accuracies. For a trainer with blobs=True."""
        return self._blobs

    @property
    def blob_gradients(self) -> Blobs:
        """The gradients of the last update's data loss with respect to blobs."""
        return self._blob_gradients

    def hash(self) -> int:
        """Of all weights as they are now: the same for the same bits."""
        value = ctypes.c_uint64()
        with self._guard():
            status_of("lockstep_trainer_hash", self._get(), ctypes.byref(value))
        return value.value

    def result(self) -> Result:
        """What it has come to so far."""
        return Result(self.iteration, self.loss, self._snapshot, dict(self._tests),
                      tuple(self._history))

    # ---- Its end ----

    def close(self) -> None:
        """Frees its memory and its threads, and ends what it writes. Also done when nothing refers
        to it any more."""
        with self._calls.alone("trainer"):
            handle, self._handle = self._handle, None
            if handle is not None:
                handle.close()
            self._calls.observers.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


def train(solver: Union[Path, Solver], *, iterations: Optional[int] = None,
          on_update: Optional[Callable[[Update], Any]] = None,
          on_display: Optional[Callable[[Display], Any]] = None,
          on_test: Optional[Callable[[Tested], Any]] = None,
          on_event: Union[None, Listener, Iterable[Listener]] = None,
          **options: Any) -> Result:
    """Trains as `lockstep train` does, to the same bits, and returns what came of it.

        result = lockstep.train("solver.prototxt", workers=8, set={"base_lr": 0.02})
        print(result["accuracy"], result.snapshot)

    iterations: as Trainer.run takes them; all other options are those of Trainer."""
    with Trainer(solver, on_update=on_update, on_display=on_display, on_test=on_test,
                 on_event=on_event, **options) as trainer:
        return trainer.run(iterations)
