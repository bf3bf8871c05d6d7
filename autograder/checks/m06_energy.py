"""Hidden checks for module 06, with fake energy counters and a machine of known energy, time and idle power."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from autograder.checks import judges
from autograder.checks.check_helpers import *

RANGE = 262_143_328_850
FILES = ("name", "energy_uj", "max_energy_range_uj")
COUNT = count()
UNIT = 1e-4  # tolerance in J: a counter's step is up to 61 µJ, so the energy at a wrap is not known more exactly


@contextmanager
def powercap(student: Any, zones: Mapping[str, Sequence[str | int]]) -> Iterator[Any]:
    """Create a folder like /sys/class/powercap where the student's code runs, and remove it at the end.

    For each zone, the given values are written to the first of the `FILES`, in order.
    """
    place, system, path = f"/tmp/powercap-{os.getpid()}-{next(COUNT)}", student.os, student.Path
    mkdir, unlink, rmdir, write = system.mkdir, system.unlink, system.rmdir, path.write_text  # look each up once
    # the folder of the control type lies next to those of its zones
    folders = [place, *(f"{place}/{zone}" for zone in ("intel-rapl", *zones))]
    files = {
        f"{place}/{zone}/{file}": value
        for zone, content in zones.items() for file, value in zip(FILES, content, strict=False)
    }  # fmt: skip
    for folder in folders:
        mkdir(folder)
    for file, value in files.items():
        write(path(file), f"{value}\n")
    try:
        yield path(place)
    finally:
        for file in files:
            unlink(file)
        for folder in reversed(folders):
            rmdir(folder)


def package(start: int = 10, zone: str = "intel-rapl:0", name: str = "package-0") -> dict[str, tuple[str, int, int]]:
    """Return the zones of a machine with one processor package, whose energy counter starts at `start`."""
    return {zone: (name, start, RANGE)}


def advance(root: Any, zone: str, value: int) -> None:
    """Set the energy counter of a zone to `value`."""
    root.joinpath(zone, "energy_uj").write_text(f"{value}\n")


class Processor(FakeClock):
    """A clock of processor time, for a process that has kept `busy` cores working since `clock` was at 0."""

    def __init__(self, clock: FakeClock, busy: float) -> None:
        self.clock, self.busy = clock, busy

    def __call__(self) -> float:
        return 50 + self.busy * self.clock.now

    @property
    def standing(self) -> float | None:
        return self()


class Machine:
    """A simulated machine with known idle power, on which a call takes a known time and adds a known energy.

    The machine is also its own energy meter. Each call costs a message to the sandbox. Calls are therefore slow, so
    that a few of them fill an energy reading.
    """

    unit = "J"
    measured = True
    shows = ("details",)

    def __init__(
        self, idle: float = 10.0, seconds: float = 0.03, joules: float = 0.2, update: float = 0.0, drift: float = 0.0
    ) -> None:
        self.idle, self.seconds, self.joules, self.update, self.drift = idle, seconds, joules, update, drift
        self.details = {"meter": "fake", "covers": "everything"}
        self.clock, self.energy, self.shown, self.calls, self.slept, self.longest = FakeClock(), 3.0, 3.0, 0, 0.0, 0.0

    def _pass(self, seconds: float, extra: float) -> None:
        start, energy = self.clock.now, self.energy
        now = self.clock.now = start + seconds
        self.energy += self.idle * seconds + self.drift * (now**2 - start**2) / 2 + extra
        last = math.floor(now / self.update) * self.update if self.update else now
        if last >= start and now > start:
            self.shown = energy + (self.energy - energy) * (last - start) / (now - start)

    def read(self) -> float:
        return self.shown

    def sleep(self, seconds: float) -> None:
        seconds = number(seconds, "the seconds to sleep", finite=True)
        expect(seconds >= 0, "nobody can sleep for less than no time")
        self.slept, self.longest = self.slept + seconds, max(self.longest, seconds)
        self._pass(seconds * 1.1, 0.0)

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        self._pass(self.seconds, self.joules)
        return x


@judges("counter_difference")
def wraps_are_undone(student: Any) -> None:
    """Check that `counter_difference` is right with and without a counter wrap, within 100 µJ.

    One step of the counter is up to 61 µJ.
    """
    rng, counter_difference = draw(), student.counter_difference
    for before, step in [(5, 0), *rng.integers(0, RANGE, (25, 2)).tolist()]:
        cases, cause = [(before, (before + step) % RANGE, RANGE)], "a wrap adds max_energy_range_uj"
        agrees(counter_difference, step, cases, cause, rel=0, abs=100 if step else 0)


@judges("RaplMeter.read")
def rapl_reads_joules(student: Any) -> None:
    """Check that `RaplMeter.read` adds up the joules of two packages over several counter wraps.

    A psys zone and the parts of a package must not be counted.
    """
    rng = draw()
    largest = {"intel-rapl:0": RANGE, "intel-rapl:1": 65_532_610_987}
    counters = {zone: int(rng.integers(0, size)) for zone, size in largest.items()}
    zones = {zone: (f"package-{zone[-1]}", counters[zone], size) for zone, size in largest.items()}
    zones |= {"intel-rapl:0:0": ("core", 7, RANGE), "intel-rapl:2": ("psys", 9, RANGE)}
    with powercap(student, zones) as root:
        meter, truth = student.RaplMeter(root), 0.0
        start = number(meter.read(), "meter.read()")
        for step in range(8):
            for zone, size in largest.items():
                more = int(rng.integers(0, size // 2))
                truth += more / 1e6
                counters[zone] = (counters[zone] + more) % size
                advance(root, zone, counters[zone])
            if step % 3 == 0:
                advance(root, "intel-rapl:0:0", 1000 * step)
                advance(root, "intel-rapl:2", 900_000 * step)
            cause = "undo each package's wraps on its own, remember the last reading, divide by 1e6"
            got, what = number(meter.read(), "meter.read()") - start, f"joules after {step + 1} steps of two packages"
            same(got, truth, what, cause, rel=0, abs=3 * UNIT * (step + 1))


@judges("CpuTimeMeter.read")
def cpu_time_is_an_estimate(student: Any) -> None:
    """Check that `CpuTimeMeter.read` returns processor seconds on the given clock, times the given watts.

    Without watts, it must return the seconds.
    """
    rng = draw()
    for watts in (None, 1.0, float(rng.uniform(2, 20))):
        start, times = float(rng.uniform(1, 200)), sorted(rng.uniform(1, 30, 2).tolist())
        now = [start]
        meter = student.CpuTimeMeter(watts, clock=lambda now=now: now[0])
        same(meter.read(), 0.0, "a meter just made", abs=1e-12)
        for seconds in (0.25, *times):
            now[0] = start + seconds
            cause = "processor seconds since the start, times watts_per_core if there are any"
            same(meter.read(), seconds * (watts or 1.0), f"{seconds} s at {watts} W", cause)


@judges("best_meter")
def best_meter_explains_itself(student: Any) -> None:
    """Check that `best_meter` uses RAPL where its counters can be read, and processor time elsewhere.

    With processor time, the details must hold the reason, the watts per core and the source of this number.
    """
    rng = draw()
    joules, watts, source = int(rng.integers(1, 50)), float(rng.uniform(1, 9)), words(rng, 1)[0]
    with powercap(student, package()) as root:
        meter = student.best_meter(root, watts_per_core=3.0)
        expect(flag(meter.measured, "meter.measured"), "readable counters should be used, also where watts are given")
        advance(root, "intel-rapl:0", joules * 10**6 + 10)
        same(meter.read(), joules, "the joules of best_meter(root)", "pass root on", abs=UNIT)
    with powercap(student, package(name="psys")) as root:
        meter = student.best_meter(root)
        same(meter.measured, False, "meter.measured without a package")
        same(meter.unit, "s", "the unit without watts")
        why = text(entries(meter.details, "details").get("not_measured_because"), "details['not_measured_because']")
        expect(str(root) in why, "the reason should be the error's text")
        details = student.best_meter(root, watts, source).details
        holds(details, {"watts_per_core": watts, "watts_source": source}, "details")
    with powercap(student, package()) as root:
        counter = root.joinpath("intel-rapl:0", "energy_uj")
        counter.unlink()
        counter.mkdir()  # a folder, which not even root can read as a file
        measured = student.best_meter(root).measured
        same(measured, False, "meter.measured where a counter cannot be read", "fall back, do not fail")
        counter.rmdir()
        counter.touch()


@judges("idle_power", "energy_reading")
def readings_are_differences(student: Any) -> None:
    """Check that `idle_power` divides by the time on the clock.

    `energy_reading` must cover exactly the requested calls.
    """
    rng = draw()
    for idle, seconds, joules in rng.uniform(0.5, 20, (4, 3)).tolist():
        machine = Machine(idle, seconds / 1000, joules)
        got = student.idle_power(machine, 0.3, machine.clock, machine.sleep)
        same(got, idle, "idle_power", "difference of two reads over what the clock says, not the seconds asked for")
        same(machine.longest, 0.3, "the seconds slept", "sleep as long as asked, once")
        seen: list[Any] = []
        loops = int(rng.integers(1, 12))

        def call(x: Any, seen: list[Any] = seen, machine: Machine = machine) -> Any:
            seen.append(x)
            return machine(x)

        reading = student.energy_reading(call, "inputs", loops, machine, machine.clock)
        energy, time = numbers(reading, "the energy and duration of a reading", 2)
        same(seen, ["inputs"] * loops, "what the calls of a reading are given")
        same(time, loops * seconds / 1000, "the duration of a reading")
        same(energy, loops * (joules + idle * seconds / 1000), "the energy of a reading", "read before and after")


@judges("measure_energy")
def energy_is_per_inference(student: Any) -> None:
    """Check that `measure_energy` finds a known energy despite idle power, a slow counter and drift.

    An estimate must be marked as not measured.
    """
    rng = draw()
    batch, count = rng.integers((2, 3), (7, 6)).tolist()
    inputs = np.zeros((batch, 5))

    def measured(machine: Machine, runs: int, **more: Any) -> Any:
        times = {"clock": machine.clock, "sleep": machine.sleep}
        return student.measure_energy(machine, inputs, meter=machine, measurement_runs=runs, **times, **more)

    idle, joules, seconds = rng.uniform((5, 0.06, 0.021), (20, 0.3, 0.045)).tolist()
    shortest = float(rng.uniform(0.15, 0.3))
    machine = Machine(idle, seconds, joules)
    result = measured(machine, count, min_reading=shortest)
    cause = "idle power off, divided by inferences of a reading"
    holds(result, {"mean": joules, "count": count}, "result", cause, rel=1e-6)
    metadata = entries(result.metadata, "metadata")
    holds(metadata, {"measured": True, "idle_watts": idle, "batch_size": batch}, "metadata", rel=1e-6)
    inferences = number(metadata.get("inferences_per_reading"), "metadata['inferences_per_reading']")
    expect(inferences * seconds >= shortest - 1e-9, "a reading should last at least min_reading: use calibrate_loops")
    expect(
        machine.calls >= count * inferences, f"{count} readings of {inferences:.0f} calls, not {machine.calls} in all"
    )
    same(machine.longest, shortest, "the longest sleep", "measure the idle power while asleep, for min_reading seconds")

    joules, more = rng.uniform((0.2, 0.02), (0.4, 0.03)).tolist()
    fast, warm = Machine(seconds=0.0055, joules=joules, update=0.0117), Machine(drift=2.0, joules=more)
    cause = "one call is shorter than the counter's update: put many into a reading"
    same(measured(fast, 3).median, joules, "5.5 ms calls on a counter that updates every 11.7 ms", cause, rel=0.05)
    cause = "measure the idle power in every round, right before the reading"
    same(measured(warm, 6).mean, more, "energy while the idle power rises", cause, rel=0.5)

    joules, source = float(rng.uniform(0.06, 0.3)), words(rng, 1)[0]
    guess = Machine(idle=0.0, joules=joules)
    guess.measured, guess.details = False, {"meter": "guess", "watts_source": source}
    estimate = measured(guess, 2)
    cause = "take measured and the details of the meter"
    holds(estimate.metadata, {"measured": False, "watts_source": source}, "metadata of an estimate", cause)
    same(guess.slept, 0.0, "seconds slept with an estimating meter", "it has no idle power to measure")
    same(estimate.mean, joules, "the estimate per inference", rel=1e-6)

    refuses(measured, (Machine(idle=0.0, joules=0.0), 2), error=RuntimeError, what="a counter that never moves")
    stuck = Machine(update=1.6)  # s, while a reading lasts 0.1 s
    refuses(measured, (stuck, 4), error=RuntimeError, what="a counter that does not move in one of the readings")
    runs, more = rng.integers((10, 4), (15, 10)).tolist()  # calls are so slow that warm_up makes them one by one
    cold, warmer = Machine(), Machine()
    measured(cold, 1, warmup_runs=runs)
    measured(warmer, 1, warmup_runs=runs + more)
    same(warmer.calls - cold.calls, more, f"calls that {more} more warm-up runs add", "warm up before the calibration")


@judges("cpu_utilisation")
def utilisation_counts_cores(student: Any) -> None:
    """Check that `cpu_utilisation` is processor time divided by wall time, over whole readings of many calls."""
    rng = draw()
    for busy in (1.0, *rng.uniform((0.2, 1.5), (0.9, 6)).tolist()):
        seconds, shortest = rng.uniform((0.02, 0.1), (0.04, 0.3)).tolist()
        machine, count = Machine(seconds=seconds), int(rng.integers(2, 5))
        clocks = {"clock": machine.clock, "cpu_clock": Processor(machine.clock, busy)}
        measure = partial(student.cpu_utilisation, **clocks)
        result = measure(machine, np.zeros(2), measurement_runs=count, min_reading=shortest)
        cause = "processor over wall time of the same reading"
        holds(result, {"mean": busy, "count": count}, "result", cause, rel=1e-6)
        metadata, names = entries(result.metadata, "metadata"), ("share_of_machine", "cores", "inferences_per_reading")
        share, cores, inferences = (number(metadata.get(name), f"metadata[{name!r}]") for name in names)
        same(share * cores, busy, "share_of_machine × cores", rel=1e-6)
        expect(inferences * seconds >= shortest - 1e-9, "a reading should last at least min_reading")
        enough = machine.calls >= count * inferences
        expect(enough, f"{count} readings of {inferences:.0f} calls, not {machine.calls} in all")


def answer_understanding(student: Any) -> None:
    """Check that the answers follow from joules over watts, cores times seconds, and the nesting of energy zones.

    The core zone lies inside the package zone, and the DRAM zone next to it.
    """
    same(student.seconds_to_wrap(), 65_532.610987 / 280, "question 1", "J over W are seconds", rel=0.01)
    same(student.more_processor_time(), "B", "question 2", "A needs 10 ms of processor time, B 12 ms")
    same(student.processor_and_memory(), 10, "question 3", "core is inside the package, DRAM is beside it")
