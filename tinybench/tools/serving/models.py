"""Functions that load models from files, or create models by calling a user's function."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def load_models(specs: Sequence[str], threads: int = 1) -> dict[str, Any]:
    """Load models and return them by name.

    The name of a model is its file name without the suffix. If these names are not unique, each name is the full spec.
    """
    names = [Path(spec).stem if spec.endswith((".onnx", ".joblib")) else spec for spec in specs]
    if len(set(names)) < len(names):
        names = list(specs)
    if len(set(names)) < len(names):
        raise ValueError("the same model is named twice; copy the file to compare a model with itself")
    return {name: load_model(spec, threads) for name, spec in zip(names, specs, strict=True)}


def load_model(spec: str, threads: int = 1) -> Any:
    """Load a model from an .onnx or .joblib file, or create one by calling the given ``module:function``."""
    if spec.endswith(".onnx"):
        if not Path(spec).is_file():
            raise FileNotFoundError(f"{spec}: no such file")
        from tinybench.onnx import session_options
        from tinybench.support.engines.sessions import new_session

        try:
            return new_session(spec, session_options(threads))
        except Exception as error:  # ONNX Runtime's errors have no common base class
            raise ValueError(f"{spec} does not load: {str(error).splitlines()[0]}") from None
    if spec.endswith(".joblib"):
        import joblib  # type: ignore[import-untyped]

        return joblib.load(spec)
    module, colon, function = spec.partition(":")
    if not colon:
        raise ValueError(f"{spec!r} is neither an .onnx or .joblib file nor module:function")
    if "" not in sys.path:
        sys.path.insert(0, "")
    return getattr(importlib.import_module(module), function)()
