"""Hidden checks of module 12: against ONNX's reference evaluator, exact integers and hand-made graphs.

Files are judged by what holds on any machine (integer operators, size, agreement), never by a clock.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.checks import CheckFailed, all_close, close, draw, expect, judges, raises
from tinybench.graphs import load_graph
from tinybench.onnx import weights
from tinybench.quantize import integer_operators


def _graph(nodes: list[Any], tensors: dict[str, np.ndarray], ends: dict[str, int]) -> bytes:
    """Return a graph from x to y, `ends` giving their columns, as bytes."""
    from onnx import TensorProto, helper, numpy_helper

    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, k]) for name, k in ends.items()]
    values = [numpy_helper.from_array(value, name) for name, value in tensors.items()]
    graph = helper.make_graph(nodes, "check", info[:1], info[1:], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model.SerializeToString()  # type: ignore[no-any-return]


def _reference(op: str, *inputs: np.ndarray) -> np.ndarray:
    """Return what ONNX's own reference evaluator makes of one operator."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    names = [f"i{i}" for i in range(len(inputs))]
    info = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    out = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    graph = helper.make_graph([helper.make_node(op, names, ["y"])], "one", info, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    answers: Any = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    return np.asarray(answers[0])


@judges("quantization_params", "quantize", "dequantize")
def grids_span_tensors(student: Any) -> None:
    """Scale and zero point by the formulas; integers as ONNX's QuantizeLinear gives them; the way back."""
    rng = draw()
    tensors = [
        rng.normal(0, 2, 200),
        rng.uniform(3, 9, (20, 5)),
        rng.uniform(-9, -3, (20, 5)),
        rng.normal(0, [0.1, 1, 10, 0, 3], (30, 5)),
    ]
    for x in tensors:
        for bits in (4, 8, 12):
            low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
            scale = (high - low) / (2**bits - 1)
            grid = student.quantization_params(x, bits=bits)
            what = f"affine, {bits} bits, values from {x.min():.2f} to {x.max():.2f}"
            close(grid.scale, scale, f"scale, {what}", cause="(max − min) / (2^b − 1), the range widened to hold 0")
            close(grid.zero_point, round(-low / scale), f"zero point, {what}", cause="round(−min / scale)")
            grid = student.quantization_params(x, True, bits)
            truth = float(np.abs(x).max()) / (2 ** (bits - 1) - 1)
            close(grid.scale, truth, f"scale, symmetric, {bits} bits", cause="max|x| / (2^(b−1) − 1)")
            close(grid.zero_point, 0, "zero point, symmetric")
            expect(bool(grid.signed) and int(grid.bits) == bits, "the grid should keep bits and signed")
    table = tensors[-1]
    for axis, others in ((1, 0), (0, 1), (-1, 0)):
        largest = np.abs(table).max(axis=others)
        grid = student.quantization_params(table, True, axis=axis)
        wanted = np.where(largest > 0, largest / 127, 1.0).tolist()
        all_close(np.ravel(grid.scale), wanted, f"scales of axis {axis}", cause="a channel of zeros has scale 1")
    close(student.quantization_params(np.zeros(3)).scale, 1.0, "the scale of a tensor of zeros")
    for bad in ([1.0, math.nan], [math.inf], []):
        raises(ValueError, lambda b=bad: student.quantization_params(b), f"the tensor {bad}")
    for signed in (False, True):
        step, zero = np.array(0.25, np.float32), 0 if signed else 37
        grid = student.QuantParams(np.array(0.25), np.array(zero), 8, signed)
        x = np.concatenate([rng.normal(0, 15, 300), (np.arange(-40, 40) + 0.5) * 0.25]).astype(np.float32)
        kind = np.int8 if signed else np.uint8
        truth = _reference("QuantizeLinear", x, step, np.array(zero, kind)).astype(int)
        if signed:
            truth = np.maximum(truth, -127)
        got = student.quantize(x, grid)
        expect(str(got.dtype) == np.dtype(kind).name, f"quantize: {np.dtype(kind).name} expected, got {got.dtype}")
        all_close(got.astype(int), truth.tolist(), "quantize", cause="divide, round half to even, add z, clip")
        back = _reference("DequantizeLinear", np.asarray(got), step, np.array(zero, kind)).tolist()
        all_close(student.dequantize(got, grid), back, "dequantize", cause="widen before you subtract z", rel=1e-6)
    wide = student.QuantParams(np.array(0.01), np.array(0), 12, True)
    all_close(student.quantize([20.0, -50.0, 5.0], wide), [2000, -2047, 500], "12 bits do not fit into int8")


@judges("sqnr")
def noise_is_measured(student: Any) -> None:
    """Equals the definition, and about 6.02 dB a bit."""
    rng = draw()
    x = rng.normal(0, 3, (40, 6)) * [1, 1, 1, 0.1, 0.1, 4]
    for bits in (3, 5, 8):
        for axis in (None, 1):
            grid = student.quantization_params(x, True, bits, axis)
            step = np.abs(x).max(axis=None if axis is None else 0) / (2 ** (bits - 1) - 1)
            error = x - np.rint(x / step) * step
            truth = 10 * math.log10(float(np.sum(x**2)) / float(np.sum(error**2)))
            cause = "10 · log10 of power over power"
            close(student.sqnr(x, grid), truth, f"sqnr at {bits} bits, axis {axis}", cause=cause)
    exact = student.QuantParams(np.array(1.0), np.array(0), 8, True)
    close(1 / student.sqnr([1.0, 2.0, -3.0], exact), 0.0, "1 / sqnr of numbers on the grid", cause="return infinity")


def answer_bits(student: Any) -> None:
    """Six decibels a bit; scales cost a little."""
    close(student.decibels_at_five_bits(), 38 - 18.06, "(a)", cause="three bits of 6.02 dB", rel=0.01)
    cause = "old bytes 4 · 784 · 512; new bytes 784 · 512 and 512 scales of 4 bytes"
    close(student.shrink_factor(), 4 * 784 / (784 + 4), "(b)", cause=cause, rel=1e-3)


@judges("int8_matmul")
def products_are_integer(student: Any) -> None:
    """Equals the product of the dequantised numbers, also where narrow sums would overflow, as ONNX's MatMulInteger."""
    rng = draw()
    for k, za, signed in ((4, 0, False), (900, 131, False), (900, 255, False), (50, 0, True)):
        a = rng.integers(-127 if signed else 0, 128 if signed else 256, (6, k)).astype(np.int8 if signed else np.uint8)
        w = rng.integers(100, 128, (k, 3)).astype(np.int8)
        for scale in (np.array(0.02), np.array([[0.01, 0.5, 3.0]])):
            grid = student.QuantParams(np.array(0.1), np.array(za), 8, signed)
            columns = student.QuantParams(scale, np.zeros_like(scale, dtype=np.int64), 8, True)
            exact = (a.astype(int) - za) @ w.astype(int)
            zero = np.array(za, a.dtype)
            expect(
                np.array_equal(_reference("MatMulInteger", a, w, zero), exact), "the check's own truth is inconsistent"
            )
            got = student.int8_matmul(a, grid, w, columns)
            cause = "widen to int32, subtract the zero points, multiply, then both scales"
            all_close(
                np.ravel(got), (exact * 0.1 * scale).ravel().tolist(), "int8_matmul", cause=cause, rel=1e-6, abs=1e-9
            )
    a, w = np.array([[3, 200]], np.uint8), np.array([[10], [250]], np.uint8)
    affine = student.QuantParams(np.array(0.5), np.array(100), 8, False)
    got = student.int8_matmul(a, affine, w, affine)
    all_close(np.ravel(got), [0.25 * (-97 * -90 + 100 * 150)], "int8_matmul with a zero point on both sides")


def _qdq(op: str, linear: np.ndarray, activations: bool, weight: bool = True) -> bytes:
    """Return x · W with `op`, in QDQ form where asked."""
    from onnx import helper

    nodes = []
    first, second = "x", "W"
    if activations:
        nodes += [
            helper.make_node("QuantizeLinear", ["x", "s", "zu"], ["xq"]),
            helper.make_node("DequantizeLinear", ["xq", "s", "zu"], ["xd"]),
        ]
        first = "xd"
    if weight:
        nodes.append(helper.make_node("DequantizeLinear", ["Wq", "s", "zi"], ["Wd"]))
        second = "Wd"
    nodes += [helper.make_node(op, [first, second], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    tensors: dict[str, np.ndarray] = {"W": linear} if not weight else {"Wq": np.rint(linear * 20).astype(np.int8)}
    if weight or activations:
        tensors |= {"s": np.array(0.05, np.float32), "zu": np.array(3, np.uint8), "zi": np.array(0, np.int8)}
    return _graph(nodes, tensors, {"x": linear.shape[0], "y": linear.shape[1]})


@judges("integer_operators", "quantization_verdict")
def fakes_are_found(student: Any) -> None:
    """Integer products count, weights alone do not, and identical graphs are called so."""
    from onnx import helper

    W = draw().normal(size=(5, 4)).astype(np.float32)
    plain = {op: _qdq(op, W, False, False) for op in ("MatMul", "Gemm")}
    for op, original in plain.items():
        cases: tuple[tuple[bool, bool, dict[str, int]], ...]
        cases = ((True, True, {op: 1}), (False, True, {}), (True, False, {}), (False, False, {}))
        for activations, weight, truth in cases:
            content = _qdq(op, W, activations, weight)
            got = student.integer_operators(content)
            kinds = ("quantised" if activations else "float", "INT8" if weight else "float")
            what = f"{op} with {kinds[0]} activations and {kinds[1]} weights"
            expect(got == truth, f"integer_operators of {what}: {truth} expected, got {got}")
            verdict = str(student.quantization_verdict(original, content))
            start = "1 integer operators" if truth else "no integer operators"
            expect(verdict.startswith(start), f"quantization_verdict of {what}: {start!r} expected, got {verdict!r}")
            end = "identical graph" if not activations and not weight else "only the weights are stored in fewer bits"
            expect(
                bool(truth) or verdict.endswith(end),
                f"quantization_verdict of {what}: … {end!r} expected, got {verdict!r}",
            )
    other = _qdq("MatMul", W * np.float32(1.01), False, False)
    verdict = str(student.quantization_verdict(plain["MatMul"], other))
    expect(
        "identical" not in verdict, "the same operators with other numbers are no identical graph: compare the weights"
    )
    constants = [
        helper.make_node("DequantizeLinear", ["Wq", "s", "z"], ["Wd"]),
        helper.make_node("DequantizeLinear", ["Vq", "s", "z"], ["Vd"]),
        helper.make_node("MatMul", ["Wd", "Vd"], ["h"]),
        helper.make_node("MatMul", ["x", "h"], ["y"]),
    ]
    tensors: dict[str, np.ndarray] = {"Wq": np.ones((5, 3), np.int8), "Vq": np.ones((3, 4), np.int8)}
    tensors |= {"s": np.array(0.05, np.float32), "z": np.array(0, np.int8)}
    got = student.integer_operators(_graph(constants, tensors, {"x": 5, "y": 4}))
    expect(got == {}, f"a product of two stored weights has no quantised activations: {{}} expected, got {got}")
    named = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "s", "z"]),
        helper.make_node("MatMulInteger", ["xq", "Wq", "z"], ["h"]),
        helper.make_node("MatMulInteger", ["xq", "Wq", "z"], ["g"]),
        helper.make_node("Add", ["h", "g"], ["i"]),
        helper.make_node("Cast", ["i"], ["y"], to=1),
    ]
    content = _graph(named, {"Wq": np.ones((5, 4), np.int8)}, {"x": 5, "y": 4})
    got = student.integer_operators(content)
    expect(got == {"MatMulInteger": 2}, f"two MatMulInteger expected, got {got}")
    verdict = str(student.quantization_verdict(plain["MatMul"], content))
    expect(verdict == "2 integer operators", f"'2 integer operators' expected, got {verdict!r}")


