"""Looking at what runs now and then: when, and by what means."""

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

DEAREST = 0.005  # share of the time that looks themselves may take: with what they push out of the caches, 1 % or so
SOONEST = 20e-6  # s; an alarm set for less may be over before it is set
KEPT_WAITING = 200e-6  # s that a look is late when native code kept it waiting
IN_VAIN = 8  # looks from the other thread that came too late
OWN = 1e-3  # s by which the alarm may be off from what was set
LAG = 50e-6  # s; Python code takes a signal within less
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
    """When to look: at a random moment of every interval, so that nothing that repeats itself can hide between looks.

    `clock` tells the time in whole intervals: of all those whose moment has come. A sampler that uses it gives each
    look the weight of the intervals it stands for. Native code keeps a look waiting; it then stands for all that were
    due meanwhile. By a usual clock it would also get the time of whatever was too short to be looked at before, which
    then seems to take none.

    Attributes
    ----------
    interval
        Seconds, above 0. `ticking` makes it longer where a look takes so long that looking would cost more than 1 %.
    how
        By what means `ticking` looked, how often, and what is then biased.
    """

    def __init__(
        self, interval: float = 0.01, timer: Callable[[], float] = time.perf_counter, rng: Random | None = None
    ) -> None:
        if not 0 < interval < math.inf:
            raise ValueError(f"interval is {interval}; it is in seconds and above 0, such as 0.01")
        self.interval, self.timer, self.rng, self.how = interval, timer, rng or Random(), "not begun"
        self.passed, self.begin, self.end, self.due = 0.0, 0.0, 0.0, math.inf

    def start(self) -> None:
        """Begin the first interval."""
        self.passed, self.begin = 0.0, self.timer()
        self.end = self.begin
        self._next()

    def _next(self) -> None:
        self.due, self.end = self.end + self.rng.random() * self.interval, self.end + self.interval

    def clock(self) -> float:
        """Return the seconds from the start to the end of the last interval whose moment has come."""
        now = self.timer()
        while now >= self.due:
            self.passed = self.end - self.begin
            self._next()
        return self.passed

    def pause(self) -> float:
        """Return the seconds until the next moment."""
        return max(SOONEST, self.due - self.timer())


_one = threading.Lock()  # a process has one such timer


class ticking:
    """Call ``take(frame)`` now and then for the time of a block, with what its thread just runs.

    Parameters
    ----------
    take
        Looks at a frame; what it raises ends the looking, and is raised at the end of the block.
    interval
        Seconds between two looks on average, or `Ticks`.

    Raises
    ------
    RuntimeError
        If the program uses the timer itself, a profile is being taken already, or there is no way to look.
    """

    by_signal = False

    def __init__(self, take: Callable[[Any], Any], interval: float | Ticks = 0.01) -> None:
        self.take = take
        self.ticks = interval if isinstance(interval, Ticks) else Ticks(interval)
        self.asked, self.looks, self.spent = self.ticks.interval, 0, 0.0
        self.problem: Exception | None = None
        self.on, self.lost = False, False
        self.before: Any = None
        self.late, self.patience = 0, 1  # looks that were kept waiting, and how many are needed to try another way
        self.thread, self.stop = threading.get_ident(), threading.Event()
        self.turn, self.wanted = threading.Lock(), threading.Lock()
        self.watcher = threading.Thread(target=self._watch, name="tinybench-ticks", daemon=True)

    def __enter__(self) -> Ticks:
        """Begin to look; return the `Ticks`, which say how."""
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
        """Stop looking, and leave the signal as it was."""
        self.on = False
        if self.by_signal:
            self.lost = signal.getsignal(signal.SIGALRM) != self._on_signal
            left, _ = signal.getitimer(signal.ITIMER_REAL)
            if not self.lost or abs(left - self.ticks.pause()) < OWN:  # else it is the program's by now
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
        """Take the signal, or return that this cannot be done in this thread or on this system."""
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
        except ValueError:  # an interpreter inside another program
            return False
        self.before = before
        signal.siginterrupt(signal.SIGALRM, False)  # native code's reads and writes go on by themselves
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
        """Look from this thread: always, or while signals have to wait for native code and the lock is free then.

        Where it is not, this thread only costs time: after some looks in vain it lets more signals wait until it tries
        again.
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
        """Let a frame be looked at, if it is time and nobody else does; return whether it was."""
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
        except Exception as problem:  # must not be raised in the middle of the program, which may expect such a one
            self.problem, self.on = problem, False
        finally:
            self.turn.release()
        return True


_known: dict[int, tuple[CodeType, frozenset[int]]] = {}  # by id: their own hash takes long


def running(frame: Any) -> Any:
    """Return the frame that was on, for one in which a look was let in; None for the end of the looking itself.

    Python lets signals in where a function begins, after a call of native code, and where a loop begins anew. A
    function that only begins has not run yet: what took the time was before it.
    """
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is not None and frame.f_back is not None and frame.f_lasti in _beginnings(frame.f_code):
        return frame.f_back
    return frame


def _beginnings(code: CodeType) -> frozenset[int]:
    """Return where in its bytes a function begins or, as a generator, goes on."""
    found = _known.get(id(code))
    if found is None:
        steps = code.co_code
        found = _known[id(code)] = code, frozenset(k for k in range(0, len(steps), 2) if steps[k] == RESUME)
    return found[1]
