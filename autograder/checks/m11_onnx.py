"""Hidden checks for module 11, with hand-made graphs and traces, and a fake clock.

Some expected values are scikit-learn's predictions. Files are stored where the student's code runs, so checks use the
`Path` and `tempfile` of the student's module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.plain_answers import array, entries, flag, items, number, text

OPSETS = {"": 21, "ai.onnx.ml": 1}


def graph(nodes: Iterable[tuple[Any, ...]], tensors: Mapping[str, np.ndarray], inputs: int, outputs: int) -> bytes:
    """Return an ONNX model as bytes. Its input x has `inputs` columns, and its output y has `outputs` columns.

    Each node is a tuple of its operator, inputs, outputs and, optionally, attributes. Names are separated by spaces.
    """
    from onnx import TensorProto, helper, numpy_helper

    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None, k]) for n, k in (("x", inputs), ("y", outputs))]
    values = [numpy_helper.from_array(value, name) for name, value in tensors.items()]
    made = [helper.make_node(op, a.split(), b.split(), **dict(*more)) for op, a, b, *more in nodes]
    whole = helper.make_graph(made, "check", ends[:1], ends[1:], values)
    opsets = [helper.make_opsetid(*pair) for pair in OPSETS.items()]
    return helper.make_model(whole, opset_imports=opsets, ir_version=10).SerializeToString()  # type: ignore[no-any-return]


def evaluate(node: Any, given: dict[str, Any], opsets: Mapping[str, int]) -> list[Any]:
    """Return the outputs of one node, computed by ONNX's own reference evaluator."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    def ends(names: Iterable[str]) -> list[Any]:
        return [helper.make_tensor_value_info(name, 0, None) for name in names if name]

    imports = [helper.make_opsetid(*pair) for pair in opsets.items()]
    only = helper.make_graph([node], "node", ends(given), ends(node.output))
    alone = helper.make_model(only, opset_imports=imports, ir_version=10)
    return list(ReferenceEvaluator(alone).run(None, given))


def room(student: Any, name: str, content: bytes) -> str:
    """Write a file where the student's code can read it, and return its path."""
    path = f"{student.tempfile.mkdtemp()}/{name}"
    student.Path(path).write_bytes(content)
    return path


@judges("operators")
def graphs_are_read(student: Any) -> None:
    """Check that `operators` counts operators in the order of the graph, which is given as bytes and as a file."""
    rng = draw()
    for _ in range(3):
        kinds = rng.choice(["Relu", "Abs", "Tanh", "Neg", "Sigmoid"], int(rng.integers(4, 12))).tolist()
        ends = ["x", *(f"h{i}" for i in range(1, len(kinds))), "y"]
        chain = graph([(op, *pair) for op, pair in zip(kinds, pairwise(ends), strict=True)], {}, 3, 3)
        for source in (chain, room(student, "check.onnx", chain)):
            counts = list(entries(student.operators(source), "operators").items())
            truth = [(op, kinds.count(op)) for op in dict.fromkeys(kinds)]
            same(counts, truth, "operators", "in the order of the graph")


def answer_parameters(student: Any) -> None:
    """Check that the answer counts parameters layer by layer."""
    truth = sum(a * b + b for a, b in pairwise((64, 256, 128, 10)))
    same(student.parameters_of_the_network(), truth, "the answer", "inputs × units weights and units biases a layer")


# the operators that the export of a linear model may contain
OPERATORS = {
    "Add", "ArgMax", "ArrayFeatureExtractor", "Cast", "Concat", "Div", "Exp", "Flatten", "Gemm", "Identity",
    "LinearClassifier", "LinearRegressor", "MatMul", "Mul", "Neg", "Normalizer", "ReduceSum", "Relu", "Reshape",
    "Scaler", "Sigmoid", "Softmax", "Squeeze", "Sub", "Transpose", "Unsqueeze",
}  # fmt: skip
LARGEST_FILE, MOST_NODES, MOST_WEIGHTS = 2**18, 20, 10**4
MOST_NUMBERS = 10**6  # limit on the product of a node's input sizes, which its output never exceeds


