"""Roofs: what is measured on a fake clock with known rates, faked machines, and a second of this one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.tinybench.test_operator_work import roofs_of
from tinybench.result import BenchmarkResult
from tinybench.tools.roofline import matrix_products as products
from tinybench.tools.roofline import specification
from tinybench.tools.roofline.best_rates import Probe, call_time, measure_rates
from tinybench.tools.roofline.byte_movers import find_movers, largest_set, mover, working_sets
from tinybench.tools.roofline.matrix_products import TYPES, product_model, type_that_ran
from tinybench.tools.roofline.roofs import Roofs, against, measure_roofs
from tinybench.tools.roofline.specification import Processor, Specification, read_caches, read_processor, specifications


class Time:
    """A clock that only moves when something is called."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def __call__(self) -> float:
        return self.now

    def takes(self, seconds: float, name: str = "") -> Callable[[], None]:
        def call() -> None:
            self.now += seconds
            self.calls.append(name)

        return call


def test_rates_of_known_calls() -> None:
    clock = Time()
    probes = [Probe(clock.takes(1e-4, "a"), 2e6), Probe(clock.takes(4e-3, "b"), 2e6)]
    rates = measure_rates(probes, 1.6, rounds=8, clock=clock)
    assert np.array(rates) == pytest.approx(np.array([[20.0] * 8, [0.5] * 8]))
    assert [probe.loops for probe in probes] == [10, 1]  # a millisecond, or a call
    tried = clock.calls.index("b") + 2
    order = [
        name for name, before in zip(clock.calls[tried:], ["", *clock.calls[tried:]], strict=False) if name != before
    ]
    assert order != ["a", "b"] * 8
    assert clock.now == pytest.approx(1.6, rel=0.1)  # evenly spread, whatever a call takes


def test_the_best_of_a_round_counts() -> None:
    clock, times = Time(), iter([1.0, 3.0, 2.0, 0.5] * 6)

    def call() -> None:
        clock.now += next(times)

    assert [Probe(call, 6e9).rate(clock) for _ in range(2)] == [6.0, 12.0]
    assert Probe(call, 6e9).rate(clock, 7.5) == 12.0  # there is time for six
    assert len([*times]) == 24 - 4 - 5


def test_short_calls_are_timed_together() -> None:
    clock = Time()
    assert call_time(clock.takes(1e-6), clock) == pytest.approx(1e-6)
    assert 1000 <= len(clock.calls) < 100_000
    assert call_time(lambda: None, lambda: 0.0) > 0  # a clock that stands still


