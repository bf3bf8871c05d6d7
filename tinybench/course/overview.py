"""The map of the course: its modules and the student's progress, read from the notebooks themselves."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import tinybench
from tinybench.course.accessible_figures import Markup
from tinybench.course.colab import COLAB
from tinybench.course.passed_checks import PROGRESS, standing
from tinybench.course.pieces import how_given, is_own
from tinybench.support.basics.numbers import number_of, plural

HEADER = re.compile(r"# (?P<number>\d\d)\W+(?P<title>.+?)\n+\*\*(?P<tier>.+?)\*\*(?P<facts>.*)")
HEADING = re.compile(r"^## (.+)$", re.M)
# Each state is shown by a mark and a word as well as a colour. The colours are visible on white and on black.
DONE, BEGUN, REFERENCE, OPEN = "done", "in progress", "reference", "not begun"
LOOKS = {DONE: ("✓", "#009E73"), BEGUN: ("◐", "#0072B2"), REFERENCE: ("⇄", "#D55E00"), OPEN: ("○", "#808080")}
CARD = "border:1px solid #8888;border-left:6px solid {color};border-radius:4px;padding:.5em .8em"
BAR = "height:.6em;border-radius:.3em;background:#8886;overflow:hidden;margin:.3em 0"
GRID = "display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,17em),1fr));gap:.6em;align-items:start"
BOX = "max-width:1000px;line-height:1.45;font-family:var(--jp-ui-font-family,sans-serif);font-size:14px"


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


def course_map(folder: Path | str | None = None) -> Any:
    """Show the tiers and modules of the course with their states (such as done or in progress) and the time left.

    Parameters
    ----------
    folder
        The folder that contains the notebooks' folders; by default the one that contains the package in use.
    """
    modules = read_course(Path(folder) if folder else Path(tinybench.__file__).parents[1])
    if not modules:
        text = "There are no notebooks of the course here; open the map in the folder that holds 01_result."
        return Markup(f"<p>{text}</p>", text)
    return Markup(_page(modules), _plain(modules))


def sections(folder: Path | str | None = None) -> Any:
    """Show the sections of the notebook in a folder, by default the current one, with the number of passed checks."""
    here = Path(folder or ".").resolve()
    module = read_module(here / f"{here.name}.ipynb")
    if module is None:
        text = f"there is no notebook of the course in {here}"
        return Markup(f"<p>{html.escape(text)}</p>", text)
    lines = [f"{mark} {done:>2} of {len(each.checks):<2} {each.plain}" for each, done, mark in _counted(module)]
    return Markup(f'<div style="{BOX}">{_section_list(module, "")}</div>', "\n".join(lines))


def _counted(module: Module) -> Iterator[tuple[CoursePart, int, str]]:
    """Yield each section, the number of its checks that have passed, and the section's mark."""
    for each in module.sections:
        done = len(module.passed.intersection(each.checks))
        yield each, done, LOOKS[DONE if done == len(each.checks) else BEGUN if done else OPEN][0]


def _section_list(module: Module, notebook: str) -> str:
    rows = "".join(
        f'<li style="list-style:none"><span aria-hidden="true">{mark}</span> '
        f"{_link(_part(notebook, each), each.plain)} "
        f"({done} of {number_of(len(each.checks), 'check')})</li>"
        for each, done, mark in _counted(module)
    )
    return f'<ul style="margin:.2em 0;padding-left:0">{rows}</ul>'


def _part(notebook: str, section: CoursePart) -> str:
    """Return the link to a section. JupyterLab scrolls to the section; other programs only open the notebook."""
    return f"{notebook}#cell-id={section.cell}"


def _bar(share: float, color: str, label: str) -> str:
    inner = f'<div style="width:{share:.0%};height:100%;background:{color}"></div>'
    return f'<div style="{BAR}" role="img" aria-label="{label}">{inner}</div>'


