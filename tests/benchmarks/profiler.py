"""Are the shares of our sampling profiler right, beside py-spy's and the truth, and what does looking cost?

Run ``python -m tests.benchmarks.profiler`` (about five minutes; ``--short`` for half a minute). Prints Markdown tables;
``--publish`` writes them to ``results/profiler.md``.

The programs stand in `profiler_programs`. Each is a round of pieces that are timed on the way, which is the truth of
this very run. The share of a piece is that of the stacks in which `take_turns` calls it, of these and those that end
there. In shuffled order each program runs

- looking at itself (`tinybench.sampling.stacks.ticking` and the students' `Sampler`),
- under `py-spy record`, which stops the process for each look,
- under `py-spy record --nonblocking`, which does not, and reads what may just change.

py-spy counts waiting as well (`--idle`), as ours does. With `--native`, where py-spy can, it also names what runs in
libraries.

The cost is that of blocks of calls with and without looking, which follow each other in shuffled order: the median
ratio, with an interval of its order statistics, of the time on the clock and of the processor's. What cProfile does to a
program of small calls is in `profiler_calls`, by every Python there is on the path.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from tests.benchmarks.profiler_programs import PROGRAMS
from tests.benchmarks.report import RESULTS, ROOT, command_line, on_this_machine, write_json
from tinybench.table import Table

OURS, PY_SPY, NONBLOCKING, NATIVE = "tinybench", "py-spy", "py-spy --nonblocking", "py-spy --native"
TOOLS = (OURS, PY_SPY, NONBLOCKING)
EVERY = 5.0  # ms between two looks
SECONDS = {OURS: 7.0, PY_SPY: 3.5, NONBLOCKING: 1.5, NATIVE: 3.5}  # ours looks more rarely where a look takes long
ALLOWED, COST = 3.0, 0.02  # points; share of the time
Stack = tuple[list[str], float]


@dataclass
class Run:
    """One program under one tool: true and told shares of its pieces, and how many looks."""

    program: str
    tool: str
    truth: dict[str, float]
    told: dict[str, float]
    looks: int
    innermost: dict[str, float]


def rounds_of(stacks: Iterable[Stack], pieces: Iterable[str]) -> list[tuple[str, Stack]]:
    """Return the stacks of the rounds, not of what comes before, each with its piece, or "between" two."""
    known, found = set(pieces), list[tuple[str, Stack]]()
    for stack, weight in stacks:
        names = [name.rpartition(".")[2] for name in stack]
        inner = names[names.index("take_turns") :] if "take_turns" in names else []
        if len(inner) == 1:
            found.append(("between", (stack, weight)))
        elif inner and inner[1] in known:
            found.append((inner[1], (stack, weight)))
    return found


def raw_stacks(text: str) -> list[Stack]:
    """Return the stacks of py-spy's raw format: functions with file and line, and how often."""
    rows = (line.rpartition(" ") for line in text.splitlines())
    return [([name.split(" (")[0] for name in stack.split(";")], float(count)) for stack, _, count in rows]


def one_run(program: str, tool: str, seconds: float) -> Run:
    """Run a program under a tool."""
    words = [sys.executable, "-m", "tests.benchmarks.profiler_programs", program, str(seconds)]
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder, "raw")
        if tool == OURS:
            words.append(str(EVERY))
        else:
            options = ["--idle", "--rate", f"{1000 / EVERY:.0f}", *tool.split()[1:], "--output", str(raw)]
            words = ["py-spy", "record", "--format", "raw", *options, "--", *words]
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{tool} on {program}: {done.stderr.strip()}")
        found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
        stacks = found["seen"] if tool == OURS else raw_stacks(raw.read_text())
    truth = {name: spent / sum(found["truth"].values()) for name, spent in found["truth"].items()}
    inside = rounds_of(stacks, truth)
    told, innermost = dict.fromkeys(truth, 0.0), defaultdict[str, float](float)
    total = sum(weight for _, (_, weight) in inside)
    for piece, (stack, weight) in inside:
        innermost[stack[-1]] += weight / total
        if piece in told:
            told[piece] += weight / total
    looks = len(inside) if tool == OURS else round(total)
    return Run(program, tool, truth, told, looks, dict(sorted(innermost.items(), key=lambda item: -item[1])[:3]))


