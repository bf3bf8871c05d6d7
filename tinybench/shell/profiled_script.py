"""The process in which `tinybench profile` runs a script as Python itself would, and samples it.

Each sample is written to a file at once, as a line of JSON, so that the sample is kept however the process ends. This
module is run as a script. It imports few modules, so that the profiled script itself loads the modules that it needs.
"""

from __future__ import annotations

import builtins
import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import takewhile
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the folder of this file
sys.path.append(package := str(Path(__file__).parents[2]))
from tinybench.sampler import stack_of
from tinybench.support.profiling.sampling import Ticks, ticking

sys.path.remove(package)

OURS = {__file__, runpy.__file__, "<frozen runpy>"}


class Recorder:
    """A writer of samples as ``[start, seconds, stack number]``. It writes each stack before its first sample."""

    def __init__(self, file: int, ticks: Ticks) -> None:
        self.file, self.clock, self.last = file, ticks.clock, 0.0
        self.stacks: dict[tuple[int, ...], int] = {}  # stack numbers by ids of code objects; -1: no script frame
        self.codes: list[CodeType] = []  # kept alive, so that no id is reused
        self.told = 0
        self.process, self.began, self.forks = os.getpid(), time.perf_counter(), 0
        self.threads = 2  # the main thread and the sampling thread
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_parent=self._forked)

    def _forked(self) -> None:
        self.forks += 1

    def take(self, frame: Any) -> None:
        """Write a sample: the stack of `frame` for the time since the previous sample."""
        codes, caller = [], frame
        while caller is not None:
            codes.append(caller.f_code)
            caller = caller.f_back
        key = tuple(map(id, codes))
        if key not in self.stacks:
            before = len(list(takewhile(lambda code: code.co_filename in OURS, reversed(codes))))
            names = stack_of(frame)[before:]  # without the frames that started the script
            self.stacks[key] = self.told if names else -1
            self.codes += codes
            self.threads = max(self.threads, len(sys._current_frames()))
            if names:
                self.told += 1
                self.write({"stack": names})
        now = self.clock()
        if self.stacks[key] >= 0:
            self.write([self.last, now - self.last, self.stacks[key]])
        self.last = now

    def write(self, line: Any) -> None:
        """Write a line of JSON, unless this process is a fork of the script's process."""
        if os.getpid() == self.process:
            os.write(self.file, f"{json.dumps(line)}\n".encode())

    def end(self, how: str) -> None:
        """Write how the script ended, its run time, and the numbers of its forks and additional threads."""
        about = {"ended": how, "seconds": time.perf_counter() - self.began}
        self.write(about | {"forks": self.forks, "threads": self.threads - 2})


def script_runner(words: list[str], module: bool) -> Callable[[], Any]:
    """Return a function that runs a script or a module as Python does."""
    sys.argv = words
    safe, file = sys.flags.safe_path, Path(words[0])
    if module:
        if not safe:
            sys.path.insert(0, os.getcwd())
        return partial(runpy.run_module, words[0], run_name="__main__", alter_sys=True)
    if file.is_dir() or file.suffix in (".zip", ".pyz"):
        return partial(runpy.run_path, words[0], run_name="__main__")
    if not safe:
        sys.path.insert(0, str(file.resolve().parent))
    main = ModuleType("__main__")
    vars(main).update(__file__=words[0], __builtins__=builtins, __spec__=None, __cached__=None)
    code = compile(file.read_bytes(), words[0], "exec")
    sys.modules["__main__"] = main
    return partial(exec, code, vars(main))


def told_apart(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames that started the script."""
    while trace is not None and trace.tb_frame.f_code.co_filename in OURS:
        trace = trace.tb_next
    return trace


def exit_code(asked: Any) -> int:
    """Return the exit code that Python gives for ``SystemExit(asked)``, and print the message that Python prints."""
    if asked is None or isinstance(asked, int):
        return int(asked or 0)
    print(asked, file=sys.stderr)
    return 1


def run_profiled(words: list[str]) -> int:
    """Run and sample a script or module, write how it ended, and return the exit code that Python would return."""
    file, interval, module = words[:3]
    ticks = Ticks(float(interval))
    recorder = Recorder(os.open(file, os.O_WRONLY | os.O_APPEND), ticks)
    for name in ("execv", "execve"):
        setattr(os, name, _telling(recorder, getattr(os, name)))
    how, code = "", 0
    try:
        run = script_runner(words[3:], module == "module")
        with ticking(recorder.take, ticks):
            run()
    except SystemExit as asked:
        code = exit_code(asked.code)
        how = f"the script ended with exit code {code}" if code else ""
    except BaseException as error:
        trace = told_apart(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
        how = "the script was stopped by Ctrl-C" if code == 130 else f"the script raised {type(error).__name__}"
    recorder.write({"how": ticks.how})
    recorder.end(how)
    return code


def _telling(recorder: Recorder, replace: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an ``os.exec…`` to record the call and cancel the sampling timer, which the new program would inherit."""

    def tell(path: Any, *rest: Any) -> Any:
        if os.getpid() == recorder.process:
            if "signal" in sys.modules and hasattr(sys.modules["signal"], "setitimer"):
                import signal

                signal.setitimer(signal.ITIMER_REAL, 0)
            recorder.end(f"the script replaced itself by {os.fsdecode(path)}, which was not looked at")
        return replace(path, *rest)

    return tell


if __name__ == "__main__":
    sys.exit(run_profiled(sys.argv[1:]))
