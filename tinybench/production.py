# Written by "autograder export" from modules/16_production/16_production.ipynb: edit the notebook, not this file.

"""Models in production: objectives, monitoring, and drift."""

from __future__ import annotations

import bisect
import math
import random
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tinybench.support.basics.arguments import check_buckets, check_counts, check_least, check_numbers, check_share
from tinybench.support.basics.conformal import conformal_p
from tinybench.support.basics.spacing import SpacedChoice, independent_spacing


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
    """Return the p-value of the hypothesis "both samples come from the same source", by a permutation test.

    All values together are divided into two parts at random. The p-value is the fraction of divisions whose statistic
    is at least the observed one. The observed division counts as one of them, so the smallest p-value is
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
        """The capital, an e-value."""
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
