"""ONNX operators that multiply matrices, and the types in which they compute."""

from __future__ import annotations

FOUR_BITS = "4-bit weights"
PRODUCTS: dict[str, str | None] = {
    **dict.fromkeys(("Conv", "FusedConv", "FusedGemm", "FusedMatMul", "Gemm", "MatMul")),
    **dict.fromkeys(("ConvInteger", "MatMulInteger", "MatMulInteger16", "MatMulIntegerToFloat")),
    **dict.fromkeys(("QGemm", "QLinearConv", "QLinearMatMul")),
    "DynamicQuantizeMatMul": "uint8",
    "MatMulNBits": FOUR_BITS,
}
"""Operators that multiply matrices, each with the type in which it computes. None means the type of the first input.
``DynamicQuantizeMatMul`` takes floats and converts them to integers. ``MatMulNBits`` takes floats, too."""
