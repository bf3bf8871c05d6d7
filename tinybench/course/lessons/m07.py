"""Races of a model against itself for module 07, and the rate of false winners by looks and by the order of calls.

In each round of a race, both contestants are timed once. A winner is false if the contestants are equally fast.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tinybench.course.accessible_figures import OKABE_ITO
from tinybench.support.basics.numbers import number_of
from tinybench.support.comparisons.cautions import independent_values
from tinybench.support.comparisons.two_samples import compare_batches, few_batches

FIRST_LOOK = 10  # the first round after which the p-value is tested


def races_of_one_model(
    call: Callable[[], Any],
    number: int = 60,
    rounds: int = 300,
    seconds: float = 20.0,
    clock: Callable[[], float] = time.perf_counter,
) -> list[np.ndarray]:
    """Run races of a function against itself. Return, for each race, the sign test's p-values after each round.

    Run at most `number` races of `rounds` rounds. After `seconds`, start no further race. Run at least one race.
    """
    from scipy.stats import binom

    n, races, stop = np.arange(1, rounds + 1), list[np.ndarray](), clock() + seconds
    while len(races) < number and (not races or clock() < stop):
        wins = np.cumsum([_first_wins(call, clock) for _ in range(rounds)])
        races.append(np.minimum(1, 2 * binom.sf(np.maximum(wins, n - wins) - 1, n, 0.5)))
    return races


def _first_wins(call: Callable[[], Any], clock: Callable[[], float]) -> bool:
    """Time `call` as each of two contestants, in random order. Return whether the first contestant is faster.

    Decide a tie at random.
    """
    times = [0.0, 0.0]
    for runner in random.sample((0, 1), 2):
        start = clock()
        call()
        times[runner] = clock() - start
    return times[0] < times[1] or (times[0] == times[1] and random.random() < 0.5)


def winners(races: list[np.ndarray]) -> tuple[int, int]:
    """Return the number of races with p < 0.05 after the last round, and the number with p < 0.05 in any round.

    The second number ignores the rounds before the tenth.
    """
    return sum(bool(p[-1] < 0.05) for p in races), sum(bool((p[FIRST_LOOK - 1 :] < 0.05).any()) for p in races)


def figure_of_races(races: list[np.ndarray], each: int = 4) -> dict[str, Any]:
    """Return arguments for `show_figure`: the p-values of some races with a false winner, and of some without.

    A race has a false winner if its p-value falls below 0.05 in any round from the tenth on. The figure shows at most
    `each` races of either kind.
    """
    import matplotlib.pyplot as plt

    begin = FIRST_LOOK - 1
    dipped = [p for p in races if (p[begin:] < 0.05).any()][:each]
    calm = [p for p in races if not (p[begin:] < 0.05).any()][:each]
    figure, axes = plt.subplots(figsize=(6.5, 3.4))
    looks = np.arange(FIRST_LOOK, len(races[0]) + 1)
    for p in calm:
        axes.plot(looks, p[begin:], color="0.6", linewidth=0.8)
    for p, color in zip(dipped, OKABE_ITO, strict=False):
        first = int(np.flatnonzero(p[begin:] < 0.05)[0])
        axes.plot(looks, p[begin:], color=color, linewidth=1.4)
        axes.plot(looks[first], p[begin + first], "v", color=color, markersize=9)
    lowest = min(float(p[begin:].min()) for p in dipped + calm)
    axes.axhline(0.05, color="black", linewidth=1.2)
    axes.annotate("0.05", (looks[-1], 0.05), (4, 0), textcoords="offset points", va="center")
    axes.set(xlabel="rounds so far", ylabel="p value so far", yscale="log", xlim=(0, looks[-1]))
    axes.set_ylim(min(2e-3, 0.7 * lowest), 1.4)
    axes.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    back = sum(bool(p[-1] >= 0.05) for p in dipped)
    return {
        "figure": figure,
        "alt": f"Wandering p values over {number_of(looks[-1], 'round')}: of {number_of(len(dipped), 'race')} that "
        "fell below 0.05 at some look, "
        f"marked by a triangle where they first did, and of {len(calm)} that never did. At the end {back} of the "
        f"{len(dipped)} are above 0.05 again.",
        "caption": f"A p value wanders. Thick: {len(dipped)} of the races with a 'winner' at some look, a triangle "
        f"where one would have stopped; {back} of these end above 0.05. Grey: races that never fell below.",
        "data": {
            "race": list(range(1, len(dipped + calm) + 1)),
            "smallest p": [float(p[begin:].min()) for p in dipped + calm],
            "last p": [float(p[-1]) for p in dipped + calm],
        },
    }


def ratio_of_rounds(
    a: list[float], b: list[float], median_ratio: Callable[[list[float], list[float]], tuple[float, float, float]]
) -> tuple[float, float, float, int]:
    """Return the median ratio, its 95 % interval, and the number of values that the interval comes from.

    If rounds depend on each other, these values are batches of rounds, as in `tinybench.comparison.compare`.
    """
    x, y, _ = independent_values(a, b, True)
    if few_batches(x, y, len(a)):
        found = compare_batches(x, y)
        return found["ratio"], *found["ratio_ci"], len(x)
    return *median_ratio(x, y), len(x)


def false_winners(
    sign_e_value: Callable[[int, int], float], races: int = 400, rounds: int = 400, seed: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate races of equal contestants. Return the percentages of races with a winner so far, by round.

    There are two arrays. In the first, a contestant wins once p < 0.05 in a t-test. In the second, a contestant wins
    once the e-value is at least 20.
    """
    from scipy import stats

    logs, n = np.random.default_rng(seed).normal(0, 0.03, (races, rounds)), np.arange(1, rounds + 1)
    means = np.cumsum(logs, axis=1) / n
    errors = np.sqrt((np.cumsum(logs**2, axis=1) / n - means**2) / np.maximum(n - 1, 1)) + 1e-12
    by_p = 2 * stats.t.sf(np.abs(means) / errors, np.maximum(n - 1, 1)) < 0.05
    by_p[:, : FIRST_LOOK - 1] = False
    by_e = _reaches_twenty(logs > 0, sign_e_value)
    percent = (100 * np.maximum.accumulate(found, axis=1).mean(axis=0) for found in (by_p, by_e))
    return next(percent), next(percent)


