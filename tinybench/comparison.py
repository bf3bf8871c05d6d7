# Written by "autograder export" from modules/07_comparison/07_comparison.ipynb: edit the notebook, not this file.

"""Comparison of two models: a ratio with its interval, a verdict, a regression gate, and early stopping."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tinybench.latency import ready
from tinybench.result import BenchmarkResult
from tinybench.support.basics.arguments import (
    check_confidence,
    check_least,
    check_numbers,
    check_pairs,
    check_positive,
    check_share,
)
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.type_checks import check_kinds
from tinybench.support.comparisons.cautions import check_live, independent_values, judged, last_start
from tinybench.support.comparisons.stored_results import HIGHER_IS_BETTER, allowed_changes, gate_answer, gate_samples
from tinybench.support.comparisons.two_samples import (
    as_result,
    check_comparable,
    check_margin,
    compare_apart,
    compare_batches,
    few_batches,
    median_interval,
    pair_names,
    same_rounds,
    second_opinions,
    smallest_p,
)
from tinybench.support.comparisons.verdict import Comparison, Gate
from tinybench.support.rounds.subject import Record


def median_ratio(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the median of the paired ratios a/b with its order-statistic interval: ``(ratio, lower, upper)``.

    The interval is 0 to infinity if there are too few rounds for an interval (at 95 %, fewer than 6). Raises ValueError
    if the lengths differ or a value is not finite and positive.
    """
    check_numbers(a=a, b=b)
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} values do not pair; measure both in the same rounds, or paired=False")
    if min(*a, *b) <= 0:
        raise ValueError("a ratio takes positive values; compare by the difference instead")
    logs = [math.log(x / y) for x, y in zip(a, b, strict=True)]
    low, high = median_interval(logs, confidence)
    return math.exp(float(np.median(logs))), math.exp(low), math.exp(high)


