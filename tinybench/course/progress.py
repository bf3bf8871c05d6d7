"""The modules of the course and the student's progress, read from the notebooks themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinybench.course.passed_checks import PROGRESS, standing
from tinybench.course.pieces import how_given, is_own
from tinybench.support.basics.numbers import number_of, plural

HEADER = re.compile(r"# (?P<number>\d\d)\W+(?P<title>.+?)\n+\*\*(?P<tier>.+?)\*\*(?P<facts>.*)")
HEADING = re.compile(r"^## (.+)$", re.M)
DONE, BEGUN, REFERENCE, OPEN = "done", "in progress", "reference", "not begun"


@dataclass(frozen=True)
class CoursePart:
    """A section of a notebook: its heading, the id of the heading's cell, and the checks in the section."""

    title: str
    cell: str
    checks: tuple[str, ...]

    @property
    def plain(self) -> str:
        """The heading without Markdown's backticks."""
        return self.title.replace("`", "")


@dataclass(frozen=True)
class Module:
    """A module as its notebook's header describes it, and the student's progress.

    Attributes
    ----------
    minutes
        The working time that the header states.
    points
        The total points for the module's checks and written answers.
    passed
        The names of the checks that pass with the code that the notebook holds now.
    """

    name: str
    title: str
    tier: str
    difficulty: str
    minutes: int
    optional: bool
    points: float
    sections: tuple[CoursePart, ...]
    passed: frozenset[str]
    state: str
    remark: str = ""
    checks: tuple[str, ...] = field(default=(), repr=False)

    @property
    def number(self) -> str:
        """The module's number, followed by a plus sign if the module is optional."""
        return self.name[:2] + ("+" if self.optional else "")

    @property
    def minutes_left(self) -> float:
        """The remaining minutes, estimated from the fraction of checks that have not passed."""
        if self.state == DONE:
            return 0
        return self.minutes * (1 - len(self.passed) / max(len(self.checks), 1))

    @property
    def next_section(self) -> CoursePart | None:
        """The first section with a check that has not passed."""
        return next((each for each in self.sections if not self.passed.issuperset(each.checks)), None)


def read_course(folder: Path) -> list[Module]:
    """Return the modules whose notebooks are in a folder, in order. Skip notebooks without the course's header."""
    found = (read_module(path) for path in sorted(folder.glob("[0-9][0-9]_*/*.ipynb")) if path.stem == path.parent.name)
    return sorted(filter(None, found), key=lambda module: (module.name[:2], module.optional, module.name))


def read_module(notebook: Path) -> Module | None:
    """Read a module from its notebook and the package. Return None if the notebook lacks the course's header."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        header = HEADER.match("".join(cells[0]["source"]))
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None
    if header is None:
        return None
    sections = tuple(_sections(cells))
    checks = tuple(check for section in sections for check in section.checks)
    passed = standing(notebook, checks)
    state, remark = _state(notebook, passed, checks)
    difficulty, minutes = re.search("[●○]+", header["facts"]), re.search(r"(\d+) minutes", header["facts"])
    return Module(
        notebook.stem,
        header["title"].strip(),
        header["tier"],
        difficulty[0] if difficulty else "",
        int(minutes[1]) if minutes else 0,
        "optional" in header["facts"].lower(),
        sum(_graded(cell).get("points", 0) for cell in cells if _graded(cell).get("grade")),
        sections,
        passed,
        state,
        remark,
        checks,
    )


def _graded(cell: dict[str, Any]) -> dict[str, Any]:
    marks = cell.get("metadata", {}).get("nbgrader")
    return marks if isinstance(marks, dict) else {}


def _sections(cells: list[dict[str, Any]]) -> Iterator[CoursePart]:
    title, place, checks = "", "", list[str]()
    for cell in cells:
        marks = _graded(cell)
        heading = HEADING.search("".join(cell["source"])) if cell["cell_type"] == "markdown" else None
        if heading:
            if checks:
                yield CoursePart(title, place, tuple(checks))
            title, place, checks = heading[1].strip(), str(cell.get("id", "")), []
        elif cell["cell_type"] == "code" and marks.get("grade") and not marks.get("solution"):
            checks.append(str(marks.get("grade_id")))
    if checks:
        yield CoursePart(title, place, tuple(checks))


def _state(notebook: Path, passed: frozenset[str], checks: tuple[str, ...]) -> tuple[str, str]:
    package, name = notebook.parents[1] / "tinybench", notebook.stem.partition("_")[2]
    own, reference = package / f"{name}.py", package / "references" / f"{name}.py"
    if is_own(own):
        counted = notebook.with_name(PROGRESS).is_file() and len(passed) < len(checks)
        share = f"{len(passed)} of {number_of(len(checks), 'check')} {plural(len(passed), 'passes', 'pass')}"
        since = f"; in the notebook, {share}" if counted else ""
        return DONE, f"your tinybench.{name} is in use{since}"
    if checks and passed.issuperset(checks):
        return DONE, "every check has passed"
    if passed:
        return BEGUN, f"{len(passed)} of {number_of(len(checks), 'check')}"
    if reference.is_file():
        return REFERENCE, how_given(reference)
    return OPEN, ""


def next_step(modules: list[Module]) -> Module | None:
    """Return the module to continue with: preferably one in progress, then one not begun. None if all are done."""
    left = [module for module in modules if module.state != DONE and not module.optional]
    begun = [module for module in left if module.state == BEGUN]
    fresh = [module for module in left if module.state == OPEN]
    return next(iter([*begun, *fresh, *left]), None)
