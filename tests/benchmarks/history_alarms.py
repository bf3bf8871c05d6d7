"""Histories without a step: the share that ever raises an alarm, in ratios and in milliseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom, binomtest

from tests.benchmarks.history_data import COMMITS, CORRELATED, INDEPENDENT, drawn, e_divisive, neighbours, pelt
from tinybench.history.steps import StepDetector
from tinybench.table import Table

LEVEL = 0.01


def alarms(values: Any) -> bool:
    """Return whether the detector ever raises an alarm; looking ends with the first."""
    detector = StepDetector(LEVEL)
    return any(detector.add(value) for value in values)


def measured(short: bool) -> dict[str, Any]:
    """Return, by scatter and way, in how many of how many histories there was an alarm."""
    ours, peers = (2, 1) if short else (1000, 3)
    found: dict[str, Any] = {}
    for kind in (*INDEPENDENT, *CORRELATED):
        n = ours if short or kind in INDEPENDENT else 40
        histories = [drawn(kind, 0.0, seed) for seed in range(n)]
        some, few = histories[:40], histories[:peers]
        divided = e_divisive([h.ratios for h in few] + [h.milliseconds for h in few])
        found[kind] = {
            "StepDetector": [sum(alarms(h.ratios) for h in histories), n],
            "StepDetector, ms": [sum(alarms(h.milliseconds) for h in few), len(few)],
            "neighbours": [sum(bool(neighbours(h.ratios)) for h in some), len(some)],
            "neighbours, ms": [sum(bool(neighbours(h.milliseconds)) for h in some), len(some)],
            "PELT, once": [sum(bool(pelt(h.ratios)) for h in some), len(some)],
            "PELT, once, ms": [sum(bool(pelt(h.milliseconds)) for h in some), len(some)],
            "PELT": [sum(any(pelt(h.ratios[:k]) for k in range(10, COMMITS + 1)) for h in few), len(few)],
            "E-divisive": [sum(map(bool, divided[: len(few)])), len(few)],
            "E-divisive, ms": [sum(map(bool, divided[len(few) :])), len(few)],
        }
        print(kind, found[kind], flush=True)
    return found


def _together(found: dict[str, Any]) -> tuple[int, int]:
    seen, n = np.sum([found[kind]["StepDetector"] for kind in INDEPENDENT], axis=0)
    return int(seen), int(n)


def goals(found: dict[str, Any]) -> dict[str, bool]:
    """Return whether the alarms could be those of a rate of 1 %: in each scatter, and taken together below it."""
    seen, n = _together(found)
    each = all(
        binom.sf(found[kind]["StepDetector"][0] - 1, found[kind]["StepDetector"][1], LEVEL) > 0.01
        for kind in INDEPENDENT
    )
    return {
        "independent scatter: at most 1 % of the histories of all kinds together have an alarm": seen <= LEVEL * n,
        "independent scatter: no kind has more alarms than a rate of 1 % gives with a probability of 1 %": each,
    }


def page(found: dict[str, Any]) -> list[str]:
    """Return the tables."""
    seen, n = _together(found)
    ci = binomtest(seen, n).proportion_ci(method="exact")
    tables = []
    for unit, ending in (("ratios", ""), ("milliseconds", ", ms")):
        rows = [
            {"scatter": kind}
            | {
                way.removesuffix(", ms"): f"{a} of {b}"
                for way, (a, b) in ways.items()
                if way.endswith(", ms") == bool(ending)
            }
            for kind, ways in found.items()
        ]
        tables += [f"Histories with any alarm, of {unit}:", Table(rows).markdown()]
    return [
        f"`StepDetector` is asked for a level of 1 % for each history. Independent scatter, all kinds: {seen} of {n} histories "
        f"({seen / n:.1%}; 95 % interval {ci.low:.1%} to {ci.high:.1%}). How much evidence an alarm needs was set by "
        "simulation, on other random numbers than these, so that about so many histories have one.",
        *tables,
    ]
