"""The sampled call stacks of a run, shown as a table or a flame graph, or written as text for other tools."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

from tinybench.support.basics.numbers import number_of, plural
from tinybench.support.basics.table import Table
from tinybench.support.profiling.flames import flame_figure, shared_depth
from tinybench.support.profiling.sampling import Ticks, ticking

__all__ = ["Profile", "Sampled", "Ticks", "collapsed", "ticking"]

ROWS = 20


class Sampled(Protocol):
    """A sample: the call `stack` at the time `start`. The sample stands for `seconds` of running time."""

    @property
    def start(self) -> float:
        """The time in seconds when the sample was taken."""

    @property
    def stack(self) -> tuple[str, ...]:
        """The functions of the stack, the outermost first."""

    @property
    def seconds(self) -> float:
        """The time in seconds for which the sample stands."""


class Profile:
    """The profile of a run, shown as a table of functions and their times. A notebook also shows a flame graph.

    Parameters
    ----------
    samples
        The samples, each with `start`, `stack` (the outermost function first) and `seconds`.
    how
        A description of the method by which the samples were taken, and of their bias.
    """

    def __init__(self, samples: Iterable[Sampled], how: str = "") -> None:
        self.samples, self.how = list(samples), how

    @property
    def seconds(self) -> float:
        """The total time in seconds that the samples stand for."""
        return sum(sample.seconds for sample in self.samples)

    @property
    def trunk(self) -> int:
        """The number of outermost functions to leave out: all samples share these functions and the next one."""
        ordered = sorted({sample.stack for sample in self.samples})
        return max(0, shared_depth(ordered[0], ordered[-1]) - 1) if ordered else 0

    def by_stack(self) -> dict[tuple[str, ...], float]:
        """Return the seconds of each stack, without the outermost functions that `trunk` counts."""
        trunk, times = self.trunk, defaultdict[tuple[str, ...], float](float)
        for sample in self.samples:
            times[sample.stack[trunk:]] += sample.seconds
        return times

    @property
    def shares(self) -> Table:
        """A table of each function's own share of the time with its sampling error, and its share including callees."""
        if not self.samples:
            return Table([], self.how, empty="No samples: nothing ran long enough.")
        from tinybench.sampler import Sample, self_shares, total_shares  # late, as notebook 15 imports this file first

        kept = [Sample(0.0, stack, seconds) for stack, seconds in self.by_stack().items()]
        own, whole = defaultdict(float, self_shares(kept)), total_shares(kept)
        ranked = sorted(whole, key=lambda name: (-own[name], -whole[name]))
        told = [name for name in ranked if whole[name] >= 0.005][:ROWS]
        caption = f"Where {self.seconds:.3g} s went: {self.how}"
        if hidden := len(ranked) - len(told):
            caption += (
                f"; {number_of(hidden, 'more function')} {plural(hidden, 'takes', 'take')} "
                f"{sum(own[n] for n in ranked if n not in told):.1%}"
            )
        return Table([self._row(name, own[name], whole[name]) for name in told], caption)

    def _row(self, name: str, own: float, whole: float) -> dict[str, str]:
        looks = len(self.samples) + 4  # Agresti and Coull (1998); an upper bound, as samples are spread evenly
        middle = (own * len(self.samples) + 2) / looks
        return {
            "function": name,
            "itself": f"{100 * own:.1f} %",
            "± points": f"{196 * math.sqrt(middle * (1 - middle) / looks):.1f}",
            "with what it calls": f"{100 * whole:.1f} %",
        }

    def __str__(self) -> str:
        return str(self.shares)

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shares = self.shares
        return {"text/plain": str(shares), "text/html": flame_figure(self), "text/markdown": shares.markdown()}


def collapsed(samples: Iterable[Sampled]) -> str:
    """Return a line such as ``a;b;c 1200`` (in µs) for each stack. This is the format of flamegraph.pl and inferno."""
    times = defaultdict[str, float](float)
    for sample in samples:
        line = ";".join(name.replace(";", ",").replace("\n", " ") for name in sample.stack)
        times[line] += sample.seconds
    return "".join(f"{line} {seconds * 1e6:.0f}\n" for line, seconds in times.items())
