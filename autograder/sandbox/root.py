"""The root file system of a sandbox: the files that Python and its libraries need, and nothing of the course.

Inside the sandbox, Python and its packages are not at their host paths. The base interpreter is at `/python`. The
environment's packages are where that interpreter searches for them, so there is no virtual environment inside. System
libraries come from the loader's own folders. Folders are mounted through read-only overlays (Linux 5.11 or later). So
two sandboxes share no inode that can be locked, `/proc/self/mountinfo` contains no path of the host, and hidden files
are not even listed. There is one exception: if the user lacks the right to create devices, as ordinary users do, all
sandboxes share the host's `/dev/null` and similar devices.

Some files still contain paths of the host. Byte code contains the path where it was compiled (``co_filename``, which
Python replaces on import), and programs contain the paths where they search for libraries. All these paths name folders
that do not exist inside.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autograder.sandbox.guest import linux

PYTHON = "/python"
PROGRAM = f"{PYTHON}/bin/python3"
STAGE, NEW = str(Path(__file__).with_name("stage.py")), "/run/new"  # the program that builds the root, and its target
MOST_COPIED = 2**20  # bytes; larger files are mounted instead of copied
PROGRAMS = ("sh", "prlimit")
LIBRARIES = r"\.so(\.|-|$)|^ld-"
DISTRIBUTIONS = ("tinybench-ml", "tinybench-course")
# names of the course's files in a folder of packages, however it is installed, and of files that point to the course
COURSE = re.compile(r"^(autograder|tinybench|tests|__editable__.*|tinybench[_-](ml|course)[-.].*|.*\.(pth|egg-link))$")


def packages() -> list[Path]:
    """Return the folders of this environment's packages in import order, except folders that a .pth file adds."""
    known = [*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    if site.ENABLE_USER_SITE:
        known.append(site.getusersitepackages())
    existing = dict.fromkeys(Path(folder).resolve() for folder in known if os.path.isdir(folder))
    order = {Path(folder).resolve(): place for place, folder in reversed(list(enumerate(sys.path)))}
    return sorted(existing, key=lambda folder: order.get(folder, len(order)))


def course_folders() -> list[Path]:
    """Return the folders of the course's own code: its packages, and the git clone that contains them."""
    found = []
    for name in ("autograder", "tinybench"):
        spec = find_spec(name)
        found += [Path(place).resolve() for place in (spec.submodule_search_locations or () if spec else ())]
    return [*found, *{folder.parent for folder in found if (folder.parent / "modules").is_dir()}]


def plan(
    read_only: Iterable[tuple[str, Path]], writable: Iterable[tuple[str, Path]], empty: Sequence[str]
) -> dict[str, Any]:
    """Return the plan, in JSON types, from which `autograder.sandbox.stage` builds the root.

    Parameters
    ----------
    read_only
        Pairs of a path in the sandbox and a host file to copy there, or a host folder to mount there.
    writable
        Pairs of a path and a host folder. `stage` mounts the folder at this path, which is outside the new root, and
        bubblewrap mounts it from there into the sandbox.
    empty
        Paths in the sandbox at which to create empty folders. Bubblewrap mounts something on each of them.
    """
    given = list(read_only)
    files = [*_files(), *((place, source) for place, source in given if not source.is_dir())]
    large = {place: str(source.resolve()) for place, source in files if source.stat().st_size > MOST_COPIED}
    return {
        "folders": [*_python_and_system(), *(_folder(source, place) for place, source in given if source.is_dir())],
        "files": {place: str(source) for place, source in files if place not in large},
        "programs": _programs() | large,
        "links": _links(),
        "writable": {place: str(source) for place, source in writable},
        "empty": ["/proc", "/dev", "/tmp", linux.EMPTY, *empty],
    }


def _files() -> Iterator[tuple[str, Path]]:
    yield linux.NOTHING, Path(os.devnull)
    yield from ((f"/inside/proc/{name}", Path("/proc", name)) for name in linux.PROC_STILL)
    if os.path.isfile("/etc/ld.so.cache"):
        yield "/etc/ld.so.cache", Path("/etc/ld.so.cache")


@cache
def _programs() -> dict[str, str]:
    executable = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    found = {PROGRAM: executable}
    for name in PROGRAMS:
        if path := shutil.which(name):
            found[f"/usr/bin/{name}"] = os.path.realpath(path)
            if not os.path.islink("/bin"):
                found[f"/bin/{name}"] = found[f"/usr/bin/{name}"]
    return found


def _links() -> dict[str, str]:
    own = {f"{PYTHON}/bin/{name}": os.path.basename(PROGRAM) for name in ("python", _version())}
    return own | {link: os.readlink(link) for link in ("/bin", "/lib", "/lib64", "/sbin") if os.path.islink(link)}


def _version() -> str:
    return Path(sysconfig.get_path("stdlib")).name  # python3.13, or python3.13t


@cache
def _python_and_system() -> list[dict[str, Any]]:
    """Return the plans for the folders that every sandbox contains. A folder comes before the folders inside it."""
    library = Path(sysconfig.get_path("stdlib")).resolve().parent
    inside = f"{PYTHON}/{sys.platlibdir}"
    first, *more = packages()
    natural = f"{inside}/{_version()}/site-packages"
    places = {natural: first} | {f"{PYTHON}/packages/{number}": folder for number, folder in enumerate(more, start=1)}
    shown = [_base_python(library, inside, list(places))]
    shown += [_folder(folder, place, hidden=_course_in(folder)) for place, folder in places.items()]
    soname = str(sysconfig.get_config_var("INSTSONAME") or "")
    links = {soname: f"{inside}/{soname}"} if ".so" in soname and (library / soname).is_file() else {}
    for path in ("/usr/lib", "/usr/lib64", "/lib", "/lib64"):
        if os.path.isdir(path) and not os.path.islink(path):
            shown.append(_folder(Path(path), path, LIBRARIES, links=links))
            for own in glob(f"{path}/{platform.machine()}-linux-*"):
                shown.append(_folder(Path(own), own, links=links))
    if os.path.isdir("/etc/alternatives"):  # its links select one of several linear-algebra libraries
        shown.append(_folder(Path("/etc/alternatives"), "/etc/alternatives", LIBRARIES))
    return shown


def _base_python(library: Path, inside: str, places: list[str]) -> dict[str, Any]:
    """Return the plan for mounting the base interpreter's standard library.

    Installed packages are left out, and the interpreter's path on the host is replaced by its path in the sandbox.
    """
    stdlib = library / _version()
    inner = [f"{_version()}/{name}" for name in ("site-packages", "dist-packages", "test", "idlelib", "ensurepip")]
    inner += [f"{_version()}/{path.name}" for path in stdlib.glob("config-*")]
    inner += [f"{_version()}/__pycache__/{path.name}" for path in stdlib.glob("__pycache__/_sysconfigdata*")]
    altered = [f"{_version()}/{path.name}" for path in stdlib.glob("_sysconfigdata*.py")]
    lines = f"import sys\nsys.path += [place for place in {places!r} if place not in sys.path]\n"
    texts = {f"{_version()}/sitecustomize.py": lines}  # works even if PYTHONPATH is ignored
    shown = _folder(library, inside, rf"{LIBRARIES}|^{re.escape(_version())}$", inner, texts)
    return shown | {"altered": dict.fromkeys(altered, (sys.base_prefix, PYTHON))}


def _folder(
    source: Path,
    place: str,
    only: str = "",
    hidden: Iterable[str] = (),
    texts: dict[str, str] | None = None,
    links: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return the plan for mounting the folder `source` at `place`.

    If the pattern `only` is given, the sandbox shows only names that match it. The `hidden` names and the course's own
    folders are left out. `texts` (names and contents) are added as files, and `links` (names and targets) as links.
    """
    real = source.resolve()
    own = [str(folder.relative_to(real)) for folder in course_folders() if real in folder.parents]
    names = sorted({*hidden, *own})
    return {
        "source": str(source), "place": place, "only": only, "hidden": names,
        "texts": texts or {}, "links": links or {}, "altered": {},
    }  # fmt: skip


def _course_in(folder: Path) -> list[str]:
    """Return the names in a folder of packages that belong to the course, or that record a local installation path."""
    recorded = {Path(str(path)).parts[0] for path in _recorded()} - {"..", "__pycache__", "/"}
    found = []
    for name in os.listdir(folder):
        if COURSE.match(name) or name in recorded:
            found.append(name)
        elif name.endswith(".dist-info"):
            address = folder / name / "direct_url.json"
            if address.is_file() and '"file:' in address.read_text(encoding="utf-8", errors="replace"):
                found.append(f"{name}/direct_url.json")
    cached = folder / "__pycache__"
    return found + [f"__pycache__/{path.name}" for path in cached.glob("__editable__*")]


def _recorded() -> Iterator[os.PathLike[str]]:
    for name in DISTRIBUTIONS:
        try:
            yield from importlib.metadata.distribution(name).files or ()
        except importlib.metadata.PackageNotFoundError:
            continue
