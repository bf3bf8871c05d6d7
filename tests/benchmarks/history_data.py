"""Histories with a known truth, and how others look for steps in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.processes import in_environment

COMMITS, SCATTER = 300, 0.005
OUTLIERS = tuple(f"outliers, 1 in {n}" for n in ("50, both sides", "20, both sides", "20, slow"))
INDEPENDENT = ("normal", "t, 3 df", "t, 2 df", *OUTLIERS)
CORRELATED = {f"autocorrelation {rho}": rho for rho in (0.1, 0.2, 0.3, 0.5)}
UNITS = {"ratios": "", "milliseconds": ", ms"}  # and how their ways are called
PLACED = tuple(range(60, 300, 60))  # where steps are, up to 15 commits earlier or later


class History(NamedTuple):
    """Ratios to a baseline measured in the same rounds, the times in ms on a machine that drifts, where steps are."""

    ratios: np.ndarray
    milliseconds: np.ndarray
    steps: list[int]


def scatter(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return deviations with the standard deviation 1 (Student's t: with the scale 1)."""
    if kind in CORRELATED:
        rho = CORRELATED[kind]
        values = rng.normal(size=n)
        for i in range(1, n):
            values[i] = rho * values[i - 1] + (1 - rho**2) ** 0.5 * values[i]
        return values
    if kind.startswith("t,"):
        return rng.standard_t(int(kind[3]), size=n)
    values = rng.normal(size=n)
    if kind.startswith("outliers"):
        often = float(kind.split()[3].rstrip(","))
        far = rng.uniform(10, 40, n) * (rng.random(n) < 1 / often)
        values += far if kind.endswith("slow") else far * rng.choice([-1, 1], n)
    return values


def drawn(kind: str, step: float, seed: int) -> History:
    """Return a history with four steps up or down by a share `step`, or without any (0).

    The machine wanders by 0.2 % from commit to commit and, three times, becomes 2 to 5 % slower or faster for good.
    """
    rng = np.random.default_rng([seed, round(1e6 * step), *kind.encode()])
    deviations = SCATTER * scatter(kind, COMMITS, rng)
    machine = np.cumsum(0.002 * rng.normal(size=COMMITS))
    for at in rng.integers(20, COMMITS - 20, 3):
        machine[at:] += rng.choice([-1, 1]) * rng.uniform(0.02, 0.05)
    steps = [int(at + rng.integers(-15, 16)) for at in PLACED] if step else []
    level = np.zeros(COMMITS)
    for at in steps:
        level[at:] += rng.choice([-1, 1]) * np.log1p(step)
    ratios = np.exp(level) * np.maximum(0.05, 1 + deviations)
    return History(ratios, 10 * ratios * np.exp(machine), steps)


def neighbours(values: np.ndarray) -> list[int]:
    """Return where a value differs by more than 2 % from the one before."""
    return [int(i) + 1 for i in np.flatnonzero(np.abs(np.diff(values) / values[:-1]) > 0.02)]


def pelt(values: np.ndarray) -> list[int]:
    """Return the change points of PELT: least squares, 3 ln n σ² for each, σ by the differences of neighbours."""
    import ruptures  # type: ignore[import-untyped]

    sigma = 1.4826 * np.median(np.abs(np.diff(values))) / 2**0.5
    found = ruptures.KernelCPD("linear", min_size=2).fit(values).predict(pen=3 * np.log(len(values)) * sigma**2)
    return [int(i) for i in found[:-1]]


def pelt_online(values: np.ndarray) -> list[tuple[int, int]]:
    """Return, for each change point that PELT tells when asked after every commit, after which it first did so."""
    first: dict[int, int] = {}
    for n in range(10, len(values) + 1):
        for at in pelt(values[:n]):
            first.setdefault(at, n - 1)
    return list(first.items())


def e_divisive(series: Sequence[np.ndarray]) -> list[list[int]]:
    """Return the change points of E-divisive with t tests, as Apache Otava does by default, asked once at the end."""
    script = Path(__file__).with_name("history_edivisive.py")
    found: list[list[int]] = in_environment("apache-otava==0.8.0", script, [each.tolist() for each in series])
    return found
