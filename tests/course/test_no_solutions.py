"""Nothing that students receive holds a solution, or a hidden check."""

from __future__ import annotations

import json
import py_compile
import shutil
from pathlib import Path

import nbformat
import pytest

from autograder.course.notebook import course_notebooks, read_notebook
from autograder.course.published_repository import publish
from autograder.course.release import release_all
from autograder.course_command import fill_exchange
from tests.course.leaks import Secrets
from tests.tiny_course import ROOT, hand_in

GIVEN = "01_result"  # the instructor releases this reference
NOTEBOOKS = list(course_notebooks(ROOT))


@pytest.fixture(scope="module")
def secrets() -> Secrets:
    return Secrets(ROOT)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole course, released, published and in the exchange."""
    root = tmp_path_factory.mktemp("course")
    for name in ("modules", "tinybench"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("nbgrader_config.py", "LICENSE"):
        shutil.copy(ROOT / name, root)
    released = release_all(root, verify=False, report=lambda line: None)
    assert len(released) == len(NOTEBOOKS)
    publish(root, root / "published")
    fill_exchange(root, released)
    return root


RECEIVED = ["student", "course/release", "published", "course/exchange/tinybench/outbound"]


@pytest.mark.slow
@pytest.mark.parametrize("folder", RECEIVED)
def test_no_solution_is_handed_out(folder: str, course: Path, secrets: Secrets) -> None:
    assert len(list((course / folder).glob("*/*.ipynb"))) == len(NOTEBOOKS)
    assert secrets.within(course / folder) == []


@pytest.mark.slow
def test_only_the_named_reference_is_released(course: Path, secrets: Secrets, tmp_path: Path) -> None:
    publish(course, tmp_path, references="01")
    found = secrets.within(tmp_path)
    assert found
    assert all(line.startswith("tinybench/references/") and f": {GIVEN}/" in line for line in found)
    assert not [line for line in found if line.endswith("(hidden)")]


@pytest.mark.slow
@pytest.mark.needs("sandbox")
def test_feedback_of_an_untouched_submission(course: Path, secrets: Secrets) -> None:
    from autograder.grading.grade import feedback, grade_assignment

    untouched = (course / "course" / "release" / GIVEN / f"{GIVEN}.ipynb").read_bytes()
    hand_in(course, "ada", untouched, GIVEN)
    [outcome] = grade_assignment(course, GIVEN, workers=1, progress=False)
    assert outcome.score == 0
    [page] = feedback(course, GIVEN)
    assert "NotImplementedError" in page.read_text(encoding="utf-8")
    assert list(secrets.in_file(page)) == []


def reference(name: str) -> str:
    return (ROOT / "tinybench" / name).read_text(encoding="utf-8")


def one_function(text: str, name: str) -> str:
    return text[text.index(f"def {name}") :].partition("\n\n\n")[0]


def planted_file(folder: Path) -> None:
    (folder / "note.py").write_text(reference("timer.py"), encoding="utf-8")


def planted_function(folder: Path) -> None:
    function = one_function(reference("latency.py"), "measure_latencies")
    (folder / "note.txt").write_text("an answer\n" + function.replace("    ", "\t"), encoding="utf-8")


def planted_in_other_form(folder: Path) -> None:
    import ast

    function = one_function(reference("result.py"), "t_interval")
    (folder / "note.py").write_text("if True:\n" + "\n".join(f"    {line}" for line in ast.unparse(ast.parse(function)).splitlines()))  # fmt: skip


def planted_bytecode(folder: Path) -> None:
    source = ROOT / "tinybench" / "pareto.py"
    py_compile.compile(str(source), cfile=str(folder / "pareto.pyc"), doraise=True)


def planted_in_a_cell(folder: Path) -> None:
    cell = nbformat.v4.new_code_cell(one_function(reference("energy.py"), "measure_energy"))
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "note.ipynb")


def planted_in_an_output(folder: Path) -> None:
    shown = nbformat.v4.new_output("stream", text=one_function(reference("energy.py"), "measure_energy"))
    cell = nbformat.v4.new_code_cell("??measure_energy", outputs=[shown])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "note.ipynb")


def planted_in_json(folder: Path) -> None:
    (folder / "note.json").write_text(json.dumps({"answers": [{"x": one_function(reference("timer.py"), "calibrate_loops")}]}))  # fmt: skip


def planted_hidden_region(folder: Path) -> None:
    notebook = read_notebook(ROOT / "modules" / "03_latency" / "03_latency.ipynb")
    notebook.cells = [cell for cell in notebook.cells if "HIDDEN TESTS" in cell.source][:1]
    nbformat.write(notebook, folder / "note.ipynb")


def planted_check(folder: Path) -> None:
    shutil.copy(ROOT / "autograder" / "checks" / "m03_latency.py", folder / "note.py")


def planted_in_feedback(folder: Path) -> None:
    function = one_function(reference("timer.py"), "calibrate_loops")
    spans = " ".join(f"<span>{word.replace('<', '&lt;')}</span>" for word in function.split(" "))
    (folder / "note.html").write_text(f"<pre>{spans}</pre>", encoding="utf-8")


@pytest.mark.parametrize("plant", [v for name, v in list(globals().items()) if name.startswith("planted_")])
def test_what_is_planted_is_found(plant: object, tmp_path: Path, secrets: Secrets) -> None:
    assert callable(plant)
    plant(tmp_path)
    assert secrets.within(tmp_path) != []


def test_every_solution_would_be_found(secrets: Secrets, tmp_path: Path) -> None:
    """In the reference package each is found, but for those of the notebook that has no file."""
    found = {line.partition(": ")[2] for line in secrets.within(ROOT / "tinybench")}
    missing = {name for name in secrets.bodies if "#" in name} - found
    assert {name.partition("/")[0] for name in missing} <= {"17_olympics"}
