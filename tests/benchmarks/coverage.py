"""Does each interval of the package hold what it promises, and does a result say so where it does not?

Each cell draws many samples whose truth is known, hands them to the function that users call, and counts how often
its interval holds the truth, and how often the result comes with a caution. Intervals of order statistics promise
their exact coverage, others 95 %. A cell is judged, up to twice the error of the simulation:

holds
    it covers at most 2 points less than it promises.
says so
    at most 2 points more of all results than may miss, miss without a caution.
FAILS
    neither.

The p-value of `compare` is judged in the same way: how often it is at most 5 % for equal models, and how often without
a caution. It FAILS, too, if it contradicts its interval once.
"""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from tests.benchmarks.formats import table
from tests.benchmarks.harness import Benchmark, Case, Part, Record, Records, Trial
from tests.benchmarks.intervals import INTERVALS, KINDS, STOP_AT, Noise, Rng, compare
from tinybench import accuracy, comparison, pareto
from tinybench.result import BenchmarkResult
from tinybench.support.comparisons.verdict import Comparison

LEVEL, SCATTER, TOLERANCE = 0.05, 0.05, 0.02
ROUNDS = (30, 100, 300, 1000)
NOISES = {
    "independent": Noise(),
    **{f"AR(1) {phi}": Noise(phi) for phi in (0.3, 0.6, 0.8, 0.9)},
    "AR(1) 0.6, lognormal": Noise(0.6, "lognormal"),
    "AR(1) 0.9, heavy tails": Noise(0.9, "heavy tails"),
}


def cell(held: float, trials: int, promised: float = 0.95, silent: float | None = None, **more: Any) -> Record:
    """Return how often an interval held, and how often it missed without a caution: always, if `silent` is not given."""
    told = {"held": float(held), "trials": trials, "promised": promised, "said": 0.0, "note": "", "agree": True}
    return told | {"silent": float(1 - held if silent is None else silent)} | more


def error(cell: Record) -> float:
    return math.sqrt(max(cell["held"] * (1 - cell["held"]), 0.01) / cell["trials"])


def verdict(cell: Record) -> str:
    slack = TOLERANCE + 2 * error(cell)
    if cell["note"]:
        return "not judged"
    if cell["agree"] and cell["held"] >= cell["promised"] - slack:
        return "holds"
    return "says so" if cell["agree"] and cell["silent"] <= 1 - cell["promised"] + slack else "FAILS"


def text(cell: Record, shown: float) -> str:
    """Return a share with its error, how often there was a caution, and the verdict unless it holds."""
    if cell["note"]:
        return cell["note"]
    told = f"{100 * shown:.1f} ± {100 * error(cell):.1f}, says {cell['said']:.0%}"
    return told if verdict(cell) == "holds" else f"{told}: {verdict(cell)}"


def goals(found: Records) -> dict[str, bool]:
    """Return whether no cell fails. The tables show which ones do."""
    failed = sum(verdict(cell) == "FAILS" for cell in found)
    return {f"{failed} of {len(found)} cells fail": not failed}


