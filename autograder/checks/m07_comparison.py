"""Hidden checks for module 07, with simulated races between two models and a fake clock.

SciPy and closed forms supply the expected values.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from scipy import integrate, stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.m03_latency import Clock, named
from tinybench.result import BenchmarkResult
from tinybench.support.comparisons.cautions import independent_values
from tinybench.support.comparisons.two_samples import compare_apart

NAN, INF = math.nan, math.inf
NO_RATIO = {"ratio": NAN, "ratio_ci": (NAN, NAN)}
UNDECIDED = "undecided: needs {} more rounds"


def _latency(values: Any, metric: str = "latency", unit: str = "s", **metadata: Any) -> BenchmarkResult:
    return BenchmarkResult(metric, np.asarray(values, float).tolist(), unit=unit, metadata=metadata)


def _balanced(rng: np.random.Generator, scale: float, size: int) -> np.ndarray:
    """Return noise in pairs of opposite sign, so that a verdict does not depend on a lucky draw."""
    return np.resize([1.0, -1.0], size) * scale * np.repeat(rng.standard_normal(size // 2), 2)


def _samples(rng: np.random.Generator, *kinds: tuple[float, float, int]) -> list[list[float]]:
    """Return one normal sample for each triple of mean, standard deviation and size."""
    return [rng.normal(mean, std, size).tolist() for mean, std, size in kinds]


def _lower_rank(n: int, confidence: float) -> int:
    """Return the rank of the value at the lower end of the median's interval."""
    return int(np.sum(stats.binom.cdf(np.arange(n), n, 0.5) <= (1 - confidence) / 2))


def _runs(n: int, half: float, distance: float, confidence: float = 0.95, power: float = 0.8) -> int:
    """Return the number of runs needed for a decision, by the formula of `runs_to_decide`."""
    widening: float = 1 + stats.norm.ppf(power) / stats.norm.ppf(0.5 + confidence / 2)
    return max(6, math.ceil(n * (half / distance * widening) ** 2))


@judges("median_ratio")
def ratio_is_the_median_of_pairs(student: Any) -> None:
    """Check that `median_ratio` returns the median of the ratios per round, with order statistics as its interval."""
    rng = draw()

    def by_ranks(a: list[float], b: list[float], confidence: float = 0.95) -> list[float]:
        ratios, lower = np.sort(np.divide(a, b)), _lower_rank(len(a), confidence)
        return [math.exp(np.median(np.log(ratios))), ratios[lower - 1], ratios[len(a) - lower]]

    for n, confidence in ((6, 0.95), (25, 0.95), (40, 0.8), (101, 0.99)):
        b = rng.lognormal(0, 1, n)
        cause = "median and order statistics of log(a/b), round by round, and exp of all three"
        cases = [((b * rng.lognormal(0.1, 0.2, n)).tolist(), b.tolist(), confidence)]
        agrees(student.median_ratio, by_ranks, cases, cause)
    few = items(student.median_ratio([1.0] * 5, [2.0] * 5), "the ratio of 5 rounds with its ends", 3)
    same(few[1:], [0, INF], "the interval of 5 rounds", "they have none of 95 %")
    refuses(student.median_ratio, ([1.0] * 7, [1.0] * 8), mentions=["7", "8"])
    ones = [1.0] * 8
    for bad in ([1.0, 0.0] * 4, [1.0, -1.0] + [1.0] * 6):
        refuses(student.median_ratio, (bad, ones), (ones, bad))


@judges("sign_test")
def sign_test_counts(student: Any) -> None:
    """Check that `sign_test` returns the exact binomial p-value, and counts ties for neither model."""
    rng = draw()
    pairs = [_samples(rng, (0.3, 1, n), (0, 1, n)) for n in (1, 5, 12, 60, 301)]

    def binomial(a: list[float], b: list[float]) -> float:
        return float(stats.binomtest(sum(x > y for x, y in zip(a, b, strict=True)), len(a)).pvalue)

    cases = [case for a, b in pairs for case in ((a, b), (b, a))]
    agrees(student.sign_test, binomial, cases, "twice the upper tail, at most 1", rel=1e-7)
    truth, cause = min(1.0, 2 * float(stats.binom.sf(8, 12, 0.5))), "ties stay in n, and count for neither side"
    agrees(student.sign_test, truth, [([2.0] * 9 + [1.0] * 3, [1.0] * 12)], cause)
    agrees(student.sign_test, 1.0, [([1.0] * 4, [1.0] * 4)], cause)


