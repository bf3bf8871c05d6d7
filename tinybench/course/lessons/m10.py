"""Helpers for module 10: a program that is killed at work, and a suite that records its pieces instead of measuring.

A piece is a part of a suite's measurements that is saved in a file of its own.
"""

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


class Interrupted(Exception):
    """An exception that simulates a power cut in a check."""


def counting_suite(suite: Any, breaks_at: str | None = None) -> Any:
    """Change a suite to record its pieces in `suite.measured` instead of measuring them, and return the suite.

    `suite.tables` counts the calls of `write_tables`. At the piece `breaks_at`, the suite raises Interrupted.
    """

    def measure(piece: str) -> dict[str, BenchmarkResult]:
        if piece == breaks_at:
            raise Interrupted(piece)
        suite.measured.append(piece)
        return {"m": BenchmarkResult(piece.partition("-")[0], [float(len(suite.measured))], unit="s")}

    suite.measured, suite.tables, suite._measure = [], 0, measure
    suite.write_tables = lambda: setattr(suite, "tables", suite.tables + 1)
    return suite
