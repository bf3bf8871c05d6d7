"""The probe from inside finds what is shown by mistake, and then nothing is graded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import autograder
from autograder.course.assignment import Assignment
from autograder.grading import mounts
from autograder.grading.grade import grade_assignment
from autograder.sandbox import bubblewrap, leak_probe
from autograder.sandbox.bubblewrap import Mounts, SandboxUnavailable
from tests.tiny_course import NAME as RELEASED
from tests.tiny_course import hand_in, solved

ROOT = Path(__file__).resolve().parents[2]
NAME = "03_latency"
ASSIGNMENT = Assignment.read(ROOT / "modules" / NAME / f"{NAME}.ipynb")
PACKAGE, CHECKS = ROOT / "tinybench", Path(str(autograder.__file__)).parent / "checks"
NOTEBOOK, CONFIG = ROOT / "modules" / NAME / f"{NAME}.ipynb", ROOT / "nbgrader_config.py"
SHOWN = {
    "the graded module": ({"/course/tinybench/latency.py": PACKAGE / "latency.py"}, "latency.py is a file of the course"),
    "a later module": ({"/tmp/kept/energy.py": PACKAGE / "energy.py"}, "energy.py is a file of the course"),
    "a check": ({"/inside/m03_latency.py": CHECKS / "m03_latency.py"}, "m03_latency.py is a file of the course"),
    "the autograder": ({"/course/autograder/__init__.py": CHECKS.parent / "__init__.py"}, "autograder can be imported"),
    "a notebook": ({f"/work/{NAME}.ipynb": NOTEBOOK}, f"/work/{NAME}.ipynb has the name"),
    "the gradebook": ({"/work/gradebook.db": CONFIG}, "gradebook.db has the name"),
    "a solution": ({"/course/data/notes.txt": PACKAGE / "latency.py"}, "/course/data/notes.txt holds solution"),
    "a path of the host": ({f"{ROOT}/x": CONFIG}, f"{ROOT} exists"),
}  # fmt: skip

pytestmark = pytest.mark.needs("sandbox")


@pytest.mark.parametrize("what", SHOWN)
def test_what_is_shown_is_found(what: str, tmp_path: Path) -> None:
    shown, expected = SHOWN[what]
    usual, _ = mounts.mounts_of(ASSIGNMENT, tmp_path)
    found = leak_probe.findings(replace(usual, read_only={**usual.read_only, **shown}), mounts.forbidden(ASSIGNMENT))
    assert [line for line in found if expected in line], found


@pytest.mark.parametrize("where", ["environ", "cmdline", "sys.path", "mountinfo"])
def test_a_path_of_the_host_is_found_wherever_it_is_named(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Mounts()
    if where == "environ":
        monkeypatch.setitem(bubblewrap.ENVIRONMENT, "WHERE", str(tmp_path))
    elif where == "cmdline":
        shown = Mounts(tmpfs=[str(tmp_path)], working_directory=str(tmp_path))  # an argument of bubblewrap
    elif where == "sys.path":
        monkeypatch.setitem(bubblewrap.ENVIRONMENT, "PYTHONPATH", str(tmp_path))
    else:
        shown = Mounts(writable={"/work": tmp_path})
    found = leak_probe.findings(shown, leak_probe.Forbidden(paths=[str(tmp_path)]))
    assert [line for line in found if line.endswith(f"{where} names {tmp_path}")], found


@pytest.mark.parametrize("name", ["01_result", NAME, "17_olympics"])
def test_an_assignment_shows_nothing_of_what_it_asks_for(name: str, tmp_path: Path) -> None:
    assignment = Assignment.read(ROOT / "modules" / name / f"{name}.ipynb")
    mounts.probe(assignment, ROOT)
    shown = mounts.mounts_of(assignment, tmp_path)[0].read_only
    assert "/course/tinybench/support/basics/table.py" in shown
    assert ("/course/tinybench/energy.py" in shown) == (name > "06")
    forbidden = mounts.forbidden(assignment)
    assert forbidden.texts, "there are solutions to look for"
    assert {f"/course/tinybench/{path.relative_to(mounts.PACKAGE)}" for path in forbidden.files}.isdisjoint(shown)


def test_nothing_is_graded_where_submissions_would_see_a_check(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(released, "ann", solved(released))
    shown = Mounts({"/course/kept.txt": CHECKS / "m01_result.py", "/course/m01_result.py": CHECKS / "m01_result.py"})
    monkeypatch.setattr(mounts, "mounts_of", lambda *_: (shown, []))
    with pytest.raises(
        SandboxUnavailable, match=r"m01_result\.py is a file of the course that must not be here.*Nothing"
    ):
        grade_assignment(released, RELEASED, progress=False)
    assert not (released / "course" / "autograded").exists()
