"""Conversion of a model's matrix multiplications to 4-bit weights. Each block of weights has its own scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tinybench.support.basics.onnx_files import load_graph, refuse_bad_weights, refuse_existing, save_graph, weights


def to_four_bits(
    path: str | Path, out: str | Path, *, block: int = 32, accuracy_level: int = 4, overwrite: bool = False
) -> Path:
    """Save a copy of a model in which 4-bit ``MatMulNBits`` replaces each matrix multiplication by a constant weight.

    The weight must be a float32 matrix. Biases stay unchanged.

    Parameters
    ----------
    path, out
        The file of the float32 model, and the file to write.
    block
        Number of consecutive weights in a column that share one scale: 16, 32, 64, 128 or 256.
    accuracy_level
        Precision of activations. 4 lets the runtime round to 8 bits if it has such a kernel; 1 forbids rounding.
    overwrite
        Whether an existing file may be replaced.

    Raises
    ------
    ValueError
        If the model has no such matrix multiplication, or if `block` or `accuracy_level` is not valid.

    Notes
    -----
    The method is the same as in ``onnxruntime.quantization.matmul_nbits_quantizer`` with symmetric weights. That tool
    skips Gemm operators, and needs a package that is not installed with ONNX Runtime.
    """
    from onnx import helper, numpy_helper

    if block not in (16, 32, 64, 128, 256) or accuracy_level not in range(5):
        raise ValueError(f"block is {block}, accuracy_level {accuracy_level}; 16, 32, 64, 128 or 256, and 0 to 4")
    refuse_existing(Path(out), overwrite)
    model = load_graph(path)
    refuse_bad_weights(model)
    numbers, nodes, stored = weights(model), [], dict[str, Any]()
    for node in model.graph.node:
        matrix = _matrix(node, numbers)
        if matrix is None:
            nodes.append(node)
            continue
        name = node.input[1]
        packed, scales = pack(matrix, block)
        for end, array in (("packed", packed), ("scales", scales)):
            stored[f"{name}_{end}"] = numpy_helper.from_array(array, f"{name}_{end}")
        bias = list(node.input[2:]) if node.op_type == "Gemm" else []
        made = f"{node.output[0]}_product" if bias else node.output[0]
        about: dict[str, Any] = {"K": len(matrix), "N": matrix.shape[1], "bits": 4, "block_size": block}
        about |= {"domain": "com.microsoft", "accuracy_level": accuracy_level}
        inputs = [node.input[0], f"{name}_packed", f"{name}_scales"]
        nodes.append(helper.make_node("MatMulNBits", inputs, [made], **about))
        if bias:
            nodes.append(helper.make_node("Add", [made, *bias], [node.output[0]]))
    if not stored:
        raise ValueError("it has no matrix product with stored weights to put into 4 bits")
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    replaced = helper.make_graph(nodes, model.graph.name, model.graph.input, model.graph.output)
    replaced.initializer.extend([*kept, *stored.values()])
    model.graph.CopyFrom(replaced)
    if not any(opset.domain == "com.microsoft" for opset in model.opset_import):
        model.opset_import.add(domain="com.microsoft", version=1)
    save_graph(model, Path(out))
    return Path(out)


def _matrix(node: Any, numbers: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return the constant float32 weights of a plain matrix multiplication, or None for any other node.

    The shape of the weights is (inputs, outputs).
    """
    if node.op_type not in ("Gemm", "MatMul") or node.input[1] not in numbers:
        return None
    found = numbers[node.input[1]]
    options = {attribute.name: attribute.f or attribute.i for attribute in node.attribute}
    plain = options.get("alpha", 1) == options.get("beta", 1) == 1 and not options.get("transA")
    if found.ndim != 2 or found.dtype != np.float32 or not plain:
        return None
    return found.T if options.get("transB") else found


def pack(matrix: np.ndarray, block: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Quantise a matrix of shape (inputs, outputs) to 4 bits. Return the packed values and the scale of each block.

    Each byte holds two values, so the packed array has the shape (outputs, blocks, block/2). In each block, the weight
    with the largest magnitude is stored as 0, which stands for −8 times the scale. A weight of zero is stored as 8.
    """
    inputs, outputs = matrix.shape
    blocks = -(-inputs // block)
    padded = np.zeros((outputs, blocks * block), np.float32)
    padded[:, :inputs] = matrix.T
    parts = padded.reshape(outputs, blocks, block)
    largest = np.take_along_axis(parts, np.abs(parts).argmax(axis=2)[..., None], axis=2)
    scales = np.where(largest == 0, 1, largest / -8).astype(np.float32)
    steps = np.clip(np.rint(parts / scales) + 8, 0, 15).astype(np.uint8)
    return steps[..., 0::2] | (steps[..., 1::2] << 4), scales.ravel()