def _weights_are_as_asked(result: Any, truth: dict[str, np.ndarray], choices: dict[str, Any], most: int) -> None:
    """Compare a file's integers, scales and zero points with the weights: whatever product uses them, it is right."""
    said = f" with {choices}" if choices else ""
    expect(type(result) is bytes and len(result) <= 2 * most, f"a file of at most twice the size expected{said}")
    kept, wanted = weights(result), choices.get("weight_type", "int8")
    for name, weight in truth.items():
        numbers = {n: v for n, v in kept.items() if v.shape == weight.shape}
        kinds = sorted({str(v.dtype) for v in numbers.values()})
        expect(
            kinds == [wanted], f"the weights{said} should be {wanted}, they are {', '.join(kinds)}: weight_type=kind"
        )
        (stem, integers), *_ = numbers.items()
        stem = stem.removesuffix("_quantized")
        scale, zero = kept.get(f"{stem}_scale"), kept.get(f"{stem}_zero_point")
        if scale is None or zero is None:
            raise CheckFailed(f"the file{said} lacks scale or zero point of {name}")
        columns = weight.shape[1] if choices.get("per_channel") else 1
        expect(
            scale.size == columns, f"{name}{said}: {columns} scales expected, {scale.size} found; pass per_channel on"
        )
        shifted = integers.astype(int) - zero.astype(int)
        right = bool(np.all(np.abs(shifted * scale - weight) <= 0.51 * np.abs(scale)))
        expect(right, f"{name}{said} is not what the file's integers times its scales give")
        if "reduce_range" in choices:
            most_bits = 64 if choices["reduce_range"] else 127
            largest = int(np.abs(integers.astype(int)).max())
            expect(
                largest == most_bits, f"{name}{said}: integers up to {most_bits} expected, not {largest}; pass it on"
            )


