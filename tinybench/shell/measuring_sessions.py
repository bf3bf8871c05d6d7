"""A loop that runs sessions until a verdict, a number of sessions or a time limit is reached, with a status line.

Each session measures every target in a fresh process.
"""

from __future__ import annotations

import math
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from tinybench.shell.comparison_sessions import Measured, command_session, process_session
from tinybench.shell.gate_targets import Target
from tinybench.shell.progress_bar import Progress

SHARE, LONGEST = 1 / 100, 1 / 12  # of the total time: for the rounds of a session, and at most for a session


@contextmanager
def stopping_on_term() -> Iterator[None]:
    """Treat SIGTERM, with which CI cancels a job, as Ctrl-C during the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_sessions(
    targets: Mapping[str, Target],
    measured: Measured,
    seconds: float,
    *,
    seed: int | None = None,
    sessions: int | None = None,
    decided: Callable[[], str] = str,
) -> None:
    """Run sessions and add them to `measured` until `decided` returns a verdict, `sessions` have run, or time is up.

    Raise TimeoutError if a target hangs, and ValueError if a target fails. Completed rounds stay in `measured`.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds is {seconds}; it must be positive, such as 60")
    began, rng = time.monotonic(), random.Random(seed)
    commands = all(target.words for target in targets.values())
    deadline, kill_at = began + seconds, began + 1.2 * seconds
    number, expected, start = 0, 0.0, began
    with Progress(seconds) as progress:
        try:
            if commands:  # an untimed run fills the caches
                command_session(0, targets, Measured({name: [] for name in targets}), rng, kill_at=kill_at)
            while number != sessions and (number == 0 or start + expected <= deadline):
                if commands:
                    progress.show(f"session {number + 1}")
                    command_session(number, targets, measured, rng, kill_at=kill_at)
                else:
                    rounds, whole = SHARE * seconds, LONGEST * seconds
                    if sessions:  # the remaining time in equal parts
                        rounds = whole = (deadline - start) / (sessions - number)
                    times = {"deadline": deadline, "kill_at": kill_at, "seconds": rounds, "longest": whole}
                    show = partial(_show_session, progress, number)
                    process_session(number, targets, measured, rng, **times, show=show)
                number += 1
                start, took = time.monotonic(), time.monotonic() - start
                expected = 0.0 if sessions else max(0.9 * expected, took)
                if decided():
                    break
        except TimeoutError as error:
            if number == 0 or time.monotonic() - start > 3 * expected + 0.05 * seconds:
                raise TimeoutError(
                    f"{error}, in session {number + 1}: it hangs, or takes longer than {1.2 * seconds:.3g} s; "
                    "if it is slow, give more --seconds"
                ) from None


def _show_session(progress: Progress, number: int, what: str) -> None:
    progress.show(f"session {number + 1}: {what}")
