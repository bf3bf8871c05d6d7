"""Hidden checks of module 06: against fake counter trees and a machine whose energy, time and idle power are known."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from autograder.checks import all_close, close, draw, expect, judges, number, raises, words

RANGE = 262_143_328_850
FILES = ("name", "energy_uj", "max_energy_range_uj")
COUNT = count()
UNIT = 1e-4  # J; a counter's own step is up to 61 µJ, so a wrap is known no better


@contextmanager
def powercap(student: Any, zones: Mapping[str, tuple[str, int, int]]) -> Iterator[Any]:
    """Write a folder like /sys/class/powercap where the student's code runs: the `FILES` of each zone."""
    root = student.Path("/tmp") / f"powercap-{os.getpid()}-{next(COUNT)}"
    folders = [root, root / "intel-rapl", *(root / zone for zone in zones)]  # the control type stands beside its zones
    for folder in folders:
        folder.mkdir()
    for zone, content in zones.items():
        for file, text in zip(FILES, content, strict=True):
            (root / zone / file).write_text(f"{text}\n")
    try:
        yield root
    finally:
        for zone in zones:
            for file in FILES:
                (root / zone / file).unlink()
        for folder in reversed(folders):
            folder.rmdir()


def advance(root: Any, zone: str, value: int) -> None:
    """Let a counter show another value."""
    (root / zone / "energy_uj").write_text(f"{value}\n")


class Machine:
    """A processor of known idle power, on which a call takes known time and known additional energy."""

    unit = "J"
    measured = True
    shows = ("details",)

    def __init__(
        self,
        idle: float = 10.0,
        seconds: float = 0.004,
        joules: float = 0.03,
        *,
        update: float = 0.0,
        drift: float = 0.0,
    ) -> None:
        self.idle, self.seconds, self.joules, self.update, self.drift = idle, seconds, joules, update, drift
        self.details = {"meter": "fake", "covers": "everything"}
        self.now, self.energy, self.shown, self.calls, self.slept, self.reads = 0.0, 3.0, 3.0, 0, 0.0, 0

    def _pass(self, seconds: float, extra: float) -> None:
        start, energy = self.now, self.energy
        self.now += seconds
        self.energy += self.idle * seconds + self.drift * (self.now**2 - start**2) / 2 + extra
        last = math.floor(self.now / self.update) * self.update if self.update else self.now
        if last >= start and self.now > start:
            self.shown = energy + (self.energy - energy) * (last - start) / (self.now - start)

    def read(self) -> float:
        self.reads += 1
        return self.shown

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self._pass(seconds * 1.1, 0.0)

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        self._pass(self.seconds, self.joules)
        return x


