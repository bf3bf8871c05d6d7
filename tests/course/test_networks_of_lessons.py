"""What modules 13 and 17 import for their lessons: the order of training, moved digits, and bytes that are no entry."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinybench.course.lessons.m13 import recipe_networks
from tinybench.course.lessons.m17 import session_of, shifted
from tinybench.support.basics.layer_networks import initial_layers, save_layers


def test_each_recipe_trains_as_long_and_the_baseline_teaches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TINYBENCH_CACHE", str(tmp_path))
    trained: list[tuple[Any, ...]] = []

    def train(network: str, X: Any, y: Any, epochs: int, *, seed: int, teacher: Any, batch: int) -> str:
        trained.append((network, epochs, seed, None if teacher is None else teacher.tolist()))
        return f"{network}+{epochs}"

    recipes = {"base": ((9,), str, False), "cut": ((9,), lambda net: f"cut {net}", False), "taught": ((3,), str, True)}
    early, after = recipe_networks(
        recipes, np.zeros((4, 5)), [0], train,
        lambda sizes, seed: f"{'-'.join(map(str, sizes))} seed {seed}", lambda network, X: [np.array([len(network)])],
    )  # fmt: skip
    assert early("cut", 1) == "5-9-10 seed 1+12"
    assert after("cut", 1) == "cut 5-9-10 seed 1+12+6"
    assert after("taught", 1) == "5-3-10 seed 1+12+6"
    scores = [len("5-9-10 seed 1+12+6")]
    assert trained == [
        ("5-9-10 seed 1", 12, 1, None),  # once for both that begin with it
        ("cut 5-9-10 seed 1+12", 6, 1, None),
        ("5-9-10 seed 1+12", 6, 1, None),
        ("5-3-10 seed 1", 12, 1, scores),
        ("5-3-10 seed 1+12", 6, 1, scores),
    ]


def test_moved_digits_are_the_same_a_pixel_apart() -> None:
    one = np.zeros((1, 28, 28))
    one[0, 10, 20] = 1
    rows, labels = shifted(one.reshape(1, 784), np.array([7]))
    assert sorted(divmod(int(row.argmax()), 28) for row in rows) == [(9, 20), (10, 19), (10, 20), (10, 21), (11, 20)]
    assert labels.tolist() == [7] * 5


def test_what_is_no_entry_is_told_in_words(tmp_path: Path) -> None:
    content = save_layers(initial_layers((784, 4, 10), 0), tmp_path / "entry.onnx").read_bytes()
    assert session_of(content).get_inputs()[0].shape[1] == 784
    for wrong, why in ((tmp_path, "bytes expected"), (content[:-50], "not whole"), (pickle.dumps(3), "a pickle")):
        with pytest.raises(AssertionError, match=why):
            session_of(wrong)
