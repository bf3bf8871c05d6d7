"""What a module asks of its reader: words, lines in sight, lines to write, and minutes.

``python -m tests.notebooks.reading [NN ...]`` prints it for each module; with ``--of COMMIT``, as it was then.

The minutes are an estimate by one rule for all: prose at 200 words a minute, 3 seconds for a line of code in sight, half
a minute for each line to write (a function of ten lines takes five minutes, with mending what its check says), a minute
for each question, and 15 seconds to run and look at each other cell. All this is multiplied by `READERS`, which fits
the rule to readers: they took 27 hours for what the rule alone put at 22.9 (commit e3c24f8), and for modules 14, 15 and
16 from 1.2 to 1.6 times the rule's minutes. `RANGE` holds the shares of the estimate from the fastest to the slowest.
Optional sections count apart.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.course.notebook import (
    BEGIN_SOLUTION,
    END_SOLUTION,
    Cell,
    cells_of,
    course_notebooks,
    optional_cells,
    read_notebook,
)
from autograder.course.release import stub_solutions

ROOT = Path(__file__).resolve().parents[2]
ANSWER = re.compile(r"\b(?:answer|question)")
WORDS_A_MINUTE, SECONDS_A_LINE, MINUTES_A_LINE_WRITTEN, MINUTES_A_QUESTION, MINUTES_A_CELL = 200, 3, 0.5, 1, 0.25
READERS, RANGE = 1.18, (0.8, 1.3)
PROMISE = re.compile(r"about (\d+) minutes \((\d+) to (\d+)\)")


@dataclass(frozen=True)
class Reading:
    """What the core of a notebook asks: counts, the minutes of its optional sections, and what its header promises.

    The code is counted without imports, comments and docstrings: `given` and `written` are the exported lines that the
    student is given and writes.
    """

    words: int
    hints: int
    open_lines: int
    given: int
    written: int
    to_write: int
    questions: int
    cells: int
    optional_minutes: float
    promised: tuple[int, ...]

    @property
    def minutes(self) -> float:
        """The estimate."""
        return READERS * (
            self.words / WORDS_A_MINUTE
            + self.open_lines * SECONDS_A_LINE / 60
            + self.to_write * MINUTES_A_LINE_WRITTEN
            + self.questions * MINUTES_A_QUESTION
            + self.cells * MINUTES_A_CELL
        )


def reading(notebook: nbformat.NotebookNode) -> Reading:
    """Count what a notebook asks of its reader."""
    cells = list(cells_of(notebook))
    aside = optional_cells(cells)
    found = PROMISE.search(cells[0].source)
    optional = _count([cell for cell in cells if cell.id in aside], 0, ())
    core = [cell for cell in cells if cell.id not in aside]
    return _count(core, optional.minutes, tuple(map(int, found.groups())) if found else ())


def _count(cells: list[Cell], optional_minutes: float, promised: tuple[int, ...]) -> Reading:
    words = hints = open_lines = given = written = to_write = questions = runs = 0
    for cell in cells:
        if not cell.is_code:
            seen = re.sub(r"<details>.*?</details>", "", cell.source, flags=re.S)
            if not cell.is_written:
                words += len(seen.split())
                hints += len(cell.source.split()) - len(seen.split())
            else:
                questions += 1
            continue
        runs += not cell.is_solution
        if cell.is_export:
            mine, all_lines = code_lines(cell.source)
            written, given = written + mine, given + all_lines - mine
        if not cell.is_solution:
            open_lines += 1 if cell.is_collapsed else _lines(cell.visible)
            continue
        stub = stub_solutions(cell.source, cell.id)
        open_lines += _lines(stub)
        if ANSWER.search(cell.id):
            questions += max(1, stub.count("raise NotImplementedError"))
        else:
            to_write += _to_write(cell, stub)
    return Reading(words, hints, open_lines, given, written, to_write, questions, runs, optional_minutes, promised)


def code_lines(source: str) -> tuple[int, int]:
    """Return the lines of code in a cell's solutions and in the whole cell, without imports and docstrings."""
    apart = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    mine = total = 0
    inside = False
    for number, line in enumerate(source.splitlines(), 1):
        inside = (inside or BEGIN_SOLUTION in line) and END_SOLUTION not in line
        counts = number not in apart and bool(line.strip()) and not line.strip().startswith("#")
        total, mine = total + counts, mine + (counts and inside)
    return mine, total


def _lines(source: str) -> int:
    return sum(bool(line.strip()) for line in source.splitlines())


def _to_write(cell: Cell, stub: str) -> int:
    """Return the lines of the reference that the stubs stand for, without comments."""
    whole = [line for line in cell.code.splitlines() if line.strip() and not line.strip().startswith("#")]
    return len(whole) - _lines(stub) + stub.count("raise NotImplementedError")


def _of(commit: str, path: Path) -> nbformat.NotebookNode | None:
    name = path.relative_to(ROOT).as_posix()
    run = subprocess.run(["git", "show", f"{commit}:{name}"], cwd=ROOT, capture_output=True, text=True)
    return nbformat.reads(run.stdout, as_version=4) if run.returncode == 0 else None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="NN")
    parser.add_argument("--of", metavar="COMMIT", help="as the notebooks were in this commit")
    options = parser.parse_args()
    columns = (
        "words",
        "hints",
        "open",
        "given",
        "written",
        "share",
        "to write",
        "asked",
        "minutes",
        "optional",
        "header",
    )
    print(f"{'module':<16}" + "".join(f"{column:>9}" for column in columns))
    for path in course_notebooks(ROOT):
        if options.modules and not path.stem.startswith(tuple(options.modules)):
            continue
        notebook = _of(options.of, path) if options.of else read_notebook(path)
        if notebook is not None:
            r = reading(notebook)
            share = r.written / max(r.written + r.given, 1)
            counts = (r.words, r.hints, r.open_lines, r.given, r.written, f"{share:.0%}", r.to_write, r.questions)
            times = (f"{r.minutes:.0f}", f"{r.optional_minutes:.0f}", r.promised[0] if r.promised else "")
            print(f"{path.stem:<16}" + "".join(f"{count:>9}" for count in (*counts, *times)))


if __name__ == "__main__":
    main()
