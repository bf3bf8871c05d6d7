# Written by "autograder export" from modules/03_latency/03_latency.ipynb: edit the notebook, not this file.

"""Measurements of latency: the steady state, tails, several models in fair rounds, whole sessions, and cold starts.

In a round, each model is timed once, and the order of the models changes from round to round.
"""

from __future__ import annotations

import gc
import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise, repeat
from statistics import fmean, median
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult, percentile_interval
from tinybench.support.rounds.calibration import clock_step, share_calibration
from tinybench.support.rounds.checked_calls import ONNX_DTYPES, Call, Clock, fed_by_name
from tinybench.support.rounds.fresh_processes import fresh_task, run_fresh
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.support.rounds.subject import Record, Subject
from tinybench.timer import calibrate_loops, timer_overhead


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


def ran_backwards(elapsed: float, measurement: int) -> RuntimeError:
    """Return the error to raise if a measured duration, `elapsed`, is negative because the clock went back."""
    return RuntimeError(
        f"the clock ran backwards by {-elapsed:.3g} s in measurement {measurement}; "
        "use a monotonic one such as time.perf_counter"
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


def runs_within(seconds: float, per_call: float) -> int:
    """Return the number of calls, each of `per_call` seconds, that fill `seconds`: at least 1, at most 10 000."""
    return max(1, min(10_000, round(seconds / max(per_call, 1e-9))))


def check_runs(name: str, runs: Any, least: int) -> None:
    """Raise ValueError unless `runs` is a whole number of at least `least`. The message contains `name`."""
    if isinstance(runs, bool) or not isinstance(runs, int | np.integer) or runs < least:
        raise ValueError(f"{name} is {runs!r}; it must be a whole number of at least {least}")


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


def as_input(inputs: Any) -> Any:
    """Return an input unchanged. Raise ValueError if the input is empty; the message contains its shape."""
    if 0 in shape_of(inputs):
        raise ValueError(f"the input is empty: its shape is {shape_of(inputs)}")
    return inputs


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of an array, a table or a list of equally long rows.

    For any other list, the result is a tuple with the length alone. For everything else, it is ``()``.
    """
    try:
        return tuple(int(size) for size in getattr(x, "shape", None) or np.shape(x))
    except (TypeError, ValueError):  # rows of different length
        return (len(x),)


def shape_notes(x: Any) -> dict[str, Any]:
    """Return shape, dtype and batch size of an input. If there are several axes, the first one is the batch."""
    shape = list(shape_of(x))
    dtype = str(getattr(x, "dtype", type(x).__name__))
    return {"input_shape": shape, "input_dtype": dtype, "batch_size": shape[0] if len(shape) > 1 else 1}


def describe_input(x: Any) -> dict[str, Any]:
    """Return the conditions of a measurement: the `shape_notes` of the input, and the `machine_notes`."""
    return {**shape_notes(x), **machine_notes()}


def run_notes(model: Any, x: Any, clock: Clock) -> dict[str, Any]:
    """Return metadata: the model, the input, the clock with its overhead in s, and whether garbage is collected."""
    return {
        "model": getattr(model, "__name__", type(model).__name__),
        **describe_input(x),
        "timer_overhead": timer_overhead(clock, samples=101),
        "clock": getattr(clock, "__name__", type(clock).__name__),
        "gc_enabled": gc.isenabled(),
    }


def prepare(
    model: Any, x: Any, warmup_runs: int, clock: Clock, max_seconds: float = 10.0
) -> tuple[Call, int, dict[str, Any]]:
    """Warm up a model. Return the model as a function of one array, the number of calls per measurement, and metadata.

    The warm-up makes at least `warmup_runs` calls (0 means no warm-up) and takes at most `max_seconds`; see `warm_up`.
    The number of calls per measurement (loops) is 1, or, if a warm call takes less than 10 µs, the number that
    `calibrate_loops` finds for 10 µs. The metadata are `run_notes`, ``warmup_runs``, ``warmup`` (the report of
    `warm_up`, or None) and ``loops``.
    """
    call = as_callable(model)
    warmup = warm_up(call, x, min_calls=warmup_runs, max_seconds=max_seconds, clock=clock) if warmup_runs else None
    too_short = warmup is not None and warmup["median"] < 10e-6
    loops = calibrate_loops(lambda: call(x), 10e-6, clock=clock) if too_short else 1
    return call, loops, {**run_notes(model, x, clock), "warmup_runs": warmup_runs, "warmup": warmup, "loops": loops}


def made_ready(
    models: Mapping[str, Any],
    given: Mapping[str, Any],
    warmup_runs: int,
    clock: Clock,
    setup: Call | None = None,
    sync: Callable[[], Any] | None = None,
    max_seconds: float | None = None,
) -> dict[str, Subject]:
    """Warm up each model with the input of the same name. Return one `Subject` for each model; see `ready`."""
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
        call = fed_by_name(model) if by_name else as_callable(model)
        subject = Subject(name, call, given[name], timed_calls, clock, setup, sync, until=until)
        subject.make_ready(prepare, warmup_runs, limit / 4 / len(models), step)
        subject.metadata |= {"model": getattr(model, "__name__", type(model).__name__), "warmup_runs": warmup_runs}
        subject.metadata |= describe_input(given[name])
        subjects[name] = subject
    share_calibration(list(subjects.values()), step)
    return subjects


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
    [subject] = made_ready({"": model}, {"": as_input(inputs)}, warmup_runs, clock, setup, sync).values()
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


def inputs_by_model(models: Mapping[str, Any], inputs: Any) -> dict[str, Any]:
    """Return the input of each model by the model's name, in the order of `models`. All inputs have the same shape.

    `inputs` is one input for all models, or a dictionary with one input for each name. If no key of a dictionary is the
    name of a model, the dictionary itself is the input. Raises ValueError if there are no models, the names do not
    match, an input is empty, or the shapes differ, because the models would then do different amounts of work.
    """
    if not isinstance(models, Mapping):
        raise TypeError(f"models is a {type(models).__name__}; pass a dictionary such as {'{'}'fp32': session{'}'}")
    if not models:
        raise ValueError("models is empty; pass a dictionary such as {'fp32': session}")
    if not (isinstance(inputs, dict) and set(inputs) & set(models)):
        return dict.fromkeys(models, as_input(inputs))
    if set(inputs) != set(models):
        raise ValueError(f"inputs are for {sorted(inputs)}, models are {sorted(models)}; the names must agree")
    arrays = {name: as_input(inputs[name]) for name in models}
    shapes = {name: shape_of(x) for name, x in arrays.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"input shapes differ: {listed}; compare models on inputs of one shape")
    return arrays


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
    return made_ready(models, inputs_by_model(models, inputs), warmup_runs, clock, setup, sync, max_seconds)


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
        The models by name; one input for all models, or one for each name, all of the same shape (see
        `inputs_by_model`).
    measurement_runs
        Number of rounds. There may be fewer if `max_seconds` is given, a time limit for everything including the
        warm-up.
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
    given, notes = {"": as_input(inputs)}, {"order": "rounds spread over a session"}
    [subject] = made_ready({"": model}, given, warmup_runs, clock, setup, sync, max_seconds).values()
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
