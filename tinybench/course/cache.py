"""A cache of computed values, such as trained models, in files.

The name of each file is a digest of everything on which the value depends. `joblib.Memory` recomputes a value only if
the source of the cached function has changed. This cache also recomputes a value if a function that the cached function
calls has changed.
"""

from __future__ import annotations

import importlib
import os
import platform
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.whole_files import replacing


def cached(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, read from a file if exactly the same call was computed before.

    The file's name is a digest of everything that the value depends on: the code of the function, the functions and
    values that it uses, the arguments, and the versions of Python and the libraries. If one of these changes, the value
    is computed again. The files are in ``$TINYBENCH_CACHE``, by default ``~/.cache/tinybench``. If this folder cannot
    be written, the value is not cached.

    Parameters
    ----------
    function
        A deterministic function of your own, not a method.
    args
        Arrays, estimators or plain data.
    """
    import joblib  # type: ignore[import-untyped]

    versions = {name: _version(name) for name in ("numpy", "scipy", "sklearn")}
    digest = joblib.hash([_depends_on(function, {}), args, platform.python_version(), versions])
    folder = Path(os.environ.get("TINYBENCH_CACHE") or Path.home() / ".cache" / "tinybench")
    file = folder / f"{function.__name__.strip('_')}-{digest}.joblib"
    if file.is_file():
        try:
            return joblib.load(file)
        except Exception:
            print(f"{file} cannot be read; computing it anew")
    value = function(*args)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(file) as stream:
            joblib.dump(value, stream)
    except OSError as error:
        print(f"not kept for next time: {error}")
    return value


def cached_fit(model: Any, X: Any, y: Any) -> Any:
    """Return a scikit-learn model fitted on data, from the cache if possible, without warnings about convergence."""
    return cached(_fitted, model, X, y)


def _fitted(model: Any, X: Any, y: Any) -> Any:
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    print(f"fitting {model} on {number_of(len(X), 'row')}: once, then it is read from the cache", flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(X, y)


def _version(module: str) -> str:
    return str(getattr(importlib.import_module(module.partition(".")[0]), "__version__", ""))


def _depends_on(value: Any, seen: dict[int, str]) -> Any:
    """Return everything that a function, class or value depends on, as plain data that can be hashed."""
    if id(value) in seen:
        return seen[id(value)]
    module = getattr(value, "__module__", None) or ""
    name = f"{module}.{getattr(value, '__qualname__', '')}"
    if isinstance(value, types.ModuleType):
        return value.__name__, _version(value.__name__)
    if isinstance(value, types.FunctionType | type):
        seen[id(value)] = name
        if module.partition(".")[0] not in ("__main__", "tinybench", "builtins"):
            return name, _version(module)
    if isinstance(value, types.FunctionType):
        used = [value.__globals__[n] for n in sorted(_names(value.__code__)) if n in value.__globals__]
        enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = [*used, *enclosed, value.__defaults__, value.__kwdefaults__]
        return _code(value.__code__), [_depends_on(part, seen) for part in parts]
    if isinstance(value, type) and module != "builtins":
        return name, [_depends_on(part, seen) for part in vars(value).values() if isinstance(part, types.FunctionType)]
    return name if callable(value) and hasattr(value, "__qualname__") else value


def _names(code: types.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*(_names(c) for c in inner))


def _code(code: types.CodeType) -> Any:
    constants = [_code(c) if isinstance(c, types.CodeType) else c for c in code.co_consts]
    return code.co_code, code.co_names, constants
