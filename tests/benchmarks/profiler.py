"""Are the shares of our sampling profiler right, beside py-spy's and the truth, and what does looking cost?

Each program is a round of pieces that are timed on the way, which is the truth of this very run. The share of a piece is that of the
stacks in which `take_turns` calls it, of these and those that end there. Each program runs

- looking at itself (`tinybench.support.profiling.stacks.ticking` and the students' `Sampler`),
- under `py-spy record`, which stops the process for each look,
- under `py-spy record --nonblocking`, which does not, and reads what may just change.

py-spy counts waiting as well (`--idle`), as ours does. With `--native`, where py-spy can, it also names what runs in
libraries.

The cost is that of blocks of calls with and without looking, which follow each other in shuffled order: the median
ratio, with an interval of its order statistics, of the time on the clock and of the processor's. Last comes what cProfile
does to two functions of module 15, of which one makes many small calls. Needs py-spy.
"""

from __future__ import annotations

import cProfile
import json
import math
import platform
import pstats
import random
import sys
import tempfile
import time
import timeit
import zlib
from argparse import Namespace
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from itertools import chain, islice, permutations, product
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from tests.benchmarks.formats import grouped, lines, ranged
from tests.benchmarks.harness import Benchmark, Case, Part, Record, Records, Trial
from tests.benchmarks.processes import printed
from tinybench.course.lessons.m15_profilers import many_small_calls, plain_loop
from tinybench.result import percentile_interval
from tinybench.sampler import Sampler
from tinybench.support.profiling.stacks import Ticks, ticking

OURS, PY_SPY, NONBLOCKING, NATIVE = "tinybench", "py-spy", "py-spy --nonblocking", "py-spy --native"
SECONDS = {OURS: 7.0, PY_SPY: 3.5, NONBLOCKING: 1.5, NATIVE: 3.5}  # ours looks more rarely where a look takes long
EVERY = 5.0  # ms between two looks
ALLOWED, COST = 3.0, 0.02  # points; share of the time
Stack = tuple[list[str], float]
Piece = Callable[[], Any]
rng = np.random.default_rng(0)


# the programs


def named(**pieces: Piece) -> list[Piece]:
    """Return functions under their names, by which a profiler shows them."""
    for name, piece in pieces.items():
        piece.__name__ = name
        piece.__code__ = piece.__code__.replace(co_name=name, co_qualname=name)
    return list(pieces.values())


class Point:
    """Small methods."""

    def __init__(self, x: float, y: float) -> None:
        self.x, self.y = x, y

    def moved(self, by: float) -> Point:
        return Point(self.x + by, self.y - by)

    def weight(self) -> float:
        return square(self.x) + square(self.y)


def square(x: float) -> float:
    return x * x


def digit(letter: str) -> int:
    return ord(letter) - 48


def small() -> list[Piece]:
    """Functions of less than 1 µs, in pieces of half a millisecond between calls that release the interpreter's lock."""
    packed = rng.bytes(1_000_000)
    pieces = named(
        moving=lambda: sum(Point(k, 1.0).moved(2.0).weight() for k in range(500)),
        reading=lambda: sum(digit(letter) for letter in "0123456789" * 300),
        counting=lambda: sum(square(k) > 7 for k in range(4000)),
    )
    [digesting] = named(digesting=lambda: zlib.crc32(packed))
    return [each for piece in pieces for each in (piece, digesting)]


def numpy() -> list[Piece]:
    """Native code from 20 µs to 20 ms a call, much longer than the interval between two looks."""
    a, b, v = rng.normal(size=(600, 600)), rng.normal(size=(600, 600)), rng.normal(size=100_000)
    kept: dict[str, Any] = {}  # so that what is freed is freed in the piece
    return named(
        multiplying=lambda: kept.update(product=a @ b),
        sorting=lambda: kept.update(sorted=np.sort(v)),
        elementwise=lambda: np.tanh(np.exp(-(v[:20_000] ** 2))).sum(),
        indexing=lambda: sum(float(v[k]) for k in range(2000)),
    )


