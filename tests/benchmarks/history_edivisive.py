"""Run E-divisive of Apache Otava over series in a JSON file, in an environment of its own: it pins other libraries."""

import json
import sys
from pathlib import Path

from otava.analysis import compute_change_points  # type: ignore[import-not-found]

if __name__ == "__main__":
    series = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps([[int(point.index) for point in compute_change_points(each)[0]] for each in series]))