def _safe_model(content: Any, what: str) -> Any:
    """Parse a student's exported model and return it.

    Raise CheckFailed for anything that a small export lacks, such as external files, subgraphs or bulky tensors.
    """
    from autograder.leaderboard.entry import validate
    from autograder.leaderboard.settings import EntryLimits

    expect(type(content) is bytes, f"{what}: an onnx.ModelProto expected, whose SerializeToString() gives bytes")
    limits = EntryLimits(size_mb=LARGEST_FILE / 2**20, nodes=MOST_NODES, weights=MOST_WEIGHTS)
    try:
        model = validate.parse(content, limits)
        graph = model.graph
        arrays = not any(output.type.HasField("sequence_type") for output in graph.output)
        expect(arrays, f"{what}: an output is a sequence of dictionaries, not an array: ZipMap off")
        others = sorted({node.op_type for node in graph.node} - OPERATORS)
        expect(not others, f"{what}: the graph holds {', '.join(others)[:100]}, which no linear model needs")
        validate.check_graph(graph, limits)
    except validate.EntryRefused as refused:
        raise CheckFailed(f"{what}: {refused}") from None
    expect(len(graph.input) > 0 and len(graph.output) > 0, f"{what}: the graph should have an input and an output")
    return model


def _answers(model: Any, X: np.ndarray, what: str) -> np.ndarray:
    """Return the last output of a student's model, evaluated node by node.

    ONNX Runtime must not run untrusted graphs, because it trusts their attributes and allocates as much memory as the
    attributes require.
    """
    from onnx import numpy_helper

    graph = model.graph
    values: dict[str, Any] = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    values[graph.input[0].name] = X
    opsets = {each.domain: each.version for each in model.opset_import}
    for node in graph.node:
        given = {name: values.get(name) for name in node.input if name}
        expect(all(value is not None for value in given.values()), f"{what}: a node {node.op_type} lacks its input")
        sizes = [np.size(values[name]) for name in node.input if name] + [len(a.floats) for a in node.attribute]
        small = math.prod(max(1, size) for size in sizes) <= MOST_NUMBERS
        expect(small, f"{what}: a node {node.op_type} is larger than a linear model needs")
        made = [name for name in node.output if name]
        values |= zip(made, evaluate(node, given, opsets), strict=True)
    last = graph.output[-1].name
    expect(last in values, f"{what}: no node makes the last output")
    return np.asarray(values[last])


@judges("convert")
def conversion_is_sound(student: Any) -> None:
    """Check that a model from `convert` takes float32, returns arrays, and agrees with scikit-learn."""
    from onnx import TensorProto
    from sklearn.linear_model import LogisticRegression, Ridge

    rng = draw()
    X = rng.normal(size=(80, 4))
    classifier = LogisticRegression().fit(X, (X @ rng.normal(size=(4, 3))).argmax(axis=1))
    regressor = Ridge().fit(X, X @ rng.normal(size=4))
    for model, truth in ((classifier, classifier.predict_proba(X)), (regressor, regressor.predict(X))):
        what = f"convert({type(model).__name__})"
        made = _safe_model(student.convert(model, X).SerializeToString(), what)
        kind = made.graph.input[0].type.tensor_type.elem_type
        same(kind, TensorProto.FLOAT, f"{what}: the type of the input", "hand skl2onnx a float32 row")
        last = made.graph.output[-1].type
        floats, got = last.tensor_type.elem_type == TensorProto.FLOAT, last.WhichOneof("value")
        expect(floats, f"{what}: the last output is a {got}, not an array of floats: ZipMap off")
        answers = _answers(made, X.astype(np.float32), what)
        same(np.ravel(answers), np.ravel(truth), f"{what}: the answers", rel=1e-3, abs=1e-4)


