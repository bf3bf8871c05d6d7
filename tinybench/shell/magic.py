"""``%load_ext tinybench`` gives ``%bench`` and ``%%bench``: expressions or cells measured in common rounds."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinybench.shell.quick import comparison_table, measure_for
from tinybench.table import Table

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension"]

SECONDS = 2.0
USAGE = """Measure expressions, or the blocks of a cell, in shuffled rounds.

  %bench model.predict(x)                          one expression
  %bench -s 4 model.predict(x) vs session.run(…)   each against the first, for 4 seconds

  %%bench -s 4
  a = [v * 2 for v in data]                        blocks of a cell, divided by lines of dashes,
  --- with NumPy                                   which may carry a name
  a = array * 2

-s SECONDS is the time for all rounds (2 by default)."""


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register ``%bench`` and ``%%bench``; IPython calls this for ``%load_ext tinybench``."""

    def bench(line: str, cell: str | None = None) -> Table | None:
        seconds, rest = _options(line)
        blocks = _blocks(cell) if cell is not None else _expressions(rest)
        if not blocks:
            print(USAGE)
            return None
        functions = {name: _function(source, shell.user_ns) for name, source in blocks.items()}
        return comparison_table(measure_for(functions, None, seconds), what="code")

    bench.__doc__ = USAGE
    shell.register_magic_function(bench, magic_kind="line_cell", magic_name="bench")  # type: ignore[call-arg, arg-type]


def _options(line: str) -> tuple[float, str]:
    match = re.match(r"\s*-s\s+(\S+)\s*(.*)", line, re.S)
    if not match:
        return SECONDS, line.strip()
    try:
        return float(match.group(1)), match.group(2).strip()
    except ValueError:
        raise ValueError(f"-s takes seconds, not {match.group(1)!r}") from None


def _expressions(line: str) -> dict[str, str]:
    """Split at the word ``vs``, wherever both sides are expressions."""
    parts: list[str] = []
    for piece in re.split(r"\s+vs\s+", line) if line else []:
        # a " vs " within a text literal is no divider
        if parts and not _parses(parts[-1]):
            parts[-1] += f" vs {piece}"
        else:
            parts.append(piece)
    return _named([("", part) for part in parts])


def _parses(source: str) -> bool:
    try:
        ast.parse(source.strip(), mode="eval")
    except SyntaxError:
        return False
    return True


def _blocks(cell: str) -> dict[str, str]:
    """Split at lines of three or more dashes; what follows them is the name of the next block."""
    blocks = [("", "")]
    for line in cell.splitlines():
        divider = re.fullmatch(r"-{3,}\s*(.*)", line)
        if divider:
            blocks.append((divider.group(1).strip(), ""))
        else:
            blocks[-1] = (blocks[-1][0], f"{blocks[-1][1]}{line}\n")
    return _named([block for block in blocks if block[1].strip()])


def _named(blocks: list[tuple[str, str]]) -> dict[str, str]:
    named: dict[str, str] = {}
    for given, source in blocks:
        first = source.strip().splitlines()[0]
        name = base = given or (first if len(first) <= 40 else f"{first[:39]}…")
        number = 1
        while name in named:
            number += 1
            name = f"{base} ({number})"
        named[name] = source
    return named


def _function(source: str, names: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the source as a function of one ignored argument, which sees the names of the notebook."""
    body = f"return (\n{source.strip()}\n)" if _parses(source) else source
    space: dict[str, Any] = {}
    exec(compile(f"def bench(_):\n{textwrap.indent(body, '    ')}", "<bench>", "exec"), names, space)
    function: Callable[[Any], Any] = space["bench"]
    return function