@judges("saturating_matmul")
def pairs_saturate(student: Any) -> None:
    """Pairs of products are clipped to 16 bits, and nothing else is; counted one by one."""
    rng = draw()
    for n, k, m in ((1, 2, 1), (3, 7, 2), (4, 40, 5)):
        a = rng.integers(128, 256, (n, k)).astype(np.uint8)
        w = (rng.choice([-1, 1], (k, m)) * rng.integers(90, 128, (k, m))).astype(np.int8)
        truth = [
            sum(
                max(-32768, min(32767, sum(int(a[i, h]) * int(w[h, j]) for h in range(pair, min(pair + 2, k)))))
                for pair in range(0, k, 2)
            )
            for i in range(n)
            for j in range(m)
        ]
        got = student.saturating_matmul(a, w)
        cause = "add products 0 and 1, 2 and 3, …, clip each pair to −32768 and 32767, add the pairs"
        all_close(np.ravel(got), truth, f"saturating_matmul of {n} × {k} and {k} × {m}", cause=cause, rel=0)
    small = rng.integers(0, 60, (3, 9)).astype(np.uint8)
    w = rng.integers(-128, 128, (9, 3)).astype(np.int8)
    truth = np.ravel(small.astype(int) @ w.astype(int)).tolist()
    all_close(
        np.ravel(student.saturating_matmul(small, w)), truth, "where nothing is large the product is exact", rel=0
    )


