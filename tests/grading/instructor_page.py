"""Write `autograder/INSTRUCTOR.md` from real runs: ``python -m tests.grading.instructor_page write``.

A fresh course of one module, nine students, and every command as an instructor types it, with what it printed. The
words ``roster`` and ``submit`` make up the page's class in a reader's own course.
"""

from __future__ import annotations

import getpass
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

from autograder import time_limits
from autograder.course.nbgrader_settings import project_root
from autograder.course.notebook import read_notebook
from autograder.demo import ASSIGNMENT, submit, the_class
from tests.attacks.notebooks import ROOT
from tests.attacks.notebooks.inside import ATTACKS as INSIDE
from tests.attacks.notebooks.outside import ATTACKS as OUTSIDE

PAGE = ROOT / "autograder" / "INSTRUCTOR.md"
NAMES = "Ada Adams, Ben Brown, Cleo Clark, Dan Davis, Eva Evans, Finn Fox, Lea Late, Mallory Moore, Trudy Turner"
ROSTER = "id,first_name,last_name,email\n" + "".join(
    f"{first.lower()},{first},{last},{first.lower()}@example.org\n" for first, last in map(str.split, NAMES.split(","))
)
ME = getpass.getuser()
HOSTILE = {"mallory": "all_checks_edited", "trudy": "replies_forged"}
TOKEN = re.compile(r"\b[0-9a-f]{32}\b|\btoken [\w-]{20,}")


@dataclass
class Step:
    """Some words and a command; `how` runs it where a shell does not do.

    `makes` are the files that are there afterwards, as patterns below the course's folder; `says` is a part of what is
    printed.
    """

    words: str
    command: str = ""
    how: Callable[[Path, str], str] | None = None
    makes: tuple[str, ...] = ()
    says: str = ""


def run(course: Path, command: str) -> str:
    """Run a command in the course's folder, and return what it prints."""
    done = subprocess.run(
        ["bash", "-c", command], cwd=course, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )  # fmt: skip
    return done.stdout.decode()


def environment() -> dict[str, str]:
    programs = str(Path(sys.executable).parent)
    return os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


def students_submit(course: Path) -> None:
    """Submit everybody's work, one after the due date."""
    notebook = f"{ASSIGNMENT}.ipynb"
    released = read_notebook(course / "course" / "release" / ASSIGNMENT / notebook)
    source = read_notebook(course / "modules" / ASSIGNMENT / notebook)
    work = {name.partition("_")[0]: content for name, content in the_class(released, source)}
    attacks = {attack.name: attack for attack in [*INSIDE, *OUTSIDE]}
    work |= {student: attacks[name].content() for student, name in HOSTILE.items()}
    for student, content in work.items():
        _submit(course, student, content, "2030-09-30 17:20:00")
    _submit(course, "lea", work["ada"], "2030-09-30 19:15:00")
    print(f"{len(work) + 1} students have submitted {ASSIGNMENT}")


