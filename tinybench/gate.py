# Written by "autograder export" from modules/07_comparison/07_comparison.ipynb: edit the notebook, not this file.

"""What a gate against regressions answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinybench.comparison import Comparison

HIGHER_IS_BETTER = ("accuracy", "balanced_accuracy", "recall", "throughput")


@dataclass(frozen=True)
class Gate:
    """The answer of `regression_gate`; ``str`` gives it as a sentence.

    Attributes
    ----------
    verdict
        ``"passes"``, ``"fails"`` or ``"cannot tell: needs 120 runs"``.
    slowdown, interval, max_slowdown
        Relative slowdown of the candidate, its interval, and the limit.
    needs
        Runs in all that would probably decide; None once decided.
    comparison
        The comparison of the candidate with the baseline.
    """

    verdict: str
    slowdown: float
    interval: tuple[float, float]
    max_slowdown: float
    needs: int | None
    comparison: Comparison

    def __str__(self) -> str:
        """Return the verdict with limit and comparison."""
        return f"{self.verdict} (limit {100 * self.max_slowdown:.3g} % slowdown): {self.comparison}"
