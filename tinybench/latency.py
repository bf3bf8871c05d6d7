# Written by "autograder export" from modules/03_latency/03_latency.ipynb: edit the notebook, not this file.

"""Measurements of latency: the steady state, tails, several models in fair rounds, whole sessions, and cold starts.

In a round, each model is timed once, and the order of the models changes from round to round.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, repeat
from statistics import fmean, median
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult, percentile_interval
from tinybench.support.rounds.calibration import runs_within
from tinybench.support.rounds.checked_calls import ONNX_DTYPES, Call, Clock, fed_by_name
from tinybench.support.rounds.fresh_processes import fresh_task, run_fresh
from tinybench.support.rounds.input_notes import as_input, check_runs, describe_input, inputs_by_model
from tinybench.support.rounds.subject import Record, Subject
from tinybench.support.rounds.warm_subjects import Tools, make_subjects, ran_backwards, while_in_time


def session_call(session: Any) -> Call:
    """Return a function of one array that runs an ONNX Runtime session and returns the session's last output.

    The array is cast to the dtype of the session's input, without a copy if the array already has this dtype. The last
    output of a classifier holds the probabilities. If the session has several inputs, the function takes a dictionary
    of arrays by input name instead. Raises TypeError if an input has a type that NumPy lacks.
    """
    inputs = session.get_inputs()
    for node in inputs:
        if node.type not in ONNX_DTYPES:
            raise TypeError(f"the session's input {node.name!r} is a {node.type}; known are {', '.join(ONNX_DTYPES)}")
    if len(inputs) != 1:
        return fed_by_name(session)
    name, dtype = inputs[0].name, np.dtype(ONNX_DTYPES[inputs[0].type])
    outputs = [node.name for node in session.get_outputs()]

    def call(x: Any) -> Any:
        return session.run(outputs, {name: np.asarray(x, dtype)})[-1]

    return call


def as_callable(model: Any) -> Call:
    """Return a fitted or loaded model as a function of one array.

    The first that exists is used, in this order: an ONNX Runtime session (with `run` and `get_inputs`),
    `predict_proba`, `predict`, `forward`, and the model itself if it can be called. Raises TypeError if the model has
    none of these, or if it is a class instead of an instance.
    """
    if isinstance(model, type):
        raise TypeError(f"{model.__name__} is a class; pass an instance, or lambda x: {model.__name__}(x)")
    if callable(getattr(model, "run", None)) and callable(getattr(model, "get_inputs", None)):
        return session_call(model)
    for name in ("predict_proba", "predict", "forward"):
        method = getattr(model, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
    if callable(model):
        return model  # type: ignore[no-any-return]
    raise TypeError(
        f"{type(model).__name__} is no model: looked for run (ONNX), predict_proba, predict, forward, __call__"
    )


def timed_calls(
    call: Call, x: Any, runs: int, clock: Clock = time.perf_counter, loops: int = 1, overhead: float = 0.0
) -> list[float]:
    """Make `runs` measurements of a call, each over `loops` calls in a row. Return the seconds per call of each one.

    `overhead` is the duration of an empty measurement, in s. It is subtracted from each measurement, but the result is
    never below 0. Raises RuntimeError if the clock runs backwards.
    """
    times = [0.0] * runs
    if loops == 1:
        for i in range(runs):
            start = clock()
            call(x)
            times[i] = clock() - start
    else:
        for i in range(runs):
            start = clock()
            for _ in repeat(None, loops):
                call(x)
            times[i] = clock() - start
    for i, elapsed in enumerate(times):
        if elapsed < 0:
            raise ran_backwards(elapsed, i)
        times[i] = max(elapsed - overhead, 0.0) / loops
    return times


def warm_up(
    call: Callable[..., Any],
    *inputs: Any,
    min_calls: int = 3,
    min_seconds: float = 0.1,
    max_seconds: float = 10.0,
    clock: Clock = time.perf_counter,
) -> dict[str, Any]:
    """Call ``call(*inputs)`` until its latency stops falling.

    The warm-up makes at least `min_calls` calls (never fewer than 3) and lasts at least `min_seconds`. Once `min_calls`
    calls are done, it stops after `max_seconds` even if the latency is still falling.

    Returns a dictionary with the number of ``calls``, their total duration in ``seconds``, the duration of the
    ``first_call``, the ``median`` duration of a call in the last block of calls, and ``settled``, which is False if the
    latency was still falling. Raises ValueError for a wrong `min_calls`, and RuntimeError if the clock stands still.
    """
    check_runs("min_calls", min_calls, 0)
    began = clock()
    first = timed_calls(lambda _: call(*inputs), None, 1, clock)[0]
    calls, seconds, falling, medians = 1, first, True, [first]
    while calls < max(3, min_calls) or (seconds < max_seconds and (seconds < min_seconds or falling)):
        block = timed_calls(
            lambda _: call(*inputs), None, runs_within(min(min_seconds, max_seconds) / 5, medians[-1]), clock
        )
        falling = median(block) < 0.98 * min(medians)
        medians.append(median(block))
        calls, seconds = calls + len(block), clock() - began
        if calls > 10_000 and seconds == 0:
            raise RuntimeError(f"the clock stands still: {calls} calls took 0 s; use one such as time.perf_counter")
    return {"calls": calls, "seconds": seconds, "first_call": first, "median": medians[-1], "settled": not falling}


def ready(
    models: Mapping[str, Any],
    inputs: Any,
    warmup_runs: int = 5,
    clock: Clock = time.perf_counter,
    *,
    setup: Call | None = None,
    sync: Callable[[], Any] | None = None,
    max_seconds: float | None = None,
) -> dict[str, Subject]:
    """Warm up models. Return each one, by name, as a `Subject` that can be timed in rounds.

    Models of similar latency get the same number of calls per measurement. The same clock overhead is subtracted for
    all.

    See `measure_latencies` for the arguments. ``subject.measure()`` makes one measurement and returns it in s per call.
    """
    tools, given = Tools(as_callable, timed_calls, warm_up), inputs_by_model(models, inputs)
    return make_subjects(tools, models, given, warmup_runs, clock, setup, sync, max_seconds)


def measure_latency(
    model: Any,
    inputs: Any,
    warmup_runs: int = 5,
    measurement_runs: int = 10,
    clock: Clock = time.perf_counter,
    *,
    setup: Call | None = None,
    sync: Callable[[], Any] | None = None,
) -> BenchmarkResult:
    """Return the steady-state latency of one model, in s per call. The metadata describes the measurement.

    Parameters
    ----------
    model
        See `as_callable`.
    inputs
        The input of each call, passed on unchanged. Use `tinybench.arguments` to pass several arguments, and a
        dictionary of arrays by name for an ONNX session with several inputs.
    warmup_runs, measurement_runs
        Minimum number of untimed warm-up calls (0 for none, see `warm_up`), and number of measurements after them.
    clock
        A function that returns the time in seconds.
    setup
        A function that makes each call's input outside the measured time: `copy.deepcopy` for a model that changes it.
    sync
        A function such as ``torch.cuda.synchronize``, which waits for a device after each call, in the measured time.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        If the model cannot be called, or returns before its work is done; if a number of runs is wrong; if the input is
        empty, or the model changes its input; if the clock stands still or runs backwards.
    """
    check_runs("measurement_runs", measurement_runs, 1)
    [subject] = ready({"": model}, {"": inputs}, warmup_runs, clock, setup=setup, sync=sync).values()
    values = subject.times(measurement_runs)
    subject.check_input()
    return BenchmarkResult("latency", values, {**subject.metadata, "order": "one model alone"}, unit="s")


def latency_summary(result: BenchmarkResult) -> dict[str, Any]:
    """Summarise the distribution of latencies, tails included.

    Parameters
    ----------
    result
        Latencies in the order in which they were measured.

    Returns
    -------
    dict
        ``p50``, ``p90``, ``p95``, ``p99``, ``max`` and ``jitter`` (mean absolute difference of consecutive values;
        None for one value) in the unit of the result; ``intervals``: the order-statistic interval of each
        percentile for which there are enough measurements, unless both ends are equal; ``reasons``: for each of the
        numbers without an interval, why it has none.
    """
    reasons = {
        "max": "a maximum only grows with more measurements",
        "jitter": "consecutive differences are not independent",
    }
    summary: dict[str, Any] = {}
    intervals = {}
    for q in (50, 90, 95, 99):
        summary[f"p{q}"] = result.percentile(q)
        try:
            low, high = percentile_interval(result.values, q, result.confidence)
        except ValueError as too_few:
            reasons[f"p{q}"] = str(too_few)
            continue
        if low < high:
            intervals[f"p{q}"] = low, high
        else:
            reasons[f"p{q}"] = "both ends are equal: the clock is too coarse"
    steps = [abs(after - before) for before, after in pairwise(result.values)]
    summary |= {"max": result.max_val, "jitter": fmean(steps) if steps else None}
    return {**summary, "intervals": intervals, "reasons": reasons}


def round_orders(names: Sequence[str], rounds: int, seed: int | None = None) -> list[list[str]]:
    """Return, for each round, all names in a new random order.

    The same seed gives the same orders. With None, the orders are different each time.
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.tile(np.arange(len(names)), (rounds, 1)), axis=1)  # each row separately
    return [[names[i] for i in order] for order in shuffled.tolist()]


