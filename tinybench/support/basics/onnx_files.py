"""Readers and writers of ONNX graphs in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.whole_files import replacing


def load_graph(source: Any) -> Any:
    """Return an ``onnx.ModelProto`` from the path or the bytes of an ``.onnx`` file. A ModelProto is returned as is."""
    import onnx

    if isinstance(source, onnx.ModelProto):
        return source
    content = source if isinstance(source, bytes) else Path(source).read_bytes()
    try:
        model = onnx.load_from_string(content)
    except Exception:  # protobuf's errors differ between its versions
        model = onnx.ModelProto()
    if not model.graph.node:
        where = "these bytes are" if isinstance(source, bytes) else f"{source} is"
        raise ValueError(f"{where} no ONNX model; an export by to_onnx would be")
    return model


def weights(source: Any) -> dict[str, np.ndarray]:
    """Return all numbers that a model contains (see `load_graph`), as arrays by name.

    Initializers keep their names, shapes and dtypes. Trees and linear classifiers store their numbers as lists of
    floats among a node's attributes. These are named ``"node name/attribute name"``.
    """
    from onnx import numpy_helper

    graph = load_graph(source).graph
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.floats:
                found[f"{node.name}/{attribute.name}"] = np.array(attribute.floats, np.float32)
    return found


def refuse_bad_weights(source: Any) -> None:
    """Raise ValueError if a number in a model (see `load_graph`) is NaN or infinite.

    The message contains the name of the tensor and the number of bad values.
    """
    for name, values in weights(source).items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bad = int((~np.isfinite(values)).sum())
            of = number_of(values.size, "value")
            raise ValueError(f"{bad} of {of} in {name!r} are NaN or infinite: the training went wrong")


def tidy_opsets(graph: Any) -> None:
    """Keep only the highest version of each operator set of a graph. Add the standard operator set if it is missing."""
    # for tree models, skl2onnx lists the standard operator set twice, which ONNX Runtime's tools reject
    versions: dict[str, int] = {}
    for opset in graph.opset_import:
        domain = "" if opset.domain == "ai.onnx" else opset.domain
        versions[domain] = max(opset.version, versions.get(domain, 1))
    del graph.opset_import[:]
    for domain, version in {"": 21, **versions}.items():
        graph.opset_import.add(domain=domain, version=version)


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Raise FileExistsError if the file exists and `overwrite` is False."""
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; pass overwrite=True to replace it, or choose another name")


def save_graph(graph: Any, path: Path) -> None:
    """Write a graph atomically: a reader finds either the complete old file or the complete new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(graph.SerializeToString())
