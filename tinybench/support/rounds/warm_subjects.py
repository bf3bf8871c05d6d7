"""Models made ready for fair rounds: as functions of one array, warm, and calibrated together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from tinybench.support.rounds.calibration import clock_step, share_calibration
from tinybench.support.rounds.checked_calls import Call, Clock, fed_by_name
from tinybench.support.rounds.input_notes import check_runs, describe_input, run_notes
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.support.rounds.subject import Subject
from tinybench.timer import calibrate_loops


class Tools(NamedTuple):
    """The functions of module 03 that make a model ready: `as_callable`, `timed_calls` and `warm_up`."""

    as_callable: Callable[[Any], Call]
    timed_calls: Callable[..., list[float]]
    warm_up: Callable[..., dict[str, Any]]


def ran_backwards(elapsed: float, measurement: int) -> RuntimeError:
    """Return the error to raise if a measured duration, `elapsed`, is negative because the clock went back."""
    return RuntimeError(
        f"the clock ran backwards by {-elapsed:.3g} s in measurement {measurement}; "
        "use a monotonic one such as time.perf_counter"
    )


def prepare(
    tools: Tools, model: Any, x: Any, warmup_runs: int, clock: Clock, max_seconds: float = 10.0
) -> tuple[Call, int, dict[str, Any]]:
    """Warm up a model. Return the model as a function of one array, the number of calls per measurement, and metadata.

    The warm-up makes at least `warmup_runs` calls (0 means no warm-up) and takes at most `max_seconds`; see `warm_up`.
    The number of calls per measurement (loops) is 1, or, if a warm call takes less than 10 µs, the number that
    `calibrate_loops` finds for 10 µs. The metadata are `run_notes`, ``warmup_runs``, ``warmup`` (the report of
    `warm_up`, or None) and ``loops``.
    """
    call = tools.as_callable(model)
    warmup = (
        tools.warm_up(call, x, min_calls=warmup_runs, max_seconds=max_seconds, clock=clock) if warmup_runs else None
    )
    too_short = warmup is not None and warmup["median"] < 10e-6
    loops = calibrate_loops(lambda: call(x), 10e-6, clock=clock) if too_short else 1
    return call, loops, {**run_notes(model, x, clock), "warmup_runs": warmup_runs, "warmup": warmup, "loops": loops}


def make_subjects(
    tools: Tools,
    models: Mapping[str, Any],
    given: Mapping[str, Any],
    warmup_runs: int,
    clock: Clock,
    setup: Call | None = None,
    sync: Callable[[], Any] | None = None,
    max_seconds: float | None = None,
) -> dict[str, Subject]:
    """Warm up each model with the input of the same name. Return one `Subject` for each model."""
    check_runs("warmup_runs", warmup_runs, 0)
    if getattr(clock, "__name__", "").endswith("_ns"):
        raise ValueError(f"{clock.__name__} gives nanoseconds; pass a clock of seconds, such as time.perf_counter")
    limit = math.inf if max_seconds is None else max_seconds
    if not (limit > 0 and (max_seconds is None or math.isfinite(limit))):
        raise ValueError(f"max_seconds is {max_seconds}; it must be positive, such as 4, or None")
    for needed in ("numpy.random", "scipy.special"):  # their import may take longer than measuring
        import_module(needed)
    machine_notes()  # the first call imports modules
    until = clock() + 0.95 * limit  # the results take some time, too
    step = clock_step(clock)
    subjects = {}
    for name, model in models.items():
        by_name = isinstance(given[name], dict) and callable(getattr(model, "get_inputs", None))
        call = fed_by_name(model) if by_name else tools.as_callable(model)
        subject = Subject(name, call, given[name], tools.timed_calls, clock, setup, sync, until=until)
        subject.make_ready(partial(prepare, tools), warmup_runs, limit / 4 / len(models), step)
        subject.metadata |= {"model": getattr(model, "__name__", type(model).__name__), "warmup_runs": warmup_runs}
        subject.metadata |= describe_input(given[name])
        subjects[name] = subject
    share_calibration(list(subjects.values()), step)
    return subjects


def while_in_time(
    starts: Iterable[float], started: Sequence[float], began: float, subject: Subject, notes: dict[str, Any]
) -> Iterator[float]:
    """Yield the starts of rounds, until a further round as long as the last one would exceed the time limit.

    `started` holds the time at which each round so far began. The length of the session so far is stored in `notes`.
    """
    for start in starts:
        yield start
        now = subject.clock()
        notes["session_seconds"] = now - began
        if now + notes["session_seconds"] - started[-1] > subject.until:
            return