def drawn(trial: Trial, trials: int) -> tuple[Rng, int]:
    """Return the generator of a cell, and how often it is tried."""
    return np.random.default_rng([*trial.part.encode(), trial.place]), max(10, trials // 200) if trial.short else trials


# intervals of samples


def sample_cases(options: Namespace) -> list[Case]:
    return [(name, n, kind) for name, interval in INTERVALS.items() for n in interval.sizes for kind in KINDS]


def measured_samples(trial: Trial) -> Record:
    """Return how often an interval holds on samples of a kind."""
    name, n, kind = trial.case
    interval, noise = INTERVALS[name], KINDS[kind]
    rng, trials = drawn(trial, interval.trials)
    rows = [noise.draw(rng, trials, n) for _ in range(interval.samples)]
    try:
        found = [interval.find(*row) for row in zip(*rows, strict=True)]
        promised = interval.promise(n)
    except ValueError as refusal:  # too few values for an interval
        return cell(0, trials, note="takes " + re.findall(r"at least (\d+) values", str(refusal))[0])
    held = np.array([one.low <= noise.truths[interval.truth] <= one.high for one in found])
    said = np.array([bool(one.said) for one in found])
    return cell(held.mean(), trials, promised, np.mean(~held & ~said), said=said.mean())


def crossed(found: Records, begun: Callable[[Record], Record], shown: Callable[[Record], str]) -> str:
    """Return a table with a row for the first two things of a case, begun by its first record, and a column for the third."""
    rows: dict[Case, Record] = {}
    for each in found:
        name, n, column = each["case"]
        rows.setdefault((name, n), begun(each) | {"n": str(n)})[column] = shown(each)
    return table(rows.values())


def sample_page(found: Records) -> list[str]:
    def begun(each: Record) -> Record:
        return {"interval": each["case"][0], "n": "", "promised": "–" if each["note"] else f"{each['promised']:.1%}"}

    return [crossed(found, begun, lambda each: text(each, each["held"]))]


# intervals of counts


def wilson(rng: Rng, trials: int, rows: int, low: float, high: float) -> Record:
    """Return the mean coverage over accuracies of a range, exactly: at single accuracies it swings around the promise."""
    ends = np.array([accuracy.wilson_interval(k, rows) for k in range(rows + 1)])
    shares = rng.uniform(low, high, trials)[:, None]
    inside = (ends[:, 0] <= shares) & (shares <= ends[:, 1])
    held = np.mean((inside * stats.binom.pmf(np.arange(rows + 1), rows, shares)).sum(axis=1))
    return cell(float(held), 10**6, label=f"accuracy (Wilson), {rows} rows, {low:.0%}–{high:.0%}")


def loss(rng: Rng, trials: int, rows: int, lost: float, discordant: float) -> Record:
    """Return the coverage of the interval of a loss, for rows that one of two models gets right."""
    interval = cache(lambda a, b: accuracy.difference_interval(a, b, rows))
    chances = [(discordant + lost) / 2, (discordant - lost) / 2, 1 - discordant]
    ends = np.array([interval(a, b) for a, b, _ in rng.multinomial(rows, chances, trials).tolist()])
    held = np.mean((ends[:, 0] <= lost) & (lost <= ends[:, 1]))
    return cell(float(held), trials, label=f"loss, {rows} rows, {lost:.0%} lost of {discordant:.0%}")


def membership(rng: Rng, trials: int, rows: int, n: int) -> Record:
    """Return how seldom a model that is as accurate as a faster one is said to be on the frontier with 95 %."""
    trials, wrong = max(10, trials // 10), 0
    for _ in range(trials):
        y = rng.integers(0, 2, rows)
        points = []
        for seconds in (1.0, 160.0):
            answers = np.where(rng.random(rows) < 0.05, 1 - y, y)
            found = accuracy.measure_accuracy(lambda _, answers=answers: answers, (np.zeros((rows, 1)), y))
            times = BenchmarkResult("latency", seconds * np.exp(0.1 * rng.normal(size=n)), unit="s")
            points.append({"accuracy": found, "latency": times})
        wrong += pareto.membership_probability(points, resamples=200)[1] >= 0.95
    return cell(1 - wrong / trials, trials, label=f"frontier, {rows} rows, {n} rounds: not called a member")


evidence = np.vectorize(cache(comparison.sign_e_value), otypes=[float])


def stopping(rng: Rng, trials: int, kind: str, order: str) -> Record:
    """Return how often `compare_live` does not stop in 500 rounds of two equal models, whose order matters by AR(1)."""
    gaps = KINDS[kind].draw(rng, trials, 500)
    signs = gaps if order == "one order" else rng.choice([-1.0, 1.0], gaps.shape) * gaps
    more = np.cumsum(signs > 0, axis=1)
    held = 1 - np.mean(np.any(evidence(more, np.arange(1, 501)) >= STOP_AT, axis=1))
    note = f"{100 * held:.1f}, for comparison only" if order == "one order" else ""
    return cell(held, trials, label=f"stopping rule, {kind}, {order}", note=note)


COUNTS = {"wilson": wilson, "loss": loss, "membership": membership, "stopping": stopping}


def count_cases(options: Namespace) -> list[Case]:
    losses = ((0.0, 0.02), (0.01, 0.01), (0.01, 0.05), (0.05, 0.1))
    return [
        *(("wilson", rows, *ends) for rows in (30, 100, 1000) for ends in ((0.5, 0.9), (0.9, 0.99))),
        *(("loss", rows, *lost) for rows in (50, 214, 1000) for lost in losses),
        *(("membership", *how) for how in ((200, 10), (1000, 30))),
        *product(["stopping"], KINDS, ("a coin for the order", "one order")),
    ]


def measured_counts(trial: Trial) -> Record:
    name, *how = trial.case
    return COUNTS[name](*drawn(trial, 4000), *how)


def count_page(found: Records) -> list[str]:
    return [table({"interval": each["label"], "holds": text(each, each["held"])} for each in found)]


# p-values where rounds depend on one another

LEVELS = list(product(("in pairs", "apart"), ROUNDS, NOISES))
POWERS = [(times, n, noise) for n in ROUNDS for times in (1 + SCATTER / 2, 1 + SCATTER, 19.0) for noise in NOISES]


def comparisons(trial: Trial, trials: int, times: float, n: int, noise: str, paired: bool) -> list[Comparison]:
    """Return comparisons of two models, the first `times` as slow, on a machine that becomes a third slower on the way.

    In pairs the noise is that of the ratio, and both share the machine. Apart, each has its own noise, and no machine.
    """
    rng, trials = drawn(trial, trials)
    draw = NOISES[noise].draw
    rows = draw(rng, trials, n), (np.zeros((trials, n)) if paired else draw(rng, trials, n))
    machine = np.linspace(0, 0.3, n) if paired else np.zeros(n)
    a, b = (np.exp(machine + SCATTER * each) for each in rows)
    return [compare(times * x, y, paired) for x, y in zip(a, b, strict=True)]


def measured_level(trial: Trial) -> Record:
    """Return how often equal models do not differ, and whether the interval agrees with the p-value."""
    how, n, noise = trial.case
    found = comparisons(trial, 1000, 1.0, n, noise, how == "in pairs")
    alarm = np.array([one.p_value <= LEVEL for one in found])
    said = np.array([bool(one.caution) for one in found])
    agree = all((one.p_value <= LEVEL) == (not one.ratio_ci[0] <= 1 <= one.ratio_ci[1]) for one in found)
    return cell(1 - alarm.mean(), len(found), silent=np.mean(alarm & ~said), said=said.mean(), agree=agree)


def measured_power(trial: Trial) -> Record:
    """Return how often pairs show a difference, and the median p-value."""
    times, n, noise = trial.case
    p = [one.p_value for one in comparisons(trial, 300, times, n, noise, True)]
    return {"found": float(np.mean(np.less_equal(p, LEVEL))), "p": float(np.median(p))}


def level_page(found: Records) -> list[str]:
    return [
        "Percent of comparisons of two equal models with p ≤ 0.05, and how many come with a caution. Rounds depend on one "
        "another by AR(1); in pairs the machine also becomes a third slower on the way. Interval and p-value agree in every "
        "comparison.",
        crossed(
            found, lambda each: {"p ≤ 0.05 of equal models": each["case"][0]}, lambda each: text(each, 1 - each["held"])
        ),
    ]


def power_page(found: Records) -> list[str]:
    def told(each: Record) -> str:
        return f"{each['found']:.0%}, " + (f"p = {each['p']:.1g}" if each["p"] >= 1e-9 else "p < 1e-9")

    return [
        "Percent of comparisons with p ≤ 0.05, and the median p-value. The ratio of a round scatters by 5 %.",
        crossed(found, lambda each: {"in pairs, one takes": f"{each['case'][0]:.4g} times as long"}, told),
    ]


BENCHMARK = Benchmark(
    "What each interval covers",
    {
        "samples": Part("Samples", measured_samples, sample_page, goals, sample_cases, "processes"),
        "counts": Part("Counts", measured_counts, count_page, goals, count_cases, "processes"),
        "level": Part(
            "The p-value under dependence", measured_level, level_page, goals, lambda options: LEVELS, "processes"
        ),
        "power": Part(
            "What the p-value finds", measured_power, power_page, cases=lambda options: POWERS, parallel="processes"
        ),
    },
    intro="All values are simulated, so that another machine, or a busy one, gives the same page. Percent of the "
    "intervals that hold the truth, with the error of the simulation, and how many results come with a caution.",
)
