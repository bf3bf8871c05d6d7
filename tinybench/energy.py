# Written by "autograder export" from modules/06_energy/06_energy.ipynb: edit the notebook, not this file.

"""Energy of one inference: measured by the processor's counters if there are any, else an estimate marked as such."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.latency import as_callable, warm_up
from tinybench.result import BenchmarkResult
from tinybench.support.conditions.cores import usable_cores
from tinybench.support.rounds.checked_calls import fed_by_name, plain_call
from tinybench.support.rounds.input_notes import as_input, check_runs, describe_input
from tinybench.timer import calibrate_loops

_POWERCAP = "/sys/class/powercap"
MOST_WATTS = 1000.0  # more than any processor package draws; the largest of 2026 are built for 500 W
REST = 0.05  # s; ONNX Runtime's threads spin for some 20 ms after a call


def package_domains(root: str | Path = _POWERCAP, dram: bool = False) -> list[Path]:
    """Return the folders of the processor packages' energy counters below `root`, each package once, ordered by number.

    With `dram`, each package is followed by its ``dram`` domains. Their energy is not included in that of the package.
    Raises FileNotFoundError if there is no package. The message names `root` and the likely reasons: not Linux, a
    virtual machine, a processor without RAPL, a kernel module not loaded. Linux kernel documentation, "Power Capping
    Framework".
    """
    zones = [zone for zone in Path(root).glob("intel-rapl:*") if re.fullmatch(r"intel-rapl:\d+", zone.name)]
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
    """Return the whole number in a sysfs file, such as a count of microjoules, with ``path.read_text()``.

    Raises PermissionError if only root may read the file. The message names the file, the reason and the remedy. Raises
    OSError if the file contains anything but digits; the message names the file.
    """
    try:
        text = path.read_text().strip()
    except PermissionError:
        raise PermissionError(
            f"{path} is for root only, because energy readings can leak keys (CVE-2020-8694): on a machine of "
            f"your own `sudo chmod a+r {path}` opens it until the next boot; else use CpuTimeMeter"
        ) from None
    if not text.isdecimal():
        raise OSError(f"{path} holds {text!r}, which is no count; use CpuTimeMeter")
    return int(text)


def counter_difference(before: int, after: int, largest: int) -> int:
    """Return by how much a counter has increased. At most once, it may have reached `largest` and restarted from 0.

    It does not matter whether `largest` is the counter's last value or one more, because a difference of one is far
    below the counter's resolution.
    """
    return after - before if after >= before else after - before + largest


class RaplMeter:
    """A meter for the energy of all processor packages, from the kernel's RAPL counters below `root`.

    With `dram`, the energy of the main memory is added, which some processors count separately.

    ``unit`` is ``"J"`` and ``measured`` is True. ``details`` names the domains whose energy is added up. No reading may
    last longer than ``longest_reading`` seconds, or show more than ``most_watts``; see `check_reading`. Raises
    FileNotFoundError if there is no package, PermissionError if only root may read the counters, and OSError if the
    range of a counter is unknown.
    """

    unit = "J"
    measured = True

    def __init__(self, root: str | Path = _POWERCAP, dram: bool = False) -> None:
        self.domains = package_domains(root, dram)
        self.details: dict[str, Any] = {
            "meter": "RAPL",
            "domains": [(zone / "name").read_text().strip() for zone in self.domains],
        }
        self._largest = [self._range(zone / "max_energy_range_uj") for zone in self.domains]
        self._root, self._zones = root, self._found(root)
        self.most_watts = MOST_WATTS * len(self.domains)
        # a counter that goes back a little looks like a wrap, and within this time exceeds `most_watts`
        self.longest_reading = min(self._largest) / 1e6 / self.most_watts
        self._last = self.counters()
        self._microjoules = 0

    @staticmethod
    def _range(path: Path) -> int:
        largest = read_counter(path)
        if not largest:
            raise OSError(f"{path} holds 0: without its range, a counter that starts again cannot be followed")
        return largest

    @staticmethod
    def _found(root: str | Path) -> list[str]:
        return sorted(name for name in os.listdir(root) if "-rapl:" in name)

    def counters(self) -> list[int]:
        """Return the count of each domain, in µJ. Raise RuntimeError if domains have appeared or disappeared."""
        found = self._found(self._root)
        if found != self._zones:
            changed = ", ".join(sorted({*found} ^ {*self._zones}))
            raise RuntimeError(f"{changed} came or went below {self._root} while energy was read; make a new meter")
        return [read_counter(zone / "energy_uj") for zone in self.domains]

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


class CpuTimeMeter:
    """A meter for the processor time of this process, as a substitute for energy. It never measures energy itself.

    `watts_per_core` is the power of a busy core. If it is None, the meter reads seconds instead of joules. ``unit`` is
    ``"J"`` if the watts are given, else ``"s"``; ``measured`` is False. `clock` returns the processor time of all
    threads in s. ``details`` holds the watts, their `source`, the name of the clock, and the `reason` why energy is not
    measured. Raises ValueError if `watts_per_core` is not positive.
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
            # the finest clock of the system: psutil's cpu_times have ticks of 10 ms on Linux
            "clock": time.get_clock_info("process_time").implementation if clock is time.process_time else "given",
            **({"not_measured_because": reason} if reason else {}),
        }

    def read(self) -> float:
        """Return the processor time in s since the meter was made, or joules if `watts_per_core` is given."""
        seconds = self._clock() - self._start
        return seconds if self.watts_per_core is None else seconds * self.watts_per_core


