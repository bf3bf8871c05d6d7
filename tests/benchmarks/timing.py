"""How true and how dear is the timed line? And how often does the interval of a session hold?

Run ``python -m tests.benchmarks.timing`` (about six minutes on an idle machine; ``--quick`` for a few seconds). Prints Markdown tables
and writes ``bench/timing.json``.

Bias and cost
    Each tool times calls of known length one by one. A call that is not empty does real work between two readings of a
    clock, and logs their difference: that much it took for certain, whatever other programs did meanwhile. What it
    takes to enter and to leave is known without any tool: calls stand as statements one below the other in a function
    without a loop, as many as the tool takes samples, share one pair of clock readings, and what they logged is taken off.
    The same gives the whole length of the empty call. Bias is sample − length; cost is the processor time of the whole
    measurement, with all that the tool does before and after its loop, less that of the calls, for each sample; the calls
    whose cost is taken log the processor time of their thread. Tools and lengths come in rounds, in an order shuffled
    anew each time; each number is a mean over the samples of a round (the median sample for the bias of the empty call),
    printed are medians over rounds.
Coverage
    Real models are called in turn, in blocks of about 5 ms, for some sessions. The truth of a session is the median of
    the medians of all its blocks, of which `measure_session_latency` reports a sample. Then rounds are drawn from it as `measure_session_latency` spreads them, and
    as many in a row. BLAS and ONNX Runtime get one thread each.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import sys
import time
import timeit
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any
from unittest import mock

import numpy as np

from tests.benchmarks.report import RESULTS, command_line, on_this_machine, write_json
from tinybench.latency import as_callable, runs_within, session_starts, timed_calls, warm_up
from tinybench.result import percentile_interval
from tinybench.table import Table
from tinybench.timer import precise_timer, timer_overhead

Call = Callable[[Any], Any]
Clock = Callable[[], float]
Tool = Callable[[Call, int], list[float]]

OURS = "tinybench timed_calls"
FLOOR = "bare loop (the floor)"
GOAL_BIAS, GOAL_COST, GOAL_COVERAGE = 60e-9, 150e-9, 0.92


def empty(x: object) -> None:
    """Do nothing."""


# length → seconds of work (none: the empty call), and in which rounds: the longest would take all the time
LENGTHS: dict[str, tuple[float, int]] = {"empty": (0.0, 1), "1 µs": (1e-6, 1), "50 µs": (50e-6, 1), "1 ms": (1e-3, 4)}
SAMPLES = 1000  # of each length in a round, so that what a tool does once a measurement weighs the same
KINDS: dict[str, Clock] = {"bias": time.perf_counter, "cost": time.thread_time}


@cache
def unrolled(calls: int) -> Callable[[Call, Any, Clock], float]:
    """Return a function that runs a call so many times, written out, and returns the seconds for each."""
    calling = " call(x)\n" * calls
    code = f"def truth(call, x, clock):\n start = clock()\n{calling} return (clock() - start) / {calls}"
    space: dict[str, Any] = {}
    exec(code, space)
    return space["truth"]  # type: ignore[no-any-return]


def compute(steps: int) -> None:
    """Work; a wait would read a thread's clock, thousands of system calls that leave the caches as no model does."""
    value = 1
    for _ in range(steps):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF


@cache
def seconds_of_a_step() -> float:
    steps = 20_000
    return min(timeit.repeat(lambda: compute(steps), number=1, repeat=20)) / steps


