"""Valid entries: what students really export passes, quickly, and is described rightly."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import check
from tests.leaderboard.boards import dense, trained
from tests.quick import within


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """An MLP, its dynamic and static INT8 versions, and a random forest."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_dynamic,
        quantize_static,
    )
    from sklearn.ensemble import RandomForestClassifier

    folder = tmp_path_factory.mktemp("models")
    images, labels = digits.training_split()
    source = folder / "mlp.onnx"
    source.write_bytes(trained())
    quantize_dynamic(source, folder / "dynamic.onnx", weight_type=QuantType.QInt8)

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.batches = iter([{"X": images[:64]}, {"X": images[64:128]}])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.batches, None)

    quantize_static(
        source,
        folder / "static.onnx",
        Reader(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul", "Gemm", "Relu"],
    )
    forest = RandomForestClassifier(20, max_depth=10, random_state=0).fit(images[:1500], labels[:1500])
    return {
        "mlp": trained(),
        "forest": digits.to_onnx_bytes(forest),
        **{kind: Path(folder / f"{kind}.onnx").read_bytes() for kind in ("dynamic", "static")},
    }


@pytest.mark.parametrize(
    ("kind", "operator"),
    [
        ("mlp", "MatMul"),
        ("forest", "TreeEnsembleClassifier"),
        ("dynamic", "MatMulInteger"),
        ("static", "QuantizeLinear"),
    ],
)
def test_what_students_export_passes(models: dict[str, bytes], kind: str, operator: str) -> None:
    data = models[kind]
    facts = check(data)
    assert operator in facts.operators
    assert facts.sha256 == hashlib.sha256(data).hexdigest()
    assert facts.size == len(data)


def test_it_takes_milliseconds(models: dict[str, bytes]) -> None:
    within(0.02, lambda: check(models["mlp"]))
    within(0.02, lambda: check(models["dynamic"]))
    within(0.2, lambda: check(models["forest"]))  # a hundred thousand numbers in lists


def test_weights_are_counted() -> None:
    assert check(dense(8)).weights == 784 * 8 + 8 * 10


def test_the_smallest_model_is_an_entry() -> None:
    assert check(digits.tiny_model()).nodes == 2
