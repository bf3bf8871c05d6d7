"""Scaling with more workers (threads, processes, threads inside a runtime), measured in common rounds."""

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

from tinybench.latency import check_runs
from tinybench.result import BenchmarkResult, is_interval, json_safe
from tinybench.support.basics.numbers import number_of, with_ends
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.comparisons.two_samples import median_interval
from tinybench.support.conditions.control_groups import tightest_quota
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.tools.scaling.pinned_worker import can_pin, own_cores
from tinybench.tools.scaling.workers import Measure, Way


@dataclass(frozen=True)
class Scaling:
    """The seconds per call by number of workers and round, for each way of running the workers.

    Attributes
    ----------
    results
        By way and number of workers, the seconds per call: the window divided by the calls that all workers finished in
        it.
    notes
        What to know before reading the results.
    """

    results: dict[str, dict[int, BenchmarkResult]]
    notes: list[str] = field(default_factory=list)

    __repr__ = short_repr

    def seconds(self, way: str | None = None) -> dict[int, list[float]]:
        """Return the seconds of all rounds by number of workers. `way` may be left out if there is only one."""
        if way is None and len(self.results) == 1:
            [way] = self.results
        if way not in self.results:
            raise ValueError(f"the way is {way!r}; measured were {', '.join(self.results)}")
        return {n: list(result.values) for n, result in self.results[way].items()}

    def rows(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Return a row for each way and n: median seconds per call, calls per second, and the speed-up over one worker.

        The speed-up is the median of the rounds' ratios, and ``speedup_ci`` is its interval. Without n = 1 both are
        None. With fewer than 6 rounds the interval is None.
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
        """Return everything as plain data for ``json.dumps``."""
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
        """Return the table and the notes."""
        return "\n".join([str(self.table()), *self.notes])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        notes = Table([{"to know": note} for note in self.notes]).html() if self.notes else ""
        return {"text/plain": str(self), "text/html": self.table().html() + notes}


def default_workers(cores: int) -> list[int]:
    """Return numbers of workers up to twice the cores, but at least to 4: 1, 2, 3, 4, 6, 8, 12, … and the cores."""
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
    """Measure the throughput of 1, 2, … workers in shuffled rounds. Every number has its turn in each round.

    Parameters
    ----------
    ways
        One or several by name: `threads`, `processes`, `intra_op`, `inter_op`, `blas` of `scaling.workers`.
    workers
        The numbers of workers to measure; by default up to twice the cores that this process may use.
    rounds
        The number of shuffled rounds, at least 6, because fewer give no interval.
    window
        Seconds of each measurement. In all, the measurements take rounds × numbers × ways times as long, and the start
        takes some more.
    pin
        Names of ways to measure a second time, with n workers pinned to the first n cores.
    seed
        The seed of the random orders; None for new ones each time.

    Returns
    -------
    Scaling
        A pinned way has ``", pinned"`` after its name. Notes say what cannot be measured here: with one core, with
        fewer cores granted by a control group, or on a system that cannot pin.

    Raises
    ------
    ValueError
        If a number makes no sense. Exceptions of the measured function are passed on.
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
    """Wait until no thread of this process spins, at most `most` s. A runtime's threads spin after each call."""
    end = clock() + most
    while clock() < end:
        before = used()
        time.sleep(2e-3)
        if used() - before < 1e-3:
            return


def _seconds_per_call(measure: Measure, n: int, window: float, cores: list[int] | None) -> float:
    quiet()  # threads of the previous measurement must not slow this one down
    while not (done := measure(n, window, cores)):  # on a busy machine all workers may have begun after the window
        window *= 2
    return window / done


def _granted(cores: int) -> float | None:
    """Return how many cores the control group grants, or None if this is unknown."""
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
