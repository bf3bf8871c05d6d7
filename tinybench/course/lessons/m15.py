"""Helpers for module 15: requests processed in stages, clocks and frames for the checks, and sentences on results."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tinybench.support.basics.numbers import with_ends

if TYPE_CHECKING:
    from tinybench.sampler import Sample
    from tinybench.support.profiling.what_if_experiment import Row, WhatIf

Stages = Mapping[str, Callable[..., Any]]


class Request(NamedTuple):
    """A request's body, and the stages that compute the answer.

    A stage is a function that takes the output of the previous stage. `faster` is another implementation of the stage
    called ``model``.
    """

    body: str
    stages: dict[str, Callable[..., Any]]
    faster: Callable[[np.ndarray], np.ndarray]

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

    return _request(case.X[:1], {"scale": scaler.transform, "model": model.predict_proba}, by_hand)


def make_forest_request(folder: Path) -> Request:
    """Return a request to classify a tumour by 30 numbers with a random forest of scikit-learn.

    The faster model is the same forest as an ONNX file in `folder`. The data is scikit-learn's breast cancer data set.
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    from tinybench.onnx import OnnxModel, to_onnx

    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32)
    forest = RandomForestClassifier(100, random_state=0).fit(X[::2], y[::2])
    converted = OnnxModel(to_onnx(forest, X[:1], folder / "forest.onnx"))
    return _request(X[1:2], {"model": forest.predict_proba}, converted.forward)


def _request(x: np.ndarray, stages: Stages, faster: Callable[[np.ndarray], np.ndarray]) -> Request:
    """Return a request with a row of inputs. Stages that read and write JSON are added before and after `stages`."""
    all_stages: dict[str, Callable[..., Any]] = {
        "parse": json.loads,
        "array": lambda body: np.array(body["inputs"], dtype=np.float32),
        **stages,
        "answer": lambda found: json.dumps({"probabilities": found.tolist()}),
    }
    return Request(json.dumps({"inputs": x.tolist()}), all_stages, faster)


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
    ways = request.stages, request.with_stage("model", request.faster)
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


def told_of_overlap(foreseen: Row, saved: tuple[float, float, float]) -> str:
    """Describe what the share of an overlapping stage promises, what it really saves, and what `what_if` predicts."""
    real = with_ends(100 * saved[0], (100 * saved[1], 100 * saved[2]), named="95 % CI ", unit="%")
    said = f"cannot tell here ({foreseen.why})" if foreseen.why else f"predicts {foreseen.gain:.0%}"
    return (
        f"By its share, the overlapping model should save {foreseen.promised:.0%} if it is {foreseen.speedup:g} times "
        f"as fast. It really saves {real}.\n   Cure: measure what would be saved; what_if {said}."
    )


def told_of_forest(samples: Sequence[Sample], worth: WhatIf, both: Compared) -> str:
    """Describe where a forest's request spends its time, what a faster model promises, and what it brings."""
    from tinybench.sampler import self_shares  # late: the notebook writes it

    files = ("(_classes.py)", "(_tree.py)", "(_forest.py)")
    trees = sum(share for name, share in self_shares(samples).items() if name.endswith(files))
    chance = 1.96 * math.sqrt(trees * (1 - trees) / len(samples))
    before, after = (sum(times.values()) - times["model"] for times in both)
    share = both.before["model"] / (both.before["model"] + before)
    return (
        f"The model takes {share:.1%} of the request. Without it, the answer would be {1 / (1 - share):,.0f} times as "
        "fast, if the other stages took as long as before.\n"
        f"At most {trees:.0%} (± {100 * chance:.0f} points) of the time is spent in the trees, the rest in Python code "
        "around them.\n"
        f"what_if: {worth}\n"
        f"In ONNX the same forest is {both.model:,.0f} times as fast, and the answer {both.answer:,.0f} times. The "
        f"other stages took {before * 1e6:.0f} µs before and take {after * 1e6:.0f} µs now."
    )
