"""Scenarios of `tinybench load`, each of which determines when the requests are due.

A scenario is a function of the mean rate in requests per second, the duration in seconds and a seed. It returns a
sorted array of the times at which requests are due, in seconds from the start. Other packages add scenarios through the
entry-point group ``tinybench.scenarios``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinybench.load import arrivals
from tinybench.support.basics.plugins import find_entry
from tinybench.support.traffic.load_checks import check_arrivals

__all__ = ["SCENARIOS", "times_due"]

Scenario = Callable[[float, float, int], np.ndarray]


def poisson(rate: float, seconds: float, seed: int) -> np.ndarray:
    """Return the arrival times of requests from independent users (a Poisson process)."""
    return arrivals(rate, seconds, "poisson", seed)


def constant(rate: float, seconds: float, seed: int) -> np.ndarray:
    """Return arrival times at equal intervals."""
    return arrivals(rate, seconds, "constant", seed)


SCENARIOS: dict[str, Scenario] = {scenario.__name__: scenario for scenario in (poisson, constant)}


def times_due(scenario: str, rate: float, seconds: float, seed: int) -> np.ndarray:
    """Return the times at which the requests of a scenario are due, in seconds from the start.

    If the scenario is unknown, or if its times are empty or not sorted, raise ValueError.
    """
    try:
        due = check_arrivals(find_entry("tinybench.scenarios", SCENARIOS, scenario)(rate, seconds, seed))
    except ValueError as error:
        raise ValueError(f"--scenario {scenario}: {error}") from None
    if not len(due):
        raise ValueError(f"--scenario {scenario}: no request is due within {seconds:g} s")
    return due
