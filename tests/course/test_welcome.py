"""What stands beside the notebooks: map, glossary, cheat sheet, and the ways in by Binder and Colab."""

from __future__ import annotations

import html
import json
import re
import subprocess
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.cli import main
from autograder.course.export import course_modules
from autograder.course.module_build import build_module
from autograder.course.notebook import course_notebooks, parse_notebook, read_notebook
from autograder.course.student_guides import PAPERS, Site, lay_out_papers, map_notebook, papers, with_colab
from tests.course.cheat_sheet import PAGE, PDF, digest, pages
from tests.course.perfect_student import hand_out
from tests.tiny_course import ROOT
from tinybench.course import backup

GITHUB = Site.of("https://github.com/uni/our-course")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://github.com/uni/our-course", "https://github.com/uni/our-course"),
        ("https://github.com/uni/our-course.git", "https://github.com/uni/our-course"),
        ("https://ada:secret@github.com/uni/our-course.git/", "https://github.com/uni/our-course"),
        ("git@github.com:uni/our-course.git", "https://github.com/uni/our-course"),
        ("ssh://git@git.example.org/group/course.git", "https://git.example.org/group/course"),
        ("https://git.example.org:8443/course", "https://git.example.org:8443/course"),
        ("file:///srv/course.git", "file:///srv/course.git"),
    ],
)
def test_an_address_is_what_others_can_clone(address: str, url: str) -> None:
    assert Site.of(address).url == url


@pytest.mark.parametrize(
    "address", ["", "/srv/course", "our-course", "https://github.com", "ftp://a.org/b", "javascript:alert(1)"]
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="no address to clone from"):
        Site.of(address)


def test_badges_lead_to_the_map() -> None:
    assert GITHUB.binder == "https://mybinder.org/v2/gh/uni/our-course/main?urlpath=lab/tree/map.ipynb"
    assert "https://colab.research.google.com/github/uni/our-course/blob/main/map.ipynb" in GITHUB.badges
    other = Site.of("https://git.example.org/group/course", "term/1")
    assert (
        other.binder
        == "https://mybinder.org/v2/git/https%3A%2F%2Fgit.example.org%2Fgroup%2Fcourse/term%2F1?urlpath=lab/tree/map.ipynb"
    )
    assert "colab" not in other.badges


def test_the_remote_of_the_folder_itself_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "published"
    inside = folder / "inside"
    inside.mkdir(parents=True)
    assert Site.of_remote(folder) is None
    subprocess.run(["git", "init", "-q", "-b", "term"], cwd=folder, check=True)
    assert Site.of_remote(folder) is None
    subprocess.run(["git", "remote", "add", "origin", "git@github.com:uni/course.git"], cwd=folder, check=True)
    assert Site.of_remote(folder) == Site("https://github.com/uni/course", "term")
    assert Site.of_remote(inside) is None
    subprocess.run(["git", "remote", "set-url", "origin", "/srv/course.git"], cwd=folder, check=True)
    assert Site.of_remote(folder) is None


