# Written by "autograder export" from modules/06_energy/06_energy.ipynb: edit the notebook, not this file.

"""Energy of one inference: measured by the processor's counters if there are any, else an estimate marked as such."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.latency import describe_input
from tinybench.result import BenchmarkResult
from tinybench.support.conditions.cores import usable_cores
from tinybench.support.footprint.energy_counters import POWERCAP, RaplCounters
from tinybench.support.footprint.energy_results import (
    REST,
    ProcessorTime,
    calls_per_reading,
    check_reading,
    checked_call,
    energy_result,
    suspended,
)


def counter_difference(before: int, after: int, largest: int) -> int:
    """Return by how much a counter has increased. At most once, it may have reached `largest` and restarted from 0.

    It does not matter whether `largest` is the counter's last value or one more, because a difference of one is far
    below the counter's resolution.
    """
    return after - before if after >= before else after - before + largest


class RaplMeter(RaplCounters):
    """A meter for the energy of all processor packages, from the kernel's RAPL counters; see `RaplCounters`."""

    def read(self) -> float:
        """Return the joules since the meter was made.

        Call this method at least once in the time that a counter takes to run through its range. Otherwise energy is
        missed.
        """
        now = self.counters()
        for before, after, largest in zip(self._last, now, self._largest, strict=True):
            self._microjoules += counter_difference(before, after, largest)
        self._last = now
        return self._microjoules / 1e6


class CpuTimeMeter(ProcessorTime):
    """A meter for the processor time of this process, as a substitute for energy. It never measures energy itself."""

    def read(self) -> float:
        """Return the processor time in s since the meter was made, or joules if `watts_per_core` is given."""
        seconds = self._clock() - self._start
        return seconds if self.watts_per_core is None else seconds * self.watts_per_core


def best_meter(
    root: str | Path = POWERCAP, watts_per_core: float | None = None, source: str = "given by the caller"
) -> RaplMeter | CpuTimeMeter:
    """Return a meter that measures energy if this machine has one, else a meter that estimates it.

    Parameters
    ----------
    root
        Folder in which the kernel shows its power capping zones.
    watts_per_core, source
        Used for the estimate; see `CpuTimeMeter`.

    Returns
    -------
    RaplMeter or CpuTimeMeter
        For a `CpuTimeMeter`, ``details["not_measured_because"]`` is the reason why the energy counters cannot be read.
    """
    try:
        return RaplMeter(root)
    except OSError as error:
        return CpuTimeMeter(watts_per_core, source, reason=str(error))


def idle_power(meter: Any, seconds: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> float:
    """Return the mean power, in W, that an energy meter (in joules) measures during ``sleep(seconds)``.

    The duration is taken from `clock`, because a sleep may last longer than requested.
    """
    asleep, asked = suspended(), seconds
    sleep(REST)  # until threads that spin after a call are idle
    energy, start = meter.read(), clock()
    sleep(seconds)
    watts = float((meter.read() - energy) / (clock() - start))
    if suspended() > asleep + 0.1:  # the machine was suspended: read again
        return idle_power(meter, asked, clock, sleep)
    check_reading(meter, watts * asked, asked)
    return watts


def energy_reading(
    call: Callable[[Any], Any], inputs: Any, loops: int, meter: Any, clock: Callable[[], float]
) -> tuple[float, float]:
    """Make `loops` inferences ``call(inputs)``. Return their total energy, in the meter's unit, and duration in s."""
    asleep = suspended()
    energy, start = meter.read(), clock()
    for _ in range(loops):
        call(inputs)
    energy, seconds = meter.read() - energy, clock() - start
    if suspended() > asleep + 0.1:
        return energy_reading(call, inputs, loops, meter, clock)
    check_reading(meter, energy, seconds)
    return energy, seconds


def measure_energy(
    model: Any, inputs: Any, meter: Any = None, warmup_runs: int = 5, measurement_runs: int = 10,
    min_reading: float = 0.1, clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> BenchmarkResult:  # fmt: skip
    """Measure the energy that one inference adds. Each value comes from one reading, over many inferences.

    Parameters
    ----------
    model, inputs
        Any model that `as_callable` accepts, and one batch of inputs.
    meter
        Any object with ``read()``, ``unit``, ``measured`` and ``details``. With None, `best_meter` chooses one.
    warmup_runs, measurement_runs, min_reading
        Minimum number of warm-up calls before the calibration; number of readings; shortest duration of a reading in s.
    clock, sleep
        A function that returns the time in s, and a function that waits for a given number of seconds.

    Returns
    -------
    BenchmarkResult
        Joules per inference, without idle power if the meter measures; or ``cpu_time`` in s if the meter has no watts.
        The metadata says whether the energy is ``measured``, and whether it was ``seen`` (detected).

    Raises
    ------
    RuntimeError
        If the counter of a measuring meter did not move during a reading, or has an impossible value; see
        `check_reading`.
    """
    call, x = checked_call(model, inputs, warmup_runs, measurement_runs, min_reading)
    meter = best_meter() if meter is None else meter
    asleep, start, used = suspended(), clock(), meter.read()
    loops = calls_per_reading(call, x, warmup_runs, min_reading, clock)
    values, idle = [], []
    for _ in range(measurement_runs):
        idle.append(idle_power(meter, min_reading, clock, sleep) if meter.measured else 0.0)
        energy, seconds = energy_reading(call, x, loops, meter, clock)
        if meter.measured and not energy:
            raise RuntimeError("the energy counter did not move in a reading: it is a dummy; use CpuTimeMeter")
        values.append((energy - idle[-1] * seconds) / loops)
    watts = getattr(meter, "watts_per_core", None) or 1.0
    busy = 1.0 if meter.measured else (meter.read() - used) / watts / (clock() - start)
    notes = {**describe_input(x), "warmup_runs": warmup_runs, "min_reading": min_reading}
    return energy_result(meter, values, idle, loops, notes, suspended() - asleep, busy)


def cpu_utilisation(
    model: Any, inputs: Any, warmup_runs: int = 5, measurement_runs: int = 10, min_reading: float = 0.1,
    clock: Callable[[], float] = time.perf_counter, cpu_clock: Callable[[], float] = time.process_time,
) -> BenchmarkResult:  # fmt: skip
    """Measure how many cores a model keeps busy while it runs, with one value for each reading. 1.0 means one core.

    The parameters are those of `measure_energy`. `clock` reads wall time, `cpu_clock` the processor time of all
    threads, in s. ``metadata["share_of_machine"]`` is the mean divided by the number of cores that this process may
    use. Raises ValueError if `measurement_runs` is below 1 or `min_reading` is not positive.
    """
    call, x = checked_call(model, inputs, warmup_runs, measurement_runs, min_reading)
    loops = calls_per_reading(call, x, warmup_runs, min_reading, clock)
    meter = CpuTimeMeter(clock=cpu_clock)
    values = []
    for _ in range(measurement_runs):
        busy, seconds = energy_reading(call, x, loops, meter, clock)
        values.append(busy / seconds)
    cores = usable_cores()
    notes = {"cores": cores, "share_of_machine": float(np.mean(values)) / cores, "inferences_per_reading": loops}
    return BenchmarkResult("cpu_utilisation", values, {**notes, **describe_input(x)})