class KnownCall:
    """A call that knows how long it took, and a way to know the rest."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self.log: list[float] = []
        self._clock = clock
        self.call = self._working(seconds) if seconds else empty

    def _working(self, seconds: float) -> Call:
        clock, log, steps = self._clock, self.log.append, max(1, round(seconds / seconds_of_a_step()))

        def work(x: object) -> None:
            start = clock()
            compute(steps)
            log(clock() - start)

        return work

    def rest(self, calls: int) -> float:
        """Return the seconds of a call that it does not log itself: entering and leaving, or all of the empty call."""
        # a longer call has colder caches to leave with, so it is taken from as many calls of the same length
        self.log.clear()
        return unrolled(calls)(self.call, None, self._clock) - sum(self.log) / calls


@cache
def known_overhead() -> float:
    return timer_overhead()


def with_timed_calls(call: Call, n: int) -> list[float]:
    return timed_calls(call, None, n, overhead=known_overhead())  # as `measure_latency` does


def with_precise_timer(call: Call, n: int) -> list[float]:
    times = []
    for _ in range(n):
        with precise_timer() as timer:
            call(None)
        times.append(timer.elapsed)
    return times


def with_bare_loop(call: Call, n: int) -> list[float]:
    """Do the least that Python can: two readings of the clock, a difference, a store."""
    clock, times = time.perf_counter, [0.0] * n
    for i in range(n):
        start = clock()
        call(None)
        times[i] = clock() - start
    return times


def with_generator(call: Call, n: int) -> list[float]:
    times: list[float] = []

    @contextmanager
    def timer() -> Iterator[None]:
        start = time.perf_counter()
        yield
        times.append(time.perf_counter() - start)

    for _ in range(n):
        with timer():
            call(None)
    return times


def with_timeit(call: Call, n: int) -> list[float]:
    return timeit.Timer("call(x)", globals={"call": call, "x": None}).repeat(repeat=n, number=1)


def with_pyperf(call: Call, n: int) -> list[float]:
    """Run pyperf's worker in this process, one call a value."""
    import pyperf

    arguments = ["timing", "--worker", "--loops=1", f"--values={n}", "--warmups=1", "--worker-task=0", "--quiet"]
    with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(io.StringIO()):
        pyperf.Runner._created.clear()
        found = pyperf.Runner().bench_func("call", call, None)
    return list(found.get_values())


def with_pytest_benchmark(call: Call, n: int) -> list[float]:
    """Run the fixture of pytest-benchmark, pedantic, one iteration a round."""
    from pytest_benchmark.fixture import BenchmarkFixture
    from pytest_benchmark.utils import NameWrapper

    kept: list[Any] = []
    options = dict.fromkeys(
        ("min_rounds", "min_time", "max_time", "calibration_precision", "warmup_iterations", "cprofile_loops"), 1
    )
    node = mock.Mock()
    node.configure_mock(name="call", _nodeid="call")
    fixture = BenchmarkFixture(
        node, disable_gc=False, timer=NameWrapper(time.perf_counter), precision=1e-9, confidence=0.95, warmup=False, add_stats=kept.append,
        logger=mock.Mock(), warner=mock.Mock(), disabled=False, cprofile=None, cprofile_dump=None, **options,
    )  # fmt: skip
    fixture.pedantic(call, args=(None,), rounds=n, iterations=1)
    return list(kept[0].stats.data)


TOOLS: dict[str, Tool] = {
    OURS: with_timed_calls,
    "tinybench precise_timer": with_precise_timer,
    FLOOR: with_bare_loop,
    "generator context manager": with_generator,
    "timeit (number=1)": with_timeit,
    "pyperf worker (loops=1)": with_pyperf,
    "pytest-benchmark pedantic": with_pytest_benchmark,
}


def measure_tools(rounds: int, samples: int = SAMPLES, seed: int = 0) -> list[dict[str, Any]]:
    """Measure every tool at every length, interleaved and shuffled; one row for each pair."""
    order = random.Random(seed)
    known = {
        (length, kind): KnownCall(seconds, clock)
        for length, (seconds, _) in LENGTHS.items()
        for kind, clock in KINDS.items()
    }
    found: dict[tuple[str, str, str], list[float]] = {(tool, *pair): [] for tool in [*TOOLS, "rest"] for pair in known}
    tasks = list(found)
    for number in range(rounds + 1):
        order.shuffle(tasks)
        for tool, length, kind in tasks:
            if number and (number - 1) % LENGTHS[length][1]:
                continue
            call = known[length, kind]
            value = call.rest(samples) if tool == "rest" else beyond_the_log(TOOLS[tool], call, samples, kind)
            if number:  # the first round warms up
                found[tool, length, kind].append(value)
    rows = []
    for tool, length in itertools.product(TOOLS, LENGTHS):
        row = {"tool": tool, "length": length, "samples_per_round": samples, "rounds": len(found[tool, length, "bias"])}
        for kind in KINDS:  # the median of the differences within a round
            row[f"{kind}_s"] = float(np.median(np.subtract(found[tool, length, kind], found["rest", length, kind])))
        rows.append(row)
    return rows


