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
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from tests.benchmarks.formats import table
from tests.benchmarks.harness import Benchmark, Case, Part, Trial
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
Record = dict[str, Any]


def cell(held: float, trials: int, promised: float = 0.95, silent: float | None = None, **more: Any) -> Record:
    """Return how often an interval held, and how often it missed without a caution: always, if `silent` is not given."""
    told = {"held": float(held), "trials": trials, "promised": promised, "said": 0.0, "note": "", "agree": True}
    return told | {"silent": float(1 - held if silent is None else silent)} | more


def error(cell: Record) -> float:
    return math.sqrt(max(cell["held"] * (1 - cell["held"]), 0.01) / cell["trials"])  # type: ignore[no-any-return]


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
        return cell["note"]  # type: ignore[no-any-return]
    told = f"{100 * shown:.1f} ± {100 * error(cell):.1f}, says {cell['said']:.0%}"
    return told if verdict(cell) == "holds" else f"{told}: {verdict(cell)}"


def goals(found: Sequence[Record]) -> dict[str, bool]:
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


def sample_page(found: Sequence[Record]) -> list[str]:
    rows: dict[Case, dict[str, str]] = {}
    for each in found:
        name, n, kind = each["case"]
        row = rows.setdefault((name, n), {"interval": name, "n": str(n), "promised": "–"})
        row |= {kind: text(each, each["held"])} | ({} if each["note"] else {"promised": f"{each['promised']:.1%}"})
    return [table(rows.values())]


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


@cache
def signs_needed(rounds: int) -> list[int]:
    """Return after each round how many rounds of one sign stop `compare_live`."""
    return [
        next((k for k in range(n // 2, n + 1) if comparison.sign_e_value(k, n) >= STOP_AT), n + 1)
        for n in range(1, rounds + 1)
    ]


def stopping(rng: Rng, trials: int, kind: str, order: str) -> Record:
    """Return how often `compare_live` does not stop in 500 rounds of two equal models, whose order matters by AR(1)."""
    gaps = KINDS[kind].draw(rng, trials, 500)
    signs = gaps if order == "one order" else rng.choice([-1.0, 1.0], gaps.shape) * gaps
    more = np.cumsum(signs > 0, axis=1)
    stopped = np.any(np.maximum(more, np.arange(1, 501) - more) >= signs_needed(500), axis=1)
    held = 1 - float(stopped.mean())
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


def count_page(found: Sequence[Record]) -> list[str]:
    return [table({"interval": each["label"], "holds": text(each, each["held"])} for each in found)]


# intervals of accuracies whose rows depend on one another in groups

LEAST_BY_GROUPS = 0.94


def cluster_cases(options: Namespace) -> list[Case]:
    return list(product((20, 60, 360), (2, 6, 16), (0.0, 0.3, 0.8, 1.0), (0.9, 0.97)))


def measured_clusters(trial: Trial) -> Record:
    """Return how often the interval by groups holds on beta-binomial rows, and how often Wilson's by rows does."""
    groups, size, correlation, share = trial.case
    rng, trials = drawn(trial, 2000)
    numbers, held = np.repeat(np.arange(groups), size), []
    for _ in range(trials):
        if 0 < correlation < 1:
            chances = rng.beta(*(each * (1 / correlation - 1) for each in (share, 1 - share)), groups)
        else:
            chances = (rng.random(groups) < share) if correlation else np.full(groups, share)
        right = rng.random(len(numbers)) < chances[numbers]
        ends = accuracy.cluster_interval(right, numbers), accuracy.wilson_interval(int(right.sum()), len(right))
        held.append([low <= share <= high for low, high in ends])
    by_groups, by_rows = np.mean(held, axis=0).tolist()
    return cell(by_groups, trials, by_rows=by_rows)


def cluster_page(found: Sequence[Record]) -> list[str]:
    rows: dict[Case, dict[str, str]] = {}
    for each in found:
        groups, size, correlation, share = each["case"]
        row = rows.setdefault((groups, size), {"groups": str(groups), "rows each": str(size)})
        row[f"{share:.0%}, ρ = {correlation:g}"] = f"{100 * each['held']:.1f} ({100 * each['by_rows']:.0f})"
    return [
        "Percent of the intervals by groups (`cluster_interval`) that hold an accuracy of 90 % or 97 %, if the rows of a "
        "group correlate by ρ. In brackets: Wilson's intervals, which take all rows for independent. The simulation errs by "
        "about 0.5, in brackets by up to 1.1.",
        table(rows.values()),
    ]


def cluster_goals(found: Sequence[Record]) -> dict[str, bool]:
    low = sum(each["held"] < LEAST_BY_GROUPS - 2 * error(each) for each in found)
    return {f"{low} of {len(found)} intervals by groups cover less than {LEAST_BY_GROUPS:.0%}": not low}


# p-values where rounds depend on one another


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


def by_noise(found: Sequence[Record], first: str, words: str, cell: Any) -> str:
    """Return a table with a row for each size and a column for each noise."""
    rows: dict[Case, dict[str, str]] = {}
    for each in found:
        how, n, noise = each["case"]
        rows.setdefault((how, n), {first: words.format(how), "n": str(n)})[noise] = cell(each)
    return table(rows.values())


def level_page(found: Sequence[Record]) -> list[str]:
    return [
        "Percent of comparisons of two equal models with p ≤ 0.05, and how many come with a caution. Rounds depend on one "
        "another by AR(1); in pairs the machine also becomes a third slower on the way. Interval and p-value agree in every "
        "comparison.",
        by_noise(found, "p ≤ 0.05 of equal models", "{}", lambda each: text(each, 1 - each["held"])),
    ]


def power_page(found: Sequence[Record]) -> list[str]:
    def told(each: Record) -> str:
        return f"{each['found']:.0%}, " + (f"p = {each['p']:.1g}" if each["p"] >= 1e-9 else "p < 1e-9")

    return [
        "Percent of comparisons with p ≤ 0.05, and the median p-value. The ratio of a round scatters by 5 %.",
        by_noise(found, "in pairs, one takes", "{:.4g} times as long", told),
    ]


def level_cases(options: Namespace) -> list[Case]:
    return list(product(("in pairs", "apart"), ROUNDS, NOISES))


def power_cases(options: Namespace) -> list[Case]:
    return [(times, n, noise) for n in ROUNDS for times in (1 + SCATTER / 2, 1 + SCATTER, 19.0) for noise in NOISES]


BENCHMARK = Benchmark(
    "What each interval covers",
    {
        "samples": Part("Samples", measured_samples, sample_page, goals, sample_cases, "processes"),
        "counts": Part("Counts", measured_counts, count_page, goals, count_cases, "processes"),
        "clusters": Part("Groups", measured_clusters, cluster_page, cluster_goals, cluster_cases, "processes"),
        "level": Part("The p-value under dependence", measured_level, level_page, goals, level_cases, "processes"),
        "power": Part("What the p-value finds", measured_power, power_page, cases=power_cases, parallel="processes"),
    },
    intro="All values are simulated, so that another machine, or a busy one, gives the same page. Percent of the "
    "intervals that hold the truth, with the error of the simulation, and how many results come with a caution.",
)
