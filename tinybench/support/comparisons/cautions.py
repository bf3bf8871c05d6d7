"""Warnings about a comparison: autocorrelated rounds, a coarse clock, a suspended machine, too many missing rounds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.basics.dependence import (
    autocorrelation,
    batch_length,
    batch_means,
    caution,
    effective_count,
    is_dependent,
)
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.result_text import scale_unit
from tinybench.support.basics.type_checks import check_kinds
from tinybench.support.comparisons.ratio_words import in_words
from tinybench.support.comparisons.stored_results import library_changes
from tinybench.support.comparisons.two_samples import check_margin, same_rounds
from tinybench.support.rounds.machine_state import verdict_of
from tinybench.support.rounds.subject import Subject

LONG = 3600.0  # s; a verdict does not advise measuring for longer than this
# The minimum number of batches. An order-statistic interval needs more of them, but fewer batches are longer, and
# therefore more nearly independent.
BATCHES = 4
MANY_ROUNDS = 10**5  # a verdict does not advise more rounds than this if the duration of a round is unknown
# Two copies of one function differ in speed because of their places in memory: by `LAYOUT` s per call, or by a fraction
# of the call's time, for calls timed in a loop or alone. Mytkowicz et al., "Producing Wrong Data …" (ASPLOS 2009).
LAYOUT, LAYOUT_IN_LOOP, LAYOUT_ALONE = 2e-9, 0.005, 0.0025


def independent_values(
    x: Sequence[float], y: Sequence[float], paired: bool
) -> tuple[list[float], list[float], dict[str, float]]:
    """Return the values of x and y to compare, and their autocorrelation and effective sample sizes.

    If the values are not autocorrelated, they are returned unchanged, and the dictionary is empty. Otherwise, they are
    split into batches, and each batch is replaced by one value. If x and y are not `paired`, this value is the mean. If
    they are, each batch of rounds gives one value of x and one of y, whose ratio is the median of the rounds' ratios.
    If not all values are positive, their difference is instead the median of the rounds' differences.
    """
    if paired and len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} values do not pair; measure both in the same rounds, or paired=False")
    if not paired:
        if min(*x, *y) == max(*x, *y):  # means of different numbers of equal values may round differently
            x, y = x[: len(y)], y[: len(x)]
        if not (is_dependent(x) or is_dependent(y)):
            return list(x), list(y), {}
        about = {"autocorrelation": max(autocorrelation(x), autocorrelation(y))}
        about |= {"effective_a": effective_count(x), "effective_b": effective_count(y)}
        if min(*x, *y) <= 0:
            return batch_means(x, batch_length(x, BATCHES)), batch_means(y, batch_length(y, BATCHES)), about
        # use means of logarithms because the comparison uses geometric means
        logs = (batch_means(np.log(z).tolist(), batch_length(z, BATCHES)) for z in (x, y))
        first, second = (np.exp(means) for means in logs)
        return first.tolist(), second.tolist(), about
    positive = min(*x, *y) > 0
    u, v = (np.log(x), np.log(y)) if positive else (np.asarray(x), np.asarray(y))
    gaps = np.round(u - v, 12) if positive else u - v  # removes rounding noise from equal ratios
    if not is_dependent(gaps.tolist()):
        return list(x), list(y), {}
    about = {"autocorrelation": autocorrelation(gaps.tolist()), "effective_rounds": effective_count(gaps.tolist())}
    length = batch_length(gaps.tolist(), BATCHES)
    if length == 1:
        return list(x), list(y), about
    middle, gap = (np.median(z[len(z) % length :].reshape(-1, length), axis=1) for z in ((u + v) / 2, u - v))
    first, second = middle + gap / 2, middle - gap / 2
    if positive:
        first, second = np.exp(first), np.exp(second)
    return first.tolist(), second.tolist(), about


def coarse_step(x: Sequence[float], y: Sequence[float], paired: bool) -> float:
    """Return the step in s of a coarse clock, estimated from these times. Return 0 for a fine clock.

    If all times are 0, the step is infinite.
    """
    values = np.unique([*x, *y])
    ties = float(np.mean(np.equal(x, y))) if paired else 1 - len(values) / (len(x) + len(y))
    if ties <= 0.5:
        return 0.0
    if len(values) == 1:
        return 0.0 if values[0] > 0 else math.inf
    step = float(np.diff(values).min())
    return step if step > 1e-3 * float(np.median([*x, *y])) else 0.0


def cautions_on(x: Sequence[float], y: Sequence[float], paired: bool, unit: str, by_coin: bool = False) -> list[str]:
    """Return warnings about the clock, extreme values and autocorrelation. Without problems, the list is empty.

    If the order within each round was random (`by_coin`), machine noise cannot favour one of the two samples. In this
    case, there is no warning if the values are too few to detect autocorrelation.
    """
    said, step = [], coarse_step(x, y, paired) if unit == "s" else 0.0
    if step:
        size, named = scale_unit(step, "s") if math.isfinite(step) else (1.0, "s")
        seen = f"times come in steps of {step / size:.3g} {named}" if math.isfinite(step) else "it saw no time pass"
        said.append(f"the clock is too coarse: {seen}; put more calls into a measurement")
    far = sum(int(np.sum(np.asarray(z) > 1000 * np.median(z))) for z in (x, y) if np.median(z) > 0)
    if far and unit == "s":
        said.append(f"values over 1,000 times the median: {far} of {len(x) + len(y)}; was the machine suspended?")
    logs = [math.log(p / q) for p, q in zip(x, y, strict=True)] if paired and min(*x, *y) > 0 else []
    for values in [logs] if paired else [x, y]:
        if (told := caution(values, BATCHES)) and not (by_coin and not is_dependent(values)):
            said.append(told)
            break
    return said


def seconds_a_round(a: BenchmarkResult, b: BenchmarkResult) -> float | None:
    """Return the duration in s of one round, in which both models are measured. If it is unknown, return None."""
    loops = [result.metadata.get("loops") for result in (a, b)]
    if a.unit != "s" or not all(isinstance(number, int) for number in loops):
        return None
    return a.median * loops[0] + b.median * loops[1]  # type: ignore[operator]


def advised(verdict: str, ratio_ci: tuple[float, float], round_seconds: float | None = None) -> str:
    """Return the verdict. If it says that more rounds are needed, add how long these rounds would take.

    If they would take too long, the verdict states instead how close the two models are. The number of rounds is a
    rough estimate, so a number above 100 is rounded to two digits.
    """
    found = re.fullmatch(r"undecided: needs (about ([\d,]+)|over 1,000,000) more rounds?", verdict)
    if not found:
        return verdict
    if not math.isfinite(ratio_ci[1]):
        return verdict
    rounds = float(found[2].replace(",", "")) if found[2] else math.inf
    seconds = rounds * round_seconds if round_seconds else None
    if rounds > MANY_ROUNDS if seconds is None else seconds > LONG:
        within = 100 * max(1 - ratio_ci[0], ratio_ci[1] - 1)
        known = f", within ± {within:.2g} %" if within < 100 else ""
        return f"undecided: not decidable in reasonable time{known}"
    if found[2]:
        verdict = f"undecided: needs about {number_of(f'{two_digits(rounds):,}', 'more round')}"
    if seconds is None or (seconds < 10 and rounds <= 1000):
        return verdict
    return f"{verdict} ({f'about {seconds:.0f} s' if seconds < 120 else f'about {seconds / 60:.0f} min'})"


def two_digits(count: float) -> int:
    """Return a count above 100 rounded to two significant digits: 303,205 becomes 300,000."""
    return int(float(f"{count:.2g}")) if count > 100 else int(count)


def check_live(models: Mapping[str, Any], stop_at: float, max_seconds: float, margin: float) -> None:
    """Raise TypeError or ValueError if an argument of a live comparison is invalid.

    `models` must hold two models by name. `stop_at` is an e-value above 1, and `max_seconds` a finite positive time.
    `margin` is a fraction.
    """
    check_kinds({"models": "Mapping[str, Any]"}, {"models": models})
    check_margin(margin)
    if len(models) != 2:
        raise ValueError(
            f"{number_of(len(models), 'model')}; compare_live takes two, measure_latencies and compare_all take more"
        )
    if not stop_at > 1:
        raise ValueError(f"stop_at is {stop_at}; evidence starts at 1 and 20 stands for 5 % false alarms")
    if not 0 < max_seconds < math.inf:
        raise ValueError(f"max_seconds is {max_seconds}; it must be positive")


def last_start(subjects: Mapping[str, Subject]) -> float:
    """Return the latest time at which a round of two models may begin.

    A round that begins then has time for the faster model. Only the slower model's measurement may end too late.
    """
    times = [s.loops * s.metadata["warmup"]["median"] for s in subjects.values() if s.metadata["warmup"]]
    return next(iter(subjects.values())).until - min(times, default=0.0)


def judged(
    verdict: str,
    a: BenchmarkResult,
    b: BenchmarkResult,
    paired: bool,
    margin: float,
    difference: float,
    ratio: float,
    ratio_ci: tuple[float, float],
    decide_again: Callable[[float, tuple[float, float]], str],
) -> tuple[str, str]:
    """Return the verdict in words, with advice if it is undecided, and the warnings as one text.

    If the clock is too coarse, or the difference is within the effect of memory layout, the verdict is undecided.
    """
    low, high = ratio_ci
    if verdict.startswith("undecided") and 2 * low < high < math.inf:  # decide far bounds by logarithms
        verdict = decide_again(math.log(ratio), (math.log(low), math.log(high)))
    said = cautions_on(a.values, b.values, paired, a.unit, same_rounds(a, b))
    if (
        not paired
        and not same_rounds(a, b)
        and all("loops" in r.metadata and "sessions" not in r.metadata for r in (a, b))
    ):
        said.append("measured apart, each in one session: how sessions differ is not in the interval")
    states = verdict_of(a), verdict_of(b)
    if a.unit not in ("", "B") and not same_rounds(a, b) and None not in states and states[0] != states[1]:
        said.append(f"the machine was not in the same state: {states[0]}, then {states[1]}")
    if changes := library_changes(a, b):
        said.append(f"measured under other conditions: {', '.join(changes)}")
    step = coarse_step(a.values, b.values, paired) if a.unit == "s" else 0.0
    open_ = verdict.startswith("undecided")
    if step and (open_ or (verdict == "equivalent" and step > margin * a.median)):
        return f"undecided: {said[0]}", "; ".join(said[1:])
    loops = min(result.metadata.get("loops", 0) for result in (a, b)) if a.unit == "s" else 0
    layout = max(LAYOUT, (LAYOUT_IN_LOOP if loops > 1 else LAYOUT_ALONE) * b.median)
    if loops and not open_ and verdict != "equivalent" and abs(difference) < layout:
        least = f"{100 * layout / b.median:.2g} %" if layout > LAYOUT else "2 ns a call"
        return f"undecided: less than {least}, by which two copies of one function differ", "; ".join(said)
    verdict = in_words(verdict, a.metric_name, a.unit)
    return advised(verdict, ratio_ci, seconds_a_round(a, b)), "; ".join(said)
