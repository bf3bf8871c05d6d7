"""Drift detection: a reference distribution of the test data, and alarms that are valid at any time.

`Reference` holds counts of the test data by bin. `DriftWatch` compares new rows with a reference. Its alarm can be read
after any number of rows without raising the false-alarm rate. `NewRows` chooses rows that hardly depend on one another.
"""

from tinybench.tools.drifting.capital import Capital
from tinybench.tools.drifting.drift_watch import DriftWatch
from tinybench.tools.drifting.new_rows import NewRows
from tinybench.tools.drifting.reference import Reference

__all__ = ["Capital", "DriftWatch", "NewRows", "Reference"]
