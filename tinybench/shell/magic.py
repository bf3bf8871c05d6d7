"""The ``%bench`` and ``%%bench`` magics of ``%load_ext tinybench``: time expressions or cells in shuffled rounds."""

from __future__ import annotations

import ast
import math
import re
import symtable
import textwrap
import time
import traceback
from array import array
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from IPython.core.error import UsageError
from IPython.display import display

from tinybench.shell.timed_comparison import comparison_table, measure_for
from tinybench.support.basics.table import Table
from tinybench.support.rounds.checked_calls import refuse_later_answer, same_content, untouched_copy

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension"]

SECONDS = 2.0
NAME = "__bench_block__"
CHANGEABLE = (np.ndarray, array, list, deque, dict, set, bytearray)
USAGE = """Measure expressions, or the blocks of a cell, in shuffled rounds.

  %bench model.predict(x)                          one expression
  %bench -s 4 model.predict(x) vs session.run(…)   each against the first, for 4 seconds

  %%bench -s 4
  a = [v * 2 for v in data]                        blocks of a cell, divided by lines of dashes,
  --- with NumPy                                   which may carry a name
  a = array * 2

-s SECONDS is the time for everything (2 by default). The names of the notebook stay as they are: a name that a block
assigns begins every call with its value there."""


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register ``%bench`` and ``%%bench``. IPython calls this function for ``%load_ext tinybench``."""

    def bench(line: str, cell: str | None = None) -> Table | None:
        try:
            return _measured(line, cell, shell.user_ns)
        except Exception as error:
            if isinstance(error, NameError) and error.name:
                error.args = (f"{error.name} is not defined; run the cell that defines it first, or correct the name",)
            vars(error)["_render_traceback_"] = partial(_few_lines, error)  # IPython shows these lines
            raise

    bench.__doc__ = USAGE
    shell.register_magic_function(bench, magic_kind="line_cell", magic_name="bench")  # type: ignore[call-arg, arg-type]


def _measured(line: str, cell: str | None, notebook: Mapping[str, Any]) -> Table | None:
    """Measure the code of a line or cell and return a table of the results. If there is no code, print the usage."""
    seconds, blocks = _read(line, cell)
    if not blocks:
        print(USAGE)
        return None
    try:
        compiled = [_Block(name, source) for name, source in blocks.items()]
    except SyntaxError as error:  # for SyntaxError, IPython shows all frames and no caret
        raise UsageError(_syntax_message(error)) from None
    began = time.perf_counter()
    for block in compiled:
        if block.refuse_changes(notebook) > seconds / 8:
            break  # slow blocks leave no time to check each one
    functions = {block.name: block.bound(notebook) for block in compiled}
    left = max(seconds - (time.perf_counter() - began), seconds / 4)
    try:
        return comparison_table(measure_for(functions, None, left), what="code")
    except BaseException as error:
        if not (results := getattr(error, "results", None)):
            raise
        table = comparison_table(results, what="code")
        if isinstance(error, KeyboardInterrupt):
            return table
        display(table)
        raise


def _few_lines(error: Exception) -> list[str]:
    """Return the lines of a short traceback: the block, the last calls of the user's code, and the message."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, frame in enumerate(frames) if frame.filename.startswith("<block ")), len(frames))
    shown = [*frames[first : first + 1], *frames[first + 1 :][-3:]]
    lines = traceback.format_list(shown) + traceback.format_exception_only(error)
    return "".join(lines).splitlines()


def _syntax_message(error: SyntaxError) -> str:
    """Return the message of a syntax error, with the name of the block and the line."""
    block, line = str(error.filename).removeprefix("<block ").removesuffix(">"), (error.text or "").strip()
    place = f" (line {error.lineno}: {line})" if line and line != block else ""
    return f"{block!r} cannot be measured: {error.msg}{place}"


def _read(line: str, cell: str | None) -> tuple[float, dict[str, str]]:
    """Read the seconds and the blocks from a line and the cell below it."""
    seconds, rest = _options(line)
    if cell is None:
        return seconds, _expressions(rest)
    if rest:
        raise ValueError(
            f"%%bench measures the cell below it, and {rest!r} on its own line would be ignored: move that into the "
            "cell, or leave the cell out and write it after %bench; the only option is -s SECONDS"
        )
    return seconds, _blocks(cell)


def _options(line: str) -> tuple[float, str]:
    match = re.match(r"\s*-s(?:\s+|=|(?=[\d.]))(\S+)\s*(.*)", line, re.S)
    if not match:
        option = re.search(r"(?:^|\s)(-s[\s=]*[\d.]+|--[a-z]\S*)(?:\s|$)", line)
        if option and not all(map(_parses, _expressions(line.strip()).values())):
            raise ValueError(
                f"{option[1]} is not read here: the only option is -s SECONDS, and it comes first: %bench -s 4 f(x)"
            )
        return SECONDS, line.strip()
    try:
        seconds = float(match.group(1))
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"-s takes seconds, a positive number, not {match.group(1)!r}")
    return seconds, match.group(2).strip()


