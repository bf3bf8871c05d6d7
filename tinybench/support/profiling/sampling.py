"""The timer of a sampling profiler. It takes samples at random moments, by a signal or from another thread."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from opcode import opmap
from random import Random
from types import CodeType
from typing import Any

from tinybench.support.basics.numbers import number_of

__all__ = ["Ticks", "running", "ticking"]

DEAREST = 0.005  # the largest fraction of the time that samples may take: about 1 % with their effect on the caches
SOONEST = 20e-6  # s; an alarm with a shorter delay may be due before it is set
KEPT_WAITING = 200e-6  # s; if a sample is later than this, native code has delayed it
IN_VAIN = 8  # the number of attempts that come too late after which the watcher thread stops sampling
OWN = 1e-3  # s; an alarm within this tolerance of the planned time is our own
LAG = 50e-6  # s; Python code handles a signal sooner than this
RESUME = opmap.get("RESUME")

BY_SIGNAL = (
    "by a signal in the main thread, and in native code that releases the interpreter's lock from another thread; the "
    "last operator of a function (such as one on arrays that does not release it), and freeing its memory, may count "
    "for the function that called it"
)
BY_THREAD = (
    "from another thread, which has to wait until the interpreter's lock is free: functions that run between calls "
    "that release it, such as reading or native code, seem to take less than they do"
)


class Ticks:
    """A schedule with one sample at a random moment of every interval, so periodic work cannot hide between samples.

    `clock` returns the total length of all intervals whose random moment has passed. The difference of its readings at
    two successive samples is the weight of the second sample: one interval or, if native code has delayed the sample,
    all intervals that were due in the meantime. If an ordinary clock were used, the weight would include the time of
    functions that ran between the samples and were too short to be sampled; these would seem to take no time.

    Attributes
    ----------
    interval
        The length of an interval in seconds, above 0. `ticking` increases it if sampling would cost more than 1 %.
    how
        A description of the method by which `ticking` took samples, of the number and interval of the samples, and of
        their bias.
    """

    def __init__(
        self, interval: float = 0.01, timer: Callable[[], float] = time.perf_counter, rng: Random | None = None
    ) -> None:
        if not 0 < interval < math.inf:
            raise ValueError(f"interval is {interval}; it is in seconds and above 0, such as 0.01")
        self.interval, self.timer, self.rng, self.how = interval, timer, rng or Random(), "not begun"
        self.passed, self.begin, self.end, self.due = 0.0, 0.0, 0.0, math.inf

    def start(self) -> None:
        """Start the first interval."""
        self.passed, self.begin = 0.0, self.timer()
        self.end = self.begin
        self._next()

    def _next(self) -> None:
        self.due, self.end = self.end + self.rng.random() * self.interval, self.end + self.interval

    def clock(self) -> float:
        """Return the seconds from the start to the end of the most recent interval whose sampling moment has passed."""
        now = self.timer()
        while now >= self.due:
            self.passed = self.end - self.begin
            self._next()
        return self.passed

    def pause(self) -> float:
        """Return the seconds until the next sample is due, at least `SOONEST`."""
        return max(SOONEST, self.due - self.timer())


_one = threading.Lock()  # a process has only one timer for SIGALRM


class ticking:
    """A context manager that samples its block: at random moments, it calls ``take(frame)`` with the current frame.

    Parameters
    ----------
    take
        A function of a frame. If it raises an exception, sampling stops, and the exception is raised after the block.
    interval
        The average number of seconds between two samples, or a `Ticks`.

    Raises
    ------
    RuntimeError
        If the program uses the timer or its signal itself, or if another profile is being taken.
    """

    by_signal = False

    def __init__(self, take: Callable[[Any], Any], interval: float | Ticks = 0.01) -> None:
        self.take = take
        self.ticks = interval if isinstance(interval, Ticks) else Ticks(interval)
        self.asked, self.looks, self.spent = self.ticks.interval, 0, 0.0
        self.problem: Exception | None = None
        self.on, self.lost = False, False
        self.before: Any = None
        self.late, self.patience = 0, 1  # delayed samples, and how many of them start the watcher thread
        self.thread, self.stop = threading.get_ident(), threading.Event()
        self.turn, self.wanted = threading.Lock(), threading.Lock()
        self.watcher = threading.Thread(target=self._watch, name="tinybench-ticks", daemon=True)

    def __enter__(self) -> Ticks:
        """Start sampling. Return the `Ticks`, whose `how` describes the method."""
        if not _one.acquire(blocking=False):
            raise RuntimeError("a profile is being taken already, and there is one timer: take one after the other")
        try:
            self.wanted.acquire()
            self.watcher.start()
            self.by_signal = self._may_alarm()
        except BaseException:
            self._end()
            raise
        self.ticks.how = BY_SIGNAL if self.by_signal else BY_THREAD
        self.on = True
        self.ticks.start()
        if self.by_signal:
            signal.setitimer(signal.ITIMER_REAL, self.ticks.pause())
        else:
            self._want()
        return self.ticks

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Stop sampling, and restore the signal handler."""
        self.on = False
        if self.by_signal:
            self.lost = signal.getsignal(signal.SIGALRM) != self._on_signal
            left, _ = signal.getitimer(signal.ITIMER_REAL)
            if not self.lost or abs(left - self.ticks.pause()) < OWN:  # else the program set the timer
                signal.setitimer(signal.ITIMER_REAL, 0)
            if not self.lost:
                signal.signal(signal.SIGALRM, self.before)
        self._end()
        self.ticks.how = f"{number_of(self.looks, 'look')}, {self._how_often()}, {self.ticks.how}"
        if self.lost:
            self.ticks.how += "; the program then took SIGALRM for itself, and what came after was not looked at"
        if self.problem is not None and error is None:
            raise self.problem

    def _end(self) -> None:
        self.stop.set()
        self._want()
        if self.watcher.ident is not None:
            self.watcher.join()
        _one.release()

    def _how_often(self) -> str:
        often = f"one every {self.ticks.interval * 1e3:.3g} ms at a random moment"
        if self.ticks.interval > self.asked:
            often += f" (not {self.asked * 1e3:.3g}: a look takes {self.spent / self.looks * 1e6:.0f} µs)"
        return often

    def _may_alarm(self) -> bool:
        """Install the signal handler. Return False if this thread or this system does not allow it."""
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            return False
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        before = signal.getsignal(signal.SIGALRM)
        if left or before is None:
            raise RuntimeError(
                f"the program's own alarm goes off in {left:.3g} s (signal.alarm, signal.setitimer), and a process has "
                "one: profile without it"
                if left
                else "SIGALRM belongs to code that is not Python, which could not get it back: profile without it"
            )
        try:
            signal.signal(signal.SIGALRM, self._on_signal)
        except ValueError:  # an interpreter embedded in another program
            return False
        self.before = before
        signal.siginterrupt(signal.SIGALRM, False)  # system calls of native code resume after the signal
        return True

    def _on_signal(self, _: int, frame: Any) -> None:
        if self.on:
            self.late += self.ticks.timer() - self.ticks.due > KEPT_WAITING
            self._look(frame)
            if self.late >= self.patience:
                self._want()
        if self.on:
            signal.setitimer(signal.ITIMER_REAL, self.ticks.pause())

    def _want(self) -> None:
        self.late = 0
        if self.wanted.locked():
            self.wanted.release()

    def _watch(self) -> None:
        """Take samples in the watcher thread: always if there are no signals, otherwise only while signals are delayed.

        Native code delays signals. If it also holds the interpreter's lock, the watcher thread cannot take samples
        either, and only costs time. After `IN_VAIN` failed attempts in a row, the thread therefore pauses. The number
        of delayed signals that wake the thread again doubles with each pause.
        """
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        self.wanted.acquire()
        while not self.by_signal and not self.stop.wait(self.ticks.pause()):
            self._look(sys._current_frames().get(self.thread))
        while self.on:
            in_vain = 0
            while in_vain < IN_VAIN and not self.stop.wait(self.ticks.pause() + LAG):
                seen = self._look(sys._current_frames().get(self.thread))
                in_vain, self.patience = (0, 1) if seen else (in_vain + 1, self.patience)
            if self.stop.is_set():
                return
            self.patience *= 2
            self.wanted.acquire()

    def _look(self, frame: Any) -> bool:
        """Take a sample of a frame if a sample is due and no other thread is sampling. Return whether one was taken."""
        if not self.on or not self.turn.acquire(blocking=False):
            return False
        try:
            began, last = time.thread_time(), self.ticks.passed
            frame = running(frame)
            if frame is None or self.ticks.clock() == last:
                return False
            self.take(frame)
            self.looks += 1
            self.spent += time.thread_time() - began
            self.ticks.interval = max(self.asked, self.spent / self.looks / DEAREST)
        except Exception as problem:  # raised later, as the program might catch it here
            self.problem, self.on = problem, False
        finally:
            self.turn.release()
        return True


_known: dict[int, tuple[CodeType, frozenset[int]]] = {}  # by id because hashing a code object is slow


def running(frame: Any) -> Any:
    """Return the frame that used the time before a sample: the sampled frame or its caller.

    Frames of the sampler's own code are skipped. Python handles signals at the start of a function, after a call of
    native code, and at the start of a loop iteration. A function at its start has not run yet, so the time belongs to
    its caller. If no frame of the program remains, return None.
    """
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is not None and frame.f_back is not None and frame.f_lasti in _beginnings(frame.f_code):
        return frame.f_back
    return frame


def _beginnings(code: CodeType) -> frozenset[int]:
    """Return the offsets in the byte code at which a function starts or a generator resumes."""
    found = _known.get(id(code))
    if found is None:
        steps = code.co_code
        found = _known[id(code)] = code, frozenset(k for k in range(0, len(steps), 2) if steps[k] == RESUME)
    return found[1]
