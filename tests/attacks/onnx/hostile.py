"""Hostile entries, built in code: each with the words by which its author learns why it is refused."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from google.protobuf.internal.encoder import _VarintBytes
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from autograder.leaderboard.digits import CLASSES
from tests.leaderboard.boards import dense, model
from tinybench.course.case_study_data import FEATURES

Build = Callable[[], bytes]
node, declared, array = helper.make_node, helper.make_tensor_value_info, numpy_helper.from_array


def changed(change: Callable[[Any], object]) -> bytes:
    """Return a valid entry after one change."""
    made = onnx.ModelProto.FromString(dense())
    change(made)
    return bytes(made.SerializeToString())


def part(number: int, content: bytes) -> bytes:
    """Return a length-delimited protobuf field."""
    return _VarintBytes(number << 3 | 2) + _VarintBytes(len(content)) + content


def outside(location: str, **more: str) -> bytes:
    """Return an entry whose weights lie in another file."""

    def change(made: Any) -> None:
        tensor = made.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **more}.items():
            tensor.external_data.add(key=key, value=value)

    return changed(change)


def declares(dims: list[int], kind: int = TensorProto.FLOAT) -> bytes:
    """Return an entry with a constant that says it is larger than it is."""
    big = TensorProto(name="big", dims=dims, data_type=kind, raw_data=b"1234")
    return changed(lambda made: made.graph.initializer.append(big))


def branch() -> Any:
    return helper.make_graph([node("Identity", ["sums"], ["b"])], "b", [], [])


def with_node(*nodes: Any, **changes: Any) -> bytes:
    """Return an entry whose scores come from the given nodes."""
    shape = (FEATURES, CLASSES)
    constants = {
        "w": np.ones(shape, np.float32),
        "random": np.random.default_rng(0).normal(size=shape).astype(np.float32),
        "zero": np.array([0], np.int64),
        "n": np.array([7], np.int64),
    }
    used = {name for each in nodes for name in each.input}
    made = model(nodes, [array(values, name) for name, values in constants.items() if name in used], **changes)
    return bytes(made.SerializeToString())


MATMUL = node("MatMul", ["digits", "w"], ["scores"])


def nested_functions() -> bytes:
    """Return functions that call each other two for one, a hundred deep: 2¹⁰⁰ nodes when inlined."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    functions = [
        helper.make_function(
            "mine", f"f{depth}", ["x"], ["y"], [node(f"f{depth + 1}", [a], [b], domain="mine") for a, b in ("xt", "ty")], opsets
        )
        for depth in range(100)
    ]  # fmt: skip
    functions.append(helper.make_function("mine", "f100", ["x"], ["y"], [node("Relu", ["x"], ["y"])], opsets[:1]))
    made = model([node("f0", ["digits"], ["scores"], domain="mine")])
    made.functions.extend(functions)
    return bytes(made.SerializeToString())


def nested_graphs() -> bytes:
    """Return graphs within attributes within graphs, deeper than protobuf reads."""
    inner = b""
    for _ in range(300):
        inner = part(1, part(4, b"If") + part(5, part(6, inner)))
    return part(7, inner)


def sparse() -> bytes:
    """Return a sparse constant of 2²⁹ numbers in a few bytes."""
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [0])
    tensor = helper.make_sparse_tensor(values, indices, [2**29])
    return changed(lambda made: made.graph.sparse_initializer.append(tensor))


def attribute(**content: Any) -> bytes:
    """Return an entry with a strange attribute on its first node."""
    return changed(lambda made: made.graph.node[0].attribute.append(AttributeProto(name="odd", **content)))


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../../etc/cron.d/x", "boo")
    return out.getvalue()


def rename(made: Any) -> None:
    made.graph.node[0].op_type = "<script>alert(1)</script>"


DIGITS = declared("digits", TensorProto.FLOAT, [None, FEATURES])