def best_meter(
    root: str | Path = _POWERCAP, watts_per_core: float | None = None, source: str = "given by the caller"
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


def suspended() -> float:
    """Return for how many seconds this machine has been suspended since its start, or 0 on systems other than Linux."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    awake = time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - awake


def check_reading(meter: Any, energy: float, seconds: float) -> None:
    """Raise RuntimeError if a meter that measures energy cannot have counted `energy` joules in `seconds`."""
    if not meter.measured:
        return
    longest, most = (getattr(meter, name, math.inf) for name in ("longest_reading", "most_watts"))
    if seconds > longest:
        raise RuntimeError(
            f"a reading of {seconds:.3g} s: above {longest:.3g} s a counter of this machine may start again more than "
            f"once (at {most:.0f} W), which nobody sees; give fewer inferences, or a smaller min_reading"
        )
    if not 0 <= energy <= most * (seconds + 0.01):  # plus energy that was counted just before
        raise RuntimeError(
            f"a reading of {energy:.3g} J in {seconds:.3g} s cannot be (at most {most:.0f} W): a counter went back, "
            "or started again more than once; use CpuTimeMeter"
        )


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


def _checked(
    model: Any, inputs: Any, warmup_runs: int, measurement_runs: int, min_reading: float
) -> tuple[Callable[[Any], Any], Any]:
    """Return the model as a function and its input, or raise ValueError or TypeError."""
    check_runs("warmup_runs", warmup_runs, 0)
    check_runs("measurement_runs", measurement_runs, 1)
    if not min_reading > 0:
        raise ValueError(f"min_reading is {min_reading}; a reading lasts longer than 0 s, such as 0.1")
    x = as_input(inputs)
    by_name = isinstance(x, dict) and callable(getattr(model, "get_inputs", None))
    return plain_call(fed_by_name(model) if by_name else as_callable(model), x, None, None)


def energy_result(
    meter: Any, values: list[float], idle: list[float], loops: int, notes: dict[str, Any], slept: float, busy: float
) -> BenchmarkResult:
    """Return a result from values in joules or seconds.

    The metadata describes the meter, and notes whether energy was ``seen`` (detected).
    """
    metadata = {
        "measured": meter.measured,
        **meter.details,
        **notes,
        "inferences_per_reading": loops,
        "idle_watts": float(np.mean(idle)) if meter.measured else None,
    }
    result = BenchmarkResult("energy" if meter.unit == "J" else "cpu_time", values, metadata, unit=meter.unit)
    said = f"the machine was suspended for {slept:.0f} s; " if slept > 0.1 else ""
    if meter.measured and not all(idle):
        said += "the counter stood still while the model did not run, so no idle power was taken off; "
    note_energy_seen(result, said, busy)
    return result


def note_energy_seen(result: BenchmarkResult, notes: str = "", busy: float = 1.0) -> None:
    """Note in the metadata of a result whether the energy of an inference was ``seen``, that is, detected.

    Measured energy was not seen if its interval reaches 0. Estimated energy was not seen if the processor was hardly
    busy; `busy` is the fraction of the time in which it worked. A single reading has no interval, so it cannot detect
    anything.

    ``caution`` gives the reason, after the given `notes`. ``at_most`` is the upper end of the interval, in the result's
    unit, or None if that end has no meaning.
    """
    seen = result.ci_lower > 0 if result.measured else result.min_val > 0 and busy >= 0.05
    if result.measured and result.count == 1:
        seen, result.metadata["at_most"] = False, None
        notes += "one reading cannot separate the model's energy from the scatter of the idle power, take at least 2; "
    elif not seen and result.measured:
        notes += "the interval reaches 0 J: an inference adds no more than the idle power scatters; "
        result.metadata["at_most"] = result.ci_upper if result.ci_upper > 0 else None
    elif not seen:
        notes += f"the processor worked for {busy:.1%} of the time: the model waits, or works where no one counts; "
        result.metadata["at_most"] = None
    result.metadata |= {"seen": seen, **({"caution": notes.removesuffix("; ")} if notes else {})}


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
    call, x = _checked(model, inputs, warmup_runs, measurement_runs, min_reading)
    meter = best_meter() if meter is None else meter
    asleep, start, used = suspended(), clock(), meter.read()
    if warmup_runs:
        warm_up(call, x, min_calls=warmup_runs, clock=clock)
    loops = calibrate_loops(lambda: call(x), min_reading, clock=clock)
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
    notes = {"cores": cores, "share_of_machine": float(np.mean(values)) / cores, "inferences_per_reading": loops}
    return BenchmarkResult("cpu_utilisation", values, {**notes, **describe_input(x)})
