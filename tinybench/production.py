# Written by "autograder export" from modules/16_production/16_production.ipynb: edit the notebook, not this file.

"""Models in production: objectives, monitoring, drift, A/B tests, gradual rollout, and history."""

from __future__ import annotations

import bisect
import hashlib
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from tinybench.accuracy import wilson_interval
from tinybench.load import tail_interval
from tinybench.pareto import Requirements, check_units
from tinybench.result import BenchmarkResult, percentile_interval
from tinybench.support.basics.arguments import check_buckets, check_counts, check_least, check_numbers, check_share
from tinybench.support.basics.dependence import is_dependent
from tinybench.support.basics.spacing import SpacedChoice, independent_spacing
from tinybench.support.metric_tests import is_detected


def error_budget(objective: float, requests: float) -> float:
    """Return the number of requests that may fail. An objective of 0.999 allows one in a thousand to fail.

    Raises ValueError unless the objective lies between 0 and 1 and `requests` is a finite number of at least 0.
    """
    check_share(objective=objective)
    check_least(requests=requests)
    return (1 - objective) * requests


def burn_rate(bad: float, total: float, objective: float) -> float:
    """Return the burn rate: the failure rate as a multiple of the allowed rate, or 0 without requests.

    For the exceptions see `error_budget`.
    """
    check_share(objective=objective)
    check_least(bad=bad, total=total)
    return bad / error_budget(objective, total) if total else 0.0


def increase(counter: Sequence[float]) -> float:
    """Return by how much a counter grew from the first reading to the last.

    A counter only grows. If a reading is smaller than the one before, the process has restarted and counts from 0, so
    this reading is the growth since the restart. Raises ValueError for a reading that is negative or not finite.
    """
    check_least(**{f"counter[{i}]": reading for i, reading in enumerate(counter)})
    return float(sum(b - a if b >= a else b for a, b in pairwise(counter)))


def burning(
    bad: Sequence[float], total: Sequence[float], objective: float, factor: float, long: int, short: int
) -> bool:
    """Return whether to alert: both over the long and over the short window, the burn rate is `factor` or more.

    Parameters
    ----------
    bad, total
        Readings of two counters, of failed and of all requests, at the same regular moments up to now.
    long, short
        Length of the windows, in steps between readings. A window that is longer than the readings covers all of them.

    Raises ValueError if a window is shorter than one step, or the counters do not have the same number of readings.
    """
    check_least(1, long=long, short=short)
    if len(bad) != len(total):
        raise ValueError(f"bad and total differ in length, {len(bad)} and {len(total)}; read both at the same moments")
    return all(
        burn_rate(increase(bad[-window - 1 :]), increase(total[-window - 1 :]), objective) >= factor
        for window in (long, short)
    )


class Decision(NamedTuple):
    """A verdict, and the finding for each requirement.

    The verdict is ``"ship"``, ``"do not ship"`` or ``"cannot tell"``. A finding is ``"met"``, ``"missed"`` or
    ``"cannot tell"``.
    """

    verdict: str
    findings: dict[str, str]


_UNKNOWN = (-math.inf, math.inf)
_SIZES = {"latency": 1e-3, "memory": 1e6, "energy": 1e-3}  # one ms, MB and mJ in SI units


def interval_of(name: str, result: BenchmarkResult) -> tuple[float, float]:
    """Return the interval of a result, in the unit of a requirement, or −∞ to ∞ if the interval is unknown.

    Parameters
    ----------
    name
        Name of a field of `Requirements`: ``"latency_p95_ms"`` uses the 95th percentile, ``"accuracy_min"`` the
        fraction of correct rows, ``"memory_max_mb"`` the largest of two or more values (both ends are that value),
        ``"throughput_min_qps"`` the median, and ``"energy_budget_mj"`` the mean.
    result
        A result in SI units. The interval is unknown if there are too few values, if a mean is used and all values are
        equal, or if the result is an estimate. If the result is below its meter's detection limit, only the upper end
        may be known.

    Raises
    ------
    ValueError
        If there is no such requirement, or the result has another unit.
    """
    metric = name.partition("_")[0]
    if metric not in _LOOKS:
        raise ValueError(f"there is no requirement {name!r}; `Requirements` has latency, accuracy, memory, ...")
    check_units(metric, [{metric: result, "model": "the model"}])
    if not result.measured:
        return _UNKNOWN
    size = _SIZES.get(metric, 1.0)
    if not is_detected(result):
        return -math.inf, result.metadata.get("at_most", math.inf) / size
    try:
        low, high = _LOOKS[metric](result)
    except ValueError:  # too few values, or equal ones
        return _UNKNOWN
    return low / size, high / size


