"""What ``import tinybench`` costs: little more than NumPy, because heavy libraries wait until they are needed."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

HEAVY = ["IPython", "matplotlib", "onnx", "onnxruntime", "scipy", "sklearn", "tqdm", "yaml"]


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


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
