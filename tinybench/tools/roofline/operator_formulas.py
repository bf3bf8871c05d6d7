"""Formulas for the work of an ONNX operator from the shapes of its tensors: operations, and the fewest bytes to move.

A multiplication and an addition are two operations. Any function of one number, such as exp, tanh, erf, a square root
or a comparison, counts as one operation. Each tensor is moved once. A tensor that only gets another shape is not moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tinybench.support.basics.short_reprs import short_repr

BITS = {
    "float": 32,
    "double": 64,
    "float16": 16,
    "bfloat16": 16,
    "bool": 8,
    "int4": 4,
    "uint4": 4,
    **{f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)},
}

PLAIN = {"float": "float32", "double": "float64"}  # NumPy's names


class Tensor(NamedTuple):
    """A tensor's type, named as in ONNX Runtime's trace, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> float:
        """The size in bytes. Raise KeyError for a type without a fixed length, such as text."""
        return self.size * BITS[self.dtype] / 8


@dataclass(frozen=True)
class Node:
    """An operator and its tensors. An optional input that was left out is None."""

    name: str
    op: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    attributes: dict[str, Any]

    __repr__ = short_repr

    def given(self, place: int) -> Tensor:
        """Return the input at index `place`. Raise KeyError if it is missing."""
        tensor = self.inputs[place] if place < len(self.inputs) else None
        if tensor is None:
            raise KeyError(f"input {place}")
        return tensor

    def has(self, place: int) -> bool:
        """Return whether the optional input at index `place` is present."""
        return place < len(self.inputs) and self.inputs[place] is not None


Formula = Callable[[Node], float]


def _each(operations: float) -> Formula:
    """Return a formula that counts `operations` for each element of the first output."""
    return lambda node: operations * node.outputs[0].size


def _of_each_input(operations: float) -> Formula:
    """Return a formula that counts `operations` for each element of the first input."""
    return lambda node: operations * node.given(0).size


def _product(weights: int, *, each: float = 0.0, bias: int = -1, of_input: float = 0.0) -> Formula:
    """Return a formula for a matrix multiplication whose second matrix is input number `weights`.

    Each element of the output takes `each` additional operations, plus one if input number `bias` is present, and one
    if there is an activation. Each element of the first input takes `of_input` additional operations.
    """

    def count(node: Node) -> float:
        first, out = node.given(0), node.outputs[0].size
        inner = first.shape[0] if node.attributes.get("transA") and len(first.shape) == 2 else first.shape[-1]
        if inner not in node.given(weights).shape:
            raise KeyError(f"no inner dimension of {inner}")
        more = each + (bias >= 0 and node.has(bias)) + bool(node.attributes.get("activation"))
        return 2.0 * out * inner + more * out + of_input * first.size

    return count


def _convolution(weights: int, *, each: float = 0.0, bias: int = -1, total: int = -1) -> Formula:
    def count(node: Node) -> float:
        out, (_, channels, *kernel) = node.outputs[0].size, node.given(weights).shape  # channels of one group
        more = each + sum(place >= 0 and node.has(place) for place in (bias, total))
        return out * (2.0 * channels * math.prod(kernel) + more + bool(node.attributes.get("activation")))

    return count


def _transposed_convolution(node: Node) -> float:
    _, channels, *kernel = node.given(1).shape
    return 2.0 * node.given(0).size * channels * math.prod(kernel) + node.has(2) * node.outputs[0].size


def _pool(node: Node) -> float:
    return float(node.outputs[0].size * math.prod(node.attributes["kernel_shape"]))


def _several(node: Node) -> float:
    """Return the operations that combine all inputs into one output.

    Each element of the output takes one operation fewer than there are inputs.
    """
    return float((sum(tensor is not None for tensor in node.inputs) - 1) * node.outputs[0].size)


def _few_bits(node: Node) -> float:
    rows = node.given(0).size / node.attributes["K"]
    return float(2 * rows * node.attributes["K"] * node.attributes["N"])


def _linear(node: Node) -> float:
    """Return the operations of a linear model from scikit-learn. Its weights are attributes of the operator."""
    rows, weights = node.given(0).shape[0], len(node.attributes["coefficients"])
    return float(rows * (2 * weights + len(node.attributes.get("intercepts", ()))))


def _skip(operations: float) -> Formula:
    """Return a formula for an operator that adds two tensors and an optional bias, and normalises the sum.

    The normalisation takes `operations` for each element.
    """
    return lambda node: (operations + 1 + node.has(4)) * node.given(0).size


def _same(names: str, formula: Formula) -> dict[str, Formula]:
    return dict.fromkeys(names.split(), formula)


