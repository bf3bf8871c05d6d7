"""The p-value of `compare` where rounds depend on one another: how often it is wrong, and what it finds.

A part of ``python -m tests.benchmarks.coverage``, alone by ``--only level power`` (about two minutes).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

import numpy as np
from scipy import stats
from scipy.signal import lfilter

from tinybench import comparison
from tinybench.comparison import Comparison

Rng = np.random.Generator
LEVEL, SCATTER, TOLERANCE = 0.05, 0.05, 0.02
ROUNDS = (30, 100, 300, 1000)


def noise(phi: float, trials: int, n: int, rng: Rng) -> np.ndarray:
    """Return rows of AR(1) values of variance 1, from their stationary state."""
    steps = rng.normal(0, math.sqrt(1 - phi**2), (trials, n + 300))
    return np.asarray(lfilter([1], [1, -phi], steps, axis=1)[:, 300:])


@dataclass(frozen=True)
class Noise:
    """What scatters the logarithms of times: an AR(1) series, as normal values or as others of median 0."""

    phi: float
    of_normal: str = "normal"

    def draw(self, trials: int, n: int, rng: Rng) -> np.ndarray:
        values = noise(self.phi, trials, n, rng)
        if self.of_normal == "lognormal":
            return np.exp(values) - 1
        return np.asarray(stats.t.ppf(stats.norm.cdf(values), 2)) if self.of_normal == "heavy tails" else values


NOISES = {
    "independent": Noise(0),
    "AR(1) 0.3": Noise(0.3),
    "AR(1) 0.6": Noise(0.6),
    "AR(1) 0.8": Noise(0.8),
    "AR(1) 0.9": Noise(0.9),
    "AR(1) 0.6, lognormal": Noise(0.6, "lognormal"),
    "AR(1) 0.9, heavy tails": Noise(0.9, "heavy tails"),
}


def compared(of: Noise, n: int, trials: int, rng: Rng, times: float, paired: bool) -> list[Comparison]:
    """Return comparisons of two models, the first `times` as slow, on a machine that becomes a third slower on the way.

    In pairs the noise is that of the ratio, and both share the machine. Apart, each has its own noise, and no machine.
    """
    rows = of.draw(trials, n, rng), (np.zeros((trials, n)) if paired else of.draw(trials, n, rng))
    machine = np.linspace(0, 0.3, n) if paired else np.zeros(n)
    a, b = (np.exp(machine + SCATTER * each) for each in rows)
    with mock.patch.object(comparison, "second_opinions", return_value=(0.0, {})):  # which take forty times as long
        return [comparison.compare((times * x).tolist(), y.tolist(), paired=paired) for x, y in zip(a, b, strict=True)]


@dataclass(frozen=True)
class Level:
    """How often equal models had a p-value of at most 5 %, and how often without a caution; the interval agrees."""

    alarms: float
    silent: float
    said: float
    agree: bool
    trials: int

    @property
    def error(self) -> float:
        return math.sqrt(max(self.alarms * (1 - self.alarms), 0.01) / self.trials)

    @property
    def verdict(self) -> str:
        if not self.agree:
            return "FAILS"
        if self.alarms <= LEVEL + TOLERANCE + 2 * self.error:
            return "holds"
        return "says so" if self.silent <= LEVEL + TOLERANCE + 2 * self.error else "FAILS"

    def __str__(self) -> str:
        text = f"{100 * self.alarms:.1f} ± {100 * self.error:.1f}, says {self.said:.0%}"
        return text if self.verdict == "holds" else f"{text}: {self.verdict}"


def level(rng: Rng, share: float) -> Iterator[dict[str, object]]:
    """Yield how often equal models differ, for pairs and samples, sizes and noises."""
    trials = max(10, int(1000 * share))
    for paired in (True, False):
        for n in ROUNDS:
            row: dict[str, object] = {"p ≤ 0.05 of equal models": "in pairs" if paired else "apart", "n": n}
            for name, of in NOISES.items():
                found = compared(of, n, trials, rng, 1.0, paired)
                alarm = np.array([one.p_value <= LEVEL for one in found])
                agree = all((one.p_value <= LEVEL) == (not one.ratio_ci[0] <= 1 <= one.ratio_ci[1]) for one in found)
                said = np.array([bool(one.caution) for one in found])
                row[name] = Level(alarm.mean(), np.mean(alarm & ~said), said.mean(), agree, trials)
            yield row


def power(rng: Rng, share: float) -> Iterator[dict[str, object]]:
    """Yield how often pairs show a difference, by its size in deviations of a round's ratio, and p of a large one."""
    trials = max(10, int(300 * share))
    for n in ROUNDS:
        for times in (1 + SCATTER / 2, 1 + SCATTER, 19.0):
            row: dict[str, object] = {"in pairs, one takes": f"{times:.4g} times as long", "n": n}
            for name, of in NOISES.items():
                p = [one.p_value for one in compared(of, n, trials, rng, times, True)]
                middle = f"p = {np.median(p):.1g}" if np.median(p) >= 1e-9 else "p < 1e-9"
                row[name] = f"{np.mean(np.less_equal(p, LEVEL)):.0%}, {middle}"
            yield row


TABLES = {"level": level, "power": power}
