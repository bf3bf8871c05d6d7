"""How well the referee repeats itself: the same entries measured again and again, alone or on a loaded machine.

python -m tests.benchmarks.referee           # about five minutes
python -m tests.benchmarks.referee --load    # with two busy processes on each core
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import check
from autograder.leaderboard.referee.referee import Referee
from autograder.leaderboard.settings import Baseline, Olympics, load
from tests.benchmarks.processes import busy_cores
from tests.benchmarks.report import command_line, write_json
from tests.leaderboard.boards import small_olympics
from tinybench.quantize import quantize_dynamic_int8
from tinybench.table import Table

GOAL = 0.93
MEASURES = ("latency", "memory")

Ratio = Sequence[float]  # value, lower, upper


def agreement(ratios: Sequence[Ratio]) -> tuple[int, int]:
    """Return in how many ordered pairs the second's value lies within the first's interval, and of how many."""
    pairs = list(itertools.permutations(ratios, 2))
    return sum(lower <= value <= upper for (_, lower, upper), (value, _, _) in pairs), len(pairs)


def measure(olympics: Olympics, repeats: int) -> dict[str, dict[str, list[Ratio]]]:
    """Return the ratios of a baseline's INT8 version and a narrow network, each measured often, in random order."""
    baseline = digits.train_baseline(olympics.baseline)
    with TemporaryDirectory() as folder:
        path = Path(folder, "baseline.onnx")
        path.write_bytes(baseline)
        entries = {
            "INT8": quantize_dynamic_int8(path).read_bytes(),
            "32 hidden units": digits.train_baseline(Baseline((32,), 8)),
        }
    referee = Referee(olympics, baseline, seed=1)
    found: dict[str, dict[str, list[Ratio]]] = {name: {each: [] for each in MEASURES} for name in entries}
    turns = [name for name in entries for _ in range(repeats)]
    random.shuffle(turns)
    for number, name in enumerate(turns, 1):
        check(entries[name], olympics.limits)
        began = time.monotonic()
        scores, _ = referee.measure(entries[name])
        for each in MEASURES:
            found[name][each].append(scores[each]["ratio"])
        shown = ", ".join("{} {:.3f} ({:.3f} to {:.3f})".format(each, *scores[each]["ratio"]) for each in MEASURES)
        print(f"{number}/{len(turns)} {name}: {shown}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return found


def table(found: Mapping[str, Mapping[str, Sequence[Ratio]]]) -> list[dict[str, Any]]:
    """Return a row for each entry and measure: smallest and largest ratio, mean width, agreeing pairs."""
    rows = []
    for name, measures in found.items():
        for each, ratios in measures.items():
            agree, pairs = agreement(ratios)
            values = [value for value, _, _ in ratios]
            row: dict[str, Any] = {"entry": name, "measure": each, "smallest": min(values), "largest": max(values)}
            width = fmean(upper / lower for _, lower, upper in ratios)
            rows.append({**row, "width": width, "agree": agree, "pairs": pairs})
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, and write everything to a JSON file; exit code 1 if the goal is missed."""
    parser = command_line("referee", __doc__)
    parser.add_argument("--load", action="store_true", help="keep two processes on each core busy meanwhile")
    parser.add_argument("--repeats", type=int, default=8, help="measurements of each of two entries (default: 8)")
    parser.add_argument("--quick", action="store_true", help="little effort: shows that it works, not what is true")
    parser.add_argument("--output", type=Path, default=Path("bench/referee.json"), help="where the numbers go")
    options = parser.parse_args(arguments)
    if options.repeats < 2:
        parser.error("--repeats must be at least 2: one measurement agrees with nothing")
    busy = 2 * (os.cpu_count() or 1) if options.load else 0
    before = os.getloadavg()[0]
    with busy_cores(busy) if busy else contextlib.nullcontext():
        found = measure(small_olympics() if options.quick else load(), options.repeats)
    rows = table(found)
    shown = Table(
        {
            **{key: row[key] for key in ("entry", "measure")},
            **{key: f"{row[key]:.3f} ×" for key in ("smallest", "largest")},
            "interval, upper ÷ lower": f"{row['width']:.3f}",
            "pairs that agree": f"{row['agree']} of {row['pairs']}",
        }
        for row in rows
    )
    print(shown.markdown())
    agree, pairs = (sum(row[key] for row in rows) for key in ("agree", "pairs"))
    met = agree >= GOAL * pairs
    print(f"\n{agree / pairs:.1%} of {pairs} pairs agree; {'met' if met else 'MISSED'}: at least {GOAL:.0%}")
    print(f"load average before: {before:.1f}, after: {os.getloadavg()[0]:.1f}; own busy processes: {busy}")
    data = {"quick": options.quick, "busy": busy, "load_before": before, "ratios": found, "table": rows}
    write_json(options.output, data)
    return 0 if met or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
