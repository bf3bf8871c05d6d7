"""Functions to build classes cell by cell, and to check one piece of a student's module at a time.

A piece is a function, class or method that the student writes.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

BUILT_BY_STUDENT = "# Built by the student from "
REFERENCE_OF = "# The reference of "
EXPORTED = '# Written by "autograder export" from '
CODE: dict[str, types.CodeType] = {}  # code of modules by path; a grader adds references that are not in a file


def add_to_class(cls: type) -> Callable[[Any], Any]:
    """Add the decorated function, property or class method to `cls`, so that a class can grow one cell at a time.

    `autograder export` writes the function into the body of the class.

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
    """Print whether each of the named modules is the student's own file or a reference.

    If any of the modules do not exist yet, print one line on how to get them all.
    """
    missing = []
    for name in names:
        spec = importlib.util.find_spec(f"tinybench.{name}")
        if spec is None:
            raise ModuleNotFoundError(f"there is no tinybench.{name}: check the spelling")
        if spec.origin is None:
            missing.append(spec)
            continue
        path = Path(spec.origin)
        how = how_given(path)
        whose = "your own code" if is_own(path) else f"the reference{f', {how}' if how else ''}"
        print(f"tinybench.{name}: {whose} ({path.parent.name}/{path.name})")
    if missing:
        advice: Callable[..., str] = getattr(missing[0].loader, "advice", lambda *names: f"no file: {', '.join(names)}")
        print(advice(*(spec.name for spec in missing)))


def is_own(path: Path) -> bool:
    """Return whether a module's file exists and is the student's own. A reference is identified by its first line."""
    return path.is_file() and not _first_line(path).startswith((EXPORTED, REFERENCE_OF))


def how_given(path: Path) -> str:
    """Return how a reference came into a package, such as "released by your instructor", else an empty string."""
    match = re.match(rf"{REFERENCE_OF}\S+, (.*): ", _first_line(path)) if path.is_file() else None
    return match[1] if match else ""


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline()


def graft(module: str, names: Mapping[str, Any], *pieces: str) -> types.SimpleNamespace:
    """Return a module in which the named pieces are your own code, so that a check can test these pieces.

    If the module in use is the reference, as in grading, everything else comes from the reference, so that a mistake in
    an earlier cell cannot cost points here. If the module is your own or does not exist yet, everything comes from your
    notebook.

    Parameters
    ----------
    module
        The name of the module, for example ``"tinybench.result"``.
    names
        The namespace with your pieces: ``globals()`` in a notebook.
    pieces
        ``"t_interval"`` for a function or class, ``"BenchmarkResult.cv"`` for one method.

    Raises
    ------
    NotImplementedError
        If a piece has not been written yet.
    """
    mine = {piece: _piece(piece, names) for piece in pieces}
    code = _reference(module)
    if code is None:
        return types.SimpleNamespace(**names)
    copy = types.ModuleType(module)
    # dataclasses and typing look their module up by name while the body runs
    original = sys.modules.get(module)
    sys.modules[module] = copy
    try:
        exec(code, copy.__dict__)
    finally:
        if original is None:
            del sys.modules[module]
        else:
            sys.modules[module] = original
    for name, value in names.items():  # helpers that the student added stay available
        copy.__dict__.setdefault(name, value)
    for piece, value in mine.items():
        owner, _, name = piece.rpartition(".")
        twin = _rebound(value, names, copy.__dict__)
        if owner:
            setattr(copy.__dict__[owner], name, twin)
        else:
            copy.__dict__[piece] = twin
    return types.SimpleNamespace(**copy.__dict__)


def use_notebook_as(module: str, names: Mapping[str, Any], within: str) -> None:
    """Make part of the library use your notebook's code before that code is built into your package.

    Parameters
    ----------
    module
        The module that this notebook builds, for example ``"tinybench.quantize"``.
    names
        The namespace with your code: ``globals()`` in a notebook.
    within
        The file or folder of the library that uses the module, for example ``"tinybench.tools.study"``. Import from
        it afterwards. If you change your code, run this call and the import again.
    """
    yours = types.ModuleType(module)
    yours.__spec__ = importlib.util.find_spec(module)
    yours.__dict__.update({name: value for name, value in names.items() if not name.startswith("__")})
    sys.modules[module] = yours
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{within}.")]:
        del sys.modules[name]


def _piece(piece: str, names: Mapping[str, Any]) -> Any:
    owner, _, name = piece.rpartition(".")
    there = vars(names.get(owner, object)) if owner else names
    if name not in there:
        raise NotImplementedError(f"write {piece}: there is nothing of that name in your notebook")
    return there[name]


def _reference(module: str) -> types.CodeType | None:
    """Return the code of a module's reference, or None if the module is the student's own or missing."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # importing a parent package failed
        return None
    if spec is None or spec.origin is None:
        return None
    if spec.origin not in CODE:
        if is_own(Path(spec.origin)):
            return None
        source = Path(spec.origin).read_text(encoding="utf-8")
        CODE[spec.origin] = compile(source, spec.origin, "exec")
    return CODE[spec.origin]


def _rebound(value: Any, old: Mapping[str, Any], new: dict[str, Any]) -> Any:
    """Return a copy of a notebook's function whose globals are `new`. Return any other value unchanged."""
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
