"""Run one submission: notebook in, executed notebook out. No database, no shared folder.

The only place where students' code runs during grading, hence the seam at which a sandbox belongs.
"""

from __future__ import annotations

import copy
import math
import os
import tempfile
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from traitlets.config import Config

from autograder import pace
from autograder.course.notebook import is_check

if TYPE_CHECKING:
    from nbformat import NotebookNode

CELL_SECONDS = 120


@dataclass(frozen=True)
class Execution:
    """What came of a run: the notebook with its outputs, the time it took, and why it ended early if it did."""

    notebook: NotebookNode
    seconds: float
    failure: str = ""


def execute(
    notebook: NotebookNode,
    *,
    folder: Path,
    cell_seconds: float = CELL_SECONDS,
    variables: Mapping[str, str] | None = None,
) -> Execution:
    """Run a notebook from top to bottom, going on after errors.

    Parameters
    ----------
    notebook
        The notebook; it is not changed.
    folder
        Working directory of the kernel.
    cell_seconds
        Time one cell may take on a usual, idle machine; see `autograder.pace`.
    variables
        Environment variables of the kernel, besides those of this process.

    Returns
    -------
    Execution
        In its notebook every graded cell's output decides its points for nbgrader by one rule: an error is 0,
        anything else is full marks; output on stderr and a trailing number change nothing.
    """
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        cell.metadata.pop("tags", None)  # "skip-execution" would be full marks
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    started, failure, most = time.monotonic(), "", math.ceil(pace.wall(cell_seconds))
    with tempfile.TemporaryDirectory() as sockets:
        client = NotebookClient(
            notebook,
            timeout=most,
            startup_timeout=math.ceil(pace.wall(60)),
            kernel_name="python3",
            allow_errors=True,
            shutdown_kernel="immediate",
            resources={"metadata": {"path": str(folder)}},
            config=_kernel_transport(Path(sockets)),
        )
        try:
            client.execute(env={**os.environ, **(variables or {})})
        except CellTimeoutError:
            failure = f"a cell ran longer than {most} s"
        except DeadKernelError:
            failure = "the Python process ended while a cell was running"
    _settle(notebook, failure)
    return Execution(notebook, time.monotonic() - started, failure)


def _kernel_transport(folder: Path) -> Config:
    """Let kernel messages go through private files, which other users of the machine cannot listen to."""
    if os.name != "posix":
        return Config()
    return Config({"KernelManager": {"transport": "ipc", "ip": str(folder / "kernel")}})


def _settle(notebook: NotebookNode, failure: str) -> None:
    """Leave in each graded cell either one friendly error or none."""
    for cell in notebook.cells:
        if not is_check(cell):
            continue
        if cell.execution_count is None:
            cell.outputs = [error_output("NotRun", failure or "this cell was not run")]
        settled = []
        for output in cell.outputs:
            if output.output_type == "error":
                # the traceback would show the source of hidden checks
                output = error_output(output.ename, output.evalue)
            elif output.output_type == "stream":
                output.name = "stdout"
            elif output.output_type == "execute_result":
                output = nbformat.v4.new_output("display_data", data=output.data, metadata=output.metadata)
            settled.append(output)
        cell.outputs = settled


def error_output(name: str, message: str) -> NotebookNode:
    """Return an error output that shows its message, wrapped, and no source."""
    lines = [line for part in f"{name}: {message}".splitlines() for line in textwrap.wrap(part, 100) or [""]]
    output: NotebookNode = nbformat.v4.new_output("error", ename=name, evalue=message, traceback=lines)
    return output
