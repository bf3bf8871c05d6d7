"""What the benchmarks share: a command line, the machine in words, and where results go."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.benchmarks.harness import NO_BLAS, ONNX_RUNTIME, RESULTS, ROOT, on_this_machine

__all__ = ["NO_BLAS", "ONNX_RUNTIME", "RESULTS", "ROOT", "command_line", "on_this_machine", "run_parts", "write_json"]


def command_line(part: str, doc: str | None) -> argparse.ArgumentParser:
    """Return a parser described by the first line of a module's docstring."""
    return argparse.ArgumentParser(prog=f"python -m tests.benchmarks.{part}", description=(doc or "").splitlines()[0])


def write_json(file: Path, data: Any) -> None:
    """Write the numbers where they go, in folders made for them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def page_of(name: str, title: str, intro: str, parts: Mapping[str, str], found: Mapping[str, Any]) -> str:
    """Return what the parts of a benchmark found as Markdown, each with its command, machine and goals."""
    pieces = [f"# {title}", intro]
    for part, heading in parts.items():
        if part in found:
            module, run = import_module(f"tests.benchmarks.{name}_{part}"), found[part]
            told = [f"- {'met' if met else 'MISSED'}: {goal}" for goal, met in module.goals(run["found"]).items()]
            head = [f"## {heading}", f"`{run['command']}`, {run['machine']}."]
            pieces += [*head, *filter(None, module.page(run["found"])), "\n".join(told)]
    return "\n\n".join(pieces) + "\n"


def run_parts(
    name: str,
    title: str,
    intro: str,
    parts: Mapping[str, str],
    doc: str | None,
    arguments: list[str] | None = None,
    algebra: str = "",
) -> int:
    """Run the parts of a benchmark, each a module ``name_part``, keep their numbers, print the page; 1 if a goal is missed."""
    parser = command_line(name, doc)
    parser.add_argument("--only", nargs="*", choices=list(parts), default=list(parts), metavar="PART")
    parser.add_argument("--short", action="store_true", help="shows that it works, not what is true")
    parser.add_argument("--output", type=Path, default=Path(f"bench/{name}.json"), help="where the numbers go")
    parser.add_argument("--publish", action="store_true", help=f"also write {RESULTS.name}/{name}.md")
    options = parser.parse_args(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "-m", f"tests.benchmarks.{name}", *given])
    found = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else {}
    missed = False
    for part in options.only:
        module = import_module(f"tests.benchmarks.{name}_{part}")
        machine = on_this_machine(algebra)
        found[part] = {"command": command, "machine": machine, "found": module.measured(options.short)}
        write_json(options.output, found)
        missed |= not all(module.goals(found[part]["found"]).values())
    told = page_of(name, title, intro, parts, found)
    print(told)
    if options.publish:
        (RESULTS / f"{name}.md").write_text(told, encoding="utf-8")
    return int(missed)
