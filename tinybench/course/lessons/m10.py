"""Helpers for module 10: a program that is killed at work, the steps in which a file reaches the disk, and a suite.

The suite records its pieces instead of measuring them.

A piece is a part of a suite's measurements that is saved in a file of its own.
"""

from __future__ import annotations

import inspect
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tinybench.result import BenchmarkResult

_PROGRAM = """
import pathlib, sys, time
folder, way, kept = pathlib.Path(sys.argv[1]), sys.argv[2], []
log = (folder / "log.txt").open("w") if "open file" in way else None
for part in range(100_000):
    time.sleep(0.02)
    kept.append(f"part {part}")
    if log:
        log.write(kept[-1] + "\\\\n")
    elif "a file for each" in way:
        (folder / f"{part}.txt").write_text(kept[-1] + "\\\\n")
    print(part, flush=True)
(folder / "all.txt").write_text("\\\\n".join(kept))
""".replace("\\\\", "\\")


def killed(way: str, parts: int = 50) -> tuple[int, int]:
    """Run a program that pretends to measure many parts and saves them, and kill it after `parts` parts.

    `way` says how the program saves. If it contains "open file", the program writes all parts to a file that stays
    open. If it contains "a file for each", each part goes to its own file. Otherwise, the program saves everything at
    the end. Return the number of measured parts, and the number of parts found on the disk.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _PROGRAM, folder, way]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            for _ in range(parts):
                program.stdout.readline()
            program.kill()
            measured = parts + len(program.stdout.readlines())
        return measured, sum(path.read_text().count("part") for path in Path(folder).iterdir())


@dataclass(frozen=True)
class DiskStep:
    """A step in which a file reaches the disk: `what` is ``"synced"`` or ``"renamed"``.

    `size` is the size of the file in bytes, and `file` its number on the disk, which a rename does not change. `source`
    and `target` are the paths of a rename.
    """

    what: str
    size: int
    file: int
    source: Path = Path()
    target: Path = Path()


@contextmanager
def disk_steps(*functions: Callable[..., Any], power_fails: bool = False) -> Iterator[list[DiskStep]]:
    """Record each call of `os.fsync` and each rename within the block, in a list of steps.

    The calls are also recorded if one of `functions` belongs to a notebook that imported them from `os` by name. With
    `power_fails`, a rename raises OSError instead.
    """
    steps: list[DiskStep] = []

    def synced(fd: Any) -> None:
        about = os.fstat(fd if isinstance(fd, int) else fd.fileno())
        steps.append(DiskStep("synced", about.st_size, about.st_ino))

    def renamed(src: Any, dst: Any, **_: Any) -> None:
        if power_fails:
            raise OSError("no power")
        about = Path(src).stat()
        steps.append(DiskStep("renamed", about.st_size, about.st_ino, Path(src).resolve(), Path(dst).resolve()))

    records = {"fsync": synced, "fdatasync": synced, "rename": renamed, "replace": renamed}
    with ExitStack() as stack:
        for name, record in records.items():
            if not hasattr(os, name):  # macOS has no fdatasync
                continue
            own = getattr(os, name)

            def noted(*args: Any, own: Any = own, record: Any = record, **options: Any) -> Any:
                record(*args, **options)
                return own(*args, **options)

            for names in (vars(os), *(function.__globals__ for function in functions)):
                for alias in [alias for alias, value in names.items() if value is own]:
                    names[alias] = noted
                    stack.callback(names.__setitem__, alias, own)
        yield steps


@contextmanager
def western_encoding() -> Iterator[None]:
    """Open text files without a stated encoding in cp1252, as Windows does in Western Europe, within the block."""
    own = io.open

    def opened(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, *rest: Any, **options: Any
    ) -> Any:
        unstated = "b" not in mode and encoding in (None, "locale")  # a `Path` passes the second on
        return own(file, mode, buffering, "cp1252" if unstated else encoding, *rest, **options)

    with patch("io.open", opened), patch("builtins.open", opened):
        yield


@contextmanager
def texts_written(run: Callable[..., Any], names: dict[str, Any]) -> Iterator[list[Path]]:
    """Record the path of each call of `write_text` that `run`, or a function in `names`, makes within the block."""
    paths: list[Path] = []
    with ExitStack() as stack:
        for space in (inspect.unwrap(run).__globals__, names):
            own = space["write_text"]

            def noted(path: Path, text: str, own: Any = own) -> None:
                own(path, text)
                paths.append(path)

            space["write_text"] = noted
            stack.callback(space.__setitem__, "write_text", own)
        yield paths


class Interrupted(Exception):
    """An exception that simulates a power cut in a check."""


def counting_suite(suite: Any, breaks_at: str | None = None) -> Any:
    """Change a suite to record its pieces in `suite.measured` instead of measuring them, and return the suite.

    The piece that is measured first gives 1 for the first model and 101 for the second, the next one 2 and 102, and so
    on; `suite.saved` holds these results by piece. `suite.tables` lists the metrics in `suite.results` when
    `write_tables` is called. At the piece `breaks_at`, the suite raises Interrupted.
    """

    def measure(piece: str) -> dict[str, BenchmarkResult]:
        if piece == breaks_at:
            raise Interrupted(piece)
        suite.measured.append(piece)
        metric, now = piece.partition("-")[0], len(suite.measured)
        values = {name: [100.0 * place + now] for place, name in enumerate(suite.models)}
        suite.saved[piece] = {name: BenchmarkResult(metric, value, unit="s") for name, value in values.items()}
        return dict(suite.saved[piece])

    suite.measured, suite.saved, suite.tables, suite._measure = [], {}, [], measure
    suite.write_tables = lambda: suite.tables.extend(suite.results)
    return suite
