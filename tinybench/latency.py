# Written by "autograder export" from modules/03_latency/03_latency.ipynb: edit the notebook, not this file.

"""How long a model takes: steady latency, tails, fair rounds of several models, a session, a cold start."""

from __future__ import annotations

import base64
import builtins
import dis
import gc
import inspect
import json
import pickle
import subprocess
import sys
import tempfile
import textwrap
import time
import types
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, repeat
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult, percentile_interval
from tinybench.timer import calibrate_loops, timer_overhead

Clock = Callable[[], float]
Call = Callable[[Any], Any]
_ONNX_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
    "tensor(string)": "str",
}


def session_call(session: Any) -> Call:
    """Return a function of one array that runs an ONNX Runtime session.

    Parameters
    ----------
    session
        An ``onnxruntime.InferenceSession`` with one input.

    Returns
    -------
    callable
        Feeds the array under the input's name, cast to the input's dtype (no copy where it has it already), and
        returns the last output: of a classifier converted by skl2onnx the probabilities, which follow the labels.

    Raises
    ------
    TypeError
        If the session takes more than one input, or one of a type without NumPy counterpart.
    """
    inputs = session.get_inputs()
    if len(inputs) != 1:
        names = ", ".join(node.name for node in inputs)
        raise TypeError(
            f"the session takes {len(inputs)} inputs ({names}); pass a function of one argument that feeds them"
        )
    if inputs[0].type not in _ONNX_DTYPES:
        raise TypeError(
            f"the session's input {inputs[0].name!r} is a {inputs[0].type}; known are {', '.join(_ONNX_DTYPES)}"
        )
    name, dtype = inputs[0].name, np.dtype(_ONNX_DTYPES[inputs[0].type])
    outputs = [node.name for node in session.get_outputs()]

    def call(x: Any) -> Any:
        return session.run(outputs, {name: np.asarray(x, dtype)})[-1]

    return call


