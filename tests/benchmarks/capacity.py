"""How far do queueing theory and simulation foretell a real server, and how many instances does a peak take?

Everything is served by `tinybench serve` and loaded by the open loop of `tinybench load`, on this machine.
"""

from __future__ import annotations

from tests.benchmarks import capacity_batches, capacity_lindley, capacity_machine, capacity_plan, capacity_rate
from tests.benchmarks.harness import ONNX_RUNTIME, Benchmark

PARTS = {
    "lindley": capacity_lindley.PART,
    "rate": capacity_rate.PART,
    "batches": capacity_batches.PART,
    "plan": capacity_plan.PART,
    "machine": capacity_machine.PART,
}
BENCHMARK = Benchmark("What a server can take", PARTS, algebra=ONNX_RUNTIME)
