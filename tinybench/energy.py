# Written by "autograder export" from modules/06_energy/06_energy.ipynb: edit the notebook, not this file.

"""Energy of one inference: from the processor's counters where there are any, else an estimate that says so."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.cores import usable_cores
from tinybench.latency import as_callable, as_input, check_runs, describe_input, warm_up
from tinybench.result import BenchmarkResult
from tinybench.timer import calibrate_loops

_POWERCAP = "/sys/class/powercap"


def package_domains(root: str | Path = _POWERCAP, dram: bool = False) -> list[Path]:
    """Return the folders of the processor packages' energy counters below `root`, each package once, ordered by number.

    With `dram` each is followed by its ``dram`` domains, which lie beside the package and not inside it. Raises
    FileNotFoundError with likely reasons if there is none. Linux kernel documentation, "Power Capping Framework".
    """
    zones = [zone for zone in Path(root).glob("*-rapl:*") if re.fullmatch(r"[a-z]+-rapl:\d+", zone.name)]
    found = []
    for zone in sorted(zones, key=lambda zone: int(zone.name.partition(":")[2])):
        if (zone / "name").read_text().startswith("package"):
            found.append(zone)
            parts = sorted(Path(root).glob(f"{zone.name}:*")) if dram else []
            found += [part for part in parts if (part / "name").read_text().strip() == "dram"]
    if not found:
        raise FileNotFoundError(
            f"no RAPL package below {root}: not Linux, a virtual machine or container, a processor without RAPL, "
            "or the kernel module intel_rapl_msr is not loaded"
        )
    return found


def read_counter(path: Path) -> int:
    """Return the whole number that a sysfs file holds, such as microjoules, by ``path.read_text()``.

    Raises PermissionError if only root may read it; the message names the file, the reason and the cure.
    """
    try:
        return int(path.read_text())
    except PermissionError:
        raise PermissionError(
            f"{path} is for root only, because energy readings can leak keys (CVE-2020-8694): on a machine of "
            f"your own `sudo chmod a+r {path}` opens it until the next boot; else use CpuTimeMeter"
        ) from None


def counter_difference(before: int, after: int, largest: int) -> int:
    """Return how far a counter went that may have started again at 0 once, after its last value `largest`."""
    return after - before if after >= before else after - before + largest


class RaplMeter:
    """Energy of all processor packages, from the kernel's RAPL counters below `root`; with `dram` the memory some count
    apart.

    ``unit`` is ``"J"``, ``measured`` True, ``details`` names the domains added up. Raises FileNotFoundError if there is
    no package, PermissionError if only root may read the counters.
    """

    unit = "J"
    measured = True

    def __init__(self, root: str | Path = _POWERCAP, dram: bool = False) -> None:
        self.domains = package_domains(root, dram)
        self.details: dict[str, Any] = {
            "meter": "RAPL",
            "domains": [(zone / "name").read_text().strip() for zone in self.domains],
        }
        self._largest = [read_counter(zone / "max_energy_range_uj") for zone in self.domains]
        self._last = [read_counter(zone / "energy_uj") for zone in self.domains]
        self._microjoules = 0

    def read(self) -> float:
        """Return the joules since the meter was made; to see every wrap, read at least once per round of a counter."""
        now = [read_counter(zone / "energy_uj") for zone in self.domains]
        for before, after, largest in zip(self._last, now, self._largest, strict=True):
            self._microjoules += counter_difference(before, after, largest)
        self._last = now
        return self._microjoules / 1e6


class CpuTimeMeter:
    """Processor time of this process, as a stand-in for energy; never a measurement of energy.

    `watts_per_core` is what a busy core draws; without it the meter reads seconds. ``unit`` is ``"J"`` with watts,
    ``"s"`` without, ``measured`` False; ``details`` has the watts, their `source`, the clock (processor time of all
    threads in s) and the `reason` why energy is not measured. Raises ValueError if `watts_per_core` is not positive.
    """

    measured = False

    def __init__(
        self,
        watts_per_core: float | None = None,
        source: str = "given by the caller",
        reason: str = "",
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        if watts_per_core is not None and not (math.isfinite(watts_per_core) and watts_per_core > 0):
            raise ValueError(f"watts_per_core is {watts_per_core}; give a positive number, or None for CPU-seconds")
        self.watts_per_core, self._clock, self._start = watts_per_core, clock, clock()
        self.unit = "s" if watts_per_core is None else "J"
        self.details: dict[str, Any] = {
            "meter": "CPU time" if watts_per_core is None else "CPU time × watts per core",
            "watts_per_core": watts_per_core,
            "watts_source": "unknown" if watts_per_core is None else source,
            # the system's finest: psutil's cpu_times go by ticks, on Linux of 10 ms
            "clock": time.get_clock_info("process_time").implementation if clock is time.process_time else "given",
            **({"not_measured_because": reason} if reason else {}),
        }

    def read(self) -> float:
        """Return the joules (with watts) or processor seconds (without) since the meter was made."""
        seconds = self._clock() - self._start
        return seconds if self.watts_per_core is None else seconds * self.watts_per_core


def best_meter(
    root: str | Path = _POWERCAP, watts_per_core: float | None = None, source: str = "given by the caller"
) -> RaplMeter | CpuTimeMeter:
    """Return a meter that measures if this machine has one, else one that estimates.

    Parameters
    ----------
    root
        Where the kernel shows its power capping zones.
    watts_per_core, source
        For the estimate; see `CpuTimeMeter`.

    Returns
    -------
    RaplMeter or CpuTimeMeter
        The latter tells in ``details["not_measured_because"]`` why the counters cannot be read.
    """
    try:
        return RaplMeter(root)
    except OSError as error:
        return CpuTimeMeter(watts_per_core, source, reason=str(error))


def idle_power(meter: Any, seconds: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> float:
    """Return the power in W that a meter of joules shows while this process sleeps for so many seconds.

    What passed by `clock` counts, for a sleep may last longer than asked.
    """
    energy, start = meter.read(), clock()
    sleep(seconds)
    return float((meter.read() - energy) / (clock() - start))


def energy_reading(
    call: Callable[[Any], Any], inputs: Any, loops: int, meter: Any, clock: Callable[[], float]
) -> tuple[float, float]:
    """Return energy, in the meter's unit, and duration in s of `loops` inferences together."""
    energy, start = meter.read(), clock()
    for _ in range(loops):
        call(inputs)
    return meter.read() - energy, clock() - start


