"""The code inside the sandbox that runs the cells of one submission and answers the grader's requests.

From the first cell on, this code shares its interpreter with the student's code. So its answers are claims, not facts.
"""

from __future__ import annotations

import base64
import importlib.abc
import importlib.machinery
import io
import marshal
import re
import signal
import socket
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from tinybench import course
from tinybench.course import pieces as course_pieces

from ..rpc.codec import MAX_CLAIM, Channel
from ..rpc.endpoint import Endpoint

MAX_TEXT = 100_000
MAX_IMAGES = 4_000_000  # characters per cell; a message that holds them is still small enough
# what IPython may replace in a cell: its commands, prompts, and blanks before the first line
NOT_PYTHON = re.compile(r"\A\s|^\s*(?:[%!?,;/]|>>>|\.\.\.|In \[)|\?\s*$|=\s*[%!]", re.MULTILINE)


class Outputs:
    """The outputs of the running cell, up to a size limit."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.text_left, self.images_left = MAX_TEXT, MAX_IMAGES

    def stream(self, name: str, text: str) -> None:
        """Store printed text, cut at the limit."""
        text = text[: max(0, self.text_left)]
        self.text_left -= len(text)
        if self.items and self.items[-1].get("name") == name:
            self.items[-1]["text"] += text
        elif text:
            self.items.append({"output_type": "stream", "name": name, "text": text})

    def display(self, data: dict[str, Any]) -> None:
        """Store a displayed object. The limit for images is larger than the limit for text."""
        texts = {kind: str(value) for kind, value in data.items()}
        size = sum(map(len, texts.values()))
        if len(self.items) < 100 and size <= self.images_left:
            self.images_left -= size
            self.items.append({"output_type": "display_data", "data": texts, "metadata": {}})


OUTPUTS = Outputs()


class _Stream(io.TextIOBase):
    encoding = "utf-8"

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, text: str) -> int:
        OUTPUTS.stream(self.name, str(text))
        return len(text)

    def writable(self) -> bool:
        return True


class _Publisher(DisplayPublisher):
    def publish(self, data: dict[str, Any], *_: Any, **__: Any) -> None:
        OUTPUTS.display(_texts(data))

    def clear_output(self, wait: bool = False) -> None:
        OUTPUTS.items.clear()


class _Hook(DisplayHook):
    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: dict[str, Any], md_dict: Any = None) -> None:
        OUTPUTS.display(_texts(format_dict))


def _texts(data: dict[str, Any]) -> dict[str, Any]:
    return {k: base64.b64encode(v).decode() if isinstance(v, bytes) else v for k, v in data.items()}


class _Shell(InteractiveShell):
    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_Hook)

    def transform_cell(self, raw_cell: str) -> str:
        """Return the cell as Python. IPython takes as long for a cell of plain Python as for running a short one."""
        if NOT_PYTHON.search(raw_cell):
            return super().transform_cell(raw_cell)  # type: ignore[no-any-return, no-untyped-call]
        return raw_cell if raw_cell.endswith("\n") else f"{raw_cell}\n"

    def should_run_async(self, raw_cell: str, **more: Any) -> bool:
        """Return whether a cell awaits anything, for which IPython compiles it once more."""
        awaits = "await" in raw_cell or "async" in raw_cell
        return awaits and super().should_run_async(raw_cell, **more)

    def showtraceback(self, *_: Any, **__: Any) -> None:
        pass  # the result of `run_cell` holds the error

    def enable_gui(self, gui: Any = None) -> None:
        pass  # `%matplotlib inline` calls this, but there is no window


def make_shell() -> InteractiveShell:
    """Return a fresh IPython shell."""
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    shell = _Shell.instance(config=config)
    shell.run_cell("", silent=True)  # type: ignore[no-untyped-call]
    return shell


class TooSlow(Exception):
    """A cell or check exceeded its time limit."""


@contextmanager
def time_limit(seconds: float, channel: Channel) -> Iterator[None]:
    """Interrupt the block after `seconds` of CPU time, but not while a message is sent or received.

    Code can ignore the interrupt. Then the grader kills the sandbox.
    """

    def stop(*_: Any) -> None:
        if channel.busy:
            signal.setitimer(signal.ITIMER_PROF, 0.004)
        else:
            raise TooSlow(f"it computed longer than {seconds:.3g} s")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def run_cell(shell: InteractiveShell, source: str) -> tuple[list[dict[str, Any]], list[str] | None]:
    """Run a cell. Return its outputs and, if it failed, the name and text of the error."""
    OUTPUTS.__init__()  # type: ignore[misc]
    sys.stdout, sys.stderr = _Stream("stdout"), _Stream("stderr")
    error: BaseException | None = None
    try:
        result = shell.run_cell(source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
    except BaseException as raised:
        error = raised
    if error is None:
        return OUTPUTS.items, None
    try:
        text = str.__getitem__(str(error), slice(2000))  # also cuts a subclass of str
    except Exception:
        text = ""
    return OUTPUTS.items, [type(error).__name__[:100], text]


class GuestEndpoint(Endpoint):
    """An endpoint that limits the CPU time for answering a request."""

    def __init__(self, channel: Channel, seconds: float) -> None:
        super().__init__(channel)
        self._seconds = seconds

    def _do(self, what: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self.nesting > 1:
            return super()._do(what, args, kwargs)
        with time_limit(self._seconds, self.channel):
            return super()._do(what, args, kwargs)


class Runner:
    """The methods that the grader may call to run and inspect a submission."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def cell(self, source: str) -> tuple[list[dict[str, Any]], list[str] | None]:
        """Run a cell. Return its outputs and, if it failed, its error."""
        return run_cell(self._shell, source)

    def visible(self, source: str, modules: list[str], reference: bytes, pieces: list[str]) -> Any:
        """Run the visible part of a graded cell.

        The cell may call `graft` to put named functions, classes or methods of the submission into a module. During
        this run, `graft` also puts in the `pieces` that are judged, even if the cell does not name them. `reference` is
        the compiled code of all `modules` that the notebook builds, joined into one module with the last name.
        """
        original = course.graft
        _install(modules[-1], reference)

        def graft(module: str, names: Any, *named: str) -> Any:
            return original(modules[-1] if module in modules else module, names, *dict.fromkeys([*pieces, *named]))

        course.graft = self._shell.user_ns["graft"] = graft
        try:
            return run_cell(self._shell, source)
        finally:
            course.graft = self._shell.user_ns["graft"] = original

    def names(self) -> Any:
        """Return the names that the submission defined, as attributes of a single object."""
        return types.SimpleNamespace(**self._shell.user_ns)

    def graft(self, module: str, reference: bytes, pieces: list[str]) -> Any:
        """Return the reference module, in which the submission's versions replace the given pieces."""
        _install(module, reference)
        return course.graft(module, self._shell.user_ns, *pieces)


class _Finder(importlib.abc.MetaPathFinder):
    """An import finder for the module whose code came from the grader."""

    def __init__(self, module: str) -> None:
        self.module = module

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, None, origin=f"<{name}>") if name == self.module else None


def _install(module: str, reference: bytes) -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(module))
    course_pieces.CODE[f"<{module}>"] = marshal.loads(reference)


def answer_grader(shell: InteractiveShell, sock: socket.socket, seconds: float) -> None:
    """Serve the grader's requests until the grader closes the connection."""
    endpoint = GuestEndpoint(Channel(sock, max_sent=MAX_CLAIM), seconds)
    endpoint.share(Runner(shell))
    endpoint.serve()
