"""The case studies of the course, and the distorted digits of the Olympics, the competition of module 17."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tinybench.course.cache import cached, cached_fit
from tinybench.support.basics.example_classifier import digits, network

SIDE, FEATURES = 28, 784
Split = tuple[np.ndarray, np.ndarray]


class Case(NamedTuple):
    """A case study: a fitted model, its training data, and test data.

    `groups` holds the original of each test row if the rows are copies, else None.
    """

    model: Any
    X_train: Any
    y_train: Any
    X: Any
    y: Any
    groups: Any = None


def case_study(name: str) -> Case:
    """Return a case study of modules 11 to 15: a network fitted on handwritten digits, with 32-bit numbers.

    Parameters
    ----------
    name
        ``"small"`` has 256 and 128 hidden units and works on 8 × 8 pixels. ``"narrow"`` (64 units) and ``"wide"``
        (512 and 256 units) work on 28 × 28 pixels: the same digits enlarged, rotated, shifted, and with noise. Fitting
        the wide network may take a minute, but only the first time (see `cached`).

    Raises
    ------
    ValueError
        If there is no case study of this name.
    """
    cases = {
        "small": ((256, 128), 60, digits),
        "narrow": ((64,), 20, _large_digits),
        "wide": ((512, 256), 15, _large_digits),
    }
    if name not in cases:
        raise ValueError(f"no case study {name!r}; there are {', '.join(cases)}")
    layers, iterations, load = cases[name]
    X_train, y_train, X, y, *groups = cached(load)
    fitted = cached_fit(network(layers, iterations), X_train, y_train)
    return Case(fitted, X_train, y_train, X, y, *groups)


def _large_digits() -> tuple[Any, ...]:
    """Return training and test rows of 28 × 28 pixels, and the original of each test row.

    No original digit has copies in both sets.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)

    def enlarged(originals: Any, copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = rng.permutation(np.resize(originals, copies))
        turns, shifts = np.empty((copies, 2, 2)), np.empty((copies, 2))
        for row in range(copies):
            angle, zoom, shifts[row] = rng.normal(0, 0.12), rng.uniform(0.9, 1.1), rng.normal(0, 0.3, 2)
            turns[row] = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * 8 / SIDE / zoom
        return _moved(X[rows].reshape(-1, 8, 8) / 16, turns, shifts, 0.1, rng), y[rows], rows

    train, test = train_test_split(np.arange(len(X)), test_size=360, random_state=0, stratify=y)
    return *enlarged(train, 10_000)[:2], *enlarged(test, 2160)


def _moved(pictures: Any, turns: Any, shifts: Any, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Return pictures transformed about their centre, shifted, and noisy, as rows of 28 × 28 pixels from 0 to 1."""
    from scipy.ndimage import affine_transform

    made = np.empty((len(pictures), SIDE, SIDE), np.float32)
    old, new = (pictures.shape[1] - 1) / 2, np.full(2, (SIDE - 1) / 2)
    for picture, turn, shift, result in zip(pictures, turns, shifts, made, strict=True):
        result[:] = affine_transform(picture, turn, old - turn @ new + shift, (SIDE, SIDE), order=1)
    made += rng.normal(0, noise, made.shape).astype(np.float32)
    return made.clip(0, 1).reshape(-1, FEATURES)


@cache
def _enlarged_originals() -> Split:
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    given = load_digits()
    pictures = np.stack([zoom(picture / 16, SIDE / 8, order=1) for picture in given.images])
    return pictures.astype(np.float32), given.target.astype(np.int64)


def originals_of(originals: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """Return the index of the existing digit from which `distorted` makes each digit, with the same arguments."""
    return _chosen(originals, rows, np.random.default_rng(seed))


def _chosen(originals: np.ndarray, rows: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(np.resize(rng.permutation(originals), rows))


def distorted(originals: np.ndarray, rows: int, seed: int) -> Split:
    """Return new digits with labels: copies of existing digits, rotated, scaled, sheared, shifted, and with noise.

    Parameters
    ----------
    originals
        Indices of the existing digits to copy, shape ``(k,)``.
    rows
        Number of digits to make. Each original is used equally often, give or take one.
    seed
        Random seed. The same seed gives the same digits.

    Returns
    -------
    tuple of array
        Pictures ``(rows, 784)``, float32 between 0 and 1, and labels ``(rows,)``, int64.
    """
    rng = np.random.default_rng(seed)
    pictures, labels = _enlarged_originals()
    chosen = _chosen(originals, rows, rng)
    angle, shear = rng.normal(0, 0.08, rows), rng.normal(0, 0.06, rows)
    scale, shift = rng.uniform(0.92, 1.1, (rows, 2)), rng.normal(0, 0.6, (rows, 2))
    cos, sin = np.cos(angle), np.sin(angle)
    turns = np.stack([cos, shear - sin, sin, cos], axis=1).reshape(rows, 2, 2) * scale[:, None]
    return _moved(pictures[chosen], turns, shift, 0.06, rng), labels[chosen]
