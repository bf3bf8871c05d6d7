"""Inputs of models: checks, their shape as metadata, and the input of each model in a comparison."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import numpy as np

from tinybench.support.rounds.checked_calls import Clock
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.timer import timer_overhead


def check_runs(name: str, runs: Any, least: int) -> None:
    """Raise ValueError unless `runs` is a whole number of at least `least`. The message contains `name`."""
    if isinstance(runs, bool) or not isinstance(runs, int | np.integer) or runs < least:
        raise ValueError(f"{name} is {runs!r}; it must be a whole number of at least {least}")


def as_input(inputs: Any) -> Any:
    """Return an input unchanged. Raise ValueError if the input is empty; the message contains its shape."""
    if 0 in shape_of(inputs):
        raise ValueError(f"the input is empty: its shape is {shape_of(inputs)}")
    return inputs


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of an array, a table or a list of equally long rows.

    For any other list, the result is a tuple with the length alone. For everything else, it is ``()``.
    """
    try:
        return tuple(int(size) for size in getattr(x, "shape", None) or np.shape(x))
    except (TypeError, ValueError):  # rows of different length
        return (len(x),)


def shape_notes(x: Any) -> dict[str, Any]:
    """Return shape, dtype and batch size of an input. If there are several axes, the first one is the batch."""
    shape = list(shape_of(x))
    dtype = str(getattr(x, "dtype", type(x).__name__))
    return {"input_shape": shape, "input_dtype": dtype, "batch_size": shape[0] if len(shape) > 1 else 1}


def describe_input(x: Any) -> dict[str, Any]:
    """Return the conditions of a measurement: the `shape_notes` of the input, and the `machine_notes`."""
    return {**shape_notes(x), **machine_notes()}


def run_notes(model: Any, x: Any, clock: Clock) -> dict[str, Any]:
    """Return metadata: the model, the input, the clock with its overhead in s, and whether garbage is collected."""
    return {
        "model": getattr(model, "__name__", type(model).__name__),
        **describe_input(x),
        "timer_overhead": timer_overhead(clock, samples=101),
        "clock": getattr(clock, "__name__", type(clock).__name__),
        "gc_enabled": gc.isenabled(),
    }


def inputs_by_model(models: Mapping[str, Any], inputs: Any) -> dict[str, Any]:
    """Return the input of each model by the model's name, in the order of `models`. All inputs have the same shape.

    `inputs` is one input for all models, or a dictionary with one input for each name. If no key of a dictionary is the
    name of a model, the dictionary itself is the input. Raises ValueError if there are no models, the names do not
    match, an input is empty, or the shapes differ, because the models would then do different amounts of work.
    """
    if not isinstance(models, Mapping):
        raise TypeError(f"models is a {type(models).__name__}; pass a dictionary such as {'{'}'fp32': session{'}'}")
    if not models:
        raise ValueError("models is empty; pass a dictionary such as {'fp32': session}")
    if not (isinstance(inputs, dict) and set(inputs) & set(models)):
        return dict.fromkeys(models, as_input(inputs))
    if set(inputs) != set(models):
        raise ValueError(f"inputs are for {sorted(inputs)}, models are {sorted(models)}; the names must agree")
    arrays = {name: as_input(inputs[name]) for name in models}
    shapes = {name: shape_of(x) for name, x in arrays.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"input shapes differ: {listed}; compare models on inputs of one shape")
    return arrays