def sign_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the exact two-sided p value, at most 1, of the hypothesis "in half of the rounds a exceeds b".

    Ties count for neither side. Raise ValueError if `a` and `b` differ in length, or if a value is not finite.
    """
    from scipy.special import bdtrc

    check_pairs(a=a, b=b)

    differences = np.subtract(a, b)
    more = max(int(np.sum(differences > 0)), int(np.sum(differences < 0)))
    return min(1.0, 2 * float(bdtrc(more - 1, len(differences), 0.5)))


def runs_to_decide(n: int, half_width: float, distance: float, confidence: float = 0.95, power: float = 0.8) -> int:
    """Return the total number of runs after which an interval excludes a limit, given its half-width after `n` runs.

    `distance` is the distance of the estimate from the limit. `power` is the probability that the returned number of
    runs is enough, if the estimate is correct. An infinite half-width means that there is no interval yet: 6 runs.
    The result is at least 6 and at most 10⁹.
    """
    from scipy.special import ndtri

    check_positive(n=n)
    check_share(power=power)
    check_confidence(confidence)
    if math.isnan(distance):
        raise ValueError("distance is nan; give that of the estimate from the limit")
    if not math.isfinite(half_width):
        return 6
    many = 10**9
    widening = 1 + float(ndtri(power)) / float(ndtri(0.5 + confidence / 2))
    if distance <= 0 or half_width / distance * widening > math.sqrt(many / n):
        return many
    return max(6, math.ceil(n * (half_width / distance * widening) ** 2))


def decide(change: float, interval: tuple[float, float], n: int, margin: float = 0.0, confidence: float = 0.95) -> str:
    """Return ``"equivalent"``, ``"faster"``, ``"slower"``, or ``"undecided: needs about 120 more rounds"``.

    `change` is negative if the first model takes less time, and so is faster. `interval` is the interval of the change,
    and `n` the number of rounds that it is based on. First check for "equivalent", which requires a margin above 0, and
    an interval completely between −margin and margin. The number after "needs about" is the number of further rounds
    until the interval either excludes 0 or fits inside the margin, whichever comes first. If that number is above a
    million, return ``"undecided: needs over 1,000,000 more rounds"``.
    """
    low, high = interval
    if margin > 0 and -margin <= low and high <= margin:
        return "equivalent"
    if high < 0:
        return "faster"
    if low > 0:
        return "slower"
    distance = max(abs(change), margin - abs(change))
    more = max(1, runs_to_decide(n, (high - low) / 2, distance, confidence) - n)
    if more > 10**6:
        return "undecided: needs over 1,000,000 more rounds"
    return f"undecided: needs about {number_of(f'{more:,}', 'more round')}"


def compare_rounds(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> dict[str, Any]:
    """Compare the measurements x with the measurements y, which come from the same rounds.

    Returns a dictionary. ``ratio`` and ``ratio_ci`` are the median of x/y and its interval, or NaN and (NaN, NaN)
    unless all values are positive. ``difference`` and ``difference_ci`` are the median of x − y and its interval.
    ``p_value`` is the p value of the sign test. Intervals are pairs.
    """
    check_pairs(x=x, y=y)
    ratio, low, high = median_ratio(x, y, confidence) if min(*x, *y) > 0 else [math.nan] * 3
    differences = [float(d) for d in np.subtract(x, y)]
    return {
        "ratio": ratio,
        "ratio_ci": (low, high),
        "difference": float(np.median(differences)),
        "difference_ci": median_interval(differences, confidence),
        "p_value": sign_test(x, y),
    }


def compare(
    a: BenchmarkResult | Sequence[float],
    b: BenchmarkResult | Sequence[float],
    paired: bool | None = None,
    margin: float = 0.0,
    confidence: float = 0.95,
    *,
    names: tuple[str, str] | None = None,
    allow: Collection[str] = (),
) -> Comparison:
    """Compare a with b. Return by how much a differs, how certain that is, and whether it matters.

    Parameters
    ----------
    a, b
        Two results, or two sequences of plain measurements.
    paired
        Whether to compare round by round. By default, this is done if both results come from the same rounds of
        `measure_latencies`.
    margin, confidence
        Largest relative change that does not matter (0.02 for ± 2 %); coverage of the intervals. The significance level
        is 1 − confidence.
    names, allow
        Names of a and b, and conditions that may differ; see `pair_names` and `check_comparable`.

    Returns
    -------
    Comparison
        If paired, the median ratio with its order-statistic interval, and the sign test. Otherwise, the ratio of
        geometric means, and Welch's test of the logarithms. If values are autocorrelated, they are replaced by batches
        of values: by the medians of batches if paired, otherwise by their means. Pairs in fewer than 12 batches are
        compared by Student's t test. The interval and the p value always agree.

    Raises
    ------
    TypeError
        If `a` or `b` is neither a result nor a list of numbers, such as a model.
    ValueError
        If the results cannot be compared or paired, or hold too few values; if `margin` or `confidence` is out of
        range.
    """
    a, b = _results(a, b)
    check_comparable(a, b, allow)
    check_margin(margin, confidence)
    positive = min(*a.values, *b.values) > 0
    if margin and not positive:
        raise ValueError("a margin is relative, and a value at or below 0 has no ratio; use margin=0")
    paired = same_rounds(a, b) if paired is None else paired
    x, y, dependence = independent_values(a.values, b.values, paired)
    n = min(a.count, b.count)
    test = compare_apart if not paired else compare_batches if few_batches(x, y, n) else compare_rounds
    found = dict(test(x, y, confidence))
    (ratio, (low, high)), difference = (found["ratio"], found["ratio_ci"]), found["difference"]
    if positive:
        verdict = decide(ratio - 1, (low - 1, high - 1), n, margin, confidence)
    else:
        verdict = decide(difference, found["difference_ci"], n, 0.0, confidence)
    again = partial(decide, n=n, confidence=confidence)
    verdict, caution = judged(verdict, a, b, paired, margin, difference, ratio, (low, high), again)
    method = "median of paired ratios with order-statistic interval, sign test"
    if not paired:
        method = "ratio of geometric means, Welch's test of logarithms" if positive else "Welch's test of means"
    elif test is compare_batches:
        method = "mean of paired log ratios, Student's t test" if positive else "Student's t test of paired differences"
    if min(len(x), len(y)) < n:
        method += f", of medians of {len(x)} batches" if paired else ", of means of batches"
    effect, checks = second_opinions(x, y, paired)
    if test is compare_batches:
        checks.pop("wilcoxon_p", None)  # over so few batches this p-value also has a floor
    checks |= dependence | (smallest_p(found["p_value"], len(x)) if test is compare_rounds else {})
    about: Any = {"metric": a.metric_name, "unit": a.unit, "checks": checks, "caution": caution}
    about |= {"measured": a.measured and b.measured, "confidence": confidence, "margin": margin, **found}
    first, second = pair_names(a, b, names)
    return Comparison(first, second, (a.count, b.count), paired, method, effect_size=effect, verdict=verdict, **about)


def _results(a: BenchmarkResult | Sequence[float], b: BenchmarkResult | Sequence[float]) -> list[BenchmarkResult]:
    """Return plain measurements as results. Raise TypeError for anything else, such as a model."""
    check_kinds(dict.fromkeys("ab", "BenchmarkResult | Sequence[float]"), {"a": a, "b": b})
    return [as_result(a), as_result(b)]


def gate_verdict(
    slowdown: float, interval: tuple[float, float], n: int, max_slowdown: float, confidence: float = 0.95
) -> tuple[str, int | None]:
    """Return the verdict on a slowdown measured in `n` runs, and the total number of runs needed (None if decided).

    The verdict is ``"passes"``, ``"fails"``, or ``"cannot tell: needs 120 runs"``. The number after "needs" is at least
    `n` + 1.
    """
    low, high = interval
    if high <= max_slowdown:
        return "passes", None
    if low > max_slowdown:
        return "fails", None
    needs = max(n + 1, runs_to_decide(n, (high - low) / 2, abs(slowdown - max_slowdown), confidence))
    return f"cannot tell: needs {needs} runs", needs


def regression_gate(
    baseline: BenchmarkResult,
    candidate: BenchmarkResult,
    max_slowdown: float = 0.05,
    *,
    paired: bool | None = None,
    confidence: float = 0.95,
    allow: Collection[str] = (),
) -> Gate:
    """Judge whether a candidate is too much slower (or larger, or less accurate) than a baseline.

    Parameters
    ----------
    baseline, candidate
        Results of one metric, with positive values.
    max_slowdown
        Relative worsening that is still accepted: 0.05 for 5 %.
    paired, confidence, allow
        See `compare`, also for the exceptions. `allow` may also hold any condition that the returned `Gate` lists as
        different.

    Returns
    -------
    Gate
        ``passes`` if the whole interval of the slowdown is at most `max_slowdown`, ``fails`` if the whole interval is
        above it, else ``cannot tell: needs n runs``. Every condition that differs is listed. If governor, clock, dtype,
        mode or number of threads differ, the verdict is ``cannot tell``. Results of the same rounds are compared round
        by round, and other results by the medians of their sessions (see `by_session`). Kalibera, Jones, ISMM (2013).
    """
    if not 0 <= max_slowdown <= 1:
        raise ValueError(f"max_slowdown is {max_slowdown}; give the slowdown you accept as a fraction, 0.05 for 5 %")
    changes, blocking, allow = allowed_changes(baseline, candidate, allow)
    new, old, paired, values = gate_samples(candidate, baseline, paired)
    comparison = compare(new, old, paired, confidence=confidence, allow=allow)
    turned = candidate.metric_name in HIGHER_IS_BETTER
    slower = compare(old, new, paired, confidence=confidence, allow=allow) if turned else comparison
    if math.isnan(slower.ratio):
        raise ValueError("a gate takes positive values: a slowdown is a ratio")
    slowdown, interval = slower.ratio - 1, (slower.ratio_ci[0] - 1, slower.ratio_ci[1] - 1)
    verdict, needs = gate_verdict(slowdown, interval, min(slower.counts), max_slowdown, confidence)
    return gate_answer(Gate(verdict, slowdown, interval, max_slowdown, needs, comparison), changes, blocking, values)


def sign_e_value(more: int, rounds: int) -> float:
    """Return the e value against the hypothesis "in half of the rounds a exceeds b".

    The e value is valid no matter how often it is checked.

    `more` is the number of rounds in which a exceeded b. The e value is 1 before the first round, and capped near
    1e304. Raise ValueError unless `more` is a count from 0 to `rounds`.
    """
    from scipy.special import betaln

    if not 0 <= more <= rounds < math.inf:
        raise ValueError(
            f"more is {more} and rounds is {rounds}; give two counts, with more at most as large as rounds"
        )

    return math.exp(min(700.0, rounds * math.log(2) + float(betaln(more + 1, rounds - more + 1))))


def anytime_interval(values: Sequence[float], stop_at: float = 20.0) -> tuple[float, float]:
    """Return an interval for the median that holds at all sample sizes at once.

    Its ends are two of the values, or −∞ and ∞.

    The interval contains every number that is not rejected as the median: the e value (see `sign_e_value`) against the
    hypothesis that this number is the median is below `stop_at`. If the probability of a false alarm is α, `stop_at` is
    1 / α. Raise ValueError if a value is not finite, or `stop_at` is below 1.
    """
    check_numbers(0, values=values)
    check_least(1, stop_at=stop_at)
    ordered, n = sorted(values), len(values)
    below = 0  # the number of smallest values that are rejected as the median
    while below < n // 2 and sign_e_value(below, n) >= stop_at:
        below += 1
    return (ordered[below - 1], ordered[n - below]) if below else (-math.inf, math.inf)


def until_decided(
    names: Sequence[str],
    measure: Callable[[str], float],
    time_is_up: Callable[[], bool],
    stop_at: float = 20.0,
    margin: float = 0.0,
    coin: random.Random | None = None,
) -> float:
    """Time two models in rounds until it is decided whether one of them is faster. Return the highest e value.

    The returned e value is evidence for one of the models being faster; 1.0 means that there is no evidence.

    `measure(name)` times one call, in s. `coin.sample(names, 2)` draws the order of the models, once for each round.
    Stop after a round in any of three cases: the e value for one model being faster reaches `stop_at`; the evidence for
    a ratio within 1 ± margin reaches `stop_at`; or `time_is_up()` returns True.
    """
    coin = coin or random.Random()
    n = more = less = above = below = 0
    highest = 1.0
    while True:
        times = {name: measure(name) for name in coin.sample(names, 2)}
        a, b = (times[name] for name in names)
        n, more, less = n + 1, more + (a > b), less + (a < b)
        if 2 * max(more, less) > n:
            highest = max(highest, sign_e_value(max(more, less), n))
        above, below = above + (a > (1 - margin) * b), below + (a < (1 + margin) * b)
        inside = 2 * min(above, below) > n and sign_e_value(min(above, below), n) >= stop_at
        if inside or highest >= stop_at or time_is_up():
            return highest


def compare_live(
    models: Mapping[str, Any],
    inputs: Any,
    stop_at: float = 20.0,
    max_seconds: float = 10.0,
    *,
    margin: float = 0.0,
    warmup_runs: int = 5,
    seed: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
    setup: Callable[[Any], Any] | None = None,
    sync: Callable[[], Any] | None = None,
) -> Comparison:
    """Time two models in rounds until one of them is known to be faster.

    The models are compared after every round, and yet the rate of false alarms does not increase.

    Parameters
    ----------
    models, inputs
        Two models by name, and one input for both or for each name; see `measure_latencies`.
    stop_at, max_seconds
        The e value at which to stop, 1 / α (20 for 5 % false alarms); time limit in s for the warm-up and all rounds.
        At least one round is run.
    margin
        Also stop once the ratio is known to lie within 1 ± margin.
    warmup_runs, seed, clock, setup, sync
        As in `measure_latencies`. The seed determines the order in each round.

    Returns
    -------
    Comparison
        The first model compared with the second. The interval and the p value are valid no matter when the timing
        stops. After an early stop, the ratio is biased a little away from 1. So if you want to publish a number,
        measure again with a fixed number of rounds.

    Raises
    ------
    ValueError
        If an argument is out of range. Exceptions during the rounds, and Ctrl-C, carry the results of all complete
        rounds as ``error.results``.
    """
    check_live(models, stop_at, max_seconds, margin)
    subjects = ready(models, inputs, warmup_runs, clock, setup=setup, sync=sync, max_seconds=max_seconds)
    stop = last_start(subjects)
    with Record(subjects, {"order": "a coin in each round", "seed": seed}) as record:

        def measure(name: str) -> float:
            record.add(name, subjects[name].measure())
            return record.values[name][-1]

        highest = until_decided(list(models), measure, lambda: clock() >= stop, stop_at, margin, random.Random(seed))
    return _live_summary(record.results(), highest, stop_at, margin)


def _live_summary(results: dict[str, BenchmarkResult], highest: float, stop_at: float, margin: float) -> Comparison:
    """Return the comparison of the rounds so far, with the anytime-valid interval and p value."""
    a, b = results.values()
    x, y = (np.maximum(result.values, 1e-12) for result in (a, b))  # a coarse clock may measure 0 s
    logs, differences = np.log(x / y).tolist(), (x - y).tolist()
    ends, difference = anytime_interval(logs, stop_at), float(np.median(differences))
    ratio, ratio_ci = math.exp(float(np.median(logs))), (math.exp(ends[0]), math.exp(ends[1]))
    effect, confidence = second_opinions(x.tolist(), y.tolist(), True)[0] if a.count > 1 else math.nan, 1 - 1 / stop_at
    verdict = decide(ratio - 1, (ratio_ci[0] - 1, ratio_ci[1] - 1), a.count, margin, confidence)
    again = partial(decide, n=a.count, confidence=confidence)
    verdict, caution = judged(verdict, a, b, True, margin, difference, ratio, ratio_ci, again)
    checks = {"e_value": highest, **independent_values(a.values, b.values, True)[2]}
    found = ratio, ratio_ci, difference, anytime_interval(differences, stop_at), min(1.0, 1 / highest), effect, verdict
    about: Any = {"metric": "latency", "unit": "s", "checks": checks, "caution": caution}
    method = f"anytime-valid sign test, stops at e ≥ {stop_at:g}"
    first, second = pair_names(a, b, None)
    return Comparison(first, second, (a.count, b.count), True, method, *found, confidence, margin, **about)