def answer_sign(student: Any) -> None:
    """Check that the answer for 60 wins in 100 rounds is the binomial p-value."""
    truth = stats.binomtest(60, 100).pvalue
    same(student.p_of_sixty_in_a_hundred(), truth, "the p value", "count 60 of 100 in sign_test", rel=0.01)


@judges("runs_to_decide")
def runs_follow_from_the_distance(student: Any) -> None:
    """Check that `runs_to_decide` follows its formula, with at least 6 and at most 10^9 runs."""
    rng = draw()
    sizes, rows = rng.integers(6, 300, 8), rng.uniform((0.01, 0.01, 0.8, 0.6), (0.1, 0.1, 0.99, 0.95), (8, 4))
    cases = [(int(n), *np.round(row, 3).tolist()) for n, row in zip(sizes, rows, strict=True)]
    cases += [(100, 0.02, 0.01, 0.95, 0.8), (30, 0.05, 0.04, 0.95, 0.9)]
    cases += [(50, 0.1, 0.02, 0.8, 0.8), (200, 0.01, 0.05, 0.95, 0.8)]
    agrees(student.runs_to_decide, _runs, cases, "n (h/δ)² (1 + z_power/z_confidence)², rounded up, at least 6")
    agrees(student.runs_to_decide, 6, [(4, INF, 0.1)], "there is no interval below 6 rounds")
    agrees(student.runs_to_decide, 10**9, [(50, 0.1, 0.0), (50, 0.1, 1e-12)], "at most 10**9, where nothing decides it")


@judges("decide")
def verdicts_follow_from_the_interval(student: Any) -> None:
    """Check that `decide` returns the right one of its four verdicts, also at and near the limits between them."""
    rng = draw()
    near, far, margin, scale = rng.uniform((0.01, 0.15, 0.02, 1.1), (0.1, 0.4, 0.05, 2)).tolist()
    middle, n = (near + far) / 2, int(rng.integers(10, 200))
    faster = [(-middle, (-far, -near), n, 0.0), (-middle, (-far, -margin / scale), n, margin)]
    agrees(student.decide, "faster", [*faster, (-0.2, (-0.3, -0.1), 20, 0.0), (-0.2, (-0.3, -0.005), 20, 0.02)])
    slower = [(middle, (near, far), n, 0.0), (middle, (margin / scale, far), n, margin)]
    agrees(student.decide, "slower", [*slower, (0.2, (0.1, 0.3), 20, 0.0), (0.2, (0.01, 0.3), 20, 0.02)])
    equal = [(margin / 9, (-margin / scale, margin), n, margin), (-margin / 2, (-margin, -margin / 9), n, margin)]
    equal += [(0.0, (-0.01, 0.015), 20, 0.02), (-0.01, (-0.02, -0.001), 20, 0.02), (0.01, (0.001, 0.02), 20, 0.02)]
    agrees(student.decide, "equivalent", equal)
    unclear = [(0.02, (-0.01, 0.06), 50, 0.0, 0.95), (0.001, (-0.03, 0.03), 80, 0.02, 0.95)]
    unclear += [(0.03, (-0.01, 0.07), 80, 0.04, 0.9)]
    for shift, half, margin, confidence in rng.uniform((-0.8, 0.03, 0, 0.8), (0.8, 0.1, 0.02, 0.99), (6, 4)).tolist():
        change = shift * half  # 0 lies inside the interval, which is wider than the margin
        interval = change - half, change + half
        unclear.append((change, interval, int(rng.integers(10, 99)), margin, round(confidence, 2)))

    def more(change: float, interval: tuple[float, float], n: int, margin: float, confidence: float) -> str:
        half, distance = (interval[1] - interval[0]) / 2, max(abs(change), margin - abs(change))
        rounds = max(1, _runs(n, half, distance, confidence) - n)
        if rounds == 1:
            return "undecided: needs about 1 more round"
        return UNDECIDED.format(f"about {rounds:,}" if rounds <= 10**6 else "over 1,000,000")

    agrees(student.decide, more, unclear)
    cause = "0 without margin never decides"
    agrees(student.decide, UNDECIDED.format("over 1,000,000"), [(0.0, (-0.1, 0.1), 50)], cause)
    agrees(student.decide, UNDECIDED.format("about 2"), [(-0.3, (-1.0, INF), 4)], "an interval takes 6 rounds")


