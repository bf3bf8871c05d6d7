"""The targets that a gate compares: commands, models or functions, in the current folder or in two commits."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
WORKING_TREE = (".", "worktree")


def plain_environment() -> dict[str, str]:
    """Return the environment without GIT_DIR and similar variables, by which a git hook ties git to its repository."""
    hooked = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    return {name: value for name, value in os.environ.items() if name not in hooked}


@dataclass(frozen=True)
class Target:
    """A thing to measure: its label, its specification, and the folder in which it runs.

    `words` holds the words of a command and is empty for other targets. `commit` is empty unless a commit is measured.
    """

    label: str
    spec: str
    root: Path
    words: tuple[str, ...] = ()
    data: Path | None = None
    batch: int = 1
    threads: int = 1
    commit: str = ""

    @property
    def paths(self) -> list[str]:
        """The folders that come first on the import path."""
        return [str(folder) for folder in (self.root, self.root / "src") if folder.is_dir()]

    @property
    def is_file(self) -> bool:
        """Whether the target is a model file."""
        return self.spec.endswith((".onnx", ".joblib"))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the target's process."""
        variables = plain_environment()
        if self.commit:
            inherited = [path for path in [variables.get("PYTHONPATH")] if path]
            variables["PYTHONPATH"] = os.pathsep.join([*self.paths, *inherited])
        return variables

    def task(self) -> dict[str, Any]:
        """Return the description of the target from which a worker process loads it, as plain data."""
        data = str(self.data) if self.data else None
        shared = {"data": data, "batch": self.batch, "threads": self.threads}
        return {"target": self.spec, "root": str(self.root), "paths": self.paths, **shared}

    def notes(self) -> dict[str, Any]:
        """Return the metadata about the target that a result records."""
        threads = {"threads": self.threads} if self.spec.endswith(".onnx") else {}
        data = {"data": hashlib.sha256(self.data.read_bytes()).hexdigest()[:12]} if self.data else {}
        return {"target": self.label, "commit": self.commit, **threads, **data}

    def digests(self) -> list[str]:
        """Return the words of the command (or the specification), but replace each name of a file by its digest."""
        words = self.words or (self.spec,)
        files = [Path(shutil.which(words[0]) or self.root / words[0]), *(self.root / word for word in words[1:])]
        return [
            hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else word
            for word, file in zip(words, files, strict=True)
        ]


def read_target(text: str, root: Path, data: Path | None = None, batch: int = 1, threads: int = 1) -> Target:
    """Return the target that a text names: a model file, ``module:function`` or a command."""
    if text.endswith((".onnx", ".joblib")) and " " not in text:
        if not (root / text).is_file():
            raise FileNotFoundError(f"{text}: no such file in {root}")
        if data is None:
            raise ValueError(f"on which data? {text} is a model: add --data FILE")
        return Target(text, str(root / text), root, (), data, batch, threads)
    if FUNCTION.fullmatch(text):
        return Target(text, text, root, (), data, batch, threads)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{text!r} is no command: {error}") from None
    if not words or not (shutil.which(words[0]) or (root / words[0]).is_file()):
        raise ValueError(
            f"{text!r} is no .onnx or .joblib file and no module:function, and there is no command "
            f"{words[0] if words else ''!r}; for two commits add --call TARGET, what to run in each"
        )
    if data is not None:
        raise ValueError(f"--data belongs to models; {text!r} is a command, which takes its data itself")
    return Target(text, text, root, words)


@contextmanager
def read_targets(
    old: str, new: str, call: str | None, beside: str | None = None, **how: Any
) -> Iterator[tuple[dict[str, Target], list[str]]]:
    """Yield the targets ``"old"`` and ``"new"``, and notes on them. Commits are checked out during the block.

    An optional third commit, `beside`, is the baseline for `tinybench history`. It becomes the target ``"baseline"``,
    unless it equals the old or the new commit.
    """
    here = Path.cwd()
    if how.get("data"):
        how["data"] = here / how["data"]
        if not how["data"].is_file():
            raise FileNotFoundError(f"{how['data']}: no such file")
    if call is None:
        targets = {"old": read_target(old, here, **how), "new": read_target(new, here, **how)}
        if bool(targets["old"].words) != bool(targets["new"].words):
            raise ValueError(f"{old!r} and {new!r}: one is a command, a whole process, the other a call within one")
        yield targets, []
        return
    names = [old, new, *([beside] if beside else [])]
    with tempfile.TemporaryDirectory(prefix="tinybench-gate-") as folder, _trees(here, folder, *names) as trees:
        notes, targets = [], {}
        for side, (name, tree, commit) in zip(("old", "new", "baseline"), trees, strict=False):
            if side == "baseline" and commit in (targets["old"].commit, targets["new"].commit):
                continue
            try:
                target = read_target(call, tree, **how)
            except FileNotFoundError:
                raise FileNotFoundError(f"{name} has no file {call}; what git does not keep is in no commit") from None
            targets[side] = replace(target, label=f"{call} at {name}", commit=commit)
        if not set(WORKING_TREE) & {old, new} and _git(here, "status", "--porcelain", "--untracked-files=no"):
            notes.append('the working tree has uncommitted changes, which no commit holds; "." measures them')
        if targets["old"].commit == targets["new"].commit:
            notes.append("old and new are the same commit")
        yield targets, notes


@contextmanager
def _trees(here: Path, folder: str, *names: str) -> Iterator[list[tuple[str, Path, str]]]:
    """Yield each name with its folder and commit. Commits are checked out in temporary git worktrees."""
    top = Path(_git(here, "rev-parse", "--show-toplevel"))
    below = _git(here, "rev-parse", "--show-prefix")
    commits = ["working tree" if name in WORKING_TREE else _commit(here, name) for name in names]
    trees, added = [], []
    try:
        for number, (name, commit) in enumerate(zip(names, commits, strict=True)):
            tree = top
            if name not in WORKING_TREE:
                tree = Path(folder, str(number))
                added.append(tree)
                _git(here, "-c", f"core.hooksPath={os.devnull}", "worktree", "add", "--detach", str(tree), commit)
            if not (tree / below).is_dir():
                raise ValueError(f"{name} has no folder {below}; start in one that both commits have")
            trees.append((name, (tree / below).resolve(), commit))
        yield trees
    finally:
        for tree in added:
            with suppress(ValueError):  # interrupted before the worktree existed
                _git(top, "worktree", "remove", "-ff", str(tree))


def _commit(here: Path, name: str) -> str:
    try:
        return _git(here, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except ValueError:
        raise ValueError(
            f"there is no commit {name!r} in {here}; in a shallow clone, fetch it first. "
            'The working tree, with uncommitted changes, is "."'
        ) from None


def _git(here: Path, *arguments: str) -> str:
    command = ["git", "-C", str(here), *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            env=plain_environment(),
        )
    except FileNotFoundError:
        raise ValueError("with --call, OLD and NEW are commits, and git is not installed") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ValueError(f"with --call, OLD and NEW are commits: git {arguments[0]} in {here} said: {reason}")
    return done.stdout.strip()
