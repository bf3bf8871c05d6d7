"""`what_if` on a clock that its stages move, on threads, and in words."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tinybench.bottleneck import what_if
from tinybench.support.profiling.pipeline_trial import Trial
from tinybench.support.profiling.what_if_arms import repeat_counts
from tinybench.support.profiling.what_if_experiment import Row, Stage, WhatIf, in_order


class Clock:
    """A clock that only the stages move, and never twice by exactly as much: equal times show no scatter."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rng = random.Random(0)

    def __call__(self) -> float:
        return self.now

    def stage(self, seconds: float) -> Stage:
        def run(item: Any) -> Any:
            self.now += seconds * self.rng.uniform(1 - 1e-9, 1 + 1e-9)
            return item

        return run


def chain(clock: Clock, **seconds: float) -> dict[str, Stage]:
    return {name: clock.stage(each) for name, each in seconds.items()}


def test_a_chain_saves_what_its_shares_promise() -> None:
    clock = Clock()
    found = what_if(
        in_order([1, 2]), chain(clock, read=0.3, model=0.5, write=0.2), "model", clock=clock, max_seconds=1e6
    )
    assert found.method == "repeats"
    assert found.share == pytest.approx(0.5)
    assert [row.speedup for row in found.rows] == [1.25, 2, 5]
    for row, gain in zip(found.rows, (0.1, 0.25, 0.4), strict=True):
        assert (row.gain, row.low, row.high, row.promised) == pytest.approx((gain,) * 4)
        assert row.error == pytest.approx(0, abs=1e-9)
        assert row.verdict == "ok"
    assert len(found.seconds["plain"]) == 6
    assert str(found).splitlines()[-1] == "model 5× faster: it takes 40 % less time (40–40), 1.7 times as fast"


def test_what_is_around_the_stages_is_not_sped_up() -> None:
    clock = Clock()

    def run(stages: Mapping[str, Stage]) -> None:
        clock.now += 0.02
        in_order([1])(stages)

    row = what_if(run, chain(clock, read=0.48, model=0.5), "model", (2,), clock=clock, max_seconds=1e6)[2]
    assert row.gain == pytest.approx(0.25)
    assert -0.05 < row.error < 0


def test_a_cache_makes_slowing_a_lie() -> None:
    clock = Clock()
    stages = chain(clock, fetch=0.3, model=0.2)
    found = what_if(in_order(range(3)), {**stages, "model": lru_cache(1)(stages["model"])}, "fetch", (5,), clock=clock)
    assert found[5].why
    assert "cannot tell" in str(found)


def test_a_stage_that_must_not_be_repeated_is_delayed() -> None:
    saved: list[int] = []

    def save(item: int) -> int:
        time.sleep(0.002)
        saved.append(item)
        return item

    def wait(item: int) -> int:
        time.sleep(0.001)
        return item

    found = what_if(
        in_order(range(3)), {"wait": wait, "save": save}, "wait", (2,), once=["save"], rounds=2, max_seconds=0
    )
    assert len(saved) == 3 * (2 + 2 * (2 + 1 + 1))  # trial runs, and two rounds of two plain runs and two slowed ones
    assert len(found.seconds["plain"]) == 2
    assert found[2].why


