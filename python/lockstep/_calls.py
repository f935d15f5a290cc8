"""A call of the library that runs Python while it goes on: callbacks, what they raise, and Ctrl-C.

The library calls back on the thread that called it. An exception of a callback cannot pass through
C: it is kept, the library is asked to stop (with a snapshot), and it is raised when the call
returns. Python's own handler of Ctrl-C would raise in whichever callback comes next, where ctypes
would only print it; so another one stands in for it meanwhile, which notes that it was pressed.
SPDX-License-Identifier: BSD-2-Clause"""
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Callable, List, Optional, Type

from . import _declarations as c
from .events import Event, make_event

Listener = Callable[[Event], Any]


class Calls:
    """The callbacks of one trainer or net."""

    def __init__(self) -> None:
        self.listeners: List[Listener] = []
        self._raised: Optional[BaseException] = None
        self._interrupted = False
        self._request = c.LOCKSTEP_GO_ON
        self.last_interrupted = False  # whether Ctrl-C ended the last call
        # The library keeps their addresses: they live as long as this object.
        kinds = dict(c.lockstep_callbacks._fields_)
        self._event = kinds["event"](self._on_event)
        self._poll = kinds["poll"](self._on_poll)

    def struct(self) -> Any:
        """For the options of a trainer."""
        return c.lockstep_callbacks(None, self._event, self._poll)

    # ---- Called by the library ----

    def _on_event(self, _user: Any, event: Any) -> None:
        if self.listeners and self._raised is None:
            try:
                made = make_event(event.contents)
                for listener in self.listeners if made is not None else ():
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

    def __enter__(self) -> "Calls":
        self._raised, self._interrupted = None, False
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
        failure, which followed from it."""
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        raised, self._raised = self._raised, None
        interrupted, self._interrupted = self._interrupted, False
        self.last_interrupted = interrupted
        self._request = c.LOCKSTEP_GO_ON
        if raised is not None:
            raise raised
        if interrupted:
            raise KeyboardInterrupt
