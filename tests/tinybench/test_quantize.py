"""Quantisation against NumPy's integers and ONNX's reference evaluator, bad input, and the study on small models."""

from __future__ import annotations

import csv
import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tinybench import quantize
from tinybench.course import cached_fit
from tinybench.latency import measure_latencies
from tinybench.onnx import OnnxModel, session_options, to_onnx
from tinybench.pareto import Requirements
from tinybench.quantize import quantization_params, quantize_dynamic_int8, quantize_static_int8, quantize_tensor, sqnr
from tinybench.result import BenchmarkResult
from tinybench.support.basics.onnx_files import load_graph, weights
from tinybench.support.conditions.int8_probe import integer_products
from tinybench.support.quantizing.grids import QuantParams
from tinybench.support.quantizing.quantized_files import CalibrationRows
from tinybench.tools.study.conversion import study_variants
from tinybench.tools.study.decisions import study_decision, study_requirements
from tinybench.tools.study.gains import claim_verdict, study_claims
from tinybench.tools.study.half_precision import product_types, to_half
from tinybench.tools.study.int8_study import tradeoff_study
from tinybench.tools.study.measurements import throughput_and_bandwidth
from tinybench.tools.study.variants import Variant

pytestmark = pytest.mark.processor

OPSET = '<ir_version: 10, opset_import: ["" : 21]>'
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 20)).astype(np.float32)
y = (X @ RNG.normal(size=(20, 3))).argmax(axis=1)


@pytest.fixture(scope="module")
def network() -> Any:
    return cached_fit(MLPClassifier((128, 64), max_iter=15, random_state=0), X[:400], y[:400])


@pytest.fixture
def model_path(network: Any, tmp_path: Path) -> Path:
    return to_onnx(network, X, tmp_path / "network.onnx")


tensors = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 6)), elements=st.floats(-1e3, 1e3, width=32))


@given(tensors, st.booleans(), st.integers(2, 12), st.sampled_from([None, 0, 1]))
def test_rounding_moves_by_half_a_step_at_most(x: np.ndarray, symmetric: bool, bits: int, axis: int | None) -> None:
    grid = quantization_params(x, symmetric, bits, axis)
    q = quantize_tensor(x, grid)
    assert grid.limits[0] <= q.min() <= q.max() <= grid.limits[1]
    # rounding the zero point may move an end of the grid by another half step
    assert np.all(np.abs(quantize.dequantize(q, grid) - x) <= grid.scale * 1.0001 + 1e-12)
    assert np.all(quantize.dequantize(quantize_tensor(np.zeros_like(x), grid), grid) == 0)


@given(tensors, st.integers(2, 12))
def test_quantising_twice_changes_nothing(x: np.ndarray, bits: int) -> None:
    grid = quantization_params(x, bits=bits)
    once = quantize_tensor(x, grid)
    assert np.array_equal(quantize_tensor(quantize.dequantize(once, grid), grid), once)


@given(tensors)
def test_nothing_is_clipped_on_its_own_grid(x: np.ndarray) -> None:
    assert quantize.clipped_share(x, quantization_params(x, symmetric=True)) == 0


@pytest.mark.parametrize("bad", [[1.0, np.nan], [np.inf], []])
def test_no_grid_for_what_is_not_finite(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="no range to put on a grid"):
        quantization_params(bad)
    with pytest.raises(ValueError, match="2 to 16 bits"):
        quantization_params([1.0], bits=1)


def test_six_decibels_a_bit() -> None:
    x = RNG.uniform(-1, 1, 20_000)
    values = [sqnr(x, quantization_params(x, symmetric=True, bits=bits)) for bits in (5, 6, 7, 8)]
    assert np.diff(values) == pytest.approx([6.02] * 3, abs=0.4)