def _percentile(result: BenchmarkResult) -> tuple[float, float]:
    if is_dependent(result.values):
        return tail_interval(result.values, 95, result.confidence)
    return percentile_interval(result.values, 95, result.confidence)


def _share(result: BenchmarkResult) -> tuple[float, float]:
    if {"correct", "total"} <= result.metadata.keys():
        counted = wilson_interval(result.metadata["correct"], result.metadata["total"], result.confidence)
        low, high = result.metadata["wilson_interval"] if "groups" in result.metadata else counted
        return low, high
    return result.mean_ci()


_LOOKS = {
    "latency": _percentile,
    "accuracy": _share,
    "memory": lambda result: (result.max_val, result.max_val) if result.count > 1 else _UNKNOWN,
    "throughput": BenchmarkResult.median_ci,
    "energy": BenchmarkResult.mean_ci,
}


def may_ship(results: Mapping[str, BenchmarkResult], requirements: Requirements) -> Decision:
    """Decide from intervals whether a model may be shipped. It must meet every requirement.

    If one requirement is missed, or if it is unknown whether it is met, the model may not be shipped.

    Parameters
    ----------
    results
        Results by the name of the requirement, such as ``"latency_p95_ms"``. Without a result, the finding is
        ``"cannot tell"``.
    requirements
        Its ``limits()``, a dictionary of limits by name, are upper limits, or lower limits if ``_min`` is in the name.
        The interval of a result, in the unit of the requirement, is ``interval_of(name, result)``.
    """
    findings: dict[str, str] = {}
    for name, limit in requirements.limits().items():
        low, high = interval_of(name, results[name]) if name in results else (-math.inf, math.inf)
        met, missed = (low >= limit, high < limit) if "_min" in name else (high <= limit, low > limit)
        findings[name] = "met" if met else "missed" if missed else "cannot tell"
    for verdict, found in (("do not ship", "missed"), ("cannot tell", "cannot tell")):
        if found in findings.values():
            return Decision(verdict, findings)
    return Decision("ship", findings)


def histogram_quantile(q: float, bounds: Sequence[float], counts: Sequence[float]) -> float:
    """Return the q-quantile as Prometheus estimates it, by linear interpolation within a bucket.

    Parameters
    ----------
    q
        Between 0 and 1.
    bounds
        Upper ends of the buckets, all above 0, the last one infinite. The first bucket begins at 0.
    counts
        Number of values at or below each bound, so that the last count is the number of all values. If there are no
        values, return NaN.

    In the last bucket, which has no end, the answer is the largest finite bound. Raises ValueError if `q` is not
    between 0 and 1, the bounds do not increase, or the counts decrease.
    """
    check_buckets(q, bounds, counts)
    if counts[-1] == 0:
        return math.nan
    rank = q * counts[-1]
    i = next(i for i, count in enumerate(counts) if count >= rank and count > 0)
    if math.isinf(bounds[i]):
        return float(bounds[i - 1])
    low, below = (bounds[i - 1], counts[i - 1]) if i else (0.0, 0.0)
    return float(low + (bounds[i] - low) * (rank - below) / (counts[i] - below))


