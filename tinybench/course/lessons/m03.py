"""Module 03: clocks and models that are faked, and the network whose latency it measures."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


class FakeClock:
    """Moves only when a fake model moves it, and by `tick` seconds at each reading: a busy machine cannot fail you."""

    simulated = True  # `clock_step` does not wait for it

    def __init__(self, tick: float = 0.0) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        """Return the seconds."""
        self.now += self.tick
        return self.now

    def sleep(self, seconds: float) -> None:
        """Wait, in no time."""
        assert seconds >= 0, f"you asked to sleep for {seconds} s: sleep only where there is time left to wait"
        self.now += seconds


class FakeModel:
    """Takes the given seconds, call by call (then always the last), and counts its calls."""

    def __init__(self, clock: FakeClock, *seconds: float) -> None:
        self.clock, self.seconds, self.calls = clock, seconds, 0

    def __call__(self, x: Any) -> Any:
        """Return the input, a little later."""
        self.clock.now += self.seconds[min(self.calls, len(self.seconds) - 1)]
        self.calls += 1
        return x


class FakeSession:
    """What `as_callable` needs of an ONNX Runtime session; it answers with the names of its outputs."""

    def __init__(self, name: str, kind: str, *outputs: str) -> None:
        self.name, self.kind, self.outputs, self.fed = name, kind, outputs, dict[str, Any]()

    def get_inputs(self) -> list[Any]:
        """Return its one input."""
        return [SimpleNamespace(name=self.name, type=self.kind)]

    def get_outputs(self) -> list[Any]:
        """Return its outputs."""
        return [SimpleNamespace(name=name, type="tensor(float)") for name in self.outputs]

    def run(self, names: Any, feed: dict[str, Any]) -> list[str]:
        """Remember what it is fed."""
        self.fed = feed
        return list(names or self.outputs)

    def predict(self, x: Any) -> str:
        """Return which method this is."""
        return "predict"


def model_with(*methods: str) -> Any:
    """Return an object with these methods, each of which returns its own name."""
    return type("Model", (), {name: lambda self, x, name=name: name for name in methods})()


@dataclass
class DigitsNetwork:
    """A network for handwritten digits: scikit-learn's, and the ONNX file made of it."""

    X: np.ndarray
    network: Any
    path: Path

    def load_session(self) -> Any:
        """Load the file into ONNX Runtime, on one thread."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])


def digits_network() -> DigitsNetwork:
    """Train the network, convert it and write the file."""
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


def first_calls(session: Any, x: np.ndarray, number: int) -> list[float]:
    """Return the seconds of a session's first calls, after a pause such as a service has before its first request."""
    clock, feed, times = time.perf_counter, {session.get_inputs()[0].name: x}, [0.0] * number
    time.sleep(0.1)
    for i in range(number):
        start = clock()
        session.run(None, feed)
        times[i] = clock() - start
    return times