@given(st.integers(1, 400), st.integers(0, 255), st.integers(0, 2**32 - 1))
def test_products_are_exact(k: int, zero: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, w = rng.integers(0, 256, (3, k)).astype(np.uint8), rng.integers(-127, 128, (k, 2)).astype(np.int8)
    grid = QuantParams(np.array(0.5), np.array(zero))
    exact = (a.astype(int) - zero) @ w.astype(int) * 0.5 * 0.25
    assert np.array_equal(quantize.int8_matmul(a, grid, w, QuantParams(np.array(0.25), np.array(0), 8, True)), exact)


def test_pairs_saturate_and_nothing_else() -> None:
    full = quantize.saturating_matmul(np.full((1, 64), 255, np.uint8), np.full((64, 1), 127, np.int8))
    assert full.tolist() == [[1_048_544]]
    rng = np.random.default_rng(1)
    a = rng.integers(0, 256, (5, 301)).astype(np.uint8)
    safe = rng.integers(-64, 65, (301, 4)).astype(np.int8)
    assert np.array_equal(quantize.saturating_matmul(a, safe), a.astype(int) @ safe.astype(int))


@given(st.integers(1, 40), st.integers(1, 90), st.integers(1, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_the_runtime_multiplies_as_its_probe_says(n: int, k: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for pair, kind in integer_products().items():
        a, w = (
            rng.integers(np.iinfo(name).min, np.iinfo(name).max + 1, shape).astype(name)
            for name, shape in zip(pair.split(" × "), ((n, k), (k, m)), strict=True)
        )
        sums = one_product(a, w).run(None, {"a": a, "w": w})[0]
        assert kind in ("exact", "saturating")
        truth = a.astype(int) @ w.astype(int) if kind == "exact" else quantize.saturating_matmul(a, w)
        assert np.array_equal(sums, truth), f"{pair} is called {kind}"


def one_product(a: np.ndarray, w: np.ndarray) -> InferenceSession:
    inputs = ", ".join(f"{array.dtype}{list(array.shape)} {name}" for name, array in (("a", a), ("w", w)))
    text = f"{OPSET} one ({inputs}) => (int32[N, M] y) {{y = MatMulInteger (a, w)}}"
    return InferenceSession(onnx.parser.parse_model(text).SerializeToString(), session_options())


def layer(W: np.ndarray, path: Path) -> Path:
    """A file of y = x · W."""
    n, m = W.shape
    model = onnx.parser.parse_model(f"{OPSET} one (float[N, {n}] x) => (float[N, {m}] y) {{y = MatMul (x, W)}}")
    model.graph.initializer.append(onnx.numpy_helper.from_array(W, "W"))
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("reduce_range", [None, True])
def test_by_hand_equals_the_file_within_a_step(network: Any, tmp_path: Path, reduce_range: bool | None) -> None:
    """By ONNX's definition, and, as its products cannot saturate, by the runtime of any machine."""
    W = network.coefs_[0]
    made = quantize_dynamic_int8(layer(W, tmp_path / "one.onnx"), reduce_range=reduce_range)
    stored = weights(made)
    w = next(v for v in stored.values() if v.shape == W.shape)
    scale = float(next(v for v in stored.values() if v.dtype == np.float32 and v.size == 1).ravel()[0])
    grid = quantization_params(X)
    ours = quantize.int8_matmul(quantize_tensor(X, grid), grid, w, QuantParams(np.array(scale), np.array(0), 8, True))
    step = float(grid.scale) * scale * 127
    assert np.abs(ours - ReferenceEvaluator(load_graph(made)).run(None, {"x": X})[0]).max() <= step
    assert np.abs(ours - OnnxModel(made).forward(X)).max() <= step


QUANTISE: dict[str, Any] = {
    "dynamic": quantize_dynamic_int8,
    "static": partial(quantize_static_int8, calibration=X[:256]),
}


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weight_type", ["int8", "uint8"])
@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_files_are_as_asked(kind: str, weight_type: str, per_channel: bool, network: Any, model_path: Path) -> None:
    largest = {}
    for reduce_range in (False, True):
        options: dict[str, Any] = {"weight_type": weight_type, "per_channel": per_channel, "reduce_range": reduce_range}
        made = QUANTISE[kind](model_path, overwrite=True, **options)
        assert sum(quantize.integer_operators(made).values()) == 3
        stored = weights(made)
        first = next(v for v in stored.values() if v.shape == network.coefs_[0].shape)
        assert first.dtype == np.dtype(weight_type)
        scales = {v.size for name, v in stored.items() if name.endswith("_scale") and "uant" not in name}
        assert (network.coefs_[0].shape[1] in scales) == per_channel
        largest[reduce_range] = int(np.abs(first.astype(int)).max())
    assert largest[True] <= 0.52 * largest[False]


def test_defaults_follow_the_probe(network: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = layer(network.coefs_[0], tmp_path / "one.onnx")
    for kind, most in (("saturating", 64), ("exact", 127)):
        probed = {"uint8 × int8": kind, "uint8 × uint8": "exact", "int8 × int8": "exact"}
        monkeypatch.setattr(
            "tinybench.support.quantizing.quantized_files.integer_products", lambda probed=probed: probed
        )
        stored = weights(quantize_dynamic_int8(path, overwrite=True)).values()
        assert max(int(np.abs(v.astype(int)).max()) for v in stored if v.ndim == 2) == most
    with pytest.raises(ValueError, match="weight_type is 'int4'; it must be one of int8, uint8"):
        quantize_dynamic_int8(path, weight_type="int4", overwrite=True)
    with pytest.raises(ValueError, match="no int8 activations with uint8 weights"):
        quantize_static_int8(path, X, activation_type="int8", weight_type="uint8", overwrite=True)


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy"])
def test_each_calibration_keeps_the_labels(method: str, network: Any, model_path: Path) -> None:
    made = quantize_static_int8(model_path, X[:256], method=method, per_channel=True)
    assert np.mean(OnnxModel(made).forward(X).argmax(1) == network.predict(X)) >= 0.95


@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_int8_files_are_integer_small_and_right(kind: str, network: Any, model_path: Path) -> None:
    made = QUANTISE[kind](model_path, **({"check": X} if kind == "static" else {}))
    assert made.name == f"network-int8-{kind}.onnx"
    assert sum(quantize.integer_operators(made).values()) == 3
    assert made.stat().st_size <= 0.45 * model_path.stat().st_size
    assert np.mean(OnnxModel(made).forward(X).argmax(1) == network.predict(X)) >= 0.97
    assert list(OnnxModel(made).classes_) == [0, 1, 2]
    with pytest.raises(FileExistsError, match="overwrite"):
        quantize_dynamic_int8(model_path, made)


def test_fake_int8_is_called_so(tmp_path: Path) -> None:
    path = to_onnx(RandomForestClassifier(5, random_state=0).fit(X, y), X, tmp_path / "forest.onnx")
    with pytest.warns(UserWarning, match="no integer operators: identical graph"):
        made = quantize_dynamic_int8(path)
    assert quantize.quantization_verdict(path, made) == "no integer operators: identical graph"


def test_calibration_that_does_not_fit(model_path: Path) -> None:
    for rows, method, why in (
        (X[:256, :7], "minmax", r"shape \(256, 7\).*takes \(n, 20\)"),
        (X[:9] * np.nan, "minmax", "NaN or infinite"),
        (X, "best", "minmax, percentile, entropy"),
    ):
        with pytest.raises(ValueError, match=why):
            quantize_static_int8(model_path, rows, method=method)
    with pytest.warns(UserWarning, match=r"clips \d+% of the values"):
        made = quantize_static_int8(model_path, X[:256] * 0.1, check=X)
    assert max(quantize.clipping_shares(made, X).values()) > 0.5


def test_relu_is_not_taken_for_clipping(model_path: Path) -> None:
    made = quantize_static_int8(model_path, X, check=X)  # a warning would be an error
    assert max(quantize.clipping_shares(made, X).values()) < 0.001


def test_bad_models_are_refused(network: Any, tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(ValueError, match="no ONNX model"):
        quantize_dynamic_int8(tmp_path / "text.onnx")
    with pytest.raises(FileNotFoundError):
        quantize_dynamic_int8(tmp_path / "nowhere.onnx")


@pytest.mark.parametrize("quantise", [quantize_dynamic_int8, lambda path: quantize_static_int8(path, X)])
def test_weights_that_are_not_finite_are_refused(quantise: Any, model_path: Path) -> None:
    model = onnx.load(model_path)
    broken = next(tensor for tensor in model.graph.initializer if len(tensor.dims) == 2)
    values = onnx.numpy_helper.to_array(broken).copy()
    values[1, 2] = np.nan
    broken.CopyFrom(onnx.numpy_helper.from_array(values, broken.name))
    onnx.save(model, model_path)
    with pytest.raises(ValueError, match=f"1 of {values.size} values in '{broken.name}' are NaN or infinite"):
        quantise(model_path)
    assert [path.name for path in model_path.parent.iterdir()] == [model_path.name]


@pytest.mark.parametrize(
    ("loss", "ratio", "verdict"),
    [
        ((-0.001, 0.002), (0.5, 0.6), "pays"),
        ((-0.001, 0.002), (0.7, 0.9), "undecided"),
        ((-0.001, 0.02), (0.5, 0.6), "undecided"),
        ((0.01, 0.02), (0.5, 0.6), "does not pay"),
        ((0.0, 0.0), (0.8, 0.9), "does not pay"),
    ],
)
def test_rule(loss: tuple[float, float], ratio: tuple[float, float], verdict: str) -> None:
    assert quantize.int8_pays(loss, ratio) == verdict


@given(st.tuples(st.floats(0, 9), st.floats(0, 9)).map(sorted))
def test_claims(ends: list[float]) -> None:
    verdict = claim_verdict((ends[0], ends[1]), 2, 3)
    assert (verdict == "as claimed") == (ends[0] >= 2 and ends[1] <= 3)
    assert (verdict == "more than claimed") == (ends[0] > 3)
    assert (verdict == "less than claimed") == (ends[1] < 2)


@pytest.mark.slow
def test_study_of_a_network(network: Any, tmp_path: Path) -> None:
    requirements = Requirements(accuracy_min=0.5, memory_max_mb=0.001)
    said: list[str] = []
    study = tradeoff_study(
        network, X[400:], y[400:], calibration=X[:256], batch_sizes=(1, 32), rounds=6, out=tmp_path,
        requirements=requirements, progress=said.append,
    )  # fmt: skip
    with (tmp_path / "hardware_tradeoffs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    made = [row["variant"] for row in rows[: len(rows) // 2]]
    assert made[:3] == ["scikit-learn", "NumPy", "ONNX FP32"]
    assert {"ONNX FP16", "INT8 dynamic", "INT8 static", "INT8 static, per channel"} <= set(made)
    assert {f"ONNX FP32, optimisation {level}" for level in ("off", "basic", "extended")} <= set(made)
    assert [row["variant"] for row in rows] == 2 * made
    with (tmp_path / "hardware_tradeoffs_rounds.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 6 * len(rows)
    for row in study.rows:
        assert row["throughput"] == pytest.approx(row["batch_size"] / row["latency"])
        assert row["accuracy_ci"][0] <= row["accuracy"] <= row["accuracy_ci"][1]
        assert set(row["recall_by_class"]) == {"0", "1", "2"}
        if row["variant"] != "NumPy":
            assert row["memory_process"] > row["memory_model"] > 0
            assert all(value is None or value > 0 for name, value in row.items() if name.startswith("memory_"))
        assert row["memory_pressure"] is None or row["memory_pressure"] > 0
        assert row["effective_bandwidth"] < 1e12
        if row["variant"] == "ONNX FP32":
            assert row["largest_difference"] == 0
        if not row["saturates"]:  # whatever the processor, what may be shipped answers nearly as before
            assert row["largest_difference"] < 0.2
    summary = json.loads((tmp_path / "hardware_tradeoffs_summary.json").read_text(encoding="utf-8"))
    assert all(gain["gain_ci"][0] <= gain["gain"] <= gain["gain_ci"][1] for gain in summary["gains"] if gain["gain"])
    assert {c["claim"] for c in summary["claims"]} >= {"INT8 files are 75 % smaller"}
    assert [d["batch_size"] for d in summary["decisions"]] == [1, 32]
    assert summary["requirements"][0]["meet"] == []
    assert "memory_max_mb" in str(summary["requirements"][0]["broken"])
    assert all(decision["ship"] is None for decision in summary["decisions"])
    assert "nearest is" in summary["sentence"]
    assert "of memory_max_mb 0.001" in summary["sentence"]
    assert "claims" in str(study)
    assert "<table>" in study._repr_mimebundle_()["text/html"]
    assert said[0] == "converting and quantising"


@pytest.mark.parametrize(("n", "batch"), [(10, 4), (8, 4), (3, 64), (1, 1)])
def test_calibration_rows_come_batch_by_batch(n: int, batch: int) -> None:
    reader = CalibrationRows(X[:n].astype(float), "pixels", batch)
    for start in range(0, n, batch):
        piece = reader.get_next()
        assert piece is not None
        assert piece["pixels"].dtype == np.float32
        np.testing.assert_array_equal(piece["pixels"], X[start : min(start + batch, n)])
    assert reader.get_next() is reader.get_next() is None


def test_verdicts_on_files(model_path: Path) -> None:
    graph = load_graph(model_path)
    assert quantize.quantization_verdict(graph, graph) == "no integer operators: identical graph"
    other = onnx.ModelProto.FromString(graph.SerializeToString())
    values = onnx.numpy_helper.to_array(other.graph.initializer[0]) + np.float32(1)
    other.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(values, other.graph.initializer[0].name))
    assert "fewer bits" in quantize.quantization_verdict(graph, other)
    assert quantize.quantization_verdict(graph, quantize_dynamic_int8(model_path)) == "3 integer operators"


def test_rates() -> None:
    assert throughput_and_bandwidth(0.002, 256, 1_000_000, 4_000) == (128_000, pytest.approx(1.012e9))


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((1.3, 1.25, 2.0), "23 % less (20 to 50 %)"),
        ((0.8, 0.5, 1.25), "25 % more (100 % more to 20 % less)"),
        ((0.76, 0.66, 0.775), "32 % more (29 to 52 %)"),
    ],
)
def test_claims_say_less_or_more(ends: tuple[float, float, float], said: str) -> None:
    gain = {"variant": "INT8 dynamic", "baseline": "ONNX FP32", "metric": "latency", "batch_size": 1}
    found = study_claims([{**gain, "gain": ends[0], "gain_ci": ends[1:]}], {}, {})
    assert [claim["measured"] for claim in found] == [said]


@pytest.mark.slow
def test_study_of_a_forest_says_that_int8_is_fake(tmp_path: Path) -> None:
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(X[:400], y[:400])
    study = tradeoff_study(forest, X[400:], y[400:], batch_sizes=(16,), rounds=6, memory_repeats=0)
    assert any("no NumPy: RandomForestClassifier is neither a linear model" in note for note in study.notes)
    assert any("no ONNX FP16: it has no matrix product" in note for note in study.notes)
    rule = study.decisions[0]["rule"]
    assert rule["INT8 dynamic"]["verdict"] == "no INT8"
    assert "identical graph" in rule["INT8 dynamic"]["why"]
    assert not study.decisions[0]["ship"].startswith("INT8")
    assert not any("INT8" in str(entry) for entry in [*study.claims, *study.gains])
    rows = {row["variant"]: row for row in study.rows}
    assert rows["INT8 dynamic"]["note"] == "no integer operators: identical graph"
    assert all(row["effective_bandwidth"] is None for row in study.rows)
    assert any("only dense layers read every weight" in note for note in study.notes)
    assert "INT8 dynamic" not in {point["model"] for point in study.frontier(16)}


def test_a_pipeline_is_quantised_behind_its_scaler(tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), MLPClassifier((64, 32), max_iter=5, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five iterations do not converge
        path = to_onnx(pipeline.fit(X, y), X, tmp_path / "pipeline.onnx")
    made = quantize_static_int8(path, X[:256], check=X)  # a warning would be an error
    assert sum(quantize.integer_operators(made).values()) == 3
    same = OnnxModel(made).forward(X).argmax(1) == OnnxModel(path).forward(X).argmax(1)
    assert same.mean() > 0.95


@pytest.mark.parametrize("kind", ["saturating", "exact"])
def test_full_range_stands_beside_where_products_saturate(
    network: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for module in ("support.quantizing.quantized_files", "tools.study.conversion"):
        monkeypatch.setattr(f"tinybench.{module}.integer_products", lambda: {"uint8 × int8": kind})
    notes: list[str] = []
    variants = study_variants(network, X, X[:64], tmp_path, 1, notes)
    full = {"INT8 dynamic, full range", "INT8 dynamic, per channel, full range"}
    saturating = {name for name, variant in variants.items() if variant.saturates}
    assert saturating == (full if kind == "saturating" else set())
    assert any(("saturates" if kind == "saturating" else "products are exact") in note for note in notes)
    for name, variant in variants.items():
        if variant.precision == "int8":
            stored = [w for w in weights(variant.file).values() if w.dtype == np.int8]
            largest = max(int(np.abs(w.astype(int)).max()) for w in stored)
            assert largest == (127 if kind == "exact" or name in full else 64), name


def test_what_saturates_is_not_shipped(network: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("support.quantizing.quantized_files", "tools.study.conversion"):
        monkeypatch.setattr(f"tinybench.{module}.integer_products", lambda: {"uint8 × int8": "saturating"})
    study = tradeoff_study(
        network, X[400:], y[400:], calibration=X[:256], batch_sizes=(32,), rounds=6, memory_repeats=0,
        requirements=Requirements(accuracy_min=0.01),
    )  # fmt: skip
    rule = study.decisions[0]["rule"]
    for name in ("INT8 dynamic, full range", "INT8 dynamic, per channel, full range"):
        assert rule[name]["verdict"] == "saturates"
        assert name not in study.requirements[0]["meet"]
        assert "can saturate on this processor" in str(study.requirements[0]["broken"][name])
    assert not study.decisions[0]["ship"].endswith("full range")


def result(*values: float) -> BenchmarkResult:
    return BenchmarkResult("latency", list(values), {"pairing": "one"}, unit="s")


def decided(requirements: Requirements | None, **forms: tuple[float, float, dict[str, Any]]) -> dict[str, Any]:
    """The decision on forms of known latency and accuracy, six rounds each; ONNX FP32 and scikit-learn are there."""
    forms = {"scikit-learn": (9.0, 0.95, {}), "ONNX FP32": (4.0, 0.95, {}), **forms}
    variants = {
        name: Variant(lambda x: x, Path(), **{"precision": "float32", **more}) for name, (_, _, more) in forms.items()
    }
    latency = {name: result(*(seconds * (1 + i / 1000) for i in range(6))) for name, (seconds, _, _) in forms.items()}
    accuracy = {
        name: {"accuracy": right, "loss_ci": [0.0, 0.002], "largest_difference": 0.0}
        for name, (_, right, _) in forms.items()
    }
    rows = [
        {"variant": name, "batch_size": 1, "latency": seconds, "latency_p95": seconds, "accuracy": right}
        | {"fake": variants[name].fake, "saturates": variants[name].saturates}
        for name, (seconds, right, _) in forms.items()
    ]
    met = study_requirements(requirements, rows) if requirements else None
    return study_decision(1, variants, latency, accuracy, met)


INT8 = {"precision": "int8", "note": "3 integer operators"}


def test_what_is_shipped_meets_the_requirements() -> None:
    assert decided(None, fast=(1.0, 0.94, INT8))["ship"] == "fast"
    assert decided(Requirements(accuracy_min=0.945), fast=(1.0, 0.94, INT8))["ship"] == "ONNX FP32"
    none = decided(Requirements(accuracy_min=0.99), fast=(1.0, 0.985, INT8))
    assert none["ship"] is None
    assert none["sentence"] == (
        "none meets the requirements: nearest is fast, short by 0.005 of accuracy_min 0.99 (it has 0.985)"
    )
    only = decided(Requirements(latency_p95_ms=3600.0), slow=(3.5, 0.95, INT8))
    assert only["rule"]["slow"]["verdict"] == "does not pay"
    assert (only["ship"], "nothing else meets" in only["sentence"]) == ("slow", True)


@pytest.mark.parametrize("requirements", [None, Requirements(accuracy_min=0.9)])
def test_neither_fakes_nor_what_saturates_is_shipped(requirements: Requirements | None) -> None:
    fake = {"precision": "float32", "note": "no integer operators: identical graph"}
    found = decided(requirements, fake=(1.0, 0.99, fake), full=(1.0, 0.99, {**INT8, "saturates": True}))
    assert found["ship"] == "ONNX FP32"
    assert [found["rule"][name]["verdict"] for name in ("fake", "full")] == ["no INT8", "saturates"]
    short = decided(Requirements(accuracy_min=0.999), fake=(1.0, 0.998, fake), full=(1.0, 0.998, {"saturates": True}))
    assert "nearest is ONNX FP32" in short["sentence"]


def test_equal_forms_change_nothing() -> None:
    assert decided(None, level=(3.95, 0.95, {}))["ship"] == "ONNX FP32"  # 1 % is not worth another setting
    assert decided(None, level=(3.6, 0.95, {}))["ship"] == "level"


def test_half_precision_is_stored_and_said(network: Any, model_path: Path, tmp_path: Path) -> None:
    made = to_half(model_path, tmp_path / "half.onnx")
    assert made.stat().st_size <= 0.6 * model_path.stat().st_size
    assert np.abs(OnnxModel(made).forward(X) - OnnxModel(model_path).forward(X)).max() < 0.01
    assert list(OnnxModel(made).classes_) == [0, 1, 2]
    assert sum(product_types(made).values()) == 3
    assert product_types(model_path) == {"float32": 3}
    W = np.full((4, 2), 1e5, np.float32)
    with pytest.raises(ValueError, match="16-bit floats end at 65504"):
        to_half(layer(W, tmp_path / "large.onnx"), tmp_path / "none.onnx")
    forest = to_onnx(RandomForestClassifier(2, random_state=0).fit(X, y), X, tmp_path / "forest.onnx")
    with pytest.raises(ValueError, match="no matrix product"):
        to_half(forest, tmp_path / "none.onnx")
    assert not (tmp_path / "none.onnx").exists()


class Fails:
    """A variant's call that fails from some call on."""

    def __init__(self, call: Any, calls: int, error: BaseException) -> None:
        self.call, self.left, self.error = call, calls, error

    def __call__(self, x: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return self.call(x)


def failing(monkeypatch: pytest.MonkeyPatch, calls: int, error: BaseException) -> dict[str, Any]:
    """Make the NumPy variant fail, and return options of a small study."""
    import dataclasses

    def variants(*args: Any) -> dict[str, Variant]:
        made = study_variants(*args)
        made["NumPy"] = dataclasses.replace(made["NumPy"], call=Fails(made["NumPy"].call, calls, error))
        return made

    monkeypatch.setattr("tinybench.tools.study.int8_study.study_variants", variants)
    return {"batch_sizes": (1, 2), "rounds": 6, "memory_repeats": 0, "variants": ("NumPy",), "calibration": X[:64]}


def test_a_failing_variant_is_left_out(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tradeoff_study(network, X[400:], y[400:], **failing(monkeypatch, 30, RuntimeError("out of luck")))
    assert any("NumPy fails at batch 1 and is left out there: RuntimeError: out of luck" in n for n in study.notes)
    assert {row["variant"] for row in study.rows} == {"scikit-learn", "ONNX FP32"}
    assert [decision["batch_size"] for decision in study.decisions] == [1, 2]


@pytest.mark.parametrize("place", ["out", "none", "full"])
def test_ctrl_c_keeps_what_was_measured(
    network: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    options = failing(monkeypatch, 10**9, KeyboardInterrupt())
    said: list[str] = []

    def stop(line: str) -> None:
        said.append(line)
        if line.startswith("batch 2"):
            raise KeyboardInterrupt

    if place == "full":
        (tmp_path / "out").mkdir()
        for name in ("", "_rounds", "_summary"):  # folders where files are to be: nothing can be written
            (tmp_path / "out" / f"hardware_tradeoffs{name}.{'json' if name == '_summary' else 'csv'}").mkdir()
    out = None if place == "none" else tmp_path / "out"
    with pytest.raises((KeyboardInterrupt, OSError)) as caught:
        tradeoff_study(network, X[400:], y[400:], out=out, progress=stop, **options)
    kept = caught.value.study  # type: ignore[attr-defined]
    assert [row["batch_size"] for row in kept.rows][:3] == [1, 1, 1]
    assert len(kept.decisions) == 1
    where = Path(caught.value.__notes__[-1].removeprefix("what was measured before is in ").split(" and in ")[0])
    assert (where == out) == (place == "out")
    assert "scikit-learn" in (where / "hardware_tradeoffs.csv").read_text(encoding="utf-8")
    assert said[-1] == f"stopped; what was measured before is in {where}"


def test_rounds_of_a_batch_that_broke_off_are_kept(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options = failing(monkeypatch, 10**9, KeyboardInterrupt())

    def single_calls_are_interrupted(*args: Any, mode: str = "", **more: Any) -> Any:
        if not mode:
            raise KeyboardInterrupt
        return measure_latencies(*args, mode=mode, **more)

    monkeypatch.setattr("tinybench.tools.study.measurements.measure_latencies", single_calls_are_interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        tradeoff_study(network, X[400:], y[400:], **options)
    kept = caught.value.study  # type: ignore[attr-defined]
    assert kept.latencies[1]["NumPy"].count == 6
    assert [row["latency"] > 0 for row in kept.rows] == [True] * 3
    assert "6 rounds, then the study was stopped" in str(kept)


def test_a_pipeline_with_a_scaler_has_its_numpy_baseline(tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X * 7 + 3, y)
    notes: list[str] = []
    found = study_variants(pipeline, X * 7 + 3, X[:64], tmp_path, 1, notes, ("NumPy",))
    assert list(found) == ["scikit-learn", "NumPy", "ONNX FP32"]
    assert np.allclose(found["NumPy"].call(X), pipeline.predict_proba(X), atol=1e-5)
    assert found["NumPy"].weight_bytes == 4 * (20 * 3 + 3)


def test_study_refuses_bad_input(network: Any) -> None:
    with pytest.raises(TypeError, match="predict_proba"):
        tradeoff_study(Ridge().fit(X, y), X, y)
    for labels, rounds, why in (y[:-1], 6, "a label a row"), (y, 2, "6 rounds"):
        with pytest.raises(ValueError, match=why):
            tradeoff_study(network, X, labels, rounds=rounds)
