"""Keeps how long each test took last time, as a pytest plugin; ``python -m tests.minutes --of tests`` shows it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TOOK = Path(__file__).parents[1] / ".venv" / "took.tsv"


def took() -> dict[str, tuple[float, float]]:
    """Return the seconds of wall and of processor time, children's included, that each test took last time."""
    lines = TOOK.read_text(encoding="utf-8").splitlines() if TOOK.exists() else []
    parts = (line.split("\t") for line in lines if line.count("\t") == 2)  # a run that was killed leaves half a line
    return {test: (float(wall), float(used)) for wall, used, test in parts}


def pytest_sessionstart(session: pytest.Session) -> None:
    """Keep one line a test; the workers of xdist only add lines."""
    if not hasattr(session.config, "workerinput") and TOOK.exists():
        kept = (f"{wall:.3f}\t{used:.3f}\t{test}\n" for test, (wall, used) in took().items())
        TOOK.write_text("".join(kept), encoding="utf-8")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Add a test's line."""
    wall, used = time.perf_counter(), sum(os.times()[:4])
    try:
        return (yield)
    finally:
        if TOOK.parent.is_dir():
            with TOOK.open("a", encoding="utf-8") as file:
                file.write(f"{time.perf_counter() - wall:.3f}\t{sum(os.times()[:4]) - used:.3f}\t{item.nodeid}\n")
