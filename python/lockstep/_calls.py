"""A call of the library that runs Python while it goes on: callbacks, what they raise, and Ctrl-C.

The library calls back on the thread that called it. An exception of a callback cannot pass through
C: it is kept, the library is asked to stop (with a snapshot), and it is raised when the call
returns. Python's own handler of Ctrl-C would raise in whichever callback comes next, where ctypes
would only print it; so another one stands in for it meanwhile, which notes that it was pressed.
A program that ends while another of its threads trains (a daemon's: it waits for all others) stops
that first, with a snapshot: its callbacks could not run any more.
SPDX-License-Identifier: BSD-2-Clause"""
import atexit
import contextlib
import os
import signal
import threading
import weakref
from types import FrameType, TracebackType
from typing import Any, Callable, Iterator, List, Optional, Type

from . import _declarations as c
from ._library import callback_type
from ._observers import Observers
from .events import Event, make_event

Listener = Callable[[Event], Any]


class Calls:
    """The callbacks of one trainer or net."""

    def __init__(self) -> None:
        self.listeners: List[Listener] = []
        self.observers = Observers()  # what gets events as the library has them
        self._raised: Optional[BaseException] = None
        self._interrupted = False
        self._request = c.LOCKSTEP_GO_ON
        self.last_interrupted = False  # whether Ctrl-C ended the last call
        self._lock = threading.RLock()  # of the thread that calls
        self._depth = 0  # calls under way: a callback may call, too
        self.ended = threading.Event()  # no call is under way
        self.ended.set()
        # The library keeps their addresses: they live as long as this object.
        self._event = callback_type(c.lockstep_callbacks, "event")(self._on_event)
        self._poll = callback_type(c.lockstep_callbacks, "poll")(self._on_poll)

    def struct(self) -> Any:
        """For the options of a trainer."""
        return c.lockstep_callbacks(None, self._event, self._poll)

    # ---- Called by the library ----

    def _on_event(self, _user: Any, event: Any) -> None:
        if self._raised is None:
            try:
                self.observers.event(event.contents)
                made = make_event(event.contents)
                if made is not None:
                    for listener in self.listeners:
                        listener(made)
            except BaseException as raised:  # pylint: disable=broad-except
                self._raised = raised

    def _on_poll(self, _user: Any) -> int:
        if self._raised is not None or self._interrupted:
            return c.LOCKSTEP_SNAPSHOT_AND_STOP
        request, self._request = self._request, c.LOCKSTEP_GO_ON
        return int(request)

    # ---- For the caller ----

    def ask(self, request: int) -> None:
        """What the next poll answers. From any thread, and from callbacks."""
        self._request = max(self._request, request)

    @property
    def stopping(self) -> bool:
        """Whether the call should end: Ctrl-C, an exception of a callback, or a request."""
        return (self._raised is not None or self._interrupted
                or self._request == c.LOCKSTEP_SNAPSHOT_AND_STOP)

    def _note_interrupt(self, _number: int, _frame: Optional[FrameType]) -> None:
        self._interrupted = True

    @contextlib.contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Around what is not possible while a call is under way, in any thread."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(f"this {what} is at work in another thread")
        try:
            if self._depth > 0:
                raise RuntimeError(f"this {what} is at work: its callbacks cannot do that")
            yield
        finally:
            self._lock.release()

    def __enter__(self) -> "Calls":
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("another thread is at work with this: one thread at a time")
        self._depth += 1
        if self._depth > 1:
            return self
        self._raised, self._interrupted = None, False
        self.ended.clear()
        _under_way.add(self)
        self._handler: Any = None
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            # A program that handles Ctrl-C itself goes on doing so.
            if handler is signal.default_int_handler:
                self._handler = signal.signal(signal.SIGINT, self._note_interrupt)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        """Raises what a callback raised, or KeyboardInterrupt, in place of the library's own
        failure, which followed from it. Out of a call within a callback this gets into the
        callback, and from there to the outer call."""
        self._depth -= 1
        raised, self._raised = self._raised, None
        interrupted = self._interrupted
        if self._depth == 0:
            self._end(interrupted)
        self._lock.release()
        if raised is not None:
            raise raised
        if interrupted:
            raise KeyboardInterrupt

    def _end(self, interrupted: bool) -> None:
        _under_way.discard(self)
        self.ended.set()
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        self._interrupted = False
        self.last_interrupted = interrupted
        self._request = c.LOCKSTEP_GO_ON


_under_way: "weakref.WeakSet[Calls]" = weakref.WeakSet()
_process = os.getpid()


def _stop_all() -> None:
    for calls in list(_under_way) if os.getpid() == _process else ():
        calls.ask(c.LOCKSTEP_SNAPSHOT_AND_STOP)
        calls.ended.wait()


atexit.register(_stop_all)