def as_callable(model: Any) -> Call:
    """Return a model as a function of one array.

    Looks, in this order, for an ONNX Runtime session (`run` and `get_inputs`), `predict_proba`, `predict`, `forward`,
    and the call itself.

    Parameters
    ----------
    model
        A fitted or loaded model, or any function of one array.

    Returns
    -------
    callable
        Function of one array.

    Raises
    ------
    TypeError
        If `model` offers none of these, or is a class and not an instance.
    """
    if isinstance(model, type):
        raise TypeError(f"{model.__name__} is a class; pass an instance, fitted or loaded")
    if callable(getattr(model, "run", None)) and callable(getattr(model, "get_inputs", None)):
        return session_call(model)
    for name in ("predict_proba", "predict", "forward"):
        method = getattr(model, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
    if callable(model):
        return model  # type: ignore[no-any-return]
    raise TypeError(
        f"{type(model).__name__} is no model: looked for an ONNX Runtime session (run and get_inputs), "
        "predict_proba, predict, forward and __call__"
    )


def ran_backwards(elapsed: float, measurement: int) -> RuntimeError:
    """Return the error to raise when a clock went back by `-elapsed` seconds."""
    return RuntimeError(
        f"the clock ran backwards by {-elapsed:.3g} s in measurement {measurement}; "
        "use a monotonic one such as time.perf_counter"
    )


def timed_calls(
    call: Call, x: Any, runs: int, clock: Clock = time.perf_counter, loops: int = 1, overhead: float = 0.0
) -> list[float]:
    """Time calls one by one.

    Parameters
    ----------
    call
        Function of one argument.
    x
        Its argument.
    runs
        Number of measurements.
    clock
        Returns seconds.
    loops
        Calls per measurement; more than one only for calls too short for the clock.
    overhead
        Seconds that an empty measurement reads (see `timer_overhead`), taken off each measurement, down to 0.

    Returns
    -------
    list of float
        Seconds per call, one value for each measurement. With `overhead` 0 each holds about one clock read too, divided
        by `loops`.

    Raises
    ------
    RuntimeError
        If the clock runs backwards.
    """
    times = [0.0] * runs
    if loops == 1:
        for i in range(runs):
            start = clock()
            call(x)
            elapsed = clock() - start
            if elapsed > overhead:
                times[i] = elapsed - overhead
            elif elapsed < 0:
                raise ran_backwards(elapsed, i)
    else:
        for i in range(runs):
            start = clock()
            for _ in repeat(None, loops):
                call(x)
            elapsed = clock() - start
            if elapsed > overhead:
                times[i] = (elapsed - overhead) / loops
            elif elapsed < 0:
                raise ran_backwards(elapsed, i)
    return times


def runs_within(seconds: float, per_call: float) -> int:
    """Return how many calls of `per_call` seconds fill `seconds`: at least 1, at most 10 000."""
    return max(1, min(10_000, round(seconds / max(per_call, 1e-9))))


def check_runs(name: str, runs: Any, least: int) -> None:
    """Raise ValueError, with the parameter's name, unless `runs` is a whole number of at least `least`."""
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
    """Call until the latency stops falling.

    Parameters
    ----------
    call, inputs
        What to call, and with what.
    min_calls
        At least so many calls; never fewer than 3.
    min_seconds
        At least so long.
    max_seconds
        Give up waiting after this time; `min_calls` are made in any case.
    clock
        Returns seconds.

    Returns
    -------
    dict
        What it took: ``calls``, ``seconds``, the time of the ``first_call``, the ``median`` of the last block, and
        ``settled``: False if the latency was still falling at `max_seconds`.

    Raises
    ------
    ValueError
        If `min_calls` is negative or no whole number.
    RuntimeError
        If the clock stands still or runs backwards.
    """
    check_runs("min_calls", min_calls, 0)
    began = clock()
    first = timed_calls(lambda _: call(*inputs), None, 1, clock)[0]
    calls, seconds, falling, medians = 1, first, True, [first]
    while calls < max(3, min_calls) or seconds < min_seconds or (falling and seconds < max_seconds):
        block = timed_calls(lambda _: call(*inputs), None, runs_within(min_seconds / 5, medians[-1]), clock)
        falling = median(block) < 0.98 * min(medians)
        medians.append(median(block))
        calls, seconds = calls + len(block), clock() - began
        if calls > 10_000 and seconds == 0:
            raise RuntimeError(f"the clock stands still: {calls} calls took 0 s; use one such as time.perf_counter")
    return {"calls": calls, "seconds": seconds, "first_call": first, "median": medians[-1], "settled": not falling}


def as_input(inputs: Any) -> Any:
    """Return an input as models take it: lists and tuples as an array, anything else as it is.

    Raises
    ------
    ValueError
        If it is an empty array; the message has the shape.
    """
    x = np.asarray(inputs) if isinstance(inputs, list | tuple) else inputs
    if 0 in np.shape(x):
        raise ValueError(f"the input is empty: its shape is {tuple(np.shape(x))}")
    return x


def describe_input(x: Any) -> dict[str, Any]:
    """Return shape, dtype and batch size of an input: the first axis counts the batch if there is a second one."""
    shape = [int(size) for size in np.shape(x)]
    dtype = str(getattr(x, "dtype", type(x).__name__))
    return {"input_shape": shape, "input_dtype": dtype, "batch_size": shape[0] if len(shape) > 1 else 1}


def prepare(model: Any, x: Any, warmup_runs: int, clock: Clock) -> tuple[Call, int, dict[str, Any]]:
    """Get a model ready for the timed line.

    Parameters
    ----------
    model
        See `as_callable`.
    x
        The input, as `as_input` returned it.
    warmup_runs
        At least so many untimed calls, see `warm_up`; 0 for none.
    clock
        Returns seconds.

    Returns
    -------
    call : callable
        The model as a function of one array, warm.
    loops : int
        Calls per measurement: 1, but below 10 µs as many as `calibrate_loops` finds for 10 µs. Without warm-up 1.
    metadata : dict
        ``model``, what `describe_input` says, ``warmup_runs`` (asked for), ``warmup`` (the report of `warm_up`, or
        None), ``loops``, ``timer_overhead`` in seconds, ``clock``, ``gc_enabled``.
    """
    call = as_callable(model)
    warmup = warm_up(call, x, min_calls=warmup_runs, clock=clock) if warmup_runs else None
    too_short = warmup is not None and warmup["median"] < 10e-6
    loops = calibrate_loops(lambda: call(x), 10e-6, clock=clock) if too_short else 1
    metadata = {
        "model": getattr(model, "__name__", type(model).__name__),
        **describe_input(x),
        "warmup_runs": warmup_runs,
        "warmup": warmup,
        "loops": loops,
        "timer_overhead": timer_overhead(clock, samples=101),
        "clock": getattr(clock, "__name__", type(clock).__name__),
        "gc_enabled": gc.isenabled(),
    }
    return call, loops, metadata


def measure_latency(
    model: Any, inputs: Any, warmup_runs: int = 5, measurement_runs: int = 10, clock: Clock = time.perf_counter
) -> BenchmarkResult:
    """Measure the steady latency of one model.

    Parameters
    ----------
    model
        See `as_callable`.
    inputs
        The array to call it with. An ONNX session whose dtype differs casts it within the measured time.
    warmup_runs
        At least so many untimed calls, more as long as the latency falls (see `warm_up`); 0 for none.
    measurement_runs
        Number of measurements.
    clock
        Returns seconds.

    Returns
    -------
    BenchmarkResult
        Seconds per call; the metadata says under which conditions (see `prepare`).

    Raises
    ------
    TypeError
        If `model` cannot be called.
    ValueError
        If a number of runs is negative or no whole number, `measurement_runs` is 0, or the input is empty.
    RuntimeError
        If the clock stands still or runs backwards.

    Notes
    -----
    Contiguous measurements know only the moment: see `measure_session_latency` for a latency that holds for longer,
    `measure_latencies` to compare models.
    """
    check_runs("warmup_runs", warmup_runs, 0)
    check_runs("measurement_runs", measurement_runs, 1)
    x = as_input(inputs)
    call, loops, metadata = prepare(model, x, warmup_runs, clock)
    values = timed_calls(call, x, measurement_runs, clock, loops, metadata["timer_overhead"])
    return BenchmarkResult("latency", values, {**metadata, "order": "one model alone"}, unit="s")


def latency_summary(result: BenchmarkResult) -> dict[str, Any]:
    """Summarise the distribution of latencies, tails included.

    Parameters
    ----------
    result
        Latencies in the order in which they were measured.

    Returns
    -------
    dict
        ``p50``, ``p90``, ``p95``, ``p99``, ``max`` and ``jitter`` (mean absolute difference of consecutive values)
        in the unit of the result; ``intervals``: the order-statistic interval of each percentile for which there are
        enough measurements; ``reasons``: for each other number, why it has none.

    References
    ----------
    Demichelis, Chimento, "IP Packet Delay Variation Metric", RFC 3393 (2002): jitter as the difference of consecutive
    delays.
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
            intervals[f"p{q}"] = percentile_interval(result.values, q, result.confidence)
        except ValueError as too_few:
            reasons[f"p{q}"] = str(too_few)
    steps = [abs(after - before) for before, after in pairwise(result.values)]
    summary |= {"max": result.max_val, "jitter": fmean(steps) if steps else 0.0}
    return {**summary, "intervals": intervals, "reasons": reasons}


def inputs_by_model(models: Mapping[str, Any], inputs: Any) -> dict[str, Any]:
    """Return the input of each model, all of one shape.

    Parameters
    ----------
    models
        Models by name.
    inputs
        One input for all, or a dictionary that has one for each model's name.

    Returns
    -------
    dict
        The input by model name, in the order of `models`.

    Raises
    ------
    ValueError
        If there are no models, a model has no input, an input has no model, one is empty, or the shapes differ: then
        the times would measure different work.
    """
    if not models:
        raise ValueError("models is empty; pass a dictionary such as {'fp32': session}")
    if not isinstance(inputs, dict):
        x = as_input(inputs)
        return dict.fromkeys(models, x)
    if set(inputs) != set(models):
        raise ValueError(f"inputs are for {sorted(inputs)}, models are {sorted(models)}; the names must agree")
    arrays = {name: as_input(inputs[name]) for name in models}
    shapes = {name: tuple(np.shape(x)) for name, x in arrays.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"input shapes differ: {listed}; compare models on inputs of one shape")
    return arrays


def round_orders(names: Sequence[str], rounds: int, seed: int | None = None) -> list[list[str]]:
    """Return the order of the models for each round, shuffled anew each time.

    Parameters
    ----------
    names
        Names of the models.
    rounds
        Number of rounds.
    seed
        Seed of the generator: the same seed, the same orders; None for fresh ones.

    Returns
    -------
    list of list of str
        For each round all names, each once.
    """
    rng = np.random.default_rng(seed)
    return [[names[i] for i in rng.permutation(len(names))] for _ in range(rounds)]


def hot_median(
    call: Call, x: Any, clock: Clock = time.perf_counter, loops: int = 1, seconds: float = 5e-3, overhead: float = 0.0
) -> float:
    """Return the median latency of a block of calls with its caches hot.

    Parameters
    ----------
    call, x
        Function of one argument, and its argument.
    clock
        Returns seconds.
    loops
        Calls per measurement, see `timed_calls`.
    seconds
        About how long the block lasts; at least one measurement is made.
    overhead
        Seconds taken off each measurement of the block, see `timed_calls`.

    Returns
    -------
    float
        Seconds per call. Two measurements before the block are not in it; they tell how many fit in.
    """
    lead = timed_calls(call, x, 2, clock, loops)
    return median(timed_calls(call, x, runs_within(seconds, min(lead) * loops), clock, loops, overhead))


def measure_latencies(
    models: Mapping[str, Any],
    inputs: Any,
    warmup_runs: int = 5,
    measurement_runs: int = 10,
    clock: Clock = time.perf_counter,
    mode: str = "as_served",
    seed: int | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> dict[str, BenchmarkResult]:
    """Measure models in rounds: each round times every model once, in an order shuffled anew.

    Parameters
    ----------
    models
        Models by name, see `as_callable`.
    inputs
        One input for all, or a dictionary with one for each name; all of one shape.
    warmup_runs
        At least so many untimed calls of each model before the first round, see `warm_up`; 0 for none.
    measurement_runs
        Number of rounds.
    clock
        Returns seconds.
    mode
        ``"as_served"``: one measurement in each round, after whatever ran before. ``"hot"``: the median of a block of
        about 5 ms after two untimed calls, for models of very different working sets.
    seed
        Seed of the orders; None for fresh ones.
    progress
        Wraps the list of rounds that is iterated over, to show how far it is, such as ``tqdm``; what it does happens
        between the timed lines.

    Returns
    -------
    dict of str to BenchmarkResult
        Seconds per call by model name, in the order of `models`. Value ``i`` of every result is from round ``i``:
        results with the same ``metadata["pairing"]`` pair. ``metadata["round_orders"]`` has the order of each round.

    Raises
    ------
    TypeError
        If a model cannot be called.
    ValueError
        If shapes differ or names do not match (see `inputs_by_model`), the mode is unknown, or as in `measure_latency`.
    RuntimeError
        If the clock stands still or runs backwards.
    """
    if mode not in ("as_served", "hot"):
        raise ValueError(f"mode is {mode!r}; it must be 'as_served' or 'hot'")
    check_runs("warmup_runs", warmup_runs, 0)
    check_runs("measurement_runs", measurement_runs, 1)
    arrays = inputs_by_model(models, inputs)
    ready = {name: prepare(model, arrays[name], warmup_runs, clock) for name, model in models.items()}
    orders = round_orders(list(models), measurement_runs, seed)
    values: dict[str, list[float]] = {name: [] for name in models}
    for order in progress(orders):
        for name in order:
            call, loops, notes = ready[name]
            if mode == "hot":
                values[name].append(hot_median(call, arrays[name], clock, loops, overhead=notes["timer_overhead"]))
            else:
                values[name] += timed_calls(call, arrays[name], 1, clock, loops, notes["timer_overhead"])
    shared = {
        "order": "shuffled rounds",
        "mode": mode,
        "seed": seed,
        "round_orders": orders,
        "pairing": uuid.uuid4().hex,
    }
    return {
        name: BenchmarkResult("latency", values[name], {**ready[name][2], "model": name, **shared}, unit="s")
        for name in models
    }


def session_starts(rounds: int, seconds: float, seed: int | None = None) -> list[float]:
    """Return when each round starts: at a random point of its own slot of the session.

    Parameters
    ----------
    rounds
        Number of rounds, and of equal slots.
    seconds
        Length of the session.
    seed
        Seed of the generator.

    Returns
    -------
    list of float
        Seconds since the start of the session, ascending.
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
) -> BenchmarkResult:
    """Measure a latency that holds for a whole session: medians of short rounds spread over it.

    Parameters
    ----------
    model, inputs, warmup_runs, clock
        See `measure_latency`.
    rounds
        Number of rounds, at least 10; 10 to 30 is usual.
    seconds
        Length of the session; it becomes longer where the rounds alone take longer.
    sleep
        Waits the given seconds between rounds.
    seed
        Seed of the starting points, see `session_starts`.

    Returns
    -------
    BenchmarkResult
        One median for each round (see `hot_median`), in seconds per call. The latency of the session is the ``median``
        of the result, and ``median_ci()`` its interval. ``metadata["round_starts"]`` has when each round really began.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As in `measure_latency`; also if there are fewer than 10 rounds, or `seconds` is not positive.
    """
    check_runs("rounds", rounds, 10)
    check_runs("warmup_runs", warmup_runs, 0)
    if not 0 < seconds < float("inf"):
        raise ValueError(f"seconds is {seconds}; a session has a positive length")
    x = as_input(inputs)
    call, loops, metadata = prepare(model, x, warmup_runs, clock)
    began, medians, started = clock(), [], []
    for start in session_starts(rounds, seconds, seed):
        wait = began + start - clock()
        if wait > 0:
            sleep(wait)
        started.append(clock() - began)
        medians.append(hot_median(call, x, clock, loops, overhead=metadata["timer_overhead"]))
    notes = {"order": "rounds spread over a session", "round_starts": started, "session_seconds": clock() - began}
    return BenchmarkResult("latency", medians, {**metadata, **notes}, unit="s")