def _submit(course: Path, student: str, content: bytes, when: str) -> None:
    """Submit as `nbgrader submit` does, but at a fixed time, so that the page stays the same."""
    home = course / "course" / "homes" / student
    (home / ASSIGNMENT).mkdir(parents=True, exist_ok=True)
    (home / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").write_bytes(content)
    submit(course, student, home)
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
            ["bash", "-c", f"exec {command}"], cwd=course, env=environment(), stdout=output, stderr=output
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
        ["bash", "-c", f"exec {command}"], cwd=course, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if "Exchange" in line:
            break
    process.terminate()
    process.communicate(timeout=time_limits.wall(120))
    return "".join(lines)


def _solve(course: Path, command: str) -> str:
    """Do half of the notebook as somebody does in JupyterLab."""
    notebook = f"{ASSIGNMENT}.ipynb"
    path = course / "student" / ASSIGNMENT / notebook
    work = the_class(read_notebook(path), read_notebook(course / "modules" / ASSIGNMENT / notebook))
    path.write_bytes(dict(work)["ben_half_done"])
    return ""


# On one machine, with the name of whoever follows the page.
AS_A_STUDENT = [
    Step(
        "## Try it as a student yourself\n\n"
        "On one machine you are student and instructor in turn, under your own name; this section works before or after the others, "
        f"once `nbgrader release_assignment {ASSIGNMENT} --force` has run. A student fetches the notebook. Here `student/` is the student's folder, where it is already; "
        "`--replace` restores the files that you deleted there, and leaves all others as they are.",
        f"nbgrader fetch_assignment {ASSIGNMENT} --replace",
        makes=(f"student/{ASSIGNMENT}/{ASSIGNMENT}.ipynb",),
    ),
    Step("", "", _solve),
    Step(
        f"Open `student/{ASSIGNMENT}/{ASSIGNMENT}.ipynb` in JupyterLab (the first address that `make course` or `autograder course` prints), solve some of it, save it, and hand it in. Here the first half is solved.",
        f"nbgrader submit {ASSIGNMENT}",
        makes=(f"course/exchange/tinybench/inbound/*+{ASSIGNMENT}+*",),
        says="Submitted as: tinybench",
    ),
    Step(
        "The warning is about the untouched copy that `autograder release` keeps in `.released/`; leave the copy there.\n\n"
        "As an instructor, collect your own submission, and grade it. `$(id -un)` is your name.",
        f"nbgrader collect {ASSIGNMENT} --student $(id -un)",
        makes=(f"course/submitted/{ME}/{ASSIGNMENT}/{ASSIGNMENT}.ipynb",),
        says="Collecting submission",
    ),
    Step("", f"autograder grade {ASSIGNMENT} --student $(id -un)", makes=(f"course/autograded/{ME}/{ASSIGNMENT}",), says="1 of 1 have a grade"),
    Step("", f"autograder feedback {ASSIGNMENT} --student $(id -un)", makes=(f"course/feedback/{ME}/{ASSIGNMENT}/{ASSIGNMENT}.html",)),
    Step("", f"nbgrader release_feedback {ASSIGNMENT} --student $(id -un)", says="Feedback released to"),
    Step("As a student again, fetch the feedback, and open the page in a browser:", f"nbgrader fetch_feedback {ASSIGNMENT}"),
    Step("", f"find student/{ASSIGNMENT}/feedback -name '*.html'", makes=(f"student/{ASSIGNMENT}/feedback/*/{ASSIGNMENT}.html",), says=f"{ASSIGNMENT}.html"),
    Step(
        "To remove your practice from the gradebook:",
        "nbgrader db student remove $(id -un) --force",
        says="Removing student",
    ),
]  # fmt: skip

STEPS = [
    Step(
        "# From a roster to exported grades\n\n"
        "Every command below was run on a fresh course of one module and nine students, and its output is real; the seconds depend on "
        "the machine (`python -m tests.grading.instructor_page write` runs all of them again and rewrites this page).\n\n"
        "Start in one of two ways. `make course` releases all modules, puts them into the exchange and opens JupyterLab: leave it running, "
        "and type the commands of this page in a second terminal. Or set up the environment alone, as the README says below *Without `make`*. "
        "In both cases run the commands in the course's folder, the one with `nbgrader_config.py`, with the environment active: `source .venv/bin/activate`. "
        "The last section shows the course as a student has it.\n\n"
        "Can this machine confine strangers' code? If it cannot, `autograder grade` refuses.",
        "autograder doctor",
        says="this machine can grade submissions of strangers",
    ),
    Step("## Before the term\n\nBuild the student notebooks, and check that an untouched one earns no points, and that the reference passes every check on this machine. Name several as `01 03-05`; without a name, the command builds all modules. This also creates the gradebook. A second notebook of a number, such as `07_toolbox`, is optional: its points are a bonus. In the gradebook its cells have the maximum 0, so what a student earns there adds to the sum, and nobody's maximum grows.", f"autograder release {ASSIGNMENT}", makes=(f"course/release/{ASSIGNMENT}/{ASSIGNMENT}.ipynb", f"student/{ASSIGNMENT}/{ASSIGNMENT}.ipynb", "student/map.ipynb", "course/gradebook.db"), says="released, 0 points untouched"),
    Step("The roster is a CSV file with the columns `id`, `first_name`, `last_name`, `email`. This command writes the roster of a made-up class:", "python -m tests.grading.instructor_page roster", makes=("roster.csv",)),
    Step("", "head -3 roster.csv", says="ada,Ada,Adams,ada@example.org"),
    Step("", "nbgrader db student import roster.csv", says="Creating/updating Student with id 'trudy'"),
    Step("Write the repository that students clone and Binder starts from: notebooks, commands, and the package without the modules that students build. Commit and push it; the same command brings it up to date. `--with 01,02` gives students the references of these modules; by default they get those whose due date has passed, and those that you released before.", "autograder publish published", makes=("published/README.md", "published/map.ipynb", f"published/{ASSIGNMENT}/{ASSIGNMENT}.ipynb", "published/pyproject.toml"), says="commit and push it"),
    Step("Put the notebooks into the exchange, where students fetch them. `make course` has done this already; `--force` replaces what is there.", f"nbgrader release_assignment {ASSIGNMENT} --force", makes=(f"course/exchange/tinybench/outbound/{ASSIGNMENT}/{ASSIGNMENT}.ipynb",), says=f"Released as: tinybench {ASSIGNMENT}"),
    Step(
        "Set a due date; without one nobody is late.",
        f'nbgrader db assignment add {ASSIGNMENT} --duedate "2030-09-30 18:00:00 UTC"',
        says="2030-09-30 18:00:00 UTC",
    ),
    Step(
        "## Collect and grade\n\n"
        "Your students submit in the Assignment List or by `nbgrader submit`. This command submits for the made-up class. "
        "`ada` is right, `ben` did half, `cleo` did nothing, `dan` made four mistakes, `eva`'s code ends "
        "Python, `finn`'s file is cut off, `lea` is late, and `mallory` and `trudy` cheat.",
        "python -m tests.grading.instructor_page submit",
        makes=(f"course/exchange/tinybench/inbound/ada+{ASSIGNMENT}+*", f"course/exchange/tinybench/inbound/trudy+{ASSIGNMENT}+*"),
    ),
    Step(
        "Here one user of the system submits for nine students, so the check of owners is switched off. In a class with an account for each student, leave this option out.",
        f"nbgrader collect {ASSIGNMENT} --Collect.check_owner=False",
        makes=(f"course/submitted/ada/{ASSIGNMENT}/{ASSIGNMENT}.ipynb", f"course/submitted/trudy/{ASSIGNMENT}/{ASSIGNMENT}.ipynb"),
        says="Processing 9 submissions",
    ),
    Step("What would be graded?", f"autograder grade {ASSIGNMENT} --dry-run", says="would be graded"),
    Step(
        "Each submission runs in a sandbox and is judged from outside, on all cores of this machine; `--scheduler tcp://…` grades on a "
        "Dask cluster of several machines instead. Here the command is killed half-way (`kill -9`):",
        f"autograder grade {ASSIGNMENT}",
        _killed,
        makes=(f"course/verdicts/{ASSIGNMENT}/*.json",),
        says="Killed",
    ),
    Step("The same command continues where it stopped; nobody is graded twice:", f"autograder grade {ASSIGNMENT}", makes=("course/autograded/trudy",), says="9 of 9 have a grade"),
    Step(
        "Below the table you see what no honest submission contains. `mallory` edited the locked checks, but gained nothing: "
        "the grader used the instructor's. `trudy`'s code sent the grader forged answers, which ended the session. Neither "
        "is a verdict on a person: look at the notebook in `course/submitted/`, then decide. A changed cell can be an "
        "accident. `nbgrader collect` also warns of a folder in the exchange that another user made in a student's name "
        "(it is not collected), or that pretends to have been there before the due date. To run a submission yourself, "
        'open it in JupyterLab (`autograder course`) and first choose the kernel "Python 3 (sandbox)", which has none of your rights. '
        "The two missing points of `ada` are for a written answer, which a person grades.\n\n"
        "Changed your mind, or a check? Grade one student again:",
        f"autograder grade {ASSIGNMENT} --student dan --regrade",
        says="1 of 1 have a grade",
    ),
    Step(
        "Whose solutions are very similar? That is a hint where to look, never a mark. (All of this class began from the reference, so it is found in each.)",
        f"autograder similarity {ASSIGNMENT} --top 3",
        says="compared with each other and the reference",
    ),
    Step("Run the public tests on one student's whole package, again in the sandbox:", "autograder package --student dan", says="the student's own. Information"),
    Step(
        "## Grade by hand, and look\n\n"
        "Formgrader shows written answers and every executed notebook, with all scripts removed. `autograder course` prints its "
        "address; if `make course` is running, it has already printed the address. Formgrader's own autograde button uses the same sandbox.",
        "autograder course --no-browser --port 8899",
        _until_served,
        says="Formgrader       http://",
    ),
    Step("## Feedback\n\nOne page for each student, in nbgrader's form, without hidden checks.", f"autograder feedback {ASSIGNMENT}", makes=(f"course/feedback/dan/{ASSIGNMENT}/{ASSIGNMENT}.html", f"course/feedback/finn/{ASSIGNMENT}/{ASSIGNMENT}.html"), says="9 pages under"),
    Step(
        "What `dan` reads about his four mistakes:",
        f"grep -oh 'CheckFailed: [^<]*\\|AssertionError: [^<]*' course/feedback/dan/{ASSIGNMENT}/*.html | sort -u",
        says="2.0 divides by n",
    ),
    Step(
        "Students get theirs through the exchange, by `nbgrader fetch_feedback` or in the Assignment List:",
        f"nbgrader release_feedback {ASSIGNMENT} 2>&1 | tail -2",
        makes=("course/exchange/tinybench/feedback/*.html",),
        says="Feedback released to",
    ),
    Step(
        "## Export\n\n"
        "All grades as a table. `lea`'s timestamp is after the due date; no points are taken for that, unless you add "
        '`get_config().LateSubmissionPlugin.penalty_method = "zero"` to `nbgrader_config.py`, or a plugin of your own '
        "(nbgrader's documentation, \"Late submission plugin\").",
        "nbgrader export --to grades.csv",
        makes=("grades.csv",),
    ),
    Step("", "cut -d, -f 2-4,8-11 grades.csv", says="2030-09-30 19:15:00,lea,"),
    *AS_A_STUDENT,
]  # fmt: skip


def prepare(course: Path) -> None:
    """Lay out a fresh course of one module."""
    shutil.copytree(ROOT / "modules" / ASSIGNMENT, course / "modules" / ASSIGNMENT)
    shutil.copytree(ROOT / "tinybench", course / "tinybench", ignore=shutil.ignore_patterns("__pycache__"))
    tests = Path("tests", "tinybench")
    (course / tests).mkdir(parents=True)
    shutil.copy(ROOT / tests / "test_result.py", course / tests)
    shutil.copy(ROOT / "pyproject.toml", course)
    shutil.copy(ROOT / "nbgrader_config.py", course)


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


def main(word: str) -> None:
    """Write the page, or be its class in the course of the current folder."""
    course = project_root()
    if word == "roster":
        (course / "roster.csv").write_text(ROSTER)
        print(f"roster.csv: {ROSTER.count('@')} students")
    elif word == "submit":
        students_submit(course)
    elif word == "write":
        write()
    else:
        sys.exit(f"{word!r} is none of roster, submit, write")


if __name__ == "__main__":
    main(*sys.argv[1:])
