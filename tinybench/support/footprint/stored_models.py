"""The stored form of a model: the file that it was loaded from, weights in other files, or the bytes of its pickle."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.support.basics.type_checks import describe


def stored_form(model: Any) -> Any:
    """Return the path or the bytes that a model was loaded from, or else the model itself.

    An `OnnxModel` or an ONNX Runtime session has such a source; an ``onnx.ModelProto`` is serialised. Raises TypeError
    for a function or a class, because pickle would write only its name.
    """
    session = getattr(model, "session", model)
    if callable(getattr(session, "get_session_options", None)):
        return getattr(session, "_model_path", None) or getattr(session, "_model_bytes", None) or model
    if callable(getattr(model, "SerializeToString", None)):
        return model.SerializeToString()
    if (
        model is None
        or isinstance(model, type | np.ufunc)
        or (inspect.isroutine(model) and not inspect.ismethod(model))
    ):
        raise TypeError(
            f"the model is {describe(model)}, which has no size of its own; save what it uses and pass the path"
        )
    return model


def external_files(path: Path) -> list[Path]:
    """Return the additional files in which an ONNX model stores weights outside its own file.

    For a file of another format, return an empty list. The package ``onnx`` is needed only if the model has such files.
    """
    if path.suffix != ".onnx" or b"location" not in path.read_bytes():
        return []
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    places = {
        entry.value
        for tensor in graph.initializer
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return [path.parent / place for place in sorted(places)]


class ByteCounter:
    """A file that only counts the bytes written to it."""

    def __init__(self) -> None:
        self.count = 0

    def write(self, data: Any) -> int:
        """Count the bytes without storing them, and return their number."""
        size = memoryview(data).nbytes
        self.count += size
        return size


def pickled_size(model: Any) -> int:
    """Return the number of bytes that pickle's newest protocol writes. Raise TypeError if it cannot store the model."""
    counter = ByteCounter()
    try:
        pickle.dump(model, counter, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise TypeError(f"{type(model).__name__} cannot be pickled ({error}); save it and pass the path") from None
    return counter.count
