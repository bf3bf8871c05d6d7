"""What the lesson of the Olympics gives: INT8 only where integer operators come out, and the rule of the journal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tinybench.course.lessons.m17 import eight_bits, journal_verdict, quiet_fit
from tinybench.onnx import convert
from tinybench.quantize import integer_operators
from tinybench.support.basics.layer_networks import initial_layers, save_layers


def test_eight_bits_are_integer_operators(tmp_path: Path) -> None:
    content = save_layers(initial_layers((784, 64, 32, 10), 0), tmp_path / "net.onnx").read_bytes()
    eight = eight_bits(content)
    assert integer_operators(eight)
    assert len(eight) < 0.4 * len(content)


def test_a_model_with_nothing_to_quantise_comes_back_unchanged() -> None:
    from sklearn.linear_model import LogisticRegression

    rows = np.random.default_rng(0).random((90, 784), np.float32)
    content = convert(quiet_fit(LogisticRegression(max_iter=1), rows, np.arange(90) % 10), rows[:1]).SerializeToString()
    assert eight_bits(content) == content


@pytest.mark.parametrize(
    ("latency", "chance", "kept_chance", "verdict"),
    [
        ("undecided: needs about 80 more rounds", 1.0, 0.9, "undecided"),
        ("undecided", 0.5, 0.9, "undecided"),
        ("faster", 0.5, 1.0, "reject"),
        ("faster", 0.95, 1.0, "keep"),
        ("equivalent", 0.99, 0.96, "keep"),
        ("equivalent", 0.97, 0.97, "reject"),
        ("equivalent", 0.96, 0.99, "reject"),
        ("slower", 1.0, 0.96, "reject"),
    ],
)
def test_the_first_line_of_the_rule_that_applies_decides(
    latency: str, chance: float, kept_chance: float, verdict: str
) -> None:
    assert journal_verdict(latency, chance, kept_chance, 0.95) == verdict
