"""Hidden checks of module 11: against hand-made graphs and traces, scikit-learn's answers, and a fake clock.

Files live where the student's code runs, so checks write and read them through the module's own `Path` and `tempfile`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.checks import CheckFailed, FakeClock, all_close, close, draw, expect, judges, number, raises


def _model(nodes: list[Any], tensors: dict[str, np.ndarray], inputs: int, outputs: int) -> bytes:
    """Return a graph from x of `inputs` columns to y of `outputs` as bytes."""
    from onnx import TensorProto, helper, numpy_helper

    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None, k]) for n, k in (("x", inputs), ("y", outputs))]
    values = [numpy_helper.from_array(value, name) for name, value in tensors.items()]
    graph = helper.make_graph(nodes, "check", ends[:1], ends[1:], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 1)])
    model.ir_version = 10
    return model.SerializeToString()  # type: ignore[no-any-return]


def _linear(W: np.ndarray, **more: np.ndarray) -> bytes:
    from onnx import helper

    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Identity", ["b"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    return _model(nodes, {"W": W, **more}, *W.shape)


def _room(student: Any, name: str, content: bytes) -> str:
    """Put a file where the student's code can read it, and return its path."""
    path = f"{student.tempfile.mkdtemp()}/{name}"
    student.Path(path).write_bytes(content)
    return path


@judges("operators", "weights")
def graphs_are_read(student: Any) -> None:
    """Operators in order, initializers in shape and dtype, floats of attributes, from bytes and from a file."""
    from onnx import helper

    rng = draw()
    W, shape = rng.normal(size=(5, 2)).astype(np.float32), np.array([7, 9], np.int64)
    content = _linear(W, extra=shape)
    for source in (content, _room(student, "check.onnx", content)):
        counts = dict(student.operators(source))
        expect(
            list(counts.items()) == [("MatMul", 1), ("Identity", 2), ("Relu", 1)],
            f"operators: MatMul 1, Identity 2, Relu 1 expected in the order of the graph, got {counts}",
        )
    found = student.weights(content)
    expect(set(found) == {"W", "extra"}, f"weights: the initializers are W and extra, got {sorted(map(str, found))}")
    expect(np.shape(found["W"]) == (5, 2), f"weights: W has shape (5, 2), not {np.shape(found['W'])}")
    all_close(np.ravel(found["W"]), W.ravel().tolist(), "weights: the values of W", rel=0)
    expect(str(found["extra"].dtype) == "int64", "weights: an int64 tensor should stay int64")
    coefficients = [float(x) for x in rng.normal(size=3).astype(np.float32)]
    node = helper.make_node(
        "LinearRegressor", ["x"], ["y"], name="regressor", domain="ai.onnx.ml", coefficients=coefficients, targets=1
    )
    found = student.weights(_model([node], {}, 3, 1))
    cause = "linear models and trees keep numbers in the attributes of their nodes"
    expect("regressor/coefficients" in found, f"weights: 'regressor/coefficients' is missing; {cause}")
    all_close(np.ravel(found["regressor/coefficients"]), coefficients, "weights: the coefficients", rel=1e-6)


def answer_parameters(student: Any) -> None:
    """Counted layer by layer."""
    sizes = (64, 256, 128, 10)
    truth = sum(a * b + b for a, b in pairwise(sizes))
    close(student.parameters_of_the_network(), truth, "(a)", cause="inputs × units weights and units biases a layer")
    close(student.bytes_of_the_network(), 4 * truth, "(b)", cause="four bytes a parameter")


# what the export of a linear model may hold
OPERATORS = {
    "Add", "ArgMax", "ArrayFeatureExtractor", "Cast", "Concat", "Div", "Exp", "Flatten", "Gemm", "Identity",
    "LinearClassifier", "LinearRegressor", "MatMul", "Mul", "Neg", "Normalizer", "ReduceSum", "Relu", "Reshape",
    "Scaler", "Sigmoid", "Softmax", "Squeeze", "Sub", "Transpose", "Unsqueeze",
}  # fmt: skip
LARGEST_FILE, MOST_NODES, MOST_WEIGHTS = 2**18, 20, 10**4
MOST_NUMBERS = 10**6  # none of these makes more than the product of the sizes of what it is given


