"""frouros's detectors on streams in a file, in a process of its own, for it pins an older NumPy: prints JSON.

Run by `drift_delay`: ``uv run --no-project --isolated --with frouros==0.9.0 python drift_frouros.py STREAMS.npy WARM``.
"""

import json
import sys

import frouros.detectors.concept_drift as detectors
import numpy as np

SCALED = ("ADWIN", "HDDMA")  # which take values from 0 to 1
NAMES = sys.argv[3:]


def first(name: str, stream: np.ndarray, warm: int) -> int | None:
    """Return how many values after the warm-up the detector has seen when it alarms first."""
    if name in SCALED:
        low, high = stream[:warm].min(), stream[:warm].max()
        stream = np.clip((stream - low) / (high - low), 0, 1)
    config = getattr(detectors, f"{name}Config")
    detector = getattr(detectors, name)(config(seed=0) if name == "KSWIN" else config())
    for number, value in enumerate(stream.tolist()):
        detector.update(value=value)
        if detector.status["drift"]:
            if number >= warm:
                return number - warm + 1
            detector.reset()
    return None


if __name__ == "__main__":
    streams, warm = np.load(sys.argv[1]), int(sys.argv[2])
    print(json.dumps({name: [first(name, stream, warm) for stream in streams] for name in NAMES}))
