"""A comparison in words and numbers of a fitting length."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.result import is_interval, scale_unit
from tinybench.support.basics.numbers import number_of, p_text, with_digits, with_ends
from tinybench.support.basics.table import facts
from tinybench.support.comparisons.optional import NOT_BUILT, from_toolbox

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


def no_ends(ends: tuple[float, float]) -> str:
    """Return why two ends are not shown as an interval: one is infinite, or they are equal."""
    return "no interval, as all are equal" if math.isfinite(ends[1] - ends[0]) else "no finite interval"


def times_text(value: float) -> str:
    """Return a factor for a sentence: 3.4, 0.02, 12,000, and a limit where it is beyond sense."""
    if value >= 1e6:
        return "over 1,000,000"
    if value < 1e-6:
        return "under 0.000001"
    if value >= 100:
        return f"{value:,.0f}"
    return str(np.format_float_positional(value, precision=2, fractional=False, trim="-"))


def sentence(comparison: Comparison) -> str:
    """Return ``int8 takes 41 % less time than fp32 (95 % CI 38–44 %, p < 0.001, n = 30)``.

    From twice the time on it says ``a takes 3.4 times as long as b``, and below a tenth ``a is 12 times as fast as b``.
    Others are ``a and b are equivalent within ± 2 % (change 0.3 %, 95 % CI −0.5 to 1.1 %, p = 0.4, n = 30)`` and ``a
    against b is undecided: needs about 80 more rounds (change −50 %, no finite interval, p = 0.25, n = 3)``.
    """
    change, ends, unit = in_percent(comparison)
    (p, n), a, b, verdict = p_and_n(comparison), comparison.name_a, comparison.name_b, comparison.verdict
    level = f"{100 * comparison.confidence:.3g} % CI"
    if told := in_times(comparison, level, f"{p}, {n}"):
        return told
    decided = verdict != "equivalent" and not verdict.startswith("undecided")
    less = change < 0
    if decided and less:  # "41 % less" is said with a positive number
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
    """Return ``takes 41 % less time than``: of what there is less, as 41 % faster may mean two things."""
    word = "less" if less else "more"
    if comparison.metric == "throughput":
        return f"does {amount} {word} per second than"
    if comparison.unit == "s":
        return f"takes {amount} {word} time than"
    return f"is {amount} {comparison.verdict} than"


def in_times(comparison: Comparison, level: str, details: str) -> str | None:
    """Return the sentence in times instead of percent, where percent would be beyond sense: nobody says 1204 % more.

    None where percent are fine.
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
    """Return ``p = 0.012``, and ``n = 30`` with as how many they count if they depend on one another, and cautions."""
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
    # that so few rounds tell little is written in the table only, and so is again as how many they count
    hidden = "too few to see|batches hold" if "effective" in "".join(checks) else "too few to see"
    said = [part for part in comparison.caution.split("; ") if part and not re.search(hidden, part)]
    return p, "; ".join([n, *said])


def least_of(comparison: Comparison) -> str:
    """Return the count that limits the p-value, such as ``"6 rounds"``, or "" if the p-value is above its floor."""
    if "smallest_p" not in comparison.checks:
        return ""
    values = round(1 - math.log2(comparison.checks["smallest_p"]))
    return number_of(values, "round" if values == comparison.counts[0] else "batch")


def speed_text(comparison: Comparison) -> str:
    """Return ``2.06 times as fast (2.03–2.09)``, or ``1.65 times as long (1.6–1.7)`` if the first is slower."""
    (low, high), slower = comparison.ratio_ci, comparison.ratio > 1
    value, ends = (
        (comparison.ratio, (low, high)) if slower else (1 / comparison.ratio, (1 / high, 1 / max(low, 1e-300)))
    )
    kind = "as long" if slower else "as fast"
    if not (low > 0 and is_interval(low, high)):
        return f"{with_digits(value, 0)} times {kind}"
    lower, upper = (with_digits(end, ends[1] - ends[0]) for end in ends)
    return f"{with_digits(value, ends[1] - ends[0])} times {kind} ({lower}–{upper})"


def gain_text(gain: float, ends: Sequence[float], unit: str = "") -> str:
    """Return a gain in speed: ``2.06 (2.03–2.09)``, `unit` after 2.06, or below 1 ``1.65 times as long (1.6–1.7)``."""
    if gain >= 1:
        return with_ends(gain, ends, "–", unit=unit)
    low, high = ends
    return with_ends(1 / gain, (1 / high, 1 / low) if low > 0 else None, "–", unit="times as long")


def in_words(verdict: str, metric: str, unit: str) -> str:
    """Return a verdict on less or more in the words of its metric."""
    return dict(zip(("faster", "slower"), words_for(metric, unit), strict=True)).get(verdict, verdict)


def comparison_facts(comparison: Comparison) -> dict[str, str]:
    """Return what a comparison found, by name, for a table."""
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


def mimebundle(comparison: Comparison) -> dict[str, str]:
    """Return a comparison as an accessible HTML table and as a sentence."""
    return {"text/plain": str(comparison), "text/html": facts(comparison_facts(comparison), str(comparison)).html()}


def as_fields(found: Any) -> dict[str, Any]:
    """Return the fields of what was found, and its sentence, as JSON can hold them."""
    return finite(asdict(found) | {"sentence": str(found)})  # type: ignore[no-any-return]


def finite(value: Any) -> Any:
    """Return a value as JSON can hold it: what is not finite becomes None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
