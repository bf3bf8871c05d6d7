"""Students on paper: who finishes, gives up half-way, guesses, or pastes from a forum, and what each of them sees.

``python -m tests.notebooks.student FOLDER [NN_name ...] [--as finishing]`` plays them through released notebooks in a
real kernel and writes a transcript of each: what they do, and what stands below the cell then. ``--quick`` leaves the
demonstrations out. Mistakes are the mutants of `tests.mutants`, forum answers the variants of `tests.variants`.
"""

from __future__ import annotations

import argparse
import copy
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

from autograder.course.module_build import needed_cells
from autograder.course.notebook import Cell, cells_of, read_notebook
from autograder.course.release import release_all
from autograder.course.student_package import lay_out_package, written_by
from tests.course.perfect_student import ROOT, environment
from tests.mutants import mutants
from tests.variants import variants
from tinybench.course.notebook_setup import MISSING_ADVICE, TYPE_ADVICE

MOST_LINES = 12  # of an output, in a transcript
ANSI = re.compile(r"\x1b\[[0-9;]*m")
EXPECTED = ("AssertionError", "NotImplementedError", "NotBuilt")
Attempt = tuple[str, str]  # what the student does, and the cell's source then


@dataclass
class Trial:
    """What one student did in one notebook: a transcript, checks passed, and what they would stumble over."""

    lines: list[str] = field(default_factory=list)
    passed: dict[str, bool] = field(default_factory=dict)
    explained: int = 0
    stumbles: list[str] = field(default_factory=list)
    built: bool = False

    def say(self, *lines: str) -> None:
        self.lines += lines

    def show(self, shown: list[str]) -> None:
        for text in shown:
            lines = text.rstrip().splitlines()
            kept = lines[:MOST_LINES] + ([f"… {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else [])
            self.say(*(f"    {line[:200]}" for line in kept))
        self.say("")


Writer = Callable[[Cell, Cell, bool], Iterator[Attempt]]


class Person:
    """Somebody who writes into solution cells: tries one thing after the other until the check passes."""

    def __init__(self, module: str, reference: nbformat.NotebookNode) -> None:
        self.solutions = {cell.id: cell.code for cell in cells_of(reference) if cell.is_solution}
        self.sources = {cell.id: cell.source for cell in cells_of(reference) if cell.is_solution}
        self.module, self.order = module, [cell.id for cell in cells_of(reference) if cell.is_solution]

    def attempts(self, cell: Cell) -> Iterator[Attempt]:
        """Yield what the student writes into a cell, one after the other."""
        raise NotImplementedError

    def _right(self, cell: Cell) -> Attempt:
        return "writes what is right", self.solutions[cell.id]

    def _changed(self, cell: Cell, old: str, new: str) -> str:
        changed = self.sources[cell.id].replace(old, new) if old else new
        node = copy.deepcopy(cell.node)
        node.source = changed
        return Cell.of(node).code


class Finishing(Person):
    """Makes one mistake in each cell, reads what the check says, and gets it right."""

    def attempts(self, cell: Cell) -> Iterator[Attempt]:
        for mutant in mutants(self.module):
            if mutant.cell == cell.id and not mutant.hidden:
                yield f"makes a mistake: {mutant.name}", self._changed(cell, mutant.old, mutant.new)
                break
        yield self._right(cell)


class GivingUp(Person):
    """Does the first half without a mistake, and runs the rest as it is."""

    def attempts(self, cell: Cell) -> Iterator[Attempt]:
        if self.order.index(cell.id) < len(self.order) / 2:
            yield self._right(cell)
        else:
            yield "leaves it as it is", cell.source


class Guessing(Person):
    """Puts constants where code should be, and numbers where an answer should."""

    def attempts(self, cell: Cell) -> Iterator[Attempt]:
        for guess in ("None", "0.0", "1", "(True, 10)"):
            yield f"guesses {guess}", re.sub(r"raise NotImplementedError\(.*\)", f"return {guess}", cell.source)


class Pasting(Person):
    """Pastes from a forum: first with the marks of a web page in it, then code of another style."""

    def attempts(self, cell: Cell) -> Iterator[Attempt]:
        right = self.solutions[cell.id]
        for variant in variants(self.module):
            if variant.cell == cell.id and not variant.said:
                right = self._changed(cell, variant.old, variant.new)
                break
        yield "pastes with the prompts of a shell", "\n".join(f">>> {line}" for line in right.splitlines()[:3])
        yield "pastes code of another style", right


PEOPLE: dict[str, type[Person]] = {
    "finishing": Finishing, "giving-up": GivingUp, "guessing": Guessing, "pasting": Pasting,
}  # fmt: skip


class Desk:
    """A released notebook in a kernel, cell by cell."""

    def __init__(self, notebook: nbformat.NotebookNode, folder: Path) -> None:
        private = {"transport": "ipc", "ip": f"{folder}/.kernel"}
        self.notebook, self.client = notebook, NotebookClient(
            notebook, timeout=600, kernel_name="python3", allow_errors=True,
            resources={"metadata": {"path": str(folder)}}, config=Config({"KernelManager": private}),
        )  # fmt: skip

    def run(self, cell: Cell) -> tuple[list[str], str]:
        """Run a cell; return what stands below it, and the kind of error if it ends in one."""
        node = cell.node
        node.outputs = []
        self.client.execute_cell(node, self.notebook.cells.index(node))
        shown, kind = [], ""
        for output in node.outputs:
            data = output.get("data", {})
            if output.output_type == "error":
                kind = output.ename
                shown.append(ANSI.sub("", "\n".join(output.traceback[-3:])))
            elif output.output_type == "stream":
                shown.append(output.text)
            else:
                shown.append(re.sub(r"\n\n\n+", "\n\n", "".join(data.get("text/markdown", data.get("text/plain", "")))))
        return shown, kind


def play(who: str, source: Path, released: Path, *, quick: bool) -> Trial:
    """Have one person go through a released notebook in its student's folder."""
    person, trial = PEOPLE[who](source.stem, read_notebook(source)), Trial()
    trial.say(f"# {source.stem}, {who}", "", str(person.__doc__), "")
    notebook = read_notebook(released)
    kept = {cell.id for cell in needed_cells(notebook)}
    desk = Desk(notebook, released.parent)
    waiting: list[Cell] = []
    with desk.client.setup_kernel(env=environment(released.parent)):
        for cell in cells_of(notebook):
            if not cell.is_code:
                trial.say(*(f"*{line.strip()}*\n" for line in re.findall(r"^#+ .*|<summary>(.*?)</summary>", cell.source, re.M)
                            if line.strip()))  # fmt: skip
            elif cell.is_solution:
                waiting.append(cell)
            elif cell.is_check:
                _until_it_passes(person, trial, desk, waiting, cell)
                waiting = []
            elif not quick or cell.id in kept or "autograder build" in cell.source:
                _write_all(person, trial, desk, waiting)
                trial.say(f"runs `{cell.caption or cell.id}`")
                nbformat.write(notebook, released)  # the last cell reads what was saved
                shown, kind = desk.run(cell)
                trial.show(shown)
                if kind and kind not in EXPECTED and who != "guessing" and MISSING_ADVICE not in "".join(shown):
                    trial.stumbles.append(f"{cell.id}: {shown[-1][:300]}")
                trial.built |= "is now your own code" in "".join(shown) or "every visible check" in "".join(shown)
    return trial


def _write_all(person: Person, trial: Trial, desk: Desk, cells: list[Cell]) -> None:
    """Run solution cells that no check follows yet, as the person leaves them in the end."""
    for cell in cells:
        *_, (_, source) = person.attempts(cell)
        cell.node.source = source
        desk.run(cell)


def _until_it_passes(person: Person, trial: Trial, desk: Desk, cells: list[Cell], check: Cell) -> None:
    """Try one thing after the other in each cell, and look at the check each time."""
    stubs = {cell.id: cell.node.source for cell in cells}
    plans = {cell.id: list(person.attempts(cell)) for cell in cells}
    for cell in cells:  # a mistake is made in one cell at a time, with the others as they are in the end
        cell.node.source = plans[cell.id][-1][1]
        desk.run(cell)
    tries = [(cell, attempt) for cell in cells for attempt in plans[cell.id]] or [(None, ("has nothing to write", ""))]
    for cell, (what, source) in tries:
        trial.say(f"{f'in `{cell.id}` ' if cell else ''}{what}, runs `{check.id}`")
        shown: list[str] = []
        kind = ""
        if cell:
            cell.node.source = source
            shown, kind = desk.run(cell)
        if not kind:
            shown, kind = desk.run(check)
        trial.show(shown)
        said = " ".join("".join(shown).split())
        if (
            kind
            and kind not in EXPECTED
            and TYPE_ADVICE not in said
            and source != stubs.get(cell.id if cell else "")
            and not what.startswith("pastes with")
        ):
            trial.stumbles.append(f"{check.id}, {what}: {shown[-1][-300:]}")
        trial.passed[check.id] = not kind
        trial.explained += "The solution, explained" in "".join(shown)


def course_of(folder: Path, modules: list[str]) -> Path:
    """Lay out a course in a folder, release the named modules, and return it."""
    for name in ("modules", "tinybench"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    release_all(folder, modules, verify=False, report=lambda line: None)
    return folder


def trial_of(course: Path, module: str, who: str, *, quick: bool = False) -> Trial:
    """Play one person through one module, on the references of the modules before it."""
    earlier = [name for name in set(written_by(course / "tinybench").values()) if name < module]
    with tempfile.TemporaryDirectory() as place:
        lay_out_package(course, Path(place) / "tinybench", earlier)
        shutil.copytree(course / "student" / module, Path(place) / module)
        released = Path(place) / module / f"{module}.ipynb"
        return play(who, course / "modules" / module / f"{module}.ipynb", released, quick=quick)


def main() -> int:
    """Write the transcripts, and print what each student got, and stumbled over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("modules", nargs="*", metavar="NN_name")
    parser.add_argument("--as", dest="who", choices=PEOPLE, action="append")
    parser.add_argument("--quick", action="store_true", help="leave the demonstrations out")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    known = [path.name for path in sorted((ROOT / "modules").iterdir()) if path.is_dir()]
    modules = [name for name in known if not options.modules or name.startswith(tuple(options.modules))]
    with tempfile.TemporaryDirectory() as place:
        course = course_of(Path(place), modules)
        for module in modules:
            for who in options.who or PEOPLE:
                trial = trial_of(course, module, who, quick=options.quick)
                path = options.folder / f"{module}_{who}.md"
                path.write_text("\n".join(trial.lines) + "\n", encoding="utf-8")
                right = f"{sum(trial.passed.values())} of {len(trial.passed)} checks, {trial.explained} explained"
                print(f"{module:<16} {who:<10} {right}, {'built' if trial.built else 'not built'}  {path}", flush=True)
                for stumble in trial.stumbles:
                    print(f"    {stumble}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