def _safe_model(content: Any, what: str) -> Any:
    """Return a student's model, parsed; refuse what a small export does not hold, such as files, bodies or bulk."""
    from autograder.leaderboard.entry import validate
    from autograder.leaderboard.settings import EntryLimits

    expect(type(content) is bytes, f"{what}: an onnx.ModelProto expected, whose SerializeToString() gives bytes")
    limits = EntryLimits(size_mb=LARGEST_FILE / 2**20, nodes=MOST_NODES, weights=MOST_WEIGHTS)
    try:
        model = validate.parse(content, limits)
        graph = model.graph
        expect(
            not any(output.type.HasField("sequence_type") for output in graph.output),
            f"{what}: an output is a sequence of dictionaries, not an array: ZipMap off",
        )
        others = sorted({node.op_type for node in graph.node} - OPERATORS)
        expect(not others, f"{what}: the graph holds {', '.join(others)[:100]}, which no linear model needs")
        validate.check_graph(graph, limits)
    except validate.EntryRefused as refused:
        raise CheckFailed(f"{what}: {refused}") from None
    expect(len(graph.input) > 0 and len(graph.output) > 0, f"{what}: the graph should have an input and an output")
    return model


def _answers(model: Any, X: np.ndarray, what: str) -> np.ndarray:
    """Return the last output of a student's model, node by node.

    ONNX Runtime is not for strangers' graphs: it believes the attributes, and takes the memory they make necessary.
    """
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    graph = model.graph
    values: dict[str, Any] = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    values[graph.input[0].name] = X
    opsets = [helper.make_opsetid(*pair) for pair in {e.domain: e.version for e in model.opset_import}.items()]
    for node in graph.node:
        given = {name: values.get(name) for name in node.input if name}
        expect(all(value is not None for value in given.values()), f"{what}: a node {node.op_type} lacks its input")
        sizes = [np.size(values[name]) for name in node.input if name] + [len(a.floats) for a in node.attribute]
        small = math.prod(max(1, size) for size in sizes) <= MOST_NUMBERS
        expect(small, f"{what}: a node {node.op_type} is larger than a linear model needs")
        made = [name for name in node.output if name]
        inputs, outputs = ([helper.make_tensor_value_info(n, 0, None) for n in names] for names in (given, made))
        alone = helper.make_model(
            helper.make_graph([node], "node", inputs, outputs), opset_imports=opsets, ir_version=10
        )
        values |= zip(made, ReferenceEvaluator(alone).run(None, given), strict=True)
    last = graph.output[-1].name
    expect(last in values, f"{what}: no node makes the last output")
    return np.asarray(values[last])


@judges("refuse_bad_weights", "convert")
def conversion_is_sound(student: Any) -> None:
    """Bad numbers are named; graphs take float32, give arrays, and answer as scikit-learn does."""
    from onnx import TensorProto
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.neighbors import KernelDensity

    rng = draw()
    good = rng.normal(size=(4, 3)).astype(np.float32)
    student.refuse_bad_weights(_linear(good, extra=np.array([1], np.int64)))
    for bad in (math.nan, math.inf, -math.inf):
        broken = good.copy()
        broken[2, 1] = bad
        content = _linear(good, broken=broken)
        raises(
            ValueError,
            lambda c=content: student.refuse_bad_weights(c),
            f"a weight that is {bad}",
            mentions=["broken", "1"],
        )
    X = rng.normal(size=(80, 4))
    classifier = LogisticRegression().fit(X, (X @ rng.normal(size=(4, 3))).argmax(axis=1))
    regressor = Ridge().fit(X, X @ rng.normal(size=4))
    for model, truth in ((classifier, classifier.predict_proba(X)), (regressor, regressor.predict(X))):
        name = type(model).__name__
        made = _safe_model(student.convert(model, X).SerializeToString(), f"convert({name})")
        kind = made.graph.input[0].type.tensor_type.elem_type
        expect(
            kind == TensorProto.FLOAT,
            f"convert({name}): the graph takes type {kind}, not {TensorProto.FLOAT}; hand skl2onnx a float32 row",
        )
        last = made.graph.output[-1].type
        expect(
            last.tensor_type.elem_type == TensorProto.FLOAT,
            f"convert({name}): the last output is a {last.WhichOneof('value')}, not an array of floats: ZipMap off",
        )
        got = _answers(made, X.astype(np.float32), f"convert({name})")
        all_close(np.ravel(got), np.ravel(truth).tolist(), f"convert({name}): the answers", rel=1e-3, abs=1e-4)
    density = KernelDensity().fit(X)
    raises(TypeError, lambda: student.convert(density, X), "a model without converter", mentions=["KernelDensity"])


