"""Every kind of model that the library accepts goes through every measurement, and each has a size or a reason."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinybench
from tinybench import Benchmark, BenchmarkSuite, OnnxModel, model_size
from tinybench.compress import low_rank, prune_units
from tinybench.energy import CpuTimeMeter
from tinybench.onnx import numpy_baseline
from tinybench.support.basics.layer_networks import activations, layers_of, save_layers
from tinybench.support.numpy_models import numpy_twin

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6)).astype(np.float32)
Y = X[:, :3].argmax(axis=1)


def named_function(x: Any) -> Any:
    return np.asarray(x)[:, :3]


class Held:
    """A model of one's own: weights, and one method by which the library finds it."""

    def __init__(self) -> None:
        self.weights = RNG.normal(size=(6, 3))

    def scores(self, x: Any) -> Any:
        return np.asarray(x) @ self.weights


class WithForward(Held):
    forward = Held.scores


class WithCall(Held):
    __call__ = Held.scores


class WithPredict(Held):
    def predict(self, x: Any) -> Any:
        return self.scores(x).argmax(axis=1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A fitted network and its ONNX files."""
    from sklearn.neural_network import MLPClassifier

    folder = tmp_path_factory.mktemp("kinds")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        network = MLPClassifier((8,), max_iter=5, random_state=0).fit(X, Y)
    fp32 = tinybench.to_onnx(network, X, folder / "fp32.onnx")
    int8 = tinybench.quantize_dynamic_int8(fp32, folder / "int8.onnx")
    pruned = save_layers(prune_units(layers_of(network), 0.5), folder / "pruned.onnx")
    return {"network": network, "fp32": fp32, "int8": int8, "pruned": pruned}


def session(source: Any) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])


def pipeline() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


def scores(layers: Any, x: Any) -> Any:
    return activations(layers, x)[-1]


# What makes each kind of the files above, and whether it has a size: of a file, by pickle, or none.
KINDS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "scikit-learn": (lambda files: files["network"], "pickle"),
    "pipeline": (lambda files: pipeline(), "pickle"),
    "OnnxModel": (lambda files: OnnxModel(files["fp32"]), "fp32"),
    "OnnxModel of int8": (lambda files: OnnxModel(files["int8"]), "int8"),
    "OnnxModel of pruned layers": (lambda files: OnnxModel(files["pruned"]), "pruned"),
    "session of a path": (lambda files: session(str(files["fp32"])), "fp32"),
    "session of bytes": (lambda files: session(files["int8"].read_bytes()), "int8"),
    "forward": (lambda files: WithForward(), "pickle"),
    "call": (lambda files: WithCall(), "pickle"),
    "predict": (lambda files: WithPredict(), "pickle"),
    "method": (lambda files: Held().scores, "pickle"),
    "partial of low-rank layers": (lambda files: partial(scores, low_rank(layers_of(files["network"]), 1)), "pickle"),
    "NumPy baseline": (lambda files: numpy_baseline(files["network"]), "none"),
    "NumPy twin": (lambda files: numpy_twin(files["network"]), "none"),
    "function": (lambda files: named_function, "none"),
    "lambda": (lambda files: lambda x: named_function(x), "none"),
}
METER = CpuTimeMeter(10.0)
MEASURES: dict[str, Callable[[Any], Any]] = {
    "measure_latency": lambda model: tinybench.measure_latency(model, X, 1, 2),
    "measure_latencies": lambda model: tinybench.measure_latencies({"a": model, "b": model}, X, 1, 2),
    "measure_session_latency": lambda model: tinybench.measure_session_latency(model, X, 10, 0.05, 1),
    "measure_memory": lambda model: tinybench.measure_memory(model, X, 1, 2),
    "resident_growth": lambda model: tinybench.resident_growth(model, X, 4, 2, 1),
    "measure_energy": lambda model: tinybench.measure_energy(model, X, METER, 1, 2, 1e-3),
    "measure_accuracy": lambda model: tinybench.measure_accuracy(model, (X, Y)),
    "compare_live": lambda model: tinybench.compare_live({"a": model, "b": model}, X, max_seconds=0.05),
    "check_parity": lambda model: tinybench.check_parity(model, model, X),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_through_every_measurement(kind: str, files: dict[str, Any]) -> None:
    model = KINDS[kind][0](files)
    for name, measure in MEASURES.items():
        assert measure(model) is not None, name


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_size_or_a_reason(kind: str, files: dict[str, Any]) -> None:
    make, source = KINDS[kind]
    model = make(files)
    if source == "none":
        with pytest.raises(TypeError, match=r"pass the path$"):
            model_size(model)
    elif source == "pickle":
        assert model_size(model) > 90  # more than a name: the weights
    else:
        assert model_size(model) == files[source].stat().st_size


@pytest.mark.parametrize("name", ["sum", "print", "np.exp", "Held", "np"])
def test_a_name_is_no_size(name: str) -> None:
    """Pickle would write a few bytes for each of these, whatever they hold."""
    with pytest.raises(TypeError, match="pass the path"):
        model_size(eval(name))


def test_the_suite_shows_a_size_or_a_reason(files: dict[str, Any], tmp_path: Path) -> None:
    names = ("OnnxModel", "OnnxModel of int8", "NumPy baseline", "lambda")
    models = {name: KINDS[name][0](files) for name in names}
    options: dict[str, Any] = {"measurement_runs": 5, "batch_sizes": (1,), "meter": METER, "progress": None}
    study = BenchmarkSuite(models, (X, Y), tmp_path, warmup_runs=1, **options)
    study.results = {"memory": study._measure("memory")}
    sizes = {name: result.metadata["model_bytes"] for name, result in study.results["memory"].items()}
    assert sizes["OnnxModel"] == files["fp32"].stat().st_size
    assert sizes["OnnxModel of int8"] == files["int8"].stat().st_size
    assert sizes["NumPy baseline"] is sizes["lambda"] is None
    report = study.generate_report()
    for name in ("NumPy baseline", "lambda"):
        assert f"{name} has no size on disk" in report
    assert "OnnxModel has no size" not in report


def test_bench_takes_a_list_of_kinds(files: dict[str, Any]) -> None:
    bench = Benchmark([OnnxModel(files["fp32"]), OnnxModel(files["int8"]), named_function], progress=None)
    assert list(bench.models) == ["fp32", "int8", "model_2"]
