"""Modules are named in one way everywhere: by number, name and range; a message has everything that is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from autograder.cli import main
from autograder.course.module_prerequisites import needed_notebooks
from autograder.course.notebook import chosen
from autograder.course.student_package import lay_out_package, status, written_by
from tests.course.test_references import release, two, two_once  # noqa: F401
from tests.test_options import COMMANDS
from tests.tiny_course import ROOT
from tinybench.course import BUILT_BY_STUDENT, REFERENCE_OF

KNOWN = ("01_result", "02_timer", "05_memory", "06_energy", "07_comparison", "07_toolbox")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("01 02 05-07", KNOWN),
        ("1,2,5-7", KNOWN),
        ("01-07", KNOWN),
        ("timer-energy", KNOWN[1:4]),
        ("02_timer", KNOWN[1:2]),
        ("7", KNOWN[4:]),
        ("toolbox 01", ("01_result", "07_toolbox")),
        ("", ()),
    ],
)
def test_words_name_modules(words: str, found: tuple[str, ...]) -> None:
    assert chosen(words.split(), KNOWN) == list(found)


@pytest.mark.parametrize("words", [["03"], ["01-"], ["x"], [""], ["07-05"], ["01_"], ["1-9"], ["01", "8", "x,02", "y"]])
def test_every_word_that_names_none_is_in_the_message(words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"no module is called .*; there are 01_result, 02_timer") as refused:
        chosen(words, KNOWN)
    wrong = [part for word in words for part in word.split(",") if part not in ("01", "02")]
    assert all(repr(part) in str(refused.value) for part in wrong)


# What a command prints that takes both modules of a course; "one" takes a single one.
BOTH = {
    "export": "3 files",
    "release": "2 assignments are in student/",
    "publish": "references: 01_tiny, 02_last",
    "build": "02_last",
    "borrow": "02_last: reference, borrowed",
    "grade": "02_last: nothing",
    "feedback": "02_last: no feedback",
    "similarity": "one",
}
WAYS = ("1 2", "01-02", "1,2", "tiny last", "01_tiny 02_last")  # each command is called in one of them


def taking_modules() -> list[str]:
    """Return the commands of which an argument or option is said to be modules."""
    words = ("MODULES", "NN_name")
    return [
        name.removeprefix("autograder ")
        for name, command in COMMANDS.items()
        if any(word in (param.make_metavar(click.Context(command)) or "") for param in command.params for word in words)
    ]


def test_every_command_that_takes_modules_is_tried() -> None:
    assert {*taking_modules()} == {*BOTH}


@pytest.mark.parametrize(("command", "way"), zip(BOTH, 2 * WAYS, strict=False))
def test_every_command_takes_them(
    command: str,
    way: str,
    two: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    release(two)
    root = two / "student" if command in ("build", "borrow") else two
    words = [command, *way.split()]
    if command == "release":
        words.append("--no-verify")
    if command == "publish":
        words = [command, str(tmp_path_factory.mktemp("site") / "new"), "--with", ",".join(way.split())]
    if BOTH[command] == "one":
        with pytest.raises(SystemExit, match="2"):
            main(["--root", str(root), *words])
        assert "of one assignment: 01_tiny or 02_last" in capsys.readouterr().err
        return
    code = main(["--root", str(root), *words])
    told = capsys.readouterr()
    assert BOTH[command] in told.out + told.err
    assert code == (command in ("build", "grade", "feedback"))  # nothing is solved, collected or graded here
    if command in ("grade", "feedback"):
        assert "01_tiny: " in told.err, "the problems of all are in one message"


def needing(package: Path) -> dict[str, list[str]]:
    return needed_notebooks(ROOT / "tinybench", written_by(package))


IMPORT_ALL = """
import importlib, json, sys
for folder, modules in json.loads(sys.argv[1]).items():
    sys.path.insert(0, folder)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tinybench"]:
        del sys.modules[name]
    for name in modules:
        assert importlib.import_module(f"tinybench.{name}").__file__.startswith(folder)
"""


def test_what_a_module_needs_is_what_its_import_takes(tmp_path: Path) -> None:
    """A package that holds the references of one notebook and of those it needs, and no others, imports its modules."""
    written, wanted = written_by(ROOT / "tinybench"), {}
    for notebook, needs in needing(ROOT / "tinybench").items():
        lay_out_package(ROOT, tmp_path / notebook / "tinybench", [notebook, *needs])
        wanted[str(tmp_path / notebook)] = [name for name, home in written.items() if home == notebook]
    command = [sys.executable, "-c", IMPORT_ALL, json.dumps(wanted)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_one_message_has_all_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "tinybench"
    lay_out_package(ROOT, package, ["01_result"])
    command = [sys.executable, "-c", "from tinybench.course import announce\nannounce('result', 'timer', 'suite')\nimport tinybench.comparison"]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    missing = ["02_timer", *(name for name in needing(package)["10_suite"] if name > "02"), "10_suite"]
    assert done.stdout.count("autograder borrow") == 1
    assert done.stdout.rstrip().endswith(f"autograder borrow {' '.join(sorted({*missing}))}")
    assert done.stderr.rstrip().endswith("autograder borrow 02_timer 03_latency 07_comparison")
    assert main(["--root", str(tmp_path), "borrow", "7", "10"]) == 1
    told = capsys.readouterr().err
    assert all(name in told for name in missing), "without references in the folder, all of them have to be asked for"


def test_borrow_says_what_is_needed_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    student = tmp_path / "student"
    (tmp_path / "modules").mkdir()
    (tmp_path / "tinybench").symlink_to(ROOT / "tinybench")
    lay_out_package(ROOT, student / "tinybench")
    assert main(["--root", str(student), "borrow", "05-06"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[-1].endswith("autograder borrow 01_result 02_timer 03_latency")
    assert main(["--root", str(student), *told.splitlines()[-1].split("autograder ")[1].split()]) == 0
    assert "needed as well" not in capsys.readouterr().out
    own = student / "tinybench" / "timer.py"
    own.write_text("# mine\n")
    assert main(["--root", str(student), "borrow", "01", "02", "05-07"]) == 0
    assert "kept: 02_timer; --force" in capsys.readouterr().out
    assert dict(status(student))["07_comparison"].startswith("reference, borrowed on ")
    assert own.is_file()


def test_modules_that_the_course_no_longer_has_are_removed(tmp_path: Path) -> None:
    package = tmp_path / "tinybench"
    lay_out_package(ROOT, package, ["01_result"])
    files = {
        package / "gone.py": f"{BUILT_BY_STUDENT}01_result.ipynb\n",
        package
        / "references"
        / "gone.py": f"{REFERENCE_OF}01_result, released by your instructor: yours comes first\n",
        package / "mine.py": "# notes of my own\n",
        package / "result.py": f"{BUILT_BY_STUDENT}01_result.ipynb\n",
    }
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    lay_out_package(ROOT, package, ["01_result"])
    assert [path.is_file() for path in files] == [False, False, True, True]
    assert (package / "references" / "result.py").is_file()
