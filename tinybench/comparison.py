# Written by "autograder export" from modules/07_comparison/07_comparison.ipynb: edit the notebook, not this file.

"""Comparison of two models: a ratio with its interval, a verdict, a regression gate, and early stopping."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.latency import ready
from tinybench.result import BenchmarkResult
from tinybench.support.basics.arguments import check_least, check_numbers, check_pairs
from tinybench.support.comparisons.cautions import check_live, last_start
from tinybench.support.comparisons.compared import comparison_of
from tinybench.support.comparisons.race import RaceTally, race_summary
from tinybench.support.comparisons.ratio_words import needs_more_rounds
from tinybench.support.comparisons.stored_results import HIGHER_IS_BETTER, allowed_changes, gate_answer, gate_samples
from tinybench.support.comparisons.two_samples import check_plan, check_ratios, check_wins, median_interval
from tinybench.support.comparisons.verdict import Comparison, Gate
from tinybench.support.rounds.subject import Record


def median_ratio(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the median of the paired ratios a/b with its order-statistic interval: ``(ratio, lower, upper)``.

    The interval is 0 to infinity if there are too few rounds for an interval (at 95 %, fewer than 6). Raises ValueError
    if the lengths differ or a value is not finite and positive.
    """
    check_ratios(a, b)
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
    runs is enough, if the estimate is correct. The result is at least 6 and at most 10⁹, also for a distance of 0.
    """
    from scipy.special import ndtri

    check_plan(n, distance, confidence, power)
    if not math.isfinite(half_width):
        return 6  # no interval yet
    widening = 1 + float(ndtri(power)) / float(ndtri(0.5 + confidence / 2))
    if distance <= 0 or half_width / distance * widening > math.sqrt(10**9 / n):
        return 10**9
    return max(6, math.ceil(n * (half_width / distance * widening) ** 2))


def decide(change: float, interval: tuple[float, float], n: int, margin: float = 0.0, confidence: float = 0.95) -> str:
    """Return ``"equivalent"``, ``"faster"``, ``"slower"``, or ``"undecided: needs about 120 more rounds"``.

    `change` is negative if the first model takes less time. `interval` is the interval of the change, and `n` the
    number of rounds that it is based on. "Equivalent" comes first and requires a margin above 0. "More rounds" are
    those until the interval either excludes 0 or fits inside the margin, whichever comes first.
    """
    low, high = interval
    if margin > 0 and -margin <= low and high <= margin:
        return "equivalent"
    if high < 0:
        return "faster"
    if low > 0:
        return "slower"
    distance = max(abs(change), margin - abs(change))
    return needs_more_rounds(runs_to_decide(n, (high - low) / 2, distance, confidence) - n)


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
    chosen: Any = {"paired": paired, "margin": margin, "confidence": confidence, "names": names, "allow": allow}
    return comparison_of(a, b, compare_rounds, decide, **chosen)


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
    """Return the e value against "in half of the rounds a exceeds b", valid however often it is checked.

    `more` is the number of rounds in which a exceeded b. The e value is 1 before the first round, and capped near
    1e304. Raise ValueError unless `more` is a count from 0 to `rounds`.
    """
    from scipy.special import betaln

    check_wins(more, rounds)
    return math.exp(min(700.0, rounds * math.log(2) + float(betaln(more + 1, rounds - more + 1))))


def anytime_interval(values: Sequence[float], stop_at: float = 20.0) -> tuple[float, float]:
    """Return an interval for the median that holds at all sample sizes at once: two of the values, or −∞ and ∞.

    It contains every number that is not refused as the median, because the e value (see `sign_e_value`) against it is
    below `stop_at`, which is 1 / α. Raise ValueError if a value is not finite, or `stop_at` is below 1.
    """
    check_numbers(0, values=values)
    check_least(1, stop_at=stop_at)
    ordered, n = sorted(values), len(values)
    below = 0  # the number of smallest values that are refused as the median
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

    `measure(name)` times one call, in s. `coin.sample(names, 2)` draws the order of the models, once for each round.
    Stop after a round if the e value for a winner reaches `stop_at`, if the one for equality does, or if
    `time_is_up()` returns True. The highest e value is that for a winner; it is 1.0 before the first round.
    """
    coin = coin or random.Random()
    tally = RaceTally(sign_e_value, margin)
    highest = 1.0
    while True:
        times = {name: measure(name) for name in coin.sample(names, 2)}
        tally.add(*(times[name] for name in names))
        highest = max(highest, tally.for_a_winner())
        if highest >= stop_at or tally.for_equality() >= stop_at or time_is_up():
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
    return race_summary(record.results(), highest, stop_at, margin, anytime_interval, decide)
