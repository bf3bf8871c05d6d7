"""Operators are counted: against a tally of every multiplication and addition, numbers by hand, and real graphs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skl2onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from tinybench.onnx import OnnxModel, to_onnx
from tinybench.quantize import quantize_dynamic_int8, quantize_static_int8
from tinybench.result import BenchmarkResult
from tinybench.shell.cli import main
from tinybench.support.basics.layer_networks import initial_layers, save_layers
from tinybench.support.basics.onnx_files import load_graph, save_graph
from tinybench.tools.roofline.batch_sizes import (
    batch_walk,
    gains_table,
    int8_gains,
    least_seconds,
    model_input,
    roofs_for,
)
from tinybench.tools.roofline.onnx_trace import Traced, events_by_node, inferred_shapes, own_name
from tinybench.tools.roofline.operator_bottlenecks import Placed, place, place_operators
from tinybench.tools.roofline.operator_formulas import FORMULAS, MOVES, VIEWS, Node, Tensor, type_of, work_of
from tinybench.tools.roofline.operator_work import Counted, count_work, counted_operators
from tinybench.tools.roofline.roofline_figures import roof_picture
from tinybench.tools.roofline.roofs import Roofs

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(size=(64, 20)).astype(np.float32)


def roofs_of(peaks: dict[str, float], reads: dict[int, float], caches: dict[str, int] | None = None) -> Roofs:
    """Return roofs of known heights, in 10⁹."""
    products = [BenchmarkResult("rate", [p] * 6, {"dtype": d, "ran_in": d, "by": "nobody"}) for d, p in peaks.items()]
    moved = [BenchmarkResult("rate", [r] * 6, {"kind": "read", "working_set": s}) for s, r in reads.items()]
    return Roofs(products, moved, {"L1": 2**15, "L2": 2**20} if caches is None else caches)


KNOWN = roofs_of({"float32": 100.0, "uint8 × int8": 400.0}, {2**14: 100.0, 2**19: 50.0, 2**25: 10.0})


def node(op: str, inputs: list[Any], output: Any, **attributes: Any) -> Node:
    """Return a node of float tensors; (dtype, shape) for others."""

    def tensor(value: Any) -> Tensor | None:
        if value is None:
            return None
        return Tensor(*value) if value and isinstance(value[0], str) else Tensor("float", tuple(value))

    return Node("n", op, tuple(map(tensor, inputs)), (tensor(output),), attributes)  # type: ignore[arg-type]


class Tally:
    """Counts what is done."""

    def __init__(self) -> None:
        self.operations = 0

    def multiply_add(self, total: float, a: float, b: float) -> float:
        self.operations += 2
        return total + a * b


def product_by_hand(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int]:
    tally, out = Tally(), np.zeros((len(a), b.shape[1]))
    for i, j, k in itertools.product(range(len(a)), range(b.shape[1]), range(a.shape[1])):
        out[i, j] = tally.multiply_add(out[i, j], a[i, k], b[k, j])
    return out, tally.operations


def convolution_by_hand(x: np.ndarray, w: np.ndarray, groups: int, stride: int, pad: int) -> tuple[np.ndarray, int]:
    tally = Tally()
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    size = [(x.shape[2 + i] - w.shape[2 + i]) // stride + 1 for i in (0, 1)]
    out = np.zeros((len(x), len(w), *size))
    each = len(w) // groups
    for n, m, i, j in np.ndindex(*out.shape):
        for c, u, v in np.ndindex(*w.shape[1:]):
            value = x[n, m // each * w.shape[1] + c, i * stride + u, j * stride + v]
            out[n, m, i, j] = tally.multiply_add(out[n, m, i, j], value, w[m, c, u, v])
    return out, tally.operations


def graph(
    path: Path, nodes: list[Any], inputs: dict[str, list[Any]], weights: dict[str, np.ndarray], *domains: str
) -> Path:
    """Write a graph from the first inputs to the last node's first output."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    last = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    stored = [numpy_helper.from_array(values, name) for name, values in weights.items()]
    opsets = [helper.make_opsetid("", 21), *(helper.make_opsetid(domain, 1) for domain in domains)]
    made = helper.make_model(helper.make_graph(nodes, "g", ends, [last], stored), opset_imports=opsets, ir_version=10)
    save_graph(made, path)
    return path


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def test_a_product_is_counted_as_it_is_done(tmp_path: Path) -> None:
    a, b = numbers(5, 7), numbers(7, 3)
    by_hand, operations = product_by_hand(a, b)
    model = graph(tmp_path / "p.onnx", [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": ["n", 7]}, {"b": b})
    assert OnnxModel(model).forward(a) == pytest.approx(by_hand, abs=1e-4)
    (found,) = count_work(model, a)
    assert (found.flop, found.bytes) == (operations, a.nbytes + b.nbytes + by_hand.size * 4)
    assert found.checked
    assert found.dtype == "float32"


@pytest.mark.parametrize(("groups", "stride", "pad"), [(1, 1, 0), (1, 2, 1), (2, 1, 1), (4, 2, 0)])
def test_a_convolution_is_counted_as_it_is_done(groups: int, stride: int, pad: int, tmp_path: Path) -> None:
    x, w = numbers(2, 4, 9, 7), numbers(8, 4 // groups, 3, 2)
    by_hand, operations = convolution_by_hand(x, w, groups, stride, pad)
    conv = helper.make_node("Conv", ["x", "w"], ["y"], group=groups, strides=[stride] * 2, pads=[pad] * 4)
    model = OnnxModel(graph(tmp_path / "c.onnx", [conv], {"x": ["n", 4, 9, 7]}, {"w": w}), optimization="basic")
    assert model.forward(x) == pytest.approx(by_hand, abs=1e-4)
    (found,) = count_work(model, x)
    assert found.flop == operations
    assert found.bytes == x.nbytes + w.nbytes + by_hand.size * 4
    assert found.checked


@pytest.mark.parametrize(
    ("given", "flop", "moved"),
    [
        (node("MatMul", [(2, 3, 4, 5), (5, 6)], (2, 3, 4, 6)), 2 * 144 * 5, 4 * (120 + 30 + 144)),
        (node("Gemm", [(5, 4), (6, 5), (6,)], (4, 6), transA=1, transB=1), 2 * 24 * 5 + 24, 4 * (20 + 30 + 6 + 24)),
        (node("FusedGemm", [(4, 5), (5, 6), (6,)], (4, 6), activation=b"Relu"), 2 * 120 + 48, 4 * (20 + 30 + 6 + 24)),
        (node("MatMulInteger", [("uint8", (4, 5)), ("int8", (5, 6))], ("int32", (4, 6))), 240, 20 + 30 + 96),
        (
            node("QGemm", [("uint8", (4, 5)), (), ("uint8", ()), ("int8", (5, 6)), (), ("int8", ()), ("int32", (6,)),
                           (), ("uint8", ())], ("uint8", (4, 6))),
            240 + 4 * 24, 20 + 30 + 3 * 4 + 3 + 24 + 24,
        ),
        (
            node("DynamicQuantizeMatMul", [(4, 5), ("int8", (5, 6)), (), ("int8", ()), (6,)], (4, 6)),
            240 + 2 * 24 + 6 * 20, 80 + 30 + 4 + 1 + 24 + 96,
        ),
        (node("MatMulNBits", [(4, 64), ("uint8", (32, 2, 16)), (64,)], (4, 32), K=64, N=32), 16384, 1024 + 1024 + 768),
        (node("FusedConv", [(1, 4, 8, 8), (8, 2, 3, 3), (8,)], (1, 8, 6, 6), activation=b"Relu"), 288 * 38, 4 * 696),
        (node("ConvTranspose", [(1, 3, 4, 4), (3, 2, 2, 2)], (1, 2, 8, 8)), 2 * 48 * 8, 4 * (48 + 24 + 128)),
        (node("MaxPool", [(1, 2, 8, 8)], (1, 2, 4, 4), kernel_shape=[2, 2]), 128, 4 * 160),
        (node("GlobalAveragePool", [(1, 2, 8, 8)], (1, 2, 1, 1)), 128, 4 * 130),
        (node("Add", [(4, 6), (6,)], (4, 6)), 24, 4 * 54),
        (node("Sigmoid", [(4, 6)], (4, 6)), 24, 4 * 48),
        (node("Sum", [(4, 6)] * 3, (4, 6)), 48, 4 * 96),
        (node("ReduceMean", [(4, 6)], (4,)), 24, 4 * 28),
        (node("Softmax", [(4, 6)], (4, 6)), 120, 4 * 48),
        (node("LayerNormalization", [(4, 6), (6,), (6,)], (4, 6)), 168, 4 * 60),
        (node("SkipLayerNormalization", [(4, 6), (4, 6), (6,), (6,), (6,)], (4, 6)), 216, 4 * 90),
        (node("BatchNormalization", [(4, 6), *[(6,)] * 4], (4, 6)), 48, 4 * 72),
        (node("QuantizeLinear", [(4, 6), (), ("uint8", ())], ("uint8", (4, 6))), 96, 96 + 4 + 1 + 24),
        (node("DequantizeLinear", [("uint8", (4, 6)), ()], (4, 6)), 48, 24 + 4 + 96),
        (node("Cast", [(4, 6)], ("float16", (4, 6))), 0, 96 + 48),
        (node("Gather", [(1000, 8), ("int64", (3,))], (3, 8)), 0, 2 * 96 + 24),
        (node("Concat", [(4, 6), (4, 2)], (4, 8)), 0, 4 * 64),
        (node("Reshape", [(4, 6), ("int64", (1,))], (24,)), 0, 0),
        (node("LinearClassifier", [(7, 6)], (7, 3), coefficients=[0.0] * 18, intercepts=[0.0] * 3), 273, 4 * 84),
    ],
    ids=lambda value: value.op if isinstance(value, Node) else "",
)  # fmt: skip
def test_formulas_by_hand(given: Node, flop: float, moved: float) -> None:
    assert work_of(given) == (flop, moved)


def test_what_has_no_formula_says_so() -> None:
    assert not FORMULAS.keys() & (MOVES | VIEWS)
    for op, why in (
        ("TreeEnsembleClassifier", "depends on the data"),
        ("Loop", "its own"),
        ("ZipMap", "dictionaries"),
        ("Foo", "no formula"),
    ):
        with pytest.raises(LookupError, match=why):
            work_of(node(op, [(4, 6)], (4, 6)))
    for broken in (
        node("MatMul", [(4, 5), (6, 7)], (4, 7)),
        node("MatMul", [(4, 5), None], (4, 7)),
        node("Conv", [(4, 5)], (4, 7)),
        node("Relu", [("string", (4,))], ("string", (4,))),
        node("MaxPool", [(1, 2, 8, 8)], (1, 2, 4, 4)),
    ):
        with pytest.raises(LookupError, match="do not fit"):
            work_of(broken)


def test_types_that_computed() -> None:
    assert type_of(node("MatMul", [(2, 2)], (2, 2))) == "float32"
    assert type_of(node("MatMul", [("double", (2, 2))], (2, 2))) == "float64"
    assert type_of(node("MatMulNBits", [(2, 2)], (2, 2), accuracy_level=4)) == "uint8 × int8"
    assert type_of(node("QGemm", [("int8", (2, 2)), (), (), ("int8", (2, 2))], (2, 2))) == "int8 × int8"
    assert type_of(node("DynamicQuantizeMatMul", [(2, 2), ("uint8", (2, 2))], (2, 2))) == "uint8 × uint8"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    fp32 = save_layers(initial_layers((20, 32, 10), 0), folder / "fp32.onnx")
    return {
        "fp32": fp32,
        "dynamic": quantize_dynamic_int8(fp32, folder / "dynamic.onnx"),
        "static": quantize_static_int8(fp32, ROWS, folder / "static.onnx"),
    }


@pytest.mark.processor
@pytest.mark.parametrize("optimization", ["off", "basic", "extended", "all"])
def test_products_count_the_same_however_they_are_fused(models: dict[str, Path], optimization: str) -> None:
    found = count_work(OnnxModel(models["fp32"], optimization=optimization), ROWS)
    assert not any(each.why for each in found)
    assert all(each.checked for each in found)
    # two products, a bias and a ReLU for each unit, a bias for each class, a softmax
    assert sum(each.flop for each in found) == 64 * (2 * 20 * 32 + 2 * 32 + 2 * 32 * 10 + 10 + 50)


@pytest.mark.processor
@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_products_of_integers_move_a_byte_a_weight(models: dict[str, Path], kind: str) -> None:
    found = [each for each in count_work(models[kind], ROWS) if " × " in each.dtype]
    assert [each.dtype for each in found] == ["uint8 × int8"] * 2
    # scale and bias; each input quantised in 6 operations; or the sum scaled, rounded, clipped, and the bias
    more = {"dynamic": (2 * 32 + 6 * 20, 2 * 10 + 6 * 32), "static": (4 * 32, 4 * 10)}[kind]
    products = (2 * 20 * 32, 2 * 32 * 10)
    assert [each.flop for each in found] == [64 * (a + b) for a, b in zip(products, more, strict=True)]
    plain = [each for each in count_work(models["fp32"], ROWS) if "Gemm" in each.op]
    assert all(each.bytes < other.bytes for each, other in zip(found, plain, strict=True))


def test_what_only_the_run_knows_and_what_nobody_knows(tmp_path: Path) -> None:
    """NonZero finds as many as there are; a loop is left out, and what follows it is counted."""
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "v"], ["v2"]), helper.make_node("Identity", ["c"], ["c2"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("c2", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v2", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        helper.make_node("Loop", ["n", "go", "x"], ["y"], body=body),
        helper.make_node("NonZero", ["y"], ["places"]),
        helper.make_node("Cast", ["places"], ["z"], to=TensorProto.FLOAT),
    ]
    path = graph(tmp_path / "l.onnx", nodes, {"x": ["a", "b"]}, {"n": np.array(3), "go": np.array(True)})
    loop, places, cast = count_work(path, np.eye(4, dtype=np.float32))
    assert "graph of its own" in loop.why
    assert "no formula" in places.why
    assert (cast.flop, cast.bytes, cast.checked) == (0, 2 * 4 * (8 + 4), False)


def test_trees_are_left_out_and_a_model_of_nothing_else_refused(tmp_path: Path) -> None:
    forest = RandomForestClassifier(3, random_state=0).fit(ROWS, ROWS[:, 0] > 0.5)
    model = OnnxModel(to_onnx(forest, ROWS, tmp_path / "f.onnx"))
    assert "depends on the data" in count_work(model, ROWS)[0].why
    found = place_operators(model, ROWS, KNOWN, runs=1, warmup_runs=0)
    assert found.left_out[0].work.op == "TreeEnsembleClassifier"
    [why] = [sentence for sentence in found.sentences if "without a place" in sentence]
    assert "depends on the data" in why
    [tree, *_] = found.table().rows
    assert found.left_out[0].seconds > 0
    assert tree["time"] == f"{found.left_out[0].seconds * 1e6:.3g} µs"
    assert (tree["operations"], tree["wall"]) == ("–", "–")
    if not found.places:
        assert (str(found).splitlines()[0], tree["share"]) == ("Times of the operators", "100%")
    with pytest.raises(ValueError, match=r"no operator of this model can be counted: TreeEnsembleClassifier \(how far"):
        batch_walk({"forest": model}, ROWS, (1,), 0.01)


def test_inputs_that_do_not_fit(models: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'X' has shape \(64, 5\); the graph takes \(any, 20\)"):
        count_work(models["fp32"], ROWS[:, :5])
    add = [helper.make_node("Add", ["a", "b"], ["y"])]
    two = graph(tmp_path / "two.onnx", add, {"a": ["n", 3], "b": ["n", 3]}, {})
    with pytest.raises(ValueError, match="the graph takes a, b, not a; pass a dictionary"):
        count_work(two, ROWS)
    assert count_work(two, model_input(OnnxModel(two), 5))[0].flop == 15


def event(name: str, start: float, duration: int, **arguments: Any) -> dict[str, Any]:
    return {"cat": "Node", "name": f"{name}_kernel_time", "ts": start, "dur": duration, "args": arguments}


def test_the_runtime_and_onnx_must_agree(models: dict[str, Path]) -> None:
    """A trace that tells of another shape than ONNX infers is not believed; one that tells of none is said to."""
    model = load_graph(models["fp32"])
    for place_, each in enumerate(model.graph.node):
        each.name = own_name(place_)
    inputs = {"X": Tensor("float", (64, 20))}
    names = [each.op_type for each in model.graph.node]
    shapes = [(64, 32)] * 3 + [(64, 10)] * 3
    shapes[0] = (64, 31)
    events = [event(own_name(i), 1, 5, output_type_shape=[{"float": list(s)}]) for i, s in enumerate(shapes[:-1])]
    found = counted_operators(Traced(model, names, inputs, events_by_node(events)), model)
    assert "the runtime made (64, 31) of 'product0', and ONNX infers (64, 32)" in found[0].why
    assert found[-1].why == "its shapes are not in the trace"
    assert [each.why for each in found[1:-1]] == [""] * 4
    assert inferred_shapes(model, inputs)["probabilities"] == (64, 10)


def test_events_of_the_warm_up_do_not_count() -> None:
    events: list[dict[str, Any]] = [{"name": "model_run", "cat": "Session", "ts": ts} for ts in (20, 0)]
    events += [event("a", 5, 100), event("a", 25, 7), {"cat": "Node", "name": "a_fence_before", "ts": 21, "args": {}}]
    assert [each["dur"] for each in events_by_node(events, 1)["a"]] == [7]
    assert len(events_by_node(events)["a"]) == 2


def test_places_under_known_roofs() -> None:
    """100·10⁹ operations/s, and 10 GB/s beyond the caches: the ridge is at 10 operations for each byte."""
    big = 2.0**25
    for flop, moved, seconds, wall, share in (
        (2e9, 1e8, 0.025, "compute", 0.8),
        (2e8, 1e8, 0.0125, "memory", 0.8),
        (2e8, 1e8, 0.1, "overhead", 0.1),
        (0, 1e8, 0.02, "memory", 0.5),
        (0, 1e8, 0.2, "overhead", 0.05),
    ):
        found = place(Counted("n", "MatMul", "float32", flop, moved, big), seconds, KNOWN)
        assert (found.wall, found.level) == (wall, "memory")
        assert found.of_roof == pytest.approx(share)
        assert found.rate == pytest.approx(flop / seconds)
    integers = place(Counted("n", "QGemm", "uint8 × int8", 2e9, 1e6, 2.0**14), 0.01, KNOWN)
    assert (integers.peak, integers.bandwidth, integers.level) == (400e9, 100e9, "L1")
    with pytest.raises(LookupError, match="no product of int8 × int8 was measured"):
        place(Counted("n", "QGemm", "int8 × int8", 2e9, 1e6), 0.01, KNOWN)


def test_what_is_faster_than_its_roof_is_told() -> None:
    each = [place(Counted("n", "MatMul", "float32", 2e9, 1e6, 1.0), s, KNOWN) for s in (0.01, 0.02)]
    found = Placed(each, [], BenchmarkResult("latency", [0.03] * 6), 0.03)
    assert sum("1 of 2 operators is more than a tenth faster" in sentence for sentence in found.sentences) == 1
    assert not any("faster than their roof" in s for s in Placed(each[1:], [], found.plain, 0.02).sentences)


def test_a_model_is_placed_and_drawn(models: dict[str, Path], tmp_path: Path) -> None:
    placed = {name: place_operators(models[name], ROWS, KNOWN, runs=3, warmup_runs=1) for name in ("fp32", "static")}
    for found in placed.values():
        assert {each.wall for each in found.places} <= {"compute", "memory", "overhead"}
        assert sum(each.seconds for each in found.places) == pytest.approx(found.traced)
        assert not found.left_out
        assert "per byte" in str(found)
        assert "<th" in found._repr_mimebundle_()["text/html"]
        assert "without a trace" in found.sentences[-1]
    walks = batch_walk({name: OnnxModel(models[name]) for name in ("fp32", "static")}, ROWS, (1, 4, 100), 0.2, 6)
    assert [step.batch for step in walks["fp32"]] == [1, 4, 100]
    assert walks["fp32"][2].flop == 100 * walks["fp32"][0].flop
    assert walks["fp32"][0].intensity < walks["fp32"][2].intensity
    picture = roof_picture(KNOWN, placed, walks)
    lengths = {len(column) for column in picture.data.values()}
    assert lengths == {2 + 3 + sum(len(each.places) for each in placed.values()) + 6}
    assert "float32 100" in picture.alt
    assert "batch 100 does" in picture.caption
    picture.save(tmp_path / "roofs.svg")
    assert "Operators of static" in (tmp_path / "roofs.svg").read_text("utf-8")
    assert roof_picture(KNOWN, dtypes=["float64"]).alt.count("float32") == 1


def test_gains_by_the_roofs(models: dict[str, Path]) -> None:
    """Where all is compute, the roofs promise the ratio of the peaks; the measured one is of paired rounds."""
    work = [Counted("n", "QGemm", "uint8 × int8", 4e9, 1.0, 1e6), Counted("n", "Relu", "float32", 1e9, 1.0, 1e6)]
    assert least_seconds(work, KNOWN) == pytest.approx(0.01 + 0.01)
    pair = {name: OnnxModel(models[name]) for name in ("fp32", "dynamic")}
    walks = batch_walk(pair, ROWS, (1, 64), 0.1, 6)
    gains = int8_gains(walks, pair, ROWS, KNOWN)
    assert [gain.batch for gain in gains] == [1, 64]
    for gain, slow, fast in zip(gains, walks["fp32"], walks["dynamic"], strict=True):
        ratios = np.array(slow.seconds) / fast.seconds
        assert gain.measured == pytest.approx(np.exp(np.median(np.log(ratios))))
        assert gain.interval[0] <= gain.measured <= gain.interval[1]
        slower, faster = gain.shares
        assert gain.predicted * faster / slower == pytest.approx(np.median(slow.seconds) / np.median(fast.seconds))
    assert "by the roofs" in gains_table(gains).markdown()


def test_a_file_on_the_command_line(
    models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tinybench.tools.roofline.roofs.largest_set", lambda caches, seconds, threads: 2**17)
    figure = tmp_path / "roofs.png"
    assert main(["profile", str(models["dynamic"]), "--batch", "4", "--seconds", "0.5", "--figure", str(figure)]) == 0
    assert "DynamicQuantizeMatMul" in capsys.readouterr().out
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert main(["profile", "--flame", str(tmp_path / "f.svg"), str(models["fp32"])]) == 3
    assert "--flame: only for a script" in capsys.readouterr().err
    assert main(["profile", str(tmp_path / "none.onnx")]) == 3
    assert "there is no file" in capsys.readouterr().err


def test_roofs_are_those_of_the_types_that_ran(models: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        "tinybench.tools.roofline.batch_sizes.measure_roofs", lambda *given, **more: asked.append(given[0])
    )
    for name in ("fp32", "static"):
        roofs_for(OnnxModel(models[name]), ROWS)
    assert asked == [["float32"], ["float32", "uint8 × int8"]]


def test_dictionaries_have_no_shape(tmp_path: Path) -> None:
    model = LogisticRegression().fit(ROWS, ROWS[:, 0] > 0.5)
    path = tmp_path / "zipmap.onnx"
    save_graph(skl2onnx.to_onnx(model, ROWS[:1], target_opset=21), path)
    assert {each.op: each.why for each in count_work(path, ROWS)}["ZipMap"].startswith("it makes dictionaries")
