"""A/B tests: how often do equal versions look different, and what does each stopping rule cost?

``python -m tests.benchmarks.ab`` takes about a minute (``--short`` some seconds: shows that it works, not what is true).
What is simulated stands at the head of ``ab_trials.py``. The numbers go into ``bench/ab.json`` with the command and the
machine; ``--publish`` writes the page, with an empty ``--only`` without computing again.
"""

from __future__ import annotations

import sys

from tests.benchmarks.report import run_parts

PARTS = {"trials": "Simulated tests"}

INTRO = "What is simulated stands at the head of [ab_trials.py](../ab_trials.py)."

if __name__ == "__main__":
    sys.exit(run_parts("ab", "A/B tests and when they may stop", INTRO, PARTS, __doc__))