def quantile_bounds(q: float, bounds: Sequence[float], counts: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the bucket in which the q-quantile lies. The true value may be anywhere between them.

    The result is (NaN, NaN) if no value was counted. Raises ValueError as `histogram_quantile` does.
    """
    check_buckets(q, bounds, counts)
    if counts[-1] == 0:
        return math.nan, math.nan
    i = next(i for i, count in enumerate(counts) if count >= q * counts[-1] and count > 0)
    return (float(bounds[i - 1]) if i else 0.0), float(bounds[i])


class ServedMetrics:
    """The metrics of a served model: ``requests``, ``seconds``, ``rows`` and ``in_flight``.

    They are registered in `registry`, a registry of `prometheus_client`.
    """

    def __init__(
        self, registry: Any, bounds: Sequence[float] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)
    ) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        self.requests = Counter("model_requests", "Calls by outcome", ["outcome"], registry=registry)
        self.seconds = Histogram(
            "model_seconds", "Seconds of a call that was answered", registry=registry, buckets=bounds
        )
        self.rows = Histogram("model_rows", "Rows in a call", registry=registry, buckets=(1, 2, 4, 8, 16, 32, 64, 128))
        self.in_flight = Gauge("model_in_flight", "Calls that have begun and not ended", registry=registry)


def watched(
    call: Callable[[Any], Any], metrics: Any, clock: Callable[[], float] = time.perf_counter
) -> Callable[[Any], Any]:
    """Return a function that calls the model as `call` does, and records metrics of each call.

    Parameters
    ----------
    call
        A function that takes rows and returns answers, or raises.
    metrics
        A `ServedMetrics`. Use ``in_flight.dec()`` when the call has ended; ``requests.labels("ok").inc()``, or
        ``"error"`` if it raised; and ``seconds.observe(…)`` of calls that were answered. The exception is passed on to
        the caller.
    """

    def observed(rows: Any) -> Any:
        metrics.in_flight.inc()
        metrics.rows.observe(len(rows))
        started = clock()
        try:
            answer = call(rows)
        except BaseException:
            metrics.requests.labels("error").inc()
            raise
        finally:
            metrics.in_flight.dec()
        metrics.seconds.observe(clock() - started)
        metrics.requests.labels("ok").inc()
        return answer

    return observed


def psi(reference: Sequence[float], window: Sequence[float]) -> float:
    """Return the population stability index of two histograms with the same bins: Σ (p − q) ln (p / q).

    Parameters
    ----------
    reference, window
        Number of values in each bin. Half a value is added to every bin of both histograms, so that no bin is empty.

    Raises ValueError if a count is negative or not finite, all counts of a histogram are 0, or the numbers of bins
    differ.
    """
    check_counts(reference=reference, window=window)
    if len(reference) != len(window):
        raise ValueError(
            f"reference and window differ in length, {len(reference)} and {len(window)}; use the same bins"
        )
    p, q = (np.asarray(counts, dtype=float) + 0.5 for counts in (reference, window))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum((p - q) * np.log(p / q)))


def ks(reference: Sequence[float], window: Sequence[float]) -> float:
    """Return the Kolmogorov–Smirnov statistic of two samples.

    It is the largest difference between the empirical distribution functions of `reference` and `window`: the fractions
    of their values at or below x, for any x.

    Raises ValueError if `reference` or `window` has no values, or a value that is not finite.
    """
    check_numbers(reference=reference, window=window)
    a, b = np.sort(reference), np.sort(window)
    x = np.concatenate([a, b])
    shares = (np.searchsorted(values, x, side="right") / len(values) for values in (a, b))
    return float(np.max(np.abs(np.subtract(*shares))))


def permutation_p(
    statistic: Callable[[np.ndarray, np.ndarray], float],
    reference: Sequence[float],
    window: Sequence[float],
    permutations: int = 199,
    seed: int = 0,
) -> float:
    """Return the p value of the hypothesis "both samples come from the same source", by a permutation test.

    All values together are divided into two parts at random. The p value is the fraction of divisions whose statistic
    is at least the observed one. The observed division counts as one of them, so the smallest p value is
    ``1 / (permutations + 1)``. Raises ValueError if `reference` or `window` has no values, a value or the statistic is
    not finite, or there are no permutations.
    """
    check_numbers(reference=reference, window=window)
    check_least(1, permutations=permutations)
    rng = np.random.default_rng(seed)
    pooled, m = np.concatenate([reference, window]), len(reference)
    observed, as_much = statistic(pooled[:m], pooled[m:]), 1
    if not math.isfinite(observed):
        raise ValueError(
            f"the statistic of reference and window is {observed}; give a statistic that is finite for both"
        )
    for _ in range(permutations):
        shuffled = rng.permutation(pooled)
        as_much += statistic(shuffled[:m], shuffled[m:]) >= observed
    return as_much / (permutations + 1)


def conformal_p(seen: Sequence[float], value: float, coin: random.Random) -> float:
    """Return the p value of a new value: the fraction of all values that are larger. Ties are decided at random.

    All values are the values seen so far and the new value itself.

    Parameters
    ----------
    seen
        All values so far, sorted.
    coin
        ``coin.random()``, between 0 and 1, is the fraction of the ties that count as larger. The new value is one of
        the ties.

    If all values are independent and come from the same source, the result is uniformly distributed between 0 and 1.
    Raises ValueError for NaN.
    """
    if math.isnan(value):
        raise ValueError("value is nan, which has no rank; leave it out, and count how often values are missing")
    larger = len(seen) - bisect.bisect_right(seen, value)
    ties = len(seen) - larger - bisect.bisect_left(seen, value) + 1
    return (larger + coin.random() * ties) / (len(seen) + 1)


class DriftAlarm:
    """A drift alarm, which starts with a capital of 1 and bets parts of it on each value that counts.

    If nothing has changed and the values that count are independent, the probability that the capital ever reaches
    1/level is at most `level`.

    Attributes
    ----------
    spacing
        The least distance between two values that count. By default, it is measured on the reference, whose values
        must be in the order of their arrival. A spacing of 1 is for independent values, such as one for each user.
    kept, stakes
        Capital that has not been staked yet, 1 at first, and capital at stake now, by bet.
    """

    slopes = (-1.8, -0.9, 0.9, 1.8)

    def __init__(
        self, reference: Sequence[float], level: float = 0.05, seed: int = 0, spacing: int | None = None
    ) -> None:
        check_share(level=level)
        check_numbers(0, reference=reference)
        self.spacing = independent_spacing(reference) if spacing is None else spacing
        self.level, self.coin = level, random.Random(seed)
        self.choice = SpacedChoice(self.spacing, self.coin)
        self.seen = sorted(float(value) for value in reference if self.choice.takes())
        self.kept, self.stakes, self.n = 1.0, [0.0] * len(self.slopes), 0

    @property
    def evidence(self) -> float:
        """The capital, an e value."""
        return self.kept + sum(self.stakes)

    def add(self, value: float) -> bool:
        """Process the next value, and return whether the alarm is on."""
        if self.choice.takes():
            p = conformal_p(self.seen, value, self.coin)
            bisect.insort(self.seen, float(value))
            self.n += 1
            self.update([1 + slope * (p - 0.5) for slope in self.slopes])
        return self.evidence >= 1 / self.level

    def update(self, factors: Sequence[float]) -> None:
        """Stake some of the kept capital, then multiply each stake by its factor.

        After the n-th value (n is ``self.n``), 1 / (1 + ln(n + 1)) is kept. The rest of what was kept before is divided
        equally among ``self.stakes``. So whenever a change begins, some of the capital was staked only recently.
        """
        kept = 1 / (1 + math.log(self.n + 1))
        new, self.kept = self.kept - kept, kept
        self.stakes = [
            (stake + new / len(factors)) * factor for stake, factor in zip(self.stakes, factors, strict=True)
        ]


def users_needed(share: float, change: float, level: float = 0.05, power: float = 0.8) -> int:
    """Return how many users each version needs so that a change of a proportion is detected with probability `power`.

    Parameters
    ----------
    share, change
        The proportion of users with an event, such as a failure, and the change of this proportion: 0.02 and 0.01 for a
        change from 2 % to 3 %.
    level
        The probability of a false alarm, two-sided.

    The number is (z₁₋ₗₑᵥₑₗ⁄₂ + z_power)² (p(1 − p) + q(1 − q)) / change², rounded up, where p = share and q = share +
    change.

    Raises ValueError unless p, q, the level and the power lie between 0 and 1, the power is above the level, and the
    change is not 0.
    """
    check_share(share=share, level=level, power=power, **{"share + change": share + change})
    if abs(change) < 1e-9:
        raise ValueError(
            f"change is {change}; no number of users can show a change of 0; give the smallest change that matters"
        )
    if power <= level:
        raise ValueError(f"power is {power}, and the level is {level}; the power must be larger")
    p, q = share, share + change
    z = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(power)
    return math.ceil(z**2 * (p * (1 - p) + q * (1 - q)) / change**2)


def share_e_value(new: int, both: int, share: float = 0.5) -> float:
    """Return the e value against the hypothesis "the new version has its proportional part of the events".

    The e value is valid at any time.

    Parameters
    ----------
    new, both
        Number of users with the event, such as a failure: with the new version, and with both versions together.
    share
        Share of all users who get the new version, between 0 and 1. If both versions are alike, the new version also
        has this share of the events.

    The e value is B(new + 1, both − new + 1) / (shareⁿᵉʷ (1 − share)ᵒˡᵈ), by logarithms. It is 1 before the first
    event, and capped at e⁷⁰⁰. Raises ValueError unless 0 ≤ `new` ≤ `both`, and the share lies between 0 and 1.
    """
    check_least(new=new, both=both)
    check_share(share=share)
    if new > both:
        raise ValueError(f"new is {new}, and both is {both}; both must count the events of the two versions together")
    from scipy.special import betaln

    old = both - new
    log = float(betaln(new + 1, old + 1)) - new * math.log(share) - old * math.log1p(-share)
    return math.exp(min(700.0, log))


def in_canary(user: str, share: float, salt: str = "") -> bool:
    """Return whether a user gets the new version, if the fraction `share` of all users gets it.

    The answer for a user never changes. A user who gets the new version at a share of 5 % also gets it at 20 %.

    The first 8 bytes of ``hashlib.sha256((salt + user).encode()).digest()`` are a number below 2⁶⁴, and so a position
    between 0 and 1. Users whose position is below `share` get the new version. Raises ValueError unless `share` is a
    number from 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}; the part of all users who get the new version is a number from 0 to 1")
    number = int.from_bytes(hashlib.sha256((salt + user).encode()).digest()[:8], "big")
    return number / 2**64 < share


