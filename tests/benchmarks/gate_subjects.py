"""What the gates judge: real work in exact proportion. ``short_6`` is ``short`` and 6 % more, ``model_short_6`` makes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.benchmarks.subjects import work

ITERATIONS = {"short": 2500, "long": 65_000}  # about 0.2 ms and 5 ms


def __getattr__(name: str) -> Callable[..., Any]:
    length, _, percent = name.removeprefix("model_").partition("_")
    if length not in ITERATIONS or not percent.isdigit():
        raise AttributeError(name)
    call = partial(work, ITERATIONS[length] * (100 + int(percent)) // 100)
    return (lambda: lambda _: call()) if name.startswith("model_") else call