def beyond_the_log(tool: Tool, known: KnownCall, n: int, kind: str) -> float:
    """Return what the tool's samples, or its processor time for each, exceed the logged lengths by."""
    known.log.clear()
    begun = time.thread_time()
    times = tool(known.call, n)
    used = time.thread_time() - begun
    assert len(times) == n, f"{n} samples expected, got {len(times)}"
    if kind == "cost":
        return (used - sum(known.log)) / n
    if not known.log:
        return median(times)
    logged = known.log[-n:]  # a warm-up comes before the samples
    return fmean(sample - length for sample, length in zip(times, logged, strict=True))


def real_streams() -> dict[str, tuple[Call, Any]]:
    """Return real ONNX Runtime and scikit-learn calls, each with its input."""
    import onnxruntime
    from skl2onnx import to_onnx
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    digits = load_digits()
    x = (digits.data / 16).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier((64,), max_iter=30, random_state=0).fit(x, digits.target)
        onnx_model = to_onnx(model, x[:1], options={"zipmap": False})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx_model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    tools = {"ONNX Runtime": as_callable(session), "scikit-learn": as_callable(model)}
    sizes = {"1 image": x[:1], "256 images": x[:256]}
    return {f"{tool}, {size}": (call, images) for tool, call in tools.items() for size, images in sizes.items()}


def record_session(streams: dict[str, tuple[Call, Any]], seconds: float, block: float) -> dict[str, list[list[float]]]:
    """Call the streams in turn, in the rounds of `hot_median`, and return all times of each round."""
    rounds: dict[str, list[list[float]]] = {name: [] for name in streams}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(rounds[next(iter(streams))]) < 60:
        for name, (call, x) in streams.items():
            lead = timed_calls(call, x, 2)
            rounds[name].append(timed_calls(call, x, runs_within(block, min(lead))))
    return rounds


def session_median(rounds: list[list[float]]) -> float:
    """Return the session's latency as `measure_session_latency` defines it: the median of the medians of all rounds."""
    return median(median(times) for times in rounds)


def coverage_of_session(rounds: list[list[float]], k: int, tries: int, seed: int) -> tuple[float, float, float]:
    """Return how often k rounds spread over the session, and k in a row, hold its median; and the spread's width."""
    rng = np.random.default_rng(seed)
    truth = session_median(rounds)
    medians = [median(times) for times in rounds]
    found = []
    for _ in range(tries):
        picks = [int(start) for start in session_starts(k, len(rounds), int(rng.integers(2**32)))]
        low, high = percentile_interval([medians[i] for i in picks], 50)
        held, width = low <= truth <= high, (high - low) / truth
        first = int(rng.integers(len(rounds) - k + 1))
        low, high = percentile_interval([time for times in rounds[first : first + k] for time in times], 50)
        found.append((held, low <= truth <= high, width))
    spread, in_a_row, widths = zip(*found, strict=True)
    return fmean(spread), fmean(in_a_row), median(widths)


def measure_coverage(sessions: int, seconds: float, tries: int, block: float) -> list[dict[str, Any]]:
    """Measure the coverage of session intervals on every stream; one row for each stream and K."""
    from threadpoolctl import threadpool_limits

    streams = real_streams()
    with threadpool_limits(1):
        for call, x in streams.values():
            warm_up(call, x)
        recorded = [record_session(streams, seconds, block) for _ in range(sessions)]
    rows = []
    for name in streams:
        for k in (10, 20, 30):
            found = [coverage_of_session(session[name], k, tries, seed) for seed, session in enumerate(recorded)]
            spread, in_a_row, width = (float(np.mean(column)) for column in zip(*found, strict=True))
            row = {"stream": name, "rounds": k, "tries": tries * sessions}
            row |= {"sessions": sessions, "session_seconds": seconds}
            row |= {"coverage": spread, "coverage_in_a_row": in_a_row, "relative_width": width}
            rows.append({**row, "by_session": [held for held, _, _ in found]})
    return rows