def answer_saturation(student: Any) -> None:
    """Two equal products of 255 within 16 bits."""
    close(student.largest_safe_weight(), 64, "the largest safe weight", cause="2 · 255 · w must not exceed 32767")


@judges("quantize_dynamic_int8")
def dynamic_files_are_integer(student: Any) -> None:
    """A network becomes integer, a quarter of the size, with the weights as asked for; nothing is overwritten."""
    from onnx import helper

    rng = draw()
    W, V = rng.normal(0, 0.1, (96, 512)).astype(np.float32), rng.normal(0, 0.1, (512, 10)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "V"], ["y"]),
    ]
    content = _graph(nodes, {"W": W, "V": V}, {"x": 96, "y": 10})
    folder = str(student.tempfile.mkdtemp())
    student.Path(f"{folder}/network.onnx").write_bytes(content)
    made = student.quantize_dynamic_int8(f"{folder}/network.onnx")
    result = student.Path(str(made)).read_bytes()
    expect(type(result) is bytes, "a path of a file expected")
    expect(str(made).endswith("network-int8-dynamic.onnx"), f"the file should be network-int8-dynamic.onnx, not {made}")
    # a larger one is not even parsed here: a file of empty messages would fill the memory
    expect(len(result) <= 2 * len(content), f"the file has {len(result) / len(content):.2f} of its size")
    found = integer_operators(result)
    expect(sum(found.values()) == 2, f"both products should be integer, got {found or 'none'}")
    ratio = len(result) / len(content)
    expect(ratio <= 0.45, f"the file has {ratio:.2f} of its size; weights of 8 bits take about 0.27")
    inside = not any(tensor.data_location for tensor in load_graph(result).graph.initializer)
    expect(inside, "the weights should be in the file itself")
    choices: dict[str, Any]
    for choices in (
        {},
        {"weight_type": "uint8"},
        {"per_channel": True},
        {"reduce_range": True},
        {"reduce_range": False},
    ):
        path = f"{folder}/{'-'.join(map(str, sum(choices.items(), ())))}.onnx"
        student.quantize_dynamic_int8(f"{folder}/network.onnx", path, **choices)
        _weights_are_as_asked(student.Path(path).read_bytes(), {"W": W, "V": V}, choices, len(content))
    raises(FileExistsError, lambda: student.quantize_dynamic_int8(f"{folder}/network.onnx"), "a result that exists")


