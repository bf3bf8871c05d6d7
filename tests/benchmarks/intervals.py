"""The intervals of the package as `coverage` judges them: what is drawn, what is called, what it promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from unittest import mock

import numpy as np
from scipy import stats
from scipy.signal import lfilter

from tinybench import benchmark, comparison, result
from tinybench.result import BenchmarkResult
from tinybench.support.comparisons.verdict import Comparison

Rng = np.random.Generator
SIZES = (5, 10, 30, 100)
STOP_AT = 20.0

# what becomes of standard normal values: others of median 0
TRANSFORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "": np.asarray,
    "lognormal": np.expm1,
    "heavy tails": lambda z: stats.t.ppf(stats.norm.cdf(z), 2),
}


@dataclass(frozen=True)
class Noise:
    """An AR(1) series whose values are normal, or others of median 0."""

    phi: float = 0.0
    transform: str = ""

    def draw(self, rng: Rng, trials: int, n: int) -> np.ndarray:
        """Return rows from the stationary state."""
        steps = rng.normal(0, math.sqrt(1 - self.phi**2), (trials, n + 300))
        return TRANSFORMS[self.transform](lfilter([1], [1, -self.phi], steps, axis=1)[:, 300:])

    @property
    def truths(self) -> dict[str, float]:
        p90 = float(TRANSFORMS[self.transform](stats.norm.ppf(0.9)))
        return {"mean": math.exp(0.5) - 1 if self.transform == "lognormal" else 0.0, "median": 0.0, "p90": p90}


KINDS = {
    "normal": Noise(),
    "lognormal": Noise(transform="lognormal"),
    "heavy tails": Noise(transform="heavy tails"),
    "AR(1) 0.6": Noise(0.6),
}


class Found(NamedTuple):
    """An interval, and what the result says about it; no interval where there are too few values."""

    low: float
    high: float
    said: str = ""


# what is called: one function for each interval, from a drawn row (or two) to what a user gets


def of_result(take: Callable[[BenchmarkResult], tuple[float, float]], *, of_mean: bool) -> Callable[..., Found]:
    """Return how to judge an interval of a result. Skewness concerns that of the mean alone."""

    def find(values: np.ndarray) -> Found:
        made = BenchmarkResult("latency", 10 + values, unit="s")
        low, high = take(made)
        said = [text for text in made.cautions if of_mean or not text.startswith("values are skewed")]
        return Found(low - 10, high - 10, "; ".join(said))

    return find


def compare(a: np.ndarray, b: np.ndarray, paired: bool) -> Comparison:
    with mock.patch.object(comparison, "second_opinions", return_value=(0.0, {})):  # which take forty times as long
        return comparison.compare(a.tolist(), b.tolist(), paired=paired)


def compared(a: np.ndarray, b: np.ndarray, paired: bool) -> Found:
    """Return the logarithm of the ratio as `compare` finds it, or the difference of values that have no ratio."""
    found = compare(a, b, paired)
    said = getattr(found, "caution", "") or ("batches" if "batches" in found.method else "")
    if math.isnan(found.ratio):
        return Found(*found.difference_ci, said)
    low, high = found.ratio_ci
    return Found(math.log(low) if low > 0 else -math.inf, math.log(high) if high < math.inf else math.inf, said)


def paired_ratio(values: np.ndarray, common: np.ndarray) -> Found:
    found = compared(np.exp(0.05 * (common + values)), np.exp(0.05 * common), True)
    return Found(found.low / 0.05, found.high / 0.05, found.said)


def throughput(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Found:
    """Return the logarithm of the best of three equal rates."""
    rows = {1: a, 8: b, 64: c}
    latencies = {size: BenchmarkResult("latency", size * np.exp(-0.1 * z), unit="s") for size, z in rows.items()}
    best = benchmark.best_throughput(latencies)
    low, high = best.median_ci()
    said = [text for text in best.cautions if not text.startswith("values are skewed")]
    return Found(10 * math.log(low), 10 * math.log(high), "; ".join(said))


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
    truth: str
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
    "ratio of two samples": Interval(
        lambda a, b: compared(np.exp(0.1 * a), np.exp(0.1 * b), False), "median", 2, trials=1000
    ),
    "Welch's difference": Interval(lambda a, b: compared(2 * a - 20, b - 20, False), "mean", 2, trials=1000),
    "best throughput of three": Interval(throughput, "median", 3, order_statistics(50), 1000),
    "anytime, at all looks": Interval(anytime, "median", 2, trials=400, sizes=(10, 30, 100)),
}
