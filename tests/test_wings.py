"""The wings of the house: imports run one way, and never in a circle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house import ROOT, circles, imports, room_of

# From the roof down. The first are the commands, which may use every wing; the last two serve all of them.
FLOORS = (
    ("autograder.__main__",),
    ("autograder.cli",),
    ("autograder.demo", "autograder.release_commands", "autograder.course_command"),
    ("autograder.grading",),
    ("autograder.checks",),
    ("autograder.leaderboard",),
    ("autograder.course",),
    ("autograder.sandbox",),
    ("autograder.files", "autograder.time_limits"),
    ("tinybench",),
)
# It runs in the sandbox with the exporter in view, and builds a student's package there.
BUILDER = "autograder.sandbox.guest.package"
# The rooms of `tinybench`, those of the first lessons first: a file imports from rooms that stand before its own, and
# from its own. So no imports run in a circle, and a student who has come as far as a lesson can import what it needs.
ROOMS = (
    *("support.basics", "result", "timer", "support.conditions"),
    *("support.rounds", "latency", "accuracy", "support.footprint", "memory", "energy"),
    *("support.comparisons", "comparison", "toolbox", "support.metric_tests"),
    *("support.benchmarks", "benchmark", "support.choices", "pareto"),
    *("support.reports", "suite", "support.engines", "onnx", "support.numpy_models"),
    *("support.quantizing", "quantize", "support.compression", "compress", "support.traffic", "load"),
    *("support.scenarios", "scenarios"),
    *("sampler", "support.profiling", "machine", "bottleneck", "scaling", "precision", "production"),
    *("rollout", "tools.study", "tools.roofline", "tools.scaling", "tools.gpu"),
    *("tools.history", "tools.drifting", "tools.serving", "tools.watching", "tools.rollout"),
    *("support", "tools", "", "course", "shell", "__main__"),
)
WITHIN_SANDBOX = {"autograder.sandbox.guest", "autograder.sandbox.rpc"}


def floor(name: str) -> int:
    for number, wings in enumerate(FLOORS):
        if any(name == wing or name.startswith(f"{wing}.") for wing in wings):
            return number
    pytest.fail(f"{name} belongs to no wing of DESIGN: put it into one")


def test_imports_run_one_way() -> None:
    up = [
        f"{name} imports {other}"
        for name, others in imports().items()
        if name != "autograder"
        for other in sorted(others - {"autograder"})
        if floor(other) < floor(name) and name != BUILDER
    ]
    assert not up


def test_the_library_is_built_from_the_first_lesson_up() -> None:
    graph = imports(packages=("tinybench",))
    assert {room_of(name) for name in graph} == set(ROOMS), "put each file and folder among ROOMS, and no other"
    place = {name: ROOMS.index(room_of(name)) for name in graph}
    assert [f"{name} imports {other}" for name in graph for other in graph[name] if place[other] > place[name]] == []


def test_late_dynamic_and_type_only_imports_count(tmp_path: Path) -> None:
    package = tmp_path / "tinybench"
    package.mkdir()
    for name in ("late", "named", "typed"):
        (package / f"{name}.py").touch()
    (package / "user.py").write_text(
        "from importlib import import_module\nfrom typing import TYPE_CHECKING\n\n"
        "if TYPE_CHECKING:\n    from tinybench.typed import T\n\n\n"
        "def use():\n    from tinybench import late\n    import_module('tinybench.named')\n"
    )
    found = imports(tmp_path, ("tinybench",))["tinybench.user"]
    assert found == {"tinybench.late", "tinybench.named", "tinybench.typed"}


def test_there_is_no_circle() -> None:
    assert not circles(imports())


def test_the_sandbox_sees_nothing_but_the_guest_and_the_rpc() -> None:
    """Their imports are relative: inside, there is no `autograder`."""
    graph = imports()
    seen = [name for name in graph if any(name == wing or name.startswith(f"{wing}.") for wing in WITHIN_SANDBOX)]
    assert len(seen) > 5
    for name in set(seen) - {BUILDER}:
        assert all(other in seen or other.startswith("tinybench") for other in graph[name]), name


def test_the_library_knows_nothing_of_the_autograder() -> None:
    for path in (ROOT / "tinybench").rglob("*.py"):
        assert "import autograder" not in path.read_text(encoding="utf-8"), path
        assert "from autograder" not in path.read_text(encoding="utf-8"), path


def test_the_map_names_what_there_is() -> None:
    """Every file that CONTRIBUTING names in the four trips is there, and the way takes five lines."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    trips = re.findall(r"^\*\*.+?\*\*, in `(.+?)/`:\n((?:\d\. .*\n)+)", text, re.M)
    assert [folder.rpartition("/")[2] for folder, _ in trips] == ["course", "grading", "sandbox", "leaderboard"]
    for folder, lines in trips:
        assert lines.count("\n") == 5, f"the way through {folder} takes five lines"
        assert missing(re.findall(r"`([\w/]+(?:\.py|/))`", lines), folder, "") == []
    paths = re.findall(r"`((?:autograder|tests|tinybench|modules|web|leaderboard)/[\w/.]+)`", text)
    assert len(paths) > 10
    assert missing([path for path in paths if "NAME" not in path], "", "autograder", "autograder/leaderboard") == []


def missing(names: list[str], *homes: str) -> list[str]:
    """Return the names that none of these folders holds; NN_name and name stand for any module's."""
    meant = [name.replace("NN_name", "03_latency").replace("name.py", "latency.py") for name in names]
    return [
        name
        for name in meant
        if not name.startswith("student") and not any((ROOT / home / name).exists() for home in homes)
    ]
