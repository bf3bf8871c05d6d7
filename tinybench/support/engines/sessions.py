"""ONNX Runtime sessions: default options, and loading with errors that say what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tinybench.support.basics.onnx_files import load_graph
from tinybench.support.rounds.input_notes import check_runs


def fresh_options(threads: int, optimization: str) -> tuple[Any, Any]:
    """Return default options for an ONNX Runtime session, and the runtime's own value for the level `optimization`.

    Raises ValueError if `threads` is not a whole number of at least 1, or `optimization` is not a known level.
    """
    import onnxruntime

    levels = onnxruntime.GraphOptimizationLevel
    known = {
        "off": levels.ORT_DISABLE_ALL,
        "basic": levels.ORT_ENABLE_BASIC,
        "extended": levels.ORT_ENABLE_EXTENDED,
        "all": levels.ORT_ENABLE_ALL,
    }
    check_runs("threads", threads, 1)
    if optimization not in known:
        raise ValueError(f"optimization is {optimization!r}; it must be one of {', '.join(known)}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    return options, known[optimization]


def new_session(source: str | bytes, options: Any) -> Any:
    """Return an ONNX Runtime session that runs on the CPU. `source` is the path of a model, or its bytes."""
    import onnxruntime

    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def load_session(path: Path, options: Any) -> Any:
    """Return an ONNX Runtime session for a file.

    Raise FileNotFoundError if the file does not exist, and ValueError if it cannot be loaded.
    """
    import onnxruntime

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; to_onnx writes one")
    try:
        return new_session(str(path), options)
    except Exception as error:
        graph = load_graph(path)
        opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in graph.opset_import)
        raise ValueError(
            f"ONNX Runtime {onnxruntime.__version__} cannot load {path}, which has IR version {graph.ir_version} and "
            f"opset {opsets}; if one is too new, export with IR 10 and opset 21. It says: {str(error)[-300:]}"
        ) from None
