"""Backups of a student's work in one file, because a machine such as Binder's does not last."""

from __future__ import annotations

import ast
import hashlib
import html
import json
import re
import stat
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

import tinybench
from tinybench.course.accessible_figures import Markup
from tinybench.course.marks import PROGRESS
from tinybench.course.pieces import is_own
from tinybench.support.basics.numbers import number_of

SAVED, BEFORE = "my-work-", "before-restore-"  # how the names of the written files begin
MAX_FILE, MAX_ALL, MAX_FILES = 50 * 2**20, 200 * 2**20, 2000
# Where a student's work may be: in a module's folder, as a module of the package, or as a document next to the folders.
FOLDER, PACKAGE, DOCUMENTS = re.compile(r"\d\d_\w+"), "tinybench", {".csv", ".ipynb", ".md", ".txt"}
UNSAFE = re.compile(r'[\\:*?"<>|\x00-\x1f]|^/|//|(^|/)\.\.?(/|$)')
GIVEN = {"map.ipynb", "glossary.md", "README.md"}
MANIFEST = ".published.json"  # lists the files that `autograder publish` wrote, with their digests


def save(file: Path | str | None = None, folder: Path | str | None = None) -> Any:
    """Write all of your own work into a zip file, and show a link to download it.

    The zip file holds the notebooks that you have changed, all other files of yours in their folders, the modules of
    the package that you have built, and the list of passed checks. It does not hold references or unchanged course
    files.

    Parameters
    ----------
    file
        The zip file; by default ``my-work-`` and the time, in `folder`.
    folder
        The folder of the course; by default that of the package in use.
    """
    home = _home(folder)
    target = Path(file) if file else _new(home, SAVED)
    names: list[str] = []
    left_out: list[str] = []
    for name in _work(home):
        (names if (home / name).stat().st_size <= MAX_FILE else left_out).append(name)
    if not names:
        return _said("there is nothing of yours to save yet: every file is as it was handed out")
    _write(home, names, target)
    said = f"{number_of(len(names), 'file')} saved in {target.name} ({target.stat().st_size / 1e6:.1f} MB)"
    if left_out:
        said += f"; larger than {MAX_FILE >> 20} MB and not in it: {', '.join(left_out)}"
    if "google.colab" in sys.modules:
        sys.modules["google.colab"].files.download(str(target))
    here = target.resolve().is_relative_to(Path.cwd())
    return _said(said, target.resolve().relative_to(Path.cwd()).as_posix() if here else "")