class Locked:
    """A file that only root may read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read_text(self, *_: Any, **__: Any) -> str:
        raise PermissionError(13, "Permission denied", self.path)

    def __str__(self) -> str:
        return self.path


def drawn_tree(rng: np.random.Generator) -> tuple[str, dict[str, str], list[str], list[str]]:
    """Return zones with one or more packages among them, and which are packages, without and with their DRAM."""
    kind, zones = ("intel", "amd")[int(rng.integers(2))], dict[str, str]()
    packages, with_dram = list[str](), list[str]()
    numbers = sorted(rng.choice(14, int(rng.integers(2, 6)), replace=False).tolist())
    chosen = numbers[int(rng.integers(len(numbers)))]  # so that there is a package
    for n in numbers:
        zone = f"{kind}-rapl:{n}"
        parts = rng.permutation(["core", "uncore", "dram"])[: int(rng.integers(4))].tolist()
        if n != chosen and rng.random() < 0.3:
            zones[zone] = "psys"
            continue
        zones[zone] = f"package-{len(packages)}"
        zones |= {f"{zone}:{i}": part for i, part in enumerate(parts)}
        packages.append(zone)
        with_dram += [zone, *(f"{zone}:{i}" for i, part in enumerate(parts) if part == "dram")]
    zones[f"{kind}-rapl-mmio:0"] = "package-0"
    return f"a machine with the zones {zones}", zones, packages, with_dram


@judges("package_domains")
def packages_are_found_once(student: Any) -> None:
    """Intel, AMD, two sockets, eleven sockets: each package once, in the order of the numbers."""
    trees: list[tuple[str, dict[str, str], list[str], list[str]]] = [
        (
            "an Intel laptop",
            {
                "intel-rapl:0": "package-0",
                "intel-rapl:0:0": "core",
                "intel-rapl:0:1": "uncore",
                "intel-rapl:0:2": "dram",
                "intel-rapl:1": "psys",
                "intel-rapl-mmio:0": "package-0",
                "intel-rapl-mmio:0:0": "dram",
            },
            ["intel-rapl:0"],
            ["intel-rapl:0", "intel-rapl:0:2"],
        ),
        (
            "a laptop with psys first",
            {"intel-rapl:0": "psys", "intel-rapl:1": "package-0", "intel-rapl:1:0": "core"},
            ["intel-rapl:1"],
            ["intel-rapl:1"],
        ),
        (
            "an AMD server with two sockets",
            {
                "intel-rapl:0": "package-0",
                "intel-rapl:0:0": "core",
                "intel-rapl:1": "package-1",
                "intel-rapl:1:0": "core",
            },
            ["intel-rapl:0", "intel-rapl:1"],
            ["intel-rapl:0", "intel-rapl:1"],
        ),
        (
            "an AMD kernel with its own zones",
            {"amd-rapl:0": "package-0", "amd-rapl:0:0": "core"},
            ["amd-rapl:0"],
            ["amd-rapl:0"],
        ),
        (
            "an Intel server with two dies in each package",
            {
                "intel-rapl:0": "package-0-die-0",
                "intel-rapl:0:0": "dram",
                "intel-rapl:1": "package-0-die-1",
                "intel-rapl:1:0": "dram",
            },
            ["intel-rapl:0", "intel-rapl:1"],
            ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1", "intel-rapl:1:0"],
        ),
        (
            "twelve packages",
            {f"intel-rapl:{n}": f"package-{n}" for n in range(12)},
            [f"intel-rapl:{n}" for n in range(12)],
            [f"intel-rapl:{n}" for n in range(12)],
        ),
    ]
    rng = draw()
    for what, zones, packages, with_dram in [*trees, *(drawn_tree(rng) for _ in range(4))]:
        with powercap(student, {zone: (name, 1, RANGE) for zone, name in zones.items()}) as root:
            for dram, truth in ((False, packages), (True, with_dram)):
                got = [str(zone).rpartition("/")[2] for zone in student.package_domains(root, dram)]
                expect(got == truth, f"{what}, dram={dram}: {truth} expected, got {got}")
    with powercap(student, {"intel-rapl:0": ("psys", 1, RANGE)}) as root:
        raises(
            FileNotFoundError, lambda: student.package_domains(root), "a folder without packages", mentions=[str(root)]
        )


@judges("read_counter")
def counters_are_read(student: Any) -> None:
    """A whole number, or an explanation."""
    rng = draw()
    count, zone = int(rng.integers(RANGE)), int(rng.integers(1, 20))
    with powercap(student, {"intel-rapl:0": ("package-0", count, RANGE)}) as root:
        close(student.read_counter(root / "intel-rapl:0" / "energy_uj"), count, "read_counter", rel=0)
    path = f"/sys/class/powercap/intel-rapl:{zone}/energy_uj"
    raises(
        PermissionError,
        lambda: student.read_counter(Locked(path)),
        "a file for root only",
        mentions=["root", path],
        cause="read with path.read_text(), and explain a PermissionError",
    )


@judges("counter_difference")
def wraps_are_undone(student: Any) -> None:
    """Differences with and without a wrap; one step of the counter more or less is fine."""
    rng = draw()
    for _ in range(50):
        before, step = (int(x) for x in rng.integers(0, RANGE, 2))
        after = (before + step) % RANGE
        got = student.counter_difference(before, after, RANGE)
        close(
            got,
            step,
            f"counter_difference({before}, {after}, {RANGE})",
            cause="a wrap adds max_energy_range_uj",
            rel=0,
            abs=100,
        )
    close(student.counter_difference(5, 5, RANGE), 0, "a counter that stood still")


@judges("RaplMeter.read")
def rapl_reads_joules(student: Any) -> None:
    """Two packages, several wraps each, a psys and parts that must not count."""
    rng = draw()
    largest = {"intel-rapl:0": RANGE, "intel-rapl:1": 65_532_610_987}
    counters = {zone: int(rng.integers(0, size)) for zone, size in largest.items()}
    zones = {zone: (f"package-{zone[-1]}", counters[zone], size) for zone, size in largest.items()}
    zones |= {"intel-rapl:0:0": ("core", 7, RANGE), "intel-rapl:2": ("psys", 9, RANGE)}
    with powercap(student, zones) as root:
        meter, truth = student.RaplMeter(root), 0.0
        start = number(meter.read(), "meter.read()")
        for step in range(12):
            for zone, size in largest.items():
                more = int(rng.integers(0, size // 2))
                truth += more / 1e6
                counters[zone] = (counters[zone] + more) % size
                advance(root, zone, counters[zone])
            advance(root, "intel-rapl:0:0", 1000 * step)
            advance(root, "intel-rapl:2", 900_000 * step)
            cause = "undo each package's wraps on its own, remember the last reading, divide by 1e6"
            got = number(meter.read(), "meter.read()") - start
            close(
                got,
                truth,
                f"joules after {step + 1} steps of two packages",
                cause=cause,
                rel=0,
                abs=3 * UNIT * (step + 1),
            )
    with powercap(student, {"amd-rapl:0": ("package-0", 10, RANGE), "amd-rapl:0:0": ("core", 10, RANGE)}) as root:
        meter = student.RaplMeter(root)
        advance(root, "amd-rapl:0", 2_500_010)
        advance(root, "amd-rapl:0:0", 2_000_010)
        close(meter.read(), 2.5, "joules on an AMD processor", abs=UNIT)


@judges("CpuTimeMeter.read")
def cpu_time_is_an_estimate(student: Any) -> None:
    """Processor seconds times the watts that were given, from the clock that was given."""
    rng = draw()
    for watts in (None, 1.0, float(rng.uniform(2, 20))):
        start = float(rng.uniform(1, 200))
        now = [start]
        meter = student.CpuTimeMeter(watts, clock=lambda now=now: now[0])
        close(meter.read(), 0.0, "a meter just made", abs=1e-12)
        for seconds in (0.25, *sorted(float(x) for x in rng.uniform(1, 30, 2))):
            now[0] = start + seconds
            cause = "processor seconds since the start, times watts_per_core if there are any"
            close(meter.read(), seconds * (watts or 1.0), f"{seconds} s at {watts} W", cause=cause)


@judges("best_meter")
def best_meter_explains_itself(student: Any) -> None:
    """RAPL where it can be read, else processor time with the reason, the watts and their source."""
    rng = draw()
    joules, watts, source = int(rng.integers(1, 50)), float(rng.uniform(1, 9)), words(rng, 1)[0]
    with powercap(student, {"intel-rapl:0": ("package-0", 10, RANGE)}) as root:
        meter = student.best_meter(root, watts_per_core=3.0)
        expect(bool(meter.measured), "readable counters should be used, also where watts are given")
        advance(root, "intel-rapl:0", joules * 10**6 + 10)
        close(meter.read(), joules, "the joules of best_meter(root)", cause="pass root on", abs=UNIT)
    with powercap(student, {"intel-rapl:0": ("psys", 10, RANGE)}) as root:
        meter = student.best_meter(root)
        expect(not meter.measured, "without a package nothing is measured")
        expect(str(meter.unit) == "s", f"without watts the unit is 's', not {meter.unit!r}")
        expect(
            str(root) in str(dict(meter.details).get("not_measured_because")), "the reason should be the error's text"
        )
        meter = student.best_meter(root, watts, source)
        close(dict(meter.details)["watts_per_core"], watts, "the watts in the details")
        expect(dict(meter.details)["watts_source"] == source, "the source of the watts should reach the details")
    with powercap(student, {"intel-rapl:0": ("package-0", 10, RANGE)}) as root:
        counter = root / "intel-rapl:0" / "energy_uj"
        counter.unlink()
        counter.mkdir()  # cannot be read, whoever asks
        expect(not student.best_meter(root).measured, "a counter that cannot be read: fall back, do not fail")
        counter.rmdir()
        counter.touch()


@judges("idle_power", "energy_reading")
def readings_are_differences(student: Any) -> None:
    """Power by the clock, energy as a difference over exactly the calls asked for."""
    rng = draw()
    for _ in range(5):
        idle, seconds, joules = (float(x) for x in rng.uniform(0.5, 20, 3))
        machine = Machine(idle, seconds / 1000, joules)
        cause = "difference of two reads over what the clock says, not over the seconds asked for"
        close(student.idle_power(machine, 0.3, machine.clock, machine.sleep), idle, "idle_power", cause=cause, rel=1e-9)
        close(machine.slept, 0.3, "the seconds slept", cause="sleep as long as asked")
        seen: list[Any] = []
        loops = int(rng.integers(1, 40))
        energy, time = student.energy_reading(
            lambda x, seen=seen, machine=machine: (seen.append(x), machine(x))[1],
            "inputs",
            loops,
            machine,
            machine.clock,
        )
        expect(seen == ["inputs"] * loops, f"{loops} calls with the inputs expected, {len(seen)} came")
        close(time, loops * seconds / 1000, "the duration of a reading")
        close(
            energy, loops * (joules + idle * seconds / 1000), "the energy of a reading", cause="read before and after"
        )


def answer_reading(student: Any) -> None:
    """The answers follow from the formula of section 7."""
    close(
        student.joules_added_by_one_inference(), 0.05, "question (a)", cause="take 10 W × 0.2 s off, then divide by 100"
    )
    close(student.inferences_per_reading(), 2500, "question (b)", cause="0.1 s / 40 µs")


@judges("measure_energy")
def energy_is_per_inference(student: Any) -> None:
    """Known energy comes back in spite of idle power, a 1 ms counter and drift; estimates stay estimates."""
    rng = draw()
    batch, count = (int(number) for number in rng.integers((2, 4), (7, 8)))
    idle, joules, seconds = float(rng.uniform(5, 20)), float(rng.uniform(0.01, 0.05)), float(rng.uniform(0.004, 0.009))
    shortest = float(rng.uniform(0.15, 0.3))
    inputs = np.zeros((batch, 5))
    machine = Machine(idle, seconds, joules)
    result = student.measure_energy(
        machine,
        inputs,
        meter=machine,
        measurement_runs=count,
        min_reading=shortest,
        clock=machine.clock,
        sleep=machine.sleep,
    )
    close(
        result.mean,
        joules,
        "joules per inference",
        cause="take the idle power off and divide by the inferences of a reading",
        rel=1e-6,
    )
    close(result.count, count, "the number of values", cause="one value per reading")
    metadata = dict(result.metadata)
    expect(metadata["measured"] is True, "a measuring meter makes a measured result")
    close(metadata["idle_watts"], idle, "idle_watts", rel=1e-6)
    expect(
        metadata["inferences_per_reading"] * seconds >= shortest - 1e-9,
        "a reading should last at least min_reading: use calibrate_loops",
    )
    close(metadata["batch_size"], batch, "batch_size")
    expect(machine.slept >= 0.95 * shortest, "the idle power needs a time in which the process sleeps")

    joules = float(rng.uniform(1.5e-3, 3e-3))
    fast = Machine(seconds=5e-4, joules=joules, update=2e-3)
    result = student.measure_energy(fast, inputs, meter=fast, measurement_runs=5, clock=fast.clock, sleep=fast.sleep)
    cause = "one call is shorter than the counter's update: put many into a reading"
    close(result.median, joules, "0.5 ms calls on a counter that updates every 2 ms", cause=cause, rel=0.15)

    joules = float(rng.uniform(0.003, 0.0045))
    warm = Machine(drift=2.0, joules=joules)
    result = student.measure_energy(warm, inputs, meter=warm, measurement_runs=8, clock=warm.clock, sleep=warm.sleep)
    cause = "measure the idle power in every round, right before the reading"
    close(result.mean, joules, "energy while the idle power rises", cause=cause, rel=0.5)

    joules, source = float(rng.uniform(0.01, 0.05)), words(rng, 1)[0]
    guess = Machine(idle=0.0, joules=joules)
    guess.measured, guess.details = False, {"meter": "guess", "watts_source": source}
    estimate = student.measure_energy(
        guess, inputs, meter=guess, measurement_runs=2, clock=guess.clock, sleep=guess.sleep
    )
    expect(dict(estimate.metadata)["measured"] is False, "an estimating meter makes metadata['measured'] False")
    expect(dict(estimate.metadata)["watts_source"] == source, "the meter's details belong into the metadata")
    close(guess.slept, 0.0, "seconds slept with an estimating meter", cause="it has no idle power to measure")
    close(estimate.mean, joules, "the estimate per inference", rel=1e-6)

    still = Machine(idle=0.0, joules=0.0)
    raises(
        RuntimeError,
        lambda: student.measure_energy(
            still, inputs, meter=still, measurement_runs=2, clock=still.clock, sleep=still.sleep
        ),
        "a counter that never moves",
    )
    runs, more = (5 * int(number) for number in rng.integers((10, 4), (15, 10)))  # warm_up goes on by 5 such calls
    cold = Machine()
    student.measure_energy(
        cold, inputs, meter=cold, warmup_runs=runs, measurement_runs=1, clock=cold.clock, sleep=cold.sleep
    )
    warmer = Machine()
    student.measure_energy(
        warmer, inputs, meter=warmer, warmup_runs=runs + more, measurement_runs=1, clock=warmer.clock,
        sleep=warmer.sleep,
    )  # fmt: skip
    what = f"calls that {more} more warm-up runs add"
    close(warmer.calls - cold.calls, more, what, cause="warm up before the calibration")


@judges("cpu_utilisation")
def utilisation_counts_cores(student: Any) -> None:
    """Processor time over wall time, over whole readings."""
    rng = draw()
    for busy in (1.0, *(float(x) for x in rng.uniform((0.2, 1.5), (0.9, 6)))):
        seconds, shortest, count = (
            float(rng.uniform(0.003, 0.006)),
            float(rng.uniform(0.03, 0.08)),
            int(rng.integers(2, 6)),
        )
        machine = Machine(seconds=seconds)
        result = student.cpu_utilisation(
            machine,
            np.zeros(2),
            measurement_runs=count,
            min_reading=shortest,
            clock=machine.clock,
            cpu_clock=lambda busy=busy, machine=machine: 50 + busy * machine.now,
        )
        close(result.mean, busy, "cpu_utilisation", cause="processor time over wall time of the same reading", rel=1e-6)
        all_close([result.count], [count], "the number of values")
        metadata = dict(result.metadata)
        close(metadata["share_of_machine"] * metadata["cores"], busy, "share_of_machine × cores", rel=1e-6)
        lasts = metadata["inferences_per_reading"] * seconds
        expect(lasts >= shortest - 1e-9, "a reading should last at least min_reading")


def answer_understanding(student: Any) -> None:
    """The answers follow from watts, cores and what contains what."""
    close(student.seconds_to_wrap(), 65_532.610987 / 280, "question 1", cause="J over W are seconds", rel=0.01)
    expect(student.more_processor_time() == "B", "question 2: A needs 10 ms of processor time, B 12 ms")
    close(student.processor_and_memory(), 10, "question 3", cause="core is inside the package, DRAM is beside it")
