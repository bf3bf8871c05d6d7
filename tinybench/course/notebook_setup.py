"""The set-up of a course notebook: the style of its figures, and the messages of failing checks."""

from __future__ import annotations

import linecache
import re
import textwrap
import traceback
from types import TracebackType
from typing import Any

from tinybench.course import check_feedback, passed_checks
from tinybench.course.accessible_figures import use_figure_style
from tinybench.course.unpassed_pieces import repair_first

MISSING_ADVICE = "A cell above did not run to its end, or was not run: mend the first error above, then run this again."
CHECK, FIGURE = "# Check: ", "# Figure: "  # how the cells of checks and figures begin
TYPE_ADVICE = (
    "The check could not go on with what your code gave it: probably another type or shape than the docstring says. "
    "If the error speaks of NoneType, a `return` is missing."
)


def set_up_notebook() -> None:
    """Set the figure style, show errors of failing checks in a line or two, and keep marks of passed checks current."""
    use_figure_style()
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell = get_ipython()
    if hasattr(shell, "set_custom_exc"):
        shell.set_custom_exc((Exception,), show_error)
        names = _Names(shell)
        shell.events.register("pre_run_cell", begin_cell)
        shell.events.register("pre_run_cell", names.keep)
        shell.events.register("post_run_cell", names.restore)


def begin_cell(cell: Any) -> None:
    """Withdraw the marks of passed checks that a cell may invalidate, before the cell runs."""
    passed_checks.begin(str(cell.raw_cell))


class _Names:
    """A copy of a notebook's variables, made before a check runs and restored after the check."""

    def __init__(self, shell: Any) -> None:
        self.shell, self.kept = shell, dict[str, Any]()

    def keep(self, cell: Any) -> None:
        if str(cell.raw_cell).startswith(CHECK):
            self.kept = {name: value for name, value in self.shell.user_ns.items() if not name.startswith("_")}

    def restore(self, result: Any) -> None:
        self.shell.user_ns.update(self.kept)
        self.kept = {}


def show_error(
    shell: Any, kind: type[BaseException], error: BaseException, trace: TracebackType, tb_offset: int | None = None
) -> list[str]:
    """Show and return the error of a cell: IPython's traceback, or the short message of a check."""
    usual = shell.InteractiveTB.structured_traceback(kind, error, trace, tb_offset=tb_offset)
    frames = traceback.extract_tb(trace)
    first = _to_repair_first(error, frames, shell.user_ns)
    if first and isinstance(error, AssertionError):
        error.args = (f"{first}. The following error may have the same cause: {error}",)
    shown = _said_by_check(usual, error, frames) or usual
    if first and first not in shown[0]:
        shown = [f"{first}.\n", *shown]
    shell._showtraceback(kind, error, shown)  # IPython's own method; a custom handler must show the error
    return list(shown)


def _to_repair_first(error: BaseException, frames: traceback.StackSummary, names: dict[str, Any]) -> str:
    """Return a sentence on an earlier check whose code may have caused the error, or an empty string."""
    cells = [frame.filename for frame in frames if linecache.getline(frame.filename, 1).startswith(CHECK)]
    if not cells or _is_stub(error):
        return ""
    return repair_first("".join(linecache.getlines(cells[0])), names)


def _is_stub(error: BaseException) -> bool:
    """Return whether the error was raised by a function that is not written yet."""
    return isinstance(error, NotImplementedError) and str(error).startswith("write ")


def _said_by_check(usual: list[str], error: BaseException, frames: traceback.StackSummary) -> list[str]:
    """Return the lines to show instead of the usual traceback, or an empty list if the traceback explains the error."""
    said = f"{type(error).__name__}: {error}"
    if _is_stub(error):  # wherever it was raised
        return [said]
    first = linecache.getline(frames[-1].filename, 1) if frames else ""
    if first.startswith(FIGURE):  # the figure's data should come from a cell above
        return [f"{said}\n", MISSING_ADVICE]
    if type(error) is NameError and frames[-1].name.startswith("<"):  # in a cell, not in a function with a typo
        return [*usual, MISSING_ADVICE]
    checks = [frame for frame in frames if linecache.getline(frame.filename, 1).startswith(CHECK)]
    if not checks:
        return []
    by_check = frames[-1].filename in (checks[-1].filename, check_feedback.__file__)
    if isinstance(error, AssertionError) and by_check:
        asked = re.split(r', f?"', checks[-1].line or "")[0]  # without the message, which is shown above
        return [f"{said}\n", f"line {checks[-1].lineno} of the check:  {asked}"]
    return [*usual, textwrap.fill(TYPE_ADVICE, 100)] if by_check else []
