"""Helpers for module 08: models with known costs on a simulated clock, and a model that has only a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Tick:
    """A simulated clock. Only calls of the models that `model` returns advance it."""

    simulated = True  # `clock_step` does not wait for a simulated clock

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the seconds that the models have taken so far."""
        return self.now

    def model(self, seconds: float, per_row: float = 0.0) -> Callable[[Any], None]:
        """Return a model whose calls take `seconds` plus `per_row` seconds for each row of the input."""

        def call(x: Any) -> None:
            self.now += seconds + per_row * len(x)

        return call


class Named:
    """A model that has a name and does nothing."""

    def __init__(self, name: Any) -> None:
        self.name = name
