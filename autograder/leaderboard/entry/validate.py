"""The check of whether a file is a safe and valid entry. It takes a few milliseconds and does not run the file."""

from __future__ import annotations

import hashlib
import logging
import math
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, TensorProto

from autograder.leaderboard.digits import CLASSES
from autograder.leaderboard.entry.protobuf_limits import Malformed, check_limits
from autograder.leaderboard.settings import EntryLimits
from tinybench.course.case_study_data import FEATURES
from tinybench.support.basics.numbers import number_of

ALLOWED = tomllib.loads(Path(__file__).with_name("operators.toml").read_text(encoding="utf-8"))
DOMAINS = ALLOWED["domains"]
BITS: dict[int, int] = {
    TensorProto.FLOAT: 32, TensorProto.DOUBLE: 64, TensorProto.FLOAT16: 16, TensorProto.BFLOAT16: 16,
    TensorProto.INT64: 64, TensorProto.INT32: 32, TensorProto.INT16: 16, TensorProto.INT8: 8, TensorProto.INT4: 4,
    TensorProto.UINT64: 64, TensorProto.UINT32: 32, TensorProto.UINT16: 16, TensorProto.UINT8: 8, TensorProto.UINT4: 4,
    TensorProto.BOOL: 8,
}  # fmt: skip
RANK = 8  # limit for the dimensions of a tensor; the product of more sizes could have millions of digits
DECLARED = 4000  # limit for the sum of constants, inputs, outputs, and tensors with a shape
ATTRIBUTES = (
    AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING, AttributeProto.TENSOR,
    AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS,
)  # fmt: skip


class EntryRefused(ValueError):
    """The file is not a valid entry. The message is shown to its author."""


@dataclass(frozen=True)
class Facts:
    """The hash, the size and the composition of a valid entry."""

    sha256: str
    size: int
    nodes: int
    weights: int
    operators: dict[str, int]
    opset: int


def check(data: bytes, limits: EntryLimits | None = None) -> Facts:
    """Return a description of an entry. If the file is not safe or valid, raise EntryRefused, which says what to do."""
    try:
        return _check(data, limits or EntryLimits())
    except EntryRefused:
        raise
    except Exception:
        # An unforeseen kind of file also gets a message, and the log lets the instructor examine it.
        logging.getLogger(__name__).exception("the entry check failed on a file of %d bytes", len(data))
        raise EntryRefused("the entry check fails on it; export it again, or tell your instructor") from None


def _check(data: bytes, limits: EntryLimits) -> Facts:
    model = parse(data, limits)
    _check_versions(model)
    weights = check_graph(model.graph, limits)
    _check_signature(model.graph)
    try:
        onnx.checker.check_model(model)
    except Exception as error:  # the checker raises several unrelated types
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise EntryRefused(f"ONNX's own checker says: {lines[0][:300] if lines else type(error).__name__}") from None
    operators = dict(sorted(Counter(node.op_type for node in model.graph.node).items()))
    opset = next(entry.version for entry in model.opset_import if not _domain(entry))
    return Facts(hashlib.sha256(data).hexdigest(), len(data), len(model.graph.node), weights, operators, opset)


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:57] + "…")


def parse(data: bytes, limits: EntryLimits) -> onnx.ModelProto:
    """Return the model in a file. Raise EntryRefused if the file is too large, malformed, or of another kind."""
    if not data:
        raise EntryRefused("the file is empty")
    if len(data) > limits.size:
        raise EntryRefused(f"the file has {len(data) / 2**20:.1f} MB; at most {limits.size_mb:g} MB are allowed")
    if data[4:8] == b"ORTM":
        raise EntryRefused("this is an .ort file, renamed; enter the .onnx file it was made from")
    for magic, kind in {b"PK\x03\x04": "a zip archive", b"\x80\x04\x95": "a pickle", b"\x1f\x8b": "gzip"}.items():
        if data.startswith(magic):
            raise EntryRefused(f"this is {kind}, not an .onnx file; export the model with skl2onnx.to_onnx")
    try:
        check_limits(data)
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except Malformed as error:
        raise EntryRefused(f"this is not an .onnx file we can read: {error}") from None
    except DecodeError:
        raise EntryRefused("this is not an .onnx file: protobuf cannot read it, or it is cut off") from None
    if not model.HasField("graph") or not model.graph.node:
        raise EntryRefused("this is not an .onnx file: it has no graph, or one without nodes")
    return model