def hot_median(subject: Subject, seconds: float = 5e-3) -> float:
    """Return the median latency, in s, over a block of calls with hot caches. The block lasts about `seconds`.

    Two measurements before the block are not counted. They show how many measurements fit into the block, which holds
    at least one.
    """
    lead = subject.times(2)
    return median(subject.times(runs_within(seconds, min(lead) * subject.loops)))


def measure_latencies(
    models: Mapping[str, Any],
    inputs: Any,
    warmup_runs: int = 5,
    measurement_runs: int = 10,
    clock: Clock = time.perf_counter,
    mode: str = "as_served",
    seed: int | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    *,
    max_seconds: float | None = None,
    setup: Call | None = None,
    sync: Callable[[], Any] | None = None,
) -> dict[str, BenchmarkResult]:
    """Return the latencies of several models, by name. Each round times all models once, in a new random order.

    Parameters
    ----------
    models, inputs
        The models by name; one input for all models, or one for each name, all of the same shape.
    measurement_runs
        Number of rounds. There may be fewer if `max_seconds` is given, a time limit for everything.
    mode
        ``"as_served"``: one measurement of each model in a round. ``"hot"``: see `hot_median`.
    seed
        Seed for the order of the models in each round; None for orders that differ each time.
    progress
        A function that wraps the list of rounds, such as ``tqdm``.
    warmup_runs, clock, max_seconds, setup, sync
        See `measure_latency`, also for the exceptions. An exception during the rounds, Ctrl-C included, carries the
        results of all complete rounds in its attribute ``results``.
    """
    if mode not in ("as_served", "hot"):
        raise ValueError(f"mode is {mode!r}; it must be 'as_served' or 'hot'")
    check_runs("measurement_runs", measurement_runs, 1)
    subjects = ready(models, inputs, warmup_runs, clock, setup=setup, sync=sync, max_seconds=max_seconds)
    orders = round_orders(list(models), measurement_runs, seed)
    notes = {"order": "shuffled rounds", "mode": mode, "seed": seed, "pairing": uuid.uuid4().hex}
    with Record(subjects, notes, round_orders=orders) as record:
        for order in record.in_time(progress(orders)):
            for name in order:
                subject = subjects[name]
                record.add(name, hot_median(subject) if mode == "hot" else subject.measure())
    return record.results()


