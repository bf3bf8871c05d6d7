"""Does what comes now look like what the model was tested on? A reference, and alarms that are valid at any time.

`Reference` keeps how often values fell into bins. `DriftWatch` looks at every row and may be asked at any time. So may
`Parity` (two versions on the same requests) and `Labels` (which come late).
"""

from tinybench.tools.drifting.capital import Capital
from tinybench.tools.drifting.drift_watch import DriftWatch
from tinybench.tools.drifting.failure_alarms import Labels, Parity, RateAlarm
from tinybench.tools.drifting.reference import Reference

__all__ = ["Capital", "DriftWatch", "Labels", "Parity", "RateAlarm", "Reference"]
