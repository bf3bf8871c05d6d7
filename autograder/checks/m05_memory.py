"""Hidden checks for module 05, on a fake /proc tree with known memory.

SciPy, pickle and plain counting supply the expected values.
"""

from __future__ import annotations

import contextlib
import math
import pickle
from collections.abc import Callable, Iterator
from functools import cache, partial, reduce
from itertools import pairwise
from operator import mul
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from tinybench.support.footprint.freed_memory import free_heap

NAN, INF = float("nan"), float("inf")
heap_is_freed = cache(free_heap)  # cached: the result is always the same, and freeing the grader's heap is slow


class FakeProcess:
    """A fake /proc tree of plain files, for a process that allocates and keeps memory as scripted, in KiB.

    The files are written where the student's code runs, through the `Path` of the student's own module.
    """

    def __init__(self, student: Any, rss: int) -> None:
        self.student = student
        self.place = text(student.tempfile.mkdtemp(), "the name of a folder")
        self.root, self.folder = student.Path(self.place), student.Path(self.place, "self")
        self.folder.mkdir()
        self.status, self.orders = (self.folder.joinpath(name) for name in ("status", "clear_refs"))
        # bind the methods once, because every look-up of a method costs a message
        self.tell, self.ordered, self.order = self.status.write_text, self.orders.read_text, self.orders.write_text
        self.rss = self.peak = rss
        self.resets, self.inputs = 0, list[Any]()
        self.order("")
        self.write()

    def __enter__(self) -> FakeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self.status, self.orders):
            file.unlink()
        for folder in (self.folder, self.root):
            folder.rmdir()

    def write(self) -> None:
        """Write the current memory values to the status file."""
        fields = {"VmPeak": 9 * self.peak, "VmSize": 8 * self.rss, "VmHWM": self.peak, "VmRSS": self.rss, "RssAnon": 1}
        lines = (f"{name}:\t{kib:9d} kB\n" for name, kib in (fields | {"VmData": 7 * self.rss}).items())
        self.tell("Name:\tVmRSS\n" + "".join(lines))

    def use(self, peak: int, kept: int = 0) -> None:
        """Raise the memory by `peak`, then reduce it to the old level plus `kept`.

        If a 5 was written to clear_refs since the last call, reset the high-water mark first.
        """
        if order := text(self.ordered(), "what clear_refs holds"):
            self.order("")
        if order.strip() == "5":
            self.peak, self.resets = self.rss, self.resets + 1
        self.peak = max(self.peak, self.rss + peak, self.rss + kept)
        self.rss += kept
        self.write()

    def model(self, *needs: tuple[int, int]) -> Callable[[Any], None]:
        """Return a model whose calls pass the given (peak, kept) pairs to `use`, in order.

        Further calls repeat the last pair.
        """
        left = iter(needs)

        def call(x: Any) -> None:
            self.inputs.append(x)
            self.use(*next(left, needs[-1]))

        return call


@judges("peak_added")
def peak_is_above_before(student: Any) -> None:
    """Check that `peak_added` returns how far one call raises the peak above the resident memory before the call.

    Earlier peaks and memory that stays allocated must not matter.
    """
    odd = int(draw().integers(100, 9000))
    with FakeProcess(student, 40_000) as process:
        process.use(2_000_000)
        for peak, kept in ((65_536, 0), (odd, 0), (5000, 1200), (0, 0), (700, 700), (300, -900), (65_536, 0)):
            process.inputs.clear()
            got = student.peak_added(process.model((peak, kept)), "input", process.root)
            what = f"the peak of a call that takes {peak} KiB and keeps {kept}"
            same(got, peak * 1024, what, "reset, VmRSS, call, VmHWM, in this order")
            same(process.inputs, ["input"], "what call(x) is called with", "once, with x")
        same(process.resets, 7, "the resets before 7 calls", "one before each")
        refuses(student.peak_added, (math.sqrt, -1, process.root), cause="let the model's error through")
        process.status.write_text("VmHWM:\t 900 kB\nVmRSS:\t 1000 kB\n")
        got = student.peak_added(math.sqrt, 4, process.root)
        same(got, 0, "a mark below VmRSS (the kernel counts in batches)", "never negative")