@judges("session_options", "OnnxModel.forward")
def sessions_keep_conditions(student: Any) -> None:
    """Every option is set, and forward returns the last output in the graph's dtype."""
    for threads in (1, 3):
        for optimization, level in (
            ("off", "ORT_DISABLE_ALL"),
            ("basic", "ORT_ENABLE_BASIC"),
            ("extended", "ORT_ENABLE_EXTENDED"),
            ("all", "ORT_ENABLE_ALL"),
        ):
            options = student.session_options(threads, optimization)
            what = f"session_options({threads}, {optimization!r})"
            close(options.intra_op_num_threads, threads, f"{what}.intra_op_num_threads")
            close(options.inter_op_num_threads, 1, f"{what}.inter_op_num_threads")
            got = str(options.graph_optimization_level)
            expect(got.endswith(level), f"{what}: {level} expected, got {got}")
            expect(not options.enable_profiling, f"{what} should not profile")
    options = student.session_options(trace="some/where")
    expect(bool(options.enable_profiling), "session_options(trace=…) should enable profiling")
    prefix = str(options.profile_file_prefix)
    expect(prefix.endswith("some/where"), f"the trace should begin with 'some/where', not {prefix!r}")
    raises(ValueError, lambda: student.session_options(0), "0 threads", mentions=["threads"])
    W = draw().normal(size=(4, 2)).astype(np.float32)
    model = student.OnnxModel(_room(student, "linear.onnx", _linear(W)))
    X = draw().normal(size=(6, 4))
    got = model.forward(X)
    expect(np.shape(got) == (6, 2), f"forward: an array of shape (6, 2) expected, got {np.shape(got)}")
    all_close(np.ravel(got), np.maximum(X @ W, 0).ravel().tolist(), "forward", rel=1e-4, abs=1e-5)


@judges("check_parity")
def parity_is_checked(student: Any) -> None:
    """Differences within the tolerance pass, larger ones are located, labels must agree."""
    rng = draw()
    a = rng.dirichlet(np.ones(4), size=30)
    X = rng.normal(size=(30, 2))
    for row in (0, 17, 29):
        b = a.copy()
        b[row, 1] += 3e-3
        b[(row + 5) % 30, 2] += 1e-3
        raises(
            ValueError,
            lambda b=b: student.check_parity(lambda _: a, lambda _: b, X),
            "a difference of 0.003",
            mentions=[f"row {row}"],
        )
        found = student.check_parity(lambda _: a, lambda _, b=b: b, X, tolerance=0.01)
        close(found.max_difference, 3e-3, "the largest difference", rel=1e-6)
        close(found.rows, 30, "the rows compared")
    raises(
        ValueError,
        lambda: student.check_parity(lambda _: a, lambda _: a - 2e-4, X),
        "answers that are all too low by 0.0002",
        cause="take the absolute difference",
    )
    labels = rng.integers(0, 3, 30)
    other = labels.copy()
    other[4] = 3
    student.check_parity(lambda _: labels, lambda _: labels.copy(), X)
    raises(
        ValueError, lambda: student.check_parity(lambda _: labels, lambda _: other, X), "one label of 30 that differs"
    )
    values = rng.normal(size=30)
    flat = student.check_parity(lambda _: values, lambda _: values.reshape(30, 1) + 1e-6, X)
    close(flat.max_difference, 1e-6, "(n,) against (n, 1)", rel=1e-3, cause="reshape before comparing")
    seen: list[Any] = []

    def spy(rows: Any) -> Any:
        seen.append(np.shape(rows))
        return a

    student.check_parity(spy, spy, X)
    expect(seen == [(30, 2), (30, 2)], f"both models should get all 30 rows, they got {seen}")