def _check_versions(model: onnx.ModelProto) -> None:
    if model.functions:
        raise EntryRefused("it defines functions of its own; export it again with the functions inlined")
    if model.training_info:
        raise EntryRefused("it carries training information; export it for inference")
    if model.configuration:
        raise EntryRefused("it is split over devices; export it for one CPU")
    oldest, newest = ALLOWED["ir_versions"]
    if not oldest <= model.ir_version <= newest:
        raise EntryRefused(
            f"its IR version is {model.ir_version}; allowed are {oldest} to {newest} (set model.ir_version = 10)"
        )
    for entry in model.opset_import:
        domain = _domain(entry)
        if domain not in DOMAINS:
            continue  # quantisers list every domain; a domain that no node uses is harmless
        oldest, newest = DOMAINS[domain]["versions"]
        if not oldest <= entry.version <= newest:
            name = f"opset of {domain}" if domain else "opset"
            raise EntryRefused(f"its {name} is {entry.version}; allowed are {oldest} to {newest}")
    if "" not in map(_domain, model.opset_import):
        raise EntryRefused("it does not say which opset it uses; export it again with opset 21")


def _domain(item: Any) -> str:
    """Return the operator domain of a node or an import.

    ONNX's own domain has two names. For both, return the empty one.
    """
    return "" if item.domain == "ai.onnx" else str(item.domain)


def check_graph(graph: onnx.GraphProto, limits: EntryLimits) -> int:
    """Check the nodes and constants of a graph, and return its number of weights.

    Raise EntryRefused if a check fails.
    """
    if len(graph.node) > limits.nodes:
        raise EntryRefused(f"it has {number_of(len(graph.node), 'node')}; at most {limits.nodes} are allowed")
    declared = len(graph.initializer) + len(graph.input) + len(graph.output) + len(graph.value_info)
    if declared > DECLARED:
        raise EntryRefused(f"it declares {number_of(declared, 'constant')} and tensors; at most {DECLARED} are allowed")
    if graph.sparse_initializer:
        raise EntryRefused("it has sparse constants; store them dense")
    for node in graph.node:
        _check_operator(node)
    weights = sum(_check_tensor(tensor, limits) for tensor in graph.initializer)
    weights += sum(_check_attribute(attribute, limits) for node in graph.node for attribute in node.attribute)
    if weights > limits.weights:
        raise EntryRefused(f"it has {number_of(weights, 'weight')}; at most {limits.weights} are allowed")
    for value in [*graph.value_info, *graph.input, *graph.output]:
        _check_shape(value, limits)
    return weights


def _check_operator(node: onnx.NodeProto) -> None:
    domain = _domain(node)
    if domain not in DOMAINS:
        raise EntryRefused(f"operator {_quoted(node.op_type)} is not allowed: it is of the domain {_quoted(domain)}")
    if node.op_type not in DOMAINS[domain]["operators"]:
        raise EntryRefused(f"operator {_quoted(node.op_type)} is not allowed: {_why_not(node.op_type)}")


def _check_shape(value: onnx.ValueInfoProto, limits: EntryLimits) -> None:
    name, sizes = _quoted(value.name), value.type.tensor_type.shape.dim
    if len(sizes) > RANK:
        raise EntryRefused(
            f"tensor {name} is declared with {number_of(len(sizes), 'dimension')}; at most {RANK} are allowed"
        )
    numbers = math.prod(max(1, size.dim_value) for size in sizes)
    if numbers > limits.weights:
        raise EntryRefused(f"tensor {name} is declared with {number_of(numbers, 'number')}; that is too large")


def _why_not(operator: str) -> str:
    if operator in ("If", "Loop", "Scan"):
        return "the graph must be a straight line of arithmetic"
    if operator.startswith("Random") or operator in ("Bernoulli", "Multinomial"):
        return "the same digits must always get the same answers"
    return "the rules list those that are"


