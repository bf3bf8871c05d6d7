"""The map of the course: its paths, its modules, and the student's progress."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import tinybench
from tinybench.course.accessible_figures import Markup
from tinybench.course.colab import COLAB
from tinybench.course.paths import LearningPath, fitting_paths, modules_of
from tinybench.course.progress import (
    BEGUN,
    DONE,
    OPEN,
    REFERENCE,
    CoursePart,
    Module,
    next_step,
    read_course,
    read_module,
)
from tinybench.support.basics.numbers import number_of

# Each state is shown by a mark and a word as well as a colour. The colours are visible on white and on black.
LOOKS = {DONE: ("✓", "#009E73"), BEGUN: ("◐", "#0072B2"), REFERENCE: ("⇄", "#D55E00"), OPEN: ("○", "#808080")}
CARD = "border:1px solid #8888;border-left:6px solid {color};border-radius:4px;padding:.5em .8em"
BAR = "height:.6em;border-radius:.3em;background:#8886;overflow:hidden;margin:.3em 0"
GRID = "display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,17em),1fr));gap:.6em;align-items:start"
BOX = "max-width:1000px;line-height:1.45;font-family:var(--jp-ui-font-family,sans-serif);font-size:14px"


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


def _page(modules: list[Module]) -> str:
    paths = fitting_paths(modules)
    parts = [f"<p><strong>{summary(modules)}</strong></p>"]
    parts += [_path_box(path, modules, path is _followed(paths, modules)) for path in paths] or [_next(modules)]
    for tier, members in groupby(modules, key=lambda module: module.tier):
        cards = "".join(map(_card, members))
        parts.append(
            f'<h3 style="margin:.9em 0 .4em">{html.escape(tier)}</h3><div role="list" style="{GRID}">{cards}</div>'
        )
    return f'<div style="{BOX}">{"".join(parts)}</div>'


def _followed(paths: list[LearningPath], modules: list[Module]) -> LearningPath | None:
    """Return the shortest path that contains all modules that the student has begun or built."""
    begun = {module.name for module in modules if module.state in (BEGUN, DONE) and not module.optional}
    found = (path for path in paths if begun <= {module.name for module in modules_of(path, modules)})
    return next(found, paths[-1] if paths else None)


def _path_box(path: LearningPath, modules: list[Module], unfolded: bool) -> str:
    """Return a path as a tab: those of one page share a name, so that opening one closes the others."""
    members = modules_of(path, modules)
    share = 1 - sum(module.minutes_left for module in members) / max(sum(module.minutes for module in members), 1)
    links = ", ".join(_link(_path(module), f"{module.number} {module.title}") for module in members)
    own = {module.name for module in modules if module.state in (DONE, REFERENCE)}
    lend = [name[:2] for name in path.borrowed if name not in own]
    rows = [
        _bar(share, LOOKS[DONE][1], f"{share:.0%} of the time"),
        _next(members),
        f"<p>{links}</p>" if path.modules else "",
        f"<p>Borrow what you skip: <code>autograder borrow {' '.join(lend)}</code></p>" if lend else "",
        f"<p>{html.escape(path.end)}</p>",
    ]
    title = f'<summary style="padding:.4em 0"><strong>{path.title}</strong> ({path.length(members)})</summary>'
    return f'<details name="path"{" open" * unfolded}>{title}{"".join(rows)}</details>'


def _next(modules: list[Module]) -> str:
    """Return the paragraph that leads to the next step."""
    step = next_step(modules)
    if step is None:
        return ""
    where = step.next_section if step.state == BEGUN else None
    target = _part(_path(step), where) if where else _path(step)
    title = f"{step.number} {step.title}" + (f", section “{where.plain}”" if where else "")
    minutes = number_of(f"{step.minutes_left:.0f}", "minute")
    return f"<p>Go on with {_link(target, title)} (about {minutes})</p>"


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
    for path in fitting_paths(modules):
        chosen = modules_of(path, modules)
        numbers = f"{', '.join(module.number for module in chosen)}. " if path.modules else ""
        lines.append(f"{path.title} ({path.length(chosen)}): {numbers}{path.end}")
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
