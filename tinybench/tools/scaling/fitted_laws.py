"""Laws of scaling fitted to measured times, with an interval for each fitted number.

In this module, n is a worker count, and a round is one measurement of each worker count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tinybench.scaling import best_workers, fit_usl, speedup
from tinybench.support.basics.arguments import check_least, check_share
from tinybench.support.basics.numbers import finite, number_of, with_ends
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.profiling.scaling_laws import amdahl, gustafson, usl

Seconds = Mapping[int, Sequence[float]]
Fit = Callable[[dict[int, float]], "float | Sequence[float]"]


@dataclass(frozen=True)
class Estimate:
    """A number with its interval. ``str`` gives both, and "at least" if the upper bound is infinite.

    If all rounds are equal, their scatter is unknown. There is then no interval, and `low` and `high` are NaN.
    """

    value: float
    low: float
    high: float
    confidence: float = 0.95

    def __str__(self) -> str:
        """Return a text such as ``0.12 (95 % CI 0.08 to 0.15)``, ``at least 3.4 (95 % CI)`` or ``2 (no interval)``."""
        if math.isnan(self.low):
            return f"{self.value:.3g} (no interval: the rounds do not differ)"
        level = f"{100 * self.confidence:.3g} % CI"
        if math.isinf(self.high):
            return f"at least {self.low:.3g} ({level})" if math.isfinite(self.low) else f"without end ({level})"
        return with_ends(self.value, (self.low, self.high), named=f"{level} ")


def check_rounds(seconds_by_n: Seconds, unknown: int = 1, least: int = 3) -> np.ndarray:
    """Return the logarithms of the seconds, one row per round.

    Raise ValueError if there are too few worker counts to fit a law with `unknown` unknown numbers, if there are fewer
    rounds than `least`, if the worker counts do not all have the same number of rounds, or if a time is not finite or
    not above 0.
    """
    workers = ", ".join(map(str, seconds_by_n)) or "none"
    if 1 not in seconds_by_n or sum(n > 1 for n in seconds_by_n) < unknown:
        other = "another number" if unknown == 1 else number_of(unknown, "other number")
        raise ValueError(
            f"measured with these numbers of workers: {workers}; a law with {unknown} unknown "
            f"number{'s' * (unknown > 1)} takes 1 and at least {other}"
        )
    lengths = sorted({len(values) for values in seconds_by_n.values()})
    if len(lengths) > 1 or lengths[0] < least:
        raise ValueError(f"{' or '.join(map(str, lengths))} rounds; at least {least}, and as many for each n")
    seconds = np.array(list(seconds_by_n.values()), float).T
    if not (np.isfinite(seconds).all() and seconds.min() > 0):
        raise ValueError("the seconds must be finite and above 0")
    logs: np.ndarray = np.log(seconds)
    return logs


def trimmed(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the trimmed mean of each column, the rounds' deviations from it, and the number of rounds kept for it.

    Each column is a worker count. The median of each round is subtracted first, because a slow round is slow in all
    columns. For the mean, the lowest and the highest fifth of the rounds in each column are dropped. For the
    deviations, the dropped values are replaced with the nearest value that is kept.
    """
    cut = len(logs) // 5
    apart = logs - np.median(logs, axis=1, keepdims=True)
    kept = np.sort(apart, axis=0)[cut : len(logs) - cut]
    held = np.clip(apart, kept[0], kept[-1])
    return np.median(logs) + kept.mean(axis=0), held - held.mean(axis=0), len(kept)


def middle_seconds(seconds_by_n: Seconds) -> dict[int, float]:
    """Return the trimmed mean of the rounds in seconds, by worker count; see `trimmed`."""
    middle = trimmed(check_rounds(seconds_by_n, 0, 1))[0]
    return dict(zip(seconds_by_n, np.exp(middle).tolist(), strict=True))


