"""A trial run of a pipeline of stages, which are functions.

The trial run records the calls, durations and answers of each stage, and detects stages that end the process.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.rounds.checked_calls import same_content

Stage = Callable[..., Any]
MOST = 64 << 20  # bytes of recorded inputs and answers in one process
PATIENCE = 2.0  # s that a run may take to end by itself after a stage has failed in another thread or process

_here = threading.local()
_told: dict[tuple[str, int], list[tuple[int, dict[str, Any]]]] = {}  # (thread, entry) pairs by folder and process


class StageError(RuntimeError):
    """An error for a stage that ended its thread or its process, or that raised an exception nobody caught."""


@dataclass
class Trial:
    """The result of a trial run of a pipeline.

    Four dictionaries by stage hold the number of `calls`, the seconds on the `clock`, the `processor` seconds, and, in
    `once`, the reason why the stage cannot be called twice on one input. `workers` are the (process, thread) pairs that
    called stages. `pairs` are the pickled inputs and answers of the recorded stage. If they could not be recorded,
    `unrecorded` is the reason.
    """

    calls: dict[str, int]
    clock: dict[str, float]
    processor: dict[str, float]
    once: dict[str, str] = field(default_factory=dict)
    workers: set[tuple[int, int]] = field(default_factory=set)
    pairs: dict[bytes, bytes] = field(default_factory=dict)
    unrecorded: str = ""

    __repr__ = short_repr

    @property
    def overlaps(self) -> bool:
        """Whether any stage ran outside of the current thread."""
        return self.workers != {(os.getpid(), threading.get_ident())}

    def share(self, name: str, seconds: float) -> float:
        """Return the fraction that a stage takes of `seconds`, the duration of a run.

        If stages overlap, the total time of all stages can be longer than the run, because it adds up all threads and
        processes, as a profile does. Then return the fraction of this total.
        """
        return self.clock[name] / max(seconds, sum(self.clock.values()))


class _Watched:
    """A stage that records its start and its result or error: in a list or, in a child process, in a file."""

    def __init__(
        self, name: str, stage: Stage, folder: str, twice: bool, record: bool, clock: Callable[[], float]
    ) -> None:
        self.name, self.stage, self.folder, self.clock = name, stage, folder, clock
        self.twice, self.record = twice, record

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before, _here.told = getattr(_here, "told", None), self._tell
        self._tell(begins=True)
        given = self._pickled((args, kwargs)) if self.record else None
        start, cpu = self.clock(), time.thread_time()
        try:
            answer = self.stage(*args, **kwargs)
            took = {"seconds": self.clock() - start, "cpu": time.thread_time() - cpu}
            if hasattr(answer, "__next__"):
                raise TypeError(f"answers a {type(answer).__name__}, whose work is done later; let it return a list")
            answer, once = self._second_time(answer, args, kwargs) if self.twice else (answer, "")
        except SystemExit as error:
            self._tell(error=f"wants to end the process (SystemExit: {error.code})")
            raise StageError(f"stage {self.name} wants to end the process (SystemExit: {error.code})") from error
        except BaseException as error:
            self._tell(error=f"{type(error).__name__}: {error}")
            error.add_note(f"in stage {self.name}, in the trial run of what_if")
            raise
        finally:
            _here.told = before
        unrecorded = self._keep(given, answer) if self.record else ""
        self._tell(**took, once=once, unrecorded=unrecorded)
        return answer

    def _file(self, ending: str) -> Path:
        return Path(self.folder, f"{os.getpid()}-{threading.get_ident()}.{ending}")

    def _tell(self, **facts: Any) -> None:
        entry = {"name": self.name, **facts}
        if (told := _told.get((self.folder, os.getpid()))) is not None:
            told.append((threading.get_ident(), entry))
            return
        with self._file("jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    @staticmethod
    def _pickled(value: Any) -> bytes | None:
        with contextlib.suppress(Exception):  # pickling runs code of the object, which may raise anything
            return pickle.dumps(value)
        return None

    def _second_time(self, answer: Any, args: Any, kwargs: Any) -> tuple[Any, str]:
        """Call the stage again. Return the first answer, and the reason why the stage cannot be repeated, or ""."""
        first = self._pickled(answer)
        try:
            second = self.stage(*args, **kwargs)
        except Exception as error:
            return answer, f"raises {type(error).__name__} when called again"
        if first is None:
            return answer, "" if same_content(answer, second) else "answers otherwise when called again"
        if first == self._pickled(second):
            return answer, ""
        answer = pickle.loads(first)  # the second call may have changed the first answer
        return answer, "" if same_content(answer, second) else "answers otherwise when called again"

    def _keep(self, given: bytes | None, answer: Any) -> str:
        answered, file = self._pickled(answer), self._file("pairs")
        if given is None or answered is None:
            return "what it is given or answers cannot be pickled"
        if (file.stat().st_size if file.exists() else 0) > MOST:
            return "its answers are too large to record"
        with file.open("ab") as pairs:
            pickle.dump((given, answered), pairs)
        return ""


@contextlib.contextmanager
def _no_exit() -> Iterator[None]:
    """Make `os._exit` raise `StageError` while a stage is running, in this process and in forked processes."""
    leave = os._exit

    def refuse(status: int) -> Any:
        if tell := getattr(_here, "told", None):
            tell(error=f"wants to end the process (os._exit({status}))")
            raise StageError(f"stage {tell.__self__.name} wants to end the process (os._exit({status}))")
        leave(status)

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = leave


def _entries(folder: str) -> Iterator[tuple[int, int, list[dict[str, Any]]]]:
    """Yield the process id, the thread id and the recorded entries of each thread that called stages."""
    here = list(_told[folder, os.getpid()])
    for thread in {thread for thread, _ in here}:
        yield os.getpid(), thread, [entry for each, entry in here if each == thread]
    for file in Path(folder).glob("*.jsonl"):
        pid, thread = map(int, file.stem.split("-"))
        lines = file.read_text(encoding="utf-8").splitlines()
        yield pid, thread, [json.loads(line) for line in lines if line.endswith("}")]


def _failure(folder: str) -> str:
    """Describe a stage that failed, or that was running when its process died. Without such a stage, return ""."""
    for pid, _, told in _entries(folder):
        for entry in told:
            if "error" in entry:
                return f"stage {entry['name']} {entry['error']}"
        if told and "begins" in told[-1] and pid != os.getpid() and _gone(pid):
            return f"stage {told[-1]['name']} ended its process"
    return ""


def _gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _interrupt() -> None:
    """Interrupt the main thread, even if it is waiting for another process."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


