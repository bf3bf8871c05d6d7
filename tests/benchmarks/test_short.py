"""The short form of each benchmark runs, keeps its records, and prints a page with its rows."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import BENCHMARKS, main
from tests.benchmarks.harness import read

# name → more options, and texts of the page that no page without the measurement has
SHORT: dict[str, tuple[str, list[str]]] = {
    "ab": ("", ["| anytime-valid, twice |", "| by user |", "- met: fixed horizon"]),
    "comparison": ("--busy 0", ["| tinybench, 0.2 s |", "| asv |", "| tinybench live | until decided | – |"]),
    "coverage": ("", ["| t | 10 | 95.0% |", "| median | 5 | – | takes 6 |", "| apart | 1000 |", "19 times as long"]),
    "capacity": (
        "",
        [
            "### Work: all alike",
            "| M/M/1, runs of 10 s | 1103/s |",
            "| 16 | 5 |",
            "| M/D/1 | 0.99 |",
            "| 40/s |",
            "| 2 |",
        ],
    ),
    "device": ("", ["| first call |", "| bfloat16 | 8192 |", "the counter rose by"]),
    "distillation": ("--steps 100", ["| 16 | T = 1, λ = 1 |", "100 of 100 rows"]),
    "drift": (
        "",
        ["| PSI > 0.2 |", "| n = 50 | PSI, nothing added |", "| river PageHinkley, tuned", "in 1 of 1 runs", "| p95 |"],
    ),
    "gates": ("--case=command --jobs=2", ["| command, 35 ms | 0 % | 1 |", "`--run`: "]),
    "load": ("", ["| tinybench load --closed | closed |", "| mlcommons_loadgen | open |", "the true p99"]),
    "grading": ("", ["| 04_accuracy | 10,000 |", "4 submissions a module on 2 local workers"]),
    "history": ("", ["| t, 2 df | 0 of 2 | 2 of 2 |", "| 2% | normal | PELT, ms |", "| 2% | normal | 4 |"]),
    "precision": ("", ["| 4-bit weights |", "### Operators that ran"]),
    "profiler": ("", ["| small | moving |", "| numpy | sorting |", "| small | 10 ms |", "told by cProfile, %"]),
    "referee": ("", ["| INT8 | latency |", "| 32 hidden units | memory |", "of 2 |"]),
    "rollout": ("", ["| slow (slow:20ms) | rolled back at 5 % | 1 of 1 (3 to 100 %) |"]),
    "roofline": ("", ["## Bytes moved, 1 thread", "## INT8 static, batch 64", "| 64 |", "| nothing |"]),
    "scaling": ("", ["| Gustafson | 6 |", "| threads, model |"]),
    "timing": ("", ["| tinybench timed_calls |", "| ONNX Runtime, 1 image | 20 |", "K = 20, holds"]),
    "verdicts": ("", ["| 20 µs | %bench |", "| 20 µs | asv |"]),
    "what_if": (
        "--seconds=0.1",
        ["Trials ran beside a process that never rests.", "| a lock | 3 |", "| sequential | 3 |"],
    ),
}
PY_SPY = bool(shutil.which("py-spy")) and getattr(os, "geteuid", lambda: 1)() == 0  # only root may look at others
NEEDS = {
    "capacity": [pytest.mark.needs("load")],
    "device": [pytest.mark.skipif(not find_spec("torch"), reason="PyTorch is missing, or there is no GPU")],
    "grading": [pytest.mark.needs("sandbox")],
    "load": [pytest.mark.needs("load")],
    "profiler": [pytest.mark.skipif(not PY_SPY, reason="py-spy is missing, or may not look at others here")],
    "referee": [pytest.mark.needs("sandbox")],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDS.get(name, [])) for name in SHORT])
def test_the_short_form_makes_a_page(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more, texts = SHORT[name]
    assert main([name, "--short", *more.split(), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert [text for text in texts if text not in told] == []
    *records, last = read(tmp_path / f"{name}-short.jsonl")
    assert records
    assert last == {"run": 1, "ended": True}


def test_every_benchmark_has_a_short_form() -> None:
    assert set(SHORT) == set(BENCHMARKS)
