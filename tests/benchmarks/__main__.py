"""Run a benchmark: its question, its cases and its page stand in the module of its name.

Without a name, run those of `make bench`, each in a process of its own.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import harness

# How long each takes; the first four are those of `make bench`.
BENCHMARKS = {
    "timing": "6 minutes",
    "comparison": "half an hour",
    "load": "half an hour",
    "profiler": "5 minutes",
    "verdicts": "an hour",
    "coverage": "10 to 20 minutes",
    "gates": "hours: --trials and --case for less",
    "capacity": "an hour",
    "roofline": "5 minutes",
    "scaling": "4 minutes",
    "precision": "4 minutes",
    "what_if": "12 minutes",
    "rollout": "40 minutes",
    "drift": "40 minutes",
    "history": "a quarter of an hour",
    "ab": "a minute",
    "distillation": "minutes",
    "grading": "minutes",
    "referee": "5 minutes",
    "device": "5 minutes, with a GPU",
}
DEFAULT = list(BENCHMARKS)[:4]


def question_of(name: str) -> str:
    """Return the first line of a benchmark's docstring. It is read, because importing all modules takes long."""
    text = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]


def main(arguments: Sequence[str]) -> int:
    """Run one benchmark, or those of `make bench`. Return 1 if a goal was missed."""
    if arguments and arguments[0] in BENCHMARKS:
        return harness.main(arguments[0], question_of(arguments[0]), arguments[1:])
    told = "\n".join(f"  {name:13}{question_of(name)} ({takes})" for name, takes in BENCHMARKS.items())
    usage = "python -m tests.benchmarks [NAME [--help]]"
    ArgumentParser(
        usage=usage, description=__doc__, epilog=told, formatter_class=RawDescriptionHelpFormatter
    ).parse_args(arguments)
    return max(subprocess.run([sys.executable, "-m", "tests.benchmarks", name]).returncode for name in DEFAULT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
