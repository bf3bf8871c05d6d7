"""Write `autograder/INSTRUCTOR.md` from real runs: ``python -m tests.grading.instructor_page``.

A fresh course of one module, nine students, and every command as an instructor types it, with what it printed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograder import pace
from autograder.course.notebook import read_notebook
from autograder.demo import ASSIGNMENT, submit, the_class
from tests.attacks.notebooks import ROOT
from tests.attacks.notebooks.inside import ATTACKS as INSIDE
from tests.attacks.notebooks.outside import ATTACKS as OUTSIDE

PAGE = ROOT / "autograder" / "INSTRUCTOR.md"
ROSTER = """id,first_name,last_name,email
ada,Ada,Adams,ada@example.org
ben,Ben,Brown,ben@example.org
cleo,Cleo,Clark,cleo@example.org
dan,Dan,Davis,dan@example.org
eva,Eva,Evans,eva@example.org
finn,Finn,Fox,finn@example.org
lea,Lea,Late,lea@example.org
mallory,Mallory,Moore,mallory@example.org
trudy,Trudy,Turner,trudy@example.org
"""
HOSTILE = {"mallory": "all_checks_edited", "trudy": "replies_forged"}
TOKEN = re.compile(r"\b[0-9a-f]{32}\b|\btoken [\w-]{20,}")


@dataclass
class Step:
    """Some words, and the command they are about; `how` runs it where it is not simply run."""

    words: str
    command: str = ""
    how: Callable[[Path, str], str] | None = None


def run(course: Path, command: str) -> str:
    """Run a command in the course's folder, and return what it prints."""
    done = subprocess.run(
        ["bash", "-c", command], cwd=course, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )  # fmt: skip
    return done.stdout.decode()


def _environment() -> dict[str, str]:
    programs = str(Path(sys.executable).parent)
    return os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "100"}


def _students_submit(course: Path, command: str) -> str:
    """Hand everybody's work in, one after the due date."""
    notebook = f"{ASSIGNMENT}.ipynb"
    released = read_notebook(course / "course" / "release" / ASSIGNMENT / notebook)
    source = read_notebook(course / "modules" / ASSIGNMENT / notebook)
    work = {name.partition("_")[0]: content for name, content in the_class(released, source)}
    attacks = {attack.name: attack for attack in [*INSIDE, *OUTSIDE]}
    work |= {student: attacks[name].content() for student, name in HOSTILE.items()}
    for student, content in work.items():
        _submit(course, student, content, "2030-09-30 17:20:00")
    _submit(course, "lea", work["ada"], "2030-09-30 19:15:00")
    return ""