@judges("compare_rounds")
def compare_pairs(student: Any) -> None:
    """Check that the numbers of a paired comparison are right, and that results with the same pairing mark are paired.

    `compare_rounds` computes these numbers.
    """
    rng = draw()
    y = 1e-3 * (1 + np.abs(np.cumsum(rng.normal(0, 0.3, 60))))
    x = y * 0.9 * np.exp(shuffled(rng.normal(0, 0.02, 60)))
    together = {"pairing": "one", "order": "shuffled rounds"}
    a, b = _latency(x, model="A", **together), _latency(y, model="B", **together)
    found = student.compare(a, b, confidence=0.9, margin=0.01)
    holds(found, {"paired": True}, "comparison", "two results with the same pairing mark pair by themselves")
    x, y = map(np.array, independent_values(x.tolist(), y.tolist(), True)[:2])
    ratios, differences, lower = np.sort(x / y), np.sort(x - y), _lower_rank(len(x), 0.9)
    truth: dict[str, Any] = {"ratio": math.exp(np.median(np.log(ratios))), "difference": float(np.median(differences))}
    truth |= {"ratio_ci": [ratios[lower - 1], ratios[-lower]]}
    truth |= {"difference_ci": [differences[lower - 1], differences[-lower]]}
    holds(found, truth, "comparison of pairs", "medians of ratios and of x − y; pass confidence on")
    p = stats.binomtest(int(np.sum(differences > 0)), len(x)).pvalue
    same(found.p_value, p, "the p value of pairs", "sign_test", rel=1e-6)
    holds(found, {"name_a": "A", "name_b": "B", "verdict": "faster"}, "comparison")
    same(student.compare(b, a).ratio, 1 / found.ratio, "the ratio of b against a")
    holds(student.compare(a, b, margin=0.5), {"verdict": "equivalent"}, "comparison at 50 %", "pass the margin on")
    same(student.compare(a, _latency(y, pairing="two")).paired, False, "paired for results of different sessions")
    lower, few = (student.compare(x[:n].tolist(), y[:n].tolist(), paired=True).verdict for n in (20, 4))
    same(lower, "lower", "the verdict on less of an unknown metric")
    same(few, UNDECIDED.format("about 2"), "the verdict after 4 rounds")


@judges("compare_rounds")
def compare_without_a_ratio(student: Any) -> None:
    """Check that `compare_rounds` returns no ratio for values at or below zero, so that the difference decides."""
    rng = draw()
    x, y = _samples(rng, (0, 1, 30), (5, 1, 30))
    found = student.compare(_latency(x, "growth", "B"), _latency(y, "growth", "B"), paired=True)
    holds(found, {"ratio": NAN, "verdict": "lower"}, "comparison of values below 0", "the difference decides")
    equal = student.compare(x, np.add(x, _balanced(rng, 0.5, 30)).tolist(), paired=True)
    verdict = text(equal.verdict, "the verdict")
    expect(verdict.startswith("undecided"), f"nothing differs here, and the verdict is {verdict!r}")
    zero = entries(student.compare_rounds([0.0, 1.0], [1.0, 1.0]), "compare_rounds of a 0")
    holds(zero, {"ratio": NAN, "ratio_ci": (NAN, NAN)}, "compare_rounds of a 0", "there is no ratio")