@pytest.mark.parametrize("site", [None, GITHUB])
def test_the_map_is_a_notebook_that_runs(site: Site | None) -> None:
    notebook = parse_notebook(map_notebook(site, ["numpy>=2.0"]), "map")
    sources = [cell.source for cell in notebook.cells]
    assert ("mybinder.org" in sources[0]) == (site is not None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            compile(cell.source, cell.id, "exec")
    links = re.findall(r"\]\((?!https)(\S+)\)", "\n".join(sources))
    assert set(links) == set(papers()) - {"map.ipynb"}


def test_what_is_given_is_nobody_s_work(tmp_path: Path) -> None:
    lay_out_papers(tmp_path)
    given = {name for name in papers() if Path(name).suffix in backup.DOCUMENTS}
    assert given <= backup.GIVEN


def test_papers_are_written_once(tmp_path: Path) -> None:
    lay_out_papers(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    lay_out_papers(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert {path.name for path in before} == {"map.ipynb", "glossary.md", "cheat_sheet.html", "cheat_sheet.pdf"}


def colab_cell(content: bytes) -> Any:
    cell = json.loads(content)["cells"][1]
    assert cell["id"] == "colab"
    return cell


def test_the_cell_for_colab_does_nothing_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = "".join(
        colab_cell(with_colab(map_notebook(), GITHUB, ".", "map.ipynb", ["numpy>=2", "jupyterlab>=4"]))["source"]
    )
    assert "jupyterlab" not in source
    exec(compile(source, "cell", "exec"), {})
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_with_that_cell_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The set-up cell is not the first one there."""
    source = next(iter(course_notebooks(ROOT)))
    notebook = hand_out(source, tmp_path)
    notebook.write_bytes(with_colab(notebook.read_bytes(), GITHUB, source.stem, source.name, ["numpy"]))
    assert read_notebook(notebook).cells[1].id == "colab"
    monkeypatch.chdir(notebook.parent)
    assert "is now your own code" in build_module(notebook, tmp_path)


def test_every_term_is_taught_where_the_glossary_says() -> None:
    texts: dict[str, str] = {}
    for path in course_notebooks(ROOT):
        text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        texts[path.stem[:2]] = texts.get(path.stem[:2], "") + text.lower()
    terms = re.findall(
        r"^- \*\*(.+?)\*\* \((\d\d)\+?\): (\S.*\.)$", (PAPERS / "glossary.md").read_text(encoding="utf-8"), re.M
    )
    lines = (PAPERS / "glossary.md").read_text(encoding="utf-8").count("\n- ")
    assert len(terms) == lines >= 80
    assert [term for term, *_ in terms] == sorted((term for term, *_ in terms), key=str.lower)
    elsewhere = [f"{term} ({number})" for term, number, _ in terms if first_word(term) not in texts[number]]
    assert not elsewhere, "not in the notebook of that module"


def first_word(term: str) -> str:
    return re.split(r"[' ]", term.lower())[0]


def test_the_pdf_is_made_from_the_page() -> None:
    content = PDF.read_bytes()
    assert content.endswith(digest()), "run `python -m tests.course.cheat_sheet`"
    assert pages(content) == 2
    assert len(content) < 200_000


def test_the_cheat_sheet_names_what_there_is() -> None:
    import tinybench

    page = re.sub(r"<pre.*?</pre>", "", PAGE.read_text(encoding="utf-8"), flags=re.S)
    words = [re.split(r"[(.]", html.unescape(word))[0] for word in re.findall(r"<code>(.*?)</code>", page)]
    names = {word for word in words if re.fullmatch(r"[a-z]+_\w+|[A-Z]\w+", word)}
    assert len(names) > 15
    assert names <= set(tinybench.__all__)


def test_every_line_of_the_cheat_sheet_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    monkeypatch.chdir(tmp_path)
    [source] = re.findall(r'<code id="api">(.*?)</code>', PAGE.read_text(encoding="utf-8"), re.S)
    code = html.unescape(source)
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    pixels, y = load_digits(return_X_y=True)
    X = (pixels / 16).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small, large = (LogisticRegression(max_iter=60, C=C).fit(X[:900], y[:900]) for C in (0.01, 1.0))
        space = {"small": small, "large": large, "X": X[900:], "y": y[900:]}
        exec(compile(code, "cheat sheet", "exec"), space)
    assert (tmp_path / "small-int8-dynamic.onnx").is_file()


def test_module_numbers_of_the_cheat_sheet_are_right() -> None:
    """Each measurement stands with the module that exports it; a given function has no module."""
    import tinybench

    homes = {module.name: module.notebook.stem[:2] for module in course_modules(course_notebooks(ROOT)).values()}
    known = {name: homes.get(home) for home, names in tinybench._HOMES.items() for name in names}
    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td>', PAGE.read_text(encoding="utf-8"))
    assert len(rows) > 10
    for question, measure in rows:
        numbers = re.findall(r"\d\d", question.rpartition("(")[2])
        for name in re.findall(r"<code>(\w+)", measure):
            assert known[name] in (None, *numbers), (question, name)


def test_the_commands_name_the_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["publish", "--help"]) == 0
    assert "--url" in capsys.readouterr().out
