"""The implementation of `tinybench load`: check the options, send the requests, and report the valid results."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from tinybench.benchmark import system_info
from tinybench.shell.load_summary import failures, load_figures, print_summary
from tinybench.shell.measuring_sessions import stopping_on_term
from tinybench.shell.progress_bar import Progress
from tinybench.support.basics.array_files import load_data
from tinybench.support.basics.numbers import number_of
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.tools.serving.client import Address, Users, address_of, sample_bodies
from tinybench.tools.serving.open_files import allow_files

try:
    from tinybench.load import LoadResult, closed_loop
    from tinybench.tools.serving.load_scenarios import times_due
    from tinybench.tools.serving.sender import Sender, TooLateError
except ImportError as missing:  # in a student's package without module 14
    raise ValueError(f"tinybench load uses what module 14 builds, and {missing}") from None

FEWEST = 500  # requests that a p99 needs, see `tinybench.support.traffic.load_checks.objections`
TRIALS = 50  # trial requests that measure the generator's own cost per request
LONGEST_TRIAL = 1.0  # s
FILES = 64  # files that the process may open in addition to its connections


def run_load(
    url: str,
    rate: float,
    seconds: float,
    *,
    scenario: str,
    users: int | None,
    think: float,
    data: Path | None,
    bound: float,
    seed: int,
    timeout: float,
    connections: int,
    save: Path | None,
    form: str,
) -> bool:
    """Run a load test, and print and save the result.

    Return whether the test ran to its end, its result was saved, and no percentile is withheld because the generator
    sent requests too late.
    """
    _check(rate, seconds, users, timeout, connections, save)
    address = address_of(url)
    rows = None if data is None else load_data(data, 1)[1]
    bodies = sample_bodies(address, rows, seed, timeout)
    allow_files(max(connections, users or 0) + FILES)
    notes = machine_notes()  # before the test, whose own load is not a disturbance
    with stopping_on_term():
        if users is None:
            check_rate(rate, address, bodies, timeout)  # first: the times of an impossible rate fill the memory
            run = _open(address, bodies, times_due(scenario, rate, seconds, seed), connections, timeout)
        else:
            run = _closed(address, bodies, users, think, seconds, timeout)
    result, outcomes, problem = run
    asked = {"rate": rate, "scenario": scenario, "seed": seed} if users is None else {}
    result.metadata |= {"url": address.url, **asked, "outcomes": dict(outcomes), "system": system_info(), **notes}
    if not result.ok.any():
        raise ValueError(
            f"none of {number_of(len(result.ok), 'request')} was answered: {failures(outcomes)}"
        ) from problem
    where, unsaved = _keep(result, save)
    found = load_figures(result, bound)
    print_summary(result, found, form)
    for line in [*found["warnings"], *([str(problem)] if isinstance(problem, TooLateError) else []), unsaved]:
        if line:
            print(f"tinybench: {line}", file=sys.stderr)
    if isinstance(problem, KeyboardInterrupt):
        print(f"tinybench: that is what came until Ctrl-C{where and f'; the rows are in {where}'}", file=sys.stderr)
        raise problem
    return not (problem or unsaved or found["late"])


def _check(rate: float, seconds: float, users: int | None, timeout: float, connections: int, save: Path | None) -> None:
    """Raise an error for invalid options before a request is sent."""
    for name, value in {"rate": rate, "seconds": seconds, "timeout": timeout, "connections": connections}.items():
        if not 0 < value < float("inf"):
            raise ValueError(f"--{name} is {value:g}; give a number above 0")
    if users is not None and users < 1:
        raise ValueError(f"--closed is {users}; a closed loop has at least one user")
    if users is None and rate * seconds < FEWEST:
        raise ValueError(
            f"--rate {rate:g} for --seconds {seconds:g} makes about "
            f"{number_of(f'{rate * seconds:.0f}', 'request')}, and p99 takes "
            f"{FEWEST} or more: give --seconds {np.ceil(1.1 * FEWEST / rate):g}"
        )
    if save is not None and not save.parent.is_dir():
        raise FileNotFoundError(f"--save {save}: there is no folder {save.parent}")


Run = tuple[LoadResult, Counter[str], BaseException | None]


def _open(address: Address, bodies: Sequence[bytes], due: np.ndarray, connections: int, timeout: float) -> Run:
    """Send requests at their due times. Return the result, the outcomes and the exception that ended the run early."""
    problem: BaseException | None = None
    with (
        Progress(due[-1]) as progress,
        undisturbed() as urgent,
        Sender(address, bodies, due, connections=connections, timeout=timeout) as sender,
    ):

        def sleep(pause: float) -> None:
            if pause > 1e-3:  # a gap that is long enough to print
                progress.show(number_of(np.count_nonzero(sender.finished > 0), "answer"))
            sender.sleep(pause)

        try:
            result = sender.run(sleep)
        except (KeyboardInterrupt, TooLateError) as error:
            sender.stop()
            if np.isnan(sender.submitted).all():
                raise
            problem, result = error, sender.result()
    result.metadata["real_time_priority"] = urgent
    waited = (sender.started - sender.submitted) > 1e-3
    if waited.any():
        result.metadata["waited_for_a_connection"] = int(waited.sum())
    return result, sender.outcomes, problem


def _closed(address: Address, bodies: Sequence[bytes], count: int, think: float, seconds: float, timeout: float) -> Run:
    """Simulate `count` users who each send a request, wait for its answer, and pause for `think` s before the next.

    Return the same values as `_open`, even after Ctrl-C.
    """
    problem: BaseException | None = None
    passed, users, began = seconds, Users(address, bodies, timeout), time.perf_counter()
    with ThreadPoolExecutor(1) as pool, Progress(seconds) as progress:
        running = pool.submit(closed_loop, users.send, count, think, seconds)
        try:
            while not wait([running], timeout=0.5).done:
                progress.show(number_of(len(users.sent), "answer"))
            running.result()
        except KeyboardInterrupt as error:
            problem, passed = error, time.perf_counter() - began
            users.close()
            if not users.sent:
                raise
        finally:
            users.close()
    started, finished, outcomes = map(np.array, zip(*sorted(users.sent), strict=True))
    how = {"loop": "closed", "users": count, "think": think, "began": began}
    result = LoadResult(started - began, started - began, finished - began, outcomes == "200", passed, how)
    return result, users.outcomes, problem


@contextmanager
def undisturbed() -> Iterator[bool]:
    """Disable garbage collection, which can take milliseconds, and use real-time priority if the system permits.

    Yield whether real-time priority is in use. Restore both settings after the block.
    """
    gc.collect()
    gc.disable()
    before = None
    with suppress(AttributeError, OSError):  # Linux only, for root or users with an rtprio limit
        usual = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        before = usual
    try:
        yield before is not None
    finally:
        gc.enable()
        if before:
            os.sched_setscheduler(0, *before)


def check_rate(rate: float, address: Address, bodies: Sequence[bytes], timeout: float) -> None:
    """Raise ValueError for a rate above this generator's limit, estimated from the processor time of a few requests."""
    due = timeout * np.arange(TRIALS + 1)  # so far apart that no request is late; the last is never sent
    with Sender(address, bodies, due, timeout=timeout, connections=1) as sender:
        begun, until = time.thread_time(), time.perf_counter() + LONGEST_TRIAL
        for number in range(TRIALS):
            sender.wait_for(sender.submit(sender.send, number))
            if time.perf_counter() > until:
                break
        most = (number + 1) / (time.thread_time() - begun)
    if most < rate:
        raise ValueError(
            f"--rate is {rate:g}, and this generator can send about "
            f"{number_of(f'{most:,.0f}', 'request')} a second from this machine; "
            "ask for less, or load from several machines"
        )


def _keep(result: LoadResult, save: Path | None) -> tuple[Path | None, str]:
    """Write the rows to `save` or, if that fails, to another file. Return the written file and any error as text."""
    if save is None:
        return None, ""
    name, problem = f"tinybench-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.csv", ""
    for file in (save, Path(name), Path(tempfile.gettempdir(), name)):
        try:
            result.save(file)
        except OSError as error:
            problem = problem or f"cannot write {file} ({error.strerror})"
            continue
        return file, problem and f"{problem}; the rows are in {file}"
    return None, problem