def onnx() -> list[Piece]:
    """A request: JSON to rows, a model of ONNX Runtime, and its answer as JSON."""
    from tinybench.onnx import OnnxModel
    from tinybench.support.basics.layer_networks import initial_layers, save_layers

    with tempfile.TemporaryDirectory() as folder:
        model = OnnxModel(save_layers(initial_layers((64, 512, 512, 10), 0), Path(folder, "network.onnx")))
    body = json.dumps({"inputs": rng.normal(size=(32, 64)).round(4).tolist()})
    kept: dict[str, Any] = {}
    return named(
        parsing=lambda: kept.update(rows=json.loads(body)["inputs"]),
        converting=lambda: kept.update(X=np.array(kept["rows"], dtype=np.float32)),
        inferring=lambda: kept.update(y=model.session.run(None, {"X": kept["X"]})[0]),
        answering=lambda: json.dumps({"outputs": [[round(v, 4) for v in row] for row in kept["y"].tolist()]}),
    )


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def depth(tree: Any) -> int:
    return 1 + max(map(depth, tree), default=0)


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1), nested(levels - 1)] if levels else []


def down(n: int) -> int:
    return 0 if n == 0 else 1 + down(n - 1)


def recursion() -> list[Piece]:
    """Functions that call themselves, wide and deep."""
    tree = nested(8)
    return named(
        branching=lambda: fibonacci(15),
        walking=lambda: depth(tree),
        sinking=lambda: sum(down(60) for _ in range(60)),  # py-spy stops the program for ms for a stack of hundreds
    )


def numbers(n: int) -> Any:
    for k in range(n):
        yield k * 3 % 7


def generators() -> list[Piece]:
    """Generators and comprehensions, which are frames of their own in some versions of Python."""
    return named(
        pulling=lambda: sum(islice(chain(numbers(3000), numbers(3000)), 5000)),
        listing=lambda: len([k for k in [j + 1 for j in range(4000)] if k % 3]),
        grouping=lambda: len({k % 50: {k} for k in range(5000)}),
        ordering=lambda: len(sorted(permutations("abcdef", 5), key=lambda word: word[::-1])),
    )


def waiting() -> list[Piece]:
    """Work between waits: shares of the time on the clock, not of a processor's."""
    return named(
        sleeping=lambda: time.sleep(0.003),
        working=lambda: sum(k * k for k in range(40_000)),
        napping=lambda: deque(map(time.sleep, [0.0002] * 5)),
    )


PROGRAMS: dict[str, Callable[[], list[Piece]]] = {
    made.__name__: made for made in (small, numpy, onnx, recursion, generators, waiting)
}


def take_turns(name: str, seconds: float, interval: float = 0.0) -> dict[str, Any]:
    """Run a program for some seconds; return the time of each piece, and the samples if it looks at itself."""
    pieces = PROGRAMS[name]()
    spent = dict.fromkeys((piece.__name__ for piece in pieces), 0.0)
    ticks = Ticks(interval or 1.0)
    sampler = Sampler(ticks.clock)
    with ticking(sampler.take, ticks) if interval else nullcontext():
        before = time.perf_counter()
        end = before + seconds
        while before < end:
            for piece in pieces:
                piece()
                now = time.perf_counter()
                spent[piece.__name__] += now - before
                before = now
    seen = [[[name.split(" (")[0] for name in sample.stack], sample.seconds] for sample in sampler.samples]
    return {"truth": spent, "seen": seen}


# what profilers say of them


def rounds_of(stacks: Iterable[Stack], pieces: Iterable[str]) -> list[tuple[str, str, float]]:
    """Return piece, innermost function and weight of the stacks of the rounds; between two pieces it is `take_turns`."""
    found = []
    for stack, weight in stacks:
        names = [name.rpartition(".")[2] for name in stack]
        inner = names[names.index("take_turns") :][:2] if "take_turns" in names else []
        if inner and inner[-1] in ("take_turns", *pieces):
            found.append((inner[-1], stack[-1], weight))
    return found


def raw_stacks(text: str) -> list[Stack]:
    """Return the stacks of py-spy's raw format: functions with file and line, and how often."""
    rows = (line.rpartition(" ") for line in text.splitlines())
    return [([name.split(" (")[0] for name in stack.split(";")], float(count)) for stack, _, count in rows]


