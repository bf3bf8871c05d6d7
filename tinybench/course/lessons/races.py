"""Races for module 07: a model against itself, and how often somebody who looks all the time finds a winner."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tinybench.course.figures import show_figure

FIRST_LOOK = 10  # rounds


def races_of_one_model(
    call: Callable[[], Any],
    number: int = 60,
    rounds: int = 300,
    seconds: float = 20.0,
    clock: Callable[[], float] = time.perf_counter,
) -> list[np.ndarray]:
    """Return for each race of a function against itself the sign test's p value after each round.

    There are fewer races than `number`, but at least one, if they take longer than `seconds`.
    """
    from scipy.stats import binom

    n, races, stop = np.arange(1, rounds + 1), list[np.ndarray](), clock() + seconds
    while len(races) < number and (not races or clock() < stop):
        wins = np.cumsum([_first_wins(call, clock) for _ in range(rounds)])
        races.append(np.minimum(1, 2 * binom.sf(np.maximum(wins, n - wins) - 1, n, 0.5)))
    return races


def _first_wins(call: Callable[[], Any], clock: Callable[[], float]) -> bool:
    """Time both contestants once, in an order drawn by lot; a tie goes to either."""
    times = [0.0, 0.0]
    for runner in random.sample((0, 1), 2):
        start = clock()
        call()
        times[runner] = clock() - start
    return times[0] < times[1] or (times[0] == times[1] and random.random() < 0.5)


def winners(races: list[np.ndarray]) -> tuple[int, int]:
    """Return how many races have p < 0.05 at the end, and how many at some look from the tenth round on."""
    return sum(bool(p[-1] < 0.05) for p in races), sum(bool((p[FIRST_LOOK - 1 :] < 0.05).any()) for p in races)


def show_races(races: list[np.ndarray]) -> None:
    """Draw the p values of some races: those that would have been stopped, up to where, and the others."""
    import matplotlib.pyplot as plt

    shown, figure = races[:12], plt.figure(figsize=(6.5, 3.4))
    axes, stopped = figure.subplots(), 0
    for p in shown:
        looks, seen = np.arange(FIRST_LOOK, len(p) + 1), p[FIRST_LOOK - 1 :]
        below = np.flatnonzero(seen < 0.05)
        axes.plot(looks, seen, color="#D55E00" if len(below) else "0.65", linewidth=1.2 if len(below) else 0.8)
        if len(below):
            stopped += 1
            axes.plot(looks[below[0]], seen[below[0]], "v", color="#D55E00", markersize=8)
    axes.axhline(0.05, color="black", linewidth=1.2)
    axes.annotate("0.05", (len(shown[0]), 0.05), (4, 0), textcoords="offset points", va="center")
    axes.set(xlabel="rounds so far", ylabel="p value so far", yscale="log")
    axes.set_ylim(min(2e-3, 0.7 * min(float(p[FIRST_LOOK - 1 :].min()) for p in shown)), 1.4)
    axes.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    back = sum(bool((p[FIRST_LOOK - 1 :] < 0.05).any() and p[-1] >= 0.05) for p in shown)
    show_figure(
        figure,
        alt=f"{len(shown)} wandering p values over {len(shown[0])} rounds; {stopped} of them fall below 0.05 at some "
        f"round, marked by a triangle, and {back} of these end above it.",
        caption=f"{len(shown)} of the races. A p value wanders. {stopped} of these fell below 0.05 at some time, first "
        f"at the triangle; {back} of them end above it.",
        data={
            "race": list(range(1, len(shown) + 1)),
            "smallest p": [float(p[FIRST_LOOK - 1 :].min()) for p in shown],
            "last p": [float(p[-1]) for p in shown],
        },
    )


def false_winners(
    sign_e_value: Callable[[int, int], float], races: int = 400, rounds: int = 400, seed: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentage of races between equals with a winner by each round: by t-test p < 0.05, and by e ≥ 20."""
    from scipy import stats

    logs, n = np.random.default_rng(seed).normal(0, 0.03, (races, rounds)), np.arange(1, rounds + 1)
    means = np.cumsum(logs, axis=1) / n
    errors = np.sqrt((np.cumsum(logs**2, axis=1) / n - means**2) / np.maximum(n - 1, 1)) + 1e-12
    by_p = 2 * stats.t.sf(np.abs(means) / errors, np.maximum(n - 1, 1)) < 0.05
    by_p[:, : FIRST_LOOK - 1] = False
    heads = np.cumsum(logs > 0, axis=1)
    enough = {(k, m): sign_e_value(k, m) >= 20 for m in n.tolist() for k in set(heads[:, m - 1].tolist())}
    by_e = np.array([[enough[k, m] for m, k in enumerate(row, start=1)] for row in heads.tolist()])
    percent = (100 * np.maximum.accumulate(found, axis=1).mean(axis=0) for found in (by_p, by_e))
    return next(percent), next(percent)
