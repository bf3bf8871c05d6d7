"""Hidden checks for module 16, with a fake metrics registry and random inputs.

Exact fractions and SciPy's tests supply the expected values.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import judges
from autograder.checks.check_helpers import *


@judges("burn_rate")
def budgets_burn(student: Any) -> None:
    """Check that `burn_rate` agrees with exact fractions. Without failures or without requests, it must be 0."""
    rng = draw()
    rates = list[Any]()
    for _ in range(20):
        objective, total = float(rng.integers(1, 1000)) / 1000, int(rng.integers(1, 9_000_000))
        bad = int(rng.integers(0, total + 1))
        rates.append(((bad, total, objective), float(bad / ((1 - Fraction(objective)) * total))))
    agree_at_once(student, student.burn_rate, rates, "bad over the budget", rel=1e-7)
    agrees(student.burn_rate, 0.0, [(0, 0, 0.99), (0, 500, 0.9)], "no budget is spent")


def answer_budget(student: Any) -> None:
    """Check that a burn rate of 50 uses up a budget for 720 h in 720 / 50 h, and 50 / 720 of it in one hour."""
    same(student.hours_until_gone(), 14.4, "the hours", "the budget burns 50 times as fast as allowed", rel=0.01)
    same(student.percent_in_an_hour(), 100 * 50 / 720, "the percent", "50 hours' worth of 720", rel=0.03)


@judges("increase")
def counters_begin_anew(student: Any) -> None:
    """Check that `increase` returns the growth of random counters that sometimes restart at 0."""
    rng = draw()
    for size in (1, 2, 5, 30, 30):
        steps = rng.integers(0, 50, size - 1)
        fresh = rng.random(size - 1) < 0.2
        readings = [float(rng.integers(100, 900))]
        for step, anew in zip(steps.tolist(), fresh.tolist(), strict=True):
            readings.append(float(step) if anew and step < readings[-1] else readings[-1] + step)
        agrees(student.increase, float(steps.sum()), [(readings,)], "a counter that falls has restarted at 0")
    agrees(student.increase, 0.0, [([],), ([7.0],), ([3.0, 3.0],)], "nothing has grown")


@judges("burning")
def both_windows_burn(student: Any) -> None:
    """Check that `burning` is true only if the error budget burns too fast in both time windows.

    Counters restart at random. The check adds up their growth step by step in exact fractions.
    """
    rng = draw()
    cases, truths = list[Any](), list[Any]()
    for _ in range(60):
        size = int(rng.integers(3, 40))
        more = rng.integers(1, 40, size)
        failed = rng.binomial(more, rng.uniform(0, 0.7, size) * (rng.random(size) < 0.6))
        restart = int(rng.integers(1, size)) if rng.random() < 0.4 else size
        bad, total = ([0.0] for _ in range(2))
        for k in range(size):
            for counter, step in ((bad, failed[k]), (total, more[k])):
                before = 0.0 if k == restart and step < counter[-1] else counter[-1]
                counter.append(float(before + step))
        if any(counter[restart + 1] >= counter[restart] for counter in (bad, total) if restart < size):
            continue  # a counter that does not fall hides the restart
        long, short = (int(rng.integers(1, size + 5)) for _ in range(2))
        objective, factor = 0.75, float(rng.choice([0.25, 0.5, 1.0, 2.0]))
        shares = [Fraction(int(failed[-w:].sum()), int(more[-w:].sum())) for w in (long, short)]
        truth = all(share / Fraction(1, 4) >= Fraction(factor) for share in shares)
        cases.append((bad, total, objective, factor, long, short))
        truths.append((truth, shares))
    answers = each(student, student.burning, *zip(*cases, strict=True))
    for (bad, _, _, factor, long, short), (truth, shares), answer in zip(cases, truths, answers, strict=True):
        got = flag(answer, "burning")
        what = f"burning over {long} and {short} of {len(bad) - 1} steps, factor {factor:g}"
        told = ", ".join(f"{float(4 * share):.4g}" for share in shares)
        expect(got == truth, f"{what}: expected {truth} (the budget burns at {told}), got {got}")


@judges("histogram_quantile")
def quantiles_of_buckets(student: Any) -> None:
    """Check that `histogram_quantile` interpolates linearly in the first bucket whose count reaches the rank.

    Some buckets are empty. Ranks are exact fractions.
    """
    rng, truths = draw(), list[Any]()
    for _ in range(80):
        size = int(rng.integers(2, 12))
        bounds = [*np.cumsum(rng.integers(1, 9, size) / 4).tolist(), math.inf]
        each = rng.integers(0, 12, size + 1) * (rng.random(size + 1) < 0.7)
        counts = np.cumsum(each).tolist()
        q = float(rng.choice([0, 0.25, 0.5, 0.75, 0.875, 1, rng.uniform()]))
        if counts[-1] == 0:
            continue  # the notebook's given code handles an empty histogram
        rank, i = Fraction(q) * counts[-1], 0
        while counts[i] < rank or counts[i] == 0:
            i += 1
        low, below = (bounds[i - 1], counts[i - 1]) if i else (0.0, 0)
        line = low if math.isinf(bounds[i]) else low + (bounds[i] - low) * float((rank - below) / (counts[i] - below))
        truths.append(((q, bounds, counts), line))
    cause = "a straight line through the first bucket whose count reaches the rank"
    agree_at_once(student, student.histogram_quantile, truths, cause, abs=1e-9)


def answer_quantile(student: Any) -> None:
    """Check that the p99 shown is interpolated within its bucket: 100 + 150 · 40 / 50 = 220."""
    same(student.shown_p99(), 220, "the p99 shown", "rank 990 is the 40th of 50 in the bucket", rel=0.01)


class Meter:
    """A fake metric that records every amount passed to it."""

    def __init__(self) -> None:
        self.notes: list[float] = []

    def inc(self, amount: float = 1) -> None:
        self.notes.append(float(number(amount, "inc")))

    def dec(self, amount: float = 1) -> None:
        self.notes.append(-float(number(amount, "dec")))

    def observe(self, value: float) -> None:
        self.notes.append(float(number(value, "observe")))


class Meters:
    """A fake registry with the metrics that `ServedMetrics` has."""

    def __init__(self) -> None:
        self.gauge, self.histogram, self.sizes = Meter(), Meter(), Meter()
        self.ends: dict[str, Meter] = {}

    @property
    def in_flight(self) -> Meter:
        return self.gauge

    @property
    def seconds(self) -> Meter:
        return self.histogram

    @property
    def rows(self) -> Meter:
        return self.sizes

    @property
    def requests(self) -> Meters:
        return self

    def labels(self, *values: Any, **named: Any) -> Meter:
        (outcome,) = [text(value, "the outcome") for value in (*values, *named.values())]
        return self.ends.setdefault(outcome, Meter())


@judges("watched")
def calls_are_watched(student: Any) -> None:
    """Check that a call through `watched` updates the metrics and returns the model's answer.

    If the model raises an error, the error must pass through, and no seconds are recorded.
    """
    rng = draw()
    clock, metrics, going = FakeClock(float(rng.integers(9, 99))), Meters(), list[float]()

    def model(rows: Any) -> list[float]:
        size = len(rows)
        going.append(sum(metrics.gauge.notes))
        clock.now += size / 8
        if size in raising:
            raise ValueError(f"{size} rows are refused")
        return [size * 3.0]

    raising = set(rng.choice(np.arange(1, 9), 3, replace=False).tolist())
    observed = student.watched(model, metrics, clock)
    sizes = rng.permutation(np.arange(1, 9)).tolist()
    for size in sizes:
        rows = [float(k) for k in range(size)]
        if size in raising:
            refuses(observed, (rows,), mentions=f"{size} rows are refused", cause="the model's error goes on")
        else:
            same(observed(rows), [size * 3.0], "the answer", "as the model gives it")
    fine = [size for size in sizes if size not in raising]
    same(
        going, [1.0] * len(sizes), "calls in flight while the model works", "inc() before, dec() after, also of errors"
    )
    same(sum(metrics.gauge.notes), 0, "calls in flight in the end", "dec() in `finally`")
    same(metrics.sizes.notes, [float(size) for size in sizes], "rows", "rows.observe(len(rows)) of each call")
    same(metrics.histogram.notes, [size / 8 for size in fine], "seconds", "by the clock, of answered calls only")
    counts = {name: sum(meter.notes) for name, meter in metrics.ends.items() if sum(meter.notes)}
    same(counts, {"ok": len(fine), "error": len(raising)}, "requests by outcome", "each call once")


def largest_distance(x: np.ndarray, y: np.ndarray) -> float:
    """Return the largest distance between the shares of two samples that are at most some value."""
    values = np.concatenate([x, y])
    below = (np.mean(sample <= values[:, None], axis=1) for sample in (x, y))
    return float(np.abs(np.subtract(*below)).max())


@judges("psi", "ks")
def distances_are_measured(student: Any) -> None:
    """Check that `psi` is the sum of two of SciPy's relative entropies, and `ks` its definition, also with ties."""
    rng = draw()
    entropies, distances = list[Any](), list[Any]()
    for _ in range(12):
        bins = int(rng.integers(2, 15))
        a, b = ([int(rng.integers(1, 60)), *rng.integers(0, 60, bins - 1).tolist()] for _ in range(2))
        p, q = (np.array(counts) + 0.5 for counts in (a, b))
        truth = float(stats.entropy(p, q) + stats.entropy(q, p))
        entropies.append(((a, b), truth))
        x, y = rng.normal(size=int(rng.integers(1, 40))), rng.normal(0.5, 1, int(rng.integers(1, 40)))
        for first, second in ((x, y), (x.round(), y.round())):
            distances.append(((first.tolist(), second.tolist()), largest_distance(first, second)))
    agree_at_once(student, student.psi, entropies, "Σ (p − q) ln (p / q), with half a value more in every bin of both")
    agree_at_once(student, student.ks, distances, "the largest distance", abs=1e-12)


