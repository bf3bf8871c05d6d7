"""Two evenings, a week, a semester: each path's modules need nothing that it neither holds nor borrows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from autograder.cli import main
from autograder.course.notebook import cells_of, course_notebooks, optional, read_notebook
from autograder.course.student_package import give_reference, lay_out_package
from tests.house import imports
from tests.tiny_course import ROOT
from tinybench.course import BUILT_BY_STUDENT
from tinybench.course.overview import course_map
from tinybench.course.paths import PATHS, fitting_paths, modules_of
from tinybench.course.progress import read_course

NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}
SHORT = [path for path in PATHS if path.modules]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ids = {"ids": lambda path: path.name}


def hours(name: str) -> int:
    found = [
        re.search(r"about (\d+) minutes", read_notebook(NOTEBOOKS[each]).cells[0].source) for each in members(name)
    ]
    return round(sum(int(each[1]) for each in found if each) / 60)


def members(name: str) -> list[str]:
    [path] = [path for path in PATHS if path.name == name]
    return list(path.modules) or sorted({*NOTEBOOKS} - optional(NOTEBOOKS))


@pytest.mark.parametrize("path", SHORT, **ids)
def test_a_path_needs_nothing_but_what_it_holds_and_borrows(path: Any) -> None:
    taught = {name.partition("_")[2]: name for name in NOTEBOOKS}
    left = [
        module
        for name in path.modules
        for cell in cells_of(read_notebook(NOTEBOOKS[name]))
        if cell.is_code
        for module in re.findall(r"^(?:from|import) (tinybench\.[\w.]+)", cell.source, re.M)
    ]
    needed = set()
    while left:
        module = left.pop()
        if module not in needed:
            needed.add(module)
            left += imports().get(module, set()) - {"tinybench"}
    words = {module.split(".")[1] for module in needed if module.count(".") == 1}
    here = {taught[word] for word in words if word in taught} - optional(NOTEBOOKS)
    assert here - {*path.modules} == {*path.borrowed}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, notebook in NOTEBOOKS.items():
        (tmp_path / name).mkdir()
        shutil.copy(notebook, tmp_path / name)
    lay_out_package(ROOT, tmp_path / "tinybench")
    return tmp_path


def test_the_map_offers_the_paths(home: Path) -> None:
    page = course_map(home).markup
    titles = re.findall(
        r'<details name="path"( open)?><summary[^>]*><strong>(.*?)</strong> \((\d+) modules, about (\d+) h', page
    )
    assert [(title, int(number), int(told)) for _, title, number, told in titles] == [
        (path.title, len(members(path.name)), hours(path.name)) for path in PATHS
    ]
    assert [unfolded for unfolded, *_ in titles] == [" open", "", ""]
    assert re.findall("<code>autograder borrow (.*?)</code>", page) == ["02", "02 05 06 08 10"]
    give_reference(ROOT, home / "tinybench", "timer", "borrowed")
    assert re.findall("<code>autograder borrow (.*?)</code>", course_map(home).markup) == ["05 06 08 10"]
    assert f"{PATHS[0].title} (3 modules, " in str(course_map(home))


def test_the_open_path_is_the_shortest_with_all_that_was_begun(home: Path) -> None:
    def unfolded() -> list[str]:
        return re.findall(r'<details name="path" open><summary[^>]*><strong>(.*?)</strong>', course_map(home).markup)

    for name, expected in (("latency", "Two evenings"), ("accuracy", "A week"), ("memory", "A semester")):
        (home / "tinybench" / f"{name}.py").write_text(f"{BUILT_BY_STUDENT}it.ipynb on some day.\n")
        assert unfolded() == [expected]


def test_a_class_on_a_path_sees_that_path_only(home: Path) -> None:
    for name in {*NOTEBOOKS} - {*PATHS[1].modules}:
        shutil.rmtree(home / name)
    modules = read_course(home)
    assert [path.name for path in fitting_paths(modules)] == ["evenings", "week"]
    assert [module.name for module in modules_of(PATHS[1], modules)] == list(PATHS[1].modules)


def test_release_takes_a_path(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {}

    def release_all(root: Path, assignments: Any, **options: Any) -> list[str]:
        asked.update(assignments=tuple(assignments), references=options["references"])
        return list(assignments)

    monkeypatch.setattr("autograder.course.release.release_all", release_all)
    week = PATHS[1]

    assert main(["release", "--path", "week"]) == 0
    assert asked == {"assignments": week.modules, "references": ",".join(week.borrowed)}
    assert main(["release", "--path", "semester"]) == 0
    assert asked == {"assignments": (), "references": None}
    with pytest.raises(SystemExit):
        main(["release", "--path", "week", "01"])
    assert "leave out MODULES and --with" in capsys.readouterr().err


def test_the_readme_states_each_path() -> None:
    rows = re.findall(r"^\| (?:\*\*)?([^|*]+)\*{0,2} \| `(\w+)` \| ([^|]+) \| (\d+) \| ([^|]+) \|", README, re.M)
    assert [(title, name, int(told)) for title, name, _, told, _ in rows] == [
        (path.title, path.name, hours(path.name)) for path in PATHS
    ]
    for path, (_, _, modules, _, lend) in zip(PATHS, rows, strict=True):
        assert re.findall(r"\d\d", modules) == [name[:2] for name in path.modules]
        assert re.findall(r"\d\d", lend) == [name[:2] for name in path.borrowed]
