"""Drift: how often do alarms ring where nothing has changed, how late where something has, and before the labels come?"""

from __future__ import annotations

from tests.benchmarks import drift_alarms, drift_delay, drift_dependence, drift_digits
from tests.benchmarks.harness import Benchmark

PARTS = {
    "alarms": drift_alarms.PART,
    "thumb": drift_alarms.THUMB,
    "dependence": drift_dependence.PART,
    "delay": drift_delay.PART,
    "digits": drift_digits.PART,
    "cost": drift_digits.COST,
}
INTRO = "Shares are followed by 95 % intervals (Wilson)."
BENCHMARK = Benchmark("Does what comes now look like what was tested?", PARTS, INTRO)