def share_cases(options: Namespace) -> list[Case]:
    if options.short:
        return list(product(("small", "numpy"), (OURS, PY_SPY, NONBLOCKING)))
    return [*product(PROGRAMS, (OURS, PY_SPY, NONBLOCKING)), ("numpy", NATIVE)]


def measured_shares(trial: Trial) -> Record:
    """Run a program under a tool, and return the true and the told shares of its pieces, and the number of looks."""
    program, tool = trial.case
    seconds = SECONDS[tool] * (0.3 if trial.short else 1)
    words = [sys.executable, "-m", "tests.benchmarks.profiler", program, str(seconds)]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    raw = trial.folder / "raw"
    if tool == OURS:
        words.append(str(EVERY))
    else:
        options = ["--idle", "--rate", f"{1000 / EVERY:.0f}", *tool.split()[1:], "--output", str(raw)]
        words = ["py-spy", "record", "--format", "raw", *options, "--", *words]
    said = printed(*words, **one_thread).splitlines()
    found = json.loads(next(line for line in said if line.startswith("{")))
    whole, told, innermost = sum(found["truth"].values()), Counter[str](), Counter[str]()
    inside = rounds_of(found["seen"] if tool == OURS else raw_stacks(raw.read_text()), found["truth"])
    for piece, name, weight in inside:
        told[piece] += weight
        innermost[name] += weight
    return {
        "program": program,
        "tool": tool,
        "truth": {piece: spent / whole for piece, spent in found["truth"].items()},
        "told": {piece: told[piece] / told.total() for piece in found["truth"]},
        "looks": len(inside) if tool == OURS else round(told.total()),
        "innermost": {name: weight / told.total() for name, weight in innermost.most_common(3)},
    }


def share_rows(found: Records) -> Records:
    """Return a row for each piece: its true and its told share, in percent, and by how many points each tool is off."""
    rows = []
    for (program,), records in grouped(found, "program").items():
        for piece in records[0]["truth"]:
            row = {"program": program, "piece": piece}
            for (tool,), these in grouped(records, "tool").items():
                truth, told = (100 * mean(each[kind][piece] for each in these) for kind in ("truth", "told"))
                row |= {tool: told - truth} | ({"truth": truth, "told": told} if tool == OURS else {})
            rows.append(row | {"beside": row[OURS] - row[PY_SPY]})
    return rows


def share_goals(found: Records) -> dict[str, bool]:
    """Return whether our shares are near the truth and near py-spy's, each less the truth of its own runs."""
    goals = {}
    for what, off in {"of the truth": OURS, "of py-spy": "beside"}.items():
        worst = max(share_rows(found), key=lambda row: abs(row[off]))
        text = f"the worst is `{worst['piece']}` of `{worst['program']}`, {worst[off]:+.1f}"
        own = f"; py-spy is {worst[PY_SPY]:+.1f} off the truth there" if off == "beside" else ""
        goals[f"all shares are within {ALLOWED:g} points {what}; {text}{own}"] = abs(worst[off]) <= ALLOWED
    return goals


def share_page(found: Records) -> list[str]:
    tools = (OURS, PY_SPY, NONBLOCKING)
    looks = ", ".join(f"{tool} {sum(run['looks'] for run in found if run['tool'] == tool):,}" for tool in tools)
    native = [
        "; ".join(f"`{name}` {share:.0%}" for name, share in run["innermost"].items())
        for run in found
        if run["tool"] == NATIVE
    ]
    return [
        f"Points by which each tool is off, mean over runs; one look every {EVERY:g} ms, in all {looks}:",
        lines(
            share_rows(found),
            f"program | piece | true share, % | told | {' | '.join(f'{tool}, points' for tool in tools)}",
            f"{{program}} | {{piece}} | {{truth:.1f}} | {{told:.1f}} | {' | '.join(f'{{{tool}:+.1f}}' for tool in tools)}",
        ),
        *(f"With `--native` py-spy also says what in libraries it was, in `numpy`: {names}." for names in native[:1]),
    ]


