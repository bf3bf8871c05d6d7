"""Drift detection: a reference distribution of the test data, and alarms that are valid at any time.

`Reference` holds the counts of values by bin. `DriftWatch` compares every row with the reference. Its
alarm can be read after any number of values, and its false-alarm rate still holds.
"""

from tinybench.tools.drifting.capital import Capital
from tinybench.tools.drifting.drift_watch import DriftWatch
from tinybench.tools.drifting.reference import Reference

__all__ = ["Capital", "DriftWatch", "Reference"]
