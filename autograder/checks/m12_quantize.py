"""Hidden checks for module 12, against ONNX's reference evaluator, exact integers and hand-made graphs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.m11_onnx import evaluate, graph
from autograder.checks.plain_answers import array


def _reference(op: str, *inputs: np.ndarray) -> np.ndarray:
    """Return the output of one operator, computed by ONNX's own reference evaluator."""
    from onnx import helper

    given = {f"i{i}": x for i, x in enumerate(inputs)}
    return np.asarray(evaluate(helper.make_node(op, list(given), ["y"]), given, {"": 21})[0])


@judges("quantization_params", "quantize_tensor", "dequantize")
def grids_span_tensors(student: Any) -> None:
    """Check that `quantization_params` follows its formulas, and that conversions agree with ONNX's operators."""
    rng = draw()
    grid_of = student.quantization_params
    table = rng.normal(0, [0.1, 1, 10, 0, 3], (30, 5))
    for x in (rng.normal(0, 2, 200), rng.uniform(3, 9, (20, 5)), rng.uniform(-9, -3, (20, 5)), table):
        low, high, largest = min(float(x.min()), 0.0), max(float(x.max()), 0.0), float(np.abs(x).max())
        for bits in (4, 8, 12):
            what = f"grid of {bits} bits for values from {x.min():.2f} to {x.max():.2f}"
            scale = (high - low) / (2**bits - 1)
            cause = "(max − min) / (2^b − 1), the range widened to hold 0; round(−min / scale)"
            truth = {"scale": scale, "zero_point": round(-low / scale), "signed": False, "bits": bits}
            holds(grid_of(x, bits=bits), truth, f"the affine {what}", cause)
            truth = {"scale": largest / (2 ** (bits - 1) - 1), "zero_point": 0, "signed": True, "bits": bits}
            holds(grid_of(x, True, bits), truth, f"the symmetric {what}", "max|x| / (2^(b−1) − 1), around 0")
    for axis, others in ((1, 0), (0, 1), (-1, 0)):
        wanted = np.abs(table).max(axis=others, keepdims=True) / 127
        wanted[wanted == 0] = 1
        scales = array(grid_of(table, True, axis=axis).scale, f"scales of axis {axis}")
        fit = np.broadcast_shapes(scales.shape, wanted.shape) == wanted.shape
        expect(fit, f"scales of axis {axis} of a tensor of {table.shape} should not have the shape {scales.shape}")
        same(np.broadcast_to(scales, wanted.shape), wanted, f"scales of axis {axis}", "a channel of zeros has scale 1")
    same(grid_of(np.zeros(3)).scale, 1.0, "the scale of a tensor of zeros")
    refuses(grid_of, [1.0, math.nan], [math.inf], [])
    for signed in (False, True):
        kind, step, zero = (np.int8, 0.25, 0) if signed else (np.uint8, 0.25, 37)
        grid = student.QuantParams(np.array(step), np.array(zero), 8, signed)
        ends = np.array(step, np.float32), np.array(zero, kind)
        x = np.concatenate([rng.normal(0, 15, 300), (np.arange(-40, 40) + 0.5) * step]).astype(np.float32)
        truth = np.maximum(_reference("QuantizeLinear", x, *ends).astype(int), -127)
        got = array(student.quantize_tensor(x, grid), "quantize_tensor")
        same(str(got.dtype), np.dtype(kind).name, "the dtype of quantize_tensor")
        same(got.astype(int), truth, "quantize_tensor", "divide, round half to even, add z, clip")
        back = _reference("DequantizeLinear", got, *ends)
        same(student.dequantize(got, grid), back, "dequantize", "widen before you subtract z", rel=1e-6)
    wide = student.QuantParams(np.array(0.01), np.array(0), 12, True)
    same(student.quantize_tensor([20.0, -50.0, 5.0], wide), [2000, -2047, 500], "12 bits, which do not fit into int8,")


@judges("sqnr")
def noise_is_measured(student: Any) -> None:
    """Check that `sqnr` follows its definition, with one scale for the tensor and with one scale per channel."""
    x = draw().normal(0, 3, (40, 6)) * [1, 1, 1, 0.1, 0.1, 4]
    for bits in (3, 5, 8):
        for axis in (None, 1):
            grid = student.quantization_params(x, True, bits, axis)
            step = np.abs(x).max(axis=None if axis is None else 0) / (2 ** (bits - 1) - 1)
            error = x - np.rint(x / step) * step
            truth = 10 * math.log10(float(np.sum(x**2)) / float(np.sum(error**2)))
            same(student.sqnr(x, grid), truth, f"sqnr at {bits} bits, axis {axis}", "10 · log10 of power over power")
    exact = student.QuantParams(np.array(1.0), np.array(0), 8, True)
    same(student.sqnr([1.0, 2.0, -3.0], exact), math.inf, "sqnr of numbers on the grid", "return infinity")


def answer_bits(student: Any) -> None:
    """Check that each bit adds 6.02 dB."""
    same(student.decibels_at_five_bits(), 38 - 18.06, "the answer", "three bits of 6.02 dB", rel=0.01)


