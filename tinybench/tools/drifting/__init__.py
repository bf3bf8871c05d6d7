"""Does what comes now look like what the model was tested on? A reference, windows, alarms valid at any time.

`Reference` keeps how often values fell into bins. `judge` compares a window with it, once. `DriftWatch` looks at every
row and may be asked at any time, as may `Parity` (two versions on the same requests) and `Labels` (which come late).
"""

from tinybench.tools.drifting.capital import Capital
from tinybench.tools.drifting.drift_watch import DriftWatch
from tinybench.tools.drifting.failure_alarms import Labels, Parity, RateAlarm
from tinybench.tools.drifting.reference import Reference
from tinybench.tools.drifting.windows import Judgement, judge

__all__ = ["Capital", "DriftWatch", "Judgement", "Labels", "Parity", "RateAlarm", "Reference", "judge"]