def _reaches_twenty(wins: np.ndarray, sign_e_value: Callable[[int, int], float]) -> np.ndarray:
    """Return whether the e-value of each race (row) is at least 20 after each of its rounds (columns)."""
    heads, rounds = np.cumsum(wins, axis=1), range(1, wins.shape[1] + 1)
    enough = {(k, m): sign_e_value(k, m) >= 20 for m in rounds for k in set(heads[:, m - 1].tolist())}
    return np.array([[enough[k, m] for m, k in enumerate(row, start=1)] for row in heads.tolist()])


def winners_by_order(
    sign_e_value: Callable[[int, int], float], races: int = 400, rounds: int = 300, seed: int = 4
) -> dict[str, tuple[float, float]]:
    """Simulate races of equal contestants on three machines. Return the percentages of races with a winner at e ≥ 20.

    The first percentage is for a fixed order of the calls, the second for an order drawn in each round. Every call
    scatters by 0.1 %. On the first machine, nothing else happens. On the second, the time of a call depends on the time
    of the call before it (AR(1), 0.9). The third slows by 0.03 % from each call to the next.
    """
    generator = np.random.default_rng(seed)
    scatter = generator.normal(0, 0.001, (races, 2 * rounds))
    dependent = scatter.copy()
    for call in range(1, 2 * rounds):
        dependent[:, call] += 0.9 * dependent[:, call - 1]
    machines = {
        "independent calls": scatter,
        "each call like the one before": dependent,
        "steadily slower": scatter + 0.0003 * np.arange(2 * rounds),
    }
    swapped, found = generator.random((races, rounds)) < 0.5, dict[str, tuple[float, float]]()
    for name, logs in machines.items():
        second_slower = logs[:, 1::2] > logs[:, ::2]
        fixed, drawn = (
            100 * float(_reaches_twenty(wins, sign_e_value).any(axis=1).mean())
            for wins in (second_slower, second_slower != swapped)
        )
        found[name] = fixed, drawn
    return found
