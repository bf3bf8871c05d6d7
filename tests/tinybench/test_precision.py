"""Forms of a model against NumPy, what is said of them, and what cannot be made."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tinybench.onnx import OnnxModel, operators
from tinybench.support.basics.layer_networks import initial_layers, save_layers
from tinybench.support.basics.onnx_files import load_graph, save_graph, weights
from tinybench.support.profiling.matrix_operators import PRODUCTS
from tinybench.tools.study import precision_comparison
from tinybench.tools.study.four_bits import pack, to_four_bits
from tinybench.tools.study.half_precision import to_half
from tinybench.tools.study.precision_comparison import FORMS, PrecisionStudy, precision_study

RNG = np.random.default_rng(0)
X = RNG.normal(size=(96, 40)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return save_layers(initial_layers([40, 48, 5], 0), tmp_path / "a network.onnx")


def study_of(path: Path, **how: Any) -> PrecisionStudy:
    return precision_study(path, X, **how)


def unpacked(packed: np.ndarray, scales: np.ndarray, inputs: int, block: int) -> np.ndarray:
    """Return the matrix that 4-bit weights stand for, read byte by byte."""
    outputs = len(packed)
    steps = np.stack([packed & 15, packed >> 4], axis=-1).reshape(outputs, -1, block).astype(float) - 8
    return (steps * scales.reshape(outputs, -1, 1)).reshape(outputs, -1)[:, :inputs].T


@pytest.mark.parametrize(("inputs", "block"), [(64, 32), (50, 16), (7, 128)])
def test_four_bits_are_nearest_steps_of_a_scale_for_each_block(inputs: int, block: int) -> None:
    matrix = RNG.normal(size=(inputs, 6)).astype(np.float32)
    matrix[:, 0] = 0
    packed, scales = pack(matrix, block)
    blocks = math.ceil(inputs / block)
    assert packed.shape == (6, blocks, block // 2)
    assert packed.dtype == np.uint8
    back = unpacked(packed, scales, inputs, block)
    assert not back[:, 0].any()
    steps = np.repeat(np.abs(scales.reshape(6, blocks)), block, axis=1)[:, :inputs].T
    assert np.all(np.abs(back - matrix) <= 1.001 * steps)  # the far end has one step less
    largest = np.abs(matrix[:block]).argmax(axis=0)
    assert back[largest, range(6)] == pytest.approx(matrix[largest, range(6)], rel=1e-6)


def gemm(path: Path, matrix: np.ndarray, **options: Any) -> Path:
    """Write one Gemm with a stored matrix and bias."""
    names = {"W": matrix, "b": np.arange(6, dtype=np.float32)}
    node = helper.make_node("Gemm", ["X", "W", "b"], ["Y"], **options)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None]) for name in "XY"]
    stored = [numpy_helper.from_array(array, name) for name, array in names.items()]
    graph = helper.make_graph([node], "gemm", ends[:1], ends[1:], stored)
    save_graph(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


@pytest.mark.processor
@pytest.mark.parametrize("turned", [0, 1])
def test_the_runtime_reads_four_bits_as_they_were_packed(tmp_path: Path, turned: int) -> None:
    matrix = RNG.normal(size=(40, 6)).astype(np.float32)
    source = gemm(tmp_path / "gemm.onnx", np.ascontiguousarray(matrix.T) if turned else matrix, transB=turned)
    made = to_four_bits(source, tmp_path / "with a space.onnx", accuracy_level=1)
    assert operators(made) == {"MatMulNBits": 1, "Add": 1}
    expected = X @ unpacked(*pack(matrix), 40, 32) + np.arange(6)
    assert OnnxModel(made).forward(X) == pytest.approx(expected, abs=1e-4)
    assert "W" not in weights(made)


def test_what_has_no_four_bits_is_refused(tmp_path: Path, path: Path) -> None:
    matrix = RNG.normal(size=(40, 6)).astype(np.float32)
    with pytest.raises(ValueError, match="no matrix product with stored weights"):
        to_four_bits(gemm(tmp_path / "scaled.onnx", matrix, alpha=2.0), tmp_path / "none.onnx")
    with pytest.raises(ValueError, match="block is 33"):
        to_four_bits(path, tmp_path / "none.onnx", block=33)
    with pytest.raises(FileExistsError):
        to_four_bits(path, path)
    matrix[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        to_four_bits(gemm(tmp_path / "bad.onnx", matrix), tmp_path / "none.onnx")


def test_bfloat16_is_the_nearest_upper_half_of_a_float(tmp_path: Path, path: Path) -> None:
    made = to_half(path, tmp_path / "bf16.onnx", kind="bfloat16")
    stored = {tensor.name: tensor for tensor in load_graph(made).graph.initializer}
    for name, values in weights(path).items():
        tensor = stored[f"{name}_half"]
        assert tensor.data_type == TensorProto.BFLOAT16
        bits = np.frombuffer(tensor.raw_data, "<u2").astype("<u4") << 16
        back = bits.view("<f4").reshape(values.shape)
        assert np.all(np.abs(back - values) <= np.abs(values) * 2.0**-8)
    onnx.checker.check_model(load_graph(made))
    large = gemm(tmp_path / "large.onnx", np.full((40, 6), 1e6, np.float32))
    to_half(large, tmp_path / "wide.onnx", kind="bfloat16")
    with pytest.raises(ValueError, match="end at 65504"):
        to_half(large, tmp_path / "narrow.onnx")
    with pytest.raises(ValueError, match="kind is 'float8'"):
        to_half(path, tmp_path / "none.onnx", kind="float8")


@pytest.mark.processor
def test_a_study_tells_of_every_form_and_leaves_nothing_behind(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = {file: file.read_bytes() for file in path.parent.glob("*.onnx")}
    study = study_of(path, batch=16, rounds=6, seed=0)
    assert not list(scratch.iterdir())
    assert {file: file.read_bytes() for file in path.parent.glob("*.onnx")} == before
    rows = {row["form"]: row for row in study.rows}
    assert tuple(rows) == FORMS
    assert rows["FP32"]["gap"] == 0
    assert rows["FP32"]["agreement"] == rows["FP32"]["ratio"] == 1
    assert rows["FP32"]["fell_back"] == ""
    assert rows["FP16"]["gap"] < 5e-3
    assert rows["FP16"]["size"] < 0.7 * rows["FP32"]["size"]
    for form, row in rows.items():
        assert row["size"] > 0
        if row["reason"] is not None:
            assert form == "bfloat16"
            assert row["reason"].startswith("no kernel: ")
            continue
        assert sum(row["ran"].values()) == pytest.approx(1)
        assert sum(row["types"].values()) == pytest.approx(1)
        assert set(row["ran"]) & set(PRODUCTS)
        assert row["agreement_ci"][0] <= row["agreement"] <= row["agreement_ci"][1]
        assert study.latencies[form].count == 6
        if form != "FP32":
            assert row["ratio_ci"][0] <= row["ratio"] <= row["ratio_ci"][1]
    assert set(rows["INT8 dynamic"]["types"]) <= {"uint8", "int8", "float"}
    assert "4-bit weights" in rows["4-bit weights"]["types"]
    json.dumps(study.to_dict(), allow_nan=False)
    assert "no kernel" in str(study) or rows["bfloat16"]["reason"] is None
    assert "<table>" in study._repr_mimebundle_()["text/html"]


def test_what_ran_in_another_type_has_fallen_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision_comparison, "types_that_ran", lambda events: {"float": 0.75, "float16": 0.25})
    study = study_of(path, forms=["FP16"], rounds=6)
    assert [row["form"] for row in study.rows] == ["FP32", "FP16"]
    assert study.rows[1]["fell_back"].startswith("75% of the products ran in float")
    assert study.rows[0]["fell_back"] == "25% of the products ran in float16"


def test_the_trace_is_of_the_runs_that_were_made(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(precision_comparison, "types_that_ran", lambda events: seen.append(events) or {})
    study_of(path, forms=[], rounds=6)
    products = [e for e in seen[0] if e.get("cat") == "Node" and e["args"].get("op_name") in PRODUCTS]
    assert sum(event["name"].endswith("_kernel_time") for event in products) == 2 * precision_comparison.TRACED


def test_a_form_that_cannot_be_made_is_a_row_with_the_reason(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["X"], ["Y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 40]) for name in "XY"]
    graph = helper.make_graph([node], "relu", ends[:1], ends[1:])
    path = tmp_path / "no product.onnx"
    save_graph(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    rows = {row["form"]: row for row in study_of(path, rounds=6).rows}
    for form in ("FP16", "bfloat16", "4-bit weights"):
        assert "no matrix product" in rows[form]["reason"]
        assert rows[form]["ratio"] is None
    assert rows["FP32"]["reason"] is None


def test_a_regressor_has_no_labels(tmp_path: Path) -> None:
    path = gemm(tmp_path / "one.onnx", RNG.normal(size=(40, 6)).astype(np.float32))
    model = load_graph(path)
    W, b = RNG.normal(size=(40, 1)).astype(np.float32), np.zeros(1, np.float32)
    del model.graph.initializer[:]
    model.graph.initializer.extend([numpy_helper.from_array(W, "W"), numpy_helper.from_array(b, "b")])
    save_graph(model, path)
    rows = study_of(path, forms=["INT8 dynamic"], rounds=6).rows
    assert rows[1]["agreement"] is None
    assert rows[1]["gap"] > 0


def test_four_bits_without_a_kernel_for_integers_are_said_to_run_in_float(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tinybench.tools.study.four_bits.to_four_bits.__kwdefaults__",
        {"block": 32, "accuracy_level": 1, "overwrite": False},
    )
    study = study_of(path, forms=["4-bit weights"], rounds=6)
    assert "all in float" in study.rows[1]["fell_back"]


def test_bad_arguments_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no form 'INT4'"):
        study_of(path, forms=["INT4"])
    with pytest.raises(ValueError, match="rounds is 5"):
        study_of(path, rounds=5)
    with pytest.raises(FileNotFoundError):
        study_of(tmp_path / "none.onnx")