@pytest.mark.parametrize("kind", ["read", "copy", "triad"])
def test_what_is_moved_is_counted(kind: str) -> None:
    size = 2**16
    call, moved = mover(kind, np.ones(size // 4, np.float32))
    call()
    assert moved == {"read": size * 256, "copy": size, "triad": 1.5 * size}[kind]


def test_calls_that_take_longer_than_what_they_move_are_left_out() -> None:
    with ThreadPoolExecutor(2) as pool:
        clock = Time()
        clock.now, ticks = 0.0, iter(range(10**9))
        found = find_movers(["read", "copy"], [2**14, 2**15], pool, 1, lambda: next(ticks) * 1e-3)
        # every call takes the same on this clock, so a copy is nothing but its call
        assert [probe.metadata["kind"] for probe in found] == ["read", "read"]
        (pair,) = find_movers(["read"], [2**14], pool, 2, lambda: next(ticks) * 1e-3)
        assert pair.amount == 2 * found[0].amount
        pair.call()


def test_working_sets_reach_into_each_level() -> None:
    sets = working_sets({"L1": 48 * 2**10, "L2": 2**21, "L3": 2**30}, 2**23 + 64)
    assert sets == [2**14, 24 * 2**10, *(2**power for power in range(15, 24)), 2**23 + 64]
    assert largest_set({}, 1.0, 1) <= 2**28
    assert largest_set({"L3": 2**23}, 100.0, 1) <= 2**28
    assert largest_set({"L3": 2**30}, 1e-3, 2) == 2**25


def fake_cpu(root: Path, cpuinfo: str, caches: dict[str, tuple[str, str, str]], highest: str = "") -> Path:
    (root / "proc").mkdir()
    (root / "proc" / "cpuinfo").write_text(cpuinfo, encoding="utf-8")
    for name, facts in caches.items():
        folder = root / "sys/devices/system/cpu/cpu0/cache" / name
        folder.mkdir(parents=True)
        for file, text in zip(("level", "type", "size"), facts, strict=True):
            (folder / file).write_text(text + "\n", encoding="utf-8")
    if highest:
        (root / "sys/devices/system/cpu/cpu0/cpufreq").mkdir(parents=True)
        (root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").write_text(highest, encoding="utf-8")
    return root


CACHES = {
    "index0": ("1", "Data", "48K"),
    "index1": ("1", "Instruction", "32K"),
    "index2": ("2", "Unified", "2M"),
    "index3": ("3", "Unified", "491520K"),
    "index4": ("4", "Unified", "unknown"),
}


def test_what_linux_says_of_a_processor(tmp_path: Path) -> None:
    told = "processor : 0\nmodel name : Some @ 2.50GHz\ncpu MHz : 3100.5\nflags : fpu avx2 fma sse2\n\nprocessor : 1\n"
    root = fake_cpu(tmp_path, told, CACHES)
    assert read_caches(root, "linux") == {"L1": 48 * 2**10, "L2": 2**21, "L3": 480 * 2**20}
    assert read_processor(root) == Processor(
        frozenset({"fpu", "avx2", "fma", "sse2"}), 2.5e9, "the base clock in its name; it may run faster"
    )


@pytest.mark.parametrize(
    ("told", "highest", "clock", "words"),
    [
        ("flags : sse2\ncpu MHz : 3100.5", "", 3.1005e9, "what it says now"),
        ("Features : asimd asimddp", "2500000", 2.5e9, "the highest that the system allows"),
        ("", "", None, ""),
    ],
)
def test_clocks(told: str, highest: str, clock: float | None, words: str, tmp_path: Path) -> None:
    found = read_processor(fake_cpu(tmp_path, told, {}, highest))
    assert found.clock == clock
    assert words in found.clock_from


def test_a_machine_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_caches(tmp_path, "linux") == {}
    assert read_processor(tmp_path) == Processor()
    assert specifications(Processor(frozenset({"avx2"})), 1) == {}
    answers = {"hw.perflevel0.l1dcachesize": "131072", "hw.l2cachesize": "4194304", "hw.l3cachesize": "0"}
    monkeypatch.setattr(specification, "_sysctl", lambda name: answers.get(name, ""))
    assert read_caches(tmp_path, "darwin") == {"L1": 2**17, "L2": 2**22}


@pytest.mark.parametrize(
    ("flags", "floats", "integers"),
    [
        ("sse2 avx fma avx2 avx512f avx512bw avx512_vnni amx_int8", 64, 2048),
        ("sse2 avx fma avx2 avx512f avx512bw avx512_vnni", 64, 256),
        ("sse2 avx fma avx2 avx512f avx512bw", 64, 128),
        ("sse2 avx fma avx2 avx_vnni", 32, 128),
        ("sse2 avx fma avx2", 32, 64),
        ("sse2 avx", 16, None),
        ("asimd asimddp", 16, 64),
        ("asimd asimddp i8mm", 16, 128),
    ],
)
def test_specifications(flags: str, floats: int, integers: int | None) -> None:
    found = specifications(Processor(frozenset(flags.split()), 2e9, "guessed"), 2)
    assert found["float32"].rate == 2 * 2e9 * floats
    assert found["float64"].rate == found["float32"].rate / 2
    assert "2 cores × 2 GHz (guessed)" in found["float32"].assumed
    assert (found["uint8 × int8"].rate / 4e9 if integers else None) == integers


def test_against_the_specification() -> None:
    result = BenchmarkResult("rate", [120.0] * 6)
    assert against(result, None) == "not known"
    assert against(result, Specification(160e9, "a guess")) == "75% of 160"
    assert against(result, Specification(100e9, "a guess")) == "120% of 100: an assumption is wrong"
    found = Roofs(
        [BenchmarkResult("rate", [1.0] * 6, {"ran_in": "float32"})], [], {}, {"float32": Specification(1.0, "a guess")}
    )
    assert found.sentences == ["Specification of float32: a guess."]


def test_roofs_are_asked() -> None:
    found = roofs_of({"float32": 100.0, "uint8 × int8": 400.0}, {2**14: 100.0, 2**19: 50.0, 2**22: 10.0})
    assert found.peak("float32") == 100e9
    assert found.peak("int8") == found.peak("uint8 × int8") == 400e9
    with pytest.raises(ValueError, match="no product ran in float16 here; measured are float32, uint8 × int8"):
        found.peak("float16")
    assert found.bandwidth(2**14) == found.bandwidth(1) == found.bandwidth(0) == 100e9
    assert found.bandwidth(2**30) == 10e9
    assert 50e9 < found.bandwidth(2**16) < 100e9
    assert [found.level(size) for size in (2**15, 2**15 + 1, 2**21)] == ["L1", "L2", "memory"]
    assert {level: result.median for level, result in found.levels.items()} == {"L1": 100, "L2": 50, "memory": 10}
    unknown = roofs_of({"float32": 100.0}, {2**15: 100.0, 2**20: 50.0, 2**22: 10.0}, {})
    assert [*unknown.levels] == ["32 KiB", "1 MiB", "4 MiB"]
    assert unknown.level(3 * 2**20) == "3 MiB"
    small = roofs_of({"float32": 1.0}, {2**14: 100.0, 2**20: 50.0}, {"L1": 2**15, "L3": 2**28})
    assert [*small.levels] == ["L1", "1 MiB"]  # memory was not reached
    shared = roofs_of({"float32": 1.0}, {2**14: 100.0, 2**19: 11.0, 2**22: 10.0})
    assert shared.sentences[-1].startswith("Half of L2 is read hardly faster than memory")
    assert len(found.sentences) == len(unknown.sentences) == 1
    assert "slower than the first cache" in found.sentences[0]


def test_a_nearer_cache_is_at_least_as_fast_as_a_farther_one() -> None:
    found = roofs_of({"float32": 100.0}, {2**14: 60.0, 2**19: 90.0, 2**22: 10.0})
    assert {level: result.median for level, result in found.levels.items()} == {"L1": 90, "L2": 90, "memory": 10}
    assert found.bandwidth(2**14) == found.bandwidth(2**16) == 90e9
    assert found.sentences[-1].startswith("L1 is read no faster than 512 KiB here")
    assert [result.median for result in found.reads] == [60, 90, 10], "the table still shows what was measured"


def test_the_fastest_of_a_type_is_its_roof() -> None:
    def result(rate: float, ran: str, by: str) -> BenchmarkResult:
        return BenchmarkResult("rate", [rate] * 6, {"dtype": "float16", "ran_in": ran, "by": by})

    found = Roofs([result(3, "float32", "a"), result(5, "float32", "b"), result(4, "float16", "c")], [])
    assert {ran: best.metadata["by"] for ran, best in found.peaks.items()} == {"float32": "b", "float16": "c"}


@pytest.mark.processor
def test_which_products_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "SIZES", (16, 32))
    found, notes = products.find_products(TYPES, limit=1e-9)
    ran = {(each.about["dtype"], each.about["by"]): each.about["ran_in"] for each in found}
    assert ran["float32", "ONNX Runtime"] == "float32"
    assert ran["uint8 × int8", "ONNX Runtime"] == "uint8 × int8"
    assert all(each.about["size"] == 16 for each in found)  # the next would take longer than there is time
    for dtype in TYPES:
        told = [note for note in notes if f" {dtype} " in note or f"of {dtype} here" in note]
        assert bool(told) == (ran.get((dtype, "ONNX Runtime")) != dtype)
    with pytest.raises(ValueError, match=r"'int3' is no type of a product here; there are float32"):
        products.find_products(["int3"])


def test_products_without_the_runtime_and_with_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "SIZES", (16,))
    monkeypatch.setitem(sys.modules, "tinybench.onnx", None)
    pools = ModuleType("threadpoolctl")
    vars(pools)["threadpool_info"] = lambda: [
        {"user_api": "openmp", "filepath": "/numpy/gomp", "num_threads": 1},
        {"user_api": "blas", "filepath": "/numpy.libs/x", "num_threads": 3, "internal_api": "openblas"},
    ]
    monkeypatch.setitem(sys.modules, "threadpoolctl", pools)
    found, notes = products.find_products(["float32", "uint8 × int8"], threads=3)
    assert [each.about["by"] for each in found] == ["NumPy (openblas, openblas)"]
    assert notes == ["ONNX Runtime is not installed: integers and halves were not measured."]
    assert products.find_products(["float32"], threads=1)[0] == []  # NumPy would take three
    vars(pools)["threadpool_info"] = list
    (found, *_), _ = products.find_products(["float32"], threads=1)
    assert found.about["by"] == "NumPy (its threads are not known)"
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert products.find_products(["float32"], threads=2)[0] == []


def test_a_type_that_the_runtime_does_not_multiply() -> None:
    with pytest.raises(ValueError, match="ONNX Runtime has no product of bfloat16 here"):
        type_that_ran("bfloat16", 1)
    assert product_model("float64", 8)


def test_a_second_of_this_machine(tmp_path: Path) -> None:
    found = measure_roofs(["float32", "uint8 × int8"], 0.5, largest=2**20, root=fake_cpu(tmp_path, "", CACHES))
    assert {"float32", "uint8 × int8"} <= found.peaks.keys()
    assert [*found.levels] == ["L1", "L2", "1 MiB"]
    for result in [*found.products, *found.bandwidths]:
        low, high = result.median_ci()
        assert 0 < low <= result.median <= high
        assert result.count == 8
    text: Any = found._repr_mimebundle_()
    assert "not known" in text["text/plain"]
    assert "less than twice the last cache (480 MiB)" in text["text/html"]
    assert "GB/s" in str(found)
