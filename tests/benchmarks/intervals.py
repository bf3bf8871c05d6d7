"""The intervals of the package as `coverage` judges them: what is drawn, what is called, what it promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

import numpy as np
from scipy import stats
from scipy.signal import lfilter

from tinybench import benchmark, comparison, result
from tinybench.result import BenchmarkResult

Rng = np.random.Generator
SIZES = (5, 10, 30, 100)
PHI, STOP_AT = 0.6, 20.0


@dataclass(frozen=True)
class Found:
    """An interval, and what the result says about it; no interval where there are too few values."""

    low: float
    high: float
    said: str = ""


# what is drawn: samples as rows, and their mean, median and 90th percentile


def autoregressive(rng: Rng, trials: int, n: int) -> np.ndarray:
    """Return rows of AR(1) values of variance 1, from their stationary state."""
    steps = rng.normal(0, math.sqrt(1 - PHI**2), (trials, n + 50))
    return np.asarray(lfilter([1], [1, -PHI], steps, axis=1)[:, 50:])


@dataclass(frozen=True)
class Kind:
    draw: Callable[[Rng, int, int], np.ndarray]
    mean: float
    median: float
    p90: float


KINDS = {
    "normal": Kind(lambda rng, trials, n: rng.normal(size=(trials, n)), 0, 0, stats.norm.ppf(0.9)),
    "lognormal": Kind(
        lambda rng, trials, n: rng.lognormal(size=(trials, n)), math.exp(0.5), 1, stats.lognorm.ppf(0.9, 1)
    ),
    "heavy tails": Kind(lambda rng, trials, n: rng.standard_t(2, (trials, n)), 0, 0, stats.t.ppf(0.9, 2)),
    f"AR(1) {PHI}": Kind(autoregressive, 0, 0, stats.norm.ppf(0.9)),
}


# what is called: one function for each interval, from a drawn row (or two) to what a user gets


def cautions(found: BenchmarkResult, *, of_mean: bool) -> str:
    """Return what a result says of an interval; skewness concerns that of the mean alone."""
    return "; ".join(text for text in found.cautions if of_mean or not text.startswith("values are skewed"))


def of_result(take: Callable[[BenchmarkResult], tuple[float, float]], *, of_mean: bool) -> Callable[..., Found]:
    """Return how to judge an interval of a result."""

    def find(values: np.ndarray) -> Found:
        made = BenchmarkResult("latency", 10 + values, unit="s")
        low, high = take(made)
        return Found(low - 10, high - 10, cautions(made, of_mean=of_mean))

    return find


def compared(a: np.ndarray, b: np.ndarray, *, paired: bool) -> Found:
    """Return the logarithm of the ratio as `compare` finds it, or the difference of values that have no ratio."""
    with mock.patch.object(comparison, "second_opinions", return_value=(0.0, {})):  # which take forty times as long
        found = comparison.compare(a.tolist(), b.tolist(), paired=paired)
    said = getattr(found, "caution", "") or ("batches" if "batches" in found.method else "")
    if math.isnan(found.ratio):
        return Found(*found.difference_ci, said)
    low, high = found.ratio_ci
    return Found(math.log(low) if low > 0 else -math.inf, math.log(high) if high < math.inf else math.inf, said)


def paired_ratio(values: np.ndarray, common: np.ndarray) -> Found:
    found = compared(np.exp(0.05 * (common + values)), np.exp(0.05 * common), paired=True)
    return Found(found.low / 0.05, found.high / 0.05, found.said)


def ratio_of_samples(a: np.ndarray, b: np.ndarray) -> Found:
    return compared(np.exp(0.1 * a), np.exp(0.1 * b), paired=False)


def difference_of_samples(a: np.ndarray, b: np.ndarray) -> Found:
    return compared(2 * a - 20, b - 20, paired=False)


def throughput(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Found:
    """Return the logarithm of the best of three equal rates."""
    rows = {1: a, 8: b, 64: c}
    latencies = {size: BenchmarkResult("latency", size * np.exp(-0.1 * z), unit="s") for size, z in rows.items()}
    best = benchmark.best_throughput(latencies)
    low, high = best.median_ci()
    return Found(10 * math.log(low), 10 * math.log(high), cautions(best, of_mean=False))


def anytime(a: np.ndarray, b: np.ndarray) -> Found:
    """Return what is in the intervals of all looks, where as in `compare_live` a coin orders each round."""
    coins = np.random.default_rng(len(a)).choice([-1.0, 1.0], len(a))
    rounds = (coins * (a - b)).tolist()
    ends = [comparison.anytime_interval(rounds[:n], STOP_AT) for n in range(6, len(a) + 1)]
    return Found(max(low for low, _ in ends), min(high for _, high in ends))


def order_statistics(q: float) -> Callable[[int], float]:
    """Return the exact coverage that an interval of order statistics promises for independent values."""

    def promise(n: int) -> float:
        low, high = result.percentile_interval([float(rank) for rank in range(1, n + 1)], q)
        return float(stats.binom.cdf(high - 1, n, q / 100) - stats.binom.cdf(low - 1, n, q / 100))

    return promise


@dataclass(frozen=True)
class Interval:
    """What is judged: how it is found, which truth it is after, and what it promises at n values."""

    find: Callable[..., Found]
    truth: str | float
    samples: int = 1
    promise: Callable[[int], float] = lambda n: 0.95
    trials: int = 2000
    sizes: tuple[int, ...] = SIZES


BCA = of_result(lambda made: made.bootstrap_ci(np.mean, resamples=500), of_mean=True)
PLAIN = of_result(lambda made: result.bootstrap_interval(made.values, np.mean, resamples=500), of_mean=True)
P90 = of_result(lambda made: result.percentile_interval(made.values, 90), of_mean=False)

INTERVALS = {
    "t": Interval(of_result(lambda made: (made.ci_lower, made.ci_upper), of_mean=True), "mean"),
    "mean, in batches": Interval(of_result(BenchmarkResult.mean_ci, of_mean=True), "mean"),
    "median": Interval(of_result(BenchmarkResult.median_ci, of_mean=False), "median", promise=order_statistics(50)),
    "p90": Interval(P90, "p90", promise=order_statistics(90)),
    "BCa of the mean": Interval(BCA, "mean", trials=500),
    "percentile bootstrap of the mean": Interval(PLAIN, "mean", trials=500),
    "paired ratio": Interval(paired_ratio, "median", 2, order_statistics(50), 1000),
    "ratio of two samples": Interval(ratio_of_samples, 0.0, 2, trials=1000),
    "Welch's difference": Interval(difference_of_samples, "mean", 2, trials=1000),
    "best throughput of three": Interval(throughput, "median", 3, order_statistics(50), 1000),
    "anytime, at all looks": Interval(anytime, 0.0, 2, trials=400, sizes=(10, 30, 100)),
}
