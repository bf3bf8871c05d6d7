"""Measurements of how throughput scales with the number of workers, in common rounds of all worker counts.

A way of scaling (`Way`) is a kind of worker: threads, processes, or threads inside a runtime.
"""

from __future__ import annotations

import math
import platform
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of, with_ends
from tinybench.support.basics.result_text import is_interval, json_safe
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.comparisons.two_samples import median_interval
from tinybench.support.conditions.control_groups import tightest_quota
from tinybench.support.rounds.input_notes import check_runs
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.tools.scaling.pinned_worker import can_pin, own_cores
from tinybench.tools.scaling.workers import Measure, Way


@dataclass(frozen=True)
class Scaling:
    """The measured seconds per call, for each way of scaling (`Way`), worker count and round.

    Attributes
    ----------
    results
        The seconds per call, by way and worker count: the length of the time window divided by the number of calls that
        all workers together finished in the window.
    notes
        Sentences about the limits of the measurement.
    """

    results: dict[str, dict[int, BenchmarkResult]]
    notes: list[str] = field(default_factory=list)

    __repr__ = short_repr

    def seconds(self, way: str | None = None) -> dict[int, list[float]]:
        """Return the seconds of all rounds by worker count. `way` may be left out if there is only one way."""
        if way is None and len(self.results) == 1:
            [way] = self.results
        if way not in self.results:
            raise ValueError(f"the way is {way!r}; measured were {', '.join(self.results)}")
        return {n: list(result.values) for n, result in self.results[way].items()}

    def rows(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Return a row for each way and worker count.

        A row holds the median seconds per call, the calls per second, the speed-up over one worker, and the efficiency.
        The speed-up is the median of the rounds' ratios, and ``speedup_ci`` is its interval. If one worker was not
        measured, the speed-up and its interval are None. With fewer than 6 rounds, the interval is None.
        """
        found = []
        for way, results in self.results.items():
            for n, result in results.items():
                row: dict[str, Any] = {"way": way, "workers": n, "seconds": result.median}
                row |= {"throughput": 1 / result.median, "speedup": None, "speedup_ci": None, "efficiency": None}
                if 1 in results:
                    logs = [math.log(one / all_) for one, all_ in zip(results[1].values, result.values, strict=True)]
                    low, high = median_interval(logs, confidence)
                    gain = math.exp(median(logs))
                    ends = [math.exp(low), math.exp(high)]
                    row |= {"speedup": gain, "efficiency": gain / n}
                    row["speedup_ci"] = ends if math.isfinite(high) else None
                found.append(row)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the results, rows and notes as plain data for ``json.dumps``."""
        ways = {way: {str(n): one.to_dict() for n, one in by_n.items()} for way, by_n in self.results.items()}
        return json_safe({"ways": ways, "rows": self.rows(), "notes": self.notes}, "scaling")  # type: ignore[no-any-return]

    def table(self, confidence: float = 0.95) -> Table:
        """Return the calls per second, speed-ups and efficiencies as a table of text."""
        rows = []
        for row in self.rows(confidence):
            cells = {"way": row["way"], "workers": str(row["workers"]), "calls/s": f"{row['throughput']:.4g}"}
            gain, ends = row["speedup"], row["speedup_ci"]
            told = "–" if gain is None else with_ends(gain, ends if ends and is_interval(*ends) else None, "–")
            rows.append({**cells, "speed-up": told, "efficiency": "–" if gain is None else f"{row['efficiency']:.0%}"})
        return Table(rows, f"calls per second by number of workers; speed-up over one, {100 * confidence:.3g} % CI")

    def __str__(self) -> str:
        """Return the table of throughputs and speed-ups, followed by the notes."""
        return "\n".join([str(self.table()), *self.notes])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        notes = Table([{"to know": note} for note in self.notes]).html() if self.notes else ""
        return {"text/plain": str(self), "text/html": self.table().html() + notes}


def default_workers(cores: int) -> list[int]:
    """Return worker counts up to twice the number of cores, but at least up to 4.

    They are 1, 2, 3, 4, 6, 8, 12, … and the number of cores.
    """
    steps, size = {1, 2, 3, 4, cores, 2 * cores}, 4
    while size < 2 * cores:
        steps |= {size, size + size // 2}
        size *= 2
    return sorted(n for n in steps if n <= max(4, 2 * cores))


def measure_scaling(
    ways: Mapping[str, Way] | Way,
    workers: Sequence[int] | None = None,
    rounds: int = 8,
    *,
    window: float = 0.05,
    pin: Sequence[str] = (),
    seed: int | None = None,
) -> Scaling:
    """Measure the throughput of 1, 2, … workers in shuffled rounds. Each worker count is measured once per round.

    Parameters
    ----------
    ways
        One way of scaling (`Way`), or several by name. `scaling.workers` has `threads`, `processes`, `intra_op`,
        `inter_op` and `blas`.
    workers
        The worker counts to measure; by default up to twice the cores that this process may use.
    rounds
        The number of shuffled rounds, at least 6, because fewer give no interval.
    window
        Seconds of each measurement. All measurements together take this time multiplied by the numbers of rounds,
        worker counts and ways, plus the time to start the workers.
    pin
        Names of ways to measure a second time, with n workers pinned to the first n cores.
    seed
        The seed of the random orders. With None, the orders are different each time.

    Returns
    -------
    Scaling
        The name of a pinned way ends with ``", pinned"``. Notes say what cannot be measured on this machine: because it
        has one core, because a control group grants fewer cores, or because the system cannot pin.

    Raises
    ------
    ValueError
        If an argument is not valid. Exceptions of the measured function are passed on.
    RuntimeError
        If a worker process dies.
    """
    ways = dict(ways) if isinstance(ways, Mapping) else {"workers": ways}
    mine = own_cores()
    workers = sorted({*(default_workers(len(mine)) if workers is None else workers)})
    check_runs("rounds", rounds, 6)
    for n in workers:
        check_runs("a number of workers", n, 1)
    if not workers or not ways or not 0 < window < math.inf:
        raise ValueError("there is nothing to measure: give a way, a number of workers, and a window in s above 0")
    if unknown := [name for name in pin if name not in ways]:
        raise ValueError(f"pin names {unknown[0]!r}; the ways are {', '.join(ways)}")
    granted = _granted(len(mine))
    notes = _limits(len(mine), granted, max(workers))
    if pin and not can_pin():
        notes.append(f"{platform.system()} does not let a program choose its cores, so nothing was pinned")
        pin = ()
    arms = [(name, n, False) for name in ways for n in workers] + [(name, n, True) for name in pin for n in workers]
    values: dict[tuple[str, int, bool], list[float]] = {arm: [] for arm in arms}
    orders = random.Random(seed)
    with ExitStack() as stack:
        measures = {name: stack.enter_context(way(workers)) for name, way in ways.items()}
        for _ in range(rounds):
            for name, n, kept in orders.sample(arms, len(arms)):
                seconds = _seconds_per_call(measures[name], n, window, mine[:n] if kept else None)
                values[name, n, kept].append(seconds)
    shared = {"order": "shuffled rounds", "seed": seed, "window": window, "usable_cores": len(mine), "granted": granted}
    shared |= machine_notes()
    results: dict[str, dict[int, BenchmarkResult]] = {}
    for (name, n, kept), found in values.items():
        about = {**shared, "way": name, "workers": n, "pinned_to": mine[:n] if kept else None}
        result = BenchmarkResult("seconds per call", found, about, unit="s")
        results.setdefault(f"{name}, pinned" if kept else name, {})[n] = result
    return Scaling(results, notes)


def quiet(
    most: float = 0.1, used: Callable[[], float] = time.process_time, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Wait until no thread of this process spins (waits in a busy loop), for at most `most` seconds.

    A runtime's threads spin for a while after each call.
    """
    end = clock() + most
    while clock() < end:
        before = used()
        time.sleep(2e-3)
        if used() - before < 1e-3:
            return


def _seconds_per_call(measure: Measure, n: int, window: float, cores: list[int] | None) -> float:
    quiet()  # threads of the previous measurement must not slow this one down
    while not (done := measure(n, window, cores)):  # on a busy machine, all workers may begin after the window's end
        window *= 2
    return window / done


def _granted(cores: int) -> float | None:
    """Return the number of cores that the control group grants, or None if this number is unknown."""
    try:
        from tinybench.machine import granted_cores
    except ImportError:  # module 15 is not built yet
        return None
    allowed = tightest_quota(Path("/"))
    return None if allowed is None else granted_cores(allowed, cores)


def _limits(cores: int, granted: float | None, most: int) -> list[str]:
    """Return notes on what cannot be measured with this number of cores."""
    if granted is not None and granted < cores:
        return [
            f"the control group grants {granted:g} of {number_of(cores, 'core')}: beyond "
            "that, more workers only wait for it"
        ]
    if cores == 1 < most:
        return [
            "one core: this shows what more workers cost, not what more cores would bring; waiting for a disk or a "
            "network can overlap, computing cannot"
        ]
    return []