FILES: dict[str, tuple[Build, str]] = {
    "empty": (lambda: b"", "is empty"),
    "random bytes": (lambda: np.random.default_rng(0).bytes(50_000), "not an .onnx file"),
    "text": (lambda: b"hello, this is a model, honestly" * 100, "not an .onnx file"),
    "cut off": (lambda: dense()[:-100], "not an .onnx file"),
    "trailing junk": (lambda: dense() + b"\xff" * 64, "not an .onnx file"),
    "too large": (lambda: dense() + part(6, bytes(17 * 2**20)), "at most 16 MB"),
    "ort renamed": (lambda: b"\x18\x00\x00\x00ORTM" + bytes(200), ".ort file"),
    "zip with path escape": (zipped, "zip archive"),
    "pickle": (lambda: b"\x80\x04\x95" + bytes(100), "pickle"),
    "million empty nodes": (lambda: part(7, b"\x0a\x00" * 4_000_000), "more than 60000 parts"),
    "million empty tensors in an attribute": (lambda: part(7, part(1, part(5, b"\x52\x00" * 4_000_000))), "more than 60000 parts"),
    "million packed integers": (lambda: part(7, part(5, part(7, b"\x01" * 15_000_000))), "numbers outside raw data"),
    "million listed integers": (lambda: part(7, part(1, part(5, b"\x40\x01" * 8_000_001))), "at most 16 MB|numbers outside raw data"),
    "no graph": (lambda: onnx.ModelProto(ir_version=10).SerializeToString(), "no graph"),
    "path escape": (lambda: outside("../../../../etc/passwd"), "outside the file"),
    "absolute path": (lambda: outside("/etc/shadow"), "outside the file"),
    "neighbour file": (lambda: outside("other_student.onnx", offset="0", length="4096"), "outside the file"),
    "symbolic link": (lambda: outside("link_to_secret"), "outside the file"),
    "device": (lambda: outside("/dev/zero", length=str(2**40)), "outside the file"),
    "external data without the flag": (lambda: changed(lambda made: made.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")), "outside the file"),
    "external data in an attribute": (lambda: attribute(type=AttributeProto.TENSOR, t=TensorProto(data_type=1, dims=[1], data_location=1)), "outside the file"),
    "giant constant": (lambda: declares([2**20, 2**20]), "declares 1099511627776 numbers"),
    "overflowing constant": (lambda: declares([2**32, 2**32]), "declares 18446744073709551616 numbers"),
    "constant of many huge dimensions": (lambda: declares([2**62] * 300_000), "has 300000 dimensions; at most 8"),
    "tensor of many huge dimensions": (lambda: changed(lambda made: made.graph.value_info.append(declared("units", 1, [2**62] * 20_000))), "declared with 20000 dimensions"),
    "thousands of declared tensors": (lambda: changed(lambda made: made.graph.value_info.extend(declared(f"t{n}", 1, [1]) for n in range(5000))), "declares 5004 constants and tensors"),
    "operator whose name is no text": (lambda: dense() + part(7, part(1, part(4, b"\xff\xfe"))), "not UTF-8"),
    "long constant whose name is no text": (lambda: dense() + part(7, part(5, b"\x10\x08" + part(8, b"\xff" * 100))), "not UTF-8"),
    "negative size": (lambda: declares([-1, 4]), "negative size"),
    "constant that holds less": (lambda: declares([1000, 1000]), "holds something else"),
    "text constant": (lambda: declares([1], TensorProto.STRING), "holds text"),
    "unknown type": (lambda: declares([1], 99), "type that is not allowed"),
    "sparse 2^29": (sparse, "sparse"),
    "sparse in an attribute": (lambda: attribute(type=AttributeProto.SPARSE_TENSOR, sparse_tensor=onnx.SparseTensorProto()), "sparse"),
    "graph in an attribute": (lambda: attribute(type=AttributeProto.GRAPH, g=branch()), "holds a graph"),
    "graph hidden under another type": (lambda: attribute(type=AttributeProto.INT, i=1, g=branch()), "holds a graph"),
    "endless loop": (lambda: with_node(node("Loop", ["", ""], ["scores"], body=branch())), "'Loop' is not allowed"),
    "scan": (lambda: with_node(node("Scan", ["digits"], ["scores"], body=branch(), num_scan_inputs=1)), "'Scan' is not allowed"),
    "if": (lambda: with_node(node("If", ["digits"], ["scores"], then_branch=branch(), else_branch=branch())), "straight line"),
    "random scores": (lambda: with_node(node("RandomNormalLike", ["digits"], ["scores"])), "same answers"),
    "giant out of a number": (lambda: with_node(node("ConstantOfShape", ["n"], ["scores"])), "'ConstantOfShape' is not allowed"),
    "expand": (lambda: with_node(node("Expand", ["digits", "n"], ["scores"])), "'Expand' is not allowed"),
    "custom operator": (lambda: with_node(node("Own", ["digits"], ["scores"], domain="evil")), "domain 'evil'"),
    "operator of the runtime": (lambda: with_node(node("EPContext", ["digits"], ["scores"], domain="com.microsoft")), "'EPContext' is not allowed"),
    "nested functions": (nested_functions, "functions of its own"),
    "nested graphs": (nested_graphs, "not an .onnx file"),
    "training information": (lambda: changed(lambda made: made.training_info.add()), "training information"),
    "several devices": (lambda: changed(lambda made: made.configuration.add(name="x")), "devices"),
    "IR version of tomorrow": (lambda: changed(lambda made: setattr(made, "ir_version", 99)), "IR version is 99"),
    "opset of tomorrow": (lambda: changed(lambda made: setattr(made.opset_import[0], "version", 99)), "opset is 99"),
    "no opset": (lambda: changed(lambda made: made.ClearField("opset_import")), "which opset"),
    "too many nodes": (lambda: changed(lambda made: made.graph.node.extend([made.graph.node[1]] * 3000)), "nodes; at most 2000"),
    "too many weights": (lambda: changed(lambda made: made.graph.initializer.append(array(np.zeros((4_000_001,), np.int8), "z"))), "weights"),
    "declared giant": (lambda: changed(lambda made: made.graph.value_info.append(declared("units", 1, [2**31, 2**31]))), "too large"),
    "script in a name": (lambda: changed(rename), "is not allowed"),
    "cycle": (lambda: with_node(node("Add", ["b", "digits"], ["a"]), node("Relu", ["a"], ["b"]), MATMUL), "checker says"),
    "two of a name": (lambda: with_node(MATMUL, MATMUL), "checker says"),
    "two inputs": (lambda: with_node(MATMUL, inputs=[DIGITS, declared("x", 1, [None])]), "2 inputs"),
    "fixed batch": (lambda: with_node(MATMUL, inputs=[declared("digits", 1, [1, FEATURES])]), "n not fixed"),
    "float64": (lambda: with_node(MATMUL, inputs=[declared("digits", TensorProto.DOUBLE, [None, FEATURES])]), "float32 tensor"),
    "eleven scores": (lambda: with_node(MATMUL, outputs=[declared("scores", 1, [None, 11])]), "scores of the digits"),
    "no tensor as output": (lambda: with_node(MATMUL, outputs=[onnx.ValueInfoProto(name="scores")]), "no tensor"),
}  # fmt: skip


def chain(length: int = 1900) -> bytes:
    """Return a legal chain of large MatMuls: a few kilobytes, hours of work."""
    names = ["wide", *(f"s{number}" for number in range(length))]
    nodes = [node("MatMul", ["digits", "first"], ["wide"])]
    nodes += [node("MatMul", [a, "square"], [b]) for a, b in pairwise(names)]
    nodes += [node("MatMul", [names[-1], "last"], ["scores"])]
    shapes = {"square": (1500, 1500), "first": (FEATURES, 1500), "last": (1500, CLASSES)}
    constants = [
        array(np.full(shape, 1 / 1500 if name == "square" else 1, np.float32), name) for name, shape in shapes.items()
    ]
    return bytes(model(nodes, constants).SerializeToString())


def slow_to_load() -> bytes:
    """Return a chain of products of constants, which the runtime works out while it loads the model."""
    names = ["square", *(f"s{number}" for number in range(100))]
    nodes = [node("MatMul", [a, "square"], [b]) for a, b in pairwise(names)]
    nodes += [
        node("ReduceSum", [names[-1]], ["sum"], keepdims=0),
        node("MatMul", ["digits", "w"], ["sums"]),
        node("Add", ["sums", "sum"], ["scores"]),
    ]
    square, weights = np.full((1400, 1400), 1 / 1400, np.float32), np.ones((FEATURES, CLASSES), np.float32)
    return bytes(model(nodes, [array(square, "square"), array(weights, "w")]).SerializeToString())


def memory_bomb() -> bytes:
    """Return outer products of the digits with themselves: legal, and larger at each step."""
    nodes = [
        node("Unsqueeze", ["digits", "two"], ["column"]),
        node("Unsqueeze", ["digits", "one"], ["row"]),
        node("Mul", ["column", "row"], ["square"]),
        node("Unsqueeze", ["square", "three"], ["deep"]),
        node("Unsqueeze", ["row", "one"], ["flat"]),
        node("Mul", ["deep", "flat"], ["cube"]),
        node("ReduceSum", ["cube", "axes"], ["sums"], keepdims=0),
        node("Unsqueeze", ["sums", "one"], ["sum"]),
        node("MatMul", ["sum", "ten"], ["scores"]),
    ]
    axes = {"one": [1], "two": [2], "three": [3], "axes": [1, 2, 3]}
    constants = [array(np.array(values, np.int64), name) for name, values in axes.items()]
    return bytes(model(nodes, [*constants, array(np.ones((1, CLASSES), np.float32), "ten")]).SerializeToString())


def not_a_number() -> bytes:
    """Return scores that are not numbers."""
    steps = node("Sub", ["sums", "sums"], ["nothing"]), node("Div", ["nothing", "nothing"], ["scores"])
    return with_node(node("MatMul", ["digits", "w"], ["sums"]), *steps)


def wrong_shape() -> bytes:
    """Return scores of another shape than declared."""
    steps = node("MatMul", ["digits", "w"], ["sums"]), node("Transpose", ["sums"], ["scores"], perm=[1, 0])
    return with_node(*steps)


def by_company() -> bytes:
    """Return answers that depend on the other digits of the batch: each is compared with the batch's mean."""
    return with_node(
        node("MatMul", ["digits", "w"], ["same"]),
        node("ReduceMean", ["digits", "zero"], ["mean"], keepdims=1),
        node("Sub", ["digits", "mean"], ["apart"]),
        node("MatMul", ["apart", "random"], ["scores"]),
    )


# Valid by their file: only measuring them shows what they are.
MEASURED: dict[str, tuple[Build, str]] = {
    "huge legal chain of products": (chain, r"works longer than \S+ s|took .* s; at most"),
    "hours of work while it is loaded": (slow_to_load, r"works longer than \S+ s"),
    "memory bomb": (memory_bomb, "memory"),
    "no numbers": (not_a_number, "not numbers"),
    "wrong shape": (wrong_shape, "scores"),
    "answers by company": (by_company, "other digits of the batch"),
}
