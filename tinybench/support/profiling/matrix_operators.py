"""Operators of ONNX graphs that multiply matrices, and the type they compute in."""

from __future__ import annotations

FOUR_BITS = "4-bit weights"
PRODUCTS: dict[str, str | None] = {
    **dict.fromkeys(("Conv", "FusedConv", "FusedGemm", "FusedMatMul", "Gemm", "MatMul")),
    **dict.fromkeys(("ConvInteger", "MatMulInteger", "MatMulInteger16", "MatMulIntegerToFloat")),
    **dict.fromkeys(("QGemm", "QLinearConv", "QLinearMatMul")),
    "DynamicQuantizeMatMul": "uint8",
    "MatMulNBits": FOUR_BITS,
}
"""Operators that multiply matrices, and the type they compute in where that is not the type of their first input:
``DynamicQuantizeMatMul`` takes floats and makes integers of them itself, ``MatMulNBits`` takes floats, too."""
