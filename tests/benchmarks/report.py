"""What the benchmarks share: a command line, the machine in words, and where results go."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tinybench.benchmark import system_info

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "benchmarks" / "results"


def command_line(part: str, doc: str | None) -> argparse.ArgumentParser:
    """Return a parser described by the first line of a module's docstring."""
    return argparse.ArgumentParser(prog=f"python -m tests.benchmarks.{part}", description=(doc or "").splitlines()[0])


def on_this_machine() -> str:
    """Return which machine this is, and how busy, for the head of a page of results."""
    facts = system_info()
    load = f"load {facts['load_average'][0]:.1f}"
    return f"on {facts['cores']} cores of {facts['cpu']} ({facts['platform']}, Python {facts['python']}, {load}, {facts['time'][:10]})"


def write_json(file: Path, data: Any) -> None:
    """Write the numbers where they go, in folders made for them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
