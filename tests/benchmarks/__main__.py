"""`make bench`: the timed loop, comparisons, the load generator and the profiler beside their peers. About an hour.

Named parts run in their place: verdicts from 50 ns to 20 ms (an hour), coverage of every interval (5 minutes), capacity
of a server (an hour), roofs and what INT8 gains by them (5 minutes), scaling and precision (4 minutes each), what_if
(12 minutes), rollout (40 minutes), drift (10 minutes), steps in a history (a quarter of an hour), A/B tests (a minute),
gates (hours).
"""

from __future__ import annotations

import argparse
import subprocess
import sys

PARTS = ("timing", "comparison", "load", "profiler")
LONGER = (
    "verdicts",
    "coverage",
    "gates",
    "capacity",
    "roofline",
    "scaling",
    "precision",
    "what_if",
    "rollout",
    "drift",
)
LONGER += ("history", "ab")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        default=PARTS,
        metavar="PART",
        help=f"of {', '.join(PARTS + LONGER)} (default: the first four)",
    )
    for part in parser.parse_args().parts:
        subprocess.run([sys.executable, "-m", f"tests.benchmarks.{part}"], check=True)