@judges("gate_verdict")
def gate_knows_three_answers(student: Any) -> None:
    """Check that `gate_verdict` and `regression_gate` return the right verdict: passes, fails or cannot tell.

    The metric is latency or throughput. More throughput is better.
    """
    rng = draw()
    base = np.exp(_balanced(rng, 0.01, 60))
    for change, limit in ((0.03, 0.05), (0.03, 0.0)):
        changed = (1 + change) * np.exp(_balanced(rng, 0.01, 60))
        verdict, what = "passes" if limit else "fails", f"gate on {change:+.0%} with a limit of {limit:.0%}"
        metric = str(rng.choice(["latency", "throughput"]))
        before, after = (base, changed) if metric == "latency" else (changed, base)
        slower = compare_apart(*independent_values(changed.tolist(), base.tolist(), False)[:2])
        gate = student.regression_gate(*(BenchmarkResult(metric, each.tolist()) for each in (before, after)), limit)
        compared = {"slowdown": slower["ratio"] - 1, "interval": [end - 1 for end in slower["ratio_ci"]]}
        holds(gate, compared, what, "subtract 1 from compare's ratio and from both ends of its interval", abs=1e-9)
        holds(gate, {"verdict": verdict, "needs": None}, what)
    for _ in range(4):
        half, limit, far, level = rng.uniform((0.01, 0.02, 0.1, 0.8), (0.1, 0.2, 0.9, 0.99)).tolist()
        n, slowdown = int(rng.integers(8, 90)), limit + half * far * float(rng.choice([-1, 1]))
        needed = max(n + 1, _runs(n, half, abs(slowdown - limit), level))
        case = (slowdown, (slowdown - half, slowdown + half), n, limit, level)
        cause = "runs_to_decide from the distance to the limit, at least one run more"
        agrees(student.gate_verdict, [f"cannot tell: needs {needed} runs", needed], [case], cause)
    some, other = rng.uniform(0.02, 0.2, 2).tolist()
    clear = [(some, (some / 5, some / 2), 40), (some, (-some / 5, some / 5), 40), (some, (-0.3, -0.1), 12)]
    clear += [(other, (1.2 * other, 3 * other), 30), (0.0, (other / 5, other / 2), 30)]
    for limit, ends, n in (*clear, (0.02, (0.03, 0.09), 20), (0.1, (-0.2, 0.1), 8), (0.0, (-0.3, -0.1), 8)):
        truth = "fails" if ends[0] > limit else "passes"
        agrees(student.gate_verdict, [truth, None], [(sum(ends) / 2, ends, n, limit)], "both ends against the limit")


def _fortune(more: int, n: int) -> float:
    """Return the e-value of `more` wins in `n` rounds."""
    return math.exp(n * math.log(2) + math.lgamma(more + 1) + math.lgamma(n - more + 1) - math.lgamma(n + 2))


@judges("sign_e_value")
def evidence_is_a_fair_bet(student: Any) -> None:
    """Check that `sign_e_value` equals its defining integral and is finite for large counts.

    If both models are equally fast, the mean e-value must be 1.
    """
    rng, bet, cause = draw(), student.sign_e_value, "2ⁿ · B(k + 1, n − k + 1)"

    def integral(more: int, n: int) -> float:
        return float(2.0**n * integrate.quad(lambda t: t**more * (1 - t) ** (n - more), 0, 1)[0])

    agrees(bet, integral, [(0, 0), (1, 1), (3, 10), (10, 10), (30, 40), (55, 100)], cause, rel=1e-5)
    cases = [(int(rng.integers(n + 1)), n) for n in rng.integers(2, 120, 12).tolist()]
    agrees(bet, lambda more, n: 2**n / ((n + 1) * math.comb(n, more)), cases, cause)
    for n in (5, 20):
        mean = sum(stats.binom.pmf(k, n, 0.5) * number(bet(k, n), f"sign_e_value({k}, {n})") for k in range(n + 1))
        same(mean, 1.0, f"the mean fortune after {n} fair rounds", "a fair bet keeps its mean", rel=1e-6)
    big = number(bet(9000, 10_000), "sign_e_value(9000, 10000)")
    expect(math.isfinite(big) and big > 1e300, f"sign_e_value(9000, 10000) should be huge and finite, it is {big}")
    even = number(bet(500, 1000), "sign_e_value(500, 1000)")
    expect(0 <= even < 1, "an even count of 1000 rounds is evidence for nothing: e < 1")


