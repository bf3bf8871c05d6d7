"""Figures of queues, batches and memory for module 14. Each ``figure_of_…`` returns arguments for `show_figure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.course.accessible_figures import OKABE_ITO
from tinybench.support.basics.numbers import number_of

MS = 1e3


def _axes(columns: int = 1, rows: int = 1, **how: Any) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, layout="constrained", **how)


def write_out(axes: Any) -> None:
    """Label a logarithmic y axis with plain numbers instead of powers of ten."""
    low, high = axes.get_ylim()
    ticks = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5) if low <= m * 10.0**e <= high]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()


def figure_of_waits(
    theory: Mapping[str, Sequence[float]],
    simulated: Mapping[str, Mapping[float, tuple[float, float]]],
    rhos: np.ndarray,
) -> dict[str, Any]:
    """Plot mean waits against the utilisation: theoretical curves, and simulated means with their intervals."""
    figure, axes = _axes(figsize=(6.4, 3.8))
    for (name, curve), style, color in zip(theory.items(), ("-", "--", ":"), OKABE_ITO, strict=False):
        axes.plot(rhos, curve, style, color=color, linewidth=2.2, label=name)
    for (name, points), marker, color in zip(simulated.items(), ("o", "s"), OKABE_ITO, strict=False):
        means, reach = np.array(list(points.values())).T
        axes.errorbar(
            list(points), means, reach, fmt=marker, color=color, markerfacecolor="white", capsize=3, label=name
        )
    axes.set(xlabel="utilisation ρ", ylabel="mean wait (service times)", yscale="log", xlim=(0, 1))
    axes.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    axes.legend(fontsize=9)
    (exponential, constant), last = simulated.values(), max(next(iter(simulated.values())))
    inside = sum(
        abs(mean - share * rho / (1 - rho)) <= reach
        for points, share in ((exponential, 1.0), (constant, 0.5))
        for rho, (mean, reach) in points.items()
    )
    total = len(exponential) + len(constant)
    return {
        "figure": figure,
        "alt": "Mean wait in service times against utilisation, on a logarithmic axis. Exponential and constant "
        "service rise without bound towards 1, with simulated points at both curves. The wrong formula ends at 1. "
        f"At {last:g} the simulation gives {exponential[last][0]:.3g} and {constant[last][0]:.3g}.",
        "caption": f"Simulated means with 95 % intervals; {inside} of {total} hold the theory's value, and chance "
        f"leaves out one in twenty. At ρ = {last:g} a request waits {exponential[last][0]:.1f} service times; the "
        f"wrong formula says {last:g}.",
        "data": {
            "ρ": list(exponential),
            "exponential": [m for m, _ in exponential.values()],
            "± (95 %)": [reach for _, reach in exponential.values()],
            "constant": [m for m, _ in constant.values()],
            "± (95 %) ": [reach for _, reach in constant.values()],
        },
    }


def explain_gaps(rows: Sequence[Mapping[str, float]], within: float = 0.1) -> str:
    """Describe where real and replayed mean waits differ by more than the fraction `within`, and why.

    The result is a text that names the utilisation of each such point.
    """
    said = []
    for row in rows:
        gap = row["real"] / row["replay"] - 1
        if abs(gap) <= within:
            continue
        real, replay, own = (row[key] * MS for key in ("real", "replay", "own"))
        text = f"At ρ = {row['rho']:g} the real wait was {real:.2f} ms, the replayed one {replay:.2f} ms. "
        slower = row["own_service"] / row["service"] - 1
        if abs(real / own - 1) <= within:
            text += (
                f"Service times were {abs(slower):.1%} {'longer' if slower > 0 else 'shorter'} in that run, or came in "
                f"another order: with its own ones the replay gives {own:.2f} ms."
            )
        else:
            text += (
                f"With that run's own service times the replay gives {own:.2f} ms; the other {real - own:+.2f} ms a "
                "request are the generator's late starts and the handing over between threads."
            )
        said.append(text)
    good = [f"{row['rho']:g}" for row in rows if abs(row["real"] / row["replay"] - 1) <= within]
    first = f"Within 10 % at ρ = {', '.join(good)}." if good else "This time no point is within 10 %."
    return " ".join([first, *said])


def figure_of_replay(
    rows: Sequence[Mapping[str, float]], curve: Mapping[float, float], theory: Mapping[float, float]
) -> dict[str, Any]:
    """Plot mean waits against the utilisation: real waits, and waits simulated by replaying measured service times."""
    figure, axes = _axes(figsize=(6.4, 3.8))
    axes.plot(list(curve), np.array(list(curve.values())) * MS, "-", color=OKABE_ITO[0], label="replay, many arrivals")
    axes.plot(list(theory), np.array(list(theory.values())) * MS, ":", color="black", label="Pollaczek–Khinchine")
    rhos = [row["rho"] for row in rows]
    for key, marker, face, label in (
        ("replay", "s", "white", "replay, same arrivals"),
        ("real", "o", OKABE_ITO[1], "real"),
    ):
        waits, size = [row[key] * MS for row in rows], 9 if key == "replay" else 6
        axes.plot(rhos, waits, marker, markersize=size, color=OKABE_ITO[1], markerfacecolor=face, label=label)
    axes.set(xlabel="utilisation ρ", ylabel="mean wait (ms)", yscale="log")
    write_out(axes)
    axes.legend(fontsize=9)
    told = "; ".join(
        f"ρ = {row['rho']:g}: {row['real'] * MS:.2f} ms real, {row['replay'] * MS:.2f} ms replayed" for row in rows
    )
    return {
        "figure": figure,
        "alt": f"Mean wait against utilisation: real runs as filled circles, replays as squares. {told}.",
        "caption": f"A real queue in this process, and measured service times replayed. {explain_gaps(rows)}",
        "data": {key: [row[key] for row in rows] for key in rows[0]},
    }


def figure_of_order(ratios: Mapping[str, Mapping[float, float]]) -> dict[str, Any]:
    """Plot simulated mean waits, as multiples of the Pollaczek–Khinchine formula's value, against the utilisation.

    There is a curve for each order of the service times, such as the measured order or a random one.
    """
    figure, axes = _axes(figsize=(6.4, 3.6))
    for (name, points), style, color in zip(ratios.items(), ("o-", "s-", "v--", "^--"), OKABE_ITO, strict=False):
        axes.plot(list(points), list(points.values()), style, color=color, label=name)
    axes.axhline(1, color="black", linewidth=1)
    axes.set(xlabel="utilisation ρ", ylabel="mean wait over P–K's", ylim=(0, None))
    figure.legend(fontsize=9, loc="outside upper center", ncols=2)
    names = list(ratios)
    busy = {name: [v for rho, v in points.items() if rho > 0.77] for name, points in ratios.items()}
    worst = max((name for name in names if name.endswith("in order")), key=lambda name: max(busy[name]))
    ends = {name: f"{min(busy[name]):.1f} to {max(busy[name]):.1f}" for name in names}
    shuffled = worst.replace("in order", "shuffled")
    said = (
        f"Above ρ = 0.77, requests “{worst}” wait {ends[worst]} times as long as Pollaczek–Khinchine says. "
        f"Shuffled, the same times make them wait {ends[shuffled]} times as long."
    )
    if max(busy[worst]) >= 1.2 * max(busy[shuffled]):
        said += " The numbers are the same, so the difference comes from their order, which the formula ignores."
    else:
        said += " In this run the order makes little difference."
    return {
        "figure": figure,
        "alt": f"Mean wait of replayed service times over the formula's, by utilisation: {'; '.join(names)}. {said}",
        "caption": said,
        "data": {"ρ": list(ratios[names[0]]), **{name: list(points.values()) for name, points in ratios.items()}},
    }


def figure_of_batches(
    lines: Mapping[str, Mapping[float, tuple[float, float]]],
    points: Mapping[str, Mapping[float, tuple[float, float]]],
    capacity: float,
    rate: float,
) -> dict[str, Any]:
    """Plot answers per second and p99 against `max_batch` and `max_wait`: simulations as lines, real runs as points."""
    figure, axes = _axes(2, 2, figsize=(7.2, 5.2), sharex="col", sharey="row")
    for column, name in enumerate(lines):
        x = np.array(list(lines[name]))
        place = np.arange(len(x))
        for row, scale in ((0, 1.0), (1, MS)):
            simulated = np.array([pair[row] for pair in lines[name].values()]) * scale
            real = np.array([pair[row] for pair in points[name].values()]) * scale
            where = [list(x).index(value) for value in points[name]]
            axes[row, column].plot(place, simulated, "-", color=OKABE_ITO[0], linewidth=2, label="simulated")
            axes[row, column].plot(where, real, "o", color=OKABE_ITO[1], markersize=8, label="real")
        labels = [f"{value:g}" if name == "max_batch" else f"{value * MS:.2g}" for value in x]
        axes[1, column].set_xticks(place, labels)
        axes[1, column].set_xlabel(name if name == "max_batch" else f"{name} (ms)")
        axes[0, column].axhline(capacity, color="black", linestyle=":", label="capacity one by one")
    axes[0, 0].set(ylabel="answers a second", ylim=(0, 1.15 * rate))
    axes[1, 0].set(ylabel="p99 (ms)", yscale="log")
    write_out(axes[1, 0])
    axes[0, 0].legend(fontsize=9, loc="lower right")
    batch = points["max_batch"]
    one, most = batch[1], batch[max(batch)]
    told = (
        f"{number_of(f'{rate:.0f}', 'request')} a second come, one by one {capacity:.0f} can "
        "be served. Real: with max_batch 1, "
        f"{number_of(f'{one[0]:.0f}', 'answer')} a second and a p99 of {one[1] * MS:.0f} ms; "
        f"with {max(batch):g}, {most[0]:.0f} and "
        f"{most[1] * MS:.1f} ms."
    )
    gaps = [real[1] / lines[name][x][1] for name in points for x, real in points[name].items()]
    return {
        "figure": figure,
        "alt": f"Four panels: answers a second and p99 against max_batch and against max_wait. {told}",
        "caption": f"{told} The real p99 was {min(gaps):.2f} to {max(gaps):.2f} times the simulated one. Handing "
        "requests between threads and timers that round up make it longer; a machine that is faster or slower than "
        "when the batches were timed moves it either way.",
        "data": {
            "setting": [f"{name} = {x:g}" for name in points for x in points[name]],
            "answers a second, real": [real[0] for name in points for real in points[name].values()],
            "simulated": [lines[name][x][0] for name in points for x in points[name]],
            "p99 (s), real": [real[1] for name in points for real in points[name].values()],
            "simulated ": [lines[name][x][1] for name in points for x in points[name]],
        },
    }


def figure_of_memory(told: Mapping[str, Any], file_bytes: int) -> dict[str, Any]:
    """Plot the memory of concurrent calls, of several models in one process, and of one model in several processes."""
    empty = told["empty"]["uss"] / 1e6
    calls = {int(k): v["uss"] / 1e6 for k, v in told["concurrent"].items()}
    models = {int(k): v["uss"] / 1e6 for k, v in told["models"].items()}
    each = [part["uss"] / 1e6 for part in told["processes"]]
    apart = {k + 1: sum(each[: k + 1]) for k in range(len(each))}
    figure, (left, right) = _axes(2, figsize=(7, 3.2), sharey=True)
    left.plot(list(calls), list(calls.values()), "o-", color=OKABE_ITO[0])
    left.set(xlabel="calls at the same time, one model", ylabel="memory (MB)", xticks=list(calls))
    right.plot(list(models), list(models.values()), "o-", color=OKABE_ITO[0], label="in one process")
    right.plot(list(apart), list(apart.values()), "s--", color=OKABE_ITO[1], label="a process each")
    right.set(xlabel="models", xticks=list(models), ylim=(0, 1.1 * max(*models.values(), *apart.values())))
    right.legend(fontsize=9)
    counts, numbers = list(calls), list(models)
    a_call = (calls[counts[-1]] - calls[1]) / (counts[-1] - 1)
    a_model = (models[numbers[-1]] - models[1]) / (numbers[-1] - 1)
    said = (
        f"An empty process with the runtime holds {empty:.0f} MB. Each further call at the same time takes "
        f"{a_call:.1f} MB, each further model in the same process {a_model:.0f} MB (its file "
        f"has {file_bytes / 1e6:.0f}), and each further process with one model {each[-1]:.0f} MB."
    )
    return {
        "figure": figure,
        "alt": f"Left: memory against calls at once. Right: against models, in one process and in one each. {said}",
        "caption": f"Memory that belongs to the processes alone (USS). {said}",
        "data": {
            "what": [f"{number_of(k, 'call')} at once" for k in calls]
            + [number_of(k, "model") for k in models]
            + [number_of(k, "process") for k in apart],
            "MB": [*calls.values(), *models.values(), *apart.values()],
        },
    }
