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
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from scipy import stats
from scipy.signal import lfilter

from tests.benchmarks.formats import table
from tests.benchmarks.harness import Benchmark, Case, Part, Record, Records, Trial
from tinybench import accuracy, benchmark, comparison, pareto, result
from tinybench.result import BenchmarkResult
from tinybench.support.basics.paired_rows import difference_interval
from tinybench.support.comparisons.verdict import Comparison

Rng = np.random.Generator
SIZES = (5, 10, 30, 100)
STOP_AT = 20.0
LEVEL, SCATTER, TOLERANCE = 0.05, 0.05, 0.02

# what is drawn

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
ROUNDS = (30, 100, 300, 1000)
NOISES = {
    "independent": Noise(),
    **{f"AR(1) {phi}": Noise(phi) for phi in (0.3, 0.6, 0.8, 0.9)},
    "AR(1) 0.6, lognormal": Noise(0.6, "lognormal"),
    "AR(1) 0.9, heavy tails": Noise(0.9, "heavy tails"),
}


# what is called: one function for each interval, from a drawn row (or two) to what a user gets


class Found(NamedTuple):
    """An interval, and whether the result comes with a caution."""

    low: float
    high: float
    said: bool = False


def warned(made: BenchmarkResult, of_mean: bool) -> bool:
    """Return whether a result comes with a caution. Skewness concerns the interval of the mean alone."""
    return any(of_mean or not text.startswith("values are skewed") for text in made.cautions)


def of_result(take: Callable[[BenchmarkResult], tuple[float, float]], of_mean: bool = False) -> Callable[..., Found]:

    def find(values: np.ndarray) -> Found:
        made = BenchmarkResult("latency", 10 + values, unit="s")
        low, high = take(made)
        return Found(low - 10, high - 10, warned(made, of_mean))

    return find


def compare(a: np.ndarray, b: np.ndarray, paired: bool) -> Comparison:
    """Compare without second opinions, which take forty times as long."""
    with mock.patch("tinybench.support.comparisons.compared.second_opinions", return_value=(0.0, {})):
        return comparison.compare(a.tolist(), b.tolist(), paired=paired)


def compared(a: np.ndarray, b: np.ndarray, paired: bool) -> Found:
    """Return the logarithm of the ratio as `compare` finds it, or the difference of values that have no ratio."""
    found = compare(a, b, paired)
    said = bool(getattr(found, "caution", "")) or "batches" in found.method
    if math.isnan(found.ratio):
        return Found(*found.difference_ci, said)
    low, high = found.ratio_ci
    return Found(math.log(low) if low > 0 else -math.inf, math.log(high) if high < math.inf else math.inf, said)


def paired_ratio(values: np.ndarray, common: np.ndarray) -> Found:
    found = compared(np.exp(0.05 * (common + values)), np.exp(0.05 * common), True)
    return Found(found.low / 0.05, found.high / 0.05, found.said)


def throughput(*rows: np.ndarray) -> Found:
    """Return the logarithm of the best of three equal rates."""
    latencies = {
        size: BenchmarkResult("latency", size * np.exp(-0.1 * z), unit="s")
        for size, z in zip((1, 8, 64), rows, strict=True)
    }
    best = benchmark.best_throughput(latencies)
    low, high = best.median_ci()
    return Found(10 * math.log(low), 10 * math.log(high), warned(best, of_mean=False))


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


def ratio(a: np.ndarray, b: np.ndarray) -> Found:
    return compared(np.exp(0.1 * a), np.exp(0.1 * b), False)


def resampled(made: BenchmarkResult) -> tuple[float, float]:
    return result.bootstrap_interval(made.values, np.mean, resamples=500)