class Buffers:
    """Byte buffers in the process that runs the student's code. Scripts resize the buffers in a known order."""

    def __init__(self, student: Any, rng: np.random.Generator, number: int = 3) -> None:
        self.rng, self.played = rng, 0
        self.buffers = [student.tempfile.SpooledTemporaryFile() for _ in range(number)]
        self.methods = [(buffer.truncate, buffer.seek, buffer.write) for buffer in self.buffers]

    def scripts(self, number: int) -> Iterator[tuple[list[tuple[int, int]], str, int]]:
        """Yield `number` scripts, each with a made-up word and the script's peak in bytes.

        A script is a list of (buffer, new size). The word serves as the argument of the measured call.
        """
        for note in words(self.rng, number):
            sizes, script, peak = [0] * len(self.buffers), list[tuple[int, int]](), 0
            for turn in [*self.rng.permutation(len(sizes)).tolist(), *self.rng.integers(len(sizes), size=4).tolist()]:
                # empty the buffer first, because a buffer that grows by little takes more than it needs
                sizes[turn] = int(self.rng.integers(2 * 10**6, 6 * 10**6))
                script += [(turn, 0), (turn, sizes[turn])]
                peak = max(peak, sum(sizes))
            yield script + [(turn, 0) for turn in range(len(sizes))], note, peak

    def play(self, script: list[tuple[int, int]], _: Any) -> None:
        self.played += 1
        for turn, size in script:
            truncate, seek, write = self.methods[turn]
            if size:
                seek(size - 1)
                write(b"x")
            else:
                truncate(0)

    def close(self) -> None:
        """Close the buffers."""
        for buffer in self.buffers:
            buffer.close()


@judges("python_peak")
def python_peak_is_beside(student: Any) -> None:
    """Check that `python_peak` excludes memory that was already traced, and leaves tracemalloc as it was."""
    tracing = student.tracemalloc
    tracing.stop()

    def traces() -> bool:
        return flag(tracing.is_tracing(), "whether tracemalloc is on")

    rng = draw()
    lows, highs = (500, 2 * 10**6, 10**5, 2, 2), (1000, 8 * 10**6, 3 * 10**5, 5, 5)
    side, size, length, *times = rng.integers(lows, highs).tolist()
    calls: list[tuple[Any, Any, int]] = [
        (bytearray, size, size),
        (np.identity, side, 8 * side**2),
        (np.ones, (side, 300), 2400 * side),
        # the last product is computed while the previous one still exists
        (partial(reduce, mul), [b"x" * length, *times], length * times[0] * (1 + times[1])),
    ]
    with contextlib.closing(Buffers(student, rng)) as buffers:
        # function and argument do not reveal the peaks of these calls; only tracing does
        calls += [(partial(buffers.play, script), note, peak) for script, note, peak in buffers.scripts(3)]
        for call, x, truth in calls:
            got, what = student.python_peak(call, x), "the peak of a call that takes memory and gives it back"
            # a message takes about 100 kB on its way
            same(got, truth, what, "the peak, not what is left", rel=0.01, abs=100_000)
            expect(not traces(), "tracemalloc was off, and should be off again")
        same(buffers.played, 3, "the calls of call(x) in 3 measurements")
    refuses(student.python_peak, (math.sqrt, -1))
    expect(not traces(), "switch tracemalloc off also when the model raises (finally)")
    seen: list[Any] = []
    student.python_peak(seen.append, "the input")
    same(seen, ["the input"], "what call(x) is called with", "once, with x")
    tracing.start()
    try:
        holder = student.SimpleNamespace()
        holder.past = b"x" * 900_000  # an earlier peak of other code
        holder.past = None
        holder.ballast = b"x" * 500_000
        got, cause = student.python_peak(bytearray, 200_000), "reset the peak, and subtract what was there"
        same(got, 200_000, "the peak while somebody else traces", cause, rel=0.1)
        expect(traces(), "somebody else traces: leave it running")
    finally:
        tracing.stop()


