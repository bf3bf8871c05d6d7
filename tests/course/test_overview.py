"""The map of the course: every module from its own notebook, and how far one is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from autograder.course.notebook import cells_of, course_notebooks, optional, read_notebook
from autograder.course.student_package import give_reference, lay_out_package
from tests.tiny_course import ROOT
from tinybench.course import BUILT_BY_STUDENT, course_map, sections
from tinybench.course.overview import summary
from tinybench.course.passed_checks import PROGRESS
from tinybench.course.progress import next_step, read_course


def first_day(home: Path) -> Path:
    """Lay out every notebook of the course in a student's folder, and return it."""
    for notebook in course_notebooks(ROOT):
        (home / notebook.stem).mkdir()
        shutil.copy(notebook, home / notebook.stem)
    lay_out_package(ROOT, home / "tinybench")
    return home


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student's folder on the first day, with every notebook of the course."""
    return first_day(tmp_path_factory.mktemp("student"))


@pytest.fixture
def home(untouched: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(untouched, tmp_path / "student"))


def checks(home: Path, name: str) -> list[str]:
    return [cell.id for cell in cells_of(read_notebook(home / name / f"{name}.ipynb")) if cell.is_check]


def passed(home: Path, name: str, number: int) -> None:
    done = dict.fromkeys(checks(home, name)[:number], "2026-11-22T23:00:00")
    (home / name / PROGRESS).write_text(json.dumps({"checks": done, "of": len(checks(home, name))}))


def built(home: Path, module: str) -> None:
    (home / "tinybench" / f"{module}.py").write_text(f"{BUILT_BY_STUDENT}it.ipynb on some day.\n")


def states(home: Path) -> dict[str, str]:
    return {module.name: f"{module.state} {module.remark}".strip() for module in read_course(home)}


def test_every_header_says_what_the_map_needs(untouched: Path) -> None:
    modules = read_course(untouched)
    names = {path.stem for path in course_notebooks(ROOT)}
    assert [module.name for module in modules if not module.optional] == [
        path.stem for path in course_notebooks(ROOT) if path.stem not in optional(names)
    ]
    for module in modules:
        assert module.title, module.name
        assert module.minutes >= 15, module.name
        assert len(module.difficulty) == 4, module.name
        assert module.points > 0, module.name
        assert list(module.checks) == checks(untouched, module.name)
        assert module.state == "not begun"
    tiers = list(dict.fromkeys(module.tier for module in modules))
    assert tiers[:3] == ["Tier 1, Measure", "Tier 2, Compare", "Tier 3, Optimise"]


def test_states_and_the_next_step(home: Path) -> None:
    assert next_step(read_course(home)).name == "01_result"
    built(home, "result")
    passed(home, "02_timer", 3)
    give_reference(ROOT, home / "tinybench", "latency", "released by your instructor")
    passed(home, "17_olympics", 100)
    found = states(home)
    assert found["01_result"] == "done your tinybench.result is in use"
    assert found["02_timer"] == f"in progress 3 of {len(checks(home, '02_timer'))} checks"
    assert found["03_latency"] == "reference released by your instructor"
    assert found["04_accuracy"] == "not begun"
    assert found["17_olympics"] == "done every check has passed"
    modules = read_course(home)
    step = next_step(modules)
    assert step.name == "02_timer"
    assert checks(home, "02_timer")[3] in step.next_section.checks
    built(home, "timer")
    assert next_step(read_course(home)).name == "04_accuracy"


def test_optional_modules_are_counted_apart(home: Path) -> None:
    for name in list(states(home)):
        if name not in ("01_result", "02_timer"):
            shutil.rmtree(home / name)
    built(home, "result")
    assert summary(read_course(home)) == "1 of 2 modules done"
    toolbox = home / "02_toolbox"
    toolbox.mkdir()
    notebook = json.loads((home / "02_timer" / "02_timer.ipynb").read_text())
    notebook["cells"][0]["source"] = (
        "# 02+ · More\n\n**Tier 1, Measure** · optional · difficulty ●●●○ · about 300 minutes"
    )
    (toolbox / "02_toolbox.ipynb").write_text(json.dumps(notebook))
    assert summary(read_course(home)) == "1 of 2 modules done, and 0 of 1 optional module"
    assert [module.number for module in read_course(home)] == ["01", "02", "02+"]
    built(home, "timer")
    assert summary(read_course(home)) == "all 2 modules done, and 0 of 1 optional module"
    assert next_step(read_course(home)) is None


def test_a_later_module_appears_by_itself(home: Path) -> None:
    later = home / "18_more"
    later.mkdir()
    cells = [
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": ["# 18 · More\n", "\n", "**Tier 4, Serve** · difficulty ●●●● · about 80 minutes\n"],
        }
    ]
    (later / "18_more.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    text = str(course_map(home))
    assert text.index("Tier 4, Serve") < text.index("16_production") < text.index("17_olympics") < text.index("18_more")


def test_what_is_no_module_is_left_out(home: Path) -> None:
    before = list(states(home))
    (home / "01_result" / "mine.ipynb").write_text("{}")
    for name, text in (("20_broken", "{"), ("21_empty", '{"cells": []}'), ("22_other", "[]")):
        (home / name).mkdir()
        (home / name / f"{name}.ipynb").write_text(text)
    (home / "01_result" / PROGRESS).write_text("{")
    assert list(states(home)) == before


class Links(HTMLParser):
    """What a page links to, and whether its elements are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "br":
            self.open.append(tag)
        self.targets += [value or "" for name, value in attrs if name == "href"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_links_lead_to_notebooks_and_headings(home: Path) -> None:
    passed(home, "01_result", 2)
    page = Links(course_map(home).markup)
    assert page.open == []
    assert {target.partition("#")[0] for target in page.targets} == {f"{name}/{name}.ipynb" for name in states(home)}
    headings = {c.id for c in read_notebook(home / "01_result" / "01_result.ipynb").cells if "## " in c.source}
    places = {target.partition("#cell-id=")[2] for target in page.targets} - {""}
    assert len(places) > 5
    assert places <= headings


def test_titles_cannot_write_markup(home: Path) -> None:
    path = home / "01_result" / "01_result.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][0]["source"] = "# 01 · <script>alert(1)</script>\n\n**<b>Tier</b>** · ●○○○ · 10 minutes"
    path.write_text(json.dumps(notebook))
    assert "<script>" not in course_map(home).markup
    assert "<b>" not in course_map(home).markup


def test_on_colab_links_open_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINYBENCH_COLAB", "https://colab.research.google.com/github/uni/course/blob/main/")
    assert (
        "https://colab.research.google.com/github/uni/course/blob/main/01_result/01_result.ipynb"
        in course_map(home).markup
    )


def test_sections_of_a_notebook(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed(home, "01_result", 1)
    monkeypatch.chdir(home / "01_result")
    lines = str(sections()).splitlines()
    assert lines[0].startswith("✓  1 of 1 ")
    assert sum(int(line.split()[3]) for line in lines) == len(checks(home, "01_result"))
    assert "no notebook of the course" in str(sections(home))


def test_the_map_is_that_of_the_folder_it_runs_in(home: Path) -> None:
    command = [sys.executable, "-c", "from tinybench.course import course_map; print(course_map())"]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=True)
    assert "01_result" in done.stdout
    assert "no notebooks of the course here" in str(course_map(home / "tinybench"))
