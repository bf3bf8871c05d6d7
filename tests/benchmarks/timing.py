"""How true and how dear is the timed line? And how often does the interval of a session hold?

Bias and cost
    Each tool times calls of known length one by one. A call that is not empty does real work between two readings of a
    clock, and logs their difference: that much it took for certain, whatever other programs did meanwhile. What it
    takes to enter and to leave is known without any tool: calls stand as statements one below the other in a function
    without a loop, as many as the tool takes samples, share one pair of clock readings, and what they logged is taken off.
    The same gives the whole length of the empty call. Bias is sample − length; cost is the processor time of the whole
    measurement, with all that the tool does before and after its loop, less that of the calls, for each sample; the calls
    whose cost is taken log the processor time of their thread. Each number is a mean over the samples of a round (the
    median sample for the bias of the empty call), printed are medians over rounds.
Coverage
    Real models are called in turn, in blocks of about 5 ms, for some sessions. The truth of a session is the median of
    the medians of all its blocks, of which `measure_session_latency` reports a sample. Then rounds are drawn from it as
    `measure_session_latency` spreads them, and as many in a row. BLAS and ONNX Runtime get one thread each.
"""

from __future__ import annotations

import io
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from inspect import signature
from itertools import chain, product
from statistics import fmean, median
from typing import Any
from unittest import mock

import numpy as np

from tests.benchmarks.formats import grouped, lines, table
from tests.benchmarks.harness import Benchmark, Part, Records, Trial
from tests.benchmarks.subjects import work
from tinybench.course.lessons.m03 import digits_network
from tinybench.latency import as_callable, session_starts, timed_calls, warm_up
from tinybench.result import percentile_interval
from tinybench.support.rounds.calibration import runs_within
from tinybench.timer import precise_timer, timer_overhead

Call = Callable[[Any], Any]
Clock = Callable[[], float]

OURS, REST = "tinybench timed_calls", "rest"
GOAL_BIAS, GOAL_COST, GOAL_COVERAGE = 60e-9, 150e-9, 0.92
# length → seconds of work (none: the empty call), and in which rounds: the longest would take all the time
LENGTHS: dict[str, tuple[float, int]] = {"empty": (0.0, 1), "1 µs": (1e-6, 1), "50 µs": (50e-6, 1), "1 ms": (1e-3, 4)}
KINDS: dict[str, Clock] = {"bias": time.perf_counter, "cost": time.thread_time}


def empty(x: object) -> None:
    """Do nothing."""


@cache
def unrolled(calls: int) -> Callable[[Call, Any, Clock], float]:
    """Return a function that runs a call `calls` times, written out, and returns the seconds for each."""
    calling = " call(x)\n" * calls
    code = f"def truth(call, x, clock):\n start = clock()\n{calling} return (clock() - start) / {calls}"
    space: dict[str, Any] = {}
    exec(code, space)
    return space["truth"]


@cache
def known_call(length: str, kind: str) -> tuple[Call, list[float]]:
    """Return a call of a length, and the list in which it logs how long it took."""
    log: list[float] = []
    keep, clock, seconds = log.append, KINDS[kind], LENGTHS[length][0]
    # no wait: it would read a thread's clock, thousands of system calls that leave the caches as no model does
    steps = max(1, round(20_000 * seconds / min(timeit.repeat(lambda: work(20_000), number=1, repeat=20))))

    def working(x: object) -> None:
        start = clock()
        work(steps)
        keep(clock() - start)

    return working if seconds else empty, log


known_overhead = cache(timer_overhead)


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


def with_pyperf(call: Call, n: int) -> list[float]:
    """Run pyperf's worker in this process, one call a value."""
    import pyperf

    arguments = ["timing", "--worker", "--loops=1", f"--values={n}", "--warmups=1", "--worker-task=0", "--quiet"]
    with mock.patch.object(sys, "argv", arguments), redirect_stdout(io.StringIO()):
        pyperf.Runner._created.clear()
        return list(pyperf.Runner().bench_func("call", call, None).get_values())


def with_pytest_benchmark(call: Call, n: int) -> list[float]:
    """Run the fixture of pytest-benchmark, pedantic, one iteration a round."""
    from pytest_benchmark.fixture import BenchmarkFixture

    told = {"node": mock.Mock(), "timer": mock.Mock(target=time.perf_counter), "add_stats": id, "logger": mock.Mock()}
    fixture = BenchmarkFixture(**dict.fromkeys(signature(BenchmarkFixture).parameters, 0) | told)
    fixture.pedantic(call, args=(None,), rounds=n, iterations=1)
    return list(fixture.stats.stats.data)


TOOLS: dict[str, Callable[[Call, int], list[float]]] = {
    OURS: lambda call, n: timed_calls(call, None, n, overhead=known_overhead()),  # as `measure_latency` does
    "tinybench precise_timer": with_precise_timer,
    "bare loop (the floor)": with_bare_loop,
    "generator context manager": with_generator,
    "timeit (number=1)": lambda call, n: timeit.Timer("call(x)", globals={"call": call, "x": None}).repeat(n, 1),
    "pyperf worker (loops=1)": with_pyperf,
    "pytest-benchmark pedantic": with_pytest_benchmark,
}
CASES = list(product([*TOOLS, REST], KINDS, LENGTHS))


