"""Helpers for module 15: three functions that take known fractions of the time, and profilers that look at them."""

from __future__ import annotations

import cProfile
import math
import os
import pstats
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def tiny(x: int) -> int:
    """Return x + 1. The call itself takes most of the time."""
    return x + 1


def many_small_calls() -> None:
    """Call `tiny` 6000 times."""
    x = 0
    for _ in range(6000):
        x = tiny(x)


def plain_loop() -> None:
    """Run a loop of plain Python that calls nothing."""
    x = 0
    for _ in range(12_000):
        x = (x + 1) % 7


MATRIX = np.ones((128, 128), np.float32)


def in_numpy() -> None:
    """Multiply two matrices 8 times, so that the time is spent inside NumPy."""
    for _ in range(8):
        MATRIX @ MATRIX


MIXTURE = (many_small_calls, plain_loop, in_numpy)


def mixture() -> None:
    """Call each of the three functions in `MIXTURE` once."""
    for function in MIXTURE:
        function()


def by_clock(seconds: float = 1.0) -> dict[str, float]:
    """Return the fraction of the time that each function in `MIXTURE` takes, measured with a clock around each call."""
    spent = {function.__name__: 0.0 for function in MIXTURE}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for function in MIXTURE:
            start = time.perf_counter()
            function()
            spent[function.__name__] += time.perf_counter() - start
    return _shares(spent)


def by_cprofile(seconds: float = 1.0) -> tuple[dict[str, float], float]:
    """Return each function's fraction of the time according to cProfile, and the slowdown factor of cProfile."""
    profiler, plain, traced = cProfile.Profile(), list[float](), list[float]()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        mixture()
        middle = time.perf_counter()
        profiler.enable()
        mixture()
        profiler.disable()
        plain.append(middle - start)
        traced.append(time.perf_counter() - middle)
    found = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = {name: row[3] for (_, _, name), row in found.items()}
    return _shares({function.__name__: total[function.__name__] for function in MIXTURE}), float(
        np.median(traced) / np.median(plain)
    )


def from_outside(seconds: float = 2.0) -> dict[str, float]:
    """Return each function's fraction of the time, sampled from another process by py-spy.

    Return an empty dictionary if py-spy is not installed, or if the system does not permit it.
    """
    spy = shutil.which("py-spy", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if spy is None:
        return {}
    work = f"import time; from {__name__} import mixture; end = time.time() + {seconds}"
    work += "\nwhile time.time() < end: mixture()"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "stacks.txt")
        how = ["--format", "raw", "--rate", "200", "--nonblocking", "--output", str(file)]
        paths = os.pathsep.join(sys.path)  # a notebook has put the folder of the package there
        subprocess.run(
            [spy, "record", *how, "--", sys.executable, "-c", work],
            env={**os.environ, "PYTHONPATH": paths}, capture_output=True, timeout=60,
        )  # fmt: skip
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    spent = {function.__name__: 0.0 for function in MIXTURE}
    for line in lines:
        stack, _, count = line.rpartition(" ")
        for name in spent:
            spent[name] += int(count) if f"{name} (" in stack else 0
    return _shares(spent) if sum(spent.values()) else {}


def of_mixture(total: Mapping[str, float]) -> dict[str, float]:
    """Pick the functions in `MIXTURE` from `total`, and return their fractions of the time, scaled to a sum of 1."""
    names = (function.__name__ for function in MIXTURE)
    return _shares({name: total.get(f"{name} ({Path(__file__).name})", 0.0) for name in names})


def _shares(spent: Mapping[str, float]) -> dict[str, float]:
    total = sum(spent.values()) or math.nan
    return {name: each / total for name, each in spent.items()}
