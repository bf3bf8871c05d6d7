"""Every public name refuses arguments of a wrong kind in the library's own words, which name the argument."""

from __future__ import annotations

import inspect
import pickle
import re
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

import tinybench
from tinybench.energy import CpuTimeMeter
from tinybench.support.basics.layer_networks import initial_layers
from tinybench.support.footprint.stages import STAGES

X = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
Y = X[:, :3].argmax(axis=1)
RESULT = tinybench.BenchmarkResult("latency", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], unit="s")
LAYERS = initial_layers((4, 5, 3), seed=0)
POINTS = [{"latency": 1.0, "accuracy": 0.5}]


def first(x: Any) -> Any:
    """A model that takes everything."""
    return np.zeros((len(x) if isinstance(x, np.ndarray | list) else 1, 3))


def second(x: Any) -> Any:
    return first(x)


@cache
def files() -> dict[str, Path]:
    from sklearn.linear_model import LogisticRegression

    folder = Path(mkdtemp())
    return {"folder": folder, "onnx": tinybench.to_onnx(LogisticRegression().fit(X, Y), X, folder / "a.onnx")}


@cache
def fitted() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(X, Y)


def launch(task: Any) -> dict[str, Any]:
    stages = {stage: {"peak": 1.0, "retained": 1.0, "resident": 1.0} for stage in STAGES}
    return {"method": "made up", "stages": stages, "import": 1.0, "load": 1.0, "first_call": 1.0, "steady": 1.0}


def good() -> dict[str, dict[str, Any]]:
    """Return arguments with which each public name works."""
    onnx, folder, both = files()["onnx"], files()["folder"], {"a": first, "b": second}
    runs = {"warmup_runs": 1, "measurement_runs": 1}
    one = {"model": first, "inputs": X}
    return {
        "Benchmark": {"models": both, "datasets": (X, Y), "progress": None},
        "BenchmarkResult": {"metric_name": "latency", "values": [1.0], "metadata": {}, "unit": "s", "confidence": 0.95},
        "BenchmarkSuite": {"models": both, "datasets": (X, Y), "output_dir": folder / "suite"},
        "OnnxModel": {"path": onnx, "threads": 1, "optimization": "all"},
        "Requirements": {"latency_p95_ms": 1.0, "accuracy_min": 0.9, "memory_max_mb": 3.0},
        "balanced_accuracy": {"y": Y, "predicted": Y},
        "best_meter": {"root": "/nowhere", "watts_per_core": 3.0},
        "check_parity": {"model": first, "onnx_model": second, "X": X, "tolerance": 1e-4},
        "compare": {"a": RESULT, "b": RESULT, "margin": 0.0, "confidence": 0.95, "names": ("a", "b"), "allow": ()},
        "compare_all": {"results": {"a": RESULT, "b": RESULT}, "margin": 0.0, "confidence": 0.95, "allow": ()},
        "compare_live": {"models": both, "inputs": X, "stop_at": 20.0, "max_seconds": 0.02, "margin": 0.0},
        "in_order": {"items": [1.0]},
        "latency_summary": {"result": RESULT},
        "low_rank": {"layers": LAYERS, "rank": 2},
        "machine_check": {"root": "/"},
        "mcnemar": {"y": Y, "pred_a": Y, "pred_b": Y},
        "measure_accuracy": {"model": first, "datasets": (X, Y), "outputs": "logits", "confidence": 0.95},
        "measure_cold_start": {"factory": "json:loads", "inputs": X, "repeats": 1, "steady_calls": 1, "launch": launch},
        "measure_energy": {**one, **runs, "meter": CpuTimeMeter(3.0), "min_reading": 1e-3},
        "measure_latencies": {"models": both, "inputs": X, **runs, "mode": "as_served", "clock": time.perf_counter},
        "measure_latency": {**one, **runs, "clock": time.perf_counter},
        "measure_memory": {**one, **runs},
        "measure_session_latency": {**one, "rounds": 10, "seconds": 0.02, "warmup_runs": 1},
        "memory_stages": {"factory": "json:loads", "inputs": X, "repeats": 1, "steady_calls": 1, "launch": launch},
        "model_size": {"model_or_path": onnx},
        "open_loop": {"send": first, "arrivals": [0.0, 0.001]},
        "operator_profile": {"onnx_model": tinybench.OnnxModel(onnx), "X": X, "runs": 2, "warmup_runs": 1},
        "pareto_frontier": {"points": POINTS, "objectives": {"latency": "min", "accuracy": "max"}},
        "parity": {"pred_a": X, "pred_b": X},
        "plot_pareto_frontier": {"points": POINTS, "objectives": {"latency": "min", "accuracy": "max"}},
        "precise_timer": {"clock": time.perf_counter},
        "prune_units": {"layers": LAYERS, "fraction": 0.5},
        "prune_weights": {"layers": LAYERS, "sparsity": 0.5},
        "quantize_dynamic_int8": {"path": onnx, "out": folder / "q.onnx", "weight_type": "int8", "overwrite": True},
        "quantize_static_int8": {"path": onnx, "calibration": X, "out": folder / "s.onnx", "overwrite": True},
        "regression_gate": {"baseline": RESULT, "candidate": RESULT, "max_slowdown": 0.05, "confidence": 0.95},
        "required_runs": {"std": 1.0, "half_width": 0.5, "confidence": 0.95},
        "resident_growth": {**one, "runs": 2, "blocks": 2, "warmup_runs": 0},
        "simulate_queue": {"arrivals": [0.0, 1.0], "services": [0.5, 0.5], "servers": 1},
        "system_info": {"root": "/"},
        "to_onnx": {"model": fitted(), "sample": X, "path": folder / "c.onnx", "overwrite": True},
        "tradeoff_study": {"model": fitted(), "X": X, "y": Y, "variants": ("nothing",)},
        "what_if": {"run": lambda stages: stages["s"](1), "stages": {"s": first}, "name": "s", "max_seconds": 0.1},
    }