@judges("int8_matmul")
def products_are_integer(student: Any) -> None:
    """Check that `int8_matmul` agrees with exact integers, also where sums in narrow integers would overflow."""
    rng = draw()
    for k, za, signed in ((4, 0, False), (900, 131, False), (900, 255, False), (50, 0, True)):
        a = rng.integers(-127 if signed else 0, 128 if signed else 256, (6, k)).astype(np.int8 if signed else np.uint8)
        w = rng.integers(100, 128, (k, 3)).astype(np.int8)
        exact = (a.astype(int) - za) @ w.astype(int)
        own = _reference("MatMulInteger", a, w, np.array(za, a.dtype))
        expect(np.array_equal(own, exact), "the check's own truth is inconsistent")
        grid = student.QuantParams(np.array(0.1), np.array(za), 8, signed)
        for scale in (np.array(0.02), np.array([[0.01, 0.5, 3.0]])):
            columns = student.QuantParams(scale, np.zeros_like(scale, dtype=np.int64), 8, True)
            got = array(student.int8_matmul(a, grid, w, columns), "int8_matmul", exact.shape)
            cause = "widen to int32, subtract the zero points, multiply, then both scales"
            same(got, exact * 0.1 * scale, "int8_matmul", cause, rel=1e-6, abs=1e-9)
    a, w = np.array([[3, 200]], np.uint8), np.array([[10], [250]], np.uint8)
    affine = student.QuantParams(np.array(0.5), np.array(100), 8, False)
    got = student.int8_matmul(a, affine, w, affine)
    same(got, [[0.25 * (-97 * -90 + 100 * 150)]], "int8_matmul with a zero point on both sides")


def _qdq(op: str, linear: np.ndarray, activations: bool, weight: bool) -> bytes:
    """Return a model of x · W by operator `op`, with activations and weights in QDQ form where requested."""
    nodes = [("QuantizeLinear", "x s zu", "xq"), ("DequantizeLinear", "xq s zu", "xd")] if activations else []
    nodes += [("DequantizeLinear", "Wq s zi", "Wd")] if weight else []
    nodes += [(op, f"{'xd' if activations else 'x'} {'Wd' if weight else 'W'}", "h"), ("Relu", "h", "y")]
    tensors = {"Wq": np.rint(linear * 20).astype(np.int8)} if weight else {"W": linear}
    if weight or activations:
        tensors |= {"s": np.array(0.05, np.float32), "zu": np.array(3, np.uint8), "zi": np.array(0, np.int8)}
    return graph(nodes, tensors, *linear.shape)


def _drawn_chain(rng: np.random.Generator) -> tuple[bytes, dict[str, int]]:
    """Return a random chain of up to five matrix multiplications, and the counts of those that run in integers."""
    nodes: list[tuple[Any, ...]] = []
    tensors: dict[str, np.ndarray] = {"s": np.array(0.05, np.float32)}
    tensors |= {"zu": np.array(3, np.uint8), "zi": np.array(0, np.int8)}
    counts, x = dict[str, int](), "x"
    for n, (op, kind) in enumerate(rng.integers((2, 4), size=(int(rng.integers(1, 6)), 2)).tolist()):
        name, activations, weight = ("MatMul", "Gemm")[op], kind in (1, 3), kind in (2, 3)
        if activations:
            nodes += [("QuantizeLinear", f"{x} s zu", f"q{n}"), ("DequantizeLinear", f"q{n} s zu", f"d{n}")]
        numbers = rng.integers(-99, 99, (4, 4))
        tensors[f"W{n}"] = numbers.astype(np.int8 if weight else np.float32)
        nodes += [("DequantizeLinear", f"W{n} s zi", f"V{n}")] if weight else []
        nodes.append((name, f"{f'd{n}' if activations else x} {'V' if weight else 'W'}{n}", f"h{n}"))
        x = f"h{n}"
        if activations and weight:
            counts[name] = counts.get(name, 0) + 1
    return graph([*nodes, ("Relu", x, "y")], tensors, 4, 4), counts


@judges("integer_operators")
def fakes_are_found(student: Any) -> None:
    """Check that `integer_operators` counts only matrix multiplications of integer activations and integer weights."""
    rng = draw()
    W = rng.normal(size=(5, 4)).astype(np.float32)
    for _ in range(8):
        content, counts = _drawn_chain(rng)
        same(student.integer_operators(content), counts, "integer_operators of a chain of products")
    for op in ("MatMul", "Gemm"):
        for activations, weight in ((True, True), (False, True), (True, False), (False, False)):
            content = _qdq(op, W, activations, weight)
            kinds = ("quantised" if activations else "float", "INT8" if weight else "float")
            what = f"{op} with {kinds[0]} activations and {kinds[1]} weights"
            truth = {op: 1} if activations and weight else {}
            same(student.integer_operators(content), truth, f"integer_operators of {what}")
    tensors: dict[str, np.ndarray] = {"s": np.array(0.05, np.float32), "z": np.array(0, np.int8)}
    constants = [("DequantizeLinear", "Wq s z", "Wd"), ("DequantizeLinear", "Vq s z", "Vd")]
    constants += [("MatMul", "Wd Vd", "h"), ("MatMul", "x h", "y")]
    tensors |= {"Wq": np.ones((5, 3), np.int8), "Vq": np.ones((3, 4), np.int8)}
    what, cause = "integer_operators of a product of two stored weights", "it has no quantised activations"
    same(student.integer_operators(graph(constants, tensors, 5, 4)), {}, what, cause)
    named: list[tuple[Any, ...]] = [("DynamicQuantizeLinear", "x", "xq s z"), ("MatMulInteger", "xq Wq z", "h")]
    named += [("MatMulInteger", "xq Wq z", "g"), ("Add", "h g", "i"), ("Cast", "i", "y", {"to": 1})]
    content = graph(named, {"Wq": np.ones((5, 4), np.int8)}, 5, 4)
    same(student.integer_operators(content), {"MatMulInteger": 2}, "integer_operators of two MatMulInteger")


