"""Module 05: known transients are seen in every run, stages in fresh processes, leaks, sizes, and systems without /proc."""

from __future__ import annotations

import contextvars
import ctypes
import functools
import json
import math
import mmap
import pickle
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.undisturbed import once_undisturbed
from tinybench import memory
from tinybench.course.lessons.m05 import touched
from tinybench.memory import measure_memory, model_size, peak_added, resident_growth
from tinybench.support.footprint.first_calls import memory_stages
from tinybench.support.footprint.freed_memory import WithoutArenas, free_heap
from tinybench.support.footprint.high_water_mark import can_reset, read_status, reset_peak, resident_memory
from tinybench.support.footprint.memory_visibility import count_error, exact_memory, touched_memory
from tinybench.support.footprint.stages import PEAK_METHOD, STAGES, run_fresh_stages
from tinybench.support.rounds.checked_calls import arguments

MIB = 2**20
SIZE = 64 * MIB
live = pytest.mark.skipif(not can_reset(), reason="this system has no /proc/self/clear_refs")


class FakeProc:
    """A /proc tree of plain files, in KiB; the peak is reset when a 5 has been written."""

    def __init__(self, root: Path, rss: int = 50_000) -> None:
        self.root, self.rss, self.peak = root, rss, rss
        (root / "self").mkdir()
        self.orders = root / "self" / "clear_refs"
        self.orders.write_text("")
        self.use(0)

    def use(self, peak: int, kept: int = 0) -> None:
        if self.orders.read_text() == "5":
            self.peak = self.rss
        self.orders.write_text("")
        self.peak = max(self.peak, self.rss + peak)
        self.rss += kept
        text = f"VmPeak:\t 999999 kB\nVmHWM:\t{self.peak:8d} kB\nVmRSS:\t{self.rss:8d} kB\n"
        (self.root / "self" / "status").write_text(text)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def numpy_transient(_: Any) -> None:
    np.ones(SIZE // 8).sum()


def c_transient(milliseconds: int) -> Callable[[Any], None]:
    """Return a function for which C takes 64 MiB, touches them, holds them for a while and frees them."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.memset.argtypes, libc.free.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t], [ctypes.c_void_p]

    def call(_: Any) -> None:
        block = libc.malloc(SIZE)
        libc.memset(block, 1, SIZE)
        libc.usleep(1000 * milliseconds)
        libc.free(block)

    return call


@pytest.fixture(scope="module")
def onnx_transient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a graph that expands one number to 64 MiB and adds them up."""
    onnx = pytest.importorskip("onnx")
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        transient (float[1, N] x) => (float y) <int64[2] shape = {4096, 4096}> {
            wide = Expand (x, shape)
            y = ReduceSum <keepdims = 0> (wide)
        }""")
    path = tmp_path_factory.mktemp("onnx") / "transient.onnx"
    onnx.save(model, path)
    return path


def session_of(source: Path | str | bytes, arena: bool) -> Any:
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena, options.intra_op_num_threads = arena, 1
    source = str(source) if isinstance(source, Path) else source
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


X = np.ones((1, 1), np.float32)


def seen_in_every_run(values: list[float], runs: int) -> bool:
    return len(values) == runs and all(0.97 * SIZE <= value <= 1.15 * SIZE for value in values)


@live
@pytest.mark.parametrize("runs", [10, pytest.param(100, marks=pytest.mark.audit)])
@pytest.mark.parametrize("source", ["numpy", "c", "c for 1 ms", "onnx, arena on", "onnx, arena off"])
def test_a_known_transient_is_seen_in_every_run(source: str, runs: int, onnx_transient: Path) -> None:
    models: dict[str, Callable[[], Any]] = {
        "numpy": lambda: numpy_transient,
        "c": lambda: c_transient(0),
        "c for 1 ms": lambda: c_transient(1),
        "onnx, arena on": lambda: session_of(onnx_transient, True),
        "onnx, arena off": lambda: session_of(onnx_transient, False),
    }
    result = measure_memory(models[source](), X, measurement_runs=runs)
    assert seen_in_every_run(result.values, runs), sorted(value / MIB for value in result.values)
    assert result.metadata["method"] == PEAK_METHOD
    assert result.metadata["arena"] == ("off in a twin session" if source == "onnx, arena on" else "none")
    json.dumps(result.to_dict(), allow_nan=False)


@live
@pytest.mark.parametrize("repeats", [2, pytest.param(20, marks=pytest.mark.audit)])
def test_an_arena_is_seen_in_fresh_processes(repeats: int, onnx_transient: Path) -> None:
    def load(path: str) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    stages = memory_stages(load, X, repeats=repeats, args=(str(onnx_transient),), steady_calls=3)
    assert list(stages) == list(STAGES)
    assert seen_in_every_run(stages["first_call"].values, repeats)
    assert max(stages["steady"].values) < 8 * MIB  # kept by the arena, so no later call shows it
    assert all(resident > SIZE for resident in stages["steady"].metadata["resident"])
    assert min(stages["import"].values) > 10 * MIB
    seen = {stage: result.metadata["seen"] for stage, result in stages.items()}
    assert (seen["import"], seen["first_call"], seen["steady"]) == (True, True, False)
    most = stages["steady"].metadata["at_most"]
    assert most is None or SIZE < most < 1.5 * SIZE


def warm(source: Path) -> Any:
    """Return a session whose arena holds all that it needs."""
    session = session_of(source, True)
    for _ in range(2):
        session.run(None, {"x": X})
    return session


@live
def test_a_warm_arena_hides_from_the_kernel_but_not_from_a_twin(onnx_transient: Path) -> None:
    session = warm(onnx_transient)
    assert peak_added(lambda x: session.run(None, x), {"x": X}) < 8 * MIB
    call = WithoutArenas(lambda x: session.run(None, x))
    call({"x": X})
    assert (call.arena, call.late) == ("off in a twin session", [0])
    free_heap()  # what goes during the call would hide as much of its peak
    assert seen_in_every_run([peak_added(call, {"x": X})], 1)
    assert session.get_session_options().enable_cpu_mem_arena is True
    assert "_sess" not in vars(type(session))  # the class is as it was


def at_most_about_size(notes: dict[str, Any]) -> bool:
    """Whether the most that was not seen is right; it is None if there are child processes, which nobody counts."""
    most = notes["at_most"]
    return most is None if "not_counted" in notes or notes["touched"] is None else SIZE <= most <= 1.5 * SIZE


def holders(session: Any) -> dict[str, Callable[[Any], Any]]:
    """Return calls that hold a session where no walk over attributes finds them all."""

    class Inner:
        def predict(self, x: Any) -> Any:
            return Slots().session.run(None, {"x": x})

    class Slots:
        __slots__ = ("session",)

        def __init__(self) -> None:
            self.session = session

    def answers() -> Any:
        x = yield
        while True:
            x = yield session.run(None, {"x": x})

    def in_a_thread(x: Any) -> None:
        thread = threading.Thread(target=session.run, args=(None, {"x": x}))
        thread.start()
        thread.join()

    def bound_by_name(x: Any) -> Any:
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()

    generator, context = answers(), contextvars.ContextVar("session", default=session)
    next(generator)
    array = np.array([session])
    return {
        "closure": lambda x: session.run(None, {"x": x}),
        "partial": functools.partial(lambda held, x: held.run(None, {"x": x}), session),
        "bound method": Inner().predict,
        "method of the session": lambda x, run=session.run: run(None, {"x": x}),
        "list in a dict": lambda x, held={"a": [session]}: held["a"][0].run(None, {"x": x}),
        "array of objects": lambda x: array[0].run(None, {"x": x}),
        "generator": generator.send,
        "context": lambda x: context.get().run(None, {"x": x}),
        "thread": in_a_thread,
        "I/O binding": bound_by_name,
    }


@live
def test_an_arena_hides_nowhere(onnx_transient: Path) -> None:
    for number, (where, call) in enumerate(holders(warm(onnx_transient)).items()):
        result = measure_memory(call, X, 2 * (number % 2), measurement_runs=2)
        first = result.metadata["first_call"]
        assert seen_in_every_run([*result.values, first], 3), (where, first, result.values)
        assert result.metadata["arena"] == "off in a twin session"
        assert result.metadata["seen"] is True


@live
def test_an_attribute_of_a_pipeline_is_no_hiding_place(onnx_transient: Path) -> None:
    pytest.importorskip("sklearn")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    session = warm(onnx_transient)
    model = make_pipeline(FunctionTransformer(lambda x: session.run(None, {"x": x})[0].reshape(1, 1)))
    assert seen_in_every_run(measure_memory(model.transform, X, measurement_runs=2).values, 2)


@live
def test_a_session_made_late_or_for_every_call(onnx_transient: Path) -> None:
    session_of(onnx_transient, True)  # what ONNX Runtime itself takes belongs to no run
    made: list[Any] = []

    def late(x: Any) -> Any:
        if not made:
            made.append(session_of(onnx_transient, True))
        return made[0].run(None, {"x": x})

    assert seen_in_every_run(measure_memory(late, X, 0, measurement_runs=3).values, 3)
    each = measure_memory(lambda x: session_of(onnx_transient, True).run(None, {"x": x}), X, measurement_runs=2)
    assert seen_in_every_run(each.values, 2)
    assert each.metadata["arena"] == "none"


@live
@pytest.mark.parametrize("how", ["binding", "file"])
@once_undisturbed
def test_an_arena_that_stays_is_said(how: str, onnx_transient: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.onnx").write_bytes(onnx_transient.read_bytes())
    session = warm(tmp_path / "gone.onnx" if how == "file" else onnx_transient)
    (tmp_path / "gone.onnx").unlink()
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    calls = {"binding": lambda _: session.run_with_iobinding(binding), "file": lambda x: session.run(None, {"x": x})}
    result = measure_memory(calls[how], X, measurement_runs=2)
    assert result.metadata["arena"] == "on, and hides memory"
    assert result.metadata["seen"] is False
    assert at_most_about_size(result.metadata)
    assert "an arena is on" in result.metadata["caution"]


@live
@once_undisturbed  # here and there a call touches 30 MB more, such as by a collection
def test_an_unknown_allocator_is_not_a_zero() -> None:
    pool: list[np.ndarray] = []

    def pooled(x: Any) -> Any:
        if not pool:
            pool.append(np.ones(SIZE // 8))
        pool[0][:] = x
        return pool[0][0]

    free_heap()  # else what other tests left there may serve the first call
    for first in (True, False):  # the second time it is warm before anybody looks
        result = measure_memory(pooled, 2.0, measurement_runs=3)
        assert result.median < MIB
        assert result.metadata["seen"] is False
        assert at_most_about_size(result.metadata)
        assert ("first call added 67" in result.metadata["caution"]) is first


@live
def test_memory_of_another_process_is_not_said_to_be_bounded() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE):
        notes = measure_memory(math.sqrt, 4, measurement_runs=1).metadata
    assert (notes["at_most"], notes["not_counted"]) == (None, "child processes")


def later(kind: str) -> Callable[[Any], Any]:
    async def answer(x: Any) -> Any:
        return np.ones(SIZE // 8)

    return answer if kind == "function" else lambda x: answer(x)


@live
@pytest.mark.parametrize("kind", ["function", "answer"])
def test_work_that_is_done_later_is_not_a_zero(kind: str) -> None:
    with pytest.raises(TypeError, match="coroutine"):
        measure_memory(later(kind), X, measurement_runs=2)


@live
def test_inputs_are_passed_as_for_latency(onnx_transient: Path) -> None:
    several = measure_memory(lambda a, b: np.ones(a * b), arguments(2**20, b=8), measurement_runs=2)
    assert seen_in_every_run(several.values, 2)
    by_name = measure_memory(session_of(onnx_transient, True), {"x": X}, measurement_runs=2)
    assert seen_in_every_run(by_name.values, 2)
    assert resident_growth(lambda a, b: a + b, arguments(1, 2), runs=20).count == 10


@live
@once_undisturbed
def test_touched_memory_is_what_a_call_reads_or_writes() -> None:
    weights = np.ones(SIZE // 8)
    free_heap()  # a collection during a call would touch more
    idle, _ = touched_memory(lambda _: None, None)
    busy, cores = touched_memory(lambda _: weights.sum(), None)
    if idle is None or busy is None:
        pytest.skip("this system has no smaps_rollup")
    assert 0.95 * SIZE < busy - idle < 1.2 * SIZE
    assert cores >= 1


def test_what_is_seen_on_a_fake_process(proc: FakeProc) -> None:
    error = count_error()
    for added, seen in ((error // 1024 + 4, True), (error // 1024 - 4, False)):
        notes = measure_memory(lambda _, kib=added: proc.use(kib), X, measurement_runs=2, proc=proc.root).metadata
        assert (notes["seen"], notes["resolution"], notes["touched"]) == (seen, error, None)
        assert ("caution" in notes) is not seen
        assert seen or notes["at_most"] is None
    needs = iter([90_000, 8_000, 8_000, 8_000, 8_000])
    notes = measure_memory(lambda _: proc.use(next(needs)), X, 1, measurement_runs=3, proc=proc.root).metadata
    assert notes["caution"].startswith("the first call added 92.2 MB")
    with pytest.raises(OSError, match="smaps_rollup"):
        exact_memory("Rss", proc.root)
    (proc.root / "self" / "smaps_rollup").write_text("0-1 [rollup]\nRss:  7 kB\n")
    assert exact_memory("Rss", proc.root) == 7 * 1024
    assert resident_memory(proc.root) == (7 * 1024, "Rss of smaps_rollup")
    with pytest.raises(OSError, match="no Referenced"):
        exact_memory("Referenced", proc.root)


@pytest.mark.parametrize(("there", "busy", "batches"), [(1, 1, 2), (2, 1, 2), (2, 2, 2), (8, 3, 4), (8, 8, 8)])
def test_the_error_grows_with_the_cores_in_use(
    monkeypatch: pytest.MonkeyPatch, there: int, busy: int, batches: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: there)
    assert count_error(busy) == 3 * batches * 32 * mmap.PAGESIZE


@live
def test_what_the_mark_misses_is_below_its_error() -> None:
    free_heap()  # what goes meanwhile would be missing, too
    for size in (2**20, 2**22, 2**24):
        missing = [size - memory.peak_added(touched, size) for _ in range(20)]
        assert max(missing) <= count_error()


@live
def test_small_transients_are_seen_though_the_heap_keeps_them() -> None:
    def call(size: int) -> None:
        np.ones(size // 8).sum()

    for size in (1 * MIB, 16 * MIB, 30 * MIB):
        call(size)
        values = measure_memory(call, size, measurement_runs=5).values
        # the kernel may give huge pages, from 4 MiB on NumPy asks for them: one may reach over each end of the array
        most = size + (2 * MIB if size < 4 * MIB else 4 * MIB)
        assert all(0.9 * size <= value <= most for value in values), (size, values)


@live
def test_nothing_is_seen_where_nothing_is() -> None:
    result = measure_memory(math.sqrt, 4, measurement_runs=5)
    assert result.median < MIB / 2
    assert peak_added(lambda _: np.empty(SIZE // 8), None) < MIB


@live
def test_status_of_this_process() -> None:
    ballast = np.ones(SIZE // 8)
    high = read_status()
    del ballast
    free_heap()  # where the heap had room for it, it is still resident
    reset_peak()
    low = read_status()
    assert high["VmHWM"] >= high["VmRSS"] > SIZE
    assert low["VmHWM"] <= high["VmHWM"] - 0.9 * SIZE


def test_status_in_bytes(proc: FakeProc) -> None:
    proc.use(2000, 500)
    assert read_status(proc.root) == {"VmRSS": 50_500 * 1024, "VmHWM": 52_000 * 1024}
    (proc.root / "self" / "status").write_text("VmRSS: 5 kB\n")
    with pytest.raises(OSError, match="high-water mark"):
        read_status(proc.root)
    assert not can_reset(proc.root / "nowhere")


def test_peaks_on_a_fake_process(proc: FakeProc) -> None:
    proc.use(900_000)
    needs = iter([7000, 10, 20, 30, 0])
    result = measure_memory(lambda _: proc.use(next(needs)), X, warmup_runs=1, measurement_runs=3, proc=proc.root)
    assert result.values == [10 * 1024, 20 * 1024, 30 * 1024]
    assert result.metadata["first_call"] == 7000 * 1024
    for name, value in [("warmup_runs", -1), ("measurement_runs", 0), ("measurement_runs", 1.5)]:
        with pytest.raises(ValueError, match=name):
            measure_memory(len, X, proc=proc.root, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empty"):
        measure_memory(len, X[:0], proc=proc.root)


def test_python_peak() -> None:
    assert memory.python_peak(bytearray, 3_000_000) == pytest.approx(3_000_000, rel=0.01)
    assert not tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        assert memory.python_peak(np.ones, 100_000) == pytest.approx(800_000, rel=0.01)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    with pytest.raises(ZeroDivisionError):
        memory.python_peak(lambda x: x / 0, 1)
    assert not tracemalloc.is_tracing()


def test_where_there_is_no_proc_a_fresh_process_measures(tmp_path: Path) -> None:
    result = measure_memory(np.ones, SIZE // 8, measurement_runs=2, proc=tmp_path)
    assert seen_in_every_run(result.values, 2)
    assert result.metadata["processes"] == 2
    result = measure_memory(lambda x: np.ones(SIZE // 8), X, measurement_runs=1, proc=tmp_path)
    assert seen_in_every_run(result.values, 1)
    lock = threading.Lock()
    with pytest.raises(TypeError, match="memory_stages"):
        measure_memory(lambda x: lock, X, proc=tmp_path)


def test_where_there_is_no_proc_a_session_travels_as_its_file(tmp_path: Path, onnx_transient: Path) -> None:
    for source in (str(onnx_transient), onnx_transient.read_bytes()):
        result = measure_memory(session_of(source, True), X, measurement_runs=1, proc=tmp_path)
        assert seen_in_every_run(result.values, 1)
        assert result.metadata["arena"] == "off in a twin session"


@pytest.mark.skipif(sys.platform == "win32", reason="no getrusage")
def test_where_there_is_no_proc_getrusage_serves(tmp_path: Path) -> None:
    def load(size: int) -> Any:
        import numpy

        weights = numpy.ones(size)
        return lambda x: weights[0]

    ballast = np.ones(4 * SIZE // 8)  # a large parent must not cover its child's maximum
    stages = memory_stages(
        load, X, repeats=1, args=(SIZE // 8,), launch=lambda task: run_fresh_stages({**task, "proc": str(tmp_path)})
    )
    del ballast
    assert seen_in_every_run(stages["load"].values, 1), stages["load"].values
    assert "getrusage" in stages["load"].metadata["method"]
    # what the process holds is psutil's word, not the maximum; a later stage below the maximum is not 0 either
    assert all(resident > SIZE for resident in stages["steady"].metadata["resident"])


def test_stages_of_numbers_given() -> None:
    count = iter(range(9))

    def launch(_: Any) -> dict[str, Any]:
        n = next(count)
        return {"method": "m", "stages": {s: {"peak": n, "retained": 10 + n, "resident": 20 + n} for s in STAGES}}

    load = memory_stages("json:loads", X, repeats=3, launch=launch)["load"]
    assert load.values == [0, 1, 2]
    assert (load.metadata["retained"], load.metadata["resident"]) == ([10, 11, 12], [20, 21, 22])
    for wrong in ("repeats", "steady_calls"):
        with pytest.raises(ValueError, match=wrong):
            memory_stages("json:loads", X, launch=launch, **{wrong: 0})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="lambda"):
        memory_stages(lambda: 1, X, launch=launch)


def test_errors_of_a_fresh_process_come_back() -> None:
    def broken() -> Any:
        raise KeyError("no such file")

    def ends() -> Any:
        import os

        os._exit(7)

    for load, why in (broken, "KeyError: 'no such file'"), (ends, "code 7"):
        with pytest.raises(RuntimeError, match=why):
            memory_stages(load, X, repeats=1)


@given(st.lists(st.integers(-50, 90), min_size=12, max_size=12), st.sampled_from([2, 3, 4, 6]))
@settings(max_examples=15)  # each writes hundreds of files
def test_growth_is_the_slope_of_blocks(kept: list[int], blocks: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        fake, steps = FakeProc(Path(folder), 100_000), iter(kept)
        result = resident_growth(lambda _: fake.use(0, next(steps)), 0, 12, blocks, 0, proc=fake.root)
    size = 12 // blocks
    rates = [1024 * sum(kept[i : i + size]) / size for i in range(0, 12, size)]
    assert result.values == pytest.approx(rates)
    assert result.mean == pytest.approx(1024 * sum(kept) / 12, abs=1e-9)
    if len(set(rates)) > 1:
        low, high = stats.t.interval(0.95, blocks - 1, np.mean(rates), stats.sem(rates))
        assert (result.ci_lower, result.ci_upper) == pytest.approx((low, high), abs=1e-6)
    assert result.metadata["growing"] == (result.ci_lower > 0)


@live
def test_a_real_leak_is_found_and_a_clean_model_is_not_accused() -> None:
    hoard: list[np.ndarray] = []
    leak = resident_growth(lambda x: hoard.append(x.copy()), np.ones(16_384), runs=100)  # 128 KiB a call
    assert leak.metadata["growing"]
    assert leak.mean == pytest.approx(131_072, rel=0.1)
    clean = resident_growth(lambda x: float(np.sqrt(x).sum()), np.ones(16_384), runs=100)
    assert abs(clean.mean) < 4096
    assert clean.metadata["resolution"] >= 40  # a page over 100 calls
    assert clean.metadata["seen"] is (abs(clean.mean) >= clean.metadata["resolution"])
    assert ("caution" in clean.metadata) is not clean.metadata["seen"]


def test_growth_refuses() -> None:
    for wrong, why in ({"runs": 101}, "101 runs cannot be divided into 10 equal blocks"), ({"blocks": 1}, "blocks"):
        with pytest.raises(ValueError, match=why):
            resident_growth(len, X, **wrong)


def test_growth_without_proc_is_read_by_psutil(tmp_path: Path) -> None:
    hoard: list[np.ndarray] = []
    leak = resident_growth(lambda x: hoard.append(x.copy()), np.ones(16_384), runs=100, proc=tmp_path)
    assert leak.mean == pytest.approx(131_072, rel=0.1)
    assert leak.metadata["method"] == "resident size (psutil)"


def test_sizes(tmp_path: Path, onnx_transient: Path) -> None:
    onnx = pytest.importorskip("onnx")
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.bin").write_bytes(bytes(1000))
    (tmp_path / "deep" / "b.bin").write_bytes(bytes(234))
    assert model_size(tmp_path) == 1234
    assert model_size(str(tmp_path / "a.bin")) == 1000
    with pytest.raises(FileNotFoundError):
        model_size(tmp_path / "nowhere.onnx")
    content = onnx_transient.read_bytes()
    for form in (onnx_transient, session_of(onnx_transient, True), onnx.load(onnx_transient), content):
        assert model_size(form) == len(content)
    weights = {"w": np.arange(1000.0)}
    assert model_size(weights) == len(pickle.dumps(weights, protocol=pickle.HIGHEST_PROTOCOL))
    with pytest.raises(TypeError, match="pass the path"):
        model_size(lambda x: x)


def test_external_weights_count(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[N, 64] x) => (float[N, 64] y) {y = MatMul (x, w)}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w"))
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    assert (tmp_path / "m.data").stat().st_size >= 64 * 64 * 4
    assert model_size(path) == path.stat().st_size + (tmp_path / "m.data").stat().st_size


@given(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(0, 10**12))
def test_capacity(available: int, each: int, shared: int) -> None:
    fit = memory.max_concurrent(available, each, shared)
    assert fit >= 0
    assert fit == 0 or shared + fit * each <= available * (1 + 1e-12)
    assert shared + (fit + 1) * each > available * (1 - 1e-12)


def test_capacity_refuses() -> None:
    for wrong in [(1, 0), (-1, 1), (1, -1), (math.inf, 1), (1, math.nan), (1, 1, -1)]:
        with pytest.raises(ValueError, match="give a finite number"):
            memory.max_concurrent(*wrong)
    assert memory.memory_pressure(2e6, 500) == 1e9
    for bad in [(-1, 1), (1, math.nan), (0, 500)]:
        with pytest.raises(ValueError, match="give a finite number"):
            memory.memory_pressure(*bad)


def test_free_heap_reports() -> None:
    assert isinstance(free_heap(), bool)
