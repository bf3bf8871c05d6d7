"""Conversion of a model to 16-bit floats, and a check that matrix multiplications really run in 16 bits."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.onnx import session_options
from tinybench.support.basics.onnx_files import load_graph, refuse_existing, save_graph, weights
from tinybench.support.engines.sessions import load_session

_PRODUCTS = ("FusedGemm", "FusedMatMul", "Gemm", "MatMul")
_BETWEEN = ("Add", "Relu", "Sigmoid", "Tanh")


def to_half(path: str | Path, out: str | Path, *, kind: str = "float16", overwrite: bool = False) -> Path:
    """Save a copy of a model in which matrix multiplications by constant weights use 16-bit floats.

    The element-wise operators between these multiplications also use 16-bit floats. Inputs, outputs and all other
    operators keep their types, and casts are inserted where the types differ. `kind` is ``"float16"`` or
    ``"bfloat16"``, which has the range of float32 and 8 bits of precision. If the model has no multiplication by
    constant weights, or if a weight exceeds the range of float16, raise ValueError.
    """
    from onnx import TensorProto, helper, numpy_helper

    refuse_existing(Path(out), overwrite)
    number_type = _type_of(kind)
    model = load_graph(path)
    graph = model.graph
    numbers = {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.data_type == TensorProto.FLOAT}
    halved = _halved_nodes(model, numbers)
    if not halved:
        raise ValueError("it has no matrix product with stored weights to halve")
    outside = {name for index, node in enumerate(graph.node) if index not in halved for name in node.input}
    outside |= {output.name for output in graph.output}
    nodes, stored, half = [], [], dict[str, str]()
    for place, node in enumerate([copy.deepcopy(node) for node in graph.node]):
        if place in halved:
            for index, name in enumerate(node.input):
                if name not in half:
                    half[name] = f"{name}_half"
                    if name in numbers:
                        raw = _narrowed(name, numbers[name], kind).tobytes()
                        shape = numbers[name].shape
                        stored.append(helper.make_tensor(half[name], number_type, shape, raw, raw=True))
                    else:
                        nodes.append(helper.make_node("Cast", [name], [half[name]], to=number_type))
                node.input[index] = half[name]
            nodes.append(node)
            for index, name in enumerate(node.output):
                half[name] = node.output[index] = f"{name}_half"
                if name in outside:
                    nodes.append(helper.make_node("Cast", [half[name]], [name], to=TensorProto.FLOAT))
        else:
            nodes.append(node)
    kept = [copy.deepcopy(tensor) for tensor in graph.initializer if tensor.name in outside]
    for field, content in (("node", nodes), ("initializer", [*kept, *stored]), ("value_info", [])):
        graph.ClearField(field)
        getattr(graph, field).extend(content)
    save_graph(model, Path(out))
    return Path(out)


def _type_of(kind: str) -> int:
    """Return ONNX's type number for ``"float16"`` or ``"bfloat16"``."""
    from onnx import TensorProto

    types = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
    if kind not in types:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(types)}")
    return int(types[kind])


def _halved_nodes(model: Any, numbers: Mapping[str, np.ndarray]) -> set[int]:
    """Return the indices of multiplications by constant weights, and of the element-wise operators after these."""
    made, found = set[str](), set[int]()
    for place, node in enumerate(model.graph.node):
        product = node.op_type in ("Gemm", "MatMul") and node.input[1] in numbers
        after = node.op_type in _BETWEEN and any(name in made for name in node.input)
        if product or (after and all(name in made or name in numbers for name in node.input)):
            made.update(node.output)
            found.add(place)
    return found


def _narrowed(name: str, values: np.ndarray, kind: str) -> np.ndarray:
    if kind == "bfloat16":  # the upper 16 bits of a float32, rounded to even, stored as an integer
        bits = values.astype("<f4").view("<u4")
        return np.asarray((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16, "<u2")
    if float(np.abs(values).max(initial=0)) > float(np.finfo(np.float16).max):
        raise ValueError(f"{name!r} holds {np.abs(values).max():.3g}, and 16-bit floats end at 65504")
    return values.astype("<f2")


def product_types(path: str | Path) -> dict[str, int]:
    """Count the multiplications by constant weights that the runtime computes in each type, such as float32."""
    with tempfile.TemporaryDirectory() as folder:
        options = session_options()
        options.optimized_model_filepath = str(Path(folder, "optimized.onnx"))
        load_session(Path(path), options)
        graph = load_graph(options.optimized_model_filepath)
    numbers, counts = weights(graph), dict[str, int]()
    for node in graph.graph.node:
        if node.op_type in _PRODUCTS and node.input[1] in numbers:
            kind = str(numbers[node.input[1]].dtype)
            counts[kind] = counts.get(kind, 0) + 1
    return counts
