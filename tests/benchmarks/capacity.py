"""How far do queueing theory and simulation foretell a real server, and how many instances does a peak take?

``python -m tests.benchmarks.capacity`` takes most of an hour (``--short`` a minute: shows that it works, not what is
true; ``--only lindley`` a part). Everything is served by `tinybench serve` and loaded by the open loop of
`tinybench load`, on this machine. The parts, each described at the head of its file:

lindley
    Mean waits of real requests beside those predicted from measured service times.
rate
    The highest rate that keeps a bound: does its interval hold the truth, and is it found again?
batches
    Throughput and p99 against ``--max-batch`` and ``--max-wait``, simulated and real.
plan
    Instances for a peak and their cost, run behind haproxy.
machine
    Memory against workers, and several models on one machine.

Each part's numbers go into ``bench/capacity.json`` with the command and the machine; ``--publish`` makes the page of
all that are there, with an empty ``--only`` without measuring again.
"""

from __future__ import annotations

import json
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.benchmarks.report import RESULTS, command_line, on_this_machine, write_json

PARTS = {
    "lindley": "Waits at one server",
    "rate": "The highest rate that keeps a bound",
    "batches": "Batches",
    "plan": "Instances for a peak",
    "machine": "Memory and neighbours",
}


def page(found: dict[str, Any]) -> str:
    """Return all parts as Markdown."""
    pieces = [
        "# What a server can take",
        "What is measured, and how, stands at the head of [capacity.py](../capacity.py) and of the file of each part. "
        "The load is that when a part began; it counts whatever else ran on these cores.",
    ]
    for name, title in PARTS.items():
        if name in found:
            part, run = import_module(f"tests.benchmarks.capacity_{name}"), found[name]
            told = [f"- {'met' if met else 'MISSED'}: {goal}" for goal, met in part.goals(run["found"]).items()]
            pieces += [
                f"## {title}",
                f"`{run['command']}`, {run['machine']}.",
                *part.page(run["found"]),
                "\n".join(told),
            ]
    return "\n\n".join(pieces) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the parts, keep their numbers and print the page; 1 if a goal is missed."""
    parser = command_line("capacity", __doc__)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS), metavar="PART")
    parser.add_argument("--short", action="store_true", help="a minute: shows that it works, not what is true")
    parser.add_argument("--output", type=Path, default=Path("bench/capacity.json"), help="where the numbers go")
    parser.add_argument("--publish", action="store_true", help=f"also write {RESULTS.name}/capacity.md")
    options = parser.parse_args(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "-m", "tests.benchmarks.capacity", *given])
    found = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else {}
    missed = False
    for name in options.only:
        part = import_module(f"tests.benchmarks.capacity_{name}")
        machine = on_this_machine()
        found[name] = {"command": command, "machine": machine, "found": part.measured(options.short)}
        write_json(options.output, found)
        missed |= not all(part.goals(found[name]["found"]).values())
    told = page(found)
    print(told)
    if options.publish:
        (RESULTS / "capacity.md").write_text(told, encoding="utf-8")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
