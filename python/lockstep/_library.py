"""The shared library: finding it, calling it, and what it says when a call fails.

A call of ctypes gives the interpreter's lock back while it runs, so that other threads of the
program go on; the library computes with threads of its own.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
import os
from typing import Any, Iterable, List, Optional

from . import _declarations as c
from .errors import Problem, make_error

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_lib")


def _open() -> ctypes.CDLL:
    """$LOCKSTEP_LIBRARY, else the library of the wheel, with those that it stands on, which are
    opened before it in the order of the file `order` so that the loader finds them."""
    path = os.environ.get("LOCKSTEP_LIBRARY")
    if path:
        return ctypes.CDLL(path)
    order = os.path.join(FOLDER, "order")
    if not os.path.exists(order):
        raise ImportError("this copy of lockstep has no library in it: build the wheel with "
                          "'./run wheel', or name a liblockstep.so in $LOCKSTEP_LIBRARY")
    with open(order, encoding="utf-8") as file:
        names = file.read().split()
    library = None
    for name in names:
        try:
            library = ctypes.CDLL(os.path.join(FOLDER, name))
        except OSError as failure:
            raise ImportError(f"{name} cannot be loaded: {failure}") from failure
    assert library is not None
    return library


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, arguments) in c.FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


library = _declare(_open())


def encode(text: Any) -> Optional[bytes]:
    """A string or path as the library takes it; None stays None."""
    if text is None:
        return None
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError("a string with a NUL byte in it")
    return data


def decode(data: Optional[bytes]) -> str:
    """A string of the library's; "" for NULL."""
    return os.fsdecode(data) if data is not None else ""


def callback_type(struct: Any, member: str) -> Any:
    """The type of a struct's member that is a function."""
    return dict(struct._fields_)[member]


def assign(struct: Any, **members: Any) -> None:
    """Sets members; an integer that has no room in one, which ctypes would cut, is a ValueError."""
    for name, value in members.items():
        setattr(struct, name, value)
        if getattr(struct, name) != value:
            raise ValueError(f"{name}={value} is not possible")


def strings(items: Iterable[Any]) -> "ctypes.Array[ctypes.c_char_p]":
    """A list of strings as C has it."""
    made = [encode(item) for item in items]
    return (ctypes.c_char_p * max(1, len(made)))(*made)


def _problems(error: int) -> List[Problem]:
    found = []
    for i in range(library.lockstep_error_count(error)):
        problem = c.lockstep_problem()
        library.lockstep_error_problem(error, i, ctypes.byref(problem))
        found.append(Problem(problem.status, decode(problem.place), decode(problem.message),
                             decode(problem.hint)))
    return found


def status_of(name: str, *arguments: Any, allowed: Iterable[int] = ()) -> int:
    """Calls a function that can fail; its last argument, the error, is added. Raises what it
    fails with, but returns a status of `allowed`."""
    error = library.lockstep_error_new()
    if not error:
        raise MemoryError("no memory for an error")
    try:
        status = getattr(library, name)(*arguments, error)
        if status == 0 or status in allowed:
            return int(status)
        raise make_error(status, decode(library.lockstep_error_text(error)), _problems(error))
    finally:
        library.lockstep_error_free(error)


def create(name: str, *arguments: Any) -> ctypes.c_void_p:
    """Calls a function that makes an object, and hands it over in its last argument but one."""
    made = ctypes.c_void_p()
    status_of(name, *arguments, ctypes.byref(made))
    return made


class Handle:
    """An object of the library's, which is freed with this one. It belongs to the process that made
    it: a child has none of its threads, so that it can neither use nor free it."""

    def __init__(self, made: ctypes.c_void_p, free: str) -> None:
        self._made: Optional[ctypes.c_void_p] = made
        self._free = getattr(library, free)
        self._process = os.getpid()

    def get(self, what: str) -> ctypes.c_void_p:
        """The pointer; a ValueError once it was closed."""
        if self._made is None:
            raise ValueError(f"this {what} is closed")
        if self._process != os.getpid():
            raise RuntimeError(f"this {what} belongs to the process that this one was forked from: "
                               "make another one here")
        return self._made

    def close(self) -> None:
        """Frees it; nothing to do once that was done."""
        made, self._made = self._made, None
        if made is not None and self._process == os.getpid():
            self._free(made)

    def __del__(self) -> None:
        self.close()