@contextlib.contextmanager
def _watch(folder: str) -> Iterator[None]:
    """Interrupt the main thread if a stage has failed in another thread or process and the run does not end."""
    over = threading.Event()
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    stopped: list[str] = []

    def look() -> None:
        while not over.wait(0.1):
            if (why := _failure(folder)) and not over.wait(PATIENCE):
                stopped.append(why)
                _interrupt()
                return

    watcher = threading.Thread(target=look, daemon=True)
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler) if main else None
    try:
        try:
            if main:
                watcher.start()
            yield
        finally:
            over.set()
            if main:
                watcher.join()
                signal.signal(signal.SIGINT, handler)
    except BaseException as error:
        for child in psutil.Process().children(recursive=True):
            if child.pid not in before:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        if stopped and isinstance(error, KeyboardInterrupt):
            raise StageError(f"{stopped[0]}, and the run waits for it for ever") from None
        raise


def trial_run(
    run: Callable[[Mapping[str, Stage]], Any],
    stages: Mapping[str, Stage],
    *,
    twice: Collection[str] = (),
    record: str = "",
    clock: Callable[[], float] = time.perf_counter,
) -> Trial:
    """Run a pipeline once and record the calls of its stages.

    Stages in `twice` are called twice on each input. The inputs and answers of the stage `record` are recorded. If a
    stage ends its thread or process, raise StageError with its name.
    """
    with tempfile.TemporaryDirectory() as folder:
        watched = {
            name: _Watched(name, stage, folder, name in twice, name == record, clock) for name, stage in stages.items()
        }
        _told[folder, os.getpid()] = []
        try:
            return _watched_run(run, watched, folder)
        finally:
            del _told[folder, os.getpid()]


def _watched_run(run: Callable[[Mapping[str, Stage]], Any], stages: dict[str, _Watched], folder: str) -> Trial:
    with _no_exit(), _watch(folder):
        run(stages)
    if why := _failure(folder):
        raise StageError(why)
    trial = Trial(dict.fromkeys(stages, 0), dict.fromkeys(stages, 0.0), dict.fromkeys(stages, 0.0))
    for pid, thread, told in _entries(folder):
        trial.workers.add((pid, thread))
        for entry in told:
            if "seconds" in entry:
                name = entry["name"]
                trial.calls[name] += 1
                trial.clock[name] += entry["seconds"]
                trial.processor[name] += entry["cpu"]
                trial.unrecorded = trial.unrecorded or entry["unrecorded"]
                if entry["once"]:
                    trial.once[name] = entry["once"]
    for pairs in Path(folder).glob("*.pairs"):
        with pairs.open("rb") as file, contextlib.suppress(EOFError):
            while True:
                given, answer = pickle.load(file)
                trial.pairs[given] = answer
    return trial
