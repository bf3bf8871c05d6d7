"""Is this file a safe and valid entry? Decided in milliseconds, without running anything of it."""

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

from autograder.leaderboard.digits import CLASSES, FEATURES
from autograder.leaderboard.entry.protobuf_limits import Malformed, scan
from autograder.leaderboard.settings import EntryLimits

ALLOWED = tomllib.loads(Path(__file__).with_name("operators.toml").read_text(encoding="utf-8"))
DOMAINS = ALLOWED["domains"]
BITS: dict[int, int] = {
    TensorProto.FLOAT: 32, TensorProto.DOUBLE: 64, TensorProto.FLOAT16: 16, TensorProto.BFLOAT16: 16,
    TensorProto.INT64: 64, TensorProto.INT32: 32, TensorProto.INT16: 16, TensorProto.INT8: 8, TensorProto.INT4: 4,
    TensorProto.UINT64: 64, TensorProto.UINT32: 32, TensorProto.UINT16: 16, TensorProto.UINT8: 8, TensorProto.UINT4: 4,
    TensorProto.BOOL: 8,
}  # fmt: skip
RANK = 8  # a product of more sizes can have millions of digits
DECLARED = 4000  # constants, inputs, outputs, and tensors with a shape
ATTRIBUTES = (
    AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING, AttributeProto.TENSOR,
    AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS,
)  # fmt: skip


class Refused(ValueError):
    """This file is no entry; the message is the sentence its author reads."""


@dataclass(frozen=True)
class Facts:
    """What a valid entry is, read from the file."""

    sha256: str
    size: int
    nodes: int
    weights: int
    operators: dict[str, int]
    opset: int


def check(data: bytes, limits: EntryLimits | None = None) -> Facts:
    """Tell what an entry is, or why it is none.

    Parameters
    ----------
    data
        The bytes of the file.
    limits
        Caps on size, nodes and weights.

    Returns
    -------
    Facts
        Its hash, its size, and what it is made of.

    Raises
    ------
    Refused
        If it is not safe or not valid; the message says why and what to do.
    """
    try:
        return _check(data, limits or EntryLimits())
    except Refused:
        raise
    except Exception:
        # Files of a kind nobody thought of end with a sentence too, and are to be looked at.
        logging.getLogger(__name__).exception("the entry check failed on a file of %d bytes", len(data))
        raise Refused("the entry check cannot make sense of it; export it again, or tell your instructor") from None


def _check(data: bytes, limits: EntryLimits) -> Facts:
    model = parse(data, limits)
    _check_versions(model)
    weights = check_graph(model.graph, limits)
    _check_signature(model.graph)
    try:
        onnx.checker.check_model(model)
    except Exception as error:  # the checker raises several unrelated types
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise Refused(f"ONNX's own checker says: {lines[0][:300] if lines else type(error).__name__}") from None
    return Facts(
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        nodes=len(model.graph.node),
        weights=weights,
        operators=dict(sorted(Counter(node.op_type for node in model.graph.node).items())),
        opset=next(entry.version for entry in model.opset_import if not _domain(entry)),
    )


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:57] + "…")


def parse(data: bytes, limits: EntryLimits) -> onnx.ModelProto:
    """Return the model that a file holds; raise Refused if it is too large, of another kind, or cannot be scanned."""
    if not data:
        raise Refused("the file is empty")
    if len(data) > limits.size:
        raise Refused(f"the file has {len(data) / 2**20:.1f} MB; at most {limits.size_mb:g} MB are allowed")
    if data[4:8] == b"ORTM":
        raise Refused("this is an .ort file, renamed; enter the .onnx file it was made from")
    for magic, kind in {b"PK\x03\x04": "a zip archive", b"\x80\x04\x95": "a pickle", b"\x1f\x8b": "gzip"}.items():
        if data.startswith(magic):
            raise Refused(f"this is {kind}, not an .onnx file; export the model with skl2onnx.to_onnx")
    try:
        scan(data)
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except Malformed as error:
        raise Refused(f"this is not an .onnx file we can read: {error}") from None
    except DecodeError:
        raise Refused("this is not an .onnx file: protobuf cannot read it, or it is cut off") from None
    if not model.HasField("graph") or not model.graph.node:
        raise Refused("this is not an .onnx file: it has no graph, or one without nodes")
    return model


