"""Cells that measure for a given time go on with the few rounds that a slow or busy machine makes in it."""

from __future__ import annotations

import itertools
import json
import types
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib
import pytest

MODULES = Path(__file__).parents[2] / "modules"


@pytest.mark.parametrize(
    ("module", "cells"),
    [
        ("02_timer", ["hook-model", "hook", "hook-figure", "gc-work", "gc-demo", "gc-figure"]),
        ("03_latency", ["hook", "drift-demo", "drift-figure", "session-stream", "session-demo", "session-figure"]),
        ("07_comparison", ["hook", "hook-figure"]),
    ],
)
def test_the_least_number_of_rounds_is_enough(module: str, cells: list[str]) -> None:
    matplotlib.use("Agg")
    notebook = json.loads((MODULES / module / f"{module}.ipynb").read_text(encoding="utf-8"))
    sources = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    space: dict[str, Any] = dict(vars(import_module(f"tinybench.{module[3:]}")), __name__=module)
    exec(sources["setup"], space)
    figures: list[str] = []
    ten_seconds_a_reading = itertools.count(0.0, 10.0).__next__
    space["time"] = types.SimpleNamespace(perf_counter=ten_seconds_a_reading, sleep=lambda seconds: None)
    space["show_figure"] = lambda figure, *, alt, **_: figures.append(alt)
    for cell in cells:
        exec(sources[cell], space)
    assert figures
    assert "nan" not in " ".join(figures)
