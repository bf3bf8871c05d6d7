"""Helpers for module 15: a request processed in five stages, and functions that take known fractions of the time."""

from __future__ import annotations

import cProfile
import json
import math
import pstats
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

Stages = Mapping[str, Callable[..., Any]]


class Request(NamedTuple):
    """A request's body, and the stages that compute the answer.

    A stage is a function that takes the output of the previous stage. `by_hand` is another implementation of the stage
    called ``model``, which uses NumPy alone.
    """

    body: str
    stages: dict[str, Callable[..., Any]]
    by_hand: Callable[[np.ndarray], np.ndarray]

    def with_stage(self, name: str, stage: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
        """Return the stages, with `stage` in place of the stage called `name`."""
        return {**self.stages, name: stage}


def make_request() -> Request:
    """Return a request to classify a digit of 28 × 28 pixels with a scaler and a small scikit-learn network."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    from tinybench.course import cached_fit, case_study

    case = case_study("narrow")
    scaler = StandardScaler().fit(case.X_train)
    model = cached_fit(MLPClassifier((64,), max_iter=10, random_state=0), scaler.transform(case.X_train), case.y_train)
    (w1, w2), (b1, b2) = model.coefs_, model.intercepts_

    def by_hand(x: np.ndarray) -> np.ndarray:
        scores = np.maximum(x @ w1 + b1, 0) @ w2 + b2
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    stages = {
        "parse": json.loads,
        "array": lambda body: np.array(body["inputs"], dtype=np.float32),
        "scale": scaler.transform,
        "model": model.predict_proba,
        "answer": lambda found: json.dumps({"probabilities": found.tolist()}),
    }
    return Request(json.dumps({"inputs": case.X[:1].tolist()}), stages, by_hand)


def answer_of(stages: Stages, body: Any) -> Any:
    """Run the stages, each on the output of the previous stage, and return the last output."""
    for stage in stages.values():
        body = stage(body)
    return body


def by_stage(stages: Stages, body: Any, rounds: int = 300) -> dict[str, float]:
    """Return the median seconds of each stage over `rounds` runs of all stages."""
    times: dict[str, list[float]] = {name: [] for name in stages}
    for _ in range(rounds):
        x = body
        for name, stage in stages.items():
            start = time.perf_counter()
            x = stage(x)
            times[name].append(time.perf_counter() - start)
    return {name: float(np.median(seconds)) for name, seconds in times.items()}


class Compared(NamedTuple):
    """The median seconds of each stage, before and after the model is replaced."""

    before: dict[str, float]
    after: dict[str, float]

    @property
    def model(self) -> float:
        """The speed-up of the model's stage."""
        return self.before["model"] / self.after["model"]

    @property
    def answer(self) -> float:
        """The speed-up of the whole answer."""
        return sum(self.before.values()) / sum(self.after.values())


def both_models(request: Request, turns: int = 5) -> Compared:
    """Return the time of each stage with either model. The models take turns, so disturbances affect both alike."""
    ways = request.stages, request.with_stage("model", request.by_hand)
    seen = [[by_stage(way, request.body, 60) for way in ways] for _ in range(turns + 1)][1:]  # the first is a warm-up
    before, after = ({name: float(np.median([turn[k][name] for turn in seen])) for name in ways[k]} for k in (0, 1))
    return Compared(before, after)


# ---- profiles
class Clock:
    """A clock that stands still until `now` is changed."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return `now`."""
        return self.now


def frames(*functions: str) -> Any:
    """Return a fake stack frame and its callers. `functions` are ``"folder/file.py:function"``, outermost first."""
    frame = None
    for each in functions:
        file, _, name = each.rpartition(":")
        code = SimpleNamespace(co_qualname=name, co_name=name.rpartition(".")[2], co_filename=file)
        frame = SimpleNamespace(f_code=code, f_back=frame)
    return frame


def tiny(x: int) -> int:
    """Return x + 1. The call itself takes most of the time."""
    return x + 1


def many_small_calls() -> None:
    """Call `tiny` 6000 times."""
    x = 0
    for _ in range(6000):
        x = tiny(x)


def plain_loop() -> None:
    """Run a loop of plain Python that calls nothing."""
    x = 0
    for _ in range(12_000):
        x = (x + 1) % 7


MATRIX = np.ones((128, 128), np.float32)


def in_numpy() -> None:
    """Multiply two matrices 8 times, so that the time is spent inside NumPy."""
    for _ in range(8):
        MATRIX @ MATRIX


MIXTURE = (many_small_calls, plain_loop, in_numpy)


def mixture() -> None:
    """Call each of the three functions in `MIXTURE` once."""
    for function in MIXTURE:
        function()


def by_clock(seconds: float = 1.0) -> dict[str, float]:
    """Return the fraction of the time that each function in `MIXTURE` takes, measured with a clock around each call."""
    spent = {function.__name__: 0.0 for function in MIXTURE}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for function in MIXTURE:
            start = time.perf_counter()
            function()
            spent[function.__name__] += time.perf_counter() - start
    return _shares(spent)


def by_cprofile(seconds: float = 1.0) -> tuple[dict[str, float], float]:
    """Return each function's fraction of the time according to cProfile, and the slowdown factor of cProfile."""
    profiler, plain, traced = cProfile.Profile(), list[float](), list[float]()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        mixture()
        middle = time.perf_counter()
        profiler.enable()
        mixture()
        profiler.disable()
        plain.append(middle - start)
        traced.append(time.perf_counter() - middle)
    found = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = {name: row[3] for (_, _, name), row in found.items()}
    return _shares({function.__name__: total[function.__name__] for function in MIXTURE}), float(
        np.median(traced) / np.median(plain)
    )


def of_mixture(total: Mapping[str, float]) -> dict[str, float]:
    """Pick the functions in `MIXTURE` from `total`, and return their fractions of the time, scaled to a sum of 1."""
    names = (function.__name__ for function in MIXTURE)
    return _shares({name: total.get(f"{name} ({Path(__file__).name})", 0.0) for name in names})


def _shares(spent: Mapping[str, float]) -> dict[str, float]:
    total = sum(spent.values()) or math.nan
    return {name: each / total for name, each in spent.items()}


# ---- what if
class RemoteStage:
    """A stage that sleeps for `seconds`, as if it waited for another machine, and returns its input."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, item: Any) -> Any:
        """Sleep, then return the item unchanged."""
        time.sleep(self.seconds)
        return item


def with_cache(stages: Stages, name: str) -> dict[str, Any]:
    """Return a copy of the stages in which the stage called `name` caches its last output."""
    return {**stages, name: lru_cache(maxsize=1)(stages[name])}