_CHILD = """
import base64, builtins, json, pickle, sys, time
task = json.load(open(sys.argv[1]))
sys.path[:] = task["path"]
clock, plain_import, depth, importing = time.perf_counter, builtins.__import__, 0, 0.0

def timed_import(*args, **kwargs):
    global depth, importing
    depth, start = depth + 1, clock()
    try:
        return plain_import(*args, **kwargs)
    finally:
        depth -= 1
        if depth == 0:
            importing += clock() - start

def loads(text):
    return pickle.loads(base64.b64decode(text))

def stages():
    builtins.__import__ = timed_import
    start = clock()
    if task["source"]:
        space = {"__name__": "factory"}
        exec(task["source"], space)
        factory = space[task["name"]]
    else:
        factory = loads(task["factory"])
    model = factory(*loads(task["args"]))
    end = clock()
    builtins.__import__ = plain_import
    from statistics import median
    from tinybench.latency import as_callable, timed_calls
    call, x = as_callable(model), loads(task["inputs"])
    first = timed_calls(call, x, 1)[0]
    steady = median(timed_calls(call, x, task["steady_calls"]))
    return {"import": importing, "load": end - start - importing, "first_call": first, "steady": steady}

try:
    answer = stages()
except Exception as error:
    answer = {"error": f"{type(error).__name__}: {error}"}
json.dump(answer, open(sys.argv[2], "w"))
"""