def _check_attribute(attribute: AttributeProto, limits: EntryLimits) -> int:
    name = _quoted(attribute.name)
    if attribute.HasField("g") or attribute.graphs:
        raise EntryRefused(f"attribute {name} holds a graph; the graph must be a straight line of arithmetic")
    if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
        raise EntryRefused(f"attribute {name} holds a sparse tensor; store it dense")
    if attribute.tensors or attribute.HasField("tp") or attribute.type_protos or attribute.ref_attr_name:
        raise EntryRefused(f"attribute {name} holds what no allowed operator takes")
    if attribute.type not in ATTRIBUTES:
        raise EntryRefused(f"attribute {name} is of a type that no allowed operator takes")
    return len(attribute.floats) + (_check_tensor(attribute.t, limits) if attribute.HasField("t") else 0)


def _check_tensor(tensor: TensorProto, limits: EntryLimits) -> int:
    """Check one constant, and return the count of numbers that it holds."""
    name = _quoted(tensor.name)
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise EntryRefused(f"constant {name} is outside the file; use onnx.save(…, save_as_external_data=False)")
    if tensor.data_type == TensorProto.STRING or tensor.string_data:
        raise EntryRefused(f"constant {name} holds text; digits need numbers only")
    if tensor.data_type not in BITS or tensor.HasField("segment"):
        raise EntryRefused(f"constant {name} is of a type that is not allowed")
    if len(tensor.dims) > RANK:
        raise EntryRefused(
            f"constant {name} has {number_of(len(tensor.dims), 'dimension')}; at most {RANK} are allowed"
        )
    if any(size < 0 for size in tensor.dims):
        raise EntryRefused(f"constant {name} has a negative size")
    numbers: int = math.prod(tensor.dims)
    if numbers > limits.weights:
        raise EntryRefused(
            f"constant {name} declares {number_of(numbers, 'number')}; at most "
            f"{number_of(limits.weights, 'weight')} are allowed"
        )
    bits = BITS[tensor.data_type]
    fields = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
    typed = sum(map(len, fields))
    held, needed = (typed, numbers) if typed else (len(tensor.raw_data), math.ceil(numbers * bits / 8))
    if typed and bits == 4:
        needed = math.ceil(numbers / 2)
    if held != needed or (typed and tensor.raw_data):
        raise EntryRefused(f"constant {name} declares {number_of(numbers, 'number')} and holds something else")
    return numbers


def _check_signature(graph: onnx.GraphProto) -> None:
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    wanted = f"a float32 tensor (n, {FEATURES})"
    if len(inputs) != 1:
        raise EntryRefused(f"it has {number_of(len(inputs), 'input')}; it must have one, {wanted}")
    if _shape(inputs[0]) != (TensorProto.FLOAT, [0, FEATURES]):
        raise EntryRefused(f"its input is {_described(inputs[0])}; it must be {wanted}, n not fixed")
    if len(graph.output) not in (1, 2):
        raise EntryRefused(
            f"it has {number_of(len(graph.output), 'output')}; it must have the scores, or labels and then scores"
        )
    scores = graph.output[-1]
    if _shape(scores) != (TensorProto.FLOAT, [0, CLASSES]):
        hint = " (convert with options={'zipmap': False})" if scores.type.HasField("sequence_type") else ""
        raise EntryRefused(
            f"its output {_quoted(scores.name)} is {_described(scores)}; it must be the scores of the digits 0 to 9, "
            f"a float32 tensor (n, {CLASSES}), n not fixed{hint}"
        )
    labels = ((TensorProto.INT64, [0]), (TensorProto.INT64, [0, 1]))
    if len(graph.output) == 2 and _shape(graph.output[0]) not in labels:
        raise EntryRefused(f"its first output {_quoted(graph.output[0].name)} must be the labels, an int64 tensor (n,)")


def _shape(value: Any) -> tuple[int, list[int]]:
    """Return the element type and the sizes of a tensor. The size 0 means that a size is not fixed."""
    kind = value.type.tensor_type
    return kind.elem_type, [dim.dim_value for dim in kind.shape.dim]


def _described(value: Any) -> str:
    if not value.type.HasField("tensor_type"):
        return "no tensor"
    kind, sizes = _shape(value)
    name = TensorProto.DataType.Name(kind).lower() if kind in TensorProto.DataType.values() else f"of type {kind}"
    return f"{name} ({', '.join(str(size) if size else 'n' for size in sizes)})"