@judges("session_options")
def sessions_keep_conditions(student: Any) -> None:
    """Check that `session_options` sets every option as requested."""
    levels = {"off": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED"}
    for threads in (1, 3):
        for optimization, level in {**levels, "all": "ORT_ENABLE_ALL"}.items():
            what = f"session_options({threads}, {optimization!r})"
            options = student.session_options(threads, optimization)
            truth = {"intra_op_num_threads": threads, "inter_op_num_threads": 1, "enable_profiling": False}
            holds(options, truth, what)
            got = str(options.graph_optimization_level).rpartition(".")[2]
            expect(got == level, f"{what}: {level} expected, got {got}")
    options = student.session_options(trace="some/where")
    expect(flag(options.enable_profiling, "enable_profiling"), "session_options(trace=…) should enable profiling")
    prefix = text(options.profile_file_prefix, "profile_file_prefix")
    expect(prefix.endswith("some/where"), f"the trace should begin with 'some/where', not {prefix!r}")


def _row_named(parity: Any) -> Any:
    """Return a wrapper of `parity` that reduces the message of a ValueError to the row numbers in it."""

    def call(*answers: np.ndarray) -> Any:
        try:
            return parity(*answers)
        except ValueError as error:
            named = {*re.findall(r"\brow (\d+)", str(error))}
            raise ValueError(f"rows named: {', '.join(named)}.") from None

    return call


@judges("check_parity")
def parity_is_checked(student: Any) -> None:
    """Check that `check_parity` accepts differences within the tolerance, and locates larger ones by row.

    Labels must be equal.
    """
    rng = draw()
    a, X = rng.dirichlet(np.ones(4), size=30), rng.normal(size=(30, 2))

    def parity(first: np.ndarray, second: np.ndarray, **options: Any) -> Any:
        return student.check_parity(lambda _: first, lambda _: second, X, **options)

    for row in (0, *rng.integers(1, 29, 2).tolist(), 29):
        b, gap = a.copy(), float(rng.uniform(1e-3, 9e-3))
        b[row, 1] += gap
        b[(row + 5) % 30, 2] += gap / 3
        refuses(_row_named(parity), (a, b), mentions=f"rows named: {row}.", what=f"a difference of {gap:.4f}")
        found = parity(a, b, tolerance=0.01)
        holds(found, {"max_difference": gap, "rows": 30}, "what check_parity returns", rel=1e-6)
    what = "answers that are all too low by 0.0002"
    refuses(parity, (a, a - 2e-4), what=what, cause="take the absolute difference")
    labels = rng.integers(0, 3, 30)
    other = labels.copy()
    other[4] = 3
    parity(labels, labels.copy())
    refuses(parity, (labels, other), what="one label of 30 that differs")
    values = rng.normal(size=30)
    flat = parity(values, values.reshape(30, 1) + 1e-6).max_difference
    same(flat, 1e-6, "(n,) against (n, 1)", "reshape before comparing", rel=1e-3)
    seen: list[Any] = []

    def spy(rows: Any) -> Any:
        seen.append(array(rows, "the rows that a model gets"))
        return a

    student.check_parity(spy, spy, X)
    same(seen, [X, X], "the rows that both models get", "all 30", rel=1e-5)


@judges("numpy_baseline")
def baseline_is_the_network(student: Any) -> None:
    """Check that `numpy_baseline` agrees with float64 arithmetic by hand, for each kind of output.

    Large inputs must not overflow.
    """
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
        forward, what = student.numpy_baseline(network), f"numpy_baseline with {kind} output"
        got = array(forward(X), what, truth.shape)
        same(str(got.dtype), "float32", f"the dtype of {what}")
        same(got, truth, what, "ReLU after each hidden layer, biases added", rel=1e-3, abs=1e-5)
        if kind != "identity":
            with np.errstate(all="ignore"):
                far = array(forward(X * 1e5), what, truth.shape)
            expect(bool(np.isfinite(far).all()), f"{what}: large inputs give NaN; subtract the row's maximum first")
            same(far.sum(axis=1), [1.0] * len(X), f"{what}, large inputs: the sums of rows", rel=1e-5)
    refuses(student.numpy_baseline, SimpleNamespace(), error=TypeError, what="a model without coefs_")


def _trace(rng: np.random.Generator, runs: int) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Return a made-up trace of runs of `OPERATORS_IN_TURN`, and the times of the nodes in each run.

    The events of the trace are in random order.
    """
    times = rng.integers(1, 120, (runs, len(OPERATORS_IN_TURN)))
    events = [{"cat": "Session", "name": "session_initialization", "ts": 1, "dur": 99, "args": {}}]
    for start, spent in zip(range(1000, 1000 * (runs + 1), 1000), times.tolist(), strict=True):
        now = start + 3
        for index, (op, dur) in enumerate(zip(OPERATORS_IN_TURN, spent, strict=True)):
            node: dict[str, Any] = {"cat": "Node", "args": {"op_name": op, "provider": "CPUExecutionProvider"}}
            events.append({**node, "name": f"node{index}_kernel_time", "ts": now, "dur": dur})
            events.append({**node, "name": f"node{index}_fence_after", "ts": now + dur, "dur": 50})
            now += dur + 1
        events.append({"cat": "Session", "name": "model_run", "ts": start, "dur": now - start, "args": {}})
    return [events[i] for i in rng.permutation(len(events))], times


OPERATORS_IN_TURN = ["Gemm", "Relu", "Gemm", "Relu", "Gemm", "Softmax"]


@judges("operator_shares")
def shares_come_from_the_trace(student: Any) -> None:
    """Check that `operator_shares` uses kernel times only, ignores the skipped runs, and returns sorted shares.

    The shares must sum to 1.
    """
    events, times = _trace(draw(), 6)
    for skip in (0, 1, 4):
        medians = np.median(times[skip:], axis=0)
        truth = dict.fromkeys(OPERATORS_IN_TURN, 0.0)
        for op, share in zip(OPERATORS_IN_TURN, medians / medians.sum(), strict=True):
            truth[op] += float(share)
        what = f"operator_shares, {skip} runs skipped"
        got = {op: number(share, what) for op, share in entries(student.operator_shares(events, skip), what).items()}
        shares = list(got.values())
        expect(shares == sorted(shares, reverse=True), f"{what}: the largest share first, got {got}")
        cause = "median dur of each node from the first run that counts on, added up by op_name"
        same(got, truth, what, cause)
    refuses(student.operator_shares, (events, 6), what="a trace with all its runs skipped")
    refuses(student.operator_shares, ([], 0), what="an empty trace")


@judges("time_breakdown")
def stages_are_timed(student: Any) -> None:
    """Check that `time_breakdown` assigns each stage its own time in every run."""
    rng = draw()
    clock, seconds = FakeClock(5.0), {name: float(rng.uniform(0.1, 2)) for name in words(rng, 5)}
    marks, last = dict(zip(seconds, rng.permutation(99)[:5].tolist(), strict=True)), [*seconds][-1]

    def stage(name: str, given: list[Any]) -> Callable[[Any], list[int]]:
        def call(x: Any) -> list[int]:
            given.append(items(x, f"what reached the {name} stage"))
            clock.now += seconds[name] * len(given)
            return [*given[-1], marks[name]]

        return call

    for counted in (1, 5):
        seen: dict[str, list[Any]] = {name: [] for name in seconds}
        pieces = {name: stage(name, given) for name, given in seen.items()}
        breakdown = student.time_breakdown(pieces, [], runs=counted, warmup_runs=0, clock=clock)
        found = entries(breakdown, "time_breakdown")
        same([*found], [*seconds, "total"], "the results of time_breakdown")
        for name, value in {**seconds, "total": sum(seconds.values())}.items():
            times = [value * (run + 1) for run in range(counted)]
            same(found[name].values, times, f"time_breakdown: {name}", rel=1e-9, abs=1e-9)
        cause = "each stage gets what the stage before it returned, beginning with X in every run"
        same(seen[last], [[*marks.values()][:-1]] * counted, "what reached the last stage", cause)


def answer_amdahl(student: Any) -> None:
    """Check that the speed-ups follow from Amdahl's law if 60 % of the time is accelerated."""
    cause = "1 / ((1 − p) + p / s) with p = 0.6"
    same(student.speed_up_of_the_whole(), 1 / (0.4 + 0.6 / 5), "(a)", cause, rel=0.03)
    same(student.largest_speed_up(), 2.5, "(b)", "with s infinite, 1 / (1 − p) is left", rel=0.01)


def answer_understanding(student: Any) -> None:
    """Check that the answers are: do not ship, quote the share, and a fair speed-up of 1.6.

    A score that differs by more than the tolerance forbids shipping. Times under a profiler are not latencies, so only
    their shares may be quoted. A fair speed-up compares models that use the same number of threads.
    """
    same(student.may_ship(), False, "question 1", "a score differs by 0.31 and the tolerance is 0.0001")
    same(student.number_to_quote(), "share", "question 2", "the profiler makes a run several times longer")
    fair = number(student.fair_speed_up(), "question 3")
    expect(not math.isclose(fair, 2.5, rel_tol=1e-3), "question 3: 2 threads against 1 is not fair")
    same(fair, 1.6, "question 3", "compare both with one thread", rel=0.01)
