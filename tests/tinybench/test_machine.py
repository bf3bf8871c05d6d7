"""The machine check on machines that are not there: the right warnings, and no error whatever the files hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tinybench.machine_files import CLOCKS, GROUPS, Machine, quiet_server
from tests.tinybench.machines import MACHINES
from tinybench.machine import machine_check
from tinybench.result import BenchmarkResult
from tinybench.shell.cli import main
from tinybench.support.conditions import control_groups, machine_facts
from tinybench.support.conditions.machine_findings import MachineCheck, judge, stolen_share
from tinybench.support.conditions.machine_rules import rules_for
from tinybench.support.conditions.process_conditions import Here, here, python_burdens
from tinybench.support.conditions.rule import Rule
from tinybench.tools.roofline.roofs import Roofs


def checked(machine: Machine, root: Path) -> MachineCheck:
    return machine_check(root, of=machine.built(root))


@pytest.mark.parametrize("name", MACHINES)
def test_exactly_the_right_warnings_each_with_why_and_what_to_type(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name]
    found = checked(machine, tmp_path)
    assert {each.name for each in found.warnings} == machine.warns
    assert all(each.why and each.do and each.seen for each in found.warnings)
    for words in machine.says:
        assert words in str(found)


def test_of_two_levels_both_versions_and_a_mount_elsewhere_the_smallest_counts(tmp_path: Path) -> None:
    machine = Machine(
        files={
            "proc/self/cgroup": "5:cpu:/outer/inner\n0::/",
            "proc/self/mountinfo": (
                "31 30 0:30 / /groups/cpu rw - cgroup cgroup rw,cpu\n32 30 0:31 / /groups/new rw - cgroup2 cgroup2 rw"
            ),
            "groups/cpu/outer/cpu.cfs_quota_us": "30000",
            "groups/cpu/outer/cpu.cfs_period_us": "10000",
            "groups/cpu/outer/inner/cpu.cfs_quota_us": "25000",
            "groups/cpu/outer/inner/cpu.cfs_period_us": "10000",
            "groups/new/cpu.max": "270000 100000",
        }
    )
    machine.built(tmp_path)
    assert control_groups.tightest_quota(tmp_path) == "25000 10000"


@pytest.mark.parametrize("said", ["half 100000", "50000 0", "50000", "-5 100000", "", "9" * 400])
def test_a_limit_that_is_garbage_is_not_known(said: str, tmp_path: Path) -> None:
    found = checked(Machine(files={GROUPS + "cpu.max": said}), tmp_path)
    level = {each.name: each.level for each in found.findings}["quota"]
    assert level == ("ok" if said == "" else "unknown")


GARBAGE = st.one_of(
    st.sampled_from(
        ["", "-1", "max", "\0", "0-", "4294967296", "9" * 5000, "cpu  1 2 3", "some avg10=nan", "0-99999999"]
    ),
    st.text(max_size=40),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(st.sampled_from(sorted(quiet_server(2))), GARBAGE, max_size=6), answer=GARBAGE)
def test_garbage_never_raises(files: dict[str, str], answer: str, tmp_path: Path) -> None:
    for system in ("Linux", "Darwin", "Windows"):
        made = Machine(cores=2, files=files).built(tmp_path)
        asked = Here(system, "", (0, 1), made.process, lambda *_: answer, made.clock, made.pause, made.busy)
        found = machine_check(tmp_path, of=asked)
        assert {each.level for each in found.findings} <= {"ok", "warn", "unknown"}


def test_files_that_may_not_be_read_or_are_folders_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = Machine().built(tmp_path)
    (tmp_path / CLOCKS / "current_clocksource").unlink()
    (tmp_path / CLOCKS / "current_clocksource").mkdir()
    opened = Path.open

    def refused(path: Path, *args: object, **how: object) -> object:
        if path.name in ("stat", "cpu.max", "scaling_governor"):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **how)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refused)
    found = machine_check(tmp_path, of=of)
    unknown = {each.name for each in found.findings if each.level == "unknown"}
    assert {"clock source", "load", "stolen", "governor"} <= unknown
    assert found.warnings == []


def test_nothing_at_all_is_all_unknown_but_this_process(tmp_path: Path) -> None:
    found = machine_check(tmp_path, of=Here(cores=(0, 1)))
    known = {each.name for each in found.findings if each.level != "unknown"}
    assert known <= {"cores", "quota", "stopped", "WSL"}
    assert found.verdict == "ok"


def test_a_rule_speaks_only_where_there_is_something_to_say() -> None:
    for system in ("Linux", "Darwin", "Windows", "FreeBSD"):
        rules = rules_for({"system": system})
        assert len({rule.name for rule in rules}) == len(rules)


def test_what_others_keep_busy_leaves_out_our_own(tmp_path: Path) -> None:
    machine = Machine(later={"proc/stat": f"cpu  {1000 + 100} 0 100 {90_000 + 100} 3 0 1 0 0 0"})
    theirs = machine.built(tmp_path)
    spent = iter((5.0, 6.0))
    ours = Here(cores=theirs.cores, clock=theirs.clock, pause=theirs.pause, busy=lambda: next(spent))
    assert machine_facts.read_facts(tmp_path, of=ours)["load"] == 0
    machine.built(tmp_path)
    assert machine_facts.read_facts(tmp_path, of=machine.built(tmp_path))["load"] == pytest.approx(0.5)


def test_this_process_says_what_slows_it_down(monkeypatch: pytest.MonkeyPatch) -> None:
    before = python_burdens()
    monkeypatch.setenv("PYTHONMALLOC", "pymalloc_debug")
    assert set(python_burdens()) - set(before) == {"PYTHONMALLOC=debug"}
    monkeypatch.setenv("OMP_WAIT_POLICY", "Active")
    assert here().process["spinning"] == ["OMP_WAIT_POLICY=Active"]


def test_this_very_machine_is_looked_at() -> None:
    found = machine_check()
    assert {"cores", "threads", "priority", "Python", "clock"} <= {each.name for each in found.findings}
    assert here().cores
    assert here().process["clock_step"] > 0


def test_the_command_prints_what_was_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    laptop = MACHINES["laptop on battery"]

    def made() -> MachineCheck:
        return checked(laptop, tmp_path)

    monkeypatch.setattr("tinybench.machine.machine_check", made)
    assert main(["machine"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("4 things may spoil a measurement: ")
    assert "  → plug it in" in told
    assert main(["machine", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["verdict"].split(", ")) == laptop.warns
    assert {each["level"] for each in found["findings"]} == {"warn", "ok"}


def test_a_notebook_shows_a_table_with_the_reasons(tmp_path: Path) -> None:
    shown = checked(MACHINES["swapping"], tmp_path)._repr_mimebundle_()
    assert "what to type" in shown["text/html"]
    assert "a thousand times as long" in shown["text/html"]
    assert shown["text/plain"].startswith("2 things may spoil")


def test_the_command_measures_and_draws_roofs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rate = {"dtype": "float32", "by": "NumPy", "ran_in": "float32"}
    moved = {"kind": "read", "working_set": 2**15}
    roofs = Roofs(
        [BenchmarkResult("rate", [90.0 + i / 10 for i in range(8)], rate, unit="10⁹ operations/s")],
        [BenchmarkResult("rate", [20.0 + i / 10 for i in range(8)], moved, unit="GB/s")],
    )
    asked: list[dict[str, float]] = []
    monkeypatch.setattr("tinybench.machine.machine_check", lambda: checked(MACHINES["quiet server"], tmp_path))
    monkeypatch.setattr("tinybench.tools.roofline.roofs.measure_roofs", lambda **how: asked.append(how) or roofs)
    file = tmp_path / "roofs.svg"
    assert main(["machine", "--roofs", "--seconds", "2", "--figure", str(file)]) == 0
    assert asked == [{"threads": 1, "seconds": 2.0}]
    assert "Products of matrices, 1 thread" in capsys.readouterr().out
    assert "<svg" in file.read_text(encoding="utf-8")
    assert main(["machine", "--roofs", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["roofs"]) == 2
    assert main(["machine", "--figure", str(file)]) == 3


def test_each_rule_has_a_finding_and_what_nobody_knows_is_not_fine() -> None:
    rules = [
        Rule(name, name, lambda value: value < 1, lambda value: f"{value} seen", f"why {name}", f"do {name}")
        for name in ("a", "b", "c", "d", "e")
    ]
    found = judge(rules, {"a": 0, "b": 2, "c": None, "e": 3})
    assert [tuple(each) for each in found] == [
        ("b", "warn", "2 seen", "why b", "do b"),
        ("e", "warn", "3 seen", "why e", "do e"),
        ("c", "unknown", "not known here", "", ""),
        ("d", "unknown", "not known here", "", ""),
        ("a", "ok", "0 seen", "", ""),
    ]


def test_stolen_time_is_a_share_of_all_time_between_two_readings() -> None:
    before, after = "cpu  900 10 200 5000 30 0 20 400 100 0", "cpu  950 10 210 5130 30 0 20 410 150 0"
    assert stolen_share(before, after) == pytest.approx(10 / 200)  # guests count in user already
    assert stolen_share(before, before) == 0
