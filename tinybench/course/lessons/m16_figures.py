"""Figures for module 16: dashboard panels, burn rates, histogram buckets and drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.accuracy import wilson_interval
from tinybench.course.accessible_figures import OKABE_ITO
from tinybench.course.lessons.m16 import PHASES, Sent
from tinybench.support.basics.numbers import number_of

BLUE, RED, GREEN, PINK, ORANGE = OKABE_ITO[:5]
MARKERS = "osD^v"


def _phases(axes: Any, sent: Sent, named: bool = False) -> None:
    """Shade the periods in which digits are shifted by 0, 1 and 2 pixels. If `named`, write the names above."""
    starts = [float(sent.start[sent.phase == k][0]) for k in range(3)]
    ends = [*starts[1:], float(sent.start[-1])]
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axes.axvspan(start, end, color="black", alpha=0.07 * k, linewidth=0)
        if named:
            place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
            axes.annotate(PHASES[k], ((start + end) / 2, 1), xytext=(0, 4), **place, ha="center", fontsize=9)
    axes.set_xlim(starts[0], ends[-1])


def figure_of_panels(sent: Sent, bound: float) -> dict[str, Any]:
    """Return arguments for `show_figure`: latency, failures and accuracy over time, in windows of half a second."""
    import matplotlib.pyplot as plt

    edges = np.arange(0, sent.start[-1] + 0.5, 0.5)
    window = np.clip(np.digitize(sent.start, edges), 1, None)
    groups = [window == k for k in np.unique(window) if np.sum(window == k) >= 5]
    middle = np.array([sent.start[group].mean() for group in groups])
    latency = np.where(sent.answered, sent.latency, np.inf) * 1e3
    figure, panels = plt.subplots(3, 1, figsize=(6.4, 5.6), sharex=True, layout="constrained")
    for q, color, marker in ((50, BLUE, "o"), (99, RED, "s")):
        values = [np.quantile(latency[group], q / 100, method="inverted_cdf") for group in groups]
        panels[0].plot(middle, values, color=color, marker=marker, label=f"p{q}")
    panels[0].axhline(bound * 1e3, color="black", linestyle="--", label="objective")
    panels[0].set(ylabel="latency (ms)", yscale="log")
    failed = [100 * float(np.mean(~sent.answered[group])) for group in groups]
    panels[1].plot(middle, failed, color=PINK, marker="D", label="failed requests")
    panels[1].set(ylabel="failed (%)", ylim=(-0.5, 10))
    right = [100 * float(np.mean(sent.right[group])) for group in groups]
    panels[2].plot(middle, right, color=GREEN, marker="^", label="right answers, known when labels come")
    panels[2].set(ylabel="right (%)", ylim=(0, 105), xlabel="time (s)")
    for number, axes in enumerate(panels):
        _phases(axes, sent, named=number == 0)
        axes.legend(loc="lower left" if number == 2 else "upper left", fontsize=9, ncols=3)
    panels[0].set_ylim(0.6 * panels[0].dataLim.ymin, 12 * max(bound * 1e3, float(np.max(latency[sent.answered]))))
    within = [float(np.mean(latency[sent.phase == k] <= bound * 1e3)) for k in range(3)]
    share = [float(np.mean(sent.right[sent.phase == k])) for k in range(3)]
    green = min(within) >= 0.99 and bool(sent.answered.all())
    told = (
        f"Answered within {bound * 1e3:g} ms: {within[0]:.1%}, {within[1]:.1%} and {within[2]:.1%} of the requests. "
        f"Right: {share[0]:.0%}, {share[1]:.0%} and {share[2]:.0%}."
    )
    seen = "All latency panels are green" if green else "In this run, even the latency objective was missed"
    return {
        "figure": figure,
        "alt": f"Three panels over time: latency, failed requests, right answers, for digits as in training, shifted "
        f"by one pixel, and by two. {told}",
        "caption": f"{told} {seen}. Most dashboards lack the last panel, because the labels are not known yet.",
        "data": {
            "digits": PHASES,
            "within the bound": within,
            "p99 (ms)": [float(np.quantile(latency[sent.phase == k], 0.99, method="inverted_cdf")) for k in range(3)],
            "right": share,
        },
    }


def figure_of_burning(failed: Sequence[float], total: Sequence[float], rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for `show_figure`: failed requests in simulated incidents, and when each alert rule fires.

    A rule is a function of the readings so far of two counters, `failed` and `total`. It returns whether the alert
    fires.
    """
    import matplotlib.pyplot as plt

    minutes = np.arange(1, len(failed))
    share = 100 * np.diff(failed) / np.diff(total)
    fires: dict[str, np.ndarray] = {
        name: np.array([bool(rule(failed[:t], total[:t])) for t in range(2, len(failed) + 1)])
        for name, rule in rules.items()
    }
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(6.4, 4.2), sharex=True, height_ratios=(2, 1.3), layout="constrained"
    )
    above.plot(minutes, share, color="black", linewidth=1)
    above.set(ylabel="failed requests (%)")
    spans: dict[str, list[tuple[int, int]]] = {}
    for row, ((name, on), color) in enumerate(zip(fires.items(), OKABE_ITO, strict=False)):
        changes = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(int), [0]])))
        spans[name] = [(int(a) + 1, int(b - a)) for a, b in zip(changes[::2], changes[1::2], strict=True)]
        below.broken_barh(spans[name], (row - 0.3, 0.6), color=color)
    below.set(yticks=range(len(fires)), yticklabels=list(fires), xlabel="time (minutes)", ylim=(len(fires) - 0.5, -0.5))
    told = "; ".join(
        f"{name}: " + (" and ".join(f"minutes {start} to {start + length - 1}" for start, length in found) or "never")
        for name, found in spans.items()
    )
    return {
        "figure": figure,
        "alt": f"Above, the share of failed requests over six hours: one bad minute, later 40 minutes at 3 %. Below, "
        f"when three rules fire. {told}.",
        "caption": f"Simulated. The rules fire: {told}.",
        "data": {
            "rule": list(fires),
            "minutes of alert": [
                "; ".join(f"{s} to {s + n - 1}" for s, n in found) or "never" for found in spans.values()
            ],
            "number of minutes": [int(on.sum()) for on in fires.values()],
        },
    }


