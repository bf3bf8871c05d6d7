"""The parts of an energy measurement around its readings: processor time, calibration, plausibility, metadata."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tinybench.latency import check_runs, warm_up
from tinybench.result import BenchmarkResult
from tinybench.support.footprint.memory_results import call_of
from tinybench.timer import calibrate_loops

REST = 0.05  # s; ONNX Runtime's threads spin for some 20 ms after a call


class ProcessorTime:
    """The processor time of this process since a start, and the watts of a busy core if somebody knows them.

    `watts_per_core` is the power of a busy core. If it is None, ``unit`` is ``"s"``, else ``"J"``. ``measured`` is
    False, because nothing here measures energy. `clock` returns the processor time of all threads in s. ``details``
    holds the watts, their `source`, the name of the clock, and the `reason` why energy is not measured. Raises
    ValueError if `watts_per_core` is not positive.
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


def checked_call(
    model: Any, inputs: Any, warmup_runs: int, measurement_runs: int, min_reading: float
) -> tuple[Callable[[Any], Any], Any]:
    """Return a model as a function and its input, or raise ValueError or TypeError."""
    check_runs("warmup_runs", warmup_runs, 0)
    check_runs("measurement_runs", measurement_runs, 1)
    if not min_reading > 0:
        raise ValueError(f"min_reading is {min_reading}; a reading lasts longer than 0 s, such as 0.1")
    return call_of(model, inputs)


def calls_per_reading(
    call: Callable[[Any], Any], x: Any, warmup_runs: int, min_reading: float, clock: Callable[[], float]
) -> int:
    """Return how many calls fill `min_reading` seconds, after a warm-up of at least `warmup_runs` calls."""
    if warmup_runs:
        warm_up(call, x, min_calls=warmup_runs, clock=clock)
    return calibrate_loops(lambda: call(x), min_reading, clock=clock)


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
