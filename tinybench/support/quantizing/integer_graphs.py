"""Which operators of a graph compute in integers, which operator makes a tensor, and a quantised model in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinybench.onnx import operators
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.onnx_files import weights

INTEGER_OPERATORS = frozenset(
    [
        "ConvInteger",
        "DynamicQuantizeMatMul",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "QGemm",
        "QLinearConv",
        "QLinearMatMul",
    ]
)
LINEAR_OPERATORS = frozenset(("Conv", "FusedGemm", "FusedMatMul", "Gemm", "MatMul"))


def maker_in(graph: Any) -> Callable[[str], tuple[str, str]]:
    """Return a function that maps a tensor's name to the operator that makes it, and the operator's first input.

    For weights and inputs, which no operator makes, both are ``""``.
    """
    made_by = {output: node for node in graph.node for output in node.output}

    def maker(name: str) -> tuple[str, str]:
        node = made_by.get(name)
        return ("", "") if node is None else (str(node.op_type), str(node.input[0]) if node.input else "")

    return maker


def effect_in_words(integer_products: int, original: Any, quantized: Any) -> str:
    """Return a few words on a quantised model, from the number of its integer operators and both graphs."""
    if integer_products:
        return number_of(integer_products, "integer operator")
    before, after = weights(original), weights(quantized)
    same = operators(original) == operators(quantized) and before.keys() == after.keys()
    if same and all(np.array_equal(before[name], after[name]) for name in before):
        return "no integer operators: identical graph"
    return "no integer operators: only the weights are stored in fewer bits"