@judges("clipped_share", "CalibrationRows.get_next")
def calibration_is_fed_and_checked(student: Any) -> None:
    """Shares by counting; batches in order, in float32, none lost, None at the end."""
    rng = draw()
    for scale, zero, bits, signed, low, high in (
        (0.1, 100, 8, False, -10.0, 15.5),
        (0.5, 0, 8, True, -63.5, 63.5),
        (1.0, 0, 4, False, 0.0, 15.0),
    ):
        grid = student.QuantParams(np.array(scale), np.array(zero), bits, signed)
        x = rng.uniform(low - 6 * scale, high + 6 * scale, 400)
        x = np.concatenate([x, [low - 0.4 * scale, high + 0.4 * scale, low - 0.6 * scale, high + 0.6 * scale] * 20])
        truth = float(np.mean((x < low - scale / 2) | (x > high + scale / 2)))
        cause = "beyond an end by more than half a step"
        close(student.clipped_share(x, grid), truth, f"clipped_share for {low} to {high}", cause=cause)
    for n, batch in ((10, 4), (8, 4), (3, 64), (1, 1)):
        rows = rng.normal(size=(n, 2))
        reader = student.CalibrationRows(rows, "pixels", batch)
        got: list[np.ndarray] = []
        for _ in range(n + 2):
            piece = reader.get_next()
            if piece is None:
                break
            expect(
                list(piece) == ["pixels"], f"get_next: a dictionary with the input's name expected, got {list(piece)}"
            )
            expect(str(piece["pixels"].dtype) == "float32", f"get_next: float32 expected, got {piece['pixels'].dtype}")
            got.append(np.asarray(piece["pixels"]))
        else:
            expect(False, "get_next should return None after the last batch")
        sizes = [min(batch, n - start) for start in range(0, n, batch)]
        expect(
            [len(p) for p in got] == sizes,
            f"{n} rows by {batch}: batches of {sizes} expected, got {[len(p) for p in got]}",
        )
        all_close(np.concatenate(got).ravel(), rows.ravel().tolist(), "the rows that were fed", rel=1e-5, abs=1e-6)
        expect(reader.get_next() is None, "get_next should stay None after the last batch")