def portable_factory(factory: Any) -> dict[str, str]:
    """Return a factory as text that a fresh process can make a function of.

    Parameters
    ----------
    factory
        ``"module:function"``, or a function: one from a notebook or script travels as its source text, so it must
        import what it needs and use no other global names; any other callable is pickled.

    Returns
    -------
    dict of str to str
        ``source`` and ``name``, or ``factory`` (pickled, base64); the others are empty.

    Raises
    ------
    TypeError
        If it cannot travel; the message says what to change.
    """
    if isinstance(factory, str):
        module, colon, name = factory.partition(":")
        if not (colon and all(part.isidentifier() for part in [*module.split("."), *name.split(".")])):
            raise TypeError(f"factory is {factory!r}; as text it must be 'module:function'")
        return {
            "source": f"def make(*args):\n    import {module}\n    return {module}.{name}(*args)\n",
            "name": "make",
            "factory": "",
        }
    if not callable(factory):
        raise TypeError(
            f"factory is a {type(factory).__name__}; pass a function that loads the model, or 'module:function'"
        )
    local = isinstance(factory, types.FunctionType) and (
        factory.__module__ == "__main__" or "<" in factory.__qualname__
    )
    if not local:
        try:
            return {"source": "", "name": "", "factory": base64.b64encode(pickle.dumps(factory)).decode()}
        except Exception as error:
            raise TypeError(
                f"factory cannot travel to a fresh process ({error}); pass a function or 'module:function'"
            ) from None
    return {"source": _self_contained_source(factory), "name": factory.__name__, "factory": ""}


