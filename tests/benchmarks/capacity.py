"""How far do queueing theory and simulation foretell a real server, and how many instances does a peak take?

``python -m tests.benchmarks.capacity`` takes most of an hour (``--short`` a minute: shows that it works, not what is
true; ``--only lindley`` a part). Everything is served by `tinybench serve` and loaded by the open loop of
`tinybench load`, on this machine. The parts, each described at the head of its file:

lindley
    Mean waits of real requests beside those predicted from measured service times.
rate
    The highest rate that keeps a bound: does its interval hold the truth, and is it found again?
batches
    Throughput and p99 against ``--max-batch`` and ``--max-wait``, simulated and real.
plan
    Instances for a peak and their cost, run behind haproxy.
machine
    Memory against workers, and several models on one machine.

Each part's numbers go into ``bench/capacity.json`` with the command and the machine; ``--publish`` makes the page of
all that are there, with an empty ``--only`` without measuring again.
"""

from __future__ import annotations

import sys

from tests.benchmarks.report import ONNX_RUNTIME, run_parts

PARTS = {
    "lindley": "Waits at one server",
    "rate": "The highest rate that keeps a bound",
    "batches": "Batches",
    "plan": "Instances for a peak",
    "machine": "Memory and neighbours",
}


INTRO = (
    "What is measured, and how, stands at the head of [capacity.py](../capacity.py) and of the file of each part. "
    "The load is that when a part began; it counts whatever else ran on these cores."
)

if __name__ == "__main__":
    sys.exit(run_parts("capacity", "What a server can take", INTRO, PARTS, __doc__, algebra=ONNX_RUNTIME))
