"""ONNX graphs in files: read, tidied, written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tinybench.support.basics.whole_files import replacing


def load_graph(source: Any) -> Any:
    """Return an ``onnx.ModelProto`` from the path of an ``.onnx`` file, its bytes, or such an object."""
    import onnx

    if isinstance(source, onnx.ModelProto):
        return source
    content = source if isinstance(source, bytes) else Path(source).read_bytes()
    try:
        model = onnx.load_from_string(content)
    except Exception:  # of protobuf, whose errors differ between its versions
        model = onnx.ModelProto()
    if not model.graph.node:
        where = "these bytes are" if isinstance(source, bytes) else f"{source} is"
        raise ValueError(f"{where} no ONNX model; an export by to_onnx would be")
    return model


def tidy_opsets(graph: Any) -> None:
    """Leave one version, the largest, of each operator set of a graph, the standard one included."""
    # for a graph with trees skl2onnx lists the standard set twice, which ONNX Runtime's tools refuse
    versions: dict[str, int] = {}
    for opset in graph.opset_import:
        domain = "" if opset.domain == "ai.onnx" else opset.domain
        versions[domain] = max(opset.version, versions.get(domain, 1))
    del graph.opset_import[:]
    for domain, version in {"": 21, **versions}.items():
        graph.opset_import.add(domain=domain, version=version)


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Raise FileExistsError if the file is there and must not be replaced."""
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; pass overwrite=True to replace it, or choose another name")


def save_graph(graph: Any, path: Path) -> None:
    """Write a graph so that a reader sees the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(graph.SerializeToString())
