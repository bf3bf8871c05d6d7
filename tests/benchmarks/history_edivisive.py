"""Run E-divisive of Apache Otava over series in an .npy file, in an environment of its own: it pins other libraries."""

import json
import sys

import numpy as np
from otava.analysis import compute_change_points  # type: ignore[import-not-found]

if __name__ == "__main__":
    given, told = sys.argv[1:]
    found = []
    for series in np.load(given):
        points, _ = compute_change_points(list(series))
        found.append([int(point.index) for point in points])
    with open(told, "w", encoding="utf-8") as file:
        json.dump(found, file)
