"""Does what comes now look like what the model was tested on? A reference, windows, alarms valid at any time.

`Reference` keeps how often values fell into bins. `judge` compares a window with it, once. `DriftWatch` looks at every
row and may be asked at any time, as may `Parity` (two versions on the same requests) and `Labels` (which come late).
"""

from tinybench.drifting.capital import Capital
from tinybench.drifting.rates import Labels, Parity, RateAlarm
from tinybench.drifting.reference import Reference
from tinybench.drifting.watch import DriftWatch
from tinybench.drifting.windows import Judgement, judge

__all__ = ["Capital", "DriftWatch", "Judgement", "Labels", "Parity", "RateAlarm", "Reference", "judge"]
