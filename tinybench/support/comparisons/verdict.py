"""The result of a comparison and the result of the regression gate, each as data and as a sentence."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from tinybench.support.basics.numbers import finite, number_of, p_text, with_digits
from tinybench.support.basics.result_text import is_interval, scale_unit
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import facts
from tinybench.support.comparisons.optional_toolbox import NOT_BUILT, from_toolbox
from tinybench.support.comparisons.ratio_words import no_ends, short_number, span, times_text, words_for


@dataclass(frozen=True)
class Comparison:
    """The comparison of two results. ``str`` returns it as a sentence.

    Attributes
    ----------
    name_a, name_b
        The names of the models.
    counts, paired, method
        The numbers of measurements of a and of b, whether a and b are compared round by round, and the name of the
        method that gives the interval and the p-value.
    ratio, ratio_ci, difference, difference_ci
        The ratio a / b (NaN if not all values are positive) and the difference a − b in `unit`, with their intervals.
    p_value, corrected_for
        The two-sided p-value, and the number of comparisons for which it is corrected.
    effect_size
        Cohen's d, for paired samples if `paired`. NaN if the optional toolbox is not built.
    verdict
        The verdict about a, relative to b: ``"faster"`` or ``"slower"`` (``"lower"`` or ``"higher"`` if not about
        time), ``"equivalent"`` or ``"undecided: needs about n more rounds"``.
    confidence, margin, metric, unit, measured
        The confidence of the intervals; the largest relative change that does not matter; the metric and unit of the
        results; and whether both results were measured, not estimated.
    checks
        Additional statistics: p-values of other tests and A12 from the optional toolbox, and the autocorrelation of the
        rounds if there is any.
    caution
        Warnings, such as a clock that is too coarse, or "".
    decided : bool
        Whether the verdict is anything but ``"undecided"``. A comparison itself is neither true nor false.
    """

    name_a: str
    name_b: str
    counts: tuple[int, int]
    paired: bool
    method: str
    ratio: float
    ratio_ci: tuple[float, float]
    difference: float
    difference_ci: tuple[float, float]
    p_value: float
    effect_size: float
    verdict: str
    confidence: float = 0.95
    margin: float = 0.0
    metric: str = "measurement"
    unit: str = ""
    corrected_for: int = 1
    checks: dict[str, float] = field(default_factory=dict)
    measured: bool = True
    caution: str = ""

    __repr__ = short_repr

    @property
    def decided(self) -> bool:
        """Whether the verdict is anything but ``"undecided"``."""
        return not self.verdict.startswith("undecided")

    def __bool__(self) -> bool:
        """Raise TypeError because "faster", "slower" and "undecided" are neither true nor false."""
        raise TypeError(
            f"a comparison is neither true nor false; this one is {self.verdict!r}: use .verdict or .decided"
        )

    def __str__(self) -> str:
        """Return a sentence such as ``int8 takes 41 % less time than fp32 (95 % CI 38–44 %, p < 0.001, n = 30)``."""
        return sentence(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the sentence as data for ``json.dumps``. Numbers that are not finite become None."""
        return as_fields(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the comparison as an accessible HTML table and as a sentence."""
        return {"text/plain": str(self), "text/html": facts(comparison_facts(self), str(self)).html()}


@dataclass(frozen=True)
class Gate:
    """The answer of `regression_gate`. ``str`` returns it as a sentence.

    Attributes
    ----------
    verdict
        ``"passes"``, ``"fails"``, or ``"cannot tell: …"`` with the reason or the remedy, such as ``"needs 120 runs"``.
    slowdown, interval, max_slowdown
        The relative slowdown of the candidate, its interval, and the limit.
    needs
        The total number of runs (or sessions) that would probably decide. None if the gate is decided, or if more runs
        would not help.
    comparison
        The comparison of the candidate with the baseline.
    differences
        The conditions that differ, as ``"Python: 3.11.2 → 3.12.1"``.
    passed : bool
        Whether the verdict is ``"passes"``; False if it is ``"cannot tell"``. ``if gate:`` tests the same.
    """

    verdict: str
    slowdown: float
    interval: tuple[float, float]
    max_slowdown: float
    needs: int | None
    comparison: Comparison
    differences: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def passed(self) -> bool:
        """Whether the verdict is ``"passes"``, neither ``"fails"`` nor ``"cannot tell"``."""
        return self.verdict == "passes"

    def __bool__(self) -> bool:
        """Return `passed`, so that ``assert regression_gate(…)`` raises unless the gate passes."""
        return self.passed

    def __str__(self) -> str:
        """Return the verdict with the limit, the comparison, and the conditions that differ."""
        told = f"{self.verdict} (limit {100 * self.max_slowdown:.3g} % slowdown): {self.comparison}"
        return f"{told}; also different: {'; '.join(self.differences)}" if self.differences else told

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the sentence as data for ``json.dumps``. Numbers that are not finite become None."""
        return {**as_fields(self), "passed": self.passed}


def in_percent(comparison: Comparison) -> tuple[float, tuple[float, float], str]:
    """Return the relative change, its interval and ``"%"``. If the ratio is NaN, use the difference and its unit."""
    if math.isnan(comparison.ratio):
        factor, unit = scale_unit(comparison.difference, comparison.unit)
        low, high = comparison.difference_ci
        return comparison.difference / factor, (low / factor, high / factor), unit
    low, high = comparison.ratio_ci
    return 100 * (comparison.ratio - 1), (100 * (low - 1), 100 * (high - 1)), "%"


def sentence(comparison: Comparison) -> str:
    """Return a sentence such as ``int8 takes 41 % less time than fp32 (95 % CI 38–44 %, p < 0.001, n = 30)``.

    If the ratio is 2 or more, the sentence is ``a takes 3.4 times as long as b``. If the ratio is a tenth or less, the
    sentence is ``a is 12 times as fast as b``. Examples of other verdicts are ``a and b are equivalent within ± 2 %
    (change 0.3 %, 95 % CI −0.5 to 1.1 %, p = 0.4, n = 30)`` and ``a against b is undecided: needs about 80 more rounds
    (change −50 %, no finite interval, p = 0.25, n = 3)``.
    """
    change, ends, unit = in_percent(comparison)
    (p, n), a, b, verdict = p_and_n(comparison), comparison.name_a, comparison.name_b, comparison.verdict
    level = f"{100 * comparison.confidence:.3g} % CI"
    if told := in_times(comparison, level, f"{p}, {n}"):
        return told
    decided = verdict != "equivalent" and not verdict.startswith("undecided")
    less = change < 0
    if decided and less:  # "41 % less" needs a positive number
        change, ends = -change, (-ends[1], -ends[0])
    amount = f"{short_number(change, ends)} {unit}".rstrip()
    interval = f"{level} {span(ends, unit)}" if is_interval(*ends) else no_ends(ends)
    if decided:
        return f"{a} {_more_or_less(comparison, amount, less)} {b} ({interval}, {p}, {n})"
    details = f"(change {amount}, {interval}, {p}, {n})"
    if verdict == "equivalent":
        return f"{a} and {b} are equivalent within ± {100 * comparison.margin:.3g} % {details}"
    return f"{a} against {b} is {verdict} {details}"


def _more_or_less(comparison: Comparison, amount: str, less: bool) -> str:
    """Return text such as ``takes 41 % less time than``, which is clear, while "41 % faster" would be ambiguous."""
    word = "less" if less else "more"
    if comparison.metric == "throughput":
        return f"does {amount} {word} per second than"
    if comparison.unit == "s":
        return f"takes {amount} {word} time than"
    return f"is {amount} {comparison.verdict} than"


def in_times(comparison: Comparison, level: str, details: str) -> str | None:
    """Return the sentence with a factor ("13 times as long") if a percentage would be hard to read ("1204 % more").

    If a percentage is readable, return None.
    """
    (low, high), ratio, verdict = comparison.ratio_ci, comparison.ratio, comparison.verdict
    a, b, timed = comparison.name_a, comparison.name_b, comparison.unit == "s"
    if not (low > 0 and math.isfinite(high)):
        told = f"(ratio {times_text(ratio)}, no finite interval, {details})" if ratio > 10 else None
        return told and f"{a} against {b} is {verdict} {told}"
    less, more = words_for(comparison.metric, comparison.unit)
    does = "does {} times as much per second as" if comparison.metric == "throughput" else "is {} times as high as"
    if verdict == less and (ratio <= 0.1 or low < 0.01):
        value, ends = 1 / ratio, (1 / high, 1 / low)
        kind = f"{a} is {{}} times as fast as {b}" if timed else f"{b} {does} {a}"
    elif verdict == more and (ratio >= 2 or high > 10):
        value, ends = ratio, (low, high)
        kind = f"{a} takes {{}} times as long as {b}" if timed else f"{a} {does} {b}"
    elif verdict.startswith("undecided") and (high > 10 or low < 0.01):
        reach = f"{times_text(low)} to {times_text(high)}"
        return f"{a} against {b} is {verdict} (ratio {times_text(ratio)}, {level} {reach}, {details})"
    else:
        return None
    if not is_interval(*ends):
        return f"{kind.format(times_text(value))} ({no_ends(ends)}, {details})"
    if ends[1] < 1000 and ends[1] < 3 * ends[0]:
        return f"{kind.format(short_number(value, ends))} ({level} {span(ends, '')}, {details})"
    reach = "–".join(dict.fromkeys(map(times_text, ends)))
    return f"{kind.format(times_text(value))} ({level} {reach}, {details})"


def p_and_n(comparison: Comparison) -> tuple[str, str]:
    """Return texts such as ``p = 0.012`` and ``n = 30``. The second also shows warnings and effective sample sizes."""
    (first, second), checks = comparison.counts, comparison.checks
    p = p_text(comparison.p_value, least_of(comparison))
    if comparison.corrected_for > 1:
        p += f" after Holm over {comparison.corrected_for}"
    n = f"n = {first}" if comparison.paired else f"n = {first} + {second}"
    if "effective_rounds" in checks:
        n += f" rounds that count as {checks['effective_rounds']:.0f}"
    elif "effective_a" in checks:
        n += f" that count as {checks['effective_a']:.0f} + {checks['effective_b']:.0f}"
    if not comparison.measured:
        n += ", partly an estimate"
    if few := re.search(r"batches hold, here (\d+), which are few", comparison.caution):
        n += f", in {number_of(few[1], 'batch')}, which are few: measure for longer"
    # only the table shows the warning about too few rounds; the effective sample size is not repeated
    hidden = "too few to see|batches hold" if "effective" in "".join(checks) else "too few to see"
    said = [part for part in comparison.caution.split("; ") if part and not re.search(hidden, part)]
    return p, "; ".join([n, *said])


def least_of(comparison: Comparison) -> str:
    """Return the count that limits the p-value, such as ``"6 rounds"``. If no count limits the p-value, return ""."""
    if "smallest_p" not in comparison.checks:
        return ""
    values = round(1 - math.log2(comparison.checks["smallest_p"]))
    return number_of(values, "round" if values == comparison.counts[0] else "batch")


def comparison_facts(comparison: Comparison) -> dict[str, str]:
    """Return the parts of a comparison as texts by name, to be shown in a table."""
    factor, unit = scale_unit(comparison.difference, comparison.unit)
    difference, low, high = (value / factor for value in (comparison.difference, *comparison.difference_ci))
    level = f"{100 * comparison.confidence:.3g} % CI"

    def told(value: float, ends: tuple[float, float], unit: str = "") -> str:
        width = ends[1] - ends[0] if is_interval(*ends) else 0.0
        if not width:
            return f"{f'{with_digits(value, 0.0)} {unit}'.rstrip()} ({no_ends(ends)})"
        reach = " to ".join(with_digits(end, width) for end in ends)
        return f"{with_digits(value, width)} {unit}".rstrip() + f" ({level} {reach} {unit}".rstrip() + ")"

    effect, least = comparison.effect_size, least_of(comparison)
    counts = number_of(comparison.counts[0], "round") if comparison.paired else "{} and {}".format(*comparison.counts)
    return {
        "verdict": comparison.verdict,
        f"{comparison.name_a} / {comparison.name_b}": "not all values are positive"
        if math.isnan(comparison.ratio)
        else told(comparison.ratio, comparison.ratio_ci),
        "difference": told(difference, (low, high), unit),
        "p value": f"≤ {comparison.p_value:.2g}, the least that {least} allow"
        if least
        else f"{comparison.p_value:.2g}",
        "effect size (Cohen's d)": f"{effect:.2f}"
        if math.isfinite(effect)
        else NOT_BUILT
        if from_toolbox("cohens_d") is None
        else "no scatter to compare with",
        **{name.replace("_", " "): f"{value:.3g}" for name, value in comparison.checks.items()},
        "measurements": counts,
        "method": comparison.method,
        **({"mind": comparison.caution} if comparison.caution else {}),
    }


def as_fields(found: Any) -> dict[str, Any]:
    """Return the fields of a Comparison or Gate, and the sentence from its ``str``, as data that JSON can hold."""
    return finite(asdict(found) | {"sentence": str(found)})  # type: ignore[no-any-return]