def session_starts(rounds: int, seconds: float, seed: int | None = None) -> list[float]:
    """Return the time at which each round starts, in s since the session began.

    The session is divided into equally long slots, one for each round. A round starts at a random time in its slot.
    """
    rng = np.random.default_rng(seed)
    return [float(i + rng.random()) * seconds / rounds for i in range(rounds)]


def measure_session_latency(
    model: Any,
    inputs: Any,
    rounds: int = 20,
    seconds: float = 10.0,
    warmup_runs: int = 5,
    clock: Clock = time.perf_counter,
    sleep: Callable[[float], Any] = time.sleep,
    seed: int | None = None,
    *,
    max_seconds: float | None = None,
    setup: Call | None = None,
    sync: Callable[[], Any] | None = None,
) -> BenchmarkResult:
    """Return the latency over a whole session, as the medians of short rounds that are spread over the session.

    Each median is a `hot_median`.

    Parameters
    ----------
    rounds, seconds
        Number of rounds, at least 10, and length of the session in s. If the rounds need more time, the session lasts
        longer.
    sleep, seed
        A function that waits the given seconds between rounds; seed of `session_starts`.
    max_seconds
        Time limit in s for everything, including the warm-up. If it is too short for all rounds, fewer rounds are
        measured.
    model, inputs, warmup_runs, clock, setup, sync
        See `measure_latency`, also for the exceptions. ``metadata["round_starts"]`` holds the start of each round.
    """
    check_runs("rounds", rounds, 10)
    if not 0 < seconds < float("inf"):
        raise ValueError(f"seconds is {seconds}; a session has a positive length")
    subjects = ready({"": model}, {"": inputs}, warmup_runs, clock, setup=setup, sync=sync, max_seconds=max_seconds)
    subject = subjects[""]
    notes = {"order": "rounds spread over a session"}
    began, started = clock(), list[float]()
    slots = session_starts(rounds, min(seconds, subject.until - began), seed)
    starts = while_in_time(slots, started, began, subject, notes)
    with Record({"": subject}, notes, round_starts=started) as record:
        for start in starts:
            wait = began + start - clock()
            if wait > 0:
                sleep(wait)
            started.append(clock() - began)
            record.add("", hot_median(subject))
    return record.results()[""]


