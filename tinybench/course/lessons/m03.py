"""Helpers for module 03: fake clocks and models, and the models whose latency the module measures."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


class FakeClock:
    """A simulated clock, so that a busy machine cannot make a check fail.

    Only fake models, sleeps and clock readings advance the clock.
    """

    simulated = True  # `clock_step` does not wait for a simulated clock

    def __init__(self, tick: float = 0.0) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        """Advance the clock by `tick`, and return its time in seconds."""
        self.now += self.tick
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock by `seconds` without waiting."""
        assert seconds >= 0, f"you asked to sleep for {seconds} s: sleep only where there is time left to wait"
        self.now += seconds


class FakeModel:
    """A fake model whose calls advance a `FakeClock`.

    The first call takes the first number of `seconds`, the second call the second, and so on. When the numbers are used
    up, each call takes the last one. `calls` counts the calls.
    """

    def __init__(self, clock: FakeClock, *seconds: float) -> None:
        self.clock, self.seconds, self.calls = clock, seconds, 0

    def __call__(self, x: Any) -> Any:
        """Advance the clock, and return the input."""
        self.clock.now += self.seconds[min(self.calls, len(self.seconds) - 1)]
        self.calls += 1
        return x


class FakeSession:
    """A stand-in for an ONNX Runtime session, with the methods that `as_callable` uses."""

    def __init__(self, name: str, kind: str, *outputs: str) -> None:
        self.name, self.kind, self.outputs, self.fed = name, kind, outputs, dict[str, Any]()

    def get_inputs(self) -> list[Any]:
        """Return a list with the description of the only input."""
        return [SimpleNamespace(name=self.name, type=self.kind)]

    def get_outputs(self) -> list[Any]:
        """Return the descriptions of the outputs."""
        return [SimpleNamespace(name=name, type="tensor(float)") for name in self.outputs]

    def run(self, names: Any, feed: dict[str, Any]) -> list[str]:
        """Record the inputs in `fed`, and return the names of the outputs."""
        self.fed = feed
        return list(names or self.outputs)

    def predict(self, x: Any) -> str:
        """Return the name of this method."""
        return "predict"


def model_with(*methods: str) -> Any:
    """Return an object with the methods named in `methods`. Each method returns its own name."""
    return type("Model", (), {name: lambda self, x, name=name: name for name in methods})()


@dataclass
class DigitsNetwork:
    """A network that classifies handwritten digits, as a scikit-learn model and as an ONNX file, with images `X`."""

    X: np.ndarray
    network: Any
    path: Path

    def load_session(self) -> Any:
        """Return an ONNX Runtime session that runs the ONNX file on one thread."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])


def digits_network() -> DigitsNetwork:
    """Train a network on handwritten digits, and write it to an ONNX file. Return both, with the images."""
    from skl2onnx import to_onnx
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    digits = load_digits()
    X = (digits.data / 16).astype(np.float32)
    network = MLPClassifier((64,), batch_size=200, max_iter=300, learning_rate_init=0.02, random_state=0)
    network.fit(X[:1257], digits.target[:1257])
    path = Path(tempfile.mkdtemp()) / "digits.onnx"
    path.write_bytes(to_onnx(network, X[:1], options={"zipmap": False}).SerializeToString())
    return DigitsNetwork(X, network, path)


@dataclass
class TabularModels:
    """A forest and a linear model that tell benign from malignant tumours, with rows of 30 measurements `X`."""

    X: np.ndarray
    forest: Any
    linear: Any


def tabular_models() -> TabularModels:
    """Fit a forest of 100 trees and a linear model on the breast cancer data of scikit-learn. Return both."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(100, random_state=0).fit(X, y)
    return TabularModels(X, forest, make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))


def first_calls(session: Any, x: np.ndarray, number: int) -> list[float]:
    """Return the seconds that each of a session's first `number` calls takes, after a pause as in an idle service."""
    clock, feed, times = time.perf_counter, {session.get_inputs()[0].name: x}, [0.0] * number
    time.sleep(0.1)
    for i in range(number):
        start = clock()
        session.run(None, feed)
        times[i] = clock() - start
    return times