def beyond_the_log(tool: str, kind: str, length: str, n: int) -> float:
    """Return what the tool's samples, or its processor time for each, exceed the logged lengths by.

    The rest is what a call does not log itself: entering and leaving, or all of the empty call.
    """
    call, log = known_call(length, kind)
    log.clear()
    if tool == REST:  # of as many calls of the same length: a longer call has colder caches to leave with
        return unrolled(n)(call, None, KINDS[kind]) - sum(log) / n
    begun = time.thread_time()
    times = TOOLS[tool](call, n)
    used = time.thread_time() - begun
    assert len(times) == n, f"{n} samples expected, got {len(times)}"
    if kind == "cost":
        return (used - sum(log)) / n
    if not log:
        return median(times)
    logged = log[-n:]  # a warm-up comes before the samples
    return fmean(sample - length for sample, length in zip(times, logged, strict=True))


warm = cache(beyond_the_log)  # the first call in a process is not like the others


def measured_tool(trial: Trial) -> Records:
    """Return what one tool adds to calls of one length, as often as the length is measured: once or never."""
    tool, kind, length = trial.case
    if trial.round % LENGTHS[length][1]:
        return []
    samples = 50 if trial.short else 1000  # of each length, so that what a tool does once a measurement weighs the same
    warm(tool, kind, length, samples)
    return [{"value": beyond_the_log(tool, kind, length, samples)}]


def added(found: Records) -> dict[tuple[str, ...], float]:
    """Return by tool, kind and length the median of what the tool adds to the rest of the same round."""
    rest = {(record["round"], *record["case"][1:]): record["value"] for record in found if record["case"][0] == REST}
    return {
        case: median(record["value"] - rest[record["round"], *case[1:]] for record in records)
        for (case,), records in grouped(found, "case").items()
    }


def tool_page(found: Records) -> list[str]:
    cells = added(found)
    heads = {f"{kind}, {length}": (kind, length) for kind, length in product(KINDS, LENGTHS)}
    rows = {tool: {head: f"{1e9 * cells[tool, *key]:.0f}" for head, key in heads.items()} for tool in TOOLS}
    return [table({"ns a sample": tool, **row} for tool, row in rows.items())]


def tool_goals(found: Records) -> dict[str, bool]:
    cells = added(found)
    bias, cost = ([cells[OURS, kind, length] for length in LENGTHS] for kind in KINDS)
    return {
        f"bias of {OURS} ≤ {GOAL_BIAS * 1e9:.0f} ns at every length": max(map(abs, bias)) <= GOAL_BIAS,
        f"cost of {OURS} ≤ {GOAL_COST * 1e9:.0f} ns a sample at every length": max(cost) <= GOAL_COST,
    }


def record_session(calls: dict[str, tuple[Call, Any]], seconds: float, block: float) -> dict[str, list[list[float]]]:
    """Call the streams in turn, in the rounds of `hot_median`, and return all times of each round."""
    rounds: dict[str, list[list[float]]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, rounds.values())) < 60:
        for name, (call, x) in calls.items():
            lead = timed_calls(call, x, 2)
            rounds[name].append(timed_calls(call, x, runs_within(block, min(lead))))
    return rounds


def coverage_of_session(rounds: list[list[float]], k: int, tries: int, seed: int) -> np.ndarray:
    """Return how often k rounds spread over the session, and k in a row, hold its median; and the spread's width."""
    rng, medians, found = np.random.default_rng(seed), [median(times) for times in rounds], []
    truth = median(medians)  # as `measure_session_latency` defines it
    for _ in range(tries):
        spread = [medians[int(start)] for start in session_starts(k, len(rounds), int(rng.integers(2**32)))]
        first = int(rng.integers(len(rounds) - k + 1))
        (low, high), (left, right) = (
            percentile_interval(list(times), 50) for times in (spread, chain(*rounds[first : first + k]))
        )
        found.append((low <= truth <= high, left <= truth <= right, (high - low) / truth))
    held, in_a_row, widths = np.transpose(found)
    return np.array([held.mean(), in_a_row.mean(), np.median(widths)])


def measured_coverage(trial: Trial) -> Records:
    from threadpoolctl import threadpool_limits

    sessions, seconds, tries, block = (1, 1.5, 10, 5e-4) if trial.short else (3, 25.0, 200, 5e-3)
    digits = digits_network()
    tools = {"ONNX Runtime": as_callable(digits.load_session()), "scikit-learn": as_callable(digits.network)}
    sizes = {"1 image": digits.X[:1], "256 images": digits.X[:256]}
    streams = {f"{tool}, {size}": (tools[tool], sizes[size]) for tool, size in product(tools, sizes)}
    with threadpool_limits(1):
        for call, x in streams.values():
            warm_up(call, x)
        recorded = [record_session(streams, seconds, block) for _ in range(sessions)]
    rows = []
    for name, k in product(streams, (10, 20, 30)):
        found = [coverage_of_session(session[name], k, tries, seed) for seed, session in enumerate(recorded)]
        means = np.mean(found, axis=0).tolist()
        rows.append({"stream": name, "rounds": k, **dict(zip(("spread", "in a row", "width"), means, strict=True))})
    return rows


def coverage_page(found: Records) -> list[str]:
    return [
        "How often the interval of a session holds the session's median, from K rounds spread over it and from K in a row:",
        lines(
            found,
            "stream | K | spread over the session | in a row | width of the interval",
            "{stream} | {rounds} | {spread:.0%} | {in a row:.0%} | {width:.1%}",
        ),
    ]


def coverage_goals(found: Records) -> dict[str, bool]:
    held = min(row["spread"] for row in found if row["rounds"] == 20)
    return {f"session interval, K = 20, holds in ≥ {GOAL_COVERAGE:.0%} on every stream": held >= GOAL_COVERAGE}


BENCHMARK = Benchmark(
    "The timed line",
    {
        "tools": Part("Bias and cost", measured_tool, tool_page, tool_goals, lambda options: CASES),
        "coverage": Part("Coverage", measured_coverage, coverage_page, coverage_goals),
    },
    rounds=40,
)