STAGES = (0.05, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class RolloutState:
    """The state of a rollout.

    Attributes
    ----------
    stage
        Index of the current share of users in `STAGES`.
    status
        ``"running"``, ``"promoted"`` or ``"rolled back"``; the last two are final.
    blind
        Number of consecutive checks without new readings.
    why
        Reason for a rollback.
    """

    stage: int = 0
    status: str = "running"
    blind: int = 0
    why: str = ""

    @property
    def share(self) -> float:
        """The share of users who get the new version now."""
        return {"running": STAGES[self.stage], "promoted": 1.0, "rolled back": 0.0}[self.status]


class Seen(NamedTuple):
    """The result of a check of the metrics.

    ``fresh`` states whether there were new readings. ``evidence`` holds the e value of harm for each metric. ``enough``
    states whether the stage has had all the users that it needs.
    """

    fresh: bool
    evidence: dict[str, float]
    enough: bool


def advance(state: RolloutState, seen: Seen, stop_at: float = 100.0, patience: int = 3) -> RolloutState:
    """Return the next state of a rollout, after a check of the metrics.

    - A final state stays as it is.
    - Without fresh readings, the stage stays the same. After `patience` such checks in a row, the rollout is rolled
      back, with ``why="blind"``.
    - If the e value of any metric is `stop_at` or more, the rollout is rolled back. ``why`` is the metric with the
      largest e value.
    - Otherwise, if `seen.enough` is True, the next stage follows. After the last stage, the version is promoted.

    Raise ValueError for an e value that is negative or NaN, because such a value does not show that there is no harm.
    """
    for name, value in seen.evidence.items():
        if not value >= 0:
            raise ValueError(
                f"evidence of {name} is {value}; an e value is at least 0; if there is no reading, set fresh to False"
            )
    if state.status != "running":
        return state
    if not seen.fresh:
        blind = state.blind + 1
        if blind >= patience:
            return replace(state, status="rolled back", blind=blind, why="blind")
        return replace(state, blind=blind)
    state = replace(state, blind=0)
    worst = max(seen.evidence, key=lambda name: seen.evidence[name], default="")
    if worst and seen.evidence[worst] >= stop_at:
        return replace(state, status="rolled back", why=worst)
    if not seen.enough:
        return state
    if state.stage == len(STAGES) - 1:
        return replace(state, status="promoted")
    return replace(state, stage=state.stage + 1)


def best_split(values: Sequence[float]) -> tuple[int, float]:
    """Return the best division of a series by ranks: the index of the first value after it, and the score.

    For every k from 1 to n − 1, take the sum of the ranks of the first k values (1 for the smallest; ties share their
    mean rank, as in `scipy.stats.rankdata`), subtract the expected value of this sum, ``k (n + 1) / 2``, and divide by
    its standard deviation, ``√(k (n − k) (n + 1) / 12)``. The score is the largest absolute value. On a tie, the first
    k counts. Raises ValueError for fewer than 2 values, or a value that is not finite.
    """
    check_numbers(2, values=values)
    from scipy.stats import rankdata

    n = len(values)
    k = np.arange(1, n)
    sums = np.cumsum(rankdata(values))[:-1]
    scores = np.abs(sums - k * (n + 1) / 2) / np.sqrt(k * (n - k) * (n + 1) / 12)
    return int(np.argmax(scores)) + 1, float(scores.max())


def change_points(values: Sequence[float], level: float = 0.01, fewest: int = 5, permutations: int = 999) -> list[int]:
    """Return the indices at which a series changes its level, in order.

    A series is divided at its `best_split` if, among random orders of its values, at most the fraction `level` have a
    score at least as high. The actual order counts as one of the random orders, and ``np.random.default_rng(0)``
    shuffles. Then each part is divided in the same way, with half the level. Parts shorter than twice `fewest` stay
    whole. Raises ValueError for a value that is not finite, a level that is not between 0 and 1, or `fewest` below 1.
    """
    check_share(level=level)
    check_least(1, fewest=fewest, permutations=permutations)
    check_numbers(0, values=values)
    if len(values) < 2 * fewest:
        return []
    k, score = best_split(values)
    rng = np.random.default_rng(0)
    as_good = 1 + sum(best_split(rng.permutation(values).tolist())[1] >= score for _ in range(permutations))
    if as_good / (permutations + 1) > level:
        return []
    before, after = (change_points(part, level / 2, fewest, permutations) for part in (values[:k], values[k:]))
    return [*before, k, *(k + i for i in after)]
