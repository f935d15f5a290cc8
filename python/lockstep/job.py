"""Jobs: several processes that a launcher of MPI has started, each a rank with its own workers.

    mpirun -np 4 python script.py

A Trainer of such a process joins the others by itself; all ranks run the same script, and call the
same functions of their trainers in the same order. Rank 0 alone gets events and writes files.
docs/jobs.md has more. SPDX-License-Identifier: BSD-2-Clause"""
import atexit
import contextlib
import ctypes
import sys
import weakref
from types import TracebackType
from typing import Any, List, Optional, Type

from . import _declarations as c
from ._library import create, encode, library, status_of
from .errors import LockstepError

__all__ = ["Job", "current", "launched"]


def launched() -> int:
    """How many processes the launcher has started, by its environment alone; 1: this one was
    started by itself."""
    return int(library.lockstep_job_launched(None))


class Job:
    """The ranks of a job: once in a process, in its main thread.

        with lockstep.Job(timeout=600) as job:
            lockstep.train("solver.prototxt", job=job)

    timeout: seconds after which a rank that is silent is lost; 0: never. dynamic_balance:
    micro-batches go to ranks as they get free. status_file: where rank 0 says how the job stands;
    None: "status.json" beside the snapshots. It ends with the `with` statement, or with the
    process; an exception that ends it ends all ranks."""

    def __init__(self, *, timeout: float = 300.0, dynamic_balance: bool = False,
                 status_file: Optional[Any] = None) -> None:
        global _current
        if _current is not None:
            raise RuntimeError("this process has joined its job already: lockstep.job.current()")
        options = c.lockstep_job_options()
        library.lockstep_job_options_init(ctypes.byref(options))
        options.timeout, options.dynamic_balance = timeout, int(dynamic_balance)
        options.status_file = encode(status_file)
        self._pointer: Optional[ctypes.c_void_p] = None
        self._open = False
        self._users: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._pointer = create("lockstep_job_open", ctypes.byref(options))
        self._open = True
        _current = self

    @property
    def pointer(self) -> Optional[ctypes.c_void_p]:
        """None: this process is alone."""
        if not self._open:
            raise ValueError("this job has ended")
        return self._pointer

    def add_user(self, trainer: Any) -> None:
        """What is closed before the job ends."""
        self._users.add(trainer)

    @property
    def rank(self) -> int:
        """This process's number."""
        return int(library.lockstep_job_rank(self.pointer))

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return int(library.lockstep_job_size(self.pointer))

    @property
    def workers(self) -> int:
        """How many workers this rank uses unless told otherwise."""
        return int(library.lockstep_job_workers(self.pointer))

    def close(self, status: int = 0) -> None:
        """Waits for the other ranks and ends the job; `status`: 0, or that of what this rank has
        failed with. Raises what another rank failed with."""
        if not self._open:
            return
        for trainer in list(self._users):
            trainer.close()
        pointer, self._pointer, self._open = self._pointer, None, False
        if status == 0:
            status_of("lockstep_job_close", pointer, 0)
        else:
            library.lockstep_job_close(pointer, status, None)

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close(status_after(value))


_current: Optional[Job] = None
_failures: List[BaseException] = []  # what has ended the program, as its hook has seen


def status_after(failure: Optional[BaseException]) -> int:
    """What a rank ends with."""
    if failure is None or (isinstance(failure, SystemExit) and failure.code in (None, 0)):
        return 0
    if isinstance(failure, KeyboardInterrupt):
        return int(c.LOCKSTEP_STOPPED)
    return failure.status if isinstance(failure, LockstepError) else int(c.LOCKSTEP_INTERNAL)


def current() -> Optional[Job]:
    """The job of this process, which it joins now where it has not yet; None: it was started by
    itself."""
    if _current is None and launched() > 1:
        job = Job()
        _watch_the_end()
        atexit.register(_end, job)
    return _current


def _watch_the_end() -> None:
    hook = sys.excepthook

    def note(kind: Type[BaseException], value: BaseException,
             trace: Optional[TracebackType]) -> None:
        _failures.append(value)
        hook(kind, value, trace)

    sys.excepthook = note


def _end(job: Job) -> None:
    """At the end of the process. What other ranks have failed with they say themselves."""
    with contextlib.suppress(LockstepError):
        job.close(status_after(_failures[0] if _failures else None))
