"""What the commands read and write: models, data, and results."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of


def load_models(specs: Sequence[str], threads: int = 1) -> dict[str, Any]:
    """Return models by the names of their files, or as they were called where these are not unique."""
    names = [Path(spec).stem if spec.endswith((".onnx", ".joblib")) else spec for spec in specs]
    if len(set(names)) < len(names):
        names = list(specs)
    if len(set(names)) < len(names):
        raise ValueError("the same model is named twice; copy the file to compare a model with itself")
    return {name: load_model(spec, threads) for name, spec in zip(names, specs, strict=True)}


def refuse_missing(*files: str | Path) -> None:
    """Raise FileNotFoundError that names all files which are not there; what is not the name of a file is left out."""
    named = [Path(file) for file in files if isinstance(file, Path) or file.endswith((".onnx", ".joblib"))]
    if missing := [str(file) for file in dict.fromkeys(named) if not file.is_file()]:
        raise FileNotFoundError(f"{', '.join(missing)}: no such file{'s' * (len(missing) > 1)}")


def load_model(spec: str, threads: int = 1) -> Any:
    """Return the model that a file or ``module:function`` names."""
    if spec.endswith(".onnx"):
        if not Path(spec).is_file():
            raise FileNotFoundError(f"{spec}: no such file")
        from tinybench.onnx import new_session, session_options

        try:
            return new_session(spec, session_options(threads))
        except Exception as error:  # ONNX Runtime's errors share no base class of their own
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


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file, or the one of an .npy file, among them X."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    with path.open("rb") as file:
        try:
            loaded = np.load(file, allow_pickle=False)
            arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded}
        except Exception as error:  # a broken zip file, pickled objects, or neither format
            raise ValueError(f"{path} is no .npy or .npz file of numbers: {error}") from None
    if "X" not in arrays:
        raise ValueError(f"{path} holds {', '.join(arrays)}; name the rows X, as np.savez(file, X=rows, y=labels) does")
    if len(arrays["X"]) == 0:
        raise ValueError(f"{path} holds no rows")
    return arrays


def load_data(path: Path, batch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return a batch, all rows, and the labels where there are any."""
    arrays = load_arrays(path)
    rows = arrays["X"]
    if batch < 1:
        raise ValueError(f"--batch is {batch}; a call takes at least one row")
    return np.resize(rows, (batch, *rows.shape[1:])), rows, arrays.get("y")


def load_labelled(path: Path, batch: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a batch, all rows and their labels."""
    first, rows, labels = load_data(path, batch)
    if labels is None:
        raise ValueError(f"{path} has no labels; accuracy needs y: np.savez(file, X=rows, y=labels)")
    return first, rows, labels


def load_result(path: Path, model: str | None = None) -> BenchmarkResult:
    """Return the result that a file holds, or that of one model where it holds several."""
    hint = f"`tinybench measure … --save {path}` writes"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; {hint} one") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not JSON ({error}); {hint} such a file") from None
    results = (data.get("results") or {"": data}) if isinstance(data, dict) else {}
    if model is not None and model not in results:
        raise ValueError(f"{path} has no model {model!r}; it has {', '.join(results)}")
    if model is None and len(results) != 1:
        raise ValueError(f"{path} holds {number_of(len(results), 'model')} ({', '.join(results)}); choose with --model")
    try:
        return BenchmarkResult.from_dict(results[model] if model is not None else next(iter(results.values())))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no result of tinybench: {error}") from None


def keep(results: dict[str, BenchmarkResult], save: Path | None, rescue: bool = False) -> tuple[Path | None, str]:
    """Add the record of conditions and write the results to `save`; return the file, and what stood in the way.

    Where `save` cannot be written, or to `rescue` what nobody gave a file for, it is one in the current folder, or in
    that for temporary files; None if there is no room at all.
    """
    from tinybench.benchmark import system_info

    system = system_info()
    for name, result in results.items():
        result.metadata |= {"model": name, "system": system}
    if not (save or rescue):
        return None, ""
    text = json.dumps({"results": {name: result.to_dict() for name, result in results.items()}})
    other = f"tinybench-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.json"
    problem = ""
    for file in ([save] if save else []) + [Path(other), Path(tempfile.gettempdir(), other)]:
        try:
            _write(file, text)
            return file, problem
        except OSError as error:
            problem = problem or f"cannot write {file} ({error.strerror})"
    return None, problem


def _write(file: Path, text: str) -> None:
    """Write a file complete or not at all: a full disk must not cost what stood there before."""
    if file.exists() and not file.is_file():  # such as /dev/stdout
        file.write_text(text, encoding="utf-8")
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