def _submit(course: Path, student: str, content: bytes, when: str) -> None:
    """Hand in as `nbgrader submit` does, but for the time, so that the page stays as it is."""
    desk = course / "course" / "desks" / student
    (desk / ASSIGNMENT).mkdir(parents=True)
    (desk / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").write_bytes(content)
    submit(course, student, desk)
    [inbound] = course.glob(f"course/exchange/*/inbound/{student}+*")
    stamp = inbound / "timestamp.txt"
    stamp.chmod(0o644)
    stamp.write_text(f"{when}.000000 UTC")
    name, assignment, _, lot = inbound.name.split("+")
    inbound.rename(inbound.with_name(f"{name}+{assignment}+{when}.000000 UTC+{lot}"))


def _killed(course: Path, command: str) -> str:
    """Kill the command as soon as it has judged three."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=course, env=_environment(), stdout=output, stderr=output
        )
        while process.poll() is None and len(list((course / "course" / "verdicts" / ASSIGNMENT).glob("*.json"))) < 3:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        output.seek(0)
        return output.read().decode() + "\nKilled"


def _until_served(course: Path, command: str) -> str:
    """Read the addresses that a server prints, then end it."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=course, env=_environment(),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if "Exchange" in line:
            break
    process.terminate()
    process.communicate(timeout=pace.wall(120))
    return "".join(lines)


STEPS = [
    Step(
        "# From a roster to exported grades\n\n"
        "Every command below was run on a fresh course of one module and nine students, and printed what you see; its "
        "seconds are those of one machine, yours will differ (`python -m tests.grading.instructor_page` runs them again and rewrites this page). Type them in the "
        "course's folder, the one with `nbgrader_config.py`, with the environment active: `source .venv/bin/activate`.\n\n"
        "Can this machine confine strangers' code? If it cannot, `autograder grade` refuses.",
        "autograder doctor",
    ),
    Step("## Before the term\n\nBuild the student notebooks, and prove that they are worth nothing untouched; this also makes the gradebook.", f"autograder release {ASSIGNMENT}"),
    Step("The roster is a CSV file with the columns `id`, `first_name`, `last_name`, `email`.", "head -3 roster.csv"),
    Step("", "nbgrader db student import roster.csv"),
    Step("Put the notebooks into the exchange, where students fetch them:", f"nbgrader release_assignment {ASSIGNMENT}"),
    Step(
        "A due date is nbgrader's; without one nobody is late.",
        f'nbgrader db assignment add {ASSIGNMENT} --duedate "2030-09-30 18:00:00 UTC"',
    ),
    Step("", "", _students_submit),
    Step(
        "## Collect and grade\n\n"
        "Nine have submitted: `ada` is right, `ben` did half, `cleo` nothing, `dan` made four mistakes, `eva`'s code ends "
        "Python, `finn`'s file is cut off, `lea` is late, and `mallory` and `trudy` want marks for nothing.",
        f"nbgrader collect {ASSIGNMENT}",
    ),
    Step("What would be done?", f"autograder grade {ASSIGNMENT} --dry-run"),
    Step(
        "Each submission runs in a sandbox and is judged from outside. Here the machine fails half-way (`kill -9`):",
        f"autograder grade {ASSIGNMENT}",
        _killed,
    ),
    Step("The same command goes on where it was. What had been judged is not judged again:", f"autograder grade {ASSIGNMENT}"),
    Step(
        "Below the table stands what no honest submission holds. `mallory` edited the locked checks; the instructor's were "
        "used, and nothing was gained. `trudy`'s code spoke to the judge in the name of the grader, which ended it. Neither "
        "is a verdict on a person: look at the notebook in `course/submitted/`, then decide. A changed cell can also be an "
        "accident. `nbgrader collect` likewise warns of a folder in the exchange that another user made in a student's name "
        "(it is not collected), or that claims to have been there before the due date. To run what somebody handed in, open it in JupyterLab (`autograder course`) and first choose the kernel "
        '"Python 3 (sandbox)": it has none of your rights.'
        " The two missing points of `ada` are for a written answer, which a person grades.\n\n"
        "Changed your mind, or a check? One student again:",
        f"autograder grade {ASSIGNMENT} --student dan --regrade",
    ),
    Step(
        "Whose solutions are much alike? A hint where to look, never a mark. (`ada` and `lea` here handed in the same.)",
        f"autograder similarity {ASSIGNMENT} --top 3",
    ),
    Step("One student's whole package against the public tests, again in the sandbox:", "autograder package --student dan"),
    Step(
        "## Grade by hand, and look\n\n"
        "Written answers wait in Formgrader; so does every executed notebook, cleaned of script. `autograder course` prints "
        "its address. Formgrader's own autograde button runs the same sandbox.",
        "autograder course --no-browser --port 8899",
        _until_served,
    ),
    Step("## Feedback\n\nOne page for each student, in nbgrader's form, without hidden checks.", f"autograder feedback {ASSIGNMENT}"),
    Step(
        "What `dan` reads about his four mistakes:",
        f"grep -oh 'CheckFailed: [^<]*\\|AssertionError: [^<]*' course/feedback/dan/{ASSIGNMENT}/*.html | sort -u",
    ),
    Step(
        "Students get theirs through the exchange, by `nbgrader fetch_feedback` or in the Assignment List:",
        f"nbgrader release_feedback {ASSIGNMENT} 2>&1 | tail -2",
    ),
    Step(
        "## Export\n\n"
        "All grades as a table. `lea`'s timestamp is after the due date; no points are taken for that, unless you add "
        '`get_config().LateSubmissionPlugin.penalty_method = "zero"` to `nbgrader_config.py`, or a plugin of your own '
        "(nbgrader's documentation, \"Late submission plugin\").",
        "nbgrader export --to grades.csv",
    ),
    Step("", "cut -d, -f 2-4,8-11 grades.csv"),
]  # fmt: skip


def prepare(course: Path) -> None:
    """Lay out a fresh course of one module."""
    shutil.copytree(ROOT / "modules" / ASSIGNMENT, course / "modules" / ASSIGNMENT)
    shutil.copytree(ROOT / "tinybench", course / "tinybench", ignore=shutil.ignore_patterns("__pycache__"))
    (course / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "test_result.py", course / "tests")
    shutil.copy(ROOT / "pyproject.toml", course)
    config = (ROOT / "nbgrader_config.py").read_text(encoding="utf-8")
    # one user of the system plays all students
    (course / "nbgrader_config.py").write_text(config + "\nget_config().ExchangeCollect.check_owner = False\n")
    (course / "roster.csv").write_text(ROSTER)


def shown(output: str, course: Path) -> str:
    """Return what a person sees of an output in the end, without this machine's paths and tokens."""
    lines = (line.rsplit("\r", 1)[-1].rstrip() for line in output.split("\n"))
    text = "\n".join(lines).strip("\n").replace(str(course), "~/course")
    for found in {str(Path(sys.executable).parent), str(ROOT)}:
        text = text.replace(found, "~/tinybench")
    return TOKEN.sub("…", text)


def write() -> None:
    """Run every step and write the page."""
    parts: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder) / "course"
        course.mkdir()
        course.chmod(0o755)
        prepare(course)
        for step in STEPS:
            print(f"$ {step.command}", flush=True)
            output = (step.how or run)(course, step.command)
            if step.words:
                parts.append(step.words)
            if step.command:
                parts.append(f"```console\n$ {step.command}\n{shown(output, course)}\n```")
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
