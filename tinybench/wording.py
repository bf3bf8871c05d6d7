# Written by "autograder export" from modules/07_comparison/07_comparison.ipynb: edit the notebook, not this file.

"""A comparison in words and numbers of a fitting length."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinybench.result import scale_unit

if TYPE_CHECKING:
    from tinybench.comparison import Comparison


def words_for(metric: str, unit: str) -> tuple[str, str]:
    """Return what to call less and more of a metric."""
    if metric == "throughput":
        return "slower", "faster"
    return ("faster", "slower") if unit == "s" else ("lower", "higher")


def in_percent(comparison: Comparison) -> tuple[float, tuple[float, float], str]:
    """Return change, its interval and ``"%"``; the difference in a readable unit where there is no ratio."""
    if math.isnan(comparison.ratio):
        factor, unit = scale_unit(comparison.difference, comparison.unit)
        low, high = comparison.difference_ci
        return comparison.difference / factor, (low / factor, high / factor), unit
    low, high = comparison.ratio_ci
    return 100 * (comparison.ratio - 1), (100 * (low - 1), 100 * (high - 1)), "%"


def short_number(value: float, ends: tuple[float, float]) -> str:
    """Return a number with the digits that an interval of this width deserves: 41 for 38–44, 2.3 for 1.1–3.2."""
    width = ends[1] - ends[0]
    places = min(3, max(0, -math.floor(math.log10(width / 5)))) if 0 < width < 5 else 0
    return f"{round(value, places) + 0.0:.{places}f}".replace("-", "−")  # + 0.0 turns −0 into 0


def span(ends: tuple[float, float], unit: str) -> str:
    """Return ``38–44 %``, or ``−1.2 to 3.4 %`` where a sign is in the way."""
    low, high = (short_number(end, ends) for end in ends)
    return f"{low}{'–' if ends[0] >= 0 else ' to '}{high} {unit}".rstrip()


def in_words(verdict: str, metric: str, unit: str) -> str:
    """Return a verdict on less or more in the words of its metric."""
    return dict(zip(("faster", "slower"), words_for(metric, unit), strict=True)).get(verdict, verdict)


def comparison_facts(comparison: Comparison) -> dict[str, str]:
    """Return what a comparison found, by name, for a table."""
    factor, unit = scale_unit(comparison.difference, comparison.unit)
    difference, low, high = (value / factor for value in (comparison.difference, *comparison.difference_ci))
    level, (lowest, highest) = f"{100 * comparison.confidence:.3g} % CI", comparison.ratio_ci
    counts = f"{comparison.counts[0]} rounds" if comparison.paired else "{} and {}".format(*comparison.counts)
    return {
        "verdict": comparison.verdict,
        f"{comparison.name_a} / {comparison.name_b}": f"{comparison.ratio:.4g} ({level} {lowest:.4g} to {highest:.4g})",
        "difference": f"{difference:.3g} {unit} ({level} {low:.3g} to {high:.3g} {unit})",
        "p value": f"{comparison.p_value:.2g}",
        "effect size (Cohen's d)": f"{comparison.effect_size:.2f}",
        **{name.replace("_", " "): f"{value:.3g}" for name, value in comparison.checks.items()},
        "measurements": counts,
        "method": comparison.method,
    }


def finite(value: Any) -> Any:
    """Return a value as JSON can hold it: what is not finite becomes None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
