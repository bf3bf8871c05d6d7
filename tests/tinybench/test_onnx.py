"""Conversion, sessions, parity, profile and breakdown against scikit-learn, made-up traces and a fake clock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, SGDClassifier
from sklearn.neighbors import KernelDensity
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from tinybench import measure_accuracy, measure_latency, onnx
from tinybench.course import cached_fit
from tinybench.onnx import OnnxModel, check_parity, numpy_baseline, operators, time_breakdown, to_onnx
from tinybench.support.basics.onnx_files import load_graph, refuse_bad_weights, weights
from tinybench.support.engines.operator_trace import node_durations
from tinybench.support.engines.timed_stages import pipeline_stages
from tinybench.support.numpy_models import numpy_twin

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6)).astype(np.float32)
LABELS = np.array(["ash", "elm", "oak"])[(X @ RNG.normal(size=(6, 3))).argmax(axis=1)]


def network(**options: Any) -> MLPClassifier:
    return MLPClassifier((12, 8), max_iter=20, random_state=0, **options)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINYBENCH_CACHE", str(tmp_path / "cache"))


@pytest.mark.processor
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(10, random_state=0),
        network(),
    ],
    ids=["linear", "pipeline", "forest", "network"],
)
def test_classifiers_keep_probabilities_and_labels(model: Any, tmp_path: Path) -> None:
    fitted = cached_fit(model, X, LABELS)
    converted = OnnxModel(to_onnx(fitted, X, tmp_path / "m.onnx"))
    assert check_parity(fitted, converted, X).label_agreement == 1
    assert list(converted.classes_) == ["ash", "elm", "oak"]
    assert measure_accuracy(converted, (X, LABELS)).mean == pytest.approx(fitted.score(X, LABELS))
    assert measure_latency(converted, X[:2], 0, 2).count == 2


@pytest.mark.processor
def test_regressors_convert(tmp_path: Path) -> None:
    model = LinearRegression().fit(X, X @ np.arange(6))
    assert check_parity(model, OnnxModel(to_onnx(model, X, tmp_path / "r.onnx")), X, 1e-3).label_agreement >= 0


def test_parity_of_values_in_two_shapes_and_of_labels() -> None:
    values = np.arange(5.0)
    assert check_parity(lambda _: values, lambda _: values[:, None] + 1e-6, values).max_difference == pytest.approx(
        1e-6
    )
    assert check_parity(lambda _: LABELS, lambda _: LABELS.copy(), X).label_agreement == 1
    with pytest.raises(ValueError, match="row 3 differs most, by inf"):
        check_parity(lambda _: LABELS, lambda _: np.where(np.arange(200) == 3, "fir", LABELS), X)


@pytest.mark.parametrize(
    "model",
    [make_pipeline(StandardScaler(), "passthrough", MinMaxScaler(), LogisticRegression()), LogisticRegression()],
    ids=["pipeline", "classifier"],
)
def test_stages_together_give_the_labels(model: Any) -> None:
    stages = pipeline_stages(model.fit(X, LABELS))
    assert [*stages] == ["preprocess", "model", "postprocess"]
    answers = X
    for stage in stages.values():
        answers = stage(answers)
    assert list(answers) == list(model.predict(X))


def test_a_last_step_without_probabilities_has_no_stages() -> None:
    with pytest.raises(TypeError, match="predict_proba"):
        pipeline_stages(StandardScaler().fit(X))


def test_existing_files_stay(tmp_path: Path) -> None:
    model = LogisticRegression().fit(X, LABELS)
    path = to_onnx(model, X, tmp_path / "m.onnx")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        to_onnx(model, X, path)
    assert path.read_bytes() == before
    to_onnx(model, X, path, overwrite=True)


def test_bad_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="KernelDensity"):
        to_onnx(KernelDensity().fit(X), X, tmp_path / "k.onnx")
    model = cached_fit(network(), X, LABELS)
    model.coefs_[1][2, 3] = np.nan
    with pytest.raises(ValueError, match="1 of 96 values in 'coefficient1' are NaN"):
        to_onnx(model, X, tmp_path / "nan.onnx")
    assert not (tmp_path / "nan.onnx").exists()


def test_bad_files_are_explained(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.onnx"):
        OnnxModel(tmp_path / "nowhere.onnx")
    graph = load_graph(to_onnx(LogisticRegression().fit(X, LABELS), X, tmp_path / "m.onnx"))
    graph.ir_version = 99
    for content, why in (b"this is no model", "no ONNX model"), (graph.SerializeToString(), "IR version 99"):
        (tmp_path / "bad.onnx").write_bytes(content)
        with pytest.raises(ValueError, match=why):
            OnnxModel(tmp_path / "bad.onnx")


def test_graphs_are_inspected(tmp_path: Path) -> None:
    model = cached_fit(network(), X, LABELS)
    path = to_onnx(model, X, tmp_path / "m.onnx")
    assert operators(path)["MatMul"] == operators(path.read_bytes())["MatMul"] == 3
    shapes = [values.shape for values in weights(path).values()]
    assert all(W.shape in shapes for W in model.coefs_)


def test_numbers_keep_their_dtype_and_those_in_attributes_count() -> None:
    made = helper.make_node("LinearRegressor", ["x"], ["y"], "line", domain="ai.onnx.ml", coefficients=[0.5, 2.0])
    stored = [numpy_helper.from_array(np.array([7, 9]), "shape")]
    graph = helper.make_model(helper.make_graph([made], "g", [], [], stored))
    found = weights(graph)
    assert list(found) == ["shape", "line/coefficients"]
    assert found["shape"].dtype == np.int64
    assert list(found["line/coefficients"]) == [0.5, 2.0]
    graph.graph.node[0].attribute[0].floats[1] = np.inf
    with pytest.raises(ValueError, match="1 of 2 values in 'line/coefficients' are NaN or infinite"):
        refuse_bad_weights(graph)


def test_runs_are_skipped_by_their_start_and_only_kernels_count() -> None:
    events = [
        {"cat": "Node", "name": f"a_{what}", "ts": 10 * run + 1, "dur": run, "args": {"op_name": "Gemm"}}
        for run in (3, 1, 2)
        for what in ("kernel_time", "fence_after")
    ] + [{"cat": "Session", "name": "model_run", "ts": 10 * run, "dur": 9, "args": {}} for run in (2, 3, 1)]
    assert node_durations(events, 1) == {("Gemm", "a"): [3, 2]}
    for skipped, of in ((3, events), (0, [])):
        with pytest.raises(ValueError, match="no operator ran"):
            node_durations(of, skipped)


@pytest.mark.parametrize(("option", "value"), [("threads", 0), ("threads", 1.5), ("optimization", "fast")])
def test_bad_conditions_are_refused(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=option):
        onnx.session_options(**{option: value})


@pytest.mark.processor
@pytest.mark.parametrize("classes", [2, 3])
def test_baseline_equals_scikit_learn(classes: int) -> None:
    keep = np.isin(LABELS, ["ash", "elm", "oak"][:classes])
    model = cached_fit(network(), X[keep], LABELS[keep])
    assert np.allclose(numpy_baseline(model)(X), model.predict_proba(X), atol=1e-5)
    regressor = cached_fit(MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0), X, X[:, 0])
    assert np.allclose(numpy_baseline(regressor)(X), regressor.predict(X), atol=1e-4)
    with pytest.raises(TypeError, match="no NumPy twin"):
        numpy_baseline(LogisticRegression().fit(X, LABELS))


@pytest.mark.processor
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 2)), RobustScaler(), MaxAbsScaler(), PCA(4)])
@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), SGDClassifier(loss="log_loss", random_state=0), network(), network(activation="tanh")],
    ids=["logistic", "sgd", "relu", "tanh"],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_pipelines_have_a_numpy_twin(scaler: Any, model: Any, classes: int) -> None:
    rows = X * [1, 3, 0.01, 1, 1, 5] + [0, 9, 0, 1e4, 0, 0]  # one feature far from 0
    keep = np.isin(LABELS, ["ash", "elm", "oak"][:classes])
    pipeline = cached_fit(make_pipeline(scaler, model), rows[keep], LABELS[keep])
    rows = rows.astype(np.float32)
    twin = numpy_twin(pipeline)
    before = rows.copy()
    assert np.allclose(
        twin(rows), pipeline.predict_proba(rows), atol=2e-4 if isinstance(model, SGDClassifier) else 2e-5
    )
    assert np.array_equal(rows, before)
    assert twin.borrowed == (["PCA"] if isinstance(scaler, PCA) else [])


def test_who_has_no_numpy_twin_and_why() -> None:
    for model, why in (
        (RandomForestClassifier(2), "neither a linear model nor a multilayer perceptron"),
        (SGDClassifier(loss="modified_huber"), "modified_huber"),
        (PoissonRegressor(), "computes something else"),
    ):
        with pytest.raises(TypeError, match=why):
            numpy_twin(model.fit(X, np.abs(X[:, 0]) if "Regr" in str(model) else LABELS))
    line = make_pipeline(StandardScaler(), LinearRegression()).fit(X, 1000 * X[:, 0])
    assert np.allclose(numpy_twin(line)(X), line.predict(X), rtol=1e-4, atol=0.01)


def test_profile_comes_from_the_runtime(tmp_path: Path) -> None:
    model = OnnxModel(to_onnx(cached_fit(network(), X, LABELS), X, tmp_path / "m.onnx"))
    profile = onnx.operator_profile(model, X[:8], runs=5, warmup_runs=2, trace=tmp_path / "kept" / "trace.json")
    assert sum(profile.shares.values()) == pytest.approx(1)
    assert {"Softmax"} <= set(profile.shares)
    assert profile.trace is not None
    assert sum(e["name"] == "model_run" for e in json.loads(profile.trace.read_text())) == 7
    assert "Softmax" in str(profile)
    assert "<table>" in profile._repr_mimebundle_()["text/html"]


durations = st.lists(st.integers(1, 1000), min_size=1, max_size=9)


@given(durations, durations)
def test_shares_are_of_medians(first: list[int], second: list[int]) -> None:
    events = [
        {"cat": "Node", "name": f"{op}_kernel_time", "ts": i, "dur": dur, "args": {"op_name": op}}
        for op, values in (("Gemm", first), ("Relu", second))
        for i, dur in enumerate(values)
    ]
    shares = onnx.operator_shares(events)
    whole = np.median(first) + np.median(second)
    assert shares["Gemm"] == pytest.approx(np.median(first) / whole)
    assert sum(shares.values()) == pytest.approx(1)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=5), st.integers(1, 4))
def test_breakdown_adds_up(seconds: list[float], runs: int) -> None:
    now = [0.0]

    def stage(step: float) -> Any:
        def work(x: int) -> int:
            now[0] += step
            return x + 1

        return work

    stages = {f"stage {i}": stage(step) for i, step in enumerate(seconds)}
    found = time_breakdown(stages, 0, runs, warmup_runs=0, clock=lambda: now[0])
    for name, step in zip(stages, seconds, strict=True):
        assert found[name].values == pytest.approx([step] * runs, abs=1e-9)
    assert found["total"].values == pytest.approx([sum(seconds)] * runs, abs=1e-9)


def test_pipelines_break_down() -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, LABELS)
    assert list(time_breakdown(pipeline, X, 3)) == ["preprocess", "model", "postprocess", "total"]
    with pytest.raises(TypeError, match="predict_proba"):
        time_breakdown(StandardScaler().fit(X), X)


def test_module_does_not_shadow_the_library() -> None:
    code = "import tinybench.onnx, onnx; assert onnx.helper and onnx is not tinybench.onnx"
    subprocess.run([sys.executable, "-c", code], check=True)
