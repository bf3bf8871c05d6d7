"""Hidden checks for module 16, with a fake metrics registry and random inputs.

Exact fractions and SciPy's tests supply the expected values.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from itertools import product
from operator import attrgetter
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from tinybench.pareto import Requirements
from tinybench.result import BenchmarkResult


@judges("error_budget", "burn_rate")
def budgets_burn(student: Any) -> None:
    """Check that `error_budget` and `burn_rate` agree with exact fractions.

    Without failures or without requests, the burn rate must be 0.
    """
    rng = draw()
    budgets, rates = list[Any](), list[Any]()
    for _ in range(20):
        objective, total = float(rng.integers(1, 1000)) / 1000, int(rng.integers(1, 9_000_000))
        bad = int(rng.integers(0, total + 1))
        allowed = (1 - Fraction(objective)) * total
        budgets.append(((objective, total), float(allowed)))
        rates.append(((bad, total, objective), float(bad / allowed)))
    agree_at_once(student, student.error_budget, budgets, "(1 − objective) × requests", rel=1e-7)
    agree_at_once(student, student.burn_rate, rates, "bad over the budget", rel=1e-7)
    agrees(student.burn_rate, 0.0, [(0, 0, 0.99), (0, 500, 0.9)], "nothing is spent")


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
        agrees(student.increase, float(steps.sum()), [(readings,)], "a counter that falls began anew at 0")
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


def score_interval(correct: int, total: int) -> tuple[float, float]:
    """Return the shares that a score test at 95 % accepts: |correct / total − p| ≤ z √(p (1 − p) / total)."""
    share, width = correct / total, NormalDist().inv_cdf(0.975) ** 2 / total
    middle = share + width / 2
    half = math.sqrt(middle**2 - (1 + width) * share**2)
    return (middle - half) / (1 + width), (middle + half) / (1 + width)


@judges("may_ship")
def intervals_decide(student: Any) -> None:
    """Check that `may_ship` decides by intervals, and cannot tell where a limit lies inside an interval.

    Expected findings use the interval of the score test, the largest memory, and constant throughputs.
    """
    rng = draw()
    seen = list[str]()
    while len(seen) < 24 or len(set(seen)) < 3:
        total = int(rng.integers(20, 900))
        correct, needed = int(rng.integers(total // 2, total + 1)), round(float(rng.uniform(0.6, 1)), 3)
        low, high = score_interval(correct, total)
        most, least = rng.integers(1, 9, 2).tolist()
        memory, speed = (int(rng.choice([limit, rng.integers(1, 9)])) for limit in (most, least))  # often at the limit
        truth = {
            "accuracy_min": "met" if low >= needed else "missed" if high < needed else "cannot tell",
            "memory_max_mb": "met" if memory <= most else "missed",
            "throughput_min_qps": "met" if speed >= least else "missed",
        }
        results = {
            "accuracy_min": BenchmarkResult("accuracy", [correct / total], {"correct": correct, "total": total}),
            "memory_max_mb": BenchmarkResult("memory", [memory * 0.5e6, memory * 1e6], unit="B"),
            "throughput_min_qps": BenchmarkResult("throughput", [float(speed)] * 40),
        }
        limits = {"accuracy_min": needed, "memory_max_mb": most, "throughput_min_qps": least}
        asked = [name for name in limits if rng.random() < 0.7]
        absent = [name for name in asked if rng.random() < 0.2]
        found = {name: "cannot tell" if name in absent else truth[name] for name in asked}
        says = {"missed": "do not ship", "cannot tell": "cannot tell", "met": "ship"}
        verdict = next((says[word] for word in says if word in found.values()), "ship")
        known = {name: result for name, result in results.items() if name not in absent}
        decision = student.may_ship(known, Requirements(**{name: limits[name] for name in asked}))
        what = f"may_ship with the findings {found}"
        same(text(decision.verdict, "the verdict"), verdict, what)
        same(decision.findings, found, "its findings")
        seen.append(verdict)


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
        expect(random, f"{what}: they are not random; shuffle anew for each, reference and window together")
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
    expect(flag(rang[-1], "the alarm"), "after 30 values shifted by two standard deviations the alarm rings")


def answer_alarms(student: Any) -> None:
    """Check that each of 40 alarms gets the level 0.01 / 40."""
    same(student.level_for_each(), 0.00025, "the level", "1 % divided by 40", rel=0.01)


# ---- A/B tests


@judges("users_needed")
def users_are_enough(student: Any) -> None:
    """Check that `users_needed` returns the fewest users that reach the power, by the normal distribution."""
    rng = draw()
    for _ in range(25):
        share, level, power = (
            float(rng.uniform(0.01, 0.6)),
            float(rng.uniform(0.005, 0.2)),
            float(rng.uniform(0.55, 0.97)),
        )
        change = float(rng.choice([-1, 1]) * rng.uniform(0.1, 0.6) * share)
        case = {"share": share, "change": change, "level": level, "power": power}
        told = number(student.users_needed(**case), "users_needed")
        what = f"users_needed({', '.join(f'{name}={value:.4g}' for name, value in case.items())})"
        expect(told == int(told) >= 1, f"{what}: expected whole users, got {told}")

        def reached(n: float, p: float = share, q: float = share + change, alpha: float = level) -> float:
            error = math.sqrt((p * (1 - p) + q * (1 - q)) / n)
            return NormalDist().cdf(abs(q - p) / error - NormalDist().inv_cdf(1 - alpha / 2))

        near = 1e-9
        expect(reached(told) >= power - near, f"{what}: {told:g} users give a power of {reached(told):.4f} only")
        if told > 1:
            expect(reached(told - 1) < power + near, f"{what}: {told - 1:g} users are enough; got {told:g}")


@judges("share_e_value")
def evidence_of_shares(student: Any) -> None:
    """Check that `share_e_value` agrees with exact fractions, and is finite for huge counts.

    If events follow the given share, the mean e-value over all outcomes must be 1.
    """
    rng = draw()
    for _ in range(30):
        both, parts = int(rng.integers(0, 60)), int(rng.integers(1, 20))
        new, share = int(rng.integers(0, both + 1)), Fraction(parts, 20)
        old = both - new
        beta = Fraction(math.factorial(new) * math.factorial(old), math.factorial(both + 1))
        truth = float(beta / (share**new * (1 - share) ** old))
        cause = "B(new + 1, both − new + 1) / (share^new (1 − share)^(both − new))"
        agrees(student.share_e_value, truth, [(new, both, float(share))], cause, rel=1e-8)
        if parts == 10:
            agrees(student.share_e_value, truth, [(new, both)], f"{cause}, at one half by default", rel=1e-8)
    for both in rng.integers(1000, 5000, 3).tolist():  # the factors, without logarithms, are below the smallest float
        new = round(both * 0.3)
        log = math.lgamma(new + 1) + math.lgamma(both - new + 1) - math.lgamma(both + 2)
        truth = math.exp(log - new * math.log(0.3) - (both - new) * math.log(0.7))
        agrees(student.share_e_value, truth, [(new, both, 0.3)], "add logarithms, and take exp at the end", rel=1e-6)
    n, s = int(rng.integers(3, 12)), float(rng.uniform(0.05, 0.95))
    mean = sum(
        math.comb(n, k) * s**k * (1 - s) ** (n - k) * number(student.share_e_value(k, n, s), "an e value")
        for k in range(n + 1)
    )
    same(mean, 1.0, f"the mean of share_e_value over all {n} events at a share of {s:.3g}", "a fair bet", rel=1e-8)
    for case in ((50_000, 50_000, 0.05), (0, 50_000, 0.9)):
        told = number(student.share_e_value(*case), "share_e_value")
        expect(1e250 < told < math.inf, f"share_e_value{case}: expected a huge number, e⁷⁰⁰ at most, got {told}")


def answer_failures(student: Any) -> None:
    """Check that the answers are the first k at which 20^k / (k + 1), or 2^k / (k + 1), reaches 100.

    The canary gets 5 % (1/20) of the users, and the A/B test 50 % (1/2).
    """
    for function, rate in ((student.failures_at_5_percent, 20), (student.failures_at_50_percent, 2)):
        first = next(k for k in range(1, 99) if Fraction(rate**k, k + 1) >= 100)
        same(function(), first, "the number of failures", f"{rate}^k / (k + 1) ≥ 100")


def answer_unit(student: Any) -> None:
    """Check that the false-alarm rate per request is the two-sided normal tail probability beyond 1.96 / √16."""
    truth = math.erfc(1.959964 / 4 / math.sqrt(2))
    same(student.false_alarms_per_request(), truth, "the share of false alarms", "both tails beyond 1.96 / 4", rel=0.03)


@judges("in_canary")
def users_stay_where_they_are(student: Any) -> None:
    """Check that `in_canary` is true exactly if the hash of salt and user, as a fraction, lies below the share.

    The shares are just below and just above each user's fraction, random, 0 and 1.
    """
    rng = draw()
    for user in [*words(rng, 8), "", "Zoë", "用户 7"]:
        salt = str(rng.choice(["", "v2 ", "ü-"]))
        digest = hashlib.new("sha256", f"{salt}{user}".encode()).hexdigest()
        place = int(digest[:16], 16) / 16**16
        for share in (max(0.0, place - 1e-6), min(1.0, place + 1e-6), float(rng.uniform()), 0.0, 1.0):
            given = (user, share, salt) if salt else (user, share)
            told = flag(student.in_canary(*given), "in_canary")
            cause = "the first 8 bytes of SHA-256 of salt + user, by 2⁶⁴"
            same(told, place < share, f"in_canary{given}", f"{cause}: {place:.6g}")


@judges("advance")
def a_rollout_goes_its_way(student: Any) -> None:
    """Check that `advance` returns the next state of a rollout by the rules.

    A running rollout receives all kinds of observations in every stage, and a finished one a random selection.
    """
    rng = draw()
    either = (False, True)
    kinds = list(product(range(4), either, either, either))
    final = [kinds[i] for i in rng.choice(len(kinds), 8, replace=False)]
    looks = [("running", *kind) for kind in kinds]
    looks += [(status, *kind) for status, kind in zip(["promoted", "rolled back"] * 4, final, strict=True)]
    harms = rng.permutation(list(product((20.0, 100.0, 1000.0), (1.0, 1.5, 1e6)))).tolist()
    given = list[tuple[Any, ...]]()
    expected = list[tuple[Any, ...]]()
    for status, stage, fresh, harm, enough in looks:
        decisive = (status, fresh, harm) == ("running", True, True)  # eight looks, each with other harm
        stop_at, times = harms.pop() if decisive else (float(rng.choice([20.0, 100.0, 1000.0])), 1.5)
        patience = int(rng.choice([1, 3, 5]))
        blind = int(rng.integers(max(0, patience - 2), patience + 1))
        why = "slow" if status == "rolled back" else ""
        names = words(rng, max((stage + enough) % 4, int(harm)))  # from none to three, whatever else there is
        parts = rng.permutation([0.01, 0.6, 0.99])[: len(names)] * rng.uniform(0.9, 1)  # three are more than `stop_at`
        evidence = dict(zip(names, (stop_at * parts).tolist(), strict=True))
        worst = sorted(names)[stage % len(names)] if harm else ""  # the first by name, or the last
        if harm:
            evidence[worst] = stop_at * times
        if status != "running":
            truth: tuple[Any, ...] = (stage, status, blind, why)
        elif not fresh:
            back = blind + 1 >= patience
            truth = (stage, "rolled back" if back else "running", blind + 1, "blind" if back else "")
        elif worst:
            truth = (stage, "rolled back", 0, worst)
        elif not enough:
            truth = (stage, "running", 0, "")
        else:
            truth = (3, "promoted", 0, "") if stage == 3 else (stage + 1, "running", 0, "")
        given.append((stage, status, blind, why, fresh, evidence, enough, stop_at, patience))
        expected.append(truth)
    columns = [*zip(*given, strict=True)]
    states = each(student, student.RolloutState, *columns[:4])
    seen = each(student, student.Seen, *columns[4:7])
    fields = "stage", "status", "blind", "why"
    for by_default in (False, True):
        rows = [i for i, row in enumerate(given) if (row[7:] == (100.0, 3)) == by_default]
        limits = [] if by_default else [[columns[k][i] for i in rows] for k in (7, 8)]
        new = each(student, student.advance, [states[i] for i in rows], [seen[i] for i in rows], *limits)
        for i, found in zip(rows, each(student, attrgetter(*fields), new), strict=True):
            stage, status, blind, _, fresh, evidence, enough, *_ = given[i]
            what = f"stage {stage}, {status}, blind {blind}, after fresh {fresh}, evidence {evidence}, enough {enough}"
            told = dict(zip(fields, items(found, what, 4), strict=True))
            same(told, dict(zip(fields, expected[i], strict=True)), what)


# ---- history
@judges("best_split")
def series_divide_best(student: Any) -> None:
    """Check that `best_split` finds the split with the largest rank-sum statistic, with and without ties."""
    rng = draw()
    for n in (2, 3, 8, 31):
        for series in (rng.normal(size=n), rng.integers(0, 4, n).astype(float), np.sort(rng.exponential(size=n))):
            ranks = [float(np.sum(series < x) + (np.sum(series == x) + 1) / 2) for x in series]
            scores = []
            for k in range(1, n):
                expected = k * (n + 1) / 2
                scores.append(abs(sum(ranks[:k]) - expected) / math.sqrt(k * (n - k) * (n + 1) / 12))
            what = f"best_split of {n} values"
            place, score = items(student.best_split(series.tolist()), what, 2)
            same(score, max(scores), f"{what}, the score", "the largest of all k from 1 to n − 1", abs=1e-9)
            best = [k for k, one in enumerate(scores, 1) if one > max(scores) - 1e-9]
            expect(number(place, what) in best, f"{what}: expected the place {best[0]}, got {place}")


@judges("change_points")
def changes_are_found(student: Any) -> None:
    """Check that `change_points` finds clear steps of random size, and none in a series without a step.

    The p-value must be exact. Each part must be searched again at half the level, if it is long enough.
    """
    rng = draw()
    often: dict[str, Any] = {"level": 0.4, "permutations": 9}  # enough for steps as clear as these
    for places, how in (((30,), often), ((20, 45), often), ((15, 32, 50), {**often, "fewest": 9})):
        shift = np.sum([np.arange(65) >= place for place in places], axis=0)
        sign, size = float(rng.choice([-1, 1])), float(rng.uniform(1, 9))
        series = sign * size * shift + np.resize([0.1, 0.2, 0.0, 0.3], 65)  # between the steps nothing rises or falls
        told = numbers(student.change_points(series.tolist(), **how), "change_points")
        same(told, list(places), f"change_points of steps at {places}", "each part is asked again; indices in order")
    flat = (np.arange(65) % 2 + rng.normal()).tolist()
    same(student.change_points(flat, 0.05, permutations=19), [], "change_points of what changes each time", "no step")
    steep = [*rng.uniform(0, 1, 9).tolist(), *rng.uniform(9, 10, 9).tolist()]
    same(student.change_points(steep, permutations=99), [9], "change_points of 18 values", "p is 1/100")
    low, high = sorted(rng.normal(size=3).tolist()), sorted((10 + rng.normal(size=3)).tolist())
    six, why = [*low, *high], "10 % of the orders of six values divide as well"
    same(student.change_points(six, 0.3, 3, 49), [3], "change_points of six values at 30 %", why)
    same(student.change_points(six, 0.02, 3, 49), [], "change_points of six values at 2 %", why)
    same(student.change_points(six, 0.3, 4, 99), [], "change_points of six values with fewest=4", "too short")
    begin = (rng.permutation(3) - 30.0).tolist()
    found = student.change_points([*begin, *low[:2], *high[:2]], 0.98, 2, 59)
    why = "parts may be as short as `fewest`; a third of the orders of four divide as well"
    same(found, [3, 5], "change_points at 98 % of three values, then two and two", why)
    a, b, c, d, e, f = np.sort(rng.normal(size=6)).tolist()
    found = student.change_points([*begin, f, d, c, b, e, a], 0.98, 3, 39)
    why = "half the level; three quarters of the orders of six divide as well"
    same(found, [3], "change_points at 98 % of three values, then six", why)
    never = student.change_points([1.5] * 12, 0.05, 5, 19)
    same(never, [], "change_points of what never moves", "all orders are alike")
    step = [*rng.uniform(0, 1, 20).tolist(), *rng.uniform(9, 10, 20).tolist()]
    same(student.change_points(step, 0.01, 15, 49), [], "change_points with 49 permutations", "p is at least 1/50")
    same(student.change_points(step, 0.02, 15, 49), [20], "change_points with 49 permutations at 2 %", "p is 1/50")


def answer_production(student: Any) -> None:
    """Check that the users who met a failure are 10 % of 2,000 · 5 % and of 2,000 · 20 %.

    A slowdown of both versions must cancel in the ratio.
    """
    same(student.users_who_met_it(), 50, "the users", "(100 + 400) · 0.1", rel=0.01)
    truth = 0.97 * 1.05 / 1.05
    same(student.ratio_changes_by(), truth, "the factor", "the machine slows both", rel=1e-3)
