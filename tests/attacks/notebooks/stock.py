"""Stock nbgrader, locked up: its plain `nbgrader autograde`, in an outer sandbox so that this machine survives it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry

from autograder.sandbox.bubblewrap import Limits, Mounts, command
from autograder.sandbox.guest import linux
from autograder.sandbox.root import PROGRAM
from tests.attacks.notebooks import ROOT

CONFIG = 'c = get_config()\nc.CourseDirectory.course_id = "stock"\n'
INSIDE = Path(__file__).with_name("stock_inside.py")
COURSE, INSTALLED = "/course", "/inside/installed"
# what stands in for the machine's own memory and disk: stock nbgrader has no limits but 30 s for a cell
LIMITS = Limits(
    memory=3 * 2**30, processes=300, file_bytes=2**30, tmp_bytes=2**30, open_files=1024
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What came of `nbgrader autograde`: the gradebook and the executed notebooks if it lived so long."""

    gradebook: bytes
    notebooks: dict[str, str]
    left: int
    ending: str

    def score(self, student: str, assignment: str) -> float:
        """Return a student's points in the gradebook, 0 where it has none."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "gradebook.db"
            file.write_bytes(self.gradebook)
            return score_in(file, student, assignment) if self.gradebook else 0.0


def score_in(gradebook: Path, student: str, assignment: str) -> float:
    """Return a student's points in a gradebook's file, 0 where it has none."""
    with Gradebook(f"sqlite:///{gradebook}", "stock") as book, suppress(MissingEntry):
        return float(book.find_submission(assignment, student).score)
    return 0.0


def stock_course(root: Path, notebooks: Iterable[tuple[str, NotebookNode]]) -> None:
    """Build a course as an instructor of stock nbgrader has it, with the hidden checks in its notebooks."""
    import nbformat

    root.mkdir(parents=True, exist_ok=True)
    (root / "nbgrader_config.py").write_text(CONFIG)
    for name, notebook in notebooks:
        (root / "source" / name).mkdir(parents=True)
        nbformat.write(notebook, root / "source" / name / f"{name}.ipynb")
        nbgrader(root, "generate_assignment", name)


def nbgrader(root: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command of nbgrader in a course."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # it calls alembic by name
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=root, env=os.environ | {"PATH": path}, check=check, capture_output=True, text=True,
    )  # fmt: skip


def autograde_locked_up(template: Path, assignment: str, shown: dict[str, Path], canary: str, seconds: float) -> Run:
    """Run `nbgrader autograde` on a copy of a course in an outer sandbox; nothing in there outlives it.

    Parameters
    ----------
    template
        The course, with what was handed in.
    assignment
        What to grade.
    shown
        What else the sandbox shows.
    canary
        A secret in its environment.
    seconds
        After which it is stopped.
    """
    places = {COURSE: template, "/inside/run.py": INSIDE, "/etc/passwd": Path("/etc/passwd"), **shown}
    # a grader of the usual kind hides nothing
    places |= {f"{INSTALLED}/{name}": ROOT / name for name in ("autograder", "tinybench")}
    places["/usr/bin"] = Path("/usr/bin")
    words = [f"TINYBENCH_CANARY={canary}", f"PYTHONPATH={INSTALLED}"]
    argv = ["env", *words, PROGRAM, "/inside/run.py", COURSE, assignment]
    started, ending = time.monotonic(), ""
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(
            command(argv, Mounts(places), LIMITS),
            stdin=subprocess.DEVNULL, stdout=answer, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            while process.poll() is None and not ending:
                if time.monotonic() - started > seconds:
                    ending = f"still running after {seconds:g} s"
                elif linux.tree_memory(process.pid) > LIMITS.memory:
                    ending = "took all memory"
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
        answer.seek(0)
        content = answer.read()
    if not content:
        return Run(b"", {}, 0, ending or "everything was killed")
    report = json.loads(content)
    return Run(base64.b64decode(report["gradebook"]), report["notebooks"], report["left"], ending)


def copy_course(template: Path, target: Path) -> Path:
    """Copy a course and let another user of the system read it."""
    shutil.copytree(template, target)
    target.chmod(0o755)
    return target