@judges("int8_pays", "claim_verdict")
def rules_use_intervals(student: Any) -> None:
    """Every combination of ends on either side of the limits."""
    rng = draw()
    drawn = rng.uniform((0.005, 0.1), (0.05, 0.6), (3, 2)).tolist()
    for max_loss, min_gain in ((0.01, 0.2), (0.03, 0.5), *drawn):
        inside, outside = (float(x) for x in rng.uniform((0.8, 1.01), (0.99, 1.3)))
        losses = {
            "good": (-max_loss, inside * max_loss),
            "open": (float(rng.uniform(-1, 0.7)) * max_loss, outside * max_loss),
            "bad": (outside * max_loss, 0.2),
        }
        keep = 1 - min_gain
        ratios = {
            "good": (0.2, inside * keep),
            "open": (float(rng.uniform(0.1, 0.7)) * keep, outside * keep),
            "bad": (outside * keep, 2.0),
        }
        for loss, loss_ci in losses.items():
            for gain, ratio_ci in ratios.items():
                truth = "does not pay" if "bad" in (loss, gain) else "undecided" if "open" in (loss, gain) else "pays"
                got = str(student.int8_pays(loss_ci, ratio_ci, max_loss, min_gain))
                expect(
                    got == truth,
                    f"int8_pays with loss {loss_ci} and time ratio {ratio_ci} (limits {max_loss}, {min_gain}): "
                    f"{truth!r} expected, got {got!r}",
                )
    for low, wide in ((2.0, 1.0), *rng.uniform(0.5, 5, (3, 2)).tolist()):
        high, beside, middle = low + wide, float(rng.uniform(0.05, 0.4)), low + float(rng.uniform(0.1, 0.9)) * wide
        for interval, truth in (
            ((low + beside * wide, high - beside * wide), "as claimed"),
            ((low, high), "as claimed"),
            ((high + beside, 3 * high), "more than claimed"),
            ((0.1, low - beside), "less than claimed"),
            ((low - beside, middle), "cannot tell"),
            ((middle, high + beside), "cannot tell"),
            ((low - beside, high + beside), "cannot tell"),
        ):
            got = str(student.claim_verdict(interval, low, high))
            expect(
                got == truth,
                f"claim_verdict of {interval} for a claim of {low} to {high}: {truth!r} expected, got {got!r}",
            )


@judges("throughput_and_bandwidth")
def rates_are_per_second(student: Any) -> None:
    """Rows count with the batch, weights once."""
    rng = draw()
    for _ in range(8):
        latency, batch = float(rng.uniform(1e-5, 1e-2)), int(rng.integers(1, 512))
        size, row = int(rng.integers(10_000, 10_000_000)), int(rng.integers(100, 5000))
        got = student.throughput_and_bandwidth(latency, batch, size, row)
        truth = [batch / latency, (size + batch * row) / latency]
        all_close(got, truth, "throughput_and_bandwidth", cause="weights are read once a call, rows once each")


def answer_understanding(student: Any) -> None:
    """Identical graphs are equally fast; an interval across the limit decides nothing; the grid's way back."""
    close(student.true_gain(), 0.0, "question 1", cause="the same graph is the same speed, whatever p says")
    expect(
        str(student.what_the_rule_says()) == "undecided",
        "question 2: the interval 0.63 to 0.84 lies on both sides of 0.8",
    )
    close(student.number_behind_75(), 0.5, "question 3", cause="scale · (q − z)", rel=1e-6)