def measure_cold_start(
    factory: Any,
    inputs: Any,
    repeats: int = 6,
    args: Sequence[Any] = (),
    steady_calls: int = 50,
    launch: Callable[[Mapping[str, Any]], Mapping[str, float]] = run_fresh,
) -> dict[str, BenchmarkResult]:
    """Return the measured time, in s, of each stage of a cold start in a new process.

    The result holds the stages ``import``, ``load``, ``first_call`` and ``steady``, by name.

    Parameters
    ----------
    factory, args
        A function that loads and returns the model, or ``"module:function"`` (see `portable_factory`); its arguments.
    inputs
        The array to call the model with.
    repeats
        Number of fresh processes, each of which gives one value per stage. An interval of the median needs at least 6.
    steady_calls
        Number of calls after the first one. Their median is the value of the stage ``steady``.
    launch
        A function that runs one cold start and returns the seconds of each stage.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        If the factory cannot be sent to a process, a number is below 1, the input is empty, or the factory or the model
        fails in the process.
    """
    check_runs("repeats", repeats, 1)
    check_runs("steady_calls", steady_calls, 1)
    x = as_input(inputs)
    task = fresh_task(factory, x, args, steady_calls)
    metadata = {**describe_input(x), "processes": repeats, "steady_calls": steady_calls, "disk": "cached"}
    starts = [launch(task) for _ in range(repeats)]
    return {
        stage: BenchmarkResult("cold start", [start[stage] for start in starts], {**metadata, "stage": stage}, unit="s")
        for stage in ("import", "load", "first_call", "steady")
    }
