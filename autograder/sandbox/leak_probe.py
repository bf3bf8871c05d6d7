"""A search for things that must not be visible in a sandbox. A probe runs inside, with the mounts of an assignment."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.sandbox import root
from autograder.sandbox.bubblewrap import Limits, Mounts, SandboxUnavailable, run_program

PROGRAM = Path(__file__).parent / "guest" / "probe.py"
# paths that also exist inside the sandbox, where they lead to other files
SHOWN = ("/", "/usr", "/tmp", "/course", "/inside", "/python", "/proc", "/dev", "/etc")
SMALLEST = 200  # bytes; smaller files are not distinctive enough to recognise by their content
MOST_SAID = 5


@dataclass(frozen=True)
class Forbidden:
    """The files, file names, texts, modules and paths that must not be visible inside a sandbox."""

    files: Sequence[Path] = ()  # a file counts only if both its name and its content match
    names: Sequence[str] = ()  # names that no file may have, whatever its content
    texts: Mapping[str, str] = field(default_factory=dict)  # searched in all files except libraries; by description
    modules: Sequence[str] = ("autograder",)
    paths: Sequence[str] = ()  # in addition to those of `host_paths`


def host_paths() -> list[str]:
    """Return the paths of this host that would reveal to a submission where it runs."""
    known = [*root.course_folders(), *root.packages(), Path(sys.prefix), Path(sys.base_prefix), Path.home()]
    return [path for path in dict.fromkeys(map(str, known)) if path not in SHOWN]


def course_files() -> list[Path]:
    """Return the source files of `autograder`, except those that the sandbox needs."""
    package = Path(__file__).parents[1]
    shown = (PROGRAM.parent, PROGRAM.parents[1] / "rpc")
    return [path for path in package.rglob("*.py") if not any(path.is_relative_to(folder) for folder in shown)]


def findings(mounts: Mounts, forbidden: Forbidden, limits: Limits | None = None) -> list[str]:
    """Return a line for each forbidden thing that is visible in a sandbox with these mounts."""
    question = {
        "modules": forbidden.modules,
        "names": list(forbidden.names),
        "files": _digests([*forbidden.files, *course_files()]),
        "paths": [*host_paths(), *(path for path in forbidden.paths if path not in SHOWN)],
        "texts": dict(forbidden.texts),
    }
    place = "/inside/probe.py"
    shown = replace(mounts, read_only={**mounts.read_only, place: PROGRAM})
    words = (
        f"import sys; sys.path[:0] = ['/inside', '/course']; import runpy; runpy.run_path({place!r}, None, '__main__')"
    )
    done = run_program([root.PROGRAM, "-sBc", words], json.dumps(question).encode(), mounts=shown, limits=limits)
    try:
        return [str(line) for line in json.loads(done.output)]
    except ValueError:
        last = done.errors.decode(errors="replace").strip().splitlines()[-1:]
        return [f"the probe itself did not end: {done.limit or ' '.join(last)}"]


def verify(mounts: Mounts, forbidden: Forbidden) -> None:
    """Raise `SandboxUnavailable` if anything forbidden is visible in a sandbox with these mounts."""
    if found := findings(mounts, forbidden):
        more = f"; and {len(found) - MOST_SAID} more" if len(found) > MOST_SAID else ""
        raise SandboxUnavailable(
            f"submissions would see what they must not: {'; '.join(found[:MOST_SAID])}{more}. Nothing was graded; "
            "install the course in an environment of its own (`make course`), and ask `autograder doctor` again"
        )


def doctor() -> tuple[str, bool, str]:
    """Return a row for `autograder doctor`: whether a sandbox on this machine exposes files of the course."""
    modules = [path for folder in root.course_folders() if folder.name == "tinybench" for path in folder.rglob("*.py")]
    found = findings(Mounts(), Forbidden(modules, ["gradebook.db"], modules=("autograder", "tinybench")))
    return (
        "probe",
        not found,
        "; ".join(found[:MOST_SAID]) or "from inside, nothing of the course or of this machine is seen",
    )


def _digests(files: Iterable[Path]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in files:
        content = path.read_bytes()
        if len(content) >= SMALLEST:
            found.setdefault(path.name, []).append(hashlib.sha256(content).hexdigest())
    return found