@judges("anytime_interval")
def anytime_interval_inverts_the_bet(student: Any) -> None:
    """Check that `anytime_interval` holds the medians whose e-value stays below `stop_at`.

    Its ends must be order statistics of the values.
    """
    rng = draw()

    def between(values: list[float], stop_at: float) -> list[float]:
        n, ordered = len(values), sorted(values)
        rank = sum(_fortune(k, n) >= stop_at for k in range(n // 2))
        return [ordered[rank - 1], ordered[n - rank]] if rank else [-INF, INF]

    kinds = ((8, 20.0), (30, 20.0), (200, 20.0), (75, 100.0), (7, 5.0))
    cases = [(rng.normal(0, 1, n).tolist(), stop_at) for n, stop_at in kinds]
    agrees(student.anytime_interval, between, cases, "the last values from either side that the bet refuses", rel=0)
    agrees(student.anytime_interval, [-INF, INF], [[1.0] * 7], "of 7 values e = 2⁷/8 = 16 < 20 refuses nothing")


def _rounds_to(evidence: float) -> int:
    """Return the number of rounds, all won by one model, after which the e-value reaches `evidence`."""
    return next(n for n in range(1, 99) if 2**n / (n + 1) >= evidence)


def _bets(hits: np.ndarray) -> np.ndarray:
    """Return the e-value after each round, or 1 where at most half of the rounds so far are hits."""
    counted = enumerate(np.cumsum(hits).tolist(), start=1)
    return np.array([_fortune(k, n) if 2 * k > n else 1.0 for n, k in counted])


def _first(evidence: np.ndarray, stop_at: float = 20.0) -> int:
    """Return the first round at which the evidence reaches `stop_at`, or the number of rounds plus 1."""
    return int(np.argmax([*(evidence >= stop_at), True])) + 1


class Race:
    """A simulated race that supplies the times of two models and logs the order in which models are timed.

    Calling the race returns whether the time is up, which is the case after the last round. No clock is read.
    """

    def __init__(self, times: Mapping[str, np.ndarray]) -> None:
        self.left, self.log = {name: iter(each.tolist()) for name, each in times.items()}, list[str]()
        self.calls = sum(map(len, times.values()))

    @property
    def standing(self) -> bool:  # sent with each time, so that reading it costs no message of its own
        return len(self.log) >= self.calls

    def __call__(self) -> bool:
        return self.standing

    def measure(self, name: str) -> float:
        expect(not self.standing, "until_decided goes on after the time is up: ask time_is_up() after each round")
        self.log.append(name)
        return float(next(self.left[name]))


def _race(
    student: Any, rng: np.random.Generator, a: np.ndarray, b: np.ndarray, what: str, cause: str, **settings: float
) -> np.ndarray:
    """Run `until_decided` on the times `a` and `b`. Raise CheckFailed unless it stops once the race is decided.

    Return, for each round, whether the model with the times `a` was timed first.
    """
    names, coin = words(rng, 2), random.Random(int(rng.integers(1000)))
    race = Race(dict(zip(names, (a, b), strict=True)))
    found = number(student.until_decided(names, race.measure, race, coin=coin, **settings), "until_decided")
    stop_at, margin = settings.get("stop_at", 20.0), settings.get("margin", 0.0)
    ahead = np.maximum(_bets(a > b), _bets(a < b))
    inside = np.minimum(_bets(a > (1 - margin) * b), _bets(a < (1 + margin) * b))
    rounds = min(len(a), _first(np.maximum(ahead, inside), stop_at))
    same(len(race.log) / 2, rounds, f"rounds {what}", cause)
    each_once = all(set(race.log[i : i + 2]) == set(names) for i in range(0, 2 * rounds, 2))
    expect(each_once, "a round should time each model exactly once")
    same(found, ahead[:rounds].max(), f"the evidence for a winner in {rounds} rounds {what}", cause, rel=1e-6)
    return np.array([name == names[0] for name in race.log[::2]])


@judges("until_decided")
def live_stops_in_time(student: Any) -> None:
    """Check that `until_decided` stops at the first round with enough evidence, or when the time is up.

    A fair coin must decide in each round which model is timed first.
    """
    rng, orders = draw(), list[np.ndarray]()

    def race(wins: Sequence[float] | np.ndarray, what: str, cause: str, **settings: float) -> None:
        """Race a model that is slower in rounds where `wins` is 1, faster where `wins` is 0, and tied where it is ½."""
        b = rng.uniform(0.001, 0.003, len(wins))
        slower, faster = rng.uniform((1.1, 0.5), (2, 0.9)).tolist()
        a = b * np.select([np.equal(wins, 1), np.equal(wins, 0)], [slower, faster], 1.0)
        orders.append(_race(student, rng, a, b, what, cause, **settings))

    side = int(rng.integers(2))
    for winner, stop_at in ((side, 20.0), (1 - side, float(rng.uniform(100, 900)))):
        what, cause = (
            f"to e ≥ {stop_at:g}, all won by one model",
            "ask for the evidence after every round, stop at e ≥ stop_at",
        )
        race([winner] * 20, what, cause, stop_at=stop_at)
    stop_at, cause = float(rng.uniform(20, 90)), "count who is slower in each round; evidence is sign_e_value"
    mixed = np.where(rng.random(300) < rng.uniform(0.75, 0.9), side, 1 - side)
    race(mixed, f"to e ≥ {stop_at:g}, of which one model wins some", cause, stop_at=stop_at)
    early, cause = (
        [side] * int(rng.integers(6, 9)),
        "undecided, a race ends with the time, and the highest evidence of any round counts",
    )
    race(
        [*early, *rng.integers(0, 2, 30)],
        "until the time is up, of which one model wins the first ones",
        cause,
        stop_at=1e12,
    )
    cause = "a tie counts in n, and is a win for neither model"
    for winner in (side, 1 - side):
        wins = rng.permutation([winner] * int(rng.integers(11, 14)) + [0.5] * 3)
        race(wins, "of which 3 tie and one model wins the others", cause)
    race([0.5] * int(rng.integers(9, 14)), "that tie", "rounds that tie are no evidence")
    # with 90 rounds or more, a fair coin fails this test in fewer than 1 of 10^10 sessions
    firsts, turns = np.concatenate(orders), np.concatenate([order[1:] != order[:-1] for order in orders])
    for share, what in ((firsts, "the first of the two was timed first"), (turns, "the order was swapped")):
        told = f"in {share.sum()} of {len(share)} rounds {what}, and half is expected: toss a fair coin for each round"
        expect(0.15 < share.mean() < 0.85, told)
    took, ratio, clock = float(rng.uniform(0.001, 0.003)), float(rng.uniform(1.5, 4) ** rng.choice([-1, 1])), Clock()
    models, log = named({"one": [ratio * took], "other": [took]}, clock)
    found = student.compare_live(models, np.zeros((1, 2)), warmup_runs=0, clock=clock, seed=int(rng.integers(1000)))
    rounds = _rounds_to(20)
    same(found.counts, [rounds, rounds], "rounds of compare_live, all won by one model", "stop at e ≥ stop_at")
    same(len(log), 2 * rounds, f"calls in {rounds} rounds of two models")
    holds(found, {"verdict": "slower" if ratio > 1 else "faster", "ratio": ratio}, "comparison", rel=1e-6)
    holds(found.checks, {"e_value": 2.0**rounds / (rounds + 1)}, "checks", rel=1e-6)


def _misleads(ratios: np.ndarray) -> bool:
    """Return whether two tests find a winner at the 5 % level, each in some round, although no e-value reaches 20.

    The sign test and the t-test are applied after each round from the fifth on.
    """
    n, logs, slower = np.arange(1, len(ratios) + 1)[4:], np.log(ratios), np.cumsum(ratios > 1)[4:]
    by_sign = 2 * stats.binom.sf(np.maximum(slower, n - slower) - 1, n, 0.5) < 0.05
    mean = np.cumsum(logs)[4:] / n
    error = np.sqrt((np.cumsum(logs**2)[4:] / n - mean**2) / (n - 1))
    by_t = np.abs(mean) / error > stats.t.ppf(0.975, n - 1)
    evidence = np.maximum(_bets(ratios > 1), _bets(ratios < 1))
    return bool(by_sign.any() and by_t.any() and evidence.max() < 20)


def _takes_two_bets(ratios: np.ndarray, margin: float) -> bool:
    """Return whether the right rule finds equivalence before a model wins, in a round where no wrong rule stops.

    The right rule makes two bets, one on ratios above 1 − margin and one on ratios below 1 + margin. It stops when the
    e-values of both reach the threshold. One wrong rule stops when the larger e-value reaches it. The other wrong rule
    makes a single bet, on ratios inside the margin.
    """
    above, below = ratios > 1 - margin, ratios < 1 + margin
    right = _first(np.minimum(_bets(above), _bets(below)))
    wrong = {_first(np.maximum(_bets(above), _bets(below))), _first(_bets(above & below))}
    winner = _first(np.maximum(_bets(ratios > 1), _bets(ratios < 1)))
    return right < min(winner, len(ratios)) and right not in wrong


@judges("until_decided")
def live_keeps_its_promise(student: Any) -> None:
    """Check that `until_decided` declares no winner among equal models, even where p-values would declare one.

    With a margin, it must declare models equivalent only if two bets have won: one on ratios above 1 − margin, and one
    on ratios below 1 + margin. It must also find real differences.
    """
    rng = draw()

    def race(ratios: np.ndarray, what: str, cause: str, **settings: float) -> None:
        b = rng.uniform(0.001, 0.003) * np.exp(rng.normal(0, 0.1, len(ratios)))
        _race(student, rng, ratios * b, b, what, cause, **settings)

    def chosen(make: Callable[[], np.ndarray], telling: Callable[[np.ndarray], bool]) -> np.ndarray:
        """Draw ratios until wrong stopping rules decide differently from the right one. Return these ratios."""
        return next(ratios for ratios in (make() for _ in count()) if telling(ratios))

    for _ in range(2):
        equals = chosen(lambda: np.exp(rng.normal(0, 0.1, 24)), _misleads)
        race(equals, "of two equals", "stopping at a small p value declares false winners; stop at e ≥ stop_at")
    outlier = np.array([30, *rng.uniform(1.01, 1.03, 23)]) ** rng.choice([-1, 1])
    race(outlier, "of which one model loses all, the first by far", "count who is slower, not by how much")
    for _ in range(2):
        margin = float(rng.uniform(0.02, 0.08))

        def scattered(margin: float = margin) -> np.ndarray:
            """Return ratios mostly inside the margin, some beyond one end, a few beyond the other, none near an end."""
            ends = rng.choice([0.0, 1.0, -1.0], 40, p=[0.8, 0.15, 0.05]) * rng.choice([-1, 1])
            return 1 + margin * np.where(ends, rng.uniform(1.5, 3, 40) * ends, rng.uniform(-0.6, 0.6, 40))

        ratios = chosen(scattered, partial(_takes_two_bets, margin=margin))
        cause = "make one bet on ratios above 1 − margin, one on ratios below 1 + margin, and stop once both have won"
        race(ratios, f"of which most lie within {margin:.1%}", cause, margin=margin)
    apart = rng.normal(1.1, 0.01, 24) ** rng.choice([-1, 1])
    race(apart, "of models 10 % apart, with a margin of 2 %", "a margin does not hide a winner", margin=0.02)


def answer_blog(student: Any) -> None:
    """Check that the p-value follows from the blog's six numbers, and the runs from the interval of the difference."""
    truth = stats.ttest_ind_from_stats(12.5, 1.2, 10, 11.8, 1.5, 10, equal_var=False).pvalue
    same(student.p_of_the_blog(), truth, "question (a)", "t = 0.7 / √(1.2²/10 + 1.5²/10), Welch's df", rel=0.03)
    same(student.runs_of_each_version(), _runs(10, 1.28, 0.7), "question (b)", "runs_to_decide(10, 1.28, 0.7)")


def answer_faster(student: Any) -> None:
    """Check that 3 ms instead of 4 ms is 33 % more work per second."""
    same(student.percent_more_work(), 100 / 3, "more work", "4/3 − 1: the rates are 1/3 and 1/4 per ms", rel=0.02)


def answer_understanding(student: Any) -> None:
    """Check that the answers are the rounds for e ≥ 20, whether the interval leaves out 1, and the gate's verdict."""
    same(student.rounds_to_twenty(), _rounds_to(20), "question 1", "2ⁿ / (n + 1) ≥ 20")
    p = stats.binomtest(21, 30).pvalue
    same(student.leaves_out_one(), bool(p <= 0.05), "question 2", f"p is {p:.3f}, and the interval is its twin")
    same(student.verdict_of_the_gate(), "passes", "question 3", "the whole interval is at or below 5 %")
