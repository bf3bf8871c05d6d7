"""What a module asks of its reader: words, lines in sight, lines to write, and minutes.

``python -m tests.notebooks.reading [NN ...]`` prints it for each module; with ``--of COMMIT``, as it was then.

The minutes are an estimate by one rule for all, not measured with people: prose at 200 words a minute, 3 seconds for a
line of code in sight, half a minute for each line to write (a function of ten lines takes five minutes, with mending
what its check says), a minute for each question, and 15 seconds to run and look at each other cell.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.course.notebook import Cell, cells_of, course_notebooks, read_notebook
from autograder.course.release import stub_solutions

ROOT = Path(__file__).resolve().parents[2]
ANSWER = re.compile(r"\b(?:answer|question)")
WORDS_A_MINUTE, SECONDS_A_LINE, MINUTES_A_LINE_WRITTEN, MINUTES_A_QUESTION, MINUTES_A_CELL = 200, 3, 0.5, 1, 0.25


@dataclass(frozen=True)
class Reading:
    """What one notebook asks: counts, and the minutes that its header promises."""

    words: int
    hints: int
    open_lines: int
    given_lines: int
    to_write: int
    questions: int
    cells: int
    promised: int

    @property
    def minutes(self) -> float:
        """The estimate."""
        return (
            self.words / WORDS_A_MINUTE
            + self.open_lines * SECONDS_A_LINE / 60
            + self.to_write * MINUTES_A_LINE_WRITTEN
            + self.questions * MINUTES_A_QUESTION
            + self.cells * MINUTES_A_CELL
        )


def reading(notebook: nbformat.NotebookNode) -> Reading:
    """Count what a notebook asks of its reader."""
    words = hints = open_lines = given = to_write = questions = runs = 0
    for cell in cells_of(notebook):
        if not cell.is_code:
            seen = re.sub(r"<details>.*?</details>", "", cell.source, flags=re.S)
            if not cell.is_written:
                words += len(seen.split())
                hints += len(cell.source.split()) - len(seen.split())
            else:
                questions += 1
            continue
        runs += not cell.is_solution
        if not cell.is_solution:
            lines = _lines(cell.visible)
            given += 0 if not cell.is_collapsed else lines
            open_lines += 1 if cell.is_collapsed else lines
            continue
        stub = stub_solutions(cell.source, cell.id)
        open_lines += _lines(stub)
        lines = _to_write(cell, stub)
        if ANSWER.search(cell.id):
            questions += max(1, stub.count("raise NotImplementedError"))
        else:
            to_write += lines
    found = re.search(r"about (\d+) minutes", notebook.cells[0].source)
    return Reading(words, hints, open_lines, given, to_write, questions, runs, int(found[1]) if found else 0)


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
    print(
        f"{'module':<16}{'words':>7}{'hints':>7}{'open':>7}{'given':>7}{'write':>7}{'asked':>7}{'minutes':>9}{'header':>8}"
    )
    for path in course_notebooks(ROOT):
        if options.modules and not path.stem.startswith(tuple(options.modules)):
            continue
        notebook = _of(options.of, path) if options.of else read_notebook(path)
        if notebook is not None:
            r = reading(notebook)
            print(
                f"{path.stem:<16}{r.words:>7}{r.hints:>7}{r.open_lines:>7}{r.given_lines:>7}{r.to_write:>7}"
                f"{r.questions:>7}{r.minutes:>9.0f}{r.promised:>8}"
            )


if __name__ == "__main__":
    main()
