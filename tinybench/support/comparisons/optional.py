"""What the optional module 07_toolbox adds is used where it is there, and left out where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

# what stands in place of a number that only the toolbox can work out
NOT_BUILT = "not built: the optional module 07_toolbox works it out"


def from_toolbox(name: str) -> Any:
    """Return a function of `tinybench.toolbox`, None where a student has not built that module.

    Such as ``holm = from_toolbox("holm")`` inside the function that needs it: where it is None, leave the column empty
    and say `NOT_BUILT`.
    """
    try:
        toolbox = import_module("tinybench.toolbox")
    except ImportError as error:
        if error.name != "tinybench.toolbox":
            raise
        return None
    return getattr(toolbox, name)


def corrected(p_values: Sequence[float]) -> list[float]:
    """Return p values that allow for their number: by Holm if the toolbox is there, else by Bonferroni."""
    holm = from_toolbox("holm")
    return [min(1.0, len(p_values) * p) for p in p_values] if holm is None else [float(p) for p in holm(p_values)]