def _self_contained_source(function: types.FunctionType) -> str:
    """Return the source of a function that needs nothing from around it; raise TypeError for any other."""
    used = {step.argval for step in dis.get_instructions(function) if step.opname == "LOAD_GLOBAL"}
    outside = sorted(used - set(dir(builtins)) - {function.__name__}) + list(function.__code__.co_freevars)
    if function.__name__ == "<lambda>":
        raise TypeError("factory is a lambda; write it as a def, which can travel to a fresh process")
    if outside:
        raise TypeError(
            f"{function.__name__} uses {', '.join(outside)} from outside, which a fresh process does not have; "
            "import within the function, and pass values by args=(…,)"
        )
    try:
        # annotations may name what a fresh process does not have; this line keeps them text
        return "from __future__ import annotations\n" + textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise TypeError(
            f"the source of {function.__name__} is not to be found; put it in a file and pass 'module:function'"
        ) from None


def fresh_task(factory: Any, x: Any, args: Sequence[Any], steady_calls: int) -> dict[str, Any]:
    """Return all that a fresh process needs to load a model and call it: `portable_factory`, and the rest pickled."""
    packed = {
        name: base64.b64encode(pickle.dumps(value)).decode()
        for name, value in {"args": tuple(args), "inputs": x}.items()
    }
    return {**portable_factory(factory), **packed, "steady_calls": steady_calls}


