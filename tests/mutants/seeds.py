"""The reference passes its checks whatever the seed: ``python -m tests.mutants.seeds --number 100``."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from autograder.checks import run
from autograder.checks.plain_answers import CheckFailed
from autograder.course.notebook import cells_of, course_notebooks, read_notebook
from autograder.grading.session import hidden_checks
from tests.attacks.notebooks import ROOT
from tests.attacks.page import write_part

SEED = "TINYBENCH_CHECK_SEED"


def under_seeds(path: Path, seeds: Sequence[int]) -> tuple[int, list[str]]:
    """Run every hidden check of a module that draws on its reference; return their number and the failures."""
    cells, space = cells_of(read_notebook(path)), dict[str, object]({"__name__": "__main__"})
    names = [name for cell in cells if cell.is_check for name in hidden_checks(cell.source)]
    for cell in cells:
        if cell.is_code and (cell.marks or cell.is_export) and not cell.is_check:
            exec(compile(cell.source, f"<{cell.id}>", "exec"), space)
    drawing, failures = [], []
    for name in names:
        checks = import_module(f"autograder.checks.{name.partition('.')[0]}")
        original, drawn = getattr(checks, "draw", None), list[int]()
        if original is None:
            continue
        checks.draw = lambda original=original, drawn=drawn: drawn.append(1) or original()  # type: ignore[attr-defined]
        try:
            run(name, space)
        finally:
            checks.draw = original  # type: ignore[attr-defined]
        if drawn:
            drawing.append(name)
    for name in drawing:
        for seed in seeds:
            os.environ[SEED] = str(seed)
            try:
                run(name, space)
            except CheckFailed as failure:
                failures.append(f"{name} under seed {seed}: {failure}")
    return len(drawing), failures


def seeds(number: int, modules: Sequence[str], report: Callable[[str], None]) -> str:
    """Run the drawing checks of modules under many seeds; return a paragraph on it, or raise where one fails."""
    drawn = [random.Random(index).randrange(2**31) for index in range(number)]
    total, wrong = 0, list[str]()
    paths = [path for path in course_notebooks(ROOT) if not modules or path.stem in modules]
    for path in paths:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            checks, failures = under_seeds(path, drawn)
            os.chdir(ROOT)
        total, wrong = total + checks, wrong + failures
        report(f"{path.stem}: {checks} drawing checks, {len(failures)} failures, {time.monotonic() - started:.0f} s")
    if wrong:
        raise SystemExit("\n".join(wrong))
    return (
        f"The {total} checks of the modules {paths[0].stem} to {paths[-1].stem} that draw their inputs accept the reference "
        f"under each of {number} seeds."
    )


def main() -> None:
    """Run the command of `tests/attacks/README.md`, and write its part of the page if all modules took part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="NN_name", help="only these; the page is not written then")
    parser.add_argument("--number", type=int, default=100)
    options = parser.parse_args()
    result = seeds(options.number, options.modules, lambda line: print(line, flush=True))
    print(result)
    if not options.modules:
        write_part("seeds", f"By `--number {options.number}`: {result}")


if __name__ == "__main__":
    main()
