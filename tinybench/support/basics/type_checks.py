"""Checks of argument types. A type that a function's annotation does not allow raises a one-sentence TypeError."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import cache, wraps
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["check_kinds", "checked", "describe"]

# key: the first word of an annotation; value: its name in error messages, and a function that checks an argument
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "None": ("None", lambda value: value is None),
    "bool": ("True or False", lambda value: isinstance(value, bool | np.bool_ | int)),
    "int": ("a whole number", lambda value: isinstance(value, Integral)),
    "float": ("a number", lambda value: isinstance(value, Real)),
    "str": ("a string", lambda value: isinstance(value, str)),
    "Path": ("a path", lambda value: isinstance(value, os.PathLike)),
    "Mapping": ("a dictionary", lambda value: isinstance(value, Mapping)),
    "Callable": ("a function", callable),
    "BenchmarkResult": (
        "a BenchmarkResult, as measure_latency returns it",
        lambda value: _named(value, "BenchmarkResult"),
    ),
    "OnnxModel": ("an OnnxModel, as OnnxModel(path) makes it", lambda value: _named(value, "OnnxModel")),
    "Requirements": ("Requirements", lambda value: _named(value, "Requirements")),
    "Layer": ("layers, as layers_of(model) returns them", lambda value: _named(value, "Layer")),
    "Sequence": ("a list", lambda value: _is_list(value)),
}
_ALIASES = {
    "dict": "Mapping",
    "Clock": "Callable",
    "Call": "Callable",
    "Stage": "Callable",
    "Numbers": "Sequence[float]",
}
_ALIASES |= dict.fromkeys(("list", "tuple", "Iterable", "Collection", "np.ndarray"), "Sequence")
# names of parameters that must be arrays if their annotation is Any
_ARRAYS = ("y", "predicted", "pred_a", "pred_b", "X", "sample", "calibration")
_EXAMPLES = {
    "models": "pass models by name, such as {'fp32': model, 'int8': other}",
    "results": "pass results by name, such as measure_latencies({'fp32': model, 'int8': other}, X) returns",
    "objectives": "pass 'min' or 'max' by metric, such as {'latency': 'min', 'accuracy': 'max'}",
}


def _named(value: Any, name: str) -> bool:
    """Return whether a value's class, or one of its base classes, has this name. A class of a student counts too."""
    return any(kind.__name__ == name for kind in type(value).__mro__)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def describe(value: Any) -> str:
    """Describe a value in a few words: ``None``, ``the text 'fp32.onnx'``, ``a function (f)``, ``a list``."""
    if value is None or isinstance(value, Real):
        return repr(value)
    if isinstance(value, str):
        return f"the text {value if len(value) <= 40 else value[:39] + '…'!r}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"a function ({getattr(value, '__name__', 'without a name')})"
    kind = {"dict": "dictionary", "ndarray": "array"}.get(type(value).__name__, type(value).__name__)
    return f"{'an' if kind[0] in 'aeioAEIO' else 'a'} {kind}"


def _refusal(name: str, value: Any, wanted: str) -> TypeError:
    """Return a TypeError that names the argument's type, the expected type, and the remedy."""
    cure = _EXAMPLES.get(name, "")
    if not cure and "BenchmarkResult" in wanted:
        if callable(value) or hasattr(value, "predict"):
            cure = "measure it first: measure_latencies({'a': model, 'b': other}, X)"
        elif isinstance(value, Mapping) and value:
            cure = f"pass one of its values, such as {name}=results[{next(iter(value))!r}]"
    return TypeError(f"{name} is {describe(value)}; it must be {wanted}{'; ' if cure else ''}{cure}")


def _parts(annotation: str) -> list[str]:
    """Split an annotation at the vertical bars outside of brackets."""
    depth, parts = 0, [""]
    for character in annotation:
        depth += (character == "[") - (character == "]")
        if character == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _fits(value: Any, part: str) -> bool:
    """Return whether a value matches one alternative of an annotation. An unknown type accepts every value."""
    head, _, inner = part.partition("[")
    if head in _ALIASES:
        head, _, more = _ALIASES[head].partition("[")
        inner = inner or more
    if head not in _KINDS:
        return True
    if not _KINDS[head][1](value):
        return False
    if (
        part.startswith("tuple[")
        and "..." not in part
        and isinstance(value, Sized)
        and len(value) != part.count(",") + 1
    ):
        return False
    element = inner.removesuffix("]").rpartition(",")[2].strip(" .")
    if head in ("Mapping", "Sequence") and element in ("float", "int", "str", "BenchmarkResult", "Layer"):
        if isinstance(value, np.ndarray):
            return element in ("float", "int") and value.ndim == 1 and value.dtype.kind in "fiub"
        items = value.values() if isinstance(value, Mapping) else value
        # the items of an iterator are not checked because that would consume them
        return not isinstance(value, Sized) or all(_KINDS[element][1](item) for item in items)
    return True


def _wanted(parts: list[str]) -> str:
    """Describe in words the values that an annotation allows."""
    words = []
    for part in parts:
        head, _, inner = part.partition("[")
        head = _ALIASES.get(head, head).partition("[")[0]
        word = _KINDS[head][0]
        kind = inner.removesuffix("]").rpartition(",")[2].strip(" .")
        many = {
            "float": "numbers",
            "int": "whole numbers",
            "str": "strings",
            "BenchmarkResult": "results",
            "Layer": "layers",
        }
        words.append(f"{word} of {many[kind]}" if head in ("Mapping", "Sequence") and kind in many else word)
    return " or ".join(dict.fromkeys(words))


def check_kinds(annotations: Mapping[str, str], given: Mapping[str, Any]) -> None:
    """Raise TypeError for the first argument that does not match its annotation."""
    for name, value in given.items():
        parts = _parts(re.sub(r"\s+", " ", str(annotations.get(name, "Any"))))
        if parts == ["Any"] and name in _ARRAYS:
            _check_array(name, value)
        elif name == "meter" and value is not None and not callable(getattr(value, "read", None)):
            raise _refusal(name, value, "a meter, with read(), unit, measured and details, or None for best_meter()")
        elif not any(_fits(value, part) for part in parts):
            raise _refusal(name, value, _wanted(parts))


def _check_array(name: str, value: Any) -> None:
    """Raise TypeError for a value that cannot become an array of rows. Arrays and data frames are not checked here."""
    if hasattr(value, "shape") or hasattr(value, "__array__"):
        return
    try:
        array = np.asarray(value)
    except ValueError:
        raise TypeError(
            f"{name} has rows of different lengths; it must be an array with one value or one row for each sample"
        ) from None
    if array.ndim == 0 or (array.dtype == object and not all(isinstance(item, str | Real) for item in array.flat)):
        raise TypeError(f"{name} is {describe(value)}; it must be an array with one value or one row for each sample")


@cache
def checked(subject: Any) -> Any:
    """Wrap a function so that it first checks the types of its arguments. Return other objects unchanged."""
    if not inspect.isfunction(subject):
        return subject
    signature, annotations = inspect.signature(subject), subject.__annotations__

    @wraps(subject)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_kinds(annotations, signature.bind(*args, **kwargs).arguments)
        return subject(*args, **kwargs)

    call.__module__ = "tinybench"  # pickle looks for the function there
    return call