def figure_of_buckets(
    truth: np.ndarray, bounds: Sequence[float], counts: Sequence[float], quantile: Callable[..., float],
    ends: Callable[..., tuple[float, float]],
) -> dict[str, Any]:  # fmt: skip
    """Return arguments for `show_figure`: request times that the server recorded, and quantiles from its histogram."""
    import matplotlib.pyplot as plt

    ordered = np.sort(truth) * 1e3
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    axes.plot(ordered, np.arange(1, len(ordered) + 1) / len(ordered), color=BLUE, label="every request (trace)")
    finite = np.array([bound for bound in bounds if np.isfinite(bound)]) * 1e3
    shares = np.array(counts[: len(finite)]) / counts[-1]
    axes.plot([0, *finite], [0, *shares], color=RED, marker="s", markersize=4, linestyle="--", label="the histogram")
    last = int(np.argmax(shares >= 1)) if (shares >= 1).any() else len(finite) - 1
    axes.set(xscale="log", xlabel="time of a request in the server (ms)", ylabel="share at or below", ylim=(0, 1.03))
    axes.set_xlim(0.8 * max(ordered[0], finite[0]), 1.3 * finite[last])
    axes.set_xticks(shown := [bound for bound in finite if axes.get_xlim()[0] < bound < axes.get_xlim()[1]])
    axes.set_xticklabels([f"{bound:g}" for bound in shown])
    axes.minorticks_off()
    axes.legend(loc="lower right")
    rows = []
    for q in (0.5, 0.9, 0.99):
        told, (low, high) = quantile(q, bounds, counts) * 1e3, ends(q, bounds, counts)
        true = float(np.quantile(ordered, q, method="inverted_cdf"))
        rows.append((f"p{100 * q:g}", true, told, low * 1e3, high * 1e3))
        axes.plot([true, told], [q, q], color="black", marker="x", linestyle=":", linewidth=1.5)
    words = "; ".join(f"{name} {told:.3g} ms for a true {true:.3g} ms" for name, true, told, *_ in rows)
    worst = max(rows, key=lambda row: abs(np.log(row[2] / row[1])))
    return {
        "figure": figure,
        "alt": f"Share of requests at or below a time, on a logarithmic axis: a curve of all requests, and straight "
        f"lines between the buckets' ends (on this axis they bend). The histogram gives {words}.",
        "caption": f"The histogram gives {words}. The largest error is {worst[2] / worst[1] - 1:+.0%}, at {worst[0]}; "
        f"its bucket only shows that the true value lies between {worst[3]:g} and {worst[4]:g} ms.",
        "data": dict(zip(("", "true (ms)", "told (ms)", "from (ms)", "to (ms)"), zip(*rows, strict=True), strict=True)),
    }