half, tenth = order_statistics(50), order_statistics(90)
INTERVALS = {
    "t": Interval(of_result(lambda made: (made.ci_lower, made.ci_upper), True), "mean"),
    "mean, in batches": Interval(of_result(BenchmarkResult.mean_ci, True), "mean"),
    "median": Interval(of_result(BenchmarkResult.median_ci), "median", promise=half),
    "p90": Interval(of_result(lambda made: result.percentile_interval(made.values, 90)), "p90", promise=tenth),
    "BCa of the mean": Interval(
        of_result(lambda made: made.bootstrap_ci(np.mean, resamples=500), True), "mean", trials=500
    ),
    "percentile bootstrap of the mean": Interval(of_result(resampled, True), "mean", trials=500),
    "paired ratio": Interval(paired_ratio, "median", 2, half, 1000),
    "ratio of two samples": Interval(ratio, "median", 2, trials=1000),
    "Welch's difference": Interval(lambda a, b: compared(2 * a - 20, b - 20, False), "mean", 2, trials=1000),
    "best throughput of three": Interval(throughput, "median", 3, half, 1000),
    "anytime, at all looks": Interval(anytime, "median", 2, trials=400, sizes=(10, 30, 100)),
}

# how a cell is judged


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
    failed = sum(verdict(cell) == "FAILS" for cell in found)
    return {f"{failed} of {len(found)} cells fail": not failed}


def drawn(trial: Trial, trials: int) -> tuple[Rng, int]:
    """Return the generator of a cell, and how often it is tried."""
    return np.random.default_rng([*trial.part.encode(), trial.place]), max(10, trials // 200) if trial.short else trials


# intervals of samples

SAMPLES = [(name, n, kind) for name, interval in INTERVALS.items() for n in interval.sizes for kind in KINDS]


def measured_samples(trial: Trial) -> Record:
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
    said = np.array([one.said for one in found])
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
    interval = cache(lambda a, b: difference_interval(a, b, rows))
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


LOSSES = ((0.0, 0.02), (0.01, 0.01), (0.01, 0.05), (0.05, 0.1))
COUNTS = [
    *(("wilson", rows, *ends) for rows in (30, 100, 1000) for ends in ((0.5, 0.9), (0.9, 0.99))),
    *(("loss", rows, *lost) for rows in (50, 214, 1000) for lost in LOSSES),
    *(("membership", *how) for how in ((200, 10), (1000, 30))),
    *product(["stopping"], KINDS, ("a coin for the order", "one order")),
]


def measured_counts(trial: Trial) -> Record:
    name, *how = trial.case
    counted = {"wilson": wilson, "loss": loss, "membership": membership, "stopping": stopping}[name]
    return counted(*drawn(trial, 4000), *how)


def count_page(found: Records) -> list[str]:
    return [table({"interval": each["label"], "holds": text(each, each["held"])} for each in found)]


# intervals of accuracies whose rows depend on one another in groups

LEAST_BY_GROUPS = 0.94
CLUSTERS: list[Case] = list(product((20, 60, 360), (2, 6, 16), (0.0, 0.3, 0.8, 1.0), (0.9, 0.97)))


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


def cluster_page(found: Records) -> list[str]:
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


def cluster_goals(found: Records) -> dict[str, bool]:
    low = sum(each["held"] < LEAST_BY_GROUPS - 2 * error(each) for each in found)
    return {f"{low} of {len(found)} intervals by groups cover less than {LEAST_BY_GROUPS:.0%}": not low}


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
        "samples": Part("Samples", measured_samples, sample_page, goals, SAMPLES, "processes"),
        "counts": Part("Counts", measured_counts, count_page, goals, COUNTS, "processes"),
        "clusters": Part("Groups", measured_clusters, cluster_page, cluster_goals, CLUSTERS, "processes"),
        "level": Part("The p-value under dependence", measured_level, level_page, goals, LEVELS, "processes"),
        "power": Part("What the p-value finds", measured_power, power_page, cases=POWERS, parallel="processes"),
    },
    intro="All values are simulated, so that another machine, or a busy one, gives the same page. Percent of the "
    "intervals that hold the truth, with the error of the simulation, and how many results come with a caution.",
)
