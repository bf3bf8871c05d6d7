"""Saving one's work and taking it up again: all of it, nothing else, and nothing lost or written elsewhere."""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.cli import main
from autograder.course.nbgrader_settings import FACE
from tinybench.course import backup, passed_checks
from tinybench.course.pieces import BUILT_BY_STUDENT, REFERENCE_OF

OWN = f"{BUILT_BY_STUDENT}01_result.ipynb on 2026-01-01 10:00.\nmine = 1\n"


def lay_out(home: Path) -> Path:
    """A course as it was handed out."""
    files = {
        "01_result/01_result.ipynb": "handed out",
        "01_result/.released/01_result.ipynb": "handed out",
        "01_result/times.csv": "1,2",
        "02_timer/02_timer.ipynb": "handed out too",
        "02_timer/.released/02_timer.ipynb": "handed out too",
        "tinybench/__init__.py": f"{FACE}\nimport_module('u').install({{'result': '01_result', 'timer': '02_timer'}})\n",
        "tinybench/support/basics/table.py": "# by hand\n",
        "tinybench/references/timer.py": f"{REFERENCE_OF}02_timer, released: yours first.\n",
        "map.ipynb": "the map",
        "glossary.md": "words",
    }
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return home


WORK = {
    "01_result/01_result.ipynb": "solved",
    "01_result/.progress.json": '{"checks": {"check_values": "now"}, "of": 13}',
    "01_result/figures/first.svg": "<svg/>",
    "tinybench/result.py": OWN,
    "notes.md": "what I learned",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A course on which somebody has worked."""
    home = lay_out(tmp_path / "course")
    for name, text in WORK.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    return home


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "fresh")


def contents(home: Path) -> dict[str, bytes]:
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_work_and_nothing_else_is_saved(home: Path, tmp_path: Path) -> None:
    for name in ("01_result/.ipynb_checkpoints/01_result.ipynb", "01_result/__pycache__/a.pyc", ".venv/lib/a.py"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("no work")
    backup.save(tmp_path / "work.zip", home)
    with zipfile.ZipFile(tmp_path / "work.zip") as archive:
        assert set(archive.namelist()) == {*WORK, "01_result/times.csv"}


def test_published_files_that_are_unchanged_are_left_out(home: Path, tmp_path: Path) -> None:
    from autograder.course.published_repository import MANIFEST, _digest

    assert backup.MANIFEST == MANIFEST
    (home / MANIFEST).write_text(json.dumps({"01_result/times.csv": _digest(b"1,2")}))
    backup.save(tmp_path / "work.zip", home)
    with zipfile.ZipFile(tmp_path / "work.zip") as archive:
        assert set(archive.namelist()) == {*WORK}


def test_work_is_restored_elsewhere(home: Path, fresh: Path, tmp_path: Path) -> None:
    before = contents(fresh)
    backup.save(tmp_path / "work.zip", home)
    said = str(backup.restore(tmp_path / "work.zip", fresh))
    after = contents(fresh)
    for name, text in WORK.items():
        assert after.pop(name) == text.encode()
    [kept] = [name for name in after if name.startswith("before-restore-")]
    assert kept in said
    with zipfile.ZipFile(fresh / kept) as archive:
        assert archive.namelist() == ["01_result/01_result.ipynb"]
        assert archive.read("01_result/01_result.ipynb") == b"handed out"
    del after[kept], before["01_result/01_result.ipynb"]
    assert after == before


def test_what_was_replaced_can_be_restored_in_turn(home: Path, fresh: Path, tmp_path: Path) -> None:
    backup.save(tmp_path / "work.zip", home)
    backup.restore(tmp_path / "work.zip", fresh)
    backup.restore(next(fresh.glob("before-restore-*.zip")), fresh)
    assert (fresh / "01_result" / "01_result.ipynb").read_text() == "handed out"


def test_running_all_cells_changes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    shown = backup.save(folder=home)
    [saved] = home.glob("my-work-*.zip")
    assert f'href="{saved.name}" download="{saved.name}"' in shown.markup
    before = contents(home)
    assert "is here already" in str(backup.restore(folder=home))
    assert contents(home) == before


def test_the_newest_file_is_taken(home: Path, fresh: Path) -> None:
    assert "drag yours into the list of files" in str(backup.restore(folder=fresh))
    for age, text in enumerate(("new", "old")):
        file = fresh / f"my-work-{text}.zip"
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("notes.md", text)
        os.utime(file, (1e9 - age, 1e9 - age))
    backup.restore(folder=fresh)
    assert (fresh / "notes.md").read_text() == "new"


def test_nothing_to_save_is_said(fresh: Path, tmp_path: Path) -> None:
    (fresh / "01_result" / "times.csv").unlink()
    (fresh / "tinybench" / "timer.py").write_text(f"{REFERENCE_OF}02_timer, borrowed: yours first.\n")
    assert "nothing of yours to save yet" in str(backup.save(tmp_path / "work.zip", fresh))
    assert not (tmp_path / "work.zip").exists()
    with pytest.raises(FileNotFoundError, match="holds 01_result"):
        backup.save(folder=tmp_path / "elsewhere")


def test_a_file_too_large_is_named(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "MAX_FILE", 20)
    (home / "notes.md").write_text("x" * 21)
    said = str(backup.save(tmp_path / "work.zip", home))
    assert said.rstrip(".").endswith("01_result/.progress.json, tinybench/result.py, notes.md")


def packed(*files: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return stream.getvalue()


def link(name: str, target: str) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, target.encode()


def lying(declared: int) -> bytes:
    """A file that says it is smaller than it is, in both of its headers."""
    data = bytearray(packed(("notes.md", b"0" * 10**6)))
    for start, place in ((data.index(b"PK\x03\x04"), 22), (data.index(b"PK\x01\x02"), 24)):
        struct.pack_into("<I", data, start + place, declared)
    return bytes(data)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "up": lambda: packed(("../outside.md", b"")),
    "up within": lambda: packed(("01_result/../../outside.md", b"")),
    "absolute": lambda: packed(("/tmp/outside.md", b"")),
    "a drive": lambda: packed(("C:/outside.md", b"")),
    "back": lambda: packed(("01_result\\..\\..\\outside.md", b"")),
    "dot": lambda: packed(("./notes.md", b"")),
    "hidden": lambda: packed(("01_result/.git/hooks/post-checkout", b"")),
    "settings": lambda: packed((".bashrc", b"")),
    "tools": lambda: packed(("autograder/cli.py", b"")),
    "handwritten": lambda: packed(("tinybench/support/basics/table.py", b"")),
    "face": lambda: packed(("tinybench/__init__.py", b"")),
    "a reference": lambda: packed(("tinybench/references/timer.py", b"")),
    "the map": lambda: packed(("map.ipynb", b"")),
    "a program": lambda: packed(("numpy.py", b"")),
    "link": lambda: packed(link("01_result/link.md", "/etc/passwd")),
    "link, then file": lambda: packed(link("01_result/away", "/tmp"), ("01_result/away/outside.md", b"")),
    "a file and its folder": lambda: packed(
        ("01_result/01_result.ipynb", b"!"), ("01_result/q", b""), ("01_result/q/x.md", b"")
    ),
    "a folder and its file": lambda: packed(("01_result/Q/x.md", b""), ("01_result/q", b"")),
    "under a file that is there": lambda: packed(("notes.md", b"!"), ("01_result/01_result.ipynb/x.md", b"")),
    "deep": lambda: packed(("notes.md", b"!"), ("01_result/" + "a/" * 1500 + "x.md", b"")),
    "a long name": lambda: packed(("notes.md", b"!"), ("01_result/" + "ä" * 120 + ".md", b"")),
    "twice": lambda: packed(("Notes.md", b"1"), ("notes.md", b"2")),
    "many": lambda: packed(*((f"01_result/{number}.md", b"") for number in range(backup.MAX_FILES + 1))),
    "bomb": lambda: packed(*((f"01_result/{number}.md", bytes(2**26)) for number in range(4))),
    "lying": lambda: lying(10),
    "longer than it is": lambda: lying(2 * 10**6),
    "no zip": lambda: b"PK not at all",
    "empty": lambda: b"",
    "cut": lambda: packed(("notes.md", os.urandom(1000)))[:-100],
    "damaged": lambda: packed(("notes.md", b"ab" * 1000)).replace(b"notes.md", b"notes.mx", 1),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_change_nothing(case: str, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "hostile.zip"
    file.write_bytes(HOSTILE[case]())
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=r"hostile\.zip: .*nothing was restored"):
        backup.restore(file, home)
    assert contents(tmp_path) == before


def test_one_bad_file_and_none_is_restored(fresh: Path, tmp_path: Path) -> None:
    (tmp_path / "work.zip").write_bytes(packed(("notes.md", b"fine"), ("../outside.md", b"")))
    with pytest.raises(ValueError, match="no work on this course"):
        backup.restore(tmp_path / "work.zip", fresh)
    assert not (fresh / "notes.md").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links take privileges there")
def test_links_of_the_folder_lead_nowhere(fresh: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("not mine")
    (fresh / "03_latency").symlink_to(outside, target_is_directory=True)
    (fresh / "notes.md").symlink_to(outside / "secret.md")
    (tmp_path / "work.zip").write_bytes(packed(("03_latency/secret.md", b"!")))
    with pytest.raises(ValueError, match="written elsewhere"):
        backup.restore(tmp_path / "work.zip", fresh)
    (tmp_path / "notes.zip").write_bytes(packed(("notes.md", b"!")))
    with pytest.raises(ValueError, match="written elsewhere"):
        backup.restore(tmp_path / "notes.zip", fresh)
    assert (outside / "secret.md").read_text() == "not mine"
    backup.save(tmp_path / "saved.zip", fresh)
    with zipfile.ZipFile(tmp_path / "saved.zip") as archive:
        assert archive.namelist() == ["01_result/times.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="links take privileges there")
def test_a_link_within_the_folder_is_not_followed_either(fresh: Path, tmp_path: Path) -> None:
    (fresh / "01_result" / "figures").symlink_to(fresh / "tinybench", target_is_directory=True)
    (tmp_path / "work.zip").write_bytes(packed(("01_result/figures/x.md", b"!")))
    with pytest.raises(ValueError, match="written elsewhere"):
        backup.restore(tmp_path / "work.zip", fresh)


def test_programs_are_named_and_restored_only_if_asked(fresh: Path, tmp_path: Path) -> None:
    (tmp_path / "work.zip").write_bytes(packed(("notes.md", b"fine"), ("01_result/numpy.py", b"print('run')")))
    told = str(backup.restore(tmp_path / "work.zip", fresh))
    assert "1 file restored" in told
    assert "left out: 01_result/numpy.py" in told
    assert not (fresh / "01_result" / "numpy.py").exists()
    assert "all that work.zip holds is here already; programs" in str(backup.restore(tmp_path / "work.zip", fresh))
    backup.restore(tmp_path / "work.zip", fresh, programs=True)
    assert (fresh / "01_result" / "numpy.py").read_bytes() == b"print('run')"


def test_a_file_that_cannot_be_replaced_leaves_all_as_they_were(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fresh / "notes.md").write_bytes(b"old")
    (tmp_path / "work.zip").write_bytes(
        packed(("notes.md", b"new"), ("01_result/a.md", b"!"), ("01_result/b.md", b"!"))
    )
    before, replace = set(fresh.rglob("*")), os.replace

    def stubborn(source: Path, target: Path) -> None:
        if Path(target).name == "notes.md":
            raise PermissionError(13, "another program has it open", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", stubborn)
    with pytest.raises(ValueError, match=r"has it open.*nothing was restored"):
        backup.restore(tmp_path / "work.zip", fresh)
    monkeypatch.undo()
    kept = {path for path in fresh.rglob("*") if not path.name.startswith(backup.BEFORE)}
    assert kept == before
    assert (fresh / "notes.md").read_bytes() == b"old"


def test_marks_count_for_the_code_that_was_restored(home: Path, tmp_path: Path) -> None:
    """Marks of the code that a restore replaces count no longer; those that come with their code do."""
    notebook, progress = home / "01_result" / "01_result.ipynb", home / "01_result" / passed_checks.PROGRESS

    def worked(code: str, *checks: str) -> None:
        cells = [{"cell_type": "code", "metadata": {}, "source": code.splitlines(keepends=True)}]
        notebook.write_text(json.dumps({"cells": cells, "nbformat": 4}))
        made = {check: {"at": 0, "code": {"f": passed_checks.fingerprint(code)}} for check in checks}
        progress.write_text(json.dumps({"checks": made, "of": 2}))

    def standing() -> set[str]:
        return set(passed_checks.standing(notebook, ["first", "second"]))

    first, second = "def f():\n    return 1\n", "def f():\n    return 2\n"
    worked(first, "first")
    assert standing() == {"first"}
    backup.save(tmp_path / "with.zip", home)
    progress.unlink()
    backup.save(tmp_path / "without.zip", home)
    worked(second, "first", "second")
    assert standing() == {"first", "second"}
    backup.restore(tmp_path / "without.zip", home)
    assert standing() == set(), "the marks are of other code"
    backup.restore(tmp_path / "with.zip", home)
    assert standing() == {"first"}


def test_the_commands(home: Path, fresh: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "work.zip"
    assert main(["--root", str(home), "save", str(file)]) == 0
    assert "6 files saved in work.zip" in capsys.readouterr().out
    assert main(["--root", str(home), "save", str(file)]) == 1
    assert "work.zip is there already" in capsys.readouterr().err
    assert main(["--root", str(fresh), "restore", str(file)]) == 0
    assert "5 files restored from work.zip; 1 of them were different here" in capsys.readouterr().out
    assert main(["--root", str(fresh), "restore", str(tmp_path / "none.zip")]) == 1
    assert "none.zip" in capsys.readouterr().err