def _check_versions(model: onnx.ModelProto) -> None:
    if model.functions:
        raise Refused("it defines functions of its own; export it again with the functions inlined")
    if model.training_info:
        raise Refused("it carries training information; export it for inference")
    if model.configuration:
        raise Refused("it is split over devices; export it for one CPU")
    oldest, newest = ALLOWED["ir_versions"]
    if not oldest <= model.ir_version <= newest:
        raise Refused(
            f"its IR version is {model.ir_version}; allowed are {oldest} to {newest} (set model.ir_version = 10)"
        )
    for entry in model.opset_import:
        domain = _domain(entry)
        if domain not in DOMAINS:
            continue  # quantisers list every domain there is; one that no node uses does no harm
        oldest, newest = DOMAINS[domain]["versions"]
        if not oldest <= entry.version <= newest:
            name = f"opset of {domain}" if domain else "opset"
            raise Refused(f"its {name} is {entry.version}; allowed are {oldest} to {newest}")
    if "" not in map(_domain, model.opset_import):
        raise Refused("it does not say which opset it uses; export it again with opset 21")


def _domain(item: Any) -> str:
    """Return the domain of a node or an import; ONNX's own has two names."""
    return "" if item.domain == "ai.onnx" else str(item.domain)


def check_graph(graph: onnx.GraphProto, limits: EntryLimits) -> int:
    """Check nodes and constants; return how many weights there are."""
    if len(graph.node) > limits.nodes:
        raise Refused(f"it has {len(graph.node)} nodes; at most {limits.nodes} are allowed")
    declared = len(graph.initializer) + len(graph.input) + len(graph.output) + len(graph.value_info)
    if declared > DECLARED:
        raise Refused(f"it declares {declared} constants and tensors; at most {DECLARED} are allowed")
    if graph.sparse_initializer:
        raise Refused("it has sparse constants; store them dense")
    for node in graph.node:
        domain = _domain(node)
        if domain not in DOMAINS:
            raise Refused(f"operator {_quoted(node.op_type)} is of the domain {_quoted(domain)}, which is not allowed")
        if node.op_type not in DOMAINS[domain]["operators"]:
            raise Refused(f"operator {_quoted(node.op_type)} is not allowed: {_why_not(node.op_type)}")
    weights = sum(_check_tensor(tensor, limits) for tensor in graph.initializer)
    weights += sum(_check_attribute(attribute, limits) for node in graph.node for attribute in node.attribute)
    if weights > limits.weights:
        raise Refused(f"it has {weights} weights; at most {limits.weights} are allowed")
    for value in [*graph.value_info, *graph.input, *graph.output]:
        name, sizes = _quoted(value.name), value.type.tensor_type.shape.dim
        if len(sizes) > RANK:
            raise Refused(f"tensor {name} is declared with {len(sizes)} dimensions; at most {RANK} are allowed")
        numbers = math.prod(max(1, size.dim_value) for size in sizes)
        if numbers > limits.weights:
            raise Refused(f"tensor {name} is declared with {numbers} numbers; that is too large")
    return weights


def _why_not(operator: str) -> str:
    if operator in ("If", "Loop", "Scan"):
        return "the graph must be a straight line of arithmetic"
    if operator.startswith("Random") or operator in ("Bernoulli", "Multinomial"):
        return "the same digits must always get the same answers"
    return "the rules list those that are"


