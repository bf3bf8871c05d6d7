"""Drift: how often do alarms ring where nothing has changed, how late where something has, and before the labels come?

``python -m tests.benchmarks.drift`` takes about 25 minutes (``--short`` some seconds: shows that it works, not what is
true; ``--only alarms`` a part). The parts, each described at the head of its file:

alarms
    False alarms of PSI, Kolmogorov–Smirnov, χ² and the sequential alarms on equal data, beside the rule of thumb's.
thumb
    The rule of thumb on equal normal data in ten bins, and what adding half a value to every bin does to it.
delay
    Values until an alarm, beside river's and frouros's detectors on the same streams, with everybody's false alarms.
digits
    Shifted digits through a real server: latency, accuracy, the alarm, and the labels that come later.
cost
    What `tinybench serve --reference` adds to a request, in interleaved rounds.

Each part's numbers go into ``bench/drift.json`` with the command and the machine; ``--publish`` makes the page of all
that are there, with an empty ``--only`` without measuring again.
"""

from __future__ import annotations

import sys

from tests.benchmarks.report import run_parts

PARTS = {
    "alarms": "False alarms",
    "thumb": "The rule of thumb",
    "delay": "How late",
    "digits": "Shifted digits, through a real server",
    "cost": "What it costs a request",
}

INTRO = (
    "What is measured, and how, stands at the head of [drift.py](../drift.py) and of the file of each part. The load is "
    "that when a part began; it counts whatever else ran on these cores. Shares are followed by 95 % intervals (Wilson)."
)

if __name__ == "__main__":
    sys.exit(run_parts("drift", "Does what comes now look like what was tested?", INTRO, PARTS, __doc__))
