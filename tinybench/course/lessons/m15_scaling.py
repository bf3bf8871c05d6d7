"""Helpers for the optional part of module 15: functions to run in parallel, and figures of their speed-ups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.course.accessible_figures import OKABE_ITO
from tinybench.course.lessons.m15_roofline import seconds_of
from tinybench.support.basics.numbers import number_of
from tinybench.support.conditions.cores import usable_cores
from tinybench.support.profiling.scaling_laws import usl
from tinybench.tools.scaling.measure import Scaling, default_workers

if TYPE_CHECKING:
    from tinybench.tools.scaling.fitted_laws import Laws

MARKERS, LINES = "osD^v", ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))


def worker_counts(most: int = 8) -> list[int]:
    """Return worker counts from 1 to twice the number of cores that this process may use, but at most twice `most`."""
    return default_workers(min(most, usable_cores()))


def counting() -> Callable[[], int]:
    """Return a function of plain Python that takes about a millisecond and holds the interpreter's lock throughout."""
    return lambda: sum(i * i for i in range(10_000))


def multiplying(size: int = 192) -> Callable[[], Any]:
    """Return a function that multiplies matrices in NumPy, without holding the interpreter's lock."""
    a = np.ones((size, size), np.float32)
    return lambda: np.matmul(a, a)


def cores_of(measured: Scaling) -> int:
    """Return the number of workers that can have a core each: the usable cores, or fewer if a control group says so."""
    about = next(iter(next(iter(measured.results.values())).values())).metadata
    cores = about.get("usable_cores") or usable_cores()
    return max(1, int(min(cores, about.get("granted") or cores)))


def laws_within(measured: Scaling, cores: int) -> dict[str, Laws]:
    """Return the laws fitted to the worker counts up to `cores`, by way in which the workers run.

    Beyond `cores`, workers take turns, which no law of scaling describes. Ways with fewer than two worker counts above
    1 are left out, because two unknown numbers take two speed-ups.
    """
    from tinybench.tools.scaling.fitted_laws import fit_laws  # late: the notebook imports it on the student's code

    within = {way: {n: t for n, t in measured.seconds(way).items() if n <= cores} for way in measured.results}
    return {way: fit_laws(found, draws=300) for way, found in within.items() if len(found) > 2}


def figure_of_scaling(measured: Scaling, laws: Mapping[str, Laws], cores: int) -> dict[str, Any]:
    """Plot measured speed-ups with their intervals, the fitted scaling laws, and the ideal speed-up.

    The laws are drawn up to `cores`. Beyond, the workers take turns, and the background is grey.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.8, 4.6), layout="constrained")
    found = measured.rows()
    counts = sorted({row["workers"] for row in found})
    named = number_of(cores, "core")
    smooth, highest = np.linspace(1, cores, 100), 0.0
    axes.plot(counts, counts, color="gray", linewidth=1, label="n times as fast")
    if cores < counts[-1]:
        axes.axvspan(cores + 0.5, counts[-1] + 0.5, color="0.93", label=f"workers take turns on {named}")
    for place, way in enumerate(measured.results):
        mine = [row for row in found if row["way"] == way]
        color, marker = OKABE_ITO[place % 6], MARKERS[place % 5]
        gains = np.array([row["speedup"] for row in mine])
        low, high = np.array([row["speedup_ci"] for row in mine]).T
        highest = max(highest, np.nanmax(high[1:], initial=0.0))
        reach = np.maximum(0, np.nan_to_num([gains - low, high - gains]))
        shifted = np.array([row["workers"] for row in mine]) + 0.04 * (place - 1.5)
        axes.errorbar(shifted, gains, reach, fmt=marker, color=color, markerfacecolor="white", capsize=3, label=way)
        if law := laws.get(way):
            curve = [usl(n, law.contention.value, law.crosstalk.value) for n in smooth]
            axes.plot(smooth, curve, color=color, linestyle=LINES[place % 5], linewidth=1.3)
    top = min(axes.get_ylim()[1], 1.3 * counts[-1])
    axes.set(xlabel="workers", ylabel="speed-up over one worker", xticks=counts, ylim=(0, top))
    axes.set_xlim(0.6, counts[-1] + 0.5)
    figure.legend(loc="outside upper center", ncols=2, fontsize=10, frameon=False)
    at_cores = {
        way: [row for row in found if row["way"] == way and row["workers"] <= cores][-1] for way in measured.results
    }
    told = "; ".join(f"{way} {row['speedup']:.2f} times" for way, row in at_cores.items())
    most = number_of(max(row["workers"] for row in at_cores.values()), "worker")
    lines = "Lines: the Universal Scalability Law, fitted up to the cores. " if laws else ""
    return {
        "figure": figure,
        "alt": f"Speed-up against the number of workers, with intervals{' and fitted curves' if laws else ''}. "
        f"With {most}: {told}.",
        "caption": f"Points: medians with 95 % intervals{', cut off at the top' if highest > top else ''}. {lines}"
        f"With {most} on {named}: {told}.",
        "data": {
            "way": [row["way"] for row in found],
            "workers": [row["workers"] for row in found],
            "speed-up": [row["speedup"] for row in found],
            "from": [row["speedup_ci"][0] for row in found],
            "to": [row["speedup_ci"][1] for row in found],
        },
    }


def what_is_seen(measured: Scaling, laws: Mapping[str, Laws], cores: int) -> str:
    """Describe each fitted scaling law, the best measured worker counts, and the limits of the measurement.

    `laws` has a law for each way in which the workers run, such as threads or processes, if it could be fitted.
    """
    largest = max(max(results) for results in measured.results.values())
    told = [
        f"{way}: contention {law.contention}, crosstalk {law.crosstalk}; best number measured {law.best_measured}"
        for way, law in laws.items()
    ]
    if not laws:
        told.append(
            f"{number_of(cores, 'core')}: no law is fitted. Two unknown numbers take two speed-ups of workers with a "
            "core each, so at least 3 cores."
        )
    if 1 < cores < largest:
        told.append(f"With more than {number_of(cores, 'worker')} they take turns, which is oversubscription.")
    told.append(
        f"Nothing was measured beyond {number_of(largest, 'worker')}. Do not trust a law far beyond its points."
    )
    return "\n".join([*told, *measured.notes])


def told_of_two_libraries() -> str:
    """Measure how much a thread pool slows down if each of its threads calls a multi-threaded BLAS.

    Return a text with the slowdown and the remedy.
    """
    from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

    if not any(library["user_api"] == "blas" for library in threadpool_info()):
        return "   This BLAS has no threads that a program can set, so two libraries cannot be played here."
    workers, multiply = 2 * min(4, usable_cores()), multiplying(256)
    took = {}
    for blas_threads in (workers, 1):
        with threadpool_limits(blas_threads, "blas"), ThreadPoolExecutor(workers) as pool:
            took[blas_threads] = seconds_of(
                lambda pool=pool: [each.result() for each in [pool.submit(multiply) for _ in range(8)]],  # type: ignore[misc]
                rounds=3,
            )
    return (
        f"   {workers} Python threads with {number_of(workers, 'thread')} of BLAS each take "
        f"{took[workers] / took[1]:.1f} times as long as with 1 each. Cure: one library gets the cores, all others one "
        "thread (OMP_NUM_THREADS=1)."
    )
