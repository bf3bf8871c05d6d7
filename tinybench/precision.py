# Written by "autograder export" from modules/15_scaling/15_scaling.ipynb: edit the notebook, not this file.

"""The number types in which a model's matrix multiplications really ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinybench.support.profiling.matrix_operators import PRODUCTS


def types_that_ran(events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the fraction of the time of matrix multiplications that was computed in each type, the largest first.

    The result is empty if there are no matrix multiplications.

    Parameters
    ----------
    events
        Events of an ONNX Runtime trace. A node that ran has ``"cat": "Node"``, a name that ends in ``_kernel_time``,
        its microseconds in ``"dur"``, and in ``"args"`` its ``op_name`` and ``input_type_shape``: for each input a type
        with its shape, such as ``{"float": [32, 64]}``. The keys of `PRODUCTS` are the operators that multiply
        matrices. Its values are their types, or None if the type of the first input counts.
    """
    times: dict[str, float] = {}
    for event in events:
        if (
            event.get("cat") == "Node"
            and event["name"].endswith("_kernel_time")
            and event["args"]["op_name"] in PRODUCTS
        ):
            kind = PRODUCTS[event["args"]["op_name"]] or next(iter(event["args"]["input_type_shape"][0]))
            times[kind] = times.get(kind, 0.0) + event["dur"]
    total = sum(times.values()) or 1.0  # a trace rounds short times to 0 µs
    return {kind: spent / total for kind, spent in sorted(times.items(), key=lambda item: -item[1])}
