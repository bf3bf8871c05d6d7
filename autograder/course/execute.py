"""The execution of a notebook in a Jupyter kernel of the current user, without a sandbox.

`autograder release` verifies notebooks in this way, and ``autograder grade --unsafe`` runs submissions in this way.
Other submissions run in a sandbox, see `autograder.sandbox.zygote_client`. `autograder build` uses no kernel and runs a
notebook's checks in a Python process of the student.
"""

from __future__ import annotations

import copy
import math
import os
import tempfile
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from traitlets.config import Config

from autograder import time_limits
from autograder.course.nbgrader_settings import ASSERTING
from autograder.course.notebook import cells_of

if TYPE_CHECKING:
    from nbformat import NotebookNode

CELL_SECONDS = 120


class Execution(NamedTuple):
    """An executed notebook with its outputs, the seconds that the run took, and the reason if the run ended early."""

    notebook: NotebookNode
    seconds: float
    failure: str


def run_notebook(
    notebook: NotebookNode,
    *,
    folder: Path,
    cell_seconds: float = CELL_SECONDS,
    variables: Mapping[str, str] | None = None,
) -> Execution:
    """Run a copy of a notebook from top to bottom, and continue after errors.

    The outputs in the copy are rewritten so that nbgrader applies one rule to every graded cell: an error scores 0,
    anything else scores full marks. Output on stderr, or a number as a cell's last value, does not change the score.

    The kernel runs in `folder` and has `variables` in its environment. `cell_seconds` is the time limit of one cell on
    a typical, idle machine. `autograder.time_limits` adapts it to this machine.
    """
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        cell.metadata.pop("tags", None)  # a cell tagged "skip-execution" would get full marks
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    started, failure, most = time.monotonic(), "", math.ceil(time_limits.wall(cell_seconds))
    with tempfile.TemporaryDirectory() as sockets:
        private = {"transport": "ipc", "ip": f"{sockets}/kernel"}  # no other user of the machine can eavesdrop
        client = NotebookClient(
            notebook,
            timeout=most,
            startup_timeout=math.ceil(time_limits.wall(60)),
            kernel_name="python3",
            allow_errors=True,
            shutdown_kernel="immediate",
            resources={"metadata": {"path": str(folder)}},
            config=Config({"KernelManager": private} if os.name == "posix" else {}),
        )
        try:
            client.execute(env={**os.environ, **ASSERTING, **(variables or {})})
        except CellTimeoutError:
            failure = f"a cell ran longer than {most} s"
        except DeadKernelError:
            failure = "the Python process ended while a cell was running"
    _settle(notebook, failure)
    return Execution(notebook, time.monotonic() - started, failure)


def _settle(notebook: NotebookNode, failure: str) -> None:
    """Rewrite each graded cell's outputs: remove tracebacks, and add an error to a cell that did not run."""
    for cell in (each.node for each in cells_of(notebook) if each.is_check):
        if cell.execution_count is None:
            cell.outputs = [error_output("NotRun", failure or "this cell was not run")]
        cell.outputs = list(map(_settled, cell.outputs))


def _settled(output: NotebookNode) -> NotebookNode:
    if output.output_type == "error":
        return error_output(output.ename, output.evalue)  # the traceback would show the source of hidden checks
    if output.output_type == "execute_result":
        shown: NotebookNode = nbformat.v4.new_output("display_data", data=output.data, metadata=output.metadata)
        return shown
    if output.output_type == "stream":
        output.name = "stdout"
    return output


def error_output(name: str, message: str) -> NotebookNode:
    """Return a notebook's error output, which shows the message in wrapped lines but no source code."""
    lines = [line for part in f"{name}: {message}".splitlines() for line in textwrap.wrap(part, 100) or [""]]
    output: NotebookNode = nbformat.v4.new_output("error", ename=name, evalue=message, traceback=lines)
    return output
