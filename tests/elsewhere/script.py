"""Measure everything, with a model of this very script, and say by which methods: run where fork and /proc are not."""

import json
import os

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression

import tinybench as tb
from tinybench.support.footprint.high_water_mark import can_reset

assert not hasattr(os, "fork"), "put tests/elsewhere on PYTHONPATH"
assert not can_reset()


class Model:
    """Takes 32 MiB for each answer."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the largest column."""
        np.ones(2**22)
        return x.argmax(axis=1)


def load(size: int):  # type: ignore[no-untyped-def]
    """Return a model that keeps `size` numbers."""
    import numpy

    kept = numpy.ones(size)
    return lambda x: kept.sum()


x = np.eye(4, dtype=np.float32)
onnx = to_onnx(LogisticRegression().fit(x, range(4)), x[:1], options={"zipmap": False}).SerializeToString()
session = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])
bench = tb.Benchmark({"mine": Model(), "onnx": session}, (x, range(4)), measurement_runs=2, progress=None)
measured = {
    "latency": bench.run_latency_benchmark(inputs=x),
    "accuracy": tb.Benchmark([Model()], (x, range(4)), progress=None).run_accuracy_benchmark(),
    "memory": bench.run_memory_benchmark(inputs=x),
    "energy": bench.run_energy_benchmark(inputs=x, min_reading=0.01),
}
results = {
    f"{metric} of {name}": result.to_dict() for metric, found in measured.items() for name, result in found.items()
}
for stage, result in tb.memory_stages(load, x, repeats=1, args=(2**22,)).items():
    results[f"stage {stage}"] = result.to_dict()
results["cold start"] = tb.measure_cold_start(load, x, repeats=1, args=(8,))["load"].to_dict()
results["growth"] = tb.resident_growth(Model(), x, runs=20, blocks=2).to_dict()
print(json.dumps({"results": results, "system": tb.system_info()}))
