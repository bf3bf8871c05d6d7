"""Figures for module 15: the stages of a request, a container's CPU limit, profilers, and predicted and real gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.course.accessible_figures import OKABE_ITO
from tinybench.course.lessons.m15 import Compared
from tinybench.course.lessons.m15_machines import throttled
from tinybench.support.basics.numbers import number_of

if TYPE_CHECKING:
    from tinybench.support.profiling.what_if_experiment import Row

HATCHES = ("", "//", "..", "xx", "--")


def figure_of_request(both: Compared) -> dict[str, Any]:
    """Return arguments for `show_figure`: a request's time by stage, before and after the model is replaced."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    rows = {"before": both.before, "after": both.after}
    for place, times in enumerate(rows.values()):
        left = 0.0
        for name, color, hatch in zip(times, OKABE_ITO, HATCHES, strict=False):
            width = times[name] * 1e6
            label = name if place == 0 else None
            axes.barh(place, width, left=left, color=color, hatch=hatch, edgecolor="white", height=0.6, label=label)
            left += width
        axes.text(left, place, f" {left:.0f} µs", va="center")
    axes.set(yticks=[0, 1], yticklabels=list(rows), xlabel="time of a request (µs)", ylim=(1.5, -0.5))
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.15 * max(sum(times.values()) for times in rows.values()) * 1e6)
    figure.legend(loc="outside upper center", ncols=5, columnspacing=1, handlelength=1.2)
    share = both.before["model"] / sum(both.before.values())
    told = f"The model is {both.model:.1f} times as fast, the answer {both.answer:.2f} times."
    return {
        "figure": figure,
        "alt": f"Two bars of five stages each. {told} Before, the model took {share:.0%} of the time of a request.",
        "caption": f"{told} It took {share:.0%} of the time, so no model, however fast, could make the answer more "
        f"than {1 / (1 - share):.2f} times as fast.",
        "data": {
            "stage": list(both.before),
            "before (µs)": [each * 1e6 for each in both.before.values()],
            "after (µs)": [each * 1e6 for each in both.after.values()],
        },
    }


def figure_of_throttling(work: float, quota: float, period: float) -> dict[str, Any]:
    """Return arguments for `show_figure`: a call's simulated time under a CPU quota, by its start in the period."""
    import matplotlib.pyplot as plt

    starts = np.linspace(0, period, 201)[:-1]
    alone = np.array([throttled([start], work, quota, period)[0] - start for start in starts])
    many = np.array(throttled([0.0] * 500, work, quota, period))
    mean = float((many[-1] - many[99]) / 400)  # in the steady state
    figure, axes = plt.subplots(figsize=(6.4, 2.9), layout="constrained")
    axes.plot(starts, alone, color=OKABE_ITO[0], linewidth=2, label="one call, the container was idle")
    axes.axhline(mean, color=OKABE_ITO[1], linestyle="--", label="calls without end, on average")
    axes.axhline(work, color="black", linestyle=":", label="with a core of its own")
    axes.set(xlabel="when in the period the call comes (ms)", ylabel="time of a call (ms)", ylim=(0, 1.15 * mean))
    axes.legend(loc="lower left")
    told = (
        f"A call of {work:g} ms takes {alone.min():.0f} to {alone.max():.0f} ms alone, by when it comes, and "
        f"{mean:.0f} ms where calls follow one another."
    )
    return {
        "figure": figure,
        "alt": f"Simulated: the time of a call against the moment at which it comes. {told}",
        "caption": f"Simulated. {told} The same code, the same input, and nothing else runs: only the limit.",
        "data": {"comes at (ms)": starts[::20].tolist(), "takes (ms)": alone[::20].tolist()},
    }


