"""Other honest solutions of module 11."""

VARIANTS = {
    "inspect": [
        ("operators_counter", """    counts: dict[str, int] = {}
    for node in load_graph(source).graph.node:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return counts
""", """    from collections import Counter

    return Counter(node.op_type for node in load_graph(source).graph.node)
"""),
        ("operators_setdefault", "counts[node.op_type] = counts.get(node.op_type, 0) + 1",
         "counts.setdefault(node.op_type, 0)\n        counts[node.op_type] += 1"),
    ],
    "answer_parameters": [
        ("parameters_by_layer", "return 64 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10",
         "sizes = np.array([64, 256, 128, 10])\n    return ((sizes[:-1] + 1) * sizes[1:]).sum()"),
    ],
    "convert": [
        ("convert_sklearn", """    options = {"zipmap": False} if is_classifier(model) else None  # others do not know the option
    return skl2onnx.to_onnx(model, row.astype(np.float32), options=options)
""", """    from skl2onnx.common.data_types import FloatTensorType
    kind = [("X", FloatTensorType([None, row.shape[1]]))]
    if is_classifier(model):
        return skl2onnx.convert_sklearn(model, initial_types=kind, options={id(model): {"zipmap": False}})
    return skl2onnx.convert_sklearn(model, initial_types=kind)
"""),
        ("convert_opset", """    options = {"zipmap": False} if is_classifier(model) else None  # others do not know the option
    return skl2onnx.to_onnx(model, row.astype(np.float32), options=options)
""", """    more = dict(options={"zipmap": False}) if hasattr(model, "classes_") else {}
    return skl2onnx.to_onnx(model, np.float32(row), target_opset=17, **more)
"""),
    ],
    "session_options": [
        ("options_by_name", """    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    return options
""", """    values = dict(intra_op_num_threads=threads, inter_op_num_threads=1, graph_optimization_level=level)
    for key, value in values.items():
        setattr(options, key, value)
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    return options
"""),
    ],
    "check_parity": [
        ("parity_by_hand", """    gaps = row_gaps(original, converted)
    worst = int(gaps.argmax())
    if gaps[worst] > tolerance:
        what = f"row {worst} differs most, by {gaps[worst]:.3g} (tolerance {tolerance:g})"
        raise ValueError(f"{what}; {likely_cause(found)}")
    return found
""", """    result = parity(original, converted)
    labels = result.max_difference is None
    worst, where = 0.0, 0
    for row, (one, other) in enumerate(zip(original, converted)):
        gap = float(np.any(one != other)) if labels else float(np.max(np.abs(np.subtract(one, other, dtype=float))))
        if gap > worst:
            worst, where = gap, row
    if (labels and worst) or (not labels and worst > tolerance):
        raise ValueError(f"not the same model: they differ by {worst} in row {where}; {result.label_agreement:.1%} of labels agree")
    return result
"""),
        ("parity_sorted", "int(gaps.argmax())", "np.argsort(gaps)[-1]"),
    ],
    "numpy_baseline": [
        ("baseline_scipy", """        a: np.ndarray = np.asarray(X, np.float32)
        for W, b in layers[:-1]:
            a = np.maximum(a @ W + b, 0)
        a = a @ layers[-1][0] + layers[-1][1]
        if kind != "softmax":
            return other_ending(a, kind)
        a = np.exp(a - a.max(axis=1, keepdims=True))  # the largest becomes 0, so that nothing overflows
        a /= a.sum(axis=1, keepdims=True)
        return a
""", """        from scipy import special
        *hidden, (V, c) = layers
        a = np.array(X, dtype="float32")
        for W, b in hidden:
            a = (a @ W + b).clip(min=0)
        a = a.dot(V) + c
        match kind:
            case "softmax":
                return special.softmax(a, axis=1)
            case "logistic":
                return np.column_stack((special.expit(-a), special.expit(a)))
        return a.ravel() if a.shape[1] == 1 else a
"""),
        ("baseline_enumerate", """        for W, b in layers[:-1]:
            a = np.maximum(a @ W + b, 0)
        a = a @ layers[-1][0] + layers[-1][1]
""", """        for i, (W, b) in enumerate(layers, start=1):
            a = np.matmul(a, W)
            a += b
            if i < len(layers):
                a[a < 0] = 0
"""),
    ],
    "operator_shares": [
        ("shares_defaultdict", """    times: dict[str, float] = {}
    for (operator, _), values in durations.items():
        times[operator] = times.get(operator, 0.0) + median(values)
    total = sum(times.values())
    return {operator: time / total for operator, time in sorted(times.items(), key=lambda item: -item[1])}
""", """    from collections import OrderedDict, defaultdict
    by_operator = defaultdict(float)
    for key in durations:
        by_operator[key[0]] += np.median(durations[key])
    total = sum(by_operator.values())
    return OrderedDict((op, by_operator[op] / total) for op in sorted(by_operator, key=by_operator.get, reverse=True))
"""),
        ("shares_other_sum", "total = sum(times.values())", "import math\n\n    total = math.fsum(reversed(times.values()))"),
        ("shares_from_events", """    times: dict[str, float] = {}
    for (operator, _), values in durations.items():
        times[operator] = times.get(operator, 0.0) + median(values)
""", """    runs = sorted(e["ts"] for e in events if e["name"] == "model_run")[skip_runs:]
    by_node, times = {}, {}
    for e in events:
        if e["name"].endswith("_kernel_time") and e["ts"] >= runs[0]:
            by_node.setdefault((e["name"], e["args"]["op_name"]), []).append(e["dur"])
    for (_, operator), spent in by_node.items():
        times[operator] = times.get(operator, 0) + median(spent)
"""),
    ],
    "time_breakdown": [
        ("breakdown_by_stage", """    for _ in range(runs):
        value, marks = X, [clock()]
        for stage in stages.values():
            value = stage(value)
            marks.append(clock())
        for name, start, end in zip(stages, marks, marks[1:], strict=False):
            times[name].append(end - start)
        times["total"].append(marks[-1] - marks[0])
""", """    run = 0
    while run < runs:
        rows, last, spent = X, clock(), 0.0
        for name in stages:
            rows = stages[name](rows)
            now = clock()
            times[name].append(now - last)
            spent, last = spent + now - last, now
        times["total"].append(spent)
        run += 1
"""),
        ("breakdown_differences", """        for name, start, end in zip(stages, marks, marks[1:], strict=False):
            times[name].append(end - start)
        times["total"].append(marks[-1] - marks[0])
""", """        for name, step in zip([*stages], np.diff(marks)):
            times[name] += [step]
        times["total"] += [np.ptp(marks)]
"""),
    ],
    "answer_amdahl": [
        ("amdahl_lambdas", "", """p = 0.6
amdahl = lambda s: 1 / ((1 - p) + p / s)
speed_up_of_the_whole = lambda: amdahl(5)
largest_speed_up = lambda: amdahl(math.inf)
"""),
        ("amdahl_rounded", "return 1 / (0.4 + 0.6 / 5)", "return 1.92"),
    ],
    "answer_understanding": [
        ("understanding_numpy", "return False", "return np.max([0.31]) <= 1e-4"),
        ("understanding_zero", "return False", "return 0", "question 1: expected False, got 0"),
    ],
}  # fmt: skip