FORMULAS: dict[str, Formula] = {
    "MatMul": _product(1),
    "FusedMatMul": _product(1),
    "Gemm": _product(1, bias=2),
    "FusedGemm": _product(1, bias=2),
    "MatMulInteger": _product(1),
    # plus scaling back to real numbers, or scaling, rounding and clipping for the next integer multiplication
    "MatMulIntegerToFloat": _product(1, each=1, bias=6),
    "DynamicQuantizeMatMul": _product(1, each=1, bias=4, of_input=6),
    "QLinearMatMul": _product(3, each=3),
    "QGemm": _product(3, each=3, bias=6),
    "MatMulNBits": _few_bits,
    "Conv": _convolution(1, bias=2),
    "FusedConv": _convolution(1, bias=2, total=3),
    "ConvInteger": _convolution(1),
    "QLinearConv": _convolution(3, each=3, bias=8),
    "ConvTranspose": _transposed_convolution,
    "LinearClassifier": _linear,
    "LinearRegressor": _linear,
    "Scaler": _each(2),
    "Normalizer": _each(3),
    **_same("MaxPool AveragePool", _pool),
    **_same("GlobalMaxPool GlobalAveragePool", _of_each_input(1)),
    **_same("Add Sub Mul Div Pow Mod PRelu And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual Where", _each(1)),
    **_same("Relu LeakyRelu Abs Neg Exp Log Sqrt Reciprocal Tanh Sigmoid Erf Floor Ceil Round Sign Not Sin", _each(1)),
    **_same("Cos Elu Selu Softplus Softsign IsNaN IsInf", _each(1)),
    **_same("Clip", _each(2)),
    **_same("Max Min Sum", _several),
    "Mean": lambda node: _several(node) + node.outputs[0].size,
    **_same("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ArgMax ArgMin", _of_each_input(1)),
    **_same("ReduceSumSquare ReduceL1 ReduceL2 ReduceLogSumExp", _of_each_input(2)),
    # maximum, difference from the maximum, exp, sum, division
    **_same("Softmax LogSoftmax", _each(5)),
    # sum; difference, square, sum; division, scaling, shift
    **_same("LayerNormalization InstanceNormalization", _of_each_input(7)),
    **_same("SimplifiedLayerNormalization RMSNormalization", _of_each_input(4)),
    "SkipLayerNormalization": _skip(7),
    "BatchNormalization": _each(2),  # scale and shift are known beforehand
    # x / 2 · (1 + erf(x / √2))
    "Gelu": _each(5),
    "FastGelu": lambda node: (8 + node.has(1)) * node.outputs[0].size,
    "BiasGelu": _each(6),
    # divide, round, add, clip; if the range is not known, find the minimum and maximum first
    "QuantizeLinear": _each(4),
    "DequantizeLinear": _each(2),
    "DynamicQuantizeLinear": _of_each_input(6),
}

VIEWS = frozenset(["Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout", "Shape", "Size", "Constant"])
PARTS = frozenset(["Gather", "GatherElements", "GatherND", "Slice", "ArrayFeatureExtractor"])
MOVES = PARTS | {"Transpose", "Concat", "Split", "Expand", "Tile", "Pad", "Cast", "ConstantOfShape"}
MOVES |= {"ReorderInput", "ReorderOutput"}  # reorder channels into blocks, and back

WHY_NOT = {
    "ZipMap": "it makes dictionaries, which have no shape",
    "If": "it holds graphs of its own",
    "Loop": "it holds a graph of its own, as often as it runs",
    "Scan": "it holds a graph of its own, as often as it runs",
    "TreeEnsemble": "how far each row goes down a tree depends on the data",
    "TreeEnsembleClassifier": "how far each row goes down a tree depends on the data",
    "TreeEnsembleRegressor": "how far each row goes down a tree depends on the data",
}


def work_of(node: Node) -> tuple[float, float]:
    """Return the operations and bytes of an operator. Raise LookupError with the reason if they cannot be counted."""
    if node.op in VIEWS:
        return 0.0, 0.0
    if node.op not in FORMULAS and node.op not in MOVES:
        raise LookupError(WHY_NOT.get(node.op, "there is no formula for it"))
    try:
        flop = FORMULAS[node.op](node) if node.op in FORMULAS else 0.0
        return flop, _bytes_of(node)
    except (KeyError, IndexError, ValueError) as error:
        raise LookupError(f"its shapes do not fit the formula ({error})") from None


def _bytes_of(node: Node) -> float:
    written = sum(tensor.bytes for tensor in node.outputs)
    if node.op in PARTS:  # only the rows that are taken from a table are moved
        return 2 * written + sum(tensor.bytes for tensor in node.inputs[1:] if tensor is not None)
    weights = 4.0 * sum(len(node.attributes.get(name, ())) for name in ("coefficients", "intercepts"))
    return written + weights + sum(tensor.bytes for tensor in node.inputs if tensor is not None)


def type_of(node: Node) -> str:
    """Return the type in which an operator computed.

    For a multiplication of integer matrices, both types are named, such as ``"uint8 × int8"``.
    """
    places = {"QLinearMatMul": 3, "QGemm": 3, "QLinearConv": 3}
    first = node.inputs[0].dtype if node.inputs and node.inputs[0] is not None else "unknown"
    if node.op == "DynamicQuantizeMatMul":
        return f"uint8 × {node.given(1).dtype}"
    if node.op in places or node.op in ("MatMulInteger", "MatMulIntegerToFloat", "ConvInteger"):
        return f"{first} × {node.given(places.get(node.op, 1)).dtype}"
    if node.op == "MatMulNBits" and node.attributes.get("accuracy_level") == 4:
        return "uint8 × int8"  # the runtime converts the activations to 8 bits, so the roof for integers applies
    return PLAIN.get(first, first)