def restore(file: Path | str | None = None, folder: Path | str | None = None) -> Any:
    """Restore the work in a zip file that `save` wrote. Replaced files are kept in another zip file.

    Parameters
    ----------
    file
        The zip file; by default the newest ``my-work-….zip`` in `folder`. Upload it there first.
    folder
        The folder of the course; by default that of the package in use.

    Raises
    ------
    ValueError
        If the file holds anything other than work on this course, or is too large. Then nothing is changed.
    """
    home = _home(folder)
    source = Path(file) if file else _newest(home)
    if source is None:
        return _said(f"there is no {SAVED}….zip beside the notebooks: drag yours into the list of files, then run this")
    try:
        with zipfile.ZipFile(source) as archive:
            content = {name: _read(archive, info) for name, info in _checked(archive, home).items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ValueError(f"{source.name}: {error}; nothing was restored. Take a file that `save` wrote") from None
    content = {name: data for name, data in content.items() if not _holds(home / name, data)}
    if not content:
        return _said(f"all that {source.name} holds is here already")
    replaced = [name for name in content if (home / name).is_file()]
    said = f"{number_of(len(content), 'file')} restored from {source.name}"
    if replaced:
        kept = _new(home, BEFORE)
        _write(home, replaced, kept)
        said += f"; {len(replaced)} of them were different here, and what they were is in {kept.name}"
    for name, data in content.items():
        with _whole(home / name) as part:
            part.write_bytes(data)
    return _said(f"{said}. Close notebooks that are open, without saving them, and open them again")


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def _said(text: str, link: str = "") -> Markup:
    """Return a sentence to display, with a link to download a file if `link` names one."""
    name = html.escape(link)
    shown = f'<p><a href="{name}" download="{name}"><strong>Download {name}</strong></a></p>' if link else ""
    return Markup(f"<p>{html.escape(text)}.</p>{shown}", f"{text}.")


def _home(folder: Path | str | None) -> Path:
    home = Path(folder) if folder else Path(tinybench.__file__).parents[1]
    if not any(home.glob("[0-9][0-9]_*/*.ipynb")):
        raise FileNotFoundError(f"{home} holds no notebooks of the course: run this in the folder that holds 01_result")
    return home.resolve()


def _new(home: Path, begin: str) -> Path:
    """Return the path of a zip file that does not exist yet, named by a prefix and the time."""
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    names = (home / f"{begin}{stamp}{f'-{number}' if number > 1 else ''}.zip" for number in count(1))
    return next(path for path in names if not path.exists())


def _newest(home: Path) -> Path | None:
    """Return the file to restore: on Colab one that the student uploads now, else the newest in the folder."""
    if "google.colab" in sys.modules:
        for name, data in sys.modules["google.colab"].files.upload().items():
            uploaded = home / Path(name).name
            uploaded.write_bytes(data)
            return uploaded
    return max(home.glob(f"{SAVED}*.zip"), key=lambda path: path.stat().st_mtime, default=None)


def _work(home: Path) -> Iterator[str]:
    """Yield the names of the files in a course folder that are the student's work."""
    built = _built(home)
    tops = sorted(home.iterdir())
    inside = (path for top in tops if top.is_dir() and FOLDER.fullmatch(top.name) for path in sorted(top.rglob("*")))
    for path in [*inside, *sorted((home / PACKAGE).glob("*.py*")), *tops]:
        name = path.relative_to(home).as_posix()
        here = path.is_file() and path.resolve().is_relative_to(home)
        if here and _is_work(name, built) and not _is_as_handed_out(home, name):
            yield name


def _is_work(name: str, built: set[str]) -> bool:
    """Return whether a file of this name may be a student's work. Only such files are saved and restored."""
    parts = PurePosixPath(name).parts
    if any(part == "__pycache__" or (part.startswith(".") and part != PROGRESS) for part in parts):
        return False
    if len(parts) == 1:
        return PurePosixPath(name).suffix in DOCUMENTS and name not in GIVEN
    if parts[0] == PACKAGE:
        return len(parts) == 2 and parts[1].removesuffix(".backup") in built
    return bool(FOLDER.fullmatch(parts[0]))


def _built(home: Path) -> set[str]:
    """Return the files of the package that students build, as named in the last lines of its ``__init__.py``."""
    try:
        found = (home / PACKAGE / "__init__.py").read_text(encoding="utf-8").rpartition(".install(")[2]
        return {f"{name}.py" for name in ast.literal_eval(found.strip().removesuffix(")"))}
    except (OSError, SyntaxError, ValueError):
        return set()


def _is_as_handed_out(home: Path, name: str) -> bool:
    path = home / name
    if name.startswith(f"{PACKAGE}/"):
        return not is_own(path)
    data, pristine = path.read_bytes(), path.parent / ".released" / path.name
    if pristine.is_file() and pristine.read_bytes() == data:
        return True
    try:
        digests = json.loads((home / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(digests.get(name) == hashlib.sha256(data).hexdigest())


def _write(home: Path, names: list[str], target: Path) -> None:
    if target.exists():
        raise FileExistsError(f"{target} is there already: name another file")
    with _whole(target) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(home / name, name)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write. It replaces the file at `path` once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    yield part
    part.replace(path)


def _checked(archive: zipfile.ZipFile, home: Path) -> dict[str, zipfile.ZipInfo]:
    """Return an archive's files by name. Raise ValueError if any is not work or would be written elsewhere."""
    files, built = [info for info in archive.infolist() if not info.is_dir()], _built(home)
    if len(files) > MAX_FILES or sum(info.file_size for info in files) > MAX_ALL:
        raise ValueError(f"it holds more than {MAX_FILES} files or {MAX_ALL >> 20} MB")
    for info in files:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        if UNSAFE.search(name) or not _is_work(name, built) or kind not in (0, stat.S_IFREG):
            raise ValueError(f"{name!r} is no work on this course")
        path = home / name
        if not path.resolve().is_relative_to(home) or path.is_symlink() or path.is_dir():
            raise ValueError(f"{name!r} would be written elsewhere")
    if len({info.filename.casefold() for info in files}) < len(files):
        raise ValueError("a file is in it twice")
    return {info.filename: info for info in files}


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the content of an archived file, at most the size in its header, which was checked before."""
    with archive.open(info) as file:
        data = file.read(info.file_size)
    if len(data) < info.file_size:
        raise ValueError(f"{info.filename} is cut short")
    return data
