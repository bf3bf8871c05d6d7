"""A backup of a student's work in one zip file, for temporary machines such as those of Binder."""

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
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

import tinybench
from tinybench.course.accessible_figures import Markup
from tinybench.course.passed_checks import PROGRESS
from tinybench.course.pieces import is_own
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.whole_files import replacing

SAVED, BEFORE = "my-work-", "before-restore-"  # how the names of the zip files begin
MAX_FILE, MAX_ALL, MAX_FILES = 50 * 2**20, 200 * 2**20, 2000
# Where a student's work may be: in a module's folder, as a module of the package, or as a document next to the folders.
FOLDER, PACKAGE, DOCUMENTS = re.compile(r"\d\d_\w+"), "tinybench", {".csv", ".ipynb", ".md", ".txt"}
UNSAFE = re.compile(r'[\\:*?"<>|\x00-\x1f]|^/|//|(^|/)\.\.?(/|$)')
PROGRAMS = {".py", ".pyc", ".pyd", ".pth", ".so"}
MAX_DEPTH, MAX_NAME = 8, 200  # folders plus file in a path; bytes of each name
GIVEN = {"map.ipynb", "glossary.md", "README.md"}
MANIFEST = ".published.json"  # lists the files that `autograder publish` wrote, with their digests


def save(file: Path | str | None = None, folder: Path | str | None = None) -> Any:
    """Write all of your own work into a zip file, and show a link to download it.

    The zip file holds the notebooks that you have changed, all other files of yours in their folders, the modules of
    the package that you have built, and the list of passed checks. Reference modules and unchanged course files are
    left out.

    Parameters
    ----------
    file
        The zip file to write; by default named ``my-work-`` and the time, in `folder`.
    folder
        The folder of the course; by default the one that contains the package in use.
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


def restore(file: Path | str | None = None, folder: Path | str | None = None, *, programs: bool = False) -> Any:
    """Restore the work in a zip file that `save` wrote. Replaced files are kept in another zip file.

    Parameters
    ----------
    file
        The zip file; by default the newest ``my-work-….zip`` in `folder`. Upload the zip file there first.
    folder
        The folder of the course; by default the one that contains the package in use.
    programs
        Whether to restore files that Python may import, such as a ``numpy.py`` beside a notebook. Such a file runs as
        soon as the notebook imports a module of its name. By default these files are left out, and a message lists
        them.

    Raises
    ------
    ValueError
        If the zip file holds anything other than work on this course or is too large, or if its files cannot be
        written. Then nothing is changed.
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
    added = ""
    if left_out := [] if programs else [name for name in content if _is_program(name)]:
        content = {name: data for name, data in content.items() if name not in left_out}
        added = f"; programs, which were left out: {', '.join(left_out)} (restore(programs=True) takes them)"
    if not content:
        return _said(f"all that {source.name} holds is here already{added}")
    replaced = [name for name in content if (home / name).is_file()]
    said = f"{number_of(len(content), 'file')} restored from {source.name}"
    if replaced:
        kept = _new(home, BEFORE)
        _write(home, replaced, kept)
        said += f"; {len(replaced)} of them were different here, and what they were is in {kept.name}"
    try:
        _replace_all({home / name: data for name, data in content.items()})
    except OSError as error:
        raise ValueError(f"{source.name}: {error}; nothing was restored") from None
    return _said(f"{said}{added}. Close notebooks that are open, without saving them, and open them again")


def _is_program(name: str) -> bool:
    """Return whether a file is outside the package and can be imported by Python, such as a ``numpy.py``."""
    path = PurePosixPath(name)
    return path.parts[0] != PACKAGE and path.suffix.lower() in PROGRAMS


def _replace_all(content: Mapping[Path, bytes]) -> None:
    """Write all files or none. If one file cannot be written, put the old files back."""
    before = {path: path.read_bytes() if path.is_file() else None for path in content}
    try:
        with ExitStack() as stack:
            for path, data in content.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(replacing(path))
                file.write(data)
                file.close()
    except BaseException:
        for path, old in before.items():
            with suppress(OSError):
                if old is None:
                    path.unlink(missing_ok=True)
                elif path.read_bytes() != old:
                    path.write_bytes(old)
        raise


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
    """Return the file to restore: on Colab a file that the student uploads now, else the folder's newest backup."""
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
    """Return the file names of the modules that students build, as listed in the package's ``__init__.py``."""
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
    with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(home / name, name)


def _checked(archive: zipfile.ZipFile, home: Path) -> dict[str, zipfile.ZipInfo]:
    """Return an archive's files by name. Raise ValueError if any is not a student's work or has an unsafe path."""
    files, built = [info for info in archive.infolist() if not info.is_dir()], _built(home)
    if len(files) > MAX_FILES or sum(info.file_size for info in files) > MAX_ALL:
        raise ValueError(f"it holds more than {MAX_FILES} files or {MAX_ALL >> 20} MB")
    for info in files:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        if UNSAFE.search(name) or not _is_work(name, built) or kind not in (0, stat.S_IFREG):
            raise ValueError(f"{name!r} is no work on this course")
        path, parts = home / name, PurePosixPath(name).parts
        if len(parts) > MAX_DEPTH or any(len(part.encode(errors="replace")) > MAX_NAME for part in parts):
            raise ValueError(f"{name[:60]!r}… is too long a name")
        above = [home.joinpath(*parts[:depth]) for depth in range(1, len(parts))]
        if path.is_dir() or any(each.is_symlink() or each.is_file() for each in above) or path.is_symlink():
            raise ValueError(f"{name!r} would be written elsewhere")
    names = {info.filename.casefold() for info in files}
    if len(names) < len(files):
        raise ValueError("a file is in it twice")
    if both := names & {parent.as_posix() for name in names for parent in PurePosixPath(name).parents}:
        raise ValueError(f"{min(both)!r} is both a file and a folder")
    return {info.filename: info for info in files}


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the content of an archived file. Read at most the size in its header, which was checked before."""
    with archive.open(info) as file:
        data = file.read(info.file_size)
    if len(data) < info.file_size:
        raise ValueError(f"{info.filename} is cut short")
    return data
