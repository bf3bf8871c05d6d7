"""What a rule on a machine is, and what all of them may say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

ROUNDS = "compare in shuffled rounds (tinybench compare), which hit all models alike"


class Rule(NamedTuple):
    """Something to look at: which fact, which values are fine, how to show one, why it matters, what to type."""

    name: str
    fact: str
    fine: Callable[[Any], bool]
    show: Callable[[Any], str]
    why: str
    do: str


def listed(cores: Sequence[int]) -> str:
    """Return cores in order as `taskset` takes them: ``0-3,8``."""
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def share_text(share: float) -> str:
    """Return a share with two digits."""
    return f"{100 * share:.2g} %"
