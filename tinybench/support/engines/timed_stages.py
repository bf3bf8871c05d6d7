"""A scikit-learn pipeline as three functions, and what is done before and after they are timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinybench.latency import warm_up
from tinybench.result import BenchmarkResult
from tinybench.support.rounds.checked_calls import Clock
from tinybench.support.rounds.input_notes import check_runs, describe_input


def pipeline_stages(pipeline: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the stages of a fitted scikit-learn classifier pipeline as functions: preprocess, model and postprocess.

    ``preprocess`` runs all steps but the last (for a classifier without a pipeline, it does nothing). ``model`` returns
    the probabilities. ``postprocess`` returns the label of the largest probability in each row. Raises TypeError if the
    last step has no ``predict_proba``.
    """
    steps = [step for _, step in getattr(pipeline, "steps", [("model", pipeline)])]
    model = steps[-1]
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba; pass three functions instead of the pipeline")
    transformers = [step for step in steps[:-1] if step not in (None, "passthrough")]

    def preprocess(X: Any) -> Any:
        for step in transformers:
            X = step.transform(X)
        return X

    def postprocess(scores: Any) -> Any:
        return model.classes_[np.argmax(scores, axis=1)]

    return {"preprocess": preprocess, "model": model.predict_proba, "postprocess": postprocess}


def warm_stages(pipeline: Any, X: Any, runs: int, warmup_runs: int, clock: Clock) -> dict[str, Callable[[Any], Any]]:
    """Warm up a whole pipeline. Return its stages as functions by name.

    `pipeline` is a scikit-learn pipeline, or a mapping that already holds the stages.
    """
    check_runs("runs", runs, 1)
    check_runs("warmup_runs", warmup_runs, 0)
    stages = dict(pipeline) if isinstance(pipeline, Mapping) else pipeline_stages(pipeline)

    def whole(x: Any) -> Any:
        for stage in stages.values():
            x = stage(x)
        return x

    if warmup_runs:
        warm_up(whole, X, min_calls=warmup_runs, clock=clock)
    return stages


def stage_results(times: Mapping[str, list[float]], X: Any, warmup_runs: int) -> dict[str, BenchmarkResult]:
    """Return the times of each stage as results, with one value in seconds for each call."""
    shared = {**describe_input(X), "warmup_runs": warmup_runs, "order": "stages of one call"}
    return {
        name: BenchmarkResult("latency", values, {**shared, "stage": name}, unit="s") for name, values in times.items()
    }