def _checked(
    model: Any, inputs: Any, warmup_runs: int, measurement_runs: int, min_reading: float
) -> tuple[Callable[[Any], Any], Any]:
    """Return the model as a function and its input, or raise ValueError or TypeError."""
    check_runs("warmup_runs", warmup_runs, 0)
    check_runs("measurement_runs", measurement_runs, 1)
    if not min_reading > 0:
        raise ValueError(f"min_reading is {min_reading}; a reading lasts longer than 0 s, such as 0.1")
    return as_callable(model), as_input(inputs)


def measure_energy(
    model: Any,
    inputs: Any,
    meter: Any = None,
    warmup_runs: int = 5,
    measurement_runs: int = 10,
    min_reading: float = 0.1,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> BenchmarkResult:
    """Return the energy one inference adds, one value per reading of many inferences.

    Parameters
    ----------
    model
        Anything `as_callable` accepts.
    inputs
        One batch; an inference is one call with it.
    meter
        Anything with ``read()``, ``unit``, ``measured`` and ``details``; `best_meter` when None.
    warmup_runs
        At least so many calls before the calibration; see `warm_up`.
    measurement_runs
        Number of readings.
    min_reading
        Shortest reading, in s; a counter that updates every millisecond is then 1 % off at 0.1 s.
    clock, sleep
        Time in s, and how to wait.

    Returns
    -------
    BenchmarkResult
        ``energy`` in J per inference, the idle power subtracted if the meter measures; or ``cpu_time`` in s if the
        meter knows no watts. ``metadata["measured"]`` is False unless a counter measured energy.

    Raises
    ------
    ValueError
        If `measurement_runs` is below 1 or `min_reading` not positive.
    RuntimeError
        If a measuring meter never moved, as on virtual machines whose counters are dummies.
    """
    call, x = _checked(model, inputs, warmup_runs, measurement_runs, min_reading)
    meter = best_meter() if meter is None else meter
    if warmup_runs:
        warm_up(call, x, min_calls=warmup_runs, clock=clock)
    loops = calibrate_loops(lambda: call(x), min_reading, clock=clock)
    values, idle, busy = [], [], []
    for _ in range(measurement_runs):
        idle.append(idle_power(meter, min_reading, clock, sleep) if meter.measured else 0.0)
        energy, seconds = energy_reading(call, x, loops, meter, clock)
        busy.append(energy)
        values.append((energy - idle[-1] * seconds) / loops)
    if meter.measured and not any(busy):
        raise RuntimeError("the energy counter did not move in any reading: it is a dummy; use CpuTimeMeter")
    metadata = {
        "measured": meter.measured,
        **meter.details,
        **describe_input(x),
        "warmup_runs": warmup_runs,
        "inferences_per_reading": loops,
        "min_reading": min_reading,
        "idle_watts": float(np.mean(idle)) if meter.measured else None,
    }
    return BenchmarkResult("energy" if meter.unit == "J" else "cpu_time", values, metadata, unit=meter.unit)


def cpu_utilisation(
    model: Any,
    inputs: Any,
    warmup_runs: int = 5,
    measurement_runs: int = 10,
    min_reading: float = 0.1,
    clock: Callable[[], float] = time.perf_counter,
    cpu_clock: Callable[[], float] = time.process_time,
) -> BenchmarkResult:
    """Return how many cores a model keeps busy while it runs, one value per reading; 1.0 is one core.

    Parameters as in `measure_energy`; `clock` reads wall time, `cpu_clock` the processor time of all threads, in s.
    ``metadata["share_of_machine"]`` is the mean over the cores this process may use. Raises ValueError if
    `measurement_runs` is below 1 or `min_reading` not positive.
    """
    call, x = _checked(model, inputs, warmup_runs, measurement_runs, min_reading)
    meter = CpuTimeMeter(clock=cpu_clock)
    if warmup_runs:
        warm_up(call, x, min_calls=warmup_runs, clock=clock)
    loops = calibrate_loops(lambda: call(x), min_reading, clock=clock)
    values = []
    for _ in range(measurement_runs):
        busy, seconds = energy_reading(call, x, loops, meter, clock)
        values.append(busy / seconds)
    cores = usable_cores()
    metadata = {
        "cores": cores,
        "share_of_machine": float(np.mean(values)) / cores,
        "inferences_per_reading": loops,
        **describe_input(x),
    }
    return BenchmarkResult("cpu_utilisation", values, metadata)