def tool_table(rows: list[dict[str, Any]]) -> str:
    """Return bias and cost of each tool at each length, in nanoseconds."""
    found = {(row["tool"], row["length"]): row for row in rows}
    return Table(
        {
            "ns a sample": tool,
            **{f"{kind}, {n}": f"{found[tool, n][f'{kind}_s'] * 1e9:.0f}" for kind in KINDS for n in LENGTHS},
        }
        for tool in TOOLS
    ).markdown()


def coverage_table(rows: list[dict[str, Any]]) -> str:
    """Return the coverage of each stream at each K, in percent."""
    return Table(
        {
            "stream": row["stream"],
            "K": str(row["rounds"]),
            "spread over the session": f"{row['coverage']:.0%}",
            "in a row": f"{row['coverage_in_a_row']:.0%}",
            "width of the interval": f"{row['relative_width']:.1%}",
        }
        for row in rows
    ).markdown()


def verdicts(tools: list[dict[str, Any]], coverages: list[dict[str, Any]]) -> dict[str, bool]:
    """Return whether each goal is met."""
    ours = [row for row in tools if row["tool"] == OURS]
    bias, cost = max(abs(row["bias_s"]) for row in ours), max(row["cost_s"] for row in ours)
    held = min(row["coverage"] for row in coverages if row["rounds"] == 20)
    return {
        f"bias of {OURS} ≤ {GOAL_BIAS * 1e9:.0f} ns at every length": bias <= GOAL_BIAS,
        f"cost of {OURS} ≤ {GOAL_COST * 1e9:.0f} ns a sample at every length": cost <= GOAL_COST,
        f"session interval, K = 20, holds in ≥ {GOAL_COVERAGE:.0%} on every stream": held >= GOAL_COVERAGE,
    }


def markdown(tools: list[dict[str, Any]], coverages: list[dict[str, Any]], goals: dict[str, bool]) -> str:
    """Return the tables, with the goals and whether they are met."""
    parts = [
        "# The timed line",
        f"`python -m tests.benchmarks.timing --publish`, {on_this_machine()}. What is measured, "
        "and how, stands at the head of [timing.py](../timing.py).",
        tool_table(tools),
        "How often the interval of a session holds the session's median, from K rounds spread over it and from K in a row:",
        coverage_table(coverages),
        "\n".join(f"- {'met' if met else 'MISSED'}: {goal}" for goal, met in goals.items()),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark, print its tables and write them to a JSON file."""
    parser = command_line("timing", __doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds: shows that it works, not what is true")
    parser.add_argument("--output", type=Path, default=Path("bench/timing.json"), help="where the numbers go")
    parser.add_argument("--publish", action="store_true", help=f"also write {RESULTS.name}/timing.md")
    options = parser.parse_args(arguments)
    rounds, sessions, seconds, tries, block = (1, 1, 1.5, 10, 5e-4) if options.quick else (40, 3, 25.0, 200, 5e-3)
    print(f"bias and cost: {rounds} shuffled rounds …", file=sys.stderr)
    tools = measure_tools(rounds, 50 if options.quick else SAMPLES)
    print(f"coverage: {sessions} sessions of {seconds:g} s …", file=sys.stderr)
    coverages = measure_coverage(sessions, seconds, tries, block)
    goals = verdicts(tools, coverages)
    report = markdown(tools, coverages, goals)
    print(report)
    if options.publish:
        (RESULTS / "timing.md").write_text(report, encoding="utf-8")
    data = {"quick": options.quick, "python": sys.version, "tools": tools, "coverage": coverages, "goals": goals}
    write_json(options.output, data)
    print(f"\nwritten to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
