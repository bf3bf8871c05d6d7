# Written by "autograder export" from modules/15_bottleneck/15_bottleneck.ipynb: edit the notebook, not this file.

"""A sampler of call stacks, and the fraction of time that each function takes, alone and with those it calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


def stack_of(frame: Any) -> tuple[str, ...]:
    """Return the names of the functions on a frame's call stack, the outermost first, the frame's own function last.

    A name has the form ``function (file.py)``. The function is ``frame.f_code.co_qualname``; the file is
    ``frame.f_code.co_filename`` without its folder.
    """
    names = []
    while frame is not None:
        names.append(f"{frame.f_code.co_qualname} ({os.path.basename(frame.f_code.co_filename)})")
        frame = frame.f_back
    return tuple(reversed(names))


class Sample(NamedTuple):
    """A call stack that was active for `seconds`, beginning at the time `start`, by the sampler's clock."""

    start: float
    stack: tuple[str, ...]
    seconds: float


def check_time(samples: Sequence[Sample]) -> None:
    """Raise ValueError if there are samples, but their times add up to 0."""
    if samples and not sum(sample.seconds for sample in samples) > 0:
        raise ValueError("the times of the samples add up to 0, so there are no shares; profile for longer")


class Sampler:
    """A sampler that records the call stack at each call of `take`."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.samples: list[Sample] = []
        self.last = clock()

    def take(self, frame: Any) -> None:
        """Add a sample: the stack of `frame`, with the time since the last sample or since the sampler was made."""
        now = self.clock()
        self.samples.append(Sample(self.last, stack_of(frame), now - self.last))
        self.last = now


def self_shares(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the fraction of the time in which each function is the last in the stack. The largest comes first.

    Without samples the result is empty. Raise ValueError if the times of the samples add up to 0.
    """
    check_time(samples)
    times: dict[str, float] = {}
    for sample in samples:
        times[sample.stack[-1]] = times.get(sample.stack[-1], 0.0) + sample.seconds
    total = sum(times.values())
    return {name: spent / total for name, spent in sorted(times.items(), key=lambda item: -item[1])}


def total_shares(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the fraction of the time that each function takes, including the functions that it calls.

    A recursive function counts only once in a sample.

    Without samples the result is empty. Raise ValueError if the times of the samples add up to 0.
    """
    check_time(samples)
    times: dict[str, float] = {}
    for sample in samples:
        for name in set(sample.stack):
            times[name] = times.get(name, 0.0) + sample.seconds
    total = sum(sample.seconds for sample in samples)
    return {name: spent / total for name, spent in sorted(times.items(), key=lambda item: -item[1])}