def measured_cost(trial: Trial) -> Record:
    """Time blocks of a program with and without looking, in shuffled order, and return their ratios."""
    program, every = trial.case
    pieces, order = PROGRAMS[program](), random.Random(trial.round)

    def block(times: int, looking: bool) -> tuple[float, float]:
        ticks = Ticks(every)
        with ticking(Sampler(ticks.clock).take, ticks) if looking else nullcontext():
            began, worked = time.perf_counter(), time.process_time()
            for _ in range(times):
                for piece in pieces:
                    piece()
            return time.perf_counter() - began, time.process_time() - worked

    block(3, True)
    times = max(1, round((0.3 if trial.short else 0.6) / block(3, False)[0]))
    clock, processor = list[float](), list[float]()
    for _ in range(10 if trial.short else 14):
        arms = {looking: block(times, looking) for looking in order.sample((True, False), 2)}
        for ratios, looking, plain in zip((clock, processor), arms[True], arms[False], strict=True):
            ratios.append(looking / plain)
    return {"program": program, "every": every, "clock": clock, "processor": processor}


def cost_rows(found: Records) -> Records:
    """Return for each program and interval what looking costs, as medians less 1 with their 95 % intervals."""
    rows = []
    for (program, every), records in grouped(found, "program", "every").items():
        row = {"program": program, "every": every}
        for kind in ("clock", "processor"):
            ratios = [ratio for each in records for ratio in each[kind]]
            middle, low, high = (100 * (x - 1) for x in (median(ratios), *percentile_interval(ratios, 50)))
            row |= {f"{kind}, %": middle, kind: f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"}
        rows.append(row)
    return rows


def cost_goals(found: Records) -> dict[str, bool]:
    allowed = f"longer, of {COST:.0%} allowed"
    return {
        f"looking every 10 ms makes `{row['program']}` take {row['clock']} {allowed}": row["clock, %"] < 100 * COST
        for row in cost_rows(found)
        if math.isclose(row["every"], 0.01)
    }


def cost_page(found: Records) -> list[str]:
    head = "program | a look every | longer on the clock | more processor time"
    return [
        "What looking costs, by blocks with and without it in shuffled order:",
        lines(cost_rows(found), head, "{program} | {every:1e3×g} ms | {clock} | {processor}"),
    ]


def measured_calls(trial: Trial) -> Record:
    """Return the share of many small calls, what cProfile says of it, and how much longer all takes under cProfile."""
    plain = [timeit.timeit(piece, number=60) for piece in (many_small_calls, plain_loop)]
    with cProfile.Profile() as profiler:
        slowed = [timeit.timeit(piece, number=60) for piece in (many_small_calls, plain_loop)]
    told = {name: row[3] for (_, _, name), row in pstats.Stats(profiler).stats.items()}  # type: ignore[attr-defined]
    return {
        "python": platform.python_version(),
        "factor": sum(slowed) / sum(plain),
        "true": plain[0] / sum(plain),
        "told": told["many_small_calls"] / (told["many_small_calls"] + told["plain_loop"]),
    }


def call_page(found: Records) -> list[str]:
    row = {key: median(each[key] for each in found) for key in ("true", "told")}
    row |= {"python": found[0]["python"], "factor": ranged([each["factor"] for each in found])}
    return [
        "What cProfile makes of a program of which one piece makes small calls and one does not:",
        lines(
            [row],
            "Python | takes longer by a factor of | share of the piece with calls, % | told by cProfile, %",
            "{python} | {factor} | {true:100×.0f} | {told:100×.0f}",
        ),
    ]


def cost_cases(options: Namespace) -> list[Case]:
    return [("small", 0.01)] if options.short else list(product(("small", "onnx"), (0.005, 0.01)))


BENCHMARK = Benchmark(
    "The shares that a sampling profiler tells",
    {
        "shares": Part("Shares", measured_shares, share_page, share_goals, share_cases),
        "cost": Part("What looking costs", measured_cost, cost_page, cost_goals, cost_cases),
        "calls": Part("What cProfile does", measured_calls, call_page, cases=lambda options: [()] * 5),
    },
    rounds=3,
)

if __name__ == "__main__":
    program, seconds, *every = sys.argv[1:]
    print(json.dumps(take_turns(program, float(seconds), *(float(ms) / 1e3 for ms in every))))
