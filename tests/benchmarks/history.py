"""Are steps in a history of 300 commits found, and how often is one told where there is none?

``python -m tests.benchmarks.history`` takes some minutes (``--short`` some seconds: shows that it works, not what is true;
``--only alarms`` a part). The parts, each described at the head of its file:

alarms
    Histories without a step: how many ever raise an alarm, looking after every commit.
found
    Histories with four steps of 2 % or 1 %: how soon they are found, and how well placed.

Each part's numbers go into ``bench/history.json`` with the command and the machine; ``--publish`` makes the page of all
that are there, with an empty ``--only`` without computing again.
"""

from __future__ import annotations

import sys

from tests.benchmarks.report import run_parts

PARTS = {"alarms": "Histories without a step", "found": "Histories with steps"}

INTRO = (
    "Simulated: each history is of 300 commits whose ratio to a baseline, measured in the same rounds, scatters by 0.5 % "
    "(Student's t: has the scale 0.5 %). Outliers lie 5 to 20 % off. The same histories in ms are those of a machine that "
    "wanders by 0.2 % a commit and three times becomes 2 to 5 % slower or faster for good; the ratio does not see it. "
    "What is drawn stands in [history_data.py](../history_data.py).\n\n"
    "`StepDetector` and PELT look after every commit (or PELT once, when the history ends, where it says so); "
    "neighbours are compared with a tolerance of 2 %. PELT: `ruptures`, "
    "least squares, 3 ln n σ² for each change, σ by neighbours' differences. E-divisive: "
    "Apache Otava's, as it comes (t tests, level 0.001), asked "
    "once, when the history ends: it has only one chance of a false alarm where the others have 300.\n\n"
    "What the detector cannot do: where each value takes after the one before (autocorrelation), it tries to take that "
    "away, but its rate of false alarms holds no longer; the page shows by how much. It cannot tell a machine that "
    "drifts from code that became slower, so it needs ratios. A change that lasts fewer than three commits is hardly "
    "told from chance at this rate of alarms, and with fewer than about 20 values on the old level a step takes longer "
    "to find. Where two of the first five values on the new level are outliers, it takes longer. With heavy tails "
    "(Student's t) some of the five lie far from either level, and a step of 1 % is only twice the scatter: both take "
    "more than 5 commits. The size of a step is biased upwards "
    "at its alarm (it was found because it looked large); `find_steps` estimates it again by all later values."
)

if __name__ == "__main__":
    sys.exit(run_parts("history", "Steps in a history", INTRO, PARTS, __doc__))