@judges("measure_memory")
def memory_is_the_peak(student: Any) -> None:
    """Check that the values of `measure_memory` are the peaks of the measured calls only.

    The metadata must describe the method.
    """
    rng, counts = draw(), student.gc.get_stats
    x = rng.normal(size=(6, 4))
    with FakeProcess(student, 30_000) as process:
        process.use(500_000)
        for warmups, runs in ((0, 4), (3, 5)):
            needs, collections = rng.integers(100, 60_000, warmups + runs).tolist(), list[Any]()
            take = process.model(*((need, 0) for need in needs), (77, 0))
            process.inputs.clear()

            def model(x: Any, take: Any = take, collections: list[Any] = collections) -> None:
                take(x)
                oldest = items(counts(), "the collector's generations", 3)[2]
                collections.append(entries(oldest, "the oldest generation")["collections"])

            result = student.measure_memory(model, x, warmup_runs=warmups, measurement_runs=runs, proc=process.root)
            truth, cause = [1024 * n for n in needs], "one peak for each measured call, in bytes"
            same(result.values, truth[warmups:], f"the values after {warmups} warm-up calls", cause)
            notes = {"first_call": truth[0], "heap_freed": heap_is_freed(), "input_shape": [6, 4]}
            holds(result.metadata, notes, "metadata", "first_call: warm-up or not; free_heap(), describe_input(x)")
            for value in process.inputs:
                same(value, x, "what the model is called with")
            measured = numbers(collections[warmups : warmups + runs], "collections before each measured run", runs)
            freed = all(later > earlier for earlier, later in pairwise(measured))
            expect(freed, "call free_heap() before each measured run: else freed blocks hide what a run needs")
            holds(result, {"metric_name": "memory", "unit": "B"}, "result")
            method = text(entries(result.metadata, "metadata")["method"], "metadata['method']")
            expect("VmHWM" in method, "metadata['method'] should name VmHWM")
        notes = student.measure_memory(np.ones, 500_000, measurement_runs=2, proc=process.root).metadata
        holds(notes, {"python_peak": 4_000_000}, "metadata", "this takes 4 MB; python_peak(call, x)", rel=0.01)
        refuses(partial(student.measure_memory, 3, x, proc=process.root), error=TypeError)


@judges("model_size")
def size_is_on_disk(student: Any) -> None:
    """Check that `model_size` returns the bytes of files, folders, external weights and pickled models."""
    rng = draw()
    top, files = text(student.tempfile.mkdtemp(), "the name of a folder"), {}
    folder = student.Path(top)
    for place in ("deep/down", "deep"):
        folder.joinpath(place).mkdir(parents=True, exist_ok=True)
    for number, place in enumerate(("a.bin", "deep/c.dat", "deep/down/e.onnx", "empty", "m.onnx")):
        content = _external_onnx("a.bin") if place == "m.onnx" else bytes([number + 1]) * int(rng.integers(500, 5000))
        files[place] = b"" if place == "empty" else content
        folder.joinpath(place).write_bytes(files[place])
    for place, content in files.items():
        truth = len(content) + (len(files["a.bin"]) if place == "m.onnx" else 0)
        cause = "add the external_files of an ONNX model" if place == "m.onnx" else ""
        for path, how in ((folder.joinpath(place), ""), (f"{top}/{place}", ", given as text")):
            agrees(student.model_size, truth, [path], cause, what=f"the size of {place}{how}")
    truth = sum(map(len, files.values()))
    agrees(student.model_size, truth, [folder], "all files, in folders within it too", what="the size of a folder")
    refuses(student.model_size, folder.joinpath("nowhere"), error=FileNotFoundError)
    for place in files:
        folder.joinpath(place).unlink()
    for place in ("deep/down", "deep", ""):
        folder.joinpath(place).rmdir()
    models = [({"w": rng.normal(size=3000)},), (list(range(2000)),)]
    agrees(student.model_size, lambda model: len(pickle.dumps(model, protocol=5)), models, "pickle's highest protocol")
    what = "a model that cannot be pickled"
    refuses(student.model_size, ([lambda x: x],), error=TypeError, what=what)


