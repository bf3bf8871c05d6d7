"""What may spoil a comparison, and what to say of it: dependent rounds, coarse clocks, suspended machines, no end."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult, scale_unit
from tinybench.support.basics.argument_types import check_kinds
from tinybench.support.basics.dependence import (
    autocorrelation,
    batch_length,
    batch_means,
    caution,
    effective_count,
    is_dependent,
)
from tinybench.support.basics.numbers import number_of
from tinybench.support.comparisons.ratio_words import in_words
from tinybench.support.comparisons.stored_results import library_changes
from tinybench.support.comparisons.two_samples import check_margin, same_rounds
from tinybench.support.rounds.machine_state import verdict_of
from tinybench.support.rounds.subject import Subject

LONG = 3600.0  # s of measuring that are no advice
BATCHES = 4  # at least: fewer batches than an order-statistic interval takes are longer, and depend less on one another
MANY_ROUNDS = 10**5  # the same where nothing says how long a round takes
# Two copies of one function differ because of where they lie in memory: by so many s a call, and by such a share of a
# call that is timed in a loop, or alone. Mytkowicz et al., "Producing Wrong Data …" (ASPLOS 2009).
LAYOUT, LAYOUT_IN_LOOP, LAYOUT_ALONE = 2e-9, 0.005, 0.0025


def independent_values(
    x: Sequence[float], y: Sequence[float], paired: bool
) -> tuple[list[float], list[float], dict[str, float]]:
    """Return the values to compare by, and how much those measured depend on one another.

    Where they do, they are medians of batches; a pair of them has the median ratio (or else difference) of its rounds.
    """
    if paired and len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} values do not pair; measure both in the same rounds, or paired=False")
    if not paired:
        if min(*x, *y) == max(*x, *y):  # means of more or fewer equal values may round differently
            x, y = x[: len(y)], y[: len(x)]
        if not (is_dependent(x) or is_dependent(y)):
            return list(x), list(y), {}
        about = {"autocorrelation": max(autocorrelation(x), autocorrelation(y))}
        about |= {"effective_a": effective_count(x), "effective_b": effective_count(y)}
        if min(*x, *y) <= 0:
            return batch_means(x, batch_length(x, BATCHES)), batch_means(y, batch_length(y, BATCHES)), about
        # means of logarithms, as the geometric means of the values are compared
        logs = (batch_means(np.log(z).tolist(), batch_length(z, BATCHES)) for z in (x, y))
        first, second = (np.exp(means) for means in logs)
        return first.tolist(), second.tolist(), about
    positive = min(*x, *y) > 0
    u, v = (np.log(x), np.log(y)) if positive else (np.asarray(x), np.asarray(y))
    gaps = np.round(u - v, 12) if positive else u - v  # what rounding leaves of equal ratios has an order, but no sense
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
    """Return the step in s in which a coarse clock tells these times, infinite if it saw none pass; 0 if it is fine."""
    values = np.unique([*x, *y])
    ties = float(np.mean(np.equal(x, y))) if paired else 1 - len(values) / (len(x) + len(y))
    if ties <= 0.5:
        return 0.0
    if len(values) == 1:
        return 0.0 if values[0] > 0 else math.inf
    step = float(np.diff(values).min())
    return step if step > 1e-3 * float(np.median([*x, *y])) else 0.0


def cautions_on(x: Sequence[float], y: Sequence[float], paired: bool, unit: str, by_coin: bool = False) -> list[str]:
    """Return what to keep in mind with these times, nothing where all is well.

    Where a coin ordered each round (`by_coin`), the noise of the machine cannot prefer one of the two.
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
    """Return how long a round of both takes in s, None where the results do not say."""
    loops = [result.metadata.get("loops") for result in (a, b)]
    if a.unit != "s" or not all(isinstance(number, int) for number in loops):
        return None
    return a.median * loops[0] + b.median * loops[1]  # type: ignore[operator]


def advised(verdict: str, ratio_ci: tuple[float, float], round_seconds: float | None = None) -> str:
    """Return an undecided verdict with the time that its rounds take, or how close the two are if nobody would wait.

    A number of rounds is a rough guess: beyond a hundred it has two digits.
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
    """Return a rough guess of a count as one says it: 303,205 is 300,000."""
    return int(float(f"{count:.2g}")) if count > 100 else int(count)


def check_live(models: Mapping[str, Any], stop_at: float, max_seconds: float, margin: float) -> None:
    """Raise TypeError or ValueError if an argument of a live comparison makes no sense.

    It takes two models by name, an evidence and a time to stop at, and a fraction as the margin.
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
    """Return until when a round may begin: it passes the end of the time by one call of the slower model at most."""
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
    """Return the verdict in words, as far as clock and machine allow one, with advice, and what to keep in mind."""
    low, high = ratio_ci
    if verdict.startswith("undecided") and 2 * low < high < math.inf:  # far ends count as logarithms
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
