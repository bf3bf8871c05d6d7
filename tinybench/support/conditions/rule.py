"""A rule that checks one fact about a machine, and the texts that several rules share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

ROUNDS = "compare in shuffled rounds (tinybench compare), which hit all models alike"


class Rule(NamedTuple):
    """A rule for one fact: which values are fine, how to show a value, why it matters, and how to fix a problem."""

    name: str
    fact: str
    fine: Callable[[Any], bool]
    show: Callable[[Any], str]
    why: str
    do: str


def listed(cores: Sequence[int]) -> str:
    """Return sorted core numbers in the format of `taskset`: ``0-3,8``."""
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def share_text(share: float) -> str:
    """Return a fraction as a percentage with two significant digits."""
    return f"{100 * share:.2g} %"
