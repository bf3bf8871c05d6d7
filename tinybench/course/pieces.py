"""Classes built cell by cell, and checks that judge one piece of a student's module at a time."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

BUILT_BY_STUDENT = "# Built by the student from "
REFERENCE_OF = "# The reference of "
CODE: dict[str, types.CodeType] = {}  # modules by origin; a grader adds references that lie in no file


def add_to_class(cls: type) -> Callable[[Any], Any]:
    """Make the decorated function, property or class method one of `cls`, so that a class can grow one cell at a time.

    The export writes such a function into the body of its class.

    References
    ----------
    Zhang, Lipton, Li, Smola, "Dive into Deep Learning", section 3.2.1 (the same idea).
    """

    def register(member: Any) -> Any:
        function: Any = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        function.__qualname__ = f"{cls.__name__}.{function.__name__}"
        setattr(cls, function.__name__, member)
        return member

    return register


def announce(*names: str) -> None:
    """Print for each module of the package whether the student's own file or a reference is in use, or none yet."""
    for name in names:
        spec = importlib.util.find_spec(f"tinybench.{name}")
        if spec is None:
            raise ModuleNotFoundError(f"there is no tinybench.{name}: check the spelling")
        if spec.origin is None:
            advice: Callable[[str], str] = getattr(spec.loader, "advice", "{} has no file".format)
            print(advice(spec.name))
            continue
        with open(spec.origin, encoding="utf-8") as file:
            first_line = file.readline()
        reference, _, how = first_line.rpartition(":")[0].partition(", ")
        whose = "your own code" if first_line.startswith(BUILT_BY_STUDENT) else "the reference"
        if reference.startswith(REFERENCE_OF):
            whose += f", {how}"
        print(f"tinybench.{name}: {whose} ({Path(spec.origin).parent.name}/{Path(spec.origin).name})")


def _code(origin: str) -> types.CodeType:
    if origin not in CODE:
        CODE[origin] = compile(Path(origin).read_text(encoding="utf-8"), origin, "exec")
    return CODE[origin]


def graft(module: str, names: Mapping[str, Any], *pieces: str) -> types.SimpleNamespace:
    """Return a fresh copy of a module in which only the named pieces are yours.

    A check that uses the copy judges these pieces alone: a mistake in an earlier cell cannot cost points here.

    Parameters
    ----------
    module
        The module to copy, for example ``"tinybench.result"``.
    names
        Where your pieces are: ``globals()`` in a notebook.
    pieces
        ``"t_interval"`` for a function or class, ``"BenchmarkResult.cv"`` for one method.

    Raises
    ------
    NotImplementedError
        If a piece has not been written yet.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"there is no module {module}")
    copy = types.ModuleType(module)
    copy.__file__ = spec.origin
    # dataclasses and typing look their module up by name while the body runs
    original = sys.modules.get(module)
    sys.modules[module] = copy
    try:
        exec(_code(spec.origin), copy.__dict__)
    finally:
        if original is None:
            del sys.modules[module]
        else:
            sys.modules[module] = original
    for name, value in names.items():  # helpers the student added stay within reach
        copy.__dict__.setdefault(name, value)
    for piece in pieces:
        owner_name, _, method = piece.rpartition(".")
        owner = names if not owner_name else vars(names.get(owner_name, object))
        if (method or piece) not in owner:
            raise NotImplementedError(f"write {piece}: there is nothing of that name in your notebook")
        mine = _rebound(owner[method or piece], names, copy.__dict__)
        if owner_name:
            setattr(copy.__dict__[owner_name], method, mine)
        else:
            copy.__dict__[piece] = mine
    return types.SimpleNamespace(**copy.__dict__)


def _rebound(value: Any, old: Mapping[str, Any], new: dict[str, Any]) -> Any:
    """Return a function of the notebook that looks its globals up in `new`; anything else as it is."""
    if isinstance(value, property) and value.fget is not None:
        return property(_rebound(value.fget, old, new), doc=value.__doc__)
    if isinstance(value, staticmethod | classmethod):
        return type(value)(_rebound(value.__func__, old, new))
    if not isinstance(value, types.FunctionType) or value.__globals__ is not old:
        return value
    twin = types.FunctionType(value.__code__, new, value.__name__, value.__defaults__, value.__closure__)
    twin.__kwdefaults__ = value.__kwdefaults__
    twin.__doc__, twin.__annotations__, twin.__qualname__ = (value.__doc__, value.__annotations__, value.__qualname__)
    return twin
