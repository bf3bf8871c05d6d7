"""GPUs are read through NVML, here a fake one, and their time by events, here of a fake clock."""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from tinybench.energy import measure_energy
from tinybench.shell.machine_command import machine, seen_gpus
from tinybench.tools.gpu.events import gpu_latency
from tinybench.tools.gpu.nvml import NvmlMeter, load_nvml, read_gpus


class FakeError(Exception):
    """As ``pynvml.NVMLError``."""


class FakeNvml:
    """One GPU of 100 W when idle, whose counter follows `seconds`; `lacking` are functions that it does not support."""

    NVMLError = FakeError
    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0
    nvmlClocksEventReasonSwPowerCap = 4
    nvmlClocksEventReasonSwThermalSlowdown = 32

    def __init__(self, lacking: tuple[str, ...] = (), reasons: int = 0, *, old: bool = False) -> None:
        self.old, self.lacking, self.reasons, self.seconds, self.more = old, lacking, reasons, 0.0, 0.0

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index:
            raise FakeError("Invalid Argument")
        return index

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.1"

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "Fake 100"

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 * 2**30, used=3 * 2**30),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=40, memory=1),
            "nvmlDeviceGetPowerUsage": 123_000,
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetClockInfo": 1410,
            "nvmlDeviceGetMaxClockInfo": 1980,
            "nvmlDeviceGetTemperature": 54,
            "nvmlDeviceGetCurrentClocksEventReasons": self.reasons,
            "nvmlDeviceGetTotalEnergyConsumption": round(1e3 * (100 * self.seconds + self.more)),
        }
        if name not in answers or (self.old and name == "nvmlDeviceGetCurrentClocksEventReasons"):
            raise AttributeError(name)

        def answer(*_: Any) -> Any:
            if name in self.lacking:
                raise FakeError("Not Supported")
            return answers[name]

        return answer


def test_the_facts_have_si_units() -> None:
    [gpu] = read_gpus(FakeNvml(reasons=4 | 32))
    assert (gpu.index, gpu.name, gpu.driver) == (0, "Fake 100", "580.1")
    assert (gpu.memory_bytes, gpu.memory_used_bytes) == (80 * 2**30, 3 * 2**30)
    assert (gpu.utilisation, gpu.watts, gpu.most_watts) == (0.4, 123.0, 700.0)
    assert (gpu.clock_hz, gpu.most_clock_hz, gpu.celsius) == (1.41e9, 1.98e9, 54.0)
    assert gpu.slowed_by == ("power limit", "heat")
    assert str(gpu) == (
        "GPU 0: Fake 100, driver 580.1; 3 GiB of 80 GiB of memory used, 40 % busy, 123 W of 700 W, "
        "1410 MHz of 1980 MHz, 54 °C, slowed by power limit and heat"
    )


def test_what_a_gpu_does_not_report_is_unknown() -> None:
    [gpu] = read_gpus(FakeNvml(("nvmlDeviceGetPowerUsage", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates")))
    assert (gpu.watts, gpu.memory_bytes, gpu.memory_used_bytes, gpu.utilisation) == (None, None, None, None)
    assert str(gpu) == "GPU 0: Fake 100, driver 580.1; 1410 MHz of 1980 MHz, 54 °C"


def test_a_lost_gpu_and_an_old_package_are_no_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lost = FakeNvml()
    monkeypatch.setattr(lost, "nvmlDeviceGetName", lambda handle: lost.nvmlDeviceGetHandleByIndex(1), raising=False)
    with pytest.raises(OSError, match="a GPU does not answer: Invalid Argument"):
        read_gpus(lost)
    monkeypatch.setitem(sys.modules, "pynvml", lost)
    assert seen_gpus(tmp_path) == ([], ["GPUs not read: a GPU does not answer: Invalid Argument"])
    [gpu] = read_gpus(FakeNvml(old=True))
    assert (gpu.slowed_by, gpu.watts) == ((), 123.0)


def test_the_meter_takes_off_the_idle_power() -> None:
    nvml, waits = FakeNvml(), []

    def model(x: Any) -> None:  # 0.01 s at 350 W
        nvml.seconds += 0.01
        nvml.more += 2.5

    def sleep(seconds: float) -> None:
        nvml.seconds += seconds

    meter = NvmlMeter(nvml=nvml, sync=lambda: waits.append(1))
    ticks = count()
    found = measure_energy(
        model, [[0.0]], meter, 3, 4, 1.0, clock=lambda: nvml.seconds + 1e-9 * next(ticks), sleep=sleep
    )
    assert found.mean == pytest.approx(2.5, rel=1e-3)
    assert found.unit == "J"
    assert found.metadata["measured"]
    assert found.metadata["idle_watts"] == pytest.approx(100, rel=1e-3)
    assert found.metadata["meter"] == "NVML"
    assert len(waits) > 8  # each reading waits for the GPU


def test_a_counter_that_went_back_is_refused() -> None:
    nvml = FakeNvml()

    def model(x: Any) -> None:
        nvml.seconds += 0.01
        nvml.more -= 5.0

    def sleep(seconds: float) -> None:
        nvml.seconds += seconds

    with pytest.raises(RuntimeError, match="a counter went back"):
        measure_energy(model, [[0.0]], NvmlMeter(nvml=nvml), 3, 2, 1.0, clock=lambda: nvml.seconds, sleep=sleep)


def test_a_gpu_without_a_counter_is_named() -> None:
    with pytest.raises(OSError, match=r"GPU 0 \(Fake 100\) does not count its energy: Not Supported"):
        NvmlMeter(nvml=FakeNvml(("nvmlDeviceGetTotalEnergyConsumption",)))


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ImportError, match="pip install nvidia-ml-py"):
        load_nvml()
    assert seen_gpus(tmp_path) == ([], ["GPUs not read: GPUs are read through NVML; type `pip install nvidia-ml-py`"])
    assert seen_gpus(tmp_path / "no driver") == ([], [])
    broken = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", broken)
    monkeypatch.setattr(broken, "nvmlInit", lambda: broken.nvmlDeviceGetHandleByIndex(1))
    with pytest.raises(OSError, match="NVML cannot reach an NVIDIA driver: Invalid Argument"):
        load_nvml()


def test_machine_lists_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    assert "GPU 0: Fake 100, driver 580.1; 3 GiB of 80 GiB" in CliRunner().invoke(machine).output
    [gpu] = json.loads(CliRunner().invoke(machine, ["--json"]).output)["gpus"]
    assert gpu["watts"] == 123.0


class FakeEvent:
    """An event that reads a clock of ms at once."""

    now = 0.0

    def record(self) -> None:
        self.at = FakeEvent.now

    def synchronize(self) -> None: ...

    def elapsed_time(self, later: FakeEvent) -> float:
        return later.at - self.at


def test_events_give_seconds() -> None:
    def model(x: Any) -> Any:
        FakeEvent.now += 2.5
        return x

    found = gpu_latency(model, [[0.0]], 3, 20, event=FakeEvent)
    assert found.values == [pytest.approx(0.0025)] * 20
    assert (found.metric_name, found.unit, found.metadata["clock"]) == ("gpu_latency", "s", "events of the GPU")


def test_events_that_saw_nothing_are_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="the GPU did nothing"):
        gpu_latency(lambda x: x, [[0.0]], 0, 3, event=FakeEvent)
