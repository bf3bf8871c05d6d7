"""Which p99 do load generators report, and which would users suffer who do not wait for each other?

Run ``python -m tests.benchmarks.load`` (about half an hour; ``--short`` for half a minute). Prints Markdown tables;
``--publish`` writes them to ``results/load.md``. Needs Debian's wrk and hey.

A real `tinybench serve` (one worker, no batches) answers each tool, a new process for every run. It stalls by order for
1 s in every 10 s, or not at all, and writes a trace: when each request was received and answered. From it comes the
truth:

tinybench load
    Joined by X-Request-Id with the intended starts that it saved: from the intended start until the server handed the
    answer over.
All others
    They do not say when a request was meant to start. What users would suffer who arrive independently of each other at
    the tool's own rate: Poisson arrivals replayed through the service times of this run and its stalls
    (`tinybench.load.simulate_queue`; a stall is a job that takes as long). The service time of a request is what the
    server spent on it alone: from when it was received, or the answer before it was out, until its answer was out.

Beside them stands the p99 of the requests that the tool did send, as the server saw them. wrk reports more than that: after
the run it adds requests that were never sent, as if each connection had gone on at its mean pace (`stats_correct` in its
source, after Tene's HdrHistogram).

Tools come in rounds, in an order shuffled anew each time. Printed are medians over rounds, and the range.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np

from tests.benchmarks.load_peers import LOOPS, OURS, TOOLS, Report
from tests.benchmarks.report import ONNX_RUNTIME, RESULTS, command_line, on_this_machine, write_json
from tests.tinybench.servers import served
from tinybench.load import LoadResult, simulate_queue
from tinybench.table import Table

STALL, BRIEF_STALL = (1.0, 10.0), (0.2, 4.0)  # s of every so many; a run lasts two periods
REPLAYS = 30  # as many runs of other users
TOLERANCE = 0.05


@dataclass
class Trace:
    """What the server wrote: the times of all requests, sorted by the end."""

    names: list[str]
    received: np.ndarray
    finished: np.ndarray

    @classmethod
    def read(cls, file: Path) -> Trace:
        rows = sorted((line.split(",") for line in file.read_text().splitlines()[1:]), key=lambda row: float(row[3]))
        return cls([row[0] for row in rows], *(np.array([float(row[i]) for row in rows]) for i in (1, 3)))

    def services(self, stall: tuple[float, float] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the service times without stalls, and when the stalls ended."""
        begun = np.maximum(self.received, np.concatenate([[-np.inf], self.finished[:-1]]))
        service = self.finished - begun
        stalled = service > (stall[0] / 2 if stall else np.inf)
        return service[~stalled], self.finished[stalled]


def joined(trace: Trace, rows: LoadResult) -> float:
    """Return the p99 from the intended start until the server had answered."""
    began, found = rows.metadata["began"], {}
    for name, received, finished in zip(trace.names, trace.received, trace.finished, strict=True):
        if received >= began:  # before that the generator tried how fast it is
            found[name] = finished - began
    latencies = [found[str(number)] - intended for number, intended in enumerate(rows.intended)]
    return float(np.quantile(latencies, 0.99, method="inverted_cdf"))


def replayed(
    trace: Trace, rate: float, seconds: float, stall: tuple[float, float] | None, rng: np.random.Generator
) -> float:
    """Return the p99 of users who arrive at this rate, whatever the server does: the median of some runs."""
    services, ends = trace.services(stall)
    found = []
    for _ in range(REPLAYS):
        times = np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))
        work = np.roll(np.resize(services, len(times)), rng.integers(len(services)))  # neighbours stay neighbours
        if stall:
            length, period = stall
            phase = float(np.median((ends - ends[0] + period / 2) % period)) - period / 2 + ends[0]
            starts = np.arange((phase - length) % period, seconds, period)
            order = np.argsort(np.concatenate([times, starts]), kind="stable")
            everything = np.concatenate([times, starts])[order]
            jobs = np.concatenate([work, np.full(len(starts), length)])[order]
            people = order < len(times)
        else:
            everything, jobs, people = times, work, np.ones(len(times), bool)
        latencies = (simulate_queue(everything, jobs) + jobs)[people]
        found.append(float(np.quantile(latencies, 0.99, method="inverted_cdf")))
    return median(found)


@dataclass
class Run:
    """One tool on one server: what it reported, and the truth."""

    tool: str
    asked: float
    stall: tuple[float, float] | None
    rate: float
    reported: float | None
    truth: float
    own: float
    why: str = ""


