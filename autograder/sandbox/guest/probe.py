"""A program that runs inside a sandbox before grading, and lists what the sandbox wrongly exposes.

The sandbox has the mounts of a submission. The program checks the names of all files. It reads the content only of
files that have the name of a forbidden file, or lie outside the library folders (`LIBRARIES`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

SKIPPED = ("/proc", "/sys", "/dev")
LIBRARIES = ("/python", "/usr", "/etc")
ABOUT = ("mountinfo", "environ", "cmdline")


def findings(question: dict[str, Any]) -> Iterator[str]:
    """Yield a line for everything inside the sandbox that must not be visible there.

    `question` lists what is forbidden: `modules` that must not be importable, `names` of files, `files` as digests of
    their contents by file name, `paths` of the host, and `texts`, each keyed by a description.
    """
    for name in question["modules"]:
        if spec := find_spec(name):
            yield f"{name} can be imported from {spec.origin}"
    texts = {f"/proc/{who}/{what}": _read(f"/proc/{who}/{what}") for who in ("self", "1") for what in ABOUT}
    texts["sys.path"] = "\n".join(sys.path).encode()
    for path in question["paths"]:
        if os.path.lexists(path):
            yield f"{path} exists"
        whole = re.compile(rb"(?<![\w./-])" + re.escape(path.encode()) + rb"(?![\w.-])")
        yield from (f"{where} names {path}" for where, text in texts.items() if whole.search(text))
    for path in _files("/"):
        yield from _about_file(path, question)


def _about_file(path: str, question: dict[str, Any]) -> Iterator[str]:
    name = os.path.basename(path)
    if name in question["names"] and not path.startswith("/python/"):  # nbgrader's own tests include a gradebook
        yield f"{path} has the name of what must not be here"
    digests = question["files"].get(name)
    ours = not path.startswith(LIBRARIES)
    if not digests and not ours:
        return
    content = _read(path)
    if digests and hashlib.sha256(content).hexdigest() in digests:
        yield f"{path} is a file of the course that must not be here"
    if ours:
        yield from (f"{path} holds {what}" for what, text in question["texts"].items() if text.encode() in content)


def _files(top: str) -> Iterator[str]:
    for folder, below, names in os.walk(top):
        below[:] = [name for name in below if os.path.join(folder, name) not in SKIPPED]
        yield from (os.path.join(folder, name) for name in names)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


if __name__ == "__main__":
    print(json.dumps(list(findings(json.load(sys.stdin)))))