def fresh_process(script: str, task: Mapping[str, Any], *launcher: str) -> dict[str, Any]:
    """Run a script in a fresh Python process and return its answer.

    Parameters
    ----------
    script
        Reads its task as JSON from the file named by its first argument; writes its answer to the second.
    task
        See `fresh_task`; this process's import path is added.
    launcher
        Command that starts the process, given as its arguments; none to start it directly.

    Raises
    ------
    RuntimeError
        If the process died, or its answer is an ``error``; the message has the reason.
    """
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "task.json"), Path(folder, "answer.json")
        question.write_text(json.dumps({**task, "path": sys.path}), encoding="utf-8")
        command = [*launcher, sys.executable, "-c", script, str(question), str(answer)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not answer.is_file() or not answer.stat().st_size:
            raise RuntimeError(f"the fresh process ended with code {done.returncode}: {done.stderr.strip()[-500:]}")
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in found:
        raise RuntimeError(f"the model failed in a fresh process: {found['error']}")
    return found


def run_fresh(task: Mapping[str, Any]) -> dict[str, float]:
    """Run one cold start (see `fresh_task`) in a fresh process and return the seconds of each stage."""
    return fresh_process(_CHILD, task)


def measure_cold_start(
    factory: Any,
    inputs: Any,
    repeats: int = 6,
    args: Sequence[Any] = (),
    steady_calls: int = 50,
    launch: Callable[[Mapping[str, Any]], Mapping[str, float]] = run_fresh,
) -> dict[str, BenchmarkResult]:
    """Measure what a new process pays until a model answers, stage by stage.

    Parameters
    ----------
    factory
        Loads and returns the model: a function, or ``"module:function"``; see `portable_factory`.
    inputs
        The array to call the model with.
    repeats
        Number of fresh processes; 6 are the least for an interval of the median.
    args
        Arguments for the factory, such as the path of the model; they must be picklable.
    steady_calls
        Calls after the first; their median is the steady state.
    launch
        Runs one cold start and returns its stages.

    Returns
    -------
    dict of str to BenchmarkResult
        ``import``, ``load``, ``first_call`` and ``steady``, in seconds, one value for each process.

    Raises
    ------
    TypeError
        If the factory cannot travel to a fresh process.
    ValueError
        If `repeats` or `steady_calls` is no whole number of at least 1, or the input is empty.
    RuntimeError
        If the factory or the model fails there.

    Notes
    -----
    The process is cold, the disk normally is not: files stay in the operating system's cache. The time Python itself
    takes to start is not in it.
    """
    check_runs("repeats", repeats, 1)
    check_runs("steady_calls", steady_calls, 1)
    x = as_input(inputs)
    task = fresh_task(factory, x, args, steady_calls)
    starts = [launch(task) for _ in range(repeats)]
    metadata = {**describe_input(x), "processes": repeats, "steady_calls": steady_calls, "disk": "cached"}
    return {
        stage: BenchmarkResult("cold start", [start[stage] for start in starts], {**metadata, "stage": stage}, unit="s")
        for stage in ("import", "load", "first_call", "steady")
    }
