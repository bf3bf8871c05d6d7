"""Two mistakes at once: what a later check says if an earlier piece is wrong, as a student reads it.

``python -m tests.mutants.pairs [NN_name ...]`` plays each mutant of `tests.mutants` in a student's notebook, with all
later pieces right, and with each mutant of a later piece. It prints what each later check says that fails, and counts
the messages that blame a later piece before they name the earlier one. ``--only CELL`` takes the mutants of some cells,
``--short`` one mutant of each.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from autograder.course import sealed_solutions
from autograder.course.assignment import Assignment
from autograder.course.module_build import needed_cells
from autograder.course.notebook import Cell, cells_of, course_notebooks, optional, read_notebook
from autograder.course.student_package import lay_out_package
from tests.course.perfect_student import ROOT, environment, solved
from tests.mutants import Mutant, mutants
from tinybench.course import passed_checks, unpassed_pieces

ANSI = re.compile(r"\x1b\[[0-9;]*m")
FOLDER = re.compile(rf"{re.escape(tempfile.gettempdir())}/\w+")  # which has another name in each run


@dataclass(frozen=True)
class Said:
    """What one check says after one or two mistakes.

    Attributes
    ----------
    earlier, later
        The mutants; `later` is empty where all later pieces are right.
    own
        The check of the earlier piece.
    ticked
        Whether that check passed all the same.
    check
        The check that failed.
    text
        What the student reads.
    alone
        What the student reads if only the later piece is wrong.
    """

    earlier: str
    later: str
    own: str
    ticked: bool
    check: str
    text: str
    alone: str = ""

    @property
    def names_the_earlier(self) -> bool:
        """Whether the message names the earlier check before it says anything else, or has nothing to do with it."""
        first = self.text.partition("The following error")[0]
        return self.own in first or self.text == self.alone or "NotImplementedError: write" in self.text


def plain(text: str) -> str:
    """Return a message without colours and without the names of temporary folders."""
    return FOLDER.sub("(a temporary folder)", ANSI.sub("", text))


class Notebook:
    """A module's notebook in an IPython of its own, in a student's folder, with its reference run once."""

    def __init__(self, module: str) -> None:
        source = ROOT / "modules" / module / f"{module}.ipynb"
        self.cells = list(needed_cells(solved(source)))
        self.order = {cell.id: number for number, cell in enumerate(self.cells)}
        self.sources = {cell.id: cell.source for cell in cells_of(read_notebook(source))}
        config = Config({"HistoryManager": {"enabled": False, "hist_file": ":memory:"}})
        self.shell = InteractiveShell.instance(config=config)
        self.shown: list[str] = []
        self.shell._showtraceback = lambda kind, error, lines: self.shown.append(plain("\n".join(lines)))
        wrong = {check: text for check, text in self.run(self.cells).items() if text}
        assert not wrong, f"the reference itself fails: {wrong}"
        self.marks = Path(passed_checks.PROGRESS).read_text(encoding="utf-8")
        self.pieces = passed_checks.about(passed_checks.read_sealed())

    def run(self, cells: Sequence[Cell], changed: dict[str, str] | None = None) -> dict[str, str]:
        """Run cells, some of them with another source; return what each check shows, empty if it passes."""
        said: dict[str, str] = {}
        for cell in cells:
            self.shown.clear()
            with contextlib.redirect_stdout(io.StringIO()):
                result = self.shell.run_cell((changed or {}).get(cell.id, cell.source), store_history=False)
            if cell.is_check:
                said[cell.id] = "" if result.success else "\n".join(self.shown) or "(nothing)"
            elif not result.success:
                raise RuntimeError(f"{cell.id} does not run: {self.shown}")
        return said

    def after(self, cell: str) -> list[Cell]:
        return self.cells[self.order[cell] :]

    def check_of(self, cell: str) -> Cell:
        return next(each for each in self.after(cell) if each.is_check)

    def changed(self, mutant: Mutant) -> dict[str, str]:
        kept = next(each for each in self.cells if each.id == mutant.cell)
        source = self.sources[mutant.cell]
        assert source.count(mutant.old) == 1
        lines = source.replace(mutant.old, mutant.new).splitlines()
        return {kept.id: "\n".join(line for line in lines if not line.strip().startswith(("### BEGIN", "### END")))}

    def restore(self, cell: str, changed: dict[str, str] | None = None) -> None:
        """Define again all that a cell and those after it define, without their checks."""
        self.run([each for each in self.after(cell) if not each.is_check], changed)

    def depends(self, check: Cell, other: Cell) -> bool:
        """Whether a check may run what another one judges."""
        used = unpassed_pieces.pieces_used(check.source, self.shell.user_ns)
        return bool(used.intersection(self.pieces[other.id]["pieces"]))


def two_mistakes(notebook: Notebook, wrong: list[Mutant]) -> Iterator[Said]:
    """Yield what later checks say after each earlier mistake, and after each pair of mistakes."""
    alone: dict[str, str] = {}
    for mutant in wrong:
        check = notebook.check_of(mutant.cell)
        between = [each for each in notebook.after(mutant.cell) if not each.is_check or each.id == check.id]
        alone[mutant.name] = notebook.run(between, notebook.changed(mutant))[check.id]
        notebook.restore(mutant.cell)
        Path(passed_checks.PROGRESS).write_text(notebook.marks, encoding="utf-8")
    for earlier in wrong:
        own, change = notebook.check_of(earlier.cell), notebook.changed(earlier)
        said = notebook.run(notebook.after(earlier.cell), change)
        ticked = not said.pop(own.id)
        standing = Path(passed_checks.PROGRESS).read_text(encoding="utf-8")
        for check, text in said.items():
            if text:
                yield Said(earlier.name, "", own.id, ticked, check, text)
        for later in wrong:
            check = notebook.check_of(later.cell)
            if notebook.order[later.cell] < notebook.order[own.id] or not notebook.depends(check, own):
                continue
            both = change | notebook.changed(later)
            between = [each for each in notebook.after(later.cell) if not each.is_check or each.id == check.id]
            text = notebook.run(between[: between.index(check) + 1], both)[check.id]
            if text:
                yield Said(earlier.name, later.name, own.id, ticked, check.id, text, alone[later.name])
            notebook.restore(later.cell, change)
            Path(passed_checks.PROGRESS).write_text(standing, encoding="utf-8")
        notebook.restore(earlier.cell)
        Path(passed_checks.PROGRESS).write_text(notebook.marks, encoding="utf-8")


def play(module: str, *words: str) -> list[Said]:
    """Play the mistakes of a module in a process whose package is the student's; return what failing checks say.

    `words` are those of the command that choose mutants.
    """
    source = ROOT / "modules" / module / f"{module}.ipynb"
    names = [path.stem for path in course_notebooks(ROOT)]
    with tempfile.TemporaryDirectory() as place:
        lay_out_package(
            ROOT, Path(place, "tinybench"), [name for name in set(names) - optional(names) if name < module]
        )
        folder = Path(place, module)
        folder.mkdir()
        Assignment.read(source).lay_out(folder)
        sealed_solutions.write_sealed(source, folder)
        command = [sys.executable, "-m", __spec__.name, module, "--inside", *words]
        variables = environment(folder)
        variables["PYTHONPATH"] += f":{ROOT}"
        run = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{module}: {run.stderr[-2000:]}")
    return [Said(**json.loads(line)) for line in run.stdout.splitlines() if line.startswith("{")]


def main() -> int:
    """Print what students read after two mistakes, and count what blames the later piece first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="NN_name")
    parser.add_argument("--short", action="store_true", help="one mutant of each cell")
    parser.add_argument("--only", metavar="CELL", action="append", help="the mutants of this cell")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        (module,) = options.modules
        wrong = [mutant for mutant in mutants(module) if not options.only or mutant.cell in options.only]
        if options.short:
            wrong = list({mutant.cell: mutant for mutant in reversed(wrong)}.values())[::-1]
        for said in two_mistakes(Notebook(module), wrong):
            print(json.dumps(asdict(said)), flush=True)
        return 0
    words = [*(["--short"] if options.short else []), *(f"--only={cell}" for cell in options.only or ())]
    bad = 0
    for module in options.modules or [path.stem for path in course_notebooks(ROOT)]:
        found = play(module, *words)
        for said in found:
            mark = " " if said.names_the_earlier else "!"
            print(
                f"{mark} {module}: {said.earlier} + {said.later or 'right'}, {said.check}: {said.text.splitlines()[0]}"
            )
        wrong_blame = [said for said in found if not said.names_the_earlier]
        bad += len(wrong_blame)
        print(
            f"{module}: {len(found)} messages after an earlier mistake, {len(wrong_blame)} blame a later piece first",
            flush=True,
        )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
