"""One model in FP32, FP16, bfloat16, INT8 and 4 bits: size, answers, time, and what really ran.

``python -m tests.benchmarks.precision`` takes about 2 minutes (``--short`` some seconds: shows that it works, not what
is true). The numbers go into ``bench/precision.json`` with the command and the machine; ``--publish`` makes the page of
them, with an empty ``--only`` without measuring again.
"""

from __future__ import annotations

import sys

from tests.benchmarks.report import run_parts

PARTS = {"models": "Two networks"}
INTRO = (
    "What is measured, and how, stands at the head of [precision_models.py](../precision_models.py). The load is that "
    "when it began; it counts whatever else ran on these cores."
)

if __name__ == "__main__":
    sys.exit(run_parts("precision", "What precision costs and brings", INTRO, PARTS, __doc__))
