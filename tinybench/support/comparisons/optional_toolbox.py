"""Access to the functions of the optional module 07_toolbox, which a student may not have built."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

# the text to show instead of a number that only the toolbox computes
NOT_BUILT = "not built: the optional module 07_toolbox works it out"


def from_toolbox(name: str) -> Any:
    """Return a function of `tinybench.toolbox`, or None if the student has not built that module.

    Call `from_toolbox` inside the function that needs the result: ``holm = from_toolbox("holm")``. If ``holm`` is None,
    leave the column empty and show `NOT_BUILT`.
    """
    try:
        toolbox = import_module("tinybench.toolbox")
    except ImportError as error:
        if error.name != "tinybench.toolbox":
            raise
        return None
    return getattr(toolbox, name)


def corrected(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for multiple comparisons: by Holm if the toolbox is available, else by Bonferroni."""
    holm = from_toolbox("holm")
    return [min(1.0, len(p_values) * p) for p in p_values] if holm is None else [float(p) for p in holm(p_values)]
