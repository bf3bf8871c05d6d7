"""Helpers for module 15's second half: networks for the roofline, functions to run in parallel, and speed-ups."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.course.accessible_figures import OKABE_ITO
from tinybench.support.basics.numbers import number_of
from tinybench.support.conditions.cores import usable_cores
from tinybench.tools.roofline.roofs import Roofs
from tinybench.tools.scaling.measure import Scaling, default_workers

if TYPE_CHECKING:
    from tinybench.tools.scaling.fitted_laws import Laws

MARKERS, LINES = "osD^v", ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))


def write_networks(folder: Path, sizes: Sequence[int], seed: int = 0) -> dict[str, Path]:
    """Write a network as a float32 file and as an INT8 file, and return their paths by type.

    The weights are random, which does not affect the speed.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from tinybench.quantize import quantize_static_int8

    rng, nodes, weights = np.random.default_rng(seed), [], []
    for layer, (k, n) in enumerate(pairwise(sizes)):
        drawn = rng.normal(0, (2 / k) ** 0.5, (k, n)).astype(np.float32)
        weights += [
            numpy_helper.from_array(drawn, f"w{layer}"),
            numpy_helper.from_array(np.zeros(n, np.float32), f"b{layer}"),
        ]
        last = layer == len(sizes) - 2
        source, target = "x" if layer == 0 else f"h{layer}", "y" if last else f"h{layer + 1}"
        product = target if last else f"p{layer}"
        nodes.append(helper.make_node("Gemm", [source, f"w{layer}", f"b{layer}"], [product]))
        if not last:
            nodes.append(helper.make_node("Relu", [product], [target]))
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])
        for name, width in (("x", sizes[0]), ("y", sizes[-1]))
    )
    graph = helper.make_graph(nodes, "network", [x], [y], weights)
    files = {"FP32": folder / "network.onnx", "INT8": folder / "network_int8.onnx"}
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), files["FP32"])
    quantize_static_int8(files["FP32"], rows(sizes[0], 64), files["INT8"], overwrite=True)
    return files


def rows(width: int, number: int, seed: int = 1) -> np.ndarray:
    """Return `number` rows of `width` random inputs."""
    return np.random.default_rng(seed).normal(size=(number, width)).astype(np.float32)


def why_int8(roofs: Roofs, products: Mapping[str, str]) -> str:
    """Explain how much faster INT8 can be on this machine, and why.

    `roofs` are the measured peaks. `products` states the kind of arithmetic that multiplies the integers, such as
    saturating.
    """
    kind = products.get("uint8 × int8", "unsupported")
    if kind == "unsupported" or "uint8 × int8" not in roofs.peaks:
        return (
            "This build of the runtime has no product of uint8 and int8, so INT8 can bring nothing but a smaller file."
        )
    times = roofs.peak("int8") / roofs.peak("float32")
    if kind == "saturating":
        how = "it saturates: pairs are added in 16 bits, as x86 processors with AVX2 and without VNNI do it"
    else:
        how = "it is exact: VNNI, AMX and ARM's dot products are, and so are slower ways"
    return (
        f"The product of uint8 and int8 has {times:.2g} times the peak of float32 here; {how}. So at the compute wall "
        f"INT8 can bring {times:.2g} times the speed; at the memory wall 4 times, more if it fits into a nearer cache."
    )


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


def figure_of_scaling(measured: Scaling, laws: Mapping[str, Laws], usl: Callable[..., float]) -> dict[str, Any]:
    """Plot measured speed-ups with their intervals, the fitted scaling laws, and the ideal speed-up."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.8, 4.6), layout="constrained")
    found = measured.rows()
    counts = sorted({row["workers"] for row in found})
    cores = usable_cores()
    named = f"{cores} {'core' if cores == 1 else 'cores'}"
    smooth, highest = np.linspace(1, counts[-1], 100), 0.0
    axes.plot(counts, counts, color="gray", linewidth=1, label="n times as fast")
    if cores < counts[-1]:
        axes.axvline(cores + 0.5, color="gray", linestyle=":", linewidth=1)
        where: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "textcoords": "offset points",
            "ha": "right",
            "va": "top",
        }
        axes.annotate(named, (cores + 0.5, 0.98), xytext=(-4, 0), fontsize=10, **where)
    for place, (way, law) in enumerate(laws.items()):
        mine = [row for row in found if row["way"] == way]
        color, marker = OKABE_ITO[place % 6], MARKERS[place % 5]
        gains = np.array([row["speedup"] for row in mine])
        low, high = np.array([row["speedup_ci"] for row in mine]).T
        highest = max(highest, np.nanmax(high[1:], initial=0.0))
        reach = np.maximum(0, np.nan_to_num([gains - low, high - gains]))
        shifted = np.array([row["workers"] for row in mine]) + 0.04 * (place - 1.5)
        axes.errorbar(shifted, gains, reach, fmt=marker, color=color, markerfacecolor="white", capsize=3, label=way)
        curve = [usl(n, law.contention.value, law.crosstalk.value) for n in smooth]
        axes.plot(smooth, curve, color=color, linestyle=LINES[place % 5], linewidth=1.3)
    top = min(axes.get_ylim()[1], 1.3 * counts[-1])
    axes.set(xlabel="workers", ylabel="speed-up over one worker", xticks=counts, ylim=(0, top))
    figure.legend(loc="outside upper center", ncols=2, fontsize=10, frameon=False)
    last = {way: [row for row in found if row["way"] == way][-1] for way in laws}
    told = "; ".join(f"{way} {row['speedup']:.2f} times" for way, row in last.items())
    return {
        "figure": figure,
        "alt": "Speed-up against the number of workers, with intervals and fitted curves. "
        f"With {number_of(counts[-1], 'worker')}: {told}.",
        "caption": f"Points: medians with 95 % intervals{', cut off at the top' if highest > top else ''}. "
        "Lines: the Universal Scalability Law, fitted. "
        f"With {number_of(counts[-1], 'worker')} on {named}: {told}.",
        "data": {
            "way": [row["way"] for row in found],
            "workers": [row["workers"] for row in found],
            "speed-up": [row["speedup"] for row in found],
            "from": [row["speedup_ci"][0] for row in found],
            "to": [row["speedup_ci"][1] for row in found],
        },
    }


def what_is_seen(measured: Scaling, laws: Mapping[str, Laws]) -> str:
    """Describe each fitted scaling law, the best measured worker counts, and the limits of the measurement.

    `laws` has a law for each way in which the workers run, such as threads or processes.
    """
    cores, largest = usable_cores(), max(max(results) for results in measured.results.values())
    told = [
        f"{way}: contention {law.contention}, crosstalk {law.crosstalk}; best number measured {law.best_measured}"
        for way, law in laws.items()
    ]
    if cores > 1:
        told.append(
            f"{number_of(cores, 'core')}: with more than {number_of(cores, 'worker')} they take "
            "turns, which is oversubscription."
        )
    told.append(
        f"Nothing was measured beyond {number_of(largest, 'worker')}, and no law is to "
        "be trusted far beyond its points."
    )
    return "\n".join([*told, *measured.notes])


def seconds_of(call: Callable[[], Any], rounds: int = 7) -> float:
    """Return the median seconds of a call, after one warm-up call."""
    call()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return median(times)


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