@judges("permutation_p")
def divisions_are_random(student: Any) -> None:
    """Check that `permutation_p` is the share of divisions with a statistic at least as large as the observed one.

    A division splits all values into a reference and a window. The divisions must hold all values, differ from one
    another, and follow from the seed.
    """
    rng = draw()

    def telling(a: Any, b: Any) -> float:
        division = tuple(numbers(a, "the reference")), tuple(numbers(b, "the window"))
        seen.append(division)
        # smaller than the observed 0.5, equal, larger, and larger in absolute value only
        return told.setdefault(division, float(rng.choice([-0.9, 0.2, 0.5, 0.7])))

    for m, n in zip(rng.integers(12, 20, 2).tolist(), rng.integers(8, 12, 2).tolist(), strict=True):
        reference, window = (part.tolist() for part in np.split(rng.permutation(m + n) / 8, [m]))
        permutations, seed = int(rng.integers(30, 45)), int(rng.integers(9))
        told, runs = {(tuple(reference), tuple(window)): 0.5}, list[tuple[float, list[Any]]]()
        for _ in range(2):
            seen: list[Any] = []
            found = student.permutation_p(telling, reference, window, permutations, seed)
            runs.append((number(found, "permutation_p"), seen))
        what, drawn = f"permutation_p with {permutations} divisions", seen[-permutations:]
        sizes = {(len(a), len(b)) for a, b in seen}
        expect(sizes == {(m, n)}, f"the statistic gets {m} and {n} values, as they were; it got {sorted(sizes)}")
        asked = len(seen) - permutations
        expect(1 <= asked <= 2, f"{what} and the observed one: the statistic was asked {len(seen)} times")
        whole = all(sorted([*a, *b]) == sorted([*reference, *window]) for a, b in seen)
        expect(whole, f"{what}: each holds all {m + n} values once: shuffle reference and window together")
        stayed = np.mean([len({*b} & {*window}) for _, b in drawn])
        mean, reach = stats.hypergeom.mean(m + n, n, n), 5 * stats.hypergeom.std(m + n, n, n) / math.sqrt(permutations)
        random = abs(stayed - mean) < reach and len({*drawn}) > 0.9 * permutations
        expect(random, f"{what}: they are not random; shuffle again for each, reference and window together")
        truth = (1 + sum(told[division] >= 0.5 for division in drawn)) / (permutations + 1)
        cause = "the share of all divisions, the observed one among them, that give as much or more: ties count (>=)"
        same(runs[1][0], truth, what, cause)
        expect(runs[0] == runs[1], "the same seed gives the same divisions, and the same p value")