@judges("saturating_matmul")
def pairs_saturate(student: Any) -> None:
    """Check that `saturating_matmul` clips each sum of two products to 16 bits, but not the total of these sums."""
    rng = draw()

    def summed(a: np.ndarray, w: np.ndarray) -> list[list[int]]:
        products = [[[int(x) * int(y) for x, y in zip(row, column, strict=True)] for column in w.T] for row in a]
        pairs = [[[sum(each[i : i + 2]) for i in range(0, len(each), 2)] for each in row] for row in products]
        return [[sum(max(-32768, min(32767, pair)) for pair in each) for each in row] for row in pairs]

    cases = []
    for n, k, m in ((1, 2, 1), (3, 7, 2), (4, 40, 5)):
        w = (rng.choice([-1, 1], (k, m)) * rng.integers(90, 128, (k, m))).astype(np.int8)
        cases.append((rng.integers(128, 256, (n, k)).astype(np.uint8), w))
    cause = "add products 0 and 1, 2 and 3, …, clip each pair to −32768 and 32767, add the pairs"
    agrees(student.saturating_matmul, summed, cases, cause, rel=0)
    small, w = rng.integers(0, 60, (3, 9)).astype(np.uint8), rng.integers(-128, 128, (9, 3)).astype(np.int8)
    got = student.saturating_matmul(small, w)
    same(got, small.astype(int) @ w.astype(int), "saturating_matmul where nothing is large", "it is exact", rel=0)


@judges("clipped_share")
def calibration_is_checked(student: Any) -> None:
    """Check that `clipped_share` agrees with counting the values that lie outside the quantisation grid."""
    rng = draw()
    for scale, zero, bits, signed in ((0.1, 100, 8, False), (0.5, 0, 8, True), (1.0, 0, 4, False)):
        low, high = (scale * (end - zero) for end in ((-127, 127) if signed else (0, 2**bits - 1)))
        grid = student.QuantParams(np.array(scale), np.array(zero), bits, signed)
        beside = [low - 0.4 * scale, high + 0.4 * scale, low - 0.6 * scale, high + 0.6 * scale] * 20
        x = np.array([*rng.uniform(low - 6 * scale, high + 6 * scale, 400), *beside])
        truth = float(np.mean((x < low - scale / 2) | (x > high + scale / 2)))
        what, cause = f"clipped_share for {low} to {high}", "beyond an end by more than half a step"
        same(student.clipped_share(x, grid), truth, what, cause)


@judges("int8_pays")
def rules_use_intervals(student: Any) -> None:
    """Check that `int8_pays` is right for all combinations of intervals below, across and above the limits."""
    rng = draw()

    def verdict(kinds: tuple[str, str]) -> str:
        return "does not pay" if "bad" in kinds else "undecided" if "open" in kinds else "pays"

    for max_loss, min_gain in ((0.01, 0.2), (0.03, 0.5), *rng.uniform((0.005, 0.1), (0.05, 0.6), (3, 2)).tolist()):
        inside, outside = rng.uniform((0.8, 1.01), (0.99, 1.3)).tolist()
        far, near = rng.uniform((-1, 0.1), 0.7).tolist()
        limits = {"good": (-1.0, inside), "open": (far, outside), "bad": (outside, 0.2 / max_loss)}
        losses = {kind: (low * max_loss, high * max_loss) for kind, (low, high) in limits.items()}
        keep = 1 - min_gain
        ratios = {"good": (0.2, inside * keep), "open": (near * keep, outside * keep), "bad": (outside * keep, 2.0)}
        for loss, loss_ci in losses.items():
            for gain, ratio_ci in ratios.items():
                case = (loss_ci, ratio_ci, max_loss, min_gain)
                agrees(student.int8_pays, verdict((loss, gain)), [case])


def answer_understanding(student: Any) -> None:
    """Check that identical graphs show no gain, an interval across the limit is undecided, and 75 means 0.5."""
    same(student.true_gain(), 0.0, "question 1", "the same graph is the same speed, whatever p says")
    cause = "the interval 0.63 to 0.84 lies on both sides of 0.8"
    same(student.what_the_rule_says(), "undecided", "question 2", cause)
    same(student.number_behind_75(), 0.5, "question 3", "scale · (q − z)", rel=1e-6)