def figure_of_equal(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for `show_figure`: each drift rule's false-alarm rate, by window size, when nothing changes."""
    import matplotlib.pyplot as plt

    sizes, trials = np.array(found["n"]), found["trials"]
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for number, (name, rates) in enumerate(found["rates"].items()):
        share = np.array(rates)
        reach = 1.96 * np.sqrt(np.maximum(share * (1 - share), 1e-4) / trials)
        style: dict[str, Any] = {
            "color": OKABE_ITO[number],
            "marker": MARKERS[number],
            "linestyle": ("-", "--", ":", "-.")[number],
        }
        axes.errorbar(sizes * 1.03**number, 100 * share, 100 * reach, **style, capsize=2, label=name)
    axes.axhline(5, color="black", linewidth=1)
    axes.annotate("5 %, as stated", (sizes[-1], 5), xytext=(0, 5), textcoords="offset points", ha="right", fontsize=9)
    axes.set(
        xscale="log", xlabel="values in the window (nothing has changed)", ylabel="false alarms (%)", ylim=(-2, 102)
    )
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.legend()
    first = ", ".join(f"{name}: {rates[0]:.0%}" for name, rates in found["rates"].items())
    return {
        "figure": figure,
        "alt": f"False alarms by the size of the window. With {number_of(sizes[0], 'value')}: {first}.",
        "caption": f"Simulated, {trials} times each: nothing has changed, ten bins, a reference of 10,000 values. With "
        f"{number_of(sizes[0], 'value')} in the window, the false-alarm rates are {first}. (Bars: 95 % intervals.)",
        "data": {"values": sizes.tolist(), **found["rates"]},
    }


def figure_of_alarm(
    sent: Sent, evidence: Sequence[float], first: Mapping[str, Sequence[int]], level: float
) -> dict[str, Any]:
    """Return arguments for `show_figure`: a drift alarm's e-value by request, and the false alarms of three methods."""
    import matplotlib.pyplot as plt

    capital = np.maximum(np.asarray(evidence), 1e-3)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), width_ratios=(1.5, 1), layout="constrained")
    requests, change = np.arange(1, len(capital) + 1), int(np.argmax(sent.phase > 0))
    left.plot(requests, np.minimum(capital, 1e6), color=BLUE, linewidth=2)
    left.axhline(1 / level, color="black", linestyle="--")
    left.axvline(change, color=RED, linestyle=":")
    left.annotate("1 pixel", (change, 3e-3), xytext=(4, 0), textcoords="offset points", color=RED, fontsize=9)
    left.annotate("alarm", (1, 1 / level), xytext=(2, 4), textcoords="offset points", fontsize=9)
    left.set(yscale="log", ylim=(1e-3, 2e6), xlabel="request", ylabel="capital (cut at 1e6)", title="real requests")
    names, length = list(first), max(max(rang) for rang in first.values())
    for name, color, style in zip(names, (ORANGE, RED, BLUE), (":", "--", "-"), strict=True):
        alarms = np.array(first[name])
        steps = np.arange(0, length + 1, 10)
        share = [100 * float(np.mean((alarms > 0) & (alarms <= n))) for n in steps]
        right.plot(steps, share, color=color, linestyle=style, linewidth=2, label=name)
    right.axhline(100 * level, color="black", linewidth=1)
    right.set(xlabel="values so far", ylabel="false alarms (%)", title="simulated, equal", ylim=(0, None))
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    rang = int(np.argmax(np.asarray(evidence) >= 1 / level)) + 1 if max(evidence) >= 1 / level else 0
    told = (
        f"The alarm fires at request {rang}, {number_of(rang - change, 'request')} after the first shifted digit."
        if rang
        else "The alarm does not fire."
    )
    rates = {name: float(np.mean(np.array(first[name]) > 0)) for name in names}
    streams = len(first[names[0]])
    ends = {name: wilson_interval(round(rate * streams), streams) for name, rate in rates.items()}
    false = "; ".join(f"{name}: {rate:.1%} ({ends[name][0]:.1%}–{ends[name][1]:.1%})" for name, rate in rates.items())
    return {
        "figure": figure,
        "alt": f"Left, the capital over the requests, on a logarithmic axis, with a line at {1 / level:g}. {told} "
        f"Right, the share of false alarms so far. At the end: {false}.",
        "caption": f"{told} No label was needed. Right, {streams} simulated streams in which nothing "
        f"changes: {false}. Repeating a test for one look collects the false alarms of every look.",
        "data": {"way": names, "false alarms": list(rates.values())},
    }
