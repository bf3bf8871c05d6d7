"""Figures for the optional notebook 16_rollout. Each ``figure_of_…`` returns arguments for `show_figure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.accuracy import wilson_interval
from tinybench.course.accessible_figures import OKABE_ITO
from tinybench.course.lessons.m16_rollout import CommitTimes, RehearsedLook, Stops, neighbours
from tinybench.support.basics.numbers import number_of

BLUE, RED, GREEN = OKABE_ITO[:3]


def _with_interval(share: float, of: int) -> str:
    low, high = wilson_interval(round(share * of), of)
    return f"{share:.1%} ({low:.1%}–{high:.1%})"


def _axes(rows: int = 1, columns: int = 1, **how: Any) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, layout="constrained", **how)


def figure_of_peeking(equal: Stops, unequal: Stops, planned: int) -> dict[str, Any]:
    """Plot, against the number of users, the proportion of A/B tests that have found a difference.

    There is a panel for equal versions, and a panel for a worse new version.
    """
    figure, panels = _axes(1, 2, figsize=(7.2, 3.4), sharex=True)
    for axes, stops, title in zip(panels, (equal, unequal), ("equal versions", "a worse version"), strict=True):
        for name, label, style, color in (
            ("peeking", "p < 0.05, peeking", "--", RED),
            ("anytime", "e ≥ 20, any time", "-", BLUE),
        ):
            axes.plot(stops.users, 100 * stops.share(name), style, color=color, linewidth=2.2, label=label)
        axes.plot(
            planned, 100 * at_the_plan(stops, planned), "D", color="black", markersize=8, label="one look, as planned"
        )
        axes.axhline(5, color="black", linestyle=":", linewidth=1)
        axes.set(title=title, xlabel="users of each version")
    panels[0].set(ylabel="found a difference (%)", ylim=(0, None))
    panels[0].legend(fontsize=9)
    panels[1].set(ylim=(0, 102))
    ends = {name: [float(stops.share(name)[-1]) for stops in (equal, unequal)] for name in ("peeking", "anytime")}
    ends["one look"] = [at_the_plan(stops, planned) for stops in (equal, unequal)]
    (peeking, _), (anytime, anytime_found), (one, one_found) = (
        [_with_interval(share, len(equal.peeking)) for share in shares] for shares in ends.values()
    )
    said = (
        f"Equal versions: a difference is found by {peeking} of those who peek, by {anytime} of the anytime-valid "
        f"tests, and by {one} with one look. A worse version is found by {one_found} with one look at "
        f"{number_of(f'{planned:,}', 'user')}, and by {anytime_found} at any time up to {unequal.users[-1]:,}."
    )
    return {
        "figure": figure,
        "alt": f"Share of simulated A/B tests that found a difference, against users, in two panels. {said}",
        "caption": (
            f"{number_of(len(equal.peeking), 'simulated test')} each, with a look after every "
            f"{number_of(equal.users[0], 'user')} (with 95 % intervals). {said}"
        ),
        "data": {
            "users of each": equal.users.tolist(),
            "equal, peeking (%)": (100 * equal.share("peeking")).tolist(),
            "equal, any time (%)": (100 * equal.share("anytime")).tolist(),
            "worse, any time (%)": (100 * unequal.share("anytime")).tolist(),
        },
    }


def at_the_plan(stops: Stops, planned: int) -> float:
    """Return the proportion of tests with p < 0.05 at the look nearest to the planned number of users."""
    return float(stops.peeking[:, np.abs(stops.users - planned).argmin()].mean())


def told_of_stops(unequal: Stops, planned: int, change: float) -> str:
    """Describe when the anytime-valid tests stopped, and how large they estimated the change to be."""
    when = unequal.when("anytime")
    found = unequal.anytime.any(axis=1)
    users, estimates = unequal.users[when], unequal.estimates[found, when]
    early = estimates[users <= np.median(users)]
    return (
        f"anytime-valid: {found.mean():.0%} stopped, after "
        f"{number_of(f'{users.mean():,.0f}', 'user')} of each on average (planned: "
        f"{planned:,})\n"
        f"the true change is {100 * change:.1f} points; when they stop, these tests estimate "
        f"{100 * estimates.mean():.1f} on average, and the earlier half of them {100 * early.mean():.1f}"
    )


def figure_of_units(numbers: Sequence[int], found: Mapping[str, Sequence[float]], trials: int) -> dict[str, Any]:
    """Plot false-alarm rates of `trials` tests of equal versions, counted per request and per user.

    The horizontal axis shows the number of requests per user.
    """
    figure, axes = _axes(figsize=(6.2, 3.3))
    for (name, shares), style, color in zip(found.items(), ("s--", "o-"), (RED, BLUE), strict=True):
        axes.plot(
            numbers, 100 * np.array(shares), style, color=color, linewidth=2, markersize=7, label=f"counted {name}"
        )
    axes.axhline(5, color="black", linestyle=":", label="the level, 5 %")
    axes.set(xlabel="requests of each user", ylabel="false alarms (%)", ylim=(0, None), xticks=list(numbers))
    axes.legend(fontsize=9)
    wrong, right = (_with_interval(found[name][-1], trials) for name in ("per request", "per user"))
    said = (
        f"With {number_of(numbers[-1], 'request')} a user, the false-alarm rate is {wrong} if requests are counted, "
        f"and {right} if users are."
    )
    return {
        "figure": figure,
        "alt": f"False-alarm rates against the number of requests of each user. {said}",
        "caption": f"{number_of(trials, 'simulated test')} of equal versions each, at a level of 5 %. {said}",
        "data": {
            "requests of a user": list(numbers),
            **{f"{k} (%)": [100 * v for v in row] for k, row in found.items()},
        },
    }


def figure_of_looks(
    looks: Sequence[RehearsedLook], stop_at: float, said: str, latencies: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Plot a rollout look by look: the new version's fraction, the evidence of harm, and the latencies."""
    figure, panels = _axes(3, figsize=(6.8, 5.3), sharex=True, height_ratios=[1, 1.8, 1])
    at = [look.at for look in looks]
    panels[0].step(at, [100 * look.share for look in looks], where="pre", color="black", linewidth=2)
    panels[0].set(ylabel="new (%)", yticks=[5, 20, 50, 100], ylim=(0, 106))
    names = list(dict.fromkeys(name for look in looks for name in look.evidence))
    for name, style, color in zip(names, ("o-", "s--", "^:", "v-.", "d-", "x--"), OKABE_ITO, strict=False):
        x, e = np.array([(look.at, look.evidence[name]) for look in looks if name in look.evidence]).T
        panels[1].plot(x, np.clip(e, 1e-3, 1e6), style, color=color, markersize=4, label=name)
    if dark := [look.at for look in looks if not look.fresh]:
        panels[1].axvspan(dark[0], dark[-1], color="grey", alpha=0.3, label="blind")
    panels[1].axhline(stop_at, color="black", linestyle=":", label=f"roll back at {stop_at:g}")
    panels[1].set(ylabel="evidence of harm (e)", yscale="log")
    for (name, values), style, color in zip(latencies.items(), ("o-", "s--"), (BLUE, RED), strict=True):
        panels[2].plot(at, values, style, color=color, markersize=4, label=name)
    most = max((v for values in latencies.values() for v in values if np.isfinite(v)), default=1)
    panels[2].set(ylabel="median (ms)", ylim=(0, 1.2 * most), xlabel="seconds")
    panels[2].legend(fontsize=9, loc="lower left", ncols=2)
    figure.legend(*panels[1].get_legend_handles_labels(), fontsize=9, loc="outside lower center", ncols=4)
    return {
        "figure": figure,
        "alt": "Above, the share of users with the new version, in steps; below, the evidence by metric on a "
        f"logarithmic axis, and the latency of either version. {said}",
        "caption": said,
        "data": {
            "seconds": at,
            "new version (%)": [100 * look.share for look in looks],
            **{f"e of {name}": [look.evidence.get(name, float("nan")) for look in looks] for name in names},
            **{f"{name} (ms)": list(values) for name, values in latencies.items()},
        },
    }


