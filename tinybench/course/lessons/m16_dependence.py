"""Simulations for module 16: drift alarms on streams that never change, but whose values depend on one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from tinybench.accuracy import wilson_interval
from tinybench.course.accessible_figures import OKABE_ITO
from tinybench.support.basics.numbers import number_of

KEPT = {f"AR(1), φ = {part:g}": part for part in (0, 0.5, 0.8, 0.95)}
VALUES = {f"{each} values a user": each for each in (5, 16, 50)}
KINDS = (*KEPT, *VALUES)
OWN = 0.1  # standard deviation of the values of one user; the users differ by 1
SHORT, LONG, STREAM = 397, 4000, 1000  # values in either reference, and in the stream that follows
LEVEL = 0.05
EVERY, USERS = "every value counts", "one value of each user"
SPACED = {f"spaced, reference of {size}": size for size in (SHORT, LONG)}


class Rings(NamedTuple):
    """The number of streams with an alarm, of references that were refused, and of streams. ``after`` holds delays."""

    rang: int
    refused: int
    of: int
    after: tuple[int, ...]

    @property
    def share(self) -> float:
        """The proportion of streams with an alarm."""
        return self.rang / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the proportion of streams with an alarm."""
        return wilson_interval(self.rang, self.of)

    @property
    def refusals(self) -> str:
        """The proportion of refused references, in words that follow that of streams with an alarm."""
        return f", {self.refused / self.of:.0%} refused" if self.refused else ""

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.share:.0%} ({low:.0%}–{high:.0%}){self.refusals}"


def autoregressive(part: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n values of an AR(1) process with SD 1: each value is `part` times the one before plus noise."""
    from scipy.signal import lfilter

    new = rng.normal(size=n)
    new[1:] *= np.sqrt(1 - part**2)
    return np.asarray(lfilter([1.0], [1.0, -part], new))


def of_users(each: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return n values, of which each user sends `each` in a row, and the number of the user of each value."""
    users = (np.arange(n) + rng.integers(each)) // each
    return rng.normal(size=users[-1] + 1)[users] + OWN * rng.normal(size=n), users


def stream_of(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return n values of a kind of stream, and the number of the user of each. Without users, it is the value's own."""
    if kind in VALUES:
        return of_users(VALUES[kind], n, rng)
    return autoregressive(KEPT[kind], n, rng), np.arange(n)


def first_of_each(users: np.ndarray) -> np.ndarray:
    """Return the index of the first value of each user."""
    return np.unique(users, return_index=True)[1]


def rings(alarm: Callable[..., Any], way: str, kind: str, streams: int, shift: float = 0.0) -> Rings:
    """Return how often a `DriftAlarm` rings, and after how many values.

    Without a shift, nothing changes, and each stream has `STREAM` values. With a shift, all values after the reference
    are larger by `shift`, and a stream goes on until the alarm rings.
    """
    size, refused, after = SPACED.get(way, SHORT), 0, list[int]()
    for seed in range(streams):
        n = size + (20 * size if shift else STREAM)
        values, users = stream_of(kind, n, np.random.default_rng([KINDS.index(kind), seed]))
        values[size:] += shift
        counts = first_of_each(users) if way == USERS else np.arange(n)
        before = values[counts[counts < size]].tolist()
        try:
            watch = alarm(before, LEVEL, seed, None if way in SPACED else 1)
        except ValueError:  # the reference is too short for its dependence
            refused += 1
            continue
        rang = (n for n in counts[counts >= size].tolist() if watch.add(float(values[n])))
        after += [n - size + 1 for n in islice(rang, 1)]
    return Rings(len(after), refused, streams, tuple(after))


def alarms_unchanged(alarm: Callable[..., Any], *ways: str, streams: int = 60) -> dict[str, dict[str, Rings]]:
    """Return the false alarms of a `DriftAlarm` by way of counting values and by kind of stream."""
    of_users = {way: tuple(VALUES) if way == USERS else KINDS for way in ways}
    return {way: {kind: rings(alarm, way, kind, streams) for kind in kinds} for way, kinds in of_users.items()}


def delays(alarm: Callable[..., Any], streams: int = 20) -> dict[str, Rings]:
    """Return the alarms of a `DriftAlarm` with the long reference if all values become larger by 1."""
    return {kind: rings(alarm, list(SPACED)[-1], kind, streams, shift=1.0) for kind in KINDS}


def table_of(found: Mapping[str, Mapping[str, Rings]], late: Mapping[str, Rings] | None = None) -> str:
    """Return a table of the false alarms of each kind of stream, of refused references and, if given, of delays.

    With delays, it has no room for intervals.
    """
    heads = {way: way.replace("reference of ", "").replace("value of each", "for each") for way in found}
    columns = {
        heads[way]: {kind: f"{each.share:.0%}{each.refusals}" if late else str(each) for kind, each in by_kind.items()}
        for way, by_kind in found.items()
    }
    if late:
        columns["shift found after"] = {
            kind: number_of(f"{median(each.after):.0f}", "value") if each.after else "" for kind, each in late.items()
        }
    lines = [f"{'':16}" + "".join(f"{name:>19}" for name in columns)]
    lines += [f"{kind:16}" + "".join(f"{cells.get(kind, ''):>19}" for cells in columns.values()) for kind in KINDS]
    return "\n".join(lines)


def figure_of_dependence(found: Mapping[str, Mapping[str, Rings]]) -> dict[str, Any]:
    """Return arguments for `show_figure`: the share of unchanged streams with an alarm, by kind of stream."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for number, (way, by_kind) in enumerate(found.items()):
        places = [KINDS.index(kind) + 0.15 * (number - 1.5) for kind in by_kind]
        share = np.array([each.share for each in by_kind.values()])
        reach = 100 * np.abs(np.array([each.interval for each in by_kind.values()]).T - share)
        style: dict[str, Any] = {"color": OKABE_ITO[number], "marker": "osD^"[number], "linestyle": "", "capsize": 2}
        axes.errorbar(places, 100 * share, reach, **style, label=way)
    axes.axhline(100 * LEVEL, color="black", linewidth=1)
    axes.set(ylabel="false alarms (%)", ylim=(-3, 103))
    names = [kind.replace(", ", ",\n").replace(" a user", "\na user") for kind in KINDS]
    axes.set_xticks(range(len(KINDS)), names, fontsize=9)
    figure.legend(loc="outside upper center", ncols=2, fontsize=9)
    every = found[EVERY]
    dependent = [each.share for kind, each in every.items() if kind != KINDS[0]]
    cured = [each for way, by_kind in found.items() if way != EVERY for each in by_kind.values()]
    rang, accepted = sum(each.rang for each in cured), sum(each.of - each.refused for each in cured)
    low, high = wilson_interval(rang, accepted)
    told = (
        f"If every value counts, the alarm fires in {min(dependent):.0%} to {max(dependent):.0%} of the dependent "
        f"streams, although nothing changes. With the cures, it fires in {rang / accepted:.1%} ({low:.1%}–"
        f"{high:.1%}) of the streams whose reference was not refused."
    )
    return {
        "figure": figure,
        "alt": f"False alarms by kind of stream, at a level of {LEVEL:.0%}. {told}",
        "caption": f"Simulated, {number_of(every[KINDS[0]].of, 'stream')} of {STREAM} values of each kind. {told} "
        "(Bars: 95 % intervals.)",
        "data": {
            "stream": list(KINDS),
            **{way: [str(by_kind.get(kind, "")) for kind in KINDS] for way, by_kind in found.items()},
        },
    }