def measure(programs: Iterable[str], tools: Iterable[str], rounds: int, brief: float = 1.0, seed: int = 0) -> list[Run]:
    """Run every program under every tool, as often as there are rounds, in shuffled order."""
    plan = [(program, tool) for program in programs for tool in tools] * rounds
    random.Random(seed).shuffle(plan)
    runs = []
    for program, tool in plan:
        runs.append(one_run(program, tool, SECONDS[tool] * brief))
        print(runs[-1], file=sys.stderr)
    return runs


def mean_shares(runs: list[Run], program: str, tool: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return the mean over the runs of one program under one tool, in %: true and told."""
    these = [run for run in runs if (run.program, run.tool) == (program, tool)]
    truth, told = (
        {name: 100 * mean(getattr(run, kind)[name] for run in these) for name in these[0].truth}
        for kind in ("truth", "told")
    )
    return truth, told


def errors(runs: list[Run], program: str, tool: str) -> dict[str, float]:
    """Return by how many points the told shares are off the truth of the same runs."""
    truth, told = mean_shares(runs, program, tool)
    return {name: told[name] - truth[name] for name in truth}


def share_table(runs: list[Run]) -> Table:
    """Return a row for each piece: the true share, and by how many points each tool is off."""
    rows = []
    for program in dict.fromkeys(run.program for run in runs):
        off = {tool: errors(runs, program, tool) for tool in TOOLS}
        truth, told = mean_shares(runs, program, OURS)
        for piece in truth:
            row = {
                "program": program,
                "piece": piece,
                "true share, %": f"{truth[piece]:.1f}",
                "told": f"{told[piece]:.1f}",
            }
            rows.append(row | {f"{tool}, points": f"{off[tool][piece]:+.1f}" for tool in TOOLS})
    return Table(rows)


def beside(runs: list[Run], program: str) -> dict[str, float]:
    """Return by how many points our shares differ from py-spy's, each less the truth of its own runs."""
    ours, theirs = (errors(runs, program, tool) for tool in (OURS, PY_SPY))
    return {name: ours[name] - theirs[name] for name in ours}


@dataclass
class Cost:
    """What looking costs: median ratio − 1 of blocks with and without, and its interval."""

    program: str
    interval: float
    clock: tuple[float, float, float]
    processor: tuple[float, float, float]


def with_interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return the median less 1 and its 95 % interval, by order statistics."""
    ordered = sorted(ratios)
    reach = math.ceil(0.98 * math.sqrt(len(ordered)))
    middle = len(ordered) // 2
    low, high = ordered[max(0, middle - reach)], ordered[min(len(ordered) - 1, middle + reach)]
    return median(ordered) - 1, low - 1, high - 1


def cost(program: str, interval: float, rounds: int, seconds: float, seed: int = 0) -> Cost:
    """Time blocks of a program with and without looking, in shuffled order."""
    from tinybench.bottleneck import Sampler
    from tinybench.sampling.stacks import Ticks, ticking

    pieces = PROGRAMS[program]()

    def block(times: int, looking: bool) -> tuple[float, float]:
        ticks = Ticks(interval)
        with ticking(Sampler(ticks.clock).take, ticks) if looking else nullcontext():
            began, worked = time.perf_counter(), time.process_time()
            for _ in range(times):
                for piece in pieces:
                    piece()
            return time.perf_counter() - began, time.process_time() - worked

    block(3, True)
    times = max(1, round(3 * seconds / block(3, False)[0]))
    order, ratios = random.Random(seed), list[tuple[float, float]]()
    for _ in range(rounds):
        arms = {looking: block(times, looking) for looking in order.sample((True, False), 2)}
        ratios.append((arms[True][0] / arms[False][0], arms[True][1] / arms[False][1]))
    clock, processor = (with_interval([ratio[k] for ratio in ratios]) for k in (0, 1))
    return Cost(program, interval, clock, processor)


def distortions(pairs: int) -> list[dict[str, Any]]:
    """Return what cProfile does to a program of small calls, by every Python on the path, ours first."""
    others = filter(None, (shutil.which(f"python3.{minor}") for minor in range(11, 16)))
    found: dict[str, dict[str, Any]] = {}
    for python in (sys.executable, *others):
        words = [python, str(Path(__file__).with_name("profiler_calls.py")), str(pairs)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 0:  # there are names on the path behind which no Python stands
            about = json.loads(done.stdout)
            found.setdefault(about["python"], about)
    return list(found.values())


def in_percent(found: tuple[float, float, float]) -> str:
    """Return a median with its interval."""
    middle, low, high = (f"{100 * value:+.1f}" for value in found)
    return f"{middle} % ({low} to {high})"


def verdicts(runs: list[Run], costs: list[Cost]) -> list[str]:
    """Return whether what the benchmark is for was met."""
    lines = []
    for what, off in {
        "of the truth": lambda program: errors(runs, program, OURS),
        "of py-spy": lambda program: beside(runs, program),
    }.items():
        worst = {program: max(off(program).items(), key=lambda item: abs(item[1])) for program in _programs(runs)}
        program, (piece, points) = max(worst.items(), key=lambda item: abs(item[1][1]))
        met = "met" if abs(points) <= ALLOWED else "NOT met"
        own = f"; py-spy is {errors(runs, program, PY_SPY)[piece]:+.1f} off the truth there" if "spy" in what else ""
        lines.append(
            f"- {met}: all shares are within {ALLOWED:g} points {what}; "
            f"the worst is `{piece}` of `{program}`, {points:+.1f}{own}"
        )
    for each in costs:
        if math.isclose(each.interval, 0.01):
            met = "met" if each.clock[0] < COST else "NOT met"
            lines.append(
                f"- {met}: looking every 10 ms makes `{each.program}` take {in_percent(each.clock)} longer, of {COST:.0%} allowed"
            )
    return lines


def _programs(runs: list[Run]) -> list[str]:
    return list(dict.fromkeys(run.program for run in runs))


def report(runs: list[Run], native: list[Run], costs: list[Cost], calls: list[dict[str, Any]], command: str) -> str:
    """Return the page."""
    kinds: dict[str, Callable[[Cost], str]] = {
        "program": lambda each: each.program,
        "a look every": lambda each: f"{each.interval * 1e3:g} ms",
        "longer on the clock": lambda each: in_percent(each.clock),
        "more processor time": lambda each: in_percent(each.processor),
    }
    cost_table = Table({name: show(each) for name, show in kinds.items()} for each in costs)
    call_table = Table(
        {
            "Python": each["python"],
            "takes longer by a factor of": f"{median(each['factors']):.1f} ({min(each['factors']):.1f} to {max(each['factors']):.1f})",
            "share of the piece with calls, %": f"{100 * median(each['true']):.0f}",
            "told by cProfile, %": f"{100 * median(each['told']):.0f}",
        }
        for each in calls
    )
    looks = ", ".join(f"{tool} {sum(run.looks for run in runs if run.tool == tool):,}" for tool in TOOLS)
    names = "; ".join(f"`{name}` {share:.0%}" for run in native for name, share in run.innermost.items())
    return "\n".join([
        "# The shares that a sampling profiler tells", "",
        f"`{command}`, {on_this_machine()}. How, and what is the truth, stands at the head of [profiler.py](../profiler.py).", "",
        f"Points by which each tool is off, mean over runs; one look every {EVERY:g} ms, in all {looks}:", "",
        share_table(runs).markdown(), "", *verdicts(runs, costs), "",
        *([f"With `--native` py-spy also says what in libraries it was, in `{native[0].program}`: {names}.", ""] if native else []),
        "What looking costs, by blocks with and without it in shuffled order:", "", cost_table.markdown(), "",
        "What cProfile makes of a program of which one piece makes small calls and one does not:", "", call_table.markdown(), "",
    ])  # fmt: skip


def main() -> None:
    parser = command_line("profiler", __doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="one round of two programs")
    parser.add_argument("--publish", action="store_true", help="write results/profiler.md")
    options = parser.parse_args()
    if shutil.which("py-spy") is None:
        parser.error("py-spy is missing: pip install py-spy")
    if options.short:
        runs, native = measure(["small", "numpy"], TOOLS, 1, 0.3), list[Run]()
        costs, calls = [cost("small", 0.01, 10, 0.1)], distortions(3)
    else:
        runs = measure(PROGRAMS, TOOLS, options.rounds)
        native = measure(["numpy"], [NATIVE], 1)
        costs = [cost(program, every, 40, 0.2) for program in ("small", "onnx") for every in (0.005, 0.01)]
        calls = distortions(15)
    page = report(runs, native, costs, calls, " ".join(["python -m tests.benchmarks.profiler", *sys.argv[1:]]))
    print(page)
    write_json(Path("bench") / "profiler.json", [asdict(each) for each in [*runs, *native, *costs]] + calls)
    if options.publish:
        (RESULTS / "profiler.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