def answer_equal(student: Any) -> None:
    """Check that the smallest window with a mean PSI below 0.1 is the first n with 9 (1/n + 1/10,000) < 0.1."""
    same(student.values_needed(), 91, "n", "1/n is below 0.1/9 − 1/10,000")


@judges("DriftAlarm.update")
def capital_is_staked(student: Any) -> None:
    """Check that the stakes of `DriftAlarm.update` agree with exact fractions for random factors.

    On a stream of shifted values, the alarm must be raised.
    """
    rng = draw()
    for _ in range(5):
        alarm, kept, stakes = student.DriftAlarm([1.0, 2.0, 3.0], spacing=1), Fraction(1), [Fraction(0)] * 4
        for n in range(1, int(rng.integers(2, 9))):
            factors = (rng.integers(0, 9, 4) / 4).tolist()
            alarm.n = n
            alarm.update(factors)
            new = kept - Fraction(1 / (1 + math.log(n + 1)))
            kept -= new
            stakes = [(stake + new / 4) * Fraction(factor) for stake, factor in zip(stakes, factors, strict=True)]
        same(alarm.kept, float(kept), "kept", "after the n-th value 1 / (1 + ln(n + 1)) is kept", abs=1e-12)
        same(alarm.stakes, [float(stake) for stake in stakes], "stakes", "stake first, then multiply", abs=1e-12)
    alarm = student.DriftAlarm(rng.normal(size=60).tolist(), spacing=1)
    rang = each(student, alarm.add, rng.normal(2, 1, 30).tolist())
    expect(flag(rang[-1], "the alarm"), "after 30 values shifted by two standard deviations the alarm fires")


def answer_alarms(student: Any) -> None:
    """Check that each of 40 alarms gets the level 0.01 / 40."""
    same(student.level_for_each(), 0.00025, "the level", "1 % divided by 40", rel=0.01)


def answer_production(student: Any) -> None:
    """Check the factor for 2 % of a week's budget in an hour, and the request at which 12 values of 16 users count."""
    same(student.factor_for_a_week(), 3.36, "the factor", "0.02 × 168 hours", rel=1e-3)
    same(student.request_of_alarm(), 177, "the request", "11 users with 16 requests each, and the first of the next")