@judges("numpy_baseline")
def baseline_is_the_network(student: Any) -> None:
    """Probabilities and values as from float64 arithmetic by hand, for every kind of output, without overflow."""
    rng = draw()
    for kind, outputs in (("softmax", 4), ("logistic", 1), ("identity", 1), ("identity", 3)):
        sizes = [(6, 9), (9, 5), (5, outputs)]
        W, b = [rng.normal(size=s) for s in sizes], [rng.normal(size=k) for _, k in sizes]
        network = SimpleNamespace(coefs_=W, intercepts_=b, activation="relu", out_activation_=kind)
        X = rng.normal(size=(11, 6))
        z = np.maximum(np.maximum(X @ W[0] + b[0], 0) @ W[1] + b[1], 0) @ W[2] + b[2]
        truth = z[:, 0] if outputs == 1 else z
        if kind == "softmax":
            truth = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        if kind == "logistic":
            truth = np.hstack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))])
        forward = student.numpy_baseline(network)
        got = forward(X)
        what = f"numpy_baseline with {kind} output"
        expect(np.shape(got) == truth.shape, f"{what}: shape {truth.shape} expected, got {np.shape(got)}")
        expect(str(got.dtype) == "float32", f"{what}: float32 expected, got {got.dtype}")
        all_close(
            np.ravel(got),
            truth.ravel().tolist(),
            what,
            cause="ReLU after each hidden layer, biases added",
            rel=1e-3,
            abs=1e-5,
        )
        if kind != "identity":
            with np.errstate(all="ignore"):
                far = np.asarray(forward(X * 1e5))
            expect(bool(np.isfinite(far).all()), f"{what}: large inputs give NaN; subtract the row's maximum first")
    raises(TypeError, lambda: student.numpy_baseline(SimpleNamespace()), "a model without coefs_")


def answer_baseline(student: Any) -> None:
    """Ratios divide."""
    cause = "divide the two ratios: (sk/onnx) / (sk/numpy)"
    close(student.numpy_against_onnx(), 2.6 / 1.9, "NumPy over ONNX", cause=cause, rel=0.01)


def _trace(rng: np.random.Generator, runs: int) -> tuple[list[dict[str, Any]], list[list[tuple[str, int]]]]:
    """Return a made-up trace in no particular order, and operator and time of each node in each run."""
    events: list[dict[str, Any]] = [
        {"cat": "Session", "name": "session_initialization", "ts": 1, "dur": 99, "args": {}}
    ]
    times = []
    for run in range(runs):
        start, now = 1000 * (run + 1), 1000 * (run + 1) + 3
        spent: list[tuple[str, int]] = []
        for index, op in enumerate(["Gemm", "Relu", "Gemm", "Relu", "Gemm", "Softmax"]):
            dur = int(rng.integers(1, 120))
            args = {"op_name": op, "provider": "CPUExecutionProvider"}
            events.append({"cat": "Node", "name": f"node{index}_kernel_time", "ts": now, "dur": dur, "args": args})
            events.append({"cat": "Node", "name": f"node{index}_fence_after", "ts": now + dur, "dur": 50, "args": args})
            spent.append((op, dur))
            now += dur + 1
        events.append({"cat": "Session", "name": "model_run", "ts": start, "dur": now - start, "args": {}})
        times.append(spent)
    return [events[i] for i in rng.permutation(len(events))], times


