"""Laws of scaling: are known ones found again, and what does this machine make of 1, 2, … workers?"""

from __future__ import annotations

from tests.benchmarks import scaling_laws, scaling_machine
from tests.benchmarks.harness import Benchmark

BENCHMARK = Benchmark("How work scales with workers", {"laws": scaling_laws.PART, "machine": scaling_machine.PART})
