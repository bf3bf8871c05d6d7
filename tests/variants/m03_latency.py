"""Honest solutions of module 03 that are written otherwise."""

VARIANTS = {
    "session_call": [
        ("session_all_outputs", '''    outputs = [node.name for node in session.get_outputs()]

    def call(x: Any) -> Any:
        return session.run(outputs, {name: np.asarray(x, dtype)})[-1]

    return call
''', '''    return lambda x: session.run(None, {name: np.asarray(x, dtype=dtype)})[-1]
'''),
        ("session_last_output", '''    outputs = [node.name for node in session.get_outputs()]

    def call(x: Any) -> Any:
        return session.run(outputs, {name: np.asarray(x, dtype)})[-1]
''', '''    *_, last = session.get_outputs()

    def call(x):
        if not (isinstance(x, np.ndarray) and x.dtype == dtype):
            x = np.array(x).astype(dtype)
        (answer,) = session.run([last.name], {name: x})
        return answer
'''),
    ],
    "as_callable": [
        ("callable_by_chain", '''    if callable(getattr(model, "run", None)) and callable(getattr(model, "get_inputs", None)):
        return session_call(model)
    for name in ("predict_proba", "predict", "forward"):
        method = getattr(model, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
    if callable(model):
        return model  # type: ignore[no-any-return]
''', '''    if hasattr(model, "run") and hasattr(model, "get_inputs"):
        return session_call(model)
    if callable(getattr(model, "predict_proba", None)):
        return model.predict_proba
    elif callable(getattr(model, "predict", None)):
        return model.predict
    elif callable(getattr(model, "forward", None)):
        return model.forward
    elif callable(model):
        return model
'''),
    ],
    "timed_calls": [
        ("timed_by_one_loop", "", '''
def timed_calls(call, x, runs, clock=time.perf_counter, loops=1, overhead=0.0):
    times = np.zeros(runs)
    again = range(loops)
    for i in range(runs):
        start = clock()
        for _ in again:
            call(x)
        times[i] = clock() - start
        if times[i] < 0:
            raise RuntimeError("the clock ran backwards")
    return np.maximum(0, times - overhead) / loops
'''),
        ("timed_by_generator", "", '''
def _measured(call, x, runs, clock, loops):
    while runs:
        runs -= 1
        begin = clock()
        for _ in range(loops):
            call(x)
        yield clock() - begin


def timed_calls(call, x, runs, clock=time.perf_counter, loops=1, overhead=0.0):
    found = tuple(_measured(call, x, runs, clock, loops))
    if min(found) < 0:
        raise RuntimeError(f"the clock runs backwards: {min(found)} s")
    return [max(took - overhead, 0) / loops for took in found]
'''),
        ("timed_as_tuple", "    return times", "    return tuple(map(np.float64, times))\n"),
    ],
    "warm_up": [
        ("warm_up_by_break", '''    calls, seconds, falling, medians = 1, first, True, [first]
    while calls < max(3, min_calls) or (seconds < max_seconds and (seconds < min_seconds or falling)):
        block = timed_calls(lambda _: call(*inputs), None, runs_within(min(min_seconds, max_seconds) / 5, medians[-1]), clock)
''', '''    calls, seconds, falling, medians = 1, first, np.True_, [first]
    while True:
        few = calls < 3 or calls < min_calls
        if not few and (seconds >= max_seconds or (seconds >= min_seconds and not falling)):
            break
        size = runs_within(min(min_seconds, max_seconds) / 5, medians[-1])
        block = timed_calls(lambda _: call(*inputs), None, clock=clock, runs=size)
'''),
        ("warm_up_reports_numpy", '''"median": medians[-1], "settled": not falling}''',
         '''"median": np.float64(medians[-1]), "settled": np.bool_(not falling)}'''),
    ],
    "answer_warm_up": [("answer_warm_up_computed", "return 50.0", "return np.mean([240, 22, 11, 9.6, 8.7, 8.2])"),
                       ("answer_warm_up_exact", "return 17.0", "return 100 * (sum([11, 9.6, 8.7, 8.2]) / 4 / 8.0 - 1)")],
    "latency_summary": [
        ("summary_by_numpy", '''    steps = [abs(after - before) for before, after in pairwise(result.values)]
    ### END SOLUTION
    summary |= {"max": result.max_val, "jitter": fmean(steps) if steps else None}
''', '''    steps = np.abs(np.diff(result.values))
    ### END SOLUTION
    summary["max"], summary["jitter"] = np.max(result.values), steps.mean() if len(steps) else 0
'''),
        ("jitter_of_one_by_numpy", "fmean(steps) if steps else None", "np.mean(np.abs(np.diff(result.values)))"),
        ("jitter_of_one_is_zero", "fmean(steps) if steps else None", "sum(steps) / max(1, len(steps))"),
        ("summary_other_words", "reasons[f\"p{q}\"] = str(too_few)",
         'from tinybench.result import runs_for_percentile\n\n            reasons[f"p{q}"] = f"takes {runs_for_percentile(q, result.confidence)} runs"'),
        ("summary_ordered", '    return {**summary, "intervals": intervals, "reasons": reasons}', '''    from collections import OrderedDict

    return OrderedDict(**summary, intervals={key: list(ends) for key, ends in intervals.items()}, reasons=reasons)
'''),
    ],
    "answer_tails": [("answer_tails_computed", "return 0.63", "return 1 - 0.99**100")],
    "round_orders": [
        ("orders_by_random", "", '''
import random


def round_orders(names, rounds, seed=None):
    generator = random.Random(seed)
    return [tuple(generator.sample(list(names), k=len(names))) for _ in range(rounds)]
'''),
        ("orders_as_array", "    return [[names[i] for i in order] for order in shuffled.tolist()]\n", "    return np.array(names)[shuffled]\n"),
        ("orders_by_permutation", "", '''
def round_orders(names, rounds, seed=None):
    """One permutation a round."""
    rng = np.random.default_rng(seed)
    orders = []
    for _ in range(rounds):
        orders += [rng.permutation(names)]
    return orders
'''),
    ],
    "answer_drift": [("answer_drift_computed", "return 1.0", "return 10 * 0.1"), ("answer_drift_numpy", "return 1.0", "return np.float32(1.0)")],
    "hot_median": [
        ("hot_by_numpy", "    return median(subject.times(", "    return np.median(subject.times("),
        ("hot_by_single_measurements", '''    lead = subject.times(2)
    return median(subject.times(runs_within(seconds, min(lead) * subject.loops)))
''', '''    first, second = subject.measure(), subject.measure()
    size = runs_within(per_call=subject.loops * min(first, second), seconds=seconds)
    return np.percentile([subject.measure() for _ in range(size)], 50)
'''),
    ],
    "measure_latencies": [
        ("rounds_by_helper", '''                record.add(name, hot_median(subject) if mode == "hot" else subject.measure())
''', '''                if mode == "as_served":
                    took = subject.times(1)[0]
                else:
                    took = hot_median(subject)
                record.add(name, took)
'''),
        ("pairing_by_secrets", '''"pairing": uuid.uuid4().hex}''', '''"pairing": __import__("secrets").token_hex()}'''),
    ],
    "session_starts": [
        ("starts_by_numpy", '''    return [float(i + rng.random()) * seconds / rounds for i in range(rounds)]
''', '''    return (np.arange(rounds) + rng.random(rounds)) * (seconds / rounds)
'''),
        ("starts_by_uniform", "", '''
import random


def session_starts(rounds, seconds, seed=None):
    generator, slot = random.Random(seed), seconds / rounds
    return [generator.uniform(i * slot, (i + 1) * slot) for i in range(rounds)]
'''),
    ],
}  # fmt: skip
