"""Energy: the counter tree of real machines on a fake sysfs, and a machine whose energy is known."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinybench import energy
from tinybench.energy import CpuTimeMeter, RaplMeter, best_meter, cpu_utilisation, idle_power, measure_energy
from tinybench.support.footprint import energy_results
from tinybench.support.footprint.energy_counters import package_domains, read_counter
from tinybench.support.rounds.checked_calls import arguments

INTEL_RANGE, AMD_RANGE = 262_143_328_850, 65_532_610_987
Tree = Callable[[dict[str, tuple[str, int, int]]], Path]


@pytest.fixture(autouse=True, scope="module")
def short_measurements() -> None:
    """Shorten nothing: how long a measurement takes is tested here."""


def write(root: Path, zone: str, microjoules: int) -> None:
    (root / zone / "energy_uj").write_text(f"{microjoules}\n")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Lay zones out as Linux does: a device tree, and /sys/class/powercap full of links into it."""

    def build(zones: dict[str, tuple[str, int, int]]) -> Path:
        root, devices = tmp_path / "class" / "powercap", tmp_path / "devices"
        root.mkdir(parents=True)
        for zone, (name, microjoules, largest) in zones.items():
            control, *numbers = zone.split(":")
            folder = devices / control
            for depth in range(1, len(numbers) + 1):
                folder /= ":".join([control, *numbers[:depth]])
            folder.mkdir(parents=True, exist_ok=True)
            for file, text in (
                ("name", name),
                ("energy_uj", microjoules),
                ("max_energy_range_uj", largest),
                ("enabled", 0),
            ):
                (folder / file).write_text(f"{text}\n")
            (root / zone).symlink_to(folder)
            if not (root / control).exists():
                (root / control).symlink_to(devices / control)
        return root

    return build


INTEL_LAPTOP = {
    "intel-rapl:0": ("package-0", 1000, INTEL_RANGE),
    "intel-rapl:0:0": ("core", 600, INTEL_RANGE),
    "intel-rapl:0:1": ("uncore", 100, INTEL_RANGE),
    "intel-rapl:0:2": ("dram", 50, AMD_RANGE),
    "intel-rapl:1": ("psys", 2000, INTEL_RANGE),
    "intel-rapl-mmio:0": ("package-0", 1000, INTEL_RANGE),
    "intel-rapl-mmio:0:0": ("dram", 50, AMD_RANGE),
}


def test_intel_laptop_counts_its_package_once(tree: Tree) -> None:
    root = tree(INTEL_LAPTOP)
    meter = RaplMeter(root)
    for zone in INTEL_LAPTOP:
        write(root, zone, 3_001_000)
    assert meter.read() == pytest.approx(3.0)
    assert meter.details == {"meter": "RAPL", "domains": ["package-0"]}
    assert (meter.unit, meter.measured) == ("J", True)


def test_dram_is_added_on_request(tree: Tree) -> None:
    root = tree(INTEL_LAPTOP)
    meter = RaplMeter(root, dram=True)
    write(root, "intel-rapl:0", 1_001_000)
    write(root, "intel-rapl:0:2", 500_050)
    assert meter.read() == pytest.approx(1.5)
    assert meter.details["domains"] == ["package-0", "dram"]


def test_amd_server_sums_its_sockets_with_own_wraps(tree: Tree) -> None:
    zones = {"intel-rapl:0": ("package-0", AMD_RANGE - 1_000_000, AMD_RANGE), "intel-rapl:0:0": ("core", 5, AMD_RANGE)}
    zones |= {"intel-rapl:1": ("package-1", 7_000_000, AMD_RANGE), "intel-rapl:1:0": ("core", 5, AMD_RANGE)}
    root = tree(zones)
    meter = RaplMeter(root)
    for zone, microjoules in {
        "intel-rapl:0": 2_000_000,
        "intel-rapl:1": 9_500_000,
        "intel-rapl:1:0": 2_000_000,
    }.items():
        write(root, zone, microjoules)
    assert meter.read() == pytest.approx(3.0 + 2.5, abs=1e-4)


def test_packages_stand_in_order_of_their_numbers(tree: Tree) -> None:
    root = tree({f"intel-rapl:{n}": (f"package-{n // 2}-die-{n % 2}", 0, INTEL_RANGE) for n in range(12)})
    assert [zone.name for zone in package_domains(root)] == [f"intel-rapl:{n}" for n in range(12)]


