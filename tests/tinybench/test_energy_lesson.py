"""Counters that a model of power moves: the meter reads them, their truth is known, and they say what they are."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tinybench.course.lessons.m06 import MODEL, BesideTruth, ModelledCounters, Toy, processor_time
from tinybench.energy import RaplMeter, energy_reading, measure_energy
from tinybench.result import BenchmarkResult

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its file names hold no colon")


def spin(seconds: float) -> None:
    start = time.process_time()
    while time.process_time() < start + seconds:
        pass


def test_the_meter_follows_the_model_over_a_wrap() -> None:
    with ModelledCounters(idle=20.0, per_core=100.0) as counters:
        meter = BesideTruth(RaplMeter(counters.root), counters)
        for _ in range(100):  # where others keep the machine busy, the counter moves late
            meter.read()
            spin(0.1)  # 10 J: it wraps after the first 3
            meter.read()
            joules = meter.pairs[-1][1] - meter.pairs[0][1]
            assert joules >= 0.1 * 100
            error = abs(meter.error())
            if error < 0.02:
                break
        assert error < 0.02
        assert int((counters.root / "intel-rapl:0" / "energy_uj").read_text()) < 200_000_000_000, "it wrapped"


def test_idle_power_and_work_come_apart() -> None:
    for _ in range(5):
        with ModelledCounters(idle=30.0, per_core=40.0) as counters:
            watched = counters.watch(lambda _: spin(0.004))
            result = measure_energy(watched, 0, RaplMeter(counters.root), measurement_runs=4, min_reading=0.1)
        assert watched.true_energy(result) == pytest.approx(40.0 * 0.004, rel=0.3)
        if abs(result.median / watched.true_energy(result) - 1) < 0.1 and abs(result.metadata["idle_watts"] - 30) < 6:
            break
    else:
        raise AssertionError(
            f"{result}, {watched.true_energy(result)} J in truth, idle {result.metadata['idle_watts']} W"
        )


def test_a_model_says_that_it_is_one() -> None:
    with ModelledCounters(idle=3.0, per_core=7.0) as counters:
        assert RaplMeter(counters.root).details["domains"] == [f"package-0 ({MODEL})"]
        result = counters.result_of(measure_energy, lambda _: spin(0.002), 0, RaplMeter(counters.root), 0, 1)
    assert result.measured is False
    assert result.metadata["modelled"] == f"{MODEL}: 3 W idle, 7 W more for each core that this process keeps busy"


def test_a_counter_that_moves_late_is_read_longer() -> None:
    asked = list[float]()

    def measure(energy: float, min_reading: float) -> BenchmarkResult:
        asked.append(min_reading)
        if min_reading < 0.4:
            raise RuntimeError("the energy counter did not move in a reading")
        return BenchmarkResult("energy", [energy], {"measured": True}, unit="J")

    with ModelledCounters() as counters:
        assert counters.result_of(measure, 2.0).measured is False
        assert asked == [0.1, 0.2, 0.4]
        with pytest.raises(RuntimeError, match="did not move"):
            counters.result_of(lambda min_reading: measure(1.0, 0.1))


def test_processor_time_of_another_process_is_its_own() -> None:
    before = time.process_time()
    seen = processor_time(psutil.Process().pid)
    assert before - 0.05 <= seen <= time.process_time() + 0.05


def test_the_process_that_moves_the_counter_ends() -> None:
    counters = ModelledCounters()
    mover = counters._mover
    counters.close()
    assert mover.process.poll() is not None
    code = "import os; from tinybench.course.lessons.m06 import ModelledCounters as M; c = M()\n"
    code += "print(c._mover.process.pid, c.root, flush=True); os._exit(0)"  # killed, without a word to anyone
    run = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    pid, root = run.stdout.split()
    for _ in range(200):
        if not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.05)
    else:
        raise AssertionError("it still moves a counter that nobody reads")
    shutil.rmtree(Path(root))


def test_the_toy_is_what_the_checks_say() -> None:
    toy = Toy()
    joules, seconds = energy_reading(toy.call, "x", 100, toy, toy.clock)
    assert (joules, seconds) == (pytest.approx(7.0), pytest.approx(0.2))
    toy.sleep(0.5)
    assert (toy.now, toy.slept, toy.inputs) == (pytest.approx(0.8), [0.5], ["x"] * 100)
    toy.reading = 0.01
    assert (toy.read(), toy.now) == (pytest.approx(7 + 13), pytest.approx(0.81)), "a read shows where it began"
    stuck = Toy(stuck=[0])
    stuck.call(0)
    assert stuck.read() == 7.0
