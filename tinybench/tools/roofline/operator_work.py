"""The operations and bytes of every operator of an ONNX graph, counted from the tensor shapes in a traced run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinybench.onnx import OnnxModel
from tinybench.support.basics.onnx_files import load_graph
from tinybench.support.basics.short_reprs import short_repr
from tinybench.tools.roofline.onnx_trace import Traced, inferred_shapes, nodes_of, run_traced, stored_tensors
from tinybench.tools.roofline.operator_formulas import WHY_NOT, type_of, work_of


@dataclass(frozen=True)
class Counted:
    """The work of an operator in one run.

    Attributes
    ----------
    name, op, dtype
        The operator's name in the graph that ran, its kind, such as ``"MatMul"``, and the type in which it computed.
    flop, bytes
        The number of operations, and the smallest number of bytes to move. Both are 0 if they are not known.
    working_set
        The bytes that pass through the caches between two runs of the operator. For an operator with constant weights,
        these are the bytes of the whole graph. For other operators, they are the bytes of the operator's own tensors,
        because the inputs have just been written by the previous operator.
    checked
        Whether ONNX infers the same shapes for the outputs as in the run. False if ONNX cannot infer them.
    why
        The reason why the work could not be counted; "" if it was counted.
    """

    name: str
    op: str
    dtype: str
    flop: float = 0.0
    bytes: float = 0.0
    working_set: float = 0.0
    checked: bool = False
    why: str = ""
    __repr__ = short_repr

    @property
    def intensity(self) -> float:
        """Operations per byte; 0 if no bytes are moved."""
        return self.flop / self.bytes if self.bytes else 0.0


def counted_operators(traced: Traced, source: Any) -> list[Counted]:
    """Return the work of every operator of a traced run. `source` is the graph before it was optimised."""
    nodes = nodes_of(traced)
    inferred = inferred_shapes(source, traced.inputs) | inferred_shapes(traced.graph, traced.inputs)
    stored = stored_tensors(traced.graph.graph)
    everything = {name: tensor for name, tensor in (stored | traced.inputs).items() if tensor.dtype != "string"}
    whole = sum(tensor.bytes for tensor in everything.values())
    whole += sum(tensor.bytes for node in nodes for tensor in node.outputs if tensor.dtype != "string")
    found = []
    for node, proto, title in zip(nodes, traced.graph.graph.node, traced.titles, strict=True):
        names = [name for name in proto.output if name]
        try:
            if len(node.outputs) != len(names) and node.op not in WHY_NOT:
                raise LookupError("its shapes are not in the trace")
            for name, tensor in zip(names, node.outputs, strict=False):
                if inferred.get(name, tensor.shape) != tensor.shape:
                    raise LookupError(f"the runtime made {tensor.shape} of {name!r}, and ONNX infers {inferred[name]}")
            flop, moved = work_of(node)
        except LookupError as error:
            found.append(Counted(title, node.op, type_of(node), why=str(error.args[0])))
            continue
        working_set = whole if any(name in stored and len(stored[name].shape) > 1 for name in proto.input) else moved
        checked = all(name in inferred for name in names)
        found.append(Counted(title, node.op, type_of(node), flop, moved, working_set, checked))
    return found


def count_work(model: OnnxModel | str | Path, X: Any) -> list[Counted]:
    """Return the work of each operator of a model, in the order of the graph as ONNX Runtime optimised it.

    The tensor shapes come from a trace of the run and are checked against the shapes that ONNX infers. An operator
    without a formula has no counts, and its field `why` holds the reason.

    Parameters
    ----------
    model
        A loaded model, or the path of an ``.onnx`` file.
    X
        One batch: an array, or a dictionary of arrays by input name.

    Raises
    ------
    ValueError
        If the batch does not fit the inputs.
    """
    traced = run_traced(model, X)
    return counted_operators(traced, load_graph(model.path if isinstance(model, OnnxModel) else model))
