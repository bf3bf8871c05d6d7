"""The tests of what a change touches, nearest first, as many as fit into ``make quick``: ``python -m tests.touched``.

The change is what differs from the last commit; without a difference, the last commit. A test file is as near as the
number of imports that lead from it to a changed file. How long files take is known from earlier runs (`tests.took`).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests import house
from tests.took import took

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (*house.PACKAGES, "tests")
SECONDS = 60.0  # of the two minutes; the rest is for lint, for starting, and for what takes longer than last time
UNKNOWN = 12.0  # of a file that has not run here yet
OF_MODULE = re.compile(r"\bm?(\d\d_[a-z]+)\.(?:ipynb|py|md)$")
# The tests that have a case for each module, by the notebook's name.
EACH_MODULE = (
    "tests/mutants/test_mutants.py::test_a_wrong_solution_of_each_cell_fails", "tests/notebooks/test_nbval.py::test_notebook_runs",
    "tests/attacks/notebooks/test_honest.py::test_the_reference_passes_and_an_untouched_notebook_does_not",
)  # fmt: skip
# Where the files of a folder are not imported, the tests that read them.
READ_BY = {
    "README.md": "tests/documents", "CONTRIBUTING.md": "tests/documents", "docs/": "tests/documents",
    "autograder/INSTRUCTOR.md": "tests/documents", "autograder/leaderboard/web/": "tests/leaderboard",
    "autograder/course/": "tests/course", "binder/": "tests", "tests/vendor/": "tests/leaderboard",
}  # fmt: skip


def changed() -> list[str]:
    """Return the files that differ from the last commit, or those of the last commit."""

    def files(*command: str) -> list[str]:
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    found = {*files("diff", "--name-only", "HEAD"), *files("ls-files", "--others", "--exclude-standard")}
    return sorted(found or {*files("diff", "--name-only", "HEAD~1", "HEAD")})


def importers() -> dict[str, set[str]]:
    """Return, for each file of the packages, the files that import it."""
    names = {house.module(path): str(path.relative_to(ROOT)) for path in house.files(*PACKAGES)}
    found: dict[str, set[str]] = defaultdict(set)
    for name, others in house.imports(packages=PACKAGES).items():
        for other in others:
            found[names[other]].add(names[name])
    return found


def distances(files: Sequence[str], graph: dict[str, set[str]]) -> dict[str, int]:
    """Return how many imports lead from each file to a changed one."""
    far, ring = dict.fromkeys(files, 0), set(files)
    while ring:
        ring = {user for file in ring for user in graph.get(file, ()) if user not in far}
        far.update(dict.fromkeys(ring, max(far.values()) + 1))
    return far


def touched(files: Sequence[str]) -> list[str]:
    """Return the tests that a change of these files touches, nearest first."""
    first: dict[str, None] = {}
    for file in files:
        if module := OF_MODULE.search(file):
            first.update((f"{test}[{module[1]}]", None) for test in EACH_MODULE)
        for folder, tests in READ_BY.items():
            if file.startswith(folder) and not file.endswith(".py"):
                first.update((str(path.relative_to(ROOT)), None) for path in sorted((ROOT / tests).glob("test_*.py")))
    far = distances(files, importers())
    own = {f"test_{Path(file).stem}.py" for file in files}
    found = (file for file in far if re.search(r"(?:^|/)test_\w+\.py$", file))
    near = sorted(found, key=lambda file: (far[file], Path(file).name not in own, file))
    return [*first, *(file for file in near if (ROOT / file).exists())]


def fitting(tests: Sequence[str], seconds: float) -> list[str]:
    """Return as many of the tests, from the first on, as two workers run in so many seconds."""
    walls: dict[str, float] = defaultdict(float)
    for test, (wall, _) in took().items():
        walls[test] += wall
        walls[test.partition("::")[0]] += wall
    chosen, used = list[str](), 0.0
    for test in tests:
        needs = walls.get(test, UNKNOWN)
        if (needs <= seconds and used + needs <= 2 * seconds) or not chosen:  # one worker runs the whole file
            used += needs
            chosen.append(test)
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests that fit, and say which do not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long the tests may take ({SECONDS:g})")
    parser.add_argument("--list", action="store_true", help="only name the tests")
    options = parser.parse_args(arguments)
    files = changed()
    tests = touched(files)
    chosen = fitting(tests, options.seconds)
    later = len(tests) - len(chosen)
    print(
        f"files changed: {len(files)}; test files that they touch: {len(tests)}; run now: {len(chosen)}"
        + f"; left to `make test`: {later}" * bool(later)
    )
    if options.list or not chosen:
        print(*chosen, sep="\n")
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", "not audit", *chosen]
    status = subprocess.run(command, cwd=ROOT).returncode
    return 0 if status == 5 else status  # 5: all of the files' tests belong to the audit


if __name__ == "__main__":
    sys.exit(main())