@judges("operator_shares")
def shares_come_from_the_trace(student: Any) -> None:
    """Kernel times alone count, from the asked run on, sorted and summing to 1."""
    events, times = _trace(draw(), 6)
    for skip in (0, 1, 4):
        total: dict[str, float] = {}
        for node, (op, _) in enumerate(times[0]):
            total[op] = total.get(op, 0.0) + float(np.median([run[node][1] for run in times[skip:]]))
        order = sorted(total, key=lambda op: -total[op])
        got = dict(student.operator_shares(events, skip))
        shares, what = list(got.values()), f"operator_shares, {skip} runs skipped"
        expect(
            sorted(got) == sorted(order) and shares == sorted(shares, reverse=True),  # equal shares have no order
            f"{what}: {order} expected in this order, got {list(got)}",
        )
        truth = [total[op] / sum(total.values()) for op in order]
        cause = "median dur of each node from the first run that counts on, added up by op_name"
        all_close([got[op] for op in order], truth, what, cause=cause)
    raises(ValueError, lambda: student.operator_shares(events, 6), "a trace with all its runs skipped")
    raises(ValueError, lambda: student.operator_shares([], 0), "an empty trace")


class _Clock(FakeClock):
    """A clock that only stages move."""

    def stage(self, seconds: float) -> Any:
        step = {"n": 0}

        def work(x: Any) -> Any:
            step["n"] += 1
            self.now += seconds * step["n"]
            return [*x, seconds]

        return work


@judges("pipeline_stages", "time_breakdown")
def stages_are_timed(student: Any) -> None:
    """Stages give the pipeline's labels; each is charged its own time, call by call."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    rng = draw()
    X = rng.normal(3, 5, size=(90, 4))
    y = np.array(["ash", "elm", "oak"])[(X @ rng.normal(size=(4, 3))).argmax(axis=1)]
    steps = [("a", StandardScaler()), ("none", "passthrough"), ("b", MinMaxScaler()), ("c", LogisticRegression())]
    for pipeline in (Pipeline(steps).fit(X, y), LogisticRegression().fit((X - 3) / 5, y)):
        stages = student.pipeline_stages(pipeline)
        expect(list(stages) == ["preprocess", "model", "postprocess"], f"three stages expected, got {list(stages)}")
        got = stages["postprocess"](stages["model"](stages["preprocess"](X)))
        truth = [str(label) for label in pipeline.predict(X)]
        expect([str(label) for label in got] == truth, "the stages together should give the pipeline's labels")
    raises(TypeError, lambda: student.pipeline_stages(StandardScaler().fit(X)), "a step without predict_proba")
    for counted in (1, 5):
        clock = _Clock(5.0)
        seconds = {"first": 0.25, "second": 1.0, "third": 0.5, "fourth": 2.0}
        outputs: list[Any] = []
        pieces = {name: clock.stage(value) for name, value in seconds.items()}
        pieces["last"] = lambda x, outputs=outputs: outputs.append(list(x))
        found = student.time_breakdown(pieces, [], runs=counted, warmup_runs=0, clock=clock)
        expect(list(found) == [*pieces, "total"], f"results for {[*pieces, 'total']} expected, got {list(found)}")
        for name, value in {**seconds, "last": 0.0, "total": sum(seconds.values())}.items():
            truth_values = [value * (run + 1) for run in range(counted)]
            all_close(found[name].values, truth_values, f"time_breakdown: {name}", rel=1e-9, abs=1e-9)
        expect(
            outputs == [list(seconds.values())] * counted,
            "each stage should get what the stage before it returned, beginning with X in every run",
        )


def answer_amdahl(student: Any) -> None:
    """Amdahl's law at p = 0.6."""
    cause = "1 / ((1 − p) + p / s) with p = 0.6"
    close(student.speed_up_of_the_whole(), 1 / (0.4 + 0.6 / 5), "(a)", cause=cause, rel=0.01)
    close(student.largest_speed_up(), 2.5, "(b)", cause="with s infinite, 1 / (1 − p) is left", rel=0.01)


def answer_understanding(student: Any) -> None:
    """Parity looks at scores; a profiler's times are no latencies; threads are a condition."""
    expect(
        isinstance(student.may_ship(), bool) and not student.may_ship(),
        "question 1: a score differs by 0.31 and the tolerance is 0.0001",
    )
    expect(str(student.number_to_quote()) == "share", "question 2: the profiler makes a run several times longer")
    fair = number(student.fair_speed_up(), "question 3")
    expect(not math.isclose(fair, 2.5, rel_tol=1e-3), "question 3: 2 threads against 1 is not fair")
    close(fair, 1.6, "question 3", cause="compare both with one thread", rel=0.01)