def _check_attribute(attribute: AttributeProto, limits: EntryLimits) -> int:
    name = _quoted(attribute.name)
    if attribute.HasField("g") or attribute.graphs:
        raise Refused(f"attribute {name} holds a graph; the graph must be a straight line of arithmetic")
    if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
        raise Refused(f"attribute {name} holds a sparse tensor; store it dense")
    if attribute.tensors or attribute.HasField("tp") or attribute.type_protos or attribute.ref_attr_name:
        raise Refused(f"attribute {name} holds what no allowed operator takes")
    if attribute.type not in ATTRIBUTES:
        raise Refused(f"attribute {name} is of a type that no allowed operator takes")
    return len(attribute.floats) + (_check_tensor(attribute.t, limits) if attribute.HasField("t") else 0)


def _check_tensor(tensor: TensorProto, limits: EntryLimits) -> int:
    """Check one constant and return how many numbers it holds."""
    name = _quoted(tensor.name)
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise Refused(f"constant {name} lies outside the file; save it with onnx.save(…, save_as_external_data=False)")
    if tensor.data_type == TensorProto.STRING or tensor.string_data:
        raise Refused(f"constant {name} holds text; digits need numbers only")
    if tensor.data_type not in BITS or tensor.HasField("segment"):
        raise Refused(f"constant {name} is of a type that is not allowed")
    if len(tensor.dims) > RANK:
        raise Refused(f"constant {name} has {len(tensor.dims)} dimensions; at most {RANK} are allowed")
    if any(size < 0 for size in tensor.dims):
        raise Refused(f"constant {name} has a negative size")
    numbers: int = math.prod(tensor.dims)
    if numbers > limits.weights:
        raise Refused(f"constant {name} declares {numbers} numbers; at most {limits.weights} weights are allowed")
    bits = BITS[tensor.data_type]
    fields = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
    typed = sum(map(len, fields))
    held, needed = (typed, numbers) if typed else (len(tensor.raw_data), math.ceil(numbers * bits / 8))
    if typed and bits == 4:
        needed = math.ceil(numbers / 2)
    if held != needed or (typed and tensor.raw_data):
        raise Refused(f"constant {name} declares {numbers} numbers and holds something else")
    return numbers


def _check_signature(graph: onnx.GraphProto) -> None:
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    wanted = f"a float32 tensor (n, {FEATURES})"
    if len(inputs) != 1:
        raise Refused(f"it has {len(inputs)} inputs; it must have one, {wanted}")
    if _shape(inputs[0]) != (TensorProto.FLOAT, [0, FEATURES]):
        raise Refused(f"its input is {_described(inputs[0])}; it must be {wanted}, n not fixed")
    if len(graph.output) not in (1, 2):
        raise Refused(f"it has {len(graph.output)} outputs; it must have the scores, or labels and then scores")
    scores = graph.output[-1]
    if _shape(scores) != (TensorProto.FLOAT, [0, CLASSES]):
        hint = " (convert with options={'zipmap': False})" if scores.type.HasField("sequence_type") else ""
        raise Refused(
            f"its output {_quoted(scores.name)} is {_described(scores)}; it must be the scores of the digits 0 to 9, "
            f"a float32 tensor (n, {CLASSES}), n not fixed{hint}"
        )
    labels = ((TensorProto.INT64, [0]), (TensorProto.INT64, [0, 1]))
    if len(graph.output) == 2 and _shape(graph.output[0]) not in labels:
        raise Refused(f"its first output {_quoted(graph.output[0].name)} must be the labels, an int64 tensor (n,)")


def _shape(value: Any) -> tuple[int, list[int]]:
    """Return type and sizes, 0 for a size that is free."""
    kind = value.type.tensor_type
    return kind.elem_type, [dim.dim_value for dim in kind.shape.dim]


def _described(value: Any) -> str:
    if not value.type.HasField("tensor_type"):
        return "no tensor"
    kind, sizes = _shape(value)
    name = TensorProto.DataType.Name(kind).lower() if kind in TensorProto.DataType.values() else f"of type {kind}"
    return f"{name} ({', '.join(str(size) if size else 'n' for size in sizes)})"