def figure_of_profilers(shares: Mapping[str, Mapping[str, float]], slower: float, looks: int) -> dict[str, Any]:
    """Return arguments for `show_figure`: each function's fraction of the time, by a clock and by each profiler."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    names, height = list(next(iter(shares.values()))), 0.8 / len(shares)
    for k, ((way, found), color, hatch) in enumerate(
        zip(shares.items(), ("#555555", *OKABE_ITO), HATCHES, strict=False)
    ):
        places = [j + height * (k - (len(shares) - 1) / 2) for j in range(len(names))]
        bars = axes.barh(
            places, [100 * found[name] for name in names], height=0.9 * height, color=color, hatch=hatch,
            edgecolor="white", label=way,
        )  # fmt: skip
        axes.bar_label(bars, fmt="%.0f", padding=3, fontsize=9)
    axes.grid(visible=False, axis="y")
    axes.set(yticks=range(len(names)), yticklabels=[name.replace("_", " ") for name in names], xlabel="share (%)")
    axes.invert_yaxis()
    axes.margins(x=0.1)
    figure.legend(loc="outside upper center", ncols=3, columnspacing=1, handlelength=1.2)
    truth, *others = shares
    far = {way: max(abs(shares[way][name] - shares[truth][name]) for name in names) for way in others}
    told = "; ".join(f"{way} by up to {number_of(f'{100 * each:.0f}', 'point')}" for way, each in far.items())
    rows = "; ".join(
        f"{name.replace('_', ' ')}: " + ", ".join(f"{way} {100 * found[name]:.0f} %" for way, found in shares.items())
        for name in names
    )
    return {
        "figure": figure,
        "alt": f"Shares of three functions in percent. {rows}.",
        "caption": f"Off from the clock: {told}. Chance alone puts a share of {number_of(looks, 'sample')} off by "
        f"up to {98 / max(1, looks) ** 0.5:.0f}. With cProfile the functions take {slower:.1f} times as long.",
        "data": {"function": names} | {way: [found[name] for name in names] for way, found in shares.items()},
    }


def figure_of_gains(
    foreseen: Mapping[tuple[str, float], Row], truth: Mapping[tuple[str, float], tuple[float, float, float]]
) -> dict[str, Any]:
    """Return arguments for `show_figure`: the fraction of a run's time that faster stages save.

    Three values are shown for each faster stage: the saving that its share in a profile promises, the saving that
    `what_if` predicts, and the real saving. `truth` holds each real saving and its interval.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.3), layout="constrained")
    names = [f"{name} {times:g}× as fast" for name, times in foreseen]
    places, rows = np.arange(len(names)), list(foreseen.values())
    told = [not row.why for row in rows]
    promised = [100 * row.promised for row in rows]
    axes.plot(promised, places - 0.2, "x", color=OKABE_ITO[1], markersize=9, label="by its share")
    seen = [(place, row) for place, row in zip(places, rows, strict=True) if not row.why]
    for place, row in zip(places, rows, strict=True):
        if row.why:
            axes.text(0, float(place), " refused", va="center", color=OKABE_ITO[0])
    axes.errorbar(
        [100 * row.gain for _, row in seen], [place for place, _ in seen],
        xerr=[[100 * (row.gain - row.low) for _, row in seen], [100 * (row.high - row.gain) for _, row in seen]],
        fmt="o", color=OKABE_ITO[0], capsize=4, label="what_if",
    )  # fmt: skip
    real, low, high = (100 * np.array([truth[idea][end] for idea in foreseen]) for end in range(3))
    reach = np.nan_to_num([real - low, high - real], posinf=0.0)
    axes.errorbar(real, places + 0.2, xerr=reach, fmt="D", color="black", markersize=6, capsize=4, label="real")
    axes.axvline(0, color="grey", linewidth=1)
    axes.set(yticks=places, yticklabels=names, xlabel="time saved (% of a run)", ylim=(len(names) - 0.4, -0.6))
    figure.legend(loc="outside upper center", ncols=3)
    gains = [100 * row.gain if known else float("nan") for row, known in zip(rows, told, strict=True)]
    words = "; ".join(
        f"{name}: promised {p:.0f} %, " + (f"foreseen {g:.0f} %" if known else "refused") + f", real {t:.0f} %"
        for name, p, g, t, known in zip(names, promised, gains, real, told, strict=True)
    )
    off = [abs(g - t) for g, t in zip(gains, real, strict=True) if g == g]
    missed = [abs(p - t) for p, t in zip(promised, real, strict=True)]
    nearest, promise = (number_of(f"{max(each, default=0):.0f}", "point") for each in (off, missed))
    answered = f"what_if was off by up to {nearest}." if off else "what_if refused each time."
    return {
        "figure": figure,
        "alt": f"Time saved in percent. {words}.",
        "caption": f"{answered} The share in the profile was off by up to {promise}. Where stages overlap, only the "
        "one that all others wait for is worth anything.",
        "data": {"idea": names, "promised (%)": promised, "foreseen (%)": gains, "real (%)": real.tolist()},
    }
