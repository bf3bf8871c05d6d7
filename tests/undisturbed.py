"""For tests of real times: other processes can spoil one measurement; a mistake spoils them all."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")
TRIES = 6


def once_undisturbed(test: Callable[P, None]) -> Callable[P, None]:
    """Let a test fail only if it fails each of `TRIES` times."""

    @wraps(test)
    def patient(*args: P.args, **kwargs: P.kwargs) -> None:
        for _ in range(TRIES - 1):
            try:
                return test(*args, **kwargs)
            except AssertionError:
                continue
        return test(*args, **kwargs)

    return patient
