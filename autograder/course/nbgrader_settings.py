"""The course's folders and files, and nbgrader's configuration.

The instructor's data are in `course/`, and the student's working copy is in `student/`. Git ignores both folders. Only
the gradebook may be elsewhere: the environment variable ``TINYBENCH_GRADEBOOK`` can hold the address of the gradebook's
database, such as ``postgresql+psycopg://grader@db.example/tinybench``.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from traitlets.config import Config

COURSE_ID = "tinybench"
GRADEBOOK = "TINYBENCH_GRADEBOOK"
CONFIG_FILE = "nbgrader_config.py"
MODULES = "modules"
STUDENT = "student"
PACKAGE = "tinybench"
FACE = '# Written by "autograder release": the public names of your package.\n'  # starts a student's __init__.py
OK, FAILED = 0, 1  # exit codes of commands
ASSERTING = {"PYTHONOPTIMIZE": ""}  # for processes that run checks: python -O would skip their asserts
KERNELS = Path(__file__).parent  # goes into JUPYTER_PATH: the sandboxed Python kernel


def project_root(start: Path | None = None) -> Path:
    """Return the nearest course folder, from `start` upwards, or else the nearest folder published for students."""
    here = (start or Path.cwd()).resolve()
    above = (here, *here.parents)
    for folder in above:
        if (folder / MODULES).is_dir() and (folder / CONFIG_FILE).is_file():
            return folder
    if published := student_folder_above(above):
        return published
    raise FileNotFoundError(
        f"{here} is not inside a TinyBench course: no folder above it holds modules/ and nbgrader_config.py. "
        "Change into the course folder, or name it with --root."
    )


def student_folder_above(folders: Iterable[Path]) -> Path | None:
    """Return the first of these folders that contains a student's package, or None."""
    return next((folder for folder in folders if is_students(folder / PACKAGE)), None)


def is_students(package: Path) -> bool:
    """Return whether a folder is a student's package, and not the course's reference package."""
    face = package / "__init__.py"
    return face.is_file() and first_line(face) == FACE


def first_line(path: Path) -> str:
    """Return the first line of a file. In a package, this line states the origin of the file."""
    with path.open(encoding="utf-8") as file:
        return file.readline()


def with_root(command: Callable[..., int]) -> Callable[..., int]:
    """Pass the course's folder to a command as its first argument: the value of ``--root``, or `project_root()`."""

    @functools.wraps(command)
    def found(*args: Any, **options: Any) -> int:
        named = click.get_current_context().find_root().params["root"]
        return command(Path(named).resolve() if named else project_root(), *args, **options)

    return found


def configure(config: Config, root: Path) -> Config:
    """Set nbgrader's options for the course at `root` in a traitlets configuration, and return the configuration."""
    _put_environment_on_path()
    root = root.resolve()
    directory = config.CourseDirectory
    directory.course_id = COURSE_ID
    directory.root = str(root)
    directory.source_directory = MODULES
    for kept in ("release", "submitted", "autograded", "feedback", "solution", "source_with_tests"):
        directory[f"{kept}_directory"] = f"course/{kept}"
    directory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".released", "*.backup.ipynb", ".progress.json"]
    directory.db_url = gradebook_url(root)
    with suppress(OSError):  # nbgrader opens the gradebook but does not create its folder
        (root / "course").mkdir(exist_ok=True)
    config.Exchange.root = str(root / "course" / "exchange")
    config.Exchange.cache = str(root / "course" / "cache")  # nbgrader's default, in the home folder, would mix courses
    config.Exchange.path_includes_course = False
    config.ExchangeFactory.collect = "autograder.grading.collect.Collect"
    config.Exchange.assignment_dir = str(root / STUDENT)
    config.GenerateAssignment.preprocessors = [
        "nbgrader.preprocessors.LockCells",
        "autograder.course.release.StubSolutions",
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.CheckCellMetadata",
        "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.SaveCells",
        "nbgrader.preprocessors.ClearHiddenTests",
        "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    config.Autograde.autograde_preprocessors = [
        "autograder.grading.nbgrader_step.ExecuteSubmission",
        "nbgrader.preprocessors.LimitOutput",
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    config.GenerateFeedback.preprocessors = [
        "nbgrader.preprocessors.GetGrades",
        "nbgrader.preprocessors.ClearHiddenTests",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    return config


def course_config(root: Path) -> Config:
    """Return the configuration of the course at `root`, including the instructor's ``nbgrader_config.py``."""
    from traitlets.config import Config
    from traitlets.config.loader import PyFileConfigLoader

    if not (root / CONFIG_FILE).is_file():
        return configure(Config(), root)
    return PyFileConfigLoader(CONFIG_FILE, path=str(root.resolve())).load_config()


def gradebook_url(root: Path) -> str:
    """Return the address of the gradebook's database: ``TINYBENCH_GRADEBOOK``, or else an SQLite file in the course."""
    url = os.environ.get(GRADEBOOK) or f"sqlite:///{root / 'course' / 'gradebook.db'}"
    if "://" not in url:
        raise ValueError(f"{GRADEBOOK} is {url!r}; it should be an address such as postgresql+psycopg://user@host/name")
    return url


def _put_environment_on_path() -> None:
    """Add this Python environment's programs to PATH, so that nbgrader can always call `alembic` by name."""
    programs = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    if programs not in path.split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([programs, path])
