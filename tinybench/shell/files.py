"""Functions for the files that the commands use: check that inputs exist, read and write results."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.whole_files import replacing


def refuse_missing(*files: str | Path) -> None:
    """Raise FileNotFoundError with the names of all missing files. Skip strings that name no model file."""
    named = [Path(file) for file in files if isinstance(file, Path) or file.endswith((".onnx", ".joblib"))]
    if missing := [str(file) for file in dict.fromkeys(named) if not file.is_file()]:
        raise FileNotFoundError(f"{', '.join(missing)}: no such file{'s' * (len(missing) > 1)}")


def load_result(path: Path, model: str | None = None) -> BenchmarkResult:
    """Return the result in a file, or the result of `model` if the file holds several."""
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
    """Record the conditions in the results, and write the results to `save`. Return the file and any error as text.

    If `save` cannot be written, or if `rescue` is set and `save` is None, the results are written to a new file in the
    current folder or, if that fails too, in the folder for temporary files. The returned file is None if nothing was
    written.
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
    """Write a file completely or not at all, so that a full disk does not destroy its previous content."""
    if file.exists() and not file.is_file():  # such as /dev/stdout
        file.write_text(text, encoding="utf-8")
        return
    with replacing(file) as stream:
        stream.write(text.encode())
