"""The inner tensors of a graph: their values, their types, and the grids on which a static model puts them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.onnx import session_options
from tinybench.support.basics.onnx_files import load_graph, save_graph, weights
from tinybench.support.engines.sessions import load_session
from tinybench.support.quantizing.grids import QuantParams


def probe(model: Any, tensors: Iterable[str]) -> Any:
    """Return a session for a graph, with the given inner tensors as additional outputs."""
    probed = load_graph(model.SerializeToString())
    for tensor in {*tensors} - {output.name for output in probed.graph.output}:
        probed.graph.output.add(name=tensor)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "probe.onnx")
        save_graph(probed, file)
        return load_session(file, session_options(optimization="off"))


def prepare_for_static(path: Path) -> None:
    """Add the types of inner float tensors to a model file, and make the model's biases one-dimensional."""
    # ONNX Runtime does not quantise activations whose type it cannot infer, as after scikit-learn's scaler. It fails
    # on biases of shape (1, n) if each column has its own scale.
    from onnx import TensorProto, helper

    model = load_graph(path)
    biases = {node.input[2] for node in model.graph.node if node.op_type == "Gemm" and len(node.input) > 2}
    for tensor in model.graph.initializer:
        if tensor.name in biases and len(tensor.dims) == 2 and tensor.dims[0] == 1:
            del tensor.dims[0]
    known = {value.name for value in [*model.graph.value_info, *model.graph.output]}
    inner = [name for node in model.graph.node for name in node.output if name and name not in known]
    for found in probe(model, inner).get_outputs():
        if found.name in inner and found.type == "tensor(float)":
            model.graph.value_info.append(helper.make_tensor_value_info(found.name, TensorProto.FLOAT, None))
    save_graph(model, path)


def quantized_tensors(path: str | Path, X: Any) -> Iterator[tuple[str, np.ndarray, QuantParams]]:
    """Yield the name of each quantised tensor of a static model, its values on rows X, and its grid."""
    model = load_graph(path)
    numbers = weights(model)
    nodes = [n for n in model.graph.node if n.op_type == "QuantizeLinear" and n.input[0] not in numbers]
    inner = [n.input[0] for n in nodes if n.input[0] not in {i.name for i in model.graph.input}]
    if not nodes:
        return
    session, rows = probe(model, inner), np.asarray(X, np.float32)
    feed = session.get_inputs()[0].name
    values = dict(zip(inner, session.run(inner, {feed: rows}) if inner else [], strict=True)) | {feed: rows}
    for node in nodes:
        scale, zero = numbers[node.input[1]], numbers[node.input[2]]
        grid = QuantParams(scale.astype(float), zero.astype(np.int64), 8 * zero.itemsize, zero.dtype.kind == "i")
        found = values[node.input[0]]
        # a grid that begins at 0 does the work of a ReLU
        is_relu = node.input[0] in inner and int(grid.zero_point) == grid.limits[0]
        yield str(node.input[0]), np.maximum(found, 0) if is_relu else found, grid
