"""Helpers for module 10: programs that are killed, and suites that count instead of measuring."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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
    """Run a program that measures parts and writes them in a given `way`, and kill it after `parts` parts.

    Return the number of measured parts, and the number of those that are on the disk.
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


class Interrupted(Exception):
    """A simulated power cut in a check."""


def counting_suite(suite: Any, breaks_at: str | None = None) -> Any:
    """Return a suite that records its pieces instead of measuring them. At piece `breaks_at`, it raises Interrupted."""

    def measure(piece: str) -> dict[str, BenchmarkResult]:
        if piece == breaks_at:
            raise Interrupted(piece)
        suite.measured.append(piece)
        return {"m": BenchmarkResult(piece.partition("-")[0], [float(len(suite.measured))], unit="s")}

    suite.measured, suite.tables, suite._measure = [], 0, measure
    suite.write_tables = lambda: setattr(suite, "tables", suite.tables + 1)
    return suite
