"""Drift detection: a reference distribution of the test data, and alarms that are valid at any time.

`Reference` holds the counts of values by bin. `DriftWatch` compares every row with the reference. `Parity` compares two
versions on the same requests. `Labels` measures the accuracy by labels that arrive late. All three alarms can be read
after any number of values, and their false-alarm rates still hold.
"""

from tinybench.tools.drifting.capital import Capital
from tinybench.tools.drifting.drift_watch import DriftWatch
from tinybench.tools.drifting.failure_alarms import Labels, Parity, RateAlarm
from tinybench.tools.drifting.reference import Reference

__all__ = ["Capital", "DriftWatch", "Labels", "Parity", "RateAlarm", "Reference"]
