"""Conversion of a fitted scikit-learn model into a checked ``.onnx`` file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.support.basics.onnx_files import refuse_bad_weights, refuse_existing, save_graph, tidy_opsets
from tinybench.support.basics.type_checks import describe


def save_converted(
    convert: Callable[[Any, Any], Any], model: Any, sample: Any, path: str | Path, overwrite: bool
) -> Path:
    """Convert a fitted model with `convert`, refuse bad weights, and save the graph together with the class labels."""
    if not callable(getattr(model, "fit", None)):
        raise TypeError(f"model is {describe(model)}; it must be a fitted scikit-learn model")
    path = Path(path)
    refuse_existing(path, overwrite)
    try:
        graph = convert(model, sample)
    except NotImplementedError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise TypeError(
            f"skl2onnx cannot convert {type(model).__name__}: {reason} … Keep that step in Python, or use another model"
        ) from None
    tidy_opsets(graph)
    refuse_bad_weights(graph)
    if hasattr(model, "classes_"):
        graph.metadata_props.add(key="classes", value=json.dumps(np.asarray(model.classes_).tolist()))
    save_graph(graph, path)
    return path
