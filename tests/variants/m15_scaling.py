"""The optional part of module 15, written otherwise."""

VARIANTS = {
    "speedups": [("a loop in the order of n", '''    return {n: seconds[1] / took for n, took in seconds.items()}''', '''    found = {}
    for n in sorted(seconds):
        found[n] = np.float64(seconds[1]) / seconds[n]
    return found'''),
                 ("an error of dict, told anew", '''    if 1 not in seconds:
        raise ValueError(f"seconds has {', '.join(map(str, seconds))} workers; a speed-up needs the time of 1, too")
    return {n: seconds[1] / took for n, took in seconds.items()}''', '''    try:
        one = seconds[1]
    except KeyError:
        raise ValueError("no time of one worker") from None
    return dict(zip(seconds, one / np.array(list(seconds.values()))))''')],
    "answer_serial": [("floats", "return round(1 + 1 / 0.05)", "return 21.0")],
    "fit_usl": [("bounds of lsq_linear", '''    contention, crosstalk = nnls(np.stack([n - 1, n * (n - 1)], axis=1), lost)[0]
    return float(contention), float(crosstalk)''', '''    from scipy.optimize import lsq_linear

    return tuple(lsq_linear(np.column_stack([n - 1, n**2 - n]), lost, (0, np.inf), tol=1e-14, method="bvls").x)'''),
                ("without one worker's row", '''    n = np.array([float(workers) for workers in speedups])
    lost = n / np.array(list(speedups.values())) - 1''', '''    workers = sorted(k for k in speedups if k > 1)
    n = np.asarray(workers, dtype=float)
    lost = np.array([k / speedups[k] for k in workers]) - 1'''),
                ("infinity last", '''    if contention >= 1:
        return 1.0
    return max(1.0, math.sqrt((1 - contention) / crosstalk)) if crosstalk else math.inf''', '''    left = max(0.0, 1 - contention)
    if not crosstalk:
        return math.inf if left else 1
    return np.sqrt(max(left, crosstalk) / crosstalk)''')],
    "types_that_ran": [("a Counter, two loops", '''    times: dict[str, float] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time") and event["args"]["op_name"] in PRODUCTS:
            kind = PRODUCTS[event["args"]["op_name"]] or next(iter(event["args"]["input_type_shape"][0]))
            times[kind] = times.get(kind, 0.0) + event["dur"]
    total = sum(times.values()) or 1.0  # a trace rounds short times to 0 µs
    return {kind: spent / total for kind, spent in sorted(times.items(), key=lambda item: -item[1])}''', '''    from collections import Counter

    times = Counter()
    for event in events:
        if event["cat"] != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        operator = event["args"]["op_name"]
        if operator in PRODUCTS:
            (first, _), *_ = event["args"]["input_type_shape"][0].items()
            times[PRODUCTS[operator] or first] += event["dur"]
    whole = sum(times.values())
    return {kind: np.float64(spent) / whole for kind, spent in times.most_common()}''')],
    "answer_understanding": [("rounded", "return 10 / (1 + 0.05 * 9 + 0.0095 * 10 * 9)", "return 4.3")],
}  # fmt: skip
