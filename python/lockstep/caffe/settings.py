"""What Caffe sets for a whole process.
SPDX-License-Identifier: BSD-2-Clause"""
from typing import Optional

TRAIN = 0
TEST = 1
seed: Optional[int] = None  # of solvers that are made from now on


def set_mode_cpu() -> None:
    """The processor computes: always."""


def set_mode_gpu() -> None:
    """Accepted, as solver_mode: GPU is: the processor computes."""


def set_device(number: int) -> None:
    """Accepted: there is one device."""
    if number < 0:
        raise ValueError(f"there is no device {number}")


def set_random_seed(number: int) -> None:
    """The random_seed of solvers that are made from now on."""
    global seed
    seed = int(number)
