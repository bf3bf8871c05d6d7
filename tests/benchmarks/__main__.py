"""`make bench`: the timed loop beside its peers, then comparisons beside theirs. About half an hour; see `--help`."""

from __future__ import annotations

import argparse
import subprocess
import sys

PARTS = ("timing", "comparison")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    for part in parser.parse_args().parts:
        subprocess.run([sys.executable, "-m", f"tests.benchmarks.{part}"], check=True)