# The library makes the first three and hands them out; `arguments` takes whatever a model does.
UNTRIED = {"Comparison", "Gate", "LoadResult", "arguments"}
WRONG: dict[str, Any] = {
    "None": None,
    "a function": first,
    "a class": dict,
    "a number": -3,
    "a text": "nowhere.onnx",
    "a path": Path("nowhere.onnx"),
    "a list of functions": [first, second],
    "a dictionary of functions": {"a": first, "b": second},
    "one row": X[0],
    "a pair": (X, Y),
    "a result": RESULT,
    "results": {"a": RESULT, "b": RESULT},
    "an empty list": [],
    "an empty dictionary": {},
    "an object": object(),
    "bytes": b"x",
}
HOOKS = ("launch", "clock")  # what another function would answer, nobody knows before it is called
# How Python and NumPy would say it: such a sentence does not say which argument is meant.
THEIRS = re.compile(
    r"object is not|has no attribute|not supported between|has no len|unhashable|must be real number|could not convert"
    r"|unpack|truth value|setting an array|expected str, bytes|float\(\) argument|unsized object|missing \d|invalid literal"
    r"|inhomogeneous|only \d-dimensional|ufunc|not callable|takes \d+ positional|dictionary update"
)


def refused(use: Callable[[], Any]) -> str | None:
    """Return what is wrong with the error that a call raises; None if it works or is refused in our words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use()
    except (FileNotFoundError, FileExistsError) as error:
        return None if "onnx" in str(error) else f"which file? {error}"
    except (TypeError, ValueError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        ours = str(Path(tinybench.__file__).parent) in last
        return None if ours and not THEIRS.search(str(error)) else f"{type(error).__name__}: {error}"
    except Exception as error:
        by_model = "onnxruntime" in type(error).__module__  # the model's own error comes through
        return None if by_model else f"{type(error).__name__}: {error}"
    return None


def test_every_public_name_is_tried() -> None:
    assert good().keys() == set(tinybench.__all__) - UNTRIED
    for name, arguments in good().items():
        assert arguments.keys() <= inspect.signature(getattr(tinybench, name)).parameters.keys(), name


@pytest.mark.filterwarnings("ignore::UserWarning")  # such as that a tiny model has nothing to quantise
@pytest.mark.parametrize("name", sorted(set(tinybench.__all__) - UNTRIED))
def test_wrong_arguments_are_refused_in_our_words(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    function, arguments = getattr(tinybench, name), good()[name]
    if name != "tradeoff_study":  # takes long
        function(**arguments)
    found = {
        f"{parameter}: {kind}": said
        for parameter in arguments
        for kind, value in WRONG.items()
        if not (parameter in HOOKS and callable(value))
        if (said := refused(lambda p=parameter, v=value: function(**{**arguments, p: v})))  # type: ignore[misc]
    }
    assert not found, "\n".join(f"{case}: {said}" for case, said in found.items())


def test_two_callables_are_told_how_to_be_compared() -> None:
    """`compare` sends to `measure_latencies`, and what it says there works."""
    for use in (lambda: tinybench.compare(first, second), lambda: tinybench.regression_gate(first, second)):
        with pytest.raises(
            TypeError, match=r"is a function \(first\).*measure_latencies\(\{'a': model, 'b': other\}, X\)"
        ):
            use()
    for live in (tinybench.compare_live, tinybench.measure_latencies):
        with pytest.raises(TypeError, match=r"models is a function \(first\).*pass models by name, such as \{'fp32'"):
            live(first, second, X)
    results = tinybench.measure_latencies({"a": first, "b": second}, X, 1, 6)
    assert tinybench.compare(results["a"], results["b"]).name_a == "a"
    with pytest.raises(TypeError, match=r"a is a dictionary.*pass one of its values, such as a=results\['a'\]"):
        tinybench.compare(results, results)


@pytest.mark.parametrize("name", tinybench.__all__)
def test_a_checked_function_is_one_object_with_its_signature(name: str) -> None:
    public = getattr(tinybench, name)
    assert public is getattr(tinybench, name)
    assert pickle.loads(pickle.dumps(public)) is public
    assert inspect.signature(public) == inspect.signature(inspect.unwrap(public))