def test_where_stages_overlap_a_stand_in_is_used() -> None:
    seen: list[int] = []

    def wait(item: int) -> int:
        time.sleep(0.001)
        return item

    def run(stages: Mapping[str, Stage]) -> None:
        with ThreadPoolExecutor(1) as pool:
            seen.extend(stages["model"](item) for item in pool.map(stages["fetch"], range(5)))

    threads = threading.active_count()
    stages: dict[str, Stage] = {"fetch": wait, "model": wait}
    beside = {"really": {**stages, "fetch": lambda item: item}}
    found = what_if(run, stages, "model", (2,), beside=beside, rounds=2, max_seconds=0)
    assert found.method == "stand-in"
    assert set(found.seconds) == {"plain", "really", "stand-in", "stand-in 2×"}
    assert seen == [0, 1, 2, 3, 4] * (len(seen) // 5)
    assert found.saved("really")[1] <= found.saved("really")[0] <= found.saved("really")[2]
    assert found.trial.overlaps
    assert what_if(run, stages, "model", (2,), rounds=2, max_seconds=0, method="repeats").method == "repeats"
    assert threading.active_count() == threads


def test_nothing_stands_in_for_a_stage_that_is_given_something_else_each_time() -> None:
    given = iter(range(10**6))

    def run(stages: Mapping[str, Stage]) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(stages["model"], next(given)).result()

    assert what_if(run, {"model": abs}, "model", (2,), rounds=2, max_seconds=0).method == "repeats"


def test_a_slower_stage_is_no_speedup() -> None:
    with pytest.raises(ValueError, match="1"):
        what_if(in_order([1]), {"model": abs}, "model", (0.5,))


def foreseen(*rows: Row) -> WhatIf:
    trial = Trial({"model": 1}, {"model": 1.0}, {"model": 1.0})
    return WhatIf("model", rows, trial, "repeats", {"plain": [2.0]}, {"machine": {"verdict": "governor"}})


def test_what_is_known_well_enough() -> None:
    assert foreseen(Row(2, 0.2, 0.19, 0.21, 0.4, 0.04)).narrow()
    assert not foreseen(Row(2, 0.2, 0.18, 0.22, 0.4, 0.04)).narrow()
    assert not foreseen(Row(2, 0.2, 0.19, 0.21, 0.4, -0.07)).narrow()  # may be chance
    assert foreseen(Row(2, 0.2, 0.19, 0.21, 0.4, 0.5)).narrow()  # nothing will mend that


def test_an_answer_is_said_in_a_sentence() -> None:
    rows = [
        Row(5, 0.17, 0.15, 0.19, 0.6, 0.01),
        Row(2, 0.01, -0.01, 0.02, 0.375, 0.01),
        Row(3, -0.04, -0.05, -0.03, 0.4, 0.01),
        Row(4, 0.2, 0.19, 0.21, 0.4, -0.3),
        Row(10, 0.2, 0.0, 0.4, 0.4, 0.0),
        Row(7.5, 0.04, 0.03, 0.05, 0.4, 0.0),
        Row(11, 0.2, -math.inf, math.inf, 0.4, 0.0),
    ]
    found = foreseen(*rows)
    assert str(found).splitlines() == [
        "model 5× faster: it takes 17 % less time (15–19), 1.2 times as fast",
        "model 2× faster: no gain to be seen (−1.0 to 2.0 % less time)",
        "model 3× faster: it takes 4 % more time (3–5)",
        "model 4× faster: cannot tell: runs that should take as long took 30 % less",
        "model 10× faster: cannot tell: runs scatter too much (0 to 40 %); measure longer",
        "model 7.5× faster: it takes 4 % less time (3–5), 1.04 times as fast",
        "model 11× faster: cannot tell: too few rounds, or all rounds are equal; increase max_seconds",
    ]
    bundle = found._repr_mimebundle_()
    assert "saves %" in bundle["text/plain"]
    assert "its share of a profile is 50 %" in bundle["text/html"]
    assert "| 5× |" in bundle["text/markdown"]
    assert "(by repeats; mind this machine: governor)" in bundle["text/plain"]
    with pytest.raises(KeyError, match="7; there are 5, 2, 3, 4, 10, "):
        found[7]


@pytest.mark.parametrize(
    "speedup", [1.1, 1.25, 4 / 3, 1.9999, 2, 2.52, 5, *np.random.default_rng(0).uniform(1.1, 12, 20)]
)
def test_counts_are_the_closest_ratio_in_lowest_terms(speedup: float) -> None:
    ratios = (Fraction(round(speedup * q), q) for q in range(1, 11))
    truth = min(ratios, key=lambda ratio: (abs(ratio - Fraction(speedup)), ratio.denominator))
    assert repeat_counts(speedup) == (truth.numerator, truth.denominator)


@pytest.mark.parametrize("speedup", [1, 1.0499, 0.0, -3.0, math.inf, -math.inf, math.nan])
def test_speedups_too_small_to_see_are_refused(speedup: float) -> None:
    with pytest.raises(ValueError, match=r"at least 1\.1"):
        repeat_counts(speedup)
