"""Does each interval of the package hold what it promises, and does a result say so where it does not?

Run ``python -m tests.benchmarks.coverage`` (ten to twenty minutes; ``--quick`` for a few seconds, ``--only t median`` for some). Prints a
Markdown table and exits 1 where an interval neither holds nor says that it does not.

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
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from tests.benchmarks.intervals import INTERVALS, KINDS, STOP_AT, Interval, Kind, Rng
from tests.benchmarks.p_values import TABLES, Level
from tests.benchmarks.report import RESULTS, command_line, on_this_machine
from tinybench import accuracy, comparison, pareto
from tinybench.result import BenchmarkResult
from tinybench.table import Table

TOLERANCE = 0.02
LEVELS = (
    "## The p-value under dependence\n\nPercent of comparisons of two equal models with p ≤ 0.05, and how many come with a "
    "caution. Rounds depend on one another by AR(1); in pairs the machine also becomes a third slower on the way. Interval "
    "and p-value agree in every comparison."
)
POWER = "Percent of comparisons with p ≤ 0.05, and the median p-value. The ratio of a round scatters by 5 %."


@dataclass(frozen=True)
class Cell:
    """How often an interval held, and how often it missed without a caution."""

    promised: float
    held: float
    said: float
    silent: float
    trials: int
    note: str = ""

    @property
    def error(self) -> float:
        return math.sqrt(max(self.held * (1 - self.held), 0.01) / self.trials)

    @property
    def verdict(self) -> str:
        if self.note:
            return "not judged"
        if self.held >= self.promised - TOLERANCE - 2 * self.error:
            return "holds"
        return "says so" if self.silent <= 1 - self.promised + TOLERANCE + 2 * self.error else "FAILS"

    def __str__(self) -> str:
        if self.note:
            return self.note
        text = f"{100 * self.held:.1f} ± {100 * self.error:.1f}, says {self.said:.0%}"
        return text if self.verdict == "holds" else f"{text}: {self.verdict}"


def simulate(interval: Interval, kind: Kind, n: int, trials: int, rng: Rng) -> Cell:
    """Return how often an interval holds on samples of a kind."""
    truth = interval.truth if isinstance(interval.truth, float) else getattr(kind, interval.truth)
    drawn = [kind.draw(rng, trials, n) for _ in range(interval.samples)]
    try:
        found = [interval.find(*rows) for rows in zip(*drawn, strict=True)]
        promised = interval.promise(n)
    except ValueError as refusal:  # too few values for an interval
        return Cell(1, 0, 1, 0, trials, "takes " + re.findall(r"at least (\d+) values", str(refusal))[0])
    if all(math.isinf(one.high - one.low) for one in found):
        return Cell(1, 1, 1, 0, trials, "too few, says so")
    held = np.array([one.low <= truth <= one.high for one in found])
    said = np.array([bool(one.said) for one in found])
    return Cell(promised, held.mean(), said.mean(), np.mean(~held & ~said), trials)


def of_samples(names: list[str], share: float, rng: Rng) -> Iterator[dict[str, Any]]:
    """Yield a row for each interval and size, with a cell for each kind of data."""
    for name in names:
        interval = INTERVALS[name]
        for n in interval.sizes:
            trials = max(10, int(share * interval.trials))
            cells = {kind: simulate(interval, KINDS[kind], n, trials, rng) for kind in KINDS}
            promised = next((cell.promised for cell in cells.values() if not cell.note), None)
            yield {"interval": name, "n": n, "promised": f"{promised:.1%}" if promised else "–", **cells}


# counts have grids of their own


def wilson(rng: Rng, trials: int) -> Iterator[tuple[str, Cell]]:
    """Yield the mean coverage over accuracies of a range, exactly: at single accuracies it swings around the promise."""
    for rows in (30, 100, 1000):
        ends = np.array([accuracy.wilson_interval(k, rows) for k in range(rows + 1)])
        for low, high in ((0.5, 0.9), (0.9, 0.99)):
            shares = rng.uniform(low, high, trials)
            inside = (ends[:, 0] <= shares[:, None]) & (shares[:, None] <= ends[:, 1])
            chances = stats.binom.pmf(np.arange(rows + 1), rows, shares[:, None])
            held = float(np.mean((inside * chances).sum(axis=1)))
            yield f"accuracy (Wilson), {rows} rows, {low:.0%}–{high:.0%}", Cell(0.95, held, 0, 1 - held, 10**6)


def loss(rng: Rng, trials: int) -> Iterator[tuple[str, Cell]]:
    """Yield the coverage of the interval of a loss, for rows that one of two models gets right."""
    kept: dict[tuple[int, int, int], tuple[float, float]] = {}
    for rows in (50, 214, 1000):
        for lost, discordant in ((0.0, 0.02), (0.01, 0.01), (0.01, 0.05), (0.05, 0.1)):
            chances = [(discordant + lost) / 2, (discordant - lost) / 2, 1 - discordant]
            held = []
            for a, b, _ in rng.multinomial(rows, chances, trials).tolist():
                low, high = kept.setdefault((a, b, rows), accuracy.difference_interval(a, b, rows))
                held.append(low <= lost <= high)
            share = float(np.mean(held))
            yield f"loss, {rows} rows, {lost:.0%} lost of {discordant:.0%}", Cell(0.95, share, 0, 1 - share, trials)


def membership(rng: Rng, trials: int) -> Iterator[tuple[str, Cell]]:
    """Yield how seldom a model that is as accurate as a faster one is said to be on the frontier with 95 %."""
    trials = max(10, trials // 10)
    for rows, n in ((200, 10), (1000, 30)):
        wrong = []
        for _ in range(trials):
            y = rng.integers(0, 2, rows)
            points = []
            for seconds in (1.0, 160.0):
                answers = np.where(rng.random(rows) < 0.05, 1 - y, y)
                found = accuracy.measure_accuracy(lambda _, answers=answers: answers, (np.zeros((rows, 1)), y))
                times = BenchmarkResult("latency", seconds * np.exp(0.1 * rng.normal(size=n)), unit="s")
                points.append({"accuracy": found, "latency": times})
            wrong.append(pareto.membership_probability(points, resamples=200)[1] >= 0.95)
        share = float(np.mean(wrong))
        yield f"frontier, {rows} rows, {n} rounds: not called a member", Cell(0.95, 1 - share, 0, share, trials)


def stopping(rng: Rng, trials: int) -> Iterator[tuple[str, Cell]]:
    """Yield how often `compare_live` does not stop in 500 rounds of two equal models, whose order matters by AR(1)."""
    rounds = 500
    counts = range(1, rounds + 1)
    needed = [
        next((k for k in range(n // 2, n + 1) if comparison.sign_e_value(k, n) >= STOP_AT), n + 1) for n in counts
    ]
    for name, kind in KINDS.items():
        gaps = kind.draw(rng, trials, rounds) - kind.median
        coins = rng.choice([-1.0, 1.0], gaps.shape)
        for how, signs in (("a coin for the order", coins * gaps), ("one order", gaps)):
            more = np.cumsum(signs > 0, axis=1)
            stopped = np.any(np.maximum(more, np.arange(1, rounds + 1) - more) >= needed, axis=1)
            held = 1 - float(stopped.mean())
            note = "" if how != "one order" else f"{100 * held:.1f}, for comparison only"
            yield f"stopping rule, {name}, {how}", Cell(0.95, held, 0, 1 - held, trials, note)


COUNTS = {"wilson": wilson, "loss": loss, "membership": membership, "stopping": stopping}


def main(arguments: list[str] | None = None) -> int:
    """Simulate, print the tables, and return 1 if an interval neither holds nor says that it does not."""
    parser = command_line("coverage", __doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds: shows that it works, not what is true")
    parser.add_argument("--only", nargs="+", choices=[*INTERVALS, *COUNTS, *TABLES], metavar="NAME", help="judge these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--publish", action="store_true", help=f"also write {RESULTS.name}/coverage.md")
    options = parser.parse_args(arguments)
    wanted, share = options.only or [*INTERVALS, *COUNTS, *TABLES], 0.005 if options.quick else 1.0
    rng, began, rows = np.random.default_rng(options.seed), time.perf_counter(), []
    for row in of_samples([name for name in INTERVALS if name in wanted], share, rng):
        rows.append(row)
        print(f"{time.perf_counter() - began:4.0f} s: {row['interval']}, n = {row['n']}", file=sys.stderr)
    counts = [{"interval": label, "holds": cell}
              for name, function in COUNTS.items() if name in wanted
              for label, cell in function(rng, int(4000 * share))]  # fmt: skip
    tables = [
        rows,
        counts,
        *(list(function(rng, share)) if name in wanted else [] for name, function in TABLES.items()),
    ]
    told = page(tables, time.perf_counter() - began)
    print(told)
    failures = [f"{', '.join(map(str, list(row.values())[:2]))}, {name}" for table in tables for row in table
                for name, cell in row.items() if isinstance(cell, Cell | Level) and cell.verdict == "FAILS"]  # fmt: skip
    if options.publish:
        (RESULTS / "coverage.md").write_text(told, encoding="utf-8")
    print(f"{len(failures)} of all cells fail", *failures, sep="\n- ", file=sys.stderr)
    return 1 if failures else 0


def page(tables: list[list[dict[str, Any]]], seconds: float) -> str:
    """Return the results as Markdown."""
    parts = [
        "# What each interval covers",
        f"`python -m tests.benchmarks.coverage --publish`, {on_this_machine()}, {seconds / 60:.0f} minutes. All "
        "values are simulated, so that another machine, or a busy one, gives the same page. Percent of the intervals that "
        "hold the truth, with the error of the simulation, and how many results come with a caution. How a cell is judged "
        "stands at the head of [coverage.py](../coverage.py).",
    ]
    texts = [[{name: str(cell) for name, cell in row.items()} for row in table] for table in tables]
    for heading, text in zip(("", "", LEVELS, POWER), texts, strict=False):
        parts += [heading, Table(text).markdown()] if text else []
    parts = [part for part in parts if part]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