def test_each_package_is_followed_by_its_own_dram(tree: Tree) -> None:
    names = {"0": "package-0", "0:0": "dram", "1": "package-1", "1:0": "core", "1:1": "dram", "2": "board-of-package-0"}
    root = tree({f"intel-rapl:{zone}": (name, 5, INTEL_RANGE) for zone, name in names.items()})
    found = [zone.name for zone in package_domains(root, dram=True)]
    assert found == ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1", "intel-rapl:1:1"]


def test_no_package_says_why(tree: Tree, tmp_path: Path) -> None:
    root = tree({"intel-rapl:0": ("psys", 0, INTEL_RANGE)})
    why = "no RAPL package below .*: not Linux, a virtual machine or container"
    for folder in (root, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match=why):
            RaplMeter(folder)


@pytest.fixture
def root_only(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree whose counters nobody may read, also when the tests run as root."""
    root = tree(INTEL_LAPTOP)
    for counter in root.glob("*/energy_uj"):
        counter.chmod(0)
    original = Path.read_text

    def read_text(self: Path, *arguments: Any, **options: Any) -> str:
        if os.geteuid() == 0 and self.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(self))
        return original(self, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    return root


def test_root_only_counters_are_explained(root_only: Path) -> None:
    why = r"intel-rapl:0/energy_uj is for root only.*CVE-2020-8694.*sudo chmod a\+r"
    with pytest.raises(PermissionError, match=why):
        RaplMeter(root_only)


def test_best_meter_falls_back_with_the_reason(root_only: Path, tmp_path: Path) -> None:
    meter = best_meter(root_only, watts_per_core=6.0, source="data sheet")
    assert isinstance(meter, CpuTimeMeter)
    assert "for root only" in meter.details["not_measured_because"]
    assert (meter.details["watts_per_core"], meter.details["watts_source"]) == (6.0, "data sheet")
    assert best_meter(tmp_path).unit == "s"


def test_best_meter_measures_where_it_can(tree: Tree) -> None:
    assert isinstance(best_meter(tree(INTEL_LAPTOP), watts_per_core=6.0), RaplMeter)


def test_read_counter_keeps_every_digit(tmp_path: Path) -> None:
    (tmp_path / "energy_uj").write_text("262143328849\n")
    assert read_counter(tmp_path / "energy_uj") == 262_143_328_849


@pytest.mark.parametrize("text", ["-5", "", "much", "7.5", "0x10"])
def test_text_that_is_not_a_count_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "energy_uj").write_text(text)
    with pytest.raises(OSError, match=f"energy_uj holds {text!r}"):
        read_counter(tmp_path / "energy_uj")


@given(st.integers(0, AMD_RANGE - 1), st.integers(0, AMD_RANGE - 1))
def test_difference_undoes_one_wrap(before: int, step: int) -> None:
    assert energy.counter_difference(before, (before + step) % AMD_RANGE, AMD_RANGE) == step


def test_cpu_time_needs_watts_for_joules() -> None:
    now = [5.0]
    seconds, joules = CpuTimeMeter(clock=lambda: now[0]), CpuTimeMeter(4.0, "a wattmeter", clock=lambda: now[0])
    now[0] = 7.0
    assert (seconds.read(), seconds.unit, seconds.measured) == (2.0, "s", False)
    assert (joules.read(), joules.unit, joules.measured) == (8.0, "J", False)
    assert [meter.details["watts_source"] for meter in (seconds, joules)] == ["unknown", "a wattmeter"]
    for watts in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="watts_per_core"):
            CpuTimeMeter(watts)


def test_cpu_time_sees_work_of_this_process() -> None:
    meter = CpuTimeMeter()
    start = time.process_time()
    while time.process_time() < start + 0.02:
        pass
    assert meter.read() >= 0.02


class Machine:
    """Idle power, time and energy of a call are known; the counter can update in steps."""

    unit, measured = "J", True

    def __init__(self, idle: float = 8.0, seconds: float = 0.002, joules: float = 0.01, update: float = 0.0) -> None:
        self.idle, self.seconds, self.joules, self.update = idle, seconds, joules, update
        self.details = {"meter": "fake"}
        self.now = self.energy = self.shown = 0.0

    def advance(self, seconds: float, extra: float = 0.0) -> None:
        before, self.now = self.now, self.now + seconds
        added = self.idle * seconds + extra
        self.energy += added
        tick = self.now // self.update * self.update if self.update else self.now
        if tick >= before:
            self.shown = self.energy - added * (self.now - tick) / seconds

    def read(self) -> float:
        return self.shown

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.advance(1.05 * seconds)

    def __call__(self, x: Any) -> Any:
        self.advance(self.seconds, self.joules)
        return x


def measured(machine: Machine, **options: Any) -> Any:
    return measure_energy(machine, np.zeros((4, 3)), meter=machine, clock=machine.clock, sleep=machine.sleep, **options)


@settings(max_examples=40)
@given(st.floats(0, 50), st.floats(1e-5, 1e-2), st.floats(1e-6, 1))
def test_known_energy_comes_back(idle: float, seconds: float, joules: float) -> None:
    result = measured(Machine(idle, seconds, joules), measurement_runs=2)
    scale = joules + idle * seconds
    assert result.mean == pytest.approx(joules, abs=1e-6 * scale)
    assert result.metadata["idle_watts"] == pytest.approx(idle, abs=1e-6)


def test_many_short_calls_beat_a_millisecond_counter() -> None:
    result = measured(Machine(seconds=37e-6, joules=3e-4, update=1e-3))
    assert result.mean == pytest.approx(3e-4, rel=0.05)
    assert result.metadata["inferences_per_reading"] * 37e-6 >= 0.1


def test_result_describes_itself() -> None:
    result = measured(Machine(), measurement_runs=3, warmup_runs=2)
    assert (result.metric_name, result.unit, result.count, result.measured) == ("energy", "J", 3, True)
    notes = [result.metadata[name] for name in ("input_shape", "batch_size", "meter")]
    assert notes == [[4, 3], 4, "fake"]


def test_estimates_are_labelled() -> None:
    x = np.zeros((2, 2))
    joules = measure_energy(lambda a: a @ a, x, CpuTimeMeter(3.0, "a guess"), measurement_runs=2, min_reading=0.005)
    seconds = measure_energy(lambda a: a @ a, x, CpuTimeMeter(), measurement_runs=2, min_reading=0.005)
    assert (joules.metric_name, joules.unit, joules.measured) == ("energy", "J", False)
    assert joules.metadata["watts_source"] == "a guess"
    assert (seconds.metric_name, seconds.unit, seconds.metadata["measured"]) == ("cpu_time", "s", False)
    assert seconds.metadata["idle_watts"] is None


def test_a_dummy_counter_is_refused(tree: Tree) -> None:
    root = tree({"intel-rapl:0": ("package-0", 0, INTEL_RANGE)})
    with pytest.raises(RuntimeError, match="did not move"):
        measure_energy(lambda x: x, np.zeros(2), RaplMeter(root), measurement_runs=2, min_reading=0.002)


class Counter:
    """A package on a fake tree: a call takes known seconds of its clock, and moves the counter as told."""

    def __init__(self, root: Path, largest: int, joules: float, seconds: float, idle: float = 5.0) -> None:
        self.root, self.largest, self.joules, self.seconds, self.idle = root, largest, joules, seconds, idle
        self.now, self.microjoules = 0.0, 1000.0

    def advance(self, seconds: float, joules: float) -> None:
        self.now += seconds
        self.microjoules += 1e6 * (joules + self.idle * seconds)
        write(self.root, "intel-rapl:0", int(self.microjoules % self.largest))

    def __call__(self, _: Any) -> None:
        self.advance(self.seconds, self.joules)

    def measure(self, **options: Any) -> Any:
        clocks: dict[str, Any] = {"clock": lambda: self.now, "sleep": lambda seconds: self.advance(seconds, 0.0)}
        return measure_energy(self, np.zeros(2), RaplMeter(self.root), measurement_runs=3, **clocks, **options)


def one_package(tree: Tree, largest: int = AMD_RANGE) -> Path:
    return tree({"intel-rapl:0": ("package-0", 1000, largest)})


def test_one_wrap_in_a_reading_is_followed(tree: Tree) -> None:
    counter = Counter(one_package(tree), AMD_RANGE, joules=20_000.0, seconds=40.0)  # 505 W: wraps in every third call
    result = counter.measure(warmup_runs=0, min_reading=30.0)
    assert result.mean == pytest.approx(20_000, rel=1e-6)
    assert result.metadata["seen"] is True


@pytest.mark.parametrize(("seconds", "joules"), [(200.0, 131_065.0), (66.0, 70_000.0)])
def test_several_wraps_in_a_reading_are_refused(tree: Tree, seconds: float, joules: float) -> None:
    counter = Counter(one_package(tree), AMD_RANGE, joules, seconds)
    with pytest.raises(RuntimeError, match=r"above 65\.5 s a counter .* may start again more than once"):
        counter.measure(warmup_runs=0)


def test_a_small_range_wraps_within_any_reading(tree: Tree) -> None:
    with pytest.raises(RuntimeError, match="more than once"):
        Counter(one_package(tree, 1_000_000), 1_000_000, joules=2.5, seconds=0.01).measure()


@pytest.mark.parametrize("seconds", [0.2, 30.0, 65.0])
def test_a_counter_that_goes_back_is_refused(tree: Tree, seconds: float) -> None:
    counter = Counter(one_package(tree), AMD_RANGE, joules=-(5.0 * seconds + 0.0005), seconds=seconds)
    with pytest.raises(RuntimeError, match=r"cannot be .* went back"):
        counter.measure(warmup_runs=0)


def test_two_packages_share_the_limits(tree: Tree) -> None:
    meter = RaplMeter(tree({f"intel-rapl:{n}": (f"package-{n}", 0, INTEL_RANGE) for n in range(2)}))
    assert (meter.most_watts, meter.longest_reading) == (2000.0, pytest.approx(262_143.32885 / 2000))


def test_negative_readings_of_any_meter_are_refused() -> None:
    class Backwards(Machine):
        def read(self) -> float:
            return -super().read()

    with pytest.raises(RuntimeError, match="cannot be"):
        measured(Backwards())


def test_a_counter_that_sticks_in_a_reading_is_refused() -> None:
    with pytest.raises(RuntimeError, match="did not move in a reading"):
        measured(Machine(update=1.6), measurement_runs=4)


@pytest.mark.parametrize("text", ["-5", "", "much", "1.5"])
def test_a_counter_that_holds_no_count_is_no_meter(tree: Tree, text: str) -> None:
    root = one_package(tree)
    meter = RaplMeter(root)
    (root / "intel-rapl:0" / "energy_uj").write_text(text)
    with pytest.raises(OSError, match=r"energy_uj holds .* no count"):
        meter.read()
    assert "energy_uj" in best_meter(root).details["not_measured_because"]


@pytest.mark.parametrize("range_text", ["", "0", "-5", "much"])
def test_a_counter_of_unknown_range_is_no_meter(tree: Tree, range_text: str) -> None:
    root = one_package(tree)
    path = root / "intel-rapl:0" / "max_energy_range_uj"
    path.write_text(range_text)
    for _ in range(2):
        meter = best_meter(root)
        assert isinstance(meter, CpuTimeMeter)
        assert "max_energy_range_uj" in meter.details["not_measured_because"]
        path.unlink(missing_ok=True)


def test_domains_that_come_or_go_are_named(tree: Tree) -> None:
    root = tree(INTEL_LAPTOP)
    meter = RaplMeter(root)
    (root / "intel-rapl:7").mkdir()
    with pytest.raises(RuntimeError, match="intel-rapl:7 came or went"):
        meter.read()
    (root / "intel-rapl:7").rmdir()
    meter.read()
    (root / "intel-rapl:0").unlink()
    with pytest.raises(RuntimeError, match="intel-rapl:0 came or went"):
        meter.read()


def test_energy_below_the_idle_power_is_not_seen() -> None:
    class Waiting(Machine):
        """Its power is a little lower when it is called, or a little higher, in turn."""

        def __call__(self, x: Any) -> Any:
            self.advance(self.seconds, self.joules * (-1) ** int(self.now / 0.11))
            return x

    notes = measured(Waiting(joules=1e-4), measurement_runs=8).metadata
    assert notes["seen"] is False
    assert "the interval reaches 0 J" in notes["caution"]
    clear = measured(Machine(), measurement_runs=3).metadata
    assert clear["seen"] is True
    assert "caution" not in clear


def test_an_idle_power_of_nothing_is_said() -> None:
    notes = measured(Machine(idle=0.0), measurement_runs=3).metadata
    assert (notes["seen"], notes["idle_watts"]) == (True, 0.0)
    assert "no idle power was taken off" in notes["caution"]


@pytest.mark.parametrize("watts", [None, 5.0])
def test_a_model_that_waits_is_not_free(watts: float | None) -> None:
    machine = Machine()
    for busy, seen in ((0.0, False), (0.01, False), (0.5, True)):
        meter = CpuTimeMeter(watts, clock=lambda busy=busy: busy * machine.now)  # type: ignore[misc]
        result = measure_energy(machine, np.zeros(2), meter, measurement_runs=3, clock=machine.clock)
        assert result.metadata["seen"] is seen
        assert seen or f"worked for {busy:.1%} of the time" in result.metadata["caution"]


def test_a_machine_that_slept_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert energy_results.suspended() >= 0.0
    machine, slept = Machine(), [0.0]
    calls = iter([False] * 2000 + [True] + [False] * 100_000)  # somewhere in a reading

    def nap(x: Any) -> Any:
        if next(calls):
            slept[0] += 3600.0
            machine.energy += 400.0
        return machine(x)

    monkeypatch.setattr(energy, "suspended", lambda: slept[0])
    result = measure_energy(nap, np.zeros(2), machine, clock=machine.clock, sleep=machine.sleep, measurement_runs=60)
    assert slept[0] == 3600.0
    assert result.values == pytest.approx([0.01] * 60)
    assert "suspended for 3600 s" in result.metadata["caution"]


@pytest.mark.parametrize("measure", [measure_energy, cpu_utilisation])
def test_bad_input(measure: Any) -> None:
    for name, value in {"measurement_runs": 0, "min_reading": 0, "warmup_runs": -1}.items():
        with pytest.raises(ValueError, match=f"{name} is {value}"):
            measure(lambda x: x, np.zeros(2), **{name: value})
    with pytest.raises(ValueError, match="empty"):
        measure(lambda x: x, np.zeros((0, 3)))
    with pytest.raises(TypeError):
        measure(object(), np.zeros(2))


def test_inputs_are_passed_as_for_latency() -> None:
    machine = Machine()
    options: dict[str, Any] = {"meter": machine, "clock": machine.clock, "sleep": machine.sleep, "measurement_runs": 2}
    assert measure_energy(lambda a, b: machine(a + b), arguments(1, b=2), **options).mean == pytest.approx(0.01)

    async def later(x: Any) -> Any:
        return machine(x)

    with pytest.raises(TypeError, match="coroutine"):
        measure_energy(later, 1, **options)


def test_errors_of_the_model_surface() -> None:
    def broken(x: Any) -> Any:
        raise ArithmeticError("the model is broken")

    with pytest.raises(ArithmeticError, match="the model is broken"):
        measure_energy(broken, np.zeros(2), CpuTimeMeter())


def test_idle_power_divides_by_the_time_that_passed() -> None:
    machine = Machine(idle=12.5)
    assert idle_power(machine, 0.4, machine.clock, machine.sleep) == pytest.approx(12.5)


def test_energy_reading_counts_every_call() -> None:
    machine = Machine()
    joules, seconds = energy.energy_reading(machine, None, 25, machine, machine.clock)
    assert seconds == pytest.approx(0.05)
    assert joules == pytest.approx(25 * 0.01 + 8.0 * 0.05)


@pytest.mark.parametrize("cores", [0.2, 1.0, 3.5])
def test_utilisation_is_busy_cores(cores: float) -> None:
    machine = Machine()
    clocks: dict[str, Any] = {"clock": machine.clock, "cpu_clock": lambda: 1 + cores * machine.now}
    result = cpu_utilisation(machine, np.zeros(3), measurement_runs=3, **clocks)
    assert result.mean == pytest.approx(cores)
    assert result.metadata["share_of_machine"] == pytest.approx(cores / result.metadata["cores"])
