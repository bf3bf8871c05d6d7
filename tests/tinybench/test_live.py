"""compare_live on machines with a memory, in its time, with models that fail."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tinybench.comparison import compare_live
from tinybench.support.comparisons.race import RaceTally

INPUT = np.zeros((1, 4))


class Clock:
    """Time that only the models spend."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def model(self, durations: Any) -> Any:
        def call(_: Any) -> None:
            self.now += float(next(durations))

        return call


def positions(clock: Clock, rng: np.random.Generator) -> Callable[[], Iterator[float]]:
    """Return durations that resemble those before them, whoever is called."""

    def noise() -> Iterator[float]:
        level = 0.0
        while True:
            level = 0.9 * level + float(rng.normal(0, 0.03))
            yield 1e-3 * math.exp(level)

    shared = noise()
    return lambda: shared


@pytest.mark.audit
def test_live_holds_its_level_on_noise_with_a_memory() -> None:
    rng, alarms, trials = np.random.default_rng(23), 0, 200
    for seed in range(trials):
        clock = Clock()
        draws = positions(clock, rng)
        models = {name: clock.model(draws()) for name in "ab"}
        found = compare_live(models, INPUT, max_seconds=0.3, warmup_runs=0, seed=seed, clock=clock)
        alarms += not found.verdict.startswith("undecided")
    assert alarms / trials <= 0.08  # 5 % and three standard errors


@pytest.mark.parametrize("seconds", [0.001, 0.3, 0.99, 1.0, 1.5, 3.0])
def test_live_keeps_its_time(seconds: float) -> None:
    clock, rng = Clock(), np.random.default_rng(24)
    noise = (seconds * float(v) for v in iter(lambda: rng.lognormal(0, 0.001), None))
    models = {name: clock.model(noise) for name in "ab"}
    found = compare_live(models, INPUT, max_seconds=4, stop_at=1e300, clock=clock, seed=1)
    rounds, least = found.counts[0], 4 * seconds  # one call of each to warm up, and a round
    assert rounds >= 1
    assert clock.now <= max(1.2 * 4, least) + seconds * 1.01


def test_live_keeps_what_was_measured() -> None:
    for error in (RuntimeError("no memory"), KeyboardInterrupt()):
        clock, calls = Clock(), itertools.count()

        def fails(_: Any, calls: Any = calls, clock: Clock = clock, error: BaseException = error) -> None:
            clock.now += 1e-3
            if next(calls) == 50:
                raise error

        models = {"good": clock.model(itertools.repeat(1e-3)), "bad": fails}
        with pytest.raises(type(error)) as caught:
            compare_live(models, INPUT, stop_at=1e300, warmup_runs=0, clock=clock)
        results = caught.value.results  # type: ignore[attr-defined]
        assert results["good"].count == results["bad"].count == 50
        assert any("50 complete rounds" in note for note in caught.value.__notes__)


def test_live_passes_setup_and_sync_on() -> None:
    clock, seen = Clock(), {"setup": 0, "sync": 0}

    def setup(x: Any) -> Any:
        seen["setup"] += 1
        clock.now += 5.0  # outside the time
        return x

    def sync() -> None:
        seen["sync"] += 1

    models = {name: clock.model(itertools.repeat(0.01)) for name in "ab"}
    found = compare_live(models, INPUT, max_seconds=40, warmup_runs=0, clock=clock, setup=setup, sync=sync)
    assert seen["setup"] >= 2 * found.counts[0]
    assert seen["sync"] >= 2 * found.counts[0]
    assert found.difference == pytest.approx(0, abs=1e-9)


def test_nothing_is_imported_while_live_measures() -> None:
    program = (
        "import sys, time\nfrom tinybench.comparison import compare_live\nnames = []\n"
        "def model(x):\n    names.append(len(sys.modules))\n"
        "found = compare_live({'a': model, 'b': model}, 1, max_seconds=0.2, stop_at=1e300, warmup_runs=0)\n"
        "print(names[0] == names[-1] and len(names) > 2)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_the_tally_of_a_race_bets_by_the_count_of_its_rounds() -> None:
    tally = RaceTally(lambda more, rounds: 100.0 * more + rounds, margin=0.1)
    assert tally.for_a_winner() == tally.for_equality() == 1.0
    for a, b in ((1.0, 2.0), (1.0, 2.0), (1.0, 1.0), (2.0, 1.0)):
        tally.add(a, b)
    assert tally.for_a_winner() == 1.0, "2 of 4 rounds are not more than half: the tie counts as a round"
    tally.add(1.0, 2.0)
    assert tally.for_a_winner() == 305.0
    alike = RaceTally(lambda more, rounds: 100.0 * more + rounds, margin=0.1)
    for a in (1.05, 0.95, 1.2):
        alike.add(a, 1.0)
    assert alike.for_equality() == 203.0, "all 3 rounds are above 0.9, and 2 below 1.1: the smaller count"
    alike.add(1.2, 1.0)
    assert alike.for_equality() == 1.0
