"""Module 08: models whose cost is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Tick:
    """A clock that only its models move."""

    simulated = True  # `clock_step` does not wait for it

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time in seconds that the models have taken so far."""
        return self.now

    def model(self, seconds: float, per_row: float = 0.0) -> Callable[[Any], None]:
        """Return a model that takes so many seconds a call, and so many for each row."""

        def call(x: Any) -> None:
            self.now += seconds + per_row * len(x)

        return call


class Named:
    """A model that has a name and does nothing."""

    def __init__(self, name: Any) -> None:
        self.name = name