def with_interval(
    fit: Fit,
    seconds_by_n: Seconds,
    confidence: float = 0.95,
    *,
    unknown: int = 1,
    drawn: Fit | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Any:
    """Return the result of `fit` for the measured times, with an interval for each number in the result.

    Parameters
    ----------
    fit
        A function that takes one time in seconds for each worker count n, and returns one number or several.
    seconds_by_n
        The seconds of each round, by n. All n must have the same rounds.
    confidence
        Coverage of each interval.
    unknown
        The number of free parameters of the fitted law. If the times do not include n = 1 and at least `unknown` other
        n, ValueError is raised.
    drawn
        The function that fits the law to the means with random errors (see "Returns"); by default `fit`. If `fit` keeps
        its numbers within bounds and one of them lies at a bound, the intervals of the other numbers become too narrow.
        In this case, pass a function that fits without bounds, such as `free_usl`.
    draws, seed
        The number of random draws of the seconds, and the seed of the random numbers.

    Returns
    -------
    Estimate, or a tuple of them
        The values are fitted to the trimmed means of the rounds (see `trimmed`). For the intervals, random errors are
        added to the means `draws` times, and the law is fitted again each time. The size of the errors is estimated
        from the differences between rounds. They follow Student's t distribution, whose tails are heavier with few
        rounds. Each interval lies between two quantiles of these fits. It stays within the bounds of the law and may be
        infinite. If the rounds do not differ, the interval is NaN.

    References
    ----------
    Tukey, McLaughlin, "Less vulnerable confidence and significance procedures for location", Sankhyā A 25 (1963): the
    trimmed mean with its standard error and degrees of freedom.
    """
    check_share(confidence=confidence)
    check_least(1, draws=draws)
    logs = check_rounds(seconds_by_n, unknown)
    workers = list(seconds_by_n)
    middle, apart, kept = trimmed(logs)
    rng = np.random.default_rng(seed)
    heavy = np.sqrt((kept - 1) / rng.chisquare(kept - 1, (draws, 1)))
    moved = heavy * (rng.normal(size=(draws, len(logs))) @ apart) / math.sqrt(kept * (kept - 1))
    moved = middle + np.clip(moved, -50, 50)  # with three rounds, one draw in a million would overflow
    plain = fit(dict(zip(workers, np.exp(middle).tolist(), strict=True)))
    again = [(drawn or fit)(dict(zip(workers, row, strict=True))) for row in np.exp(moved).tolist()]
    values, found = np.atleast_1d(np.asarray(plain, float)), np.array(again, float).reshape(draws, -1)
    tail = (1 - confidence) / 2
    # each bound is one of the draws: an interpolation between two draws fails if one of them is infinite
    low = np.quantile(found, tail, axis=0, method="lower")
    high = np.quantile(found, 1 - tail, axis=0, method="higher")
    low, high = np.minimum(values, low), np.maximum(values, high)
    if np.abs(apart).max() < 1e-12:  # differences of logarithms this small are only rounding
        low, high = np.full((2, len(values)), math.nan)
    ends = zip(values.tolist(), low.tolist(), high.tolist(), strict=True)
    estimates = tuple(Estimate(*found, confidence) for found in ends)
    return estimates if np.ndim(plain) else estimates[0]


def serial_share(law: Callable[[float, float], float], speedups: Mapping[int, float]) -> float:
    """Return the serial fraction, from 0 to 1, with which a law fits the speed-ups best.

    The law is a function such as `amdahl` or `gustafson`.
    """
    from scipy.optimize import minimize_scalar

    logs = {n: math.log(gain) for n, gain in speedups.items()}

    def missed(serial: float) -> float:
        return sum((math.log(law(n, serial)) - gain) ** 2 for n, gain in logs.items())

    inside = float(minimize_scalar(missed, bounds=(0, 1), method="bounded", options={"xatol": 1e-5}).x)
    return min((0.0, inside, 1.0), key=missed)


def free_usl(speedups: Mapping[int, float]) -> tuple[float, float]:
    """Return the contention and the crosstalk of the Universal Scalability Law that fit the speed-ups best.

    They are fitted together without bounds. Afterwards, a number below 0 is replaced with 0.
    """
    points = [(n - 1.0, n * (n - 1.0), n / gain - 1) for n, gain in speedups.items()]
    aa, ab, bb = (sum(p[i] * p[j] for p in points) for i, j in ((0, 0), (0, 1), (1, 1)))
    al, bl = (sum(p[i] * p[2] for p in points) for i in (0, 1))
    area = aa * bb - ab * ab
    return max(0.0, (al * bb - bl * ab) / area), max(0.0, (bl * aa - al * ab) / area)


@dataclass(frozen=True)
class Laws:
    """The laws fitted to measured times; ``str`` gives them as a table.

    Attributes
    ----------
    amdahl, gustafson
        The serial fraction of the time with one worker (Amdahl), and of the time with all workers (Gustafson).
    contention, crosstalk, best
        The two numbers of the Universal Scalability Law, and the worker count that is fastest according to this law.
    best_measured
        The fastest of the measured worker counts. Its interval includes other worker counts that may be as fast.
    misses
        By the name of each law, the largest factor between a speed-up of this law and the measured speed-up.
    largest
        The largest worker count that was measured.
    """

    amdahl: Estimate
    gustafson: Estimate
    contention: Estimate
    crosstalk: Estimate
    best: Estimate
    best_measured: Estimate
    misses: dict[str, float]
    largest: int

    __repr__ = short_repr

    @property
    def notes(self) -> list[str]:
        """Cautions about laws that fit badly, and about a best worker count beyond those that were measured."""
        found = [
            f"{law} is off by up to {factor - 1:.0%}" if factor < 2 else f"{law} is off up to {factor:.1f} times"
            for law, factor in self.misses.items()
            if factor > 1.1
        ]
        if found:
            found.append("intervals allow for noise, not for a law that does not hold")
        if self.best.value > self.largest:
            found.append(
                f"the best number by the law lies beyond the {number_of(self.largest, 'worker')} that were measured"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and notes as plain data for ``json.dumps``. Infinite values and NaN become None."""
        return finite({**asdict(self), "notes": self.notes})  # type: ignore[no-any-return]

    def table(self) -> Table:
        """Return the fitted numbers with their intervals as a table of text."""
        named = {
            "serial share (Amdahl)": self.amdahl,
            "serial share (Gustafson)": self.gustafson,
            "contention (USL)": self.contention,
            "crosstalk (USL)": self.crosstalk,
            "best number of workers (USL)": self.best,
            "best number of those measured": self.best_measured,
        }
        return Table(
            [{"what": name, "value": str(found)} for name, found in named.items()], "laws fitted to the rounds"
        )

    def __str__(self) -> str:
        """Return the table of fitted numbers followed by the notes."""
        return "\n".join([str(self.table()), *self.notes])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        notes = Table([{"to know": note} for note in self.notes]).html() if self.notes else ""
        return {"text/plain": str(self), "text/html": self.table().html() + notes}


def fit_laws(seconds_by_n: Seconds, confidence: float = 0.95, *, draws: int = 1000, seed: int = 0) -> Laws:
    """Return Amdahl's, Gustafson's and the Universal Scalability Law fitted to measured times.

    Raise ValueError unless 1 and at least two other worker counts were measured, because the Universal Scalability Law
    has two unknown numbers.

    Parameters
    ----------
    seconds_by_n, confidence, draws, seed
        See `with_interval`.
    """

    def fastest(seconds: Mapping[int, float]) -> int:
        return min(seconds, key=seconds.__getitem__)

    def numbers(seconds: dict[int, float], fit: Callable[[Mapping[int, float]], Any] = fit_usl) -> list[float]:
        contention, crosstalk = fit(speedup(seconds))
        return [contention, crosstalk, best_workers(contention, crosstalk), fastest(seconds)]

    def free(seconds: dict[int, float]) -> list[float]:
        return numbers(seconds, free_usl)

    def share_by(law: Callable[[float, float], float]) -> Estimate:
        def share(seconds: dict[int, float]) -> float:
            return serial_share(law, speedup(seconds))

        found: Estimate = with_interval(share, seconds_by_n, **again)
        return found

    again: dict[str, Any] = {"confidence": confidence, "draws": draws, "seed": seed}
    contention, crosstalk, best, fastest_one = with_interval(numbers, seconds_by_n, unknown=2, drawn=free, **again)
    shares = share_by(amdahl), share_by(gustafson)
    by_law: dict[str, Callable[[int], float]] = {
        "Amdahl's law": lambda n: amdahl(n, shares[0].value),
        "Gustafson's law": lambda n: gustafson(n, shares[1].value),
        "the Universal Scalability Law": lambda n: usl(n, contention.value, crosstalk.value),
    }
    gains = speedup(middle_seconds(seconds_by_n))
    misses = {name: max(max(law(n) / gain, gain / law(n)) for n, gain in gains.items()) for name, law in by_law.items()}
    return Laws(*shares, contention, crosstalk, best, fastest_one, misses, max(seconds_by_n))
