"""Readers of rows and labels from .npy and .npz files."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name. They must include X. The array of an .npy file gets the name X."""
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
    """Return the first `batch` rows, all rows, and the labels or None. If the file has fewer rows, repeat them."""
    arrays = load_arrays(path)
    return _first_rows(arrays["X"], batch), arrays["X"], arrays.get("y")


def load_labelled(path: Path, batch: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first `batch` rows, all rows, and the labels, like `load_data`.

    Raise ValueError if the file has no labels, or names groups of rows, because the caller does not use them.
    """
    rows, labels, groups = load_grouped(path)
    if groups is not None:
        raise ValueError(f"only tinybench study uses the groups of rows in {path}; use it, or leave the groups out")
    return _first_rows(rows, batch), rows, labels


def load_grouped(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return all rows, the labels, and the group of each row or None. Without labels, raise ValueError."""
    arrays = load_arrays(path)
    if "y" not in arrays:
        raise ValueError(f"{path} has no labels; accuracy needs y: np.savez(file, X=rows, y=labels)")
    return arrays["X"], arrays["y"], arrays.get("groups")


def _first_rows(rows: np.ndarray, batch: int) -> np.ndarray:
    if batch < 1:
        raise ValueError(f"--batch is {batch}; a call takes at least one row")
    return np.resize(rows, (batch, *rows.shape[1:]))
