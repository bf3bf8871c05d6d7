"""A fresh process for one side of a comparison: it loads one call, warms it up, and times blocks of calls on request.

The parent process sends requests to standard input, each a line of JSON, and reads one line in answer to each. This
module is run as a script. It imports only the standard library, so that the process contains nothing but the measured
code and its imports. Only models and data are loaded by means of the tinybench package.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import Any

PACKAGE = str(Path(__file__).parents[2])
CLOCKS = ("perf_counter", "perf_counter without the wait for a processor")
Step = Callable[[], Any]


class ProcessorWait:
    """A reader of the time that a thread, by default this one, was ready to run but waited for a processor.

    Times are in s, and 0 if unknown. On a busy machine a call of 5 ms may wait for 4, 8 or 12 ms; the wait does not
    depend on the length of the call. If this wait is subtracted, the rest is the call's time on an idle machine,
    including sleep and disk access. The format of the kernel's file is described in Linux,
    Documentation/scheduler/sched-stats.
    """

    def __init__(self, of: str = "thread-self") -> None:
        try:
            self.file = os.open(f"/proc/{of}/schedstat", os.O_RDONLY)
        except OSError:
            self.file = -1

    def __call__(self) -> float:
        """Return the total wait so far, in s."""
        return self._told(1)

    def ran(self) -> float:
        """Return how long the thread has run, in s."""
        return self._told(0)

    def _told(self, field: int) -> float:
        return 0.0 if self.file < 0 else int(os.pread(self.file, 64, 0).split()[field]) * 1e-9

    def close(self) -> None:
        """Close the file with the statistics of the thread."""
        if self.file >= 0:
            os.close(self.file)


def find_function(spec: str) -> Any:
    """Return the function that ``module:function`` names. If it is missing, raise LookupError with similar names."""
    module, _, names = spec.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists, but one of its imports is missing
        raise LookupError(f"looked for a module {module} in {os.getcwd()} and the environment; there is none") from None
    for name in names.split("."):
        if not hasattr(found, name):
            near = ", ".join(get_close_matches(name, dir(found))) or "nothing like it"
            file = getattr(found, "__file__", module)
            raise LookupError(f"looked for {names} in {file}; there is {near}")
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"{spec} cannot be called: it is of the type {type(found).__name__}")
    return found


def load_step(task: dict[str, Any]) -> tuple[Step, dict[str, Any], Callable[[], bool]]:
    """Return the call to measure (without arguments), notes on its input, and a check that the input is unchanged."""
    spec = task["target"]
    if task["data"] is None:
        return find_function(spec), {}, lambda: True
    sys.path.insert(0, PACKAGE)  # the tool's own package, even if another tinybench is measured
    from tinybench.latency import as_callable
    from tinybench.support.basics.array_files import load_data
    from tinybench.support.rounds.checked_calls import same_content, untouched_copy
    from tinybench.support.rounds.input_notes import shape_notes
    from tinybench.tools.serving.models import load_model

    if spec.endswith(".onnx"):
        importlib.import_module("tinybench.onnx")  # load_model imports it after the path is removed
    sys.path.remove(PACKAGE)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tinybench"]:
        del sys.modules[name]
    x = load_data(Path(task["data"]), task["batch"])[0]
    model = load_model(spec, task["threads"]) if spec.endswith((".onnx", ".joblib")) else find_function(spec)()
    return partial(as_callable(model), x), shape_notes(x), partial(same_content, x, untouched_copy(x))


def refuse_unfinished(answer: Any) -> None:
    """Raise TypeError if a call returned an awaitable or a generator, because the work is then not done yet."""
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("it returns an awaitable, whose work is not done yet; wrap it: asyncio.run(function())")
    if inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        raise TypeError("it returns a generator, whose work is not done yet; wrap it: list(function())")


def own_files(root: str) -> dict[str, str]:
    """Return the digests of all Python files that this process has loaded from below a folder, by relative path."""
    found = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file).is_file() and Path(file).is_relative_to(root) and not file.startswith(sys.prefix):
            found[str(Path(file).relative_to(root))] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return found


class SideWorker:
    """A handler of the parent process's requests, with one method for each kind of request."""

    def __init__(self) -> None:
        self.step: Step = lambda: None
        self.unchanged: Callable[[], bool] = lambda: True
        self.root = "."
        self.wait = ProcessorWait()

    def load(self, task: dict[str, Any]) -> dict[str, Any]:
        """Load the call to measure. Return notes on its input and conditions, and the file of its module."""
        sys.path[:0] = task["paths"]
        self.root = task["root"]
        self.step, about, self.unchanged = load_step(task)
        home = getattr(sys.modules.get(task["target"].partition(":")[0]), "__file__", None)
        return {"about": about | {"gc_enabled": gc.isenabled(), "clock": CLOCKS[self.wait.file >= 0]}, "home": home}

    def warm(self, seconds: float) -> dict[str, Any]:
        """Repeat the call for `seconds`, at least once.

        Return the latest time per call, the fraction of time spent computing, and the digests of the loaded files.
        """
        began, worked, waited, calls = time.perf_counter(), time.process_time(), self.wait(), 1
        refuse_unfinished(self.step())
        per_call = time.perf_counter() - began
        while (left := began + seconds - time.perf_counter()) > 0:
            calls = max(1, min(2 * calls, int(left / max(per_call, 1e-9))))
            per_call = self._timed(calls)
        if not self.unchanged():
            raise ValueError("it changes its input: each call would do different work; let it work on a copy")
        could = time.perf_counter() - began - (self.wait() - waited)
        busy = (time.process_time() - worked) / max(could, 1e-9)
        return {"per_call": per_call, "busy": busy, "files": own_files(self.root)}

    def block(self, loops: int, count: int, lead: int) -> float:
        """Return the median of `count` timings of `loops` calls, in s per call, after `lead` untimed calls."""
        for _ in repeat(None, lead):
            self.step()
        return median([self._timed(loops) for _ in repeat(None, count)])

    def conditions(self) -> dict[str, str]:
        """Return the compute kernels and environment variables of this process's numerical libraries, {} if unknown."""
        sys.path.insert(0, PACKAGE)
        try:
            return importlib.import_module("tinybench.support.rounds.machine_state").library_conditions()  # type: ignore[no-any-return]
        except (ImportError, AttributeError):  # another version of tinybench is measured
            return {}
        finally:
            sys.path.remove(PACKAGE)

    def _timed(self, loops: int) -> float:
        step, clock = self.step, time.perf_counter
        waited = self.wait()
        start = clock()
        for _ in repeat(None, loops):
            step()
        elapsed = clock() - start
        waited = self.wait() - waited
        return (elapsed - waited if waited < elapsed else elapsed) / loops


def answer_lines() -> None:
    """Read requests from standard input, one per line, and answer each with one line, until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discard what the call prints, which is not an answer
    questions = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    worker = SideWorker()
    for line in questions:
        name, arguments = json.loads(line)
        try:
            answer = {"answer": getattr(worker, name)(*arguments)}
        except (Exception, SystemExit) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    answer_lines()