def _external_onnx(place: str) -> bytes:
    """Return an ONNX model whose single weight is stored in the file `place` next to it."""
    from onnx import TensorProto, helper

    weight = TensorProto(name="w", dims=[2], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    entry = weight.external_data.add()
    entry.key, entry.value = "location", place
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [value], [weight])
    return bytes(helper.make_model(graph, ir_version=10).SerializeToString())


@judges("resident_growth")
def growth_is_a_slope(student: Any) -> None:
    """Check that the values of `resident_growth` are the growth rates of the blocks, and that the slope is their mean.

    The interval of the slope must equal SciPy's t interval.
    """
    rng = draw()
    for blocks, calls, warmups in ((6, 3, 3), (2, 4, 0), (5, 1, 8)):
        kept = rng.integers(-20, 60, warmups + blocks * calls).tolist()
        with FakeProcess(student, 100_000) as process:
            model = process.model(*((5000, k) for k in kept))
            result = student.resident_growth(model, [[1.0]], blocks * calls, blocks, warmups, proc=process.root)
        same(len(process.inputs), len(kept), f"the calls with {warmups} warm-up and {blocks * calls} measured ones")
        measured = kept[warmups:]
        rates = [1024 * sum(measured[i * calls : (i + 1) * calls]) / calls for i in range(blocks)]
        same(result.values, rates, "the rate of each block", "growth of VmRSS over a block, by its calls", abs=1e-9)
        reach = stats.t.ppf(0.975, blocks - 1) * stats.sem(rates)  # 0 if all blocks are equal
        low, high = np.mean(rates) - reach, np.mean(rates) + reach
        truth = {"mean": 1024 * sum(measured) / len(measured), "ci_lower": low, "ci_upper": high, "unit": "B"}
        holds(result, truth, "the slope's result", rel=1e-7, abs=1e-9)
        trail = [1024 * (100_000 + sum(kept[: warmups + i * calls])) for i in range(blocks + 1)]
        notes = {"growing": bool(low > 0), "resident": trail}
        holds(result.metadata, notes, "metadata", f"the slope's interval is {low:.0f} to {high:.0f}")
    for kib, verdict in ((3, True), (0, False), (-3, False)):
        with FakeProcess(student, 100_000) as process:
            result = student.resident_growth(process.model((9, kib)), [[1.0]], 4, 2, 1, proc=process.root)
        holds(result.metadata, {"growing": verdict}, "metadata", f"a model that keeps {kib} KiB in every call")


@judges("max_concurrent", "memory_pressure")
def capacity_is_counted(student: Any) -> None:
    """Check that `max_concurrent` counts whole instances, and that `memory_pressure` returns bytes per second."""
    rng = draw()

    def counted(available: int, each: int, shared: int = 0) -> int:
        fit = 0
        while shared + (fit + 1) * each <= available:
            fit += 1
        return fit

    cases = [(900, 300), (100, 10, 500), *map(tuple, rng.integers((1, 1, 0), (10**6, 10**5, 10**5), (30, 3)).tolist())]
    agrees(student.max_concurrent, counted, cases, "round down after subtracting what is shared; never negative")
    bad = (10, 0), (10, -1), (-1, 10), (NAN, 1), (INF, 1), (10, NAN), (10, 1, -5)
    refuses(student.max_concurrent, *bad)
    cases = [(float(rng.uniform(1e6, 1e8)), float(rng.uniform(1, 1e4))), (5, 0)]
    agrees(student.memory_pressure, mul, cases, "bytes an inference times inferences a second")
    refuses(student.memory_pressure, (0, 5), (-1, 1), (1, -1), (NAN, 1), (1, INF))


def answer_understanding(student: Any) -> None:
    """Check that the answers on a warm arena, workers that fit, a layer's output and a possible leak are right."""
    same(student.warm_arena_needs(), "as before", "question 1", "the arena hides the need, it does not remove it")
    same(student.workers_that_fit(), math.floor((4000 - 120) / 60), "question 2", "(4000 − 120) / 60, rounded down")
    same(student.mebibytes_of_the_layer(), 4096 * 2048 * 4 / 2**20, "question 3", "4096 · 2048 · 4 bytes / 2²⁰")
    same(student.leak_is_shown(), False, "question 4", "the interval holds 0")
