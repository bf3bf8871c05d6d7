"""Laws of scaling: are known ones found again, and what does this machine make of 1, 2, … workers?

``python -m tests.benchmarks.scaling`` takes about 4 minutes (``--short`` some seconds: shows that it works, not what is
true; ``--only laws`` a part). The parts, each described at the head of its file:

laws
    Made-up seconds of known laws: coverage of the intervals.
machine
    Threads, processes, threads inside ONNX Runtime and BLAS, affinity, oversubscription.

Each part's numbers go into ``bench/scaling.json`` with the command and the machine; ``--publish`` makes the page of all
that are there, with an empty ``--only`` without measuring again.
"""

from __future__ import annotations

import sys

from tests.benchmarks.report import run_parts

PARTS = {"laws": "Known laws", "machine": "This machine"}

INTRO = (
    "What is measured, and how, stands at the head of [scaling.py](../scaling.py) and of the file of each part. The load "
    "is that when a part began; it counts whatever else ran on these cores."
)

if __name__ == "__main__":
    sys.exit(run_parts("scaling", "How work scales with workers", INTRO, PARTS, __doc__))
