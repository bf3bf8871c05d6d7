"""A traced run of an ONNX graph: the nodes that ran, the types and shapes of their tensors, and their times."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.onnx import OnnxModel, session_options
from tinybench.support.basics.onnx_files import load_graph, save_graph
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.engines.operator_trace import kernel_events
from tinybench.support.engines.sessions import load_session
from tinybench.support.rounds.checked_calls import ONNX_DTYPES
from tinybench.tools.roofline.operator_formulas import Node, Tensor


@dataclass(frozen=True)
class Traced:
    """A graph as it ran, with a unique name for every node.

    `titles` holds the original names of the nodes, and `events` the events of the trace after the warm-up, by node.
    """

    graph: Any
    titles: list[str]
    inputs: dict[str, Tensor]
    events: dict[str, list[Mapping[str, Any]]]

    __repr__ = short_repr


def as_feeds(session: Any, X: Any) -> dict[str, np.ndarray]:
    """Return arrays by input name, in the types of the inputs. Raise ValueError if a name or a shape does not match."""
    nodes = session.get_inputs()
    given = dict(X) if isinstance(X, Mapping) else {nodes[0].name: X}
    if given.keys() != {node.name for node in nodes}:
        names = ", ".join(node.name for node in nodes)
        raise ValueError(f"the graph takes {names}, not {', '.join(given)}; pass a dictionary of arrays by name")
    feeds = {}
    for node in nodes:
        values = np.asarray(given[node.name], np.dtype(ONNX_DTYPES[node.type]))
        fits = len(node.shape) == values.ndim and all(
            not isinstance(wanted, int) or wanted == got for wanted, got in zip(node.shape, values.shape, strict=True)
        )
        if node.shape and not fits:
            shape = ", ".join("any" if not isinstance(size, int) else str(size) for size in node.shape)
            raise ValueError(f"input {node.name!r} has shape {values.shape}; the graph takes ({shape})")
        feeds[node.name] = values
    return feeds


def run_traced(model: OnnxModel | str | Path, X: Any, runs: int = 1, warmup_runs: int = 0) -> Traced:
    """Run a graph with tracing. Return the graph as ONNX Runtime optimised it, and the events of the trace.

    Parameters
    ----------
    model
        A loaded model, whose number of threads and optimisation level are kept, or the path of a model.
    X
        One batch: an array, or a dictionary of arrays by input name.
    runs, warmup_runs
        The number of measured runs, and of warm-up runs before them.
    """
    model = model if isinstance(model, OnnxModel) else OnnxModel(model)
    feeds = as_feeds(model.session, X)
    with tempfile.TemporaryDirectory() as folder:
        optimised, named = Path(folder, "optimised.onnx"), Path(folder, "named.onnx")
        options = session_options(model.threads, model.optimization)
        options.optimized_model_filepath = str(optimised)
        load_session(model.path, options)
        graph = load_graph(optimised)
        titles = [node.name or node.op_type for node in graph.graph.node]
        for place, node in enumerate(graph.graph.node):
            node.name = own_name(place)  # a fused node has no name, or shares it with another node
        save_graph(graph, named)
        # the graph is already optimised and runs as it is
        session = load_session(named, session_options(model.threads, "off", Path(folder, "trace")))
        for _ in range(warmup_runs + runs):
            session.run(None, feeds)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    tensors = {node.name: Tensor(_short(node.type), feeds[node.name].shape) for node in session.get_inputs()}
    return Traced(graph, titles, tensors, events_by_node(events, warmup_runs))


def own_name(place: int) -> str:
    """Return the unique name of the node at index `place` in the traced graph.

    Nodes of inner graphs, such as the body of a loop, have other names.
    """
    return f"operator {place} of the graph"


def _short(kind: str) -> str:
    return kind.removeprefix("tensor(").removesuffix(")")


def events_by_node(events: Sequence[Mapping[str, Any]], skip_runs: int = 0) -> dict[str, list[Mapping[str, Any]]]:
    """Return the kernel-time events by node, without the events of the first `skip_runs` runs."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for node, event in kernel_events(events, skip_runs, too_few=0):
        found.setdefault(node, []).append(event)
    return found


def stored_tensors(graph: Any) -> dict[str, Tensor]:
    """Return the types and shapes of a graph's weights, by name."""
    from onnx import TensorProto

    return {
        tensor.name: Tensor(TensorProto.DataType.Name(tensor.data_type).lower(), tuple(tensor.dims))
        for tensor in graph.initializer
    }


def nodes_of(traced: Traced) -> list[Node]:
    """Return the operators of a traced graph, with the types and shapes that their tensors had in the run."""
    from onnx import helper

    known = stored_tensors(traced.graph.graph) | traced.inputs
    found = []
    for node in traced.graph.graph.node:
        shapes = traced.events[node.name][0]["args"]["output_type_shape"] if node.name in traced.events else []
        returned = [Tensor(kind, tuple(shape)) for each in shapes for kind, shape in each.items()]
        names = [name for name in node.output if name]
        known.update(zip(names, returned, strict=False) if len(names) == len(returned) else [])
        outputs = tuple(known[name] for name in names if name in known)
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        found.append(Node(node.name, node.op_type, tuple(known.get(name) for name in node.input), outputs, attributes))
    return found


def inferred_shapes(model: Any, inputs: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors, by name, that ONNX can infer from the shapes of the inputs.

    Tensors whose shape cannot be inferred are left out.
    """
    from onnx import shape_inference

    copy = load_graph(model.SerializeToString())
    del copy.graph.value_info[:]
    for value in copy.graph.input:
        if value.name in inputs:
            shape = value.type.tensor_type.shape
            del shape.dim[:]
            for size in inputs[value.name].shape:
                shape.dim.add(dim_value=size)
    for value in copy.graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        copy = shape_inference.infer_shapes(copy, data_prop=True)
    except Exception:  # the graph has operators that ONNX does not know
        return {}
    found = {}
    for value in [*copy.graph.value_info, *copy.graph.output]:
        sizes = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(size.HasField("dim_value") for size in sizes):
            found[value.name] = tuple(size.dim_value for size in sizes)
    return found
