"""What ``import tinybench`` costs: little more than NumPy, because heavy libraries wait until they are needed."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

HEAVY = ["IPython", "matplotlib", "onnx", "onnxruntime", "scipy", "sklearn", "tqdm", "yaml"]


def seconds(code: str) -> float:
    """Return the CPU seconds of a process; how long it waits for a core is no concern of the package."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_heavy_libraries_stay_out() -> None:
    code = f"import sys, tinybench; tinybench.Benchmark, tinybench.BenchmarkSuite, tinybench.compare; print(sorted({{m.partition('.')[0] for m in sys.modules}} & set({HEAVY})))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


def test_import_costs_little_more_than_numpy() -> None:
    more = []
    for _ in range(7):  # interleaved: a busy machine slows both
        alone = seconds("import numpy")
        more.append((seconds("import numpy, tinybench; tinybench.Benchmark, tinybench.BenchmarkSuite") - alone) / alone)
    # NumPy takes 0.1 to 0.3 s by itself; a ratio stands also on a machine that has other things to do
    assert statistics.median(more) <= 3.0