def figure_of_report(report: Any) -> dict[str, Any]:
    """Plot the `Report` of a real rollout, and describe the rollout's result in the caption."""
    looks = [RehearsedLook(look.at, look.share, look.evidence, look.fresh) for look in report.looks]
    both = np.array([look.latencies for look in report.looks]).T * 1e3
    last, final = report.looks[-1], report.looks[-1].latencies
    said = f"Two real servers, read by {'Prometheus' if report.watched_by == 'Prometheus' else 'our own reader'}: "
    said += f"{report.sentence}."
    if np.all(np.isfinite(final)) and "slow" in last.evidence:
        old, new = (1e3 * seconds for seconds in final)
        said += f" At the last look the median latency was {old:.1f} ms (old) and {new:.1f} ms (new), and e of slow "
        said += f"{last.evidence['slow']:.2g}."
    return figure_of_looks(looks, report.stop_at, said, dict(zip(("old version", "new version"), both, strict=True)))


def figure_of_history(history: CommitTimes, steps: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Plot a commit history twice: in milliseconds, and as ratios to the baseline.

    Each plot marks the change points that were found in the values that it shows.
    """
    figure, panels = _axes(2, 1, figsize=(6.8, 4.6), sharex=True)
    commits, said = np.arange(len(history.ratio)), []
    series = {"milliseconds": (history.milliseconds, "time (ms)"), "ratio": (history.ratio, "ratio to the baseline")}
    for axes, (name, (values, label)) in zip(panels, series.items(), strict=True):
        wolf = neighbours(values)
        axes.plot(commits, values, ".", color=BLUE, markersize=5)
        axes.plot(wolf, values[wolf], "x", color=RED, markersize=8, label="2 % off its neighbour")
        for place in steps[name]:
            axes.axvline(
                place - 0.5, color="black", linewidth=1.6, label="change point" if place == steps[name][0] else None
            )
        axes.axvline(history.step - 0.5, color=GREEN, linestyle="--", linewidth=3, alpha=0.6, label="the true step")
        low, high = np.quantile(values, [0.02, 0.98])
        axes.set(ylabel=label, ylim=(low - 0.4 * (high - low), high + 0.9 * (high - low)))
        found = ", ".join(map(str, steps[name])) or "none"
        said.append(f"in {name}: {number_of(len(wolf), 'alarm')} by neighbours, change points at {found}")
    panels[1].set_xlabel("commit")
    panels[1].legend(fontsize=9, ncols=3, loc="upper left")
    told = f"The one true step is at commit {history.step}. {said[0].capitalize()}; {said[1]}."
    return {
        "figure": figure,
        "alt": (
            f"A history of {number_of(len(commits), 'commit')}, above in milliseconds, below "
            f"as a ratio to a baseline. {told}"
        ),
        "caption": f"A simulated history: a machine that drifts, four outliers, and one step. {told}",
        "data": {
            "commit": commits.tolist(),
            "time (ms)": history.milliseconds.tolist(),
            "ratio": history.ratio.tolist(),
        },
    }
