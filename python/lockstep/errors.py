"""What a call can fail with. Every failure of the library is a LockstepError, of a class by its
status, with the place in the user's file and a hint where there is one.
SPDX-License-Identifier: BSD-2-Clause"""
from dataclasses import dataclass
from typing import Dict, Optional, Sequence, Tuple, Type

__all__ = ["Problem", "LockstepError", "InternalError", "UsageError", "DefinitionError",
           "DataError", "WeightsError", "DivergedError", "ResourceError", "DifferentError",
           "LostError", "StoppedError"]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    status: int
    place: str  #: "net.prototxt:12:5", "layer 'conv1'", a file; "" where there is none
    message: str
    hint: str  #: what to do about it; ""

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text}. hint: {self.hint}" if self.hint else text


class LockstepError(Exception):
    """A call that failed. `problems` has all that was found in one go; `place`, `message` and
    `hint` are those of the first of them."""

    status: int = 1

    def __init__(self, text: str, problems: Sequence[Problem] = (),
                 status: Optional[int] = None) -> None:
        super().__init__(text)
        self.problems: Tuple[Problem, ...] = tuple(problems)
        if status is not None:
            self.status = status
        first = self.problems[0] if self.problems else Problem(self.status, "", text, "")
        self.place: str = first.place
        self.message: str = first.message
        self.hint: str = first.hint


class InternalError(LockstepError):
    """A mistake of Lockstep's own."""

    status = 1


class UsageError(LockstepError, ValueError):
    """Arguments that cannot be used."""

    status = 2


class DefinitionError(LockstepError, ValueError):
    """The net or the solver."""

    status = 3


class DataError(LockstepError):
    """A data source or a record of it."""

    status = 4


class WeightsError(LockstepError):
    """Weights or a snapshot."""

    status = 5


class DivergedError(LockstepError, ArithmeticError):
    """A loss or gradient that is not finite."""

    status = 6


class ResourceError(LockstepError, MemoryError):
    """Out of memory or disk."""

    status = 7


class DifferentError(LockstepError):
    """Bytes that should be the same are not."""

    status = 8


class LostError(LockstepError):
    """Another rank of the job failed."""

    status = 9


class StoppedError(LockstepError):
    """Stopped by request, with a snapshot to resume from."""

    status = 75


CLASSES: Dict[int, Type[LockstepError]] = {
    c.status: c for c in (InternalError, UsageError, DefinitionError, DataError, WeightsError,
                          DivergedError, ResourceError, DifferentError, LostError, StoppedError)}


def make_error(status: int, text: str, problems: Sequence[Problem] = ()) -> LockstepError:
    """The exception of a status."""
    return CLASSES.get(status, LockstepError)(text or f"status {status}", problems, status)