def _link(target: str, text: str) -> str:
    target = os.environ.get(COLAB, "") + target
    return f'<a href="{html.escape(target)}" style="color:inherit;text-decoration:underline">{html.escape(text)}</a>'


def summary(modules: list[Module]) -> str:
    """Return a sentence on how many modules are done, the optional ones counted apart."""
    needed, optional = ([each for each in modules if each.optional == kind] for kind in (False, True))
    done, extra = (sum(each.state == DONE for each in some) for some in (needed, optional))
    of = number_of(len(needed), "module")
    told = f"all {of} done" if done == len(needed) else f"{done} of {of} done"
    return told + (f", and {extra} of {number_of(len(optional), 'optional module')}" if optional else "")


def next_step(modules: list[Module]) -> Module | None:
    """Return the module to continue with: preferably one in progress, then one not begun. None if all are done."""
    left = [module for module in modules if module.state != DONE and not module.optional]
    begun = [module for module in left if module.state == BEGUN]
    fresh = [module for module in left if module.state == OPEN]
    return next(iter([*begun, *fresh, *left]), None)


def _page(modules: list[Module]) -> str:
    needed = [module for module in modules if not module.optional]
    whole = sum(module.minutes for module in needed)
    share = 1 - sum(module.minutes_left for module in needed) / whole if whole else 0.0
    parts = [f"<p><strong>{summary(modules)}</strong></p>", _bar(share, LOOKS[DONE][1], f"{share:.0%} of the time")]
    if step := next_step(modules):
        where = step.next_section if step.state == BEGUN else None
        target = _part(_path(step), where) if where else _path(step)
        title = f"{step.number} {step.title}" + (f", section “{where.plain}”" if where else "")
        minutes = number_of(f"{step.minutes_left:.0f}", "minute")
        parts.append(f"<p>Go on with {_link(target, title)} (about {minutes})</p>")
    for tier, members in groupby(modules, key=lambda module: module.tier):
        cards = "".join(map(_card, members))
        parts.append(
            f'<h3 style="margin:.9em 0 .4em">{html.escape(tier)}</h3><div role="list" style="{GRID}">{cards}</div>'
        )
    return f'<div style="{BOX}">{"".join(parts)}</div>'


def _path(module: Module) -> str:
    return f"{module.name}/{module.name}.ipynb"


def _card(module: Module) -> str:
    mark, color = LOOKS[module.state]
    facts = [module.difficulty, f"{module.minutes} min", f"{number_of(f'{module.points:g}', 'point')}"] + [
        "optional"
    ] * module.optional
    rows = [
        f"<strong>{_link(_path(module), f'{module.number} {module.title}')}</strong>",
        f"<br><small>{html.escape(' · '.join(filter(None, facts)))}</small>",
        f'<br><span aria-hidden="true" style="color:{color};font-weight:bold">{mark}</span> '
        f"{module.state}{f': {html.escape(module.remark)}' if module.remark else ''}",
    ]
    if module.state == BEGUN:
        rows.append(_bar(len(module.passed) / len(module.checks), color, module.remark))
        rows.append(f"<details><summary>Sections</summary>{_section_list(module, _path(module))}</details>")
    return f'<div role="listitem" style="{CARD.format(color=color)}">{"".join(rows)}</div>'


def _plain(modules: list[Module]) -> str:
    lines = [f"The course: {summary(modules)}"]
    for tier, members in groupby(modules, key=lambda module: module.tier):
        lines.append(f"\n{tier}")
        for each in members:
            facts = (
                f"{each.minutes:>4} min "
                f"{number_of(f'{each.points:>3g}', 'point')}{', optional' if each.optional else ''}"
            )
            state = f"{each.state}{f': {each.remark}' if each.remark else ''}"
            lines.append(f"  {LOOKS[each.state][0]} {each.name:<14} {each.title:<52} {facts}  {state}")
    return "\n".join(lines)