def one_run(tool: str, rate: float, seconds: float, stall: tuple[float, float] | None, seed: int, model: Path) -> Run:
    """Serve, load, and compare with the trace."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = ["--max-batch", "1", "--max-queue", "100000", "--timeout", "60s", "--trace", str(folder / "trace")]
        options += ["--stall", f"{stall[0]:g}s/{stall[1]:g}s"] if stall else []
        with served(model, *options) as server:
            found: Report = TOOLS[tool](server.url, BODY, rate, seconds, folder)
        trace = Trace.read(folder / "trace")
    if found.rows is not None:
        truth = joined(trace, found.rows)
    else:
        truth = replayed(trace, found.rate, seconds, stall, np.random.default_rng(seed))
    own = float(np.quantile(trace.finished - trace.received, 0.99, method="inverted_cdf"))
    return Run(tool, rate, stall, found.rate, found.p99, truth, own, found.why)


def classifier(file: Path) -> Path:
    """Write a small classifier as ONNX, small so that two cores hold server and generator at 2,000 requests a second."""
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    from tinybench.onnx import to_onnx

    rows, labels = load_iris(return_X_y=True)
    rows = rows.astype(np.float32)
    return to_onnx(LogisticRegression(max_iter=1000).fit(rows, labels), rows[:1], file)


BODY = json.dumps({"inputs": [[5.1, 3.5, 1.4, 0.2]]}).encode()


def measure(
    plan: list[tuple[str, float, tuple[float, float] | None]], rounds: int, seconds: float, seed: int = 0
) -> list[Run]:
    """Run a plan of tools, rates and stalls, as often as there are rounds, in shuffled order."""
    order, runs = random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        model = classifier(Path(folder, "digits.onnx"))
        for number in range(rounds):
            for tool, rate, stall in order.sample(plan, len(plan)):
                found = one_run(tool, rate, seconds, stall, number, model)
                print(f"round {number + 1}: {found}", file=sys.stderr)
                runs.append(found)
    return runs


def in_ms(seconds: list[float]) -> str:
    """Return the median and the range in milliseconds."""
    if not seconds:
        return "–"
    low, middle, high = (f"{value * 1e3:.3g}" for value in (min(seconds), median(seconds), max(seconds)))
    return f"{middle} ({low} to {high})" if low != high else middle


def table(runs: list[Run], stalled: bool) -> Table:
    """Return a row for each tool and rate: reported beside true."""
    rows = []
    for rate in sorted({run.asked for run in runs}):
        for tool in TOOLS:
            these = [run for run in runs if (run.tool, run.asked, run.stall is not None) == (tool, rate, stalled)]
            if not these:
                continue
            told = [run for run in these if run.reported is not None]
            row = {"asked": f"{rate:g}/s", "tool": tool, "loop": LOOPS[tool]}
            row["sent"] = f"{median(run.rate for run in these):.4g}/s"
            row["p99 reported, ms"] = in_ms([run.reported for run in told if run.reported])
            row["its requests by the server, ms"] = in_ms([run.own for run in these])
            row["true p99, ms"] = in_ms([run.truth for run in these])
            errors = [run.reported / run.truth - 1 for run in told if run.reported]
            row["error"] = f"{median(errors):+.1%} ({min(errors):+.1%} to {max(errors):+.1%})" if errors else "–"
            if not stalled:
                row["error, µs"] = (
                    f"{median((run.reported or 0) - run.truth for run in told) * 1e6:+.0f}" if told else "–"
                )
            row["refused"] = f"{len(these) - len(told)} of {len(these)}"
            rows.append(row)
    return Table(rows)


def verdicts(runs: list[Run]) -> list[str]:
    """Return whether what the benchmark is for was met."""
    lines = []
    for rate, stalled in sorted({(run.asked, run.stall is not None) for run in runs if run.tool == OURS}):
        told = [run for run in runs if (run.tool, run.asked, run.stall is not None) == (OURS, rate, stalled)]
        errors = [abs(run.reported / run.truth - 1) for run in told if run.reported]
        what = f"tinybench load at {rate:g}/s {'with' if stalled else 'without'} stalls"
        if errors:
            met = "met" if median(errors) <= TOLERANCE else "NOT met"
            each = f"{median(errors):.2%} in the median of {len(errors)} runs, {max(errors):.2%} in the worst"
            lines.append(f"- {met}: {what} is within {TOLERANCE:.0%} of the true p99: off by {each}")
        else:
            lines.append(f"- {what} reported no p99 in {len(told)} runs: see why below")
    for tool, loop in LOOPS.items():
        these = [run for run in runs if run.tool == tool and run.stall and run.reported and loop == "closed"]
        if these:
            told, own = (
                median(run.truth / (value or 1) for run, value in zip(these, values, strict=True))
                for values in ([run.reported for run in these], [run.own for run in these])
            )
            lines.append(
                f"- {tool}, a closed loop: when the server stalls the true p99 is {told:.3g} times what it reports, and {own:.3g} times that of the requests it sent"
            )
    return lines


def report(runs: list[Run], command: str) -> str:
    """Return the page."""
    stalled, steady = (table(runs, kind).markdown() for kind in (True, False))
    refusals = sorted({f"- {run.tool} at {run.asked:g}/s: {run.why}" for run in runs if run.why})
    return "\n".join([
        "# The p99 that is reported, and the p99 that is suffered", "",
        f"`{command}`, {on_this_machine(ONNX_RUNTIME)}. How, and what is the truth, stands at the head of [load.py](../load.py).", "",
        "A server that stalls for 1 s in every 10 s; median over runs, and range:", "", stalled, "",
        "The same server without stalls:", "", steady, "", *verdicts(runs), *(["", "Refused:", "", *refusals] if refusals else []), "",
    ])  # fmt: skip


def main() -> None:
    parser = command_line("load", __doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="one round of a few seconds")
    parser.add_argument("--publish", action="store_true", help="write results/load.md")
    options = parser.parse_args()
    stalls: list[tuple[float, float] | None] = [STALL, None]
    plan = [(tool, 100.0, stall) for tool in TOOLS for stall in stalls]
    if options.short:
        runs = measure([(tool, 100.0, BRIEF_STALL) for tool in TOOLS], 1, 2 * BRIEF_STALL[1])
    else:
        plan += [(tool, 500.0, STALL) for tool in TOOLS]
        plan += [
            (OURS, rate, stall)
            for rate in (500.0, 1000.0, 2000.0)
            for stall in stalls
            if (rate, stall) != (500.0, STALL)
        ]
        runs = measure(plan, options.rounds, 2 * STALL[1])
    command = " ".join(["python -m tests.benchmarks.load", *sys.argv[1:]])
    page = report(runs, command)
    print(page)
    write_json(Path("bench") / "load.json", [asdict(run) for run in runs])
    if options.publish:
        (RESULTS / "load.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