def _expressions(line: str) -> dict[str, str]:
    """Split a line at each ``vs`` that stands between two expressions, and return the expressions by name."""
    parts: list[str] = []
    for piece in re.split(r"\s+vs\s+", line) if line else []:
        # a " vs " within a string literal is not a divider
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
    """Split a cell at lines of three or more dashes. Text after the dashes is the name of the next block."""
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


class _Block:
    """A compiled block of a cell. The block can read the variables of the notebook but does not rebind them."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.function = _function(name, textwrap.dedent(source))
        self.assigned, self.used = _names(self.function, name)

    def bound(self, notebook: Mapping[str, Any]) -> Callable[[Any], Any]:
        """Return the block as a function of one ignored argument, with fast locals as in ``%timeit``.

        A variable that the block assigns becomes a parameter whose default is the variable's value in the notebook. So
        ``k += 1`` works, costs no extra time, and does the same in every call. Other names are looked up in a copy of
        the notebook's namespace.
        """
        held = [name for name in self.assigned if name in notebook]
        self.function.args.args = [ast.arg(name) for name in held]
        self.function.args.defaults = [ast.Name(name, ast.Load()) for name in held]
        module = ast.fix_missing_locations(ast.Module([self.function], []))
        space = dict(notebook)
        exec(compile(module, f"<block {self.name}>", "exec"), space)
        function: Callable[[Any], Any] = space.pop(NAME)
        function.__name__ = self.name  # for error messages
        return function

    def refuse_changes(self, notebook: Mapping[str, Any]) -> float:
        """Call the block on copies of its data and return the seconds taken. Raise ValueError if a copy changes."""
        given = {name: notebook[name] for name in self.used if isinstance(notebook.get(name), CHANGEABLE)}
        copies = {name: copied for name, x in given.items() if (copied := untouched_copy(x)) is not x}
        if not copies:
            return 0.0
        began = time.perf_counter()
        function = self.bound({**notebook, **copies})
        refuse_later_answer(function(None), function)
        took = time.perf_counter() - began
        if changed := [name for name, copied in copies.items() if not same_content(given[name], copied)]:
            raise ValueError(
                f"the block {self.name!r} changes {', '.join(changed)}: each call would do different work; begin it "
                f"with a fresh one, such as {changed[0]} = {changed[0]}.copy(), and compare it with that line alone"
            )
        return took


def _function(name: str, source: str) -> ast.FunctionDef:
    [function] = ast.parse(f"def {NAME}(__ignored__, /): pass").body
    assert isinstance(function, ast.FunctionDef)
    block = _parsed(name, source)
    if isinstance(block[-1], ast.Expr):  # return the value, which shows whether the work is finished
        block[-1] = ast.copy_location(ast.Return(block[-1].value), block[-1])
    function.body = block
    return function


def _parsed(name: str, source: str) -> list[ast.stmt]:
    """Return the statements of a block. A SyntaxError gets the block's name and a hint on what cannot be measured."""
    try:
        compile(source, f"<block {name}>", "exec")  # as a module, where return, yield and await are errors
        return ast.parse(source).body or [ast.Pass()]
    except SyntaxError as error:
        line = (error.text or "").strip()
        if line.startswith(("%", "!", "?")):
            error.msg = (
                f"a magic or shell command cannot be measured ({line}); measure Python, or run it in another cell"
            )
        elif "await" in error.msg or "async" in error.msg:
            error.msg += "; measure a call that runs to its end, such as asyncio.run(main()), in a script"
        elif "return" in error.msg or "yield" in error.msg:
            error.msg += "; end the block with the expression itself"
        elif re.search(r"\svs$|^vs\s", source.strip()):
            error.msg = "one side of vs is missing; write an expression before it and one after it"
        elif re.match(r"--?[a-z]+\b", source.strip()):
            error.msg += "; the only option is -s SECONDS"
        raise


def _names(function: ast.FunctionDef, name: str) -> tuple[list[str], list[str]]:
    """Return two lists: the names that a block assigns, deletes or imports, and all names that the block uses."""
    source = ast.unparse(ast.fix_missing_locations(function))
    [inner] = symtable.symtable(source, f"<block {name}>", "exec").get_children()
    symbols = [symbol for symbol in inner.get_symbols() if not symbol.is_parameter()]
    return [symbol.get_name() for symbol in symbols if symbol.is_local()], [symbol.get_name() for symbol in symbols]
