"""Run frouros's detectors over streams in a JSON file, in an environment of its own: it pins an older NumPy."""

import json
import sys
from pathlib import Path

import frouros.detectors.concept_drift as detectors
import numpy as np

SCALED = ("ADWIN", "HDDMA")  # which take values from 0 to 1


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
    file, warm, *names = sys.argv[1:]
    streams = np.array(json.loads(Path(file).read_text(encoding="utf-8")))
    print(json.dumps({name: [first(name, stream, int(warm)) for stream in streams] for name in names}))
