"""The measurements of a study: accuracy, latency, memory and energy of each form of a classifier."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.accuracy import counted, mcnemar, recall_per_class
from tinybench.energy import best_meter, energy_reading, idle_power
from tinybench.latency import measure_latencies, round_orders
from tinybench.onnx import OnnxModel, operator_profile
from tinybench.result import BenchmarkResult, is_interval
from tinybench.support.basics.arguments import check_least, check_positive
from tinybench.support.footprint.first_calls import memory_stages
from tinybench.support.rounds.checked_calls import Call
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.tools.study.variants import FP32, load_variant

if TYPE_CHECKING:
    from tinybench.tools.study.variants import Variant


def study_accuracy(
    variants: Mapping[str, Variant],
    X: np.ndarray,
    y: np.ndarray,
    classes: np.ndarray,
    noise: float,
    seed: int,
    groups: Any = None,
) -> tuple[dict[str, dict[str, Any]], dict[str, BenchmarkResult]]:
    """Return a dict of accuracy columns for each variant, and a `BenchmarkResult` with the accuracy of each variant.

    The columns include the recall by class, the accuracy under noise, and the differences from the answers of FP32. The
    metadata of a `BenchmarkResult` record which rows the variant classified correctly. With `groups`, the intervals are
    by groups of rows.
    """
    rng = np.random.default_rng(seed)
    noisy = X + rng.normal(0, noise, X.shape).astype(np.float32) * X.std(axis=0)
    outputs = {name: np.asarray(variant.call(X)) for name, variant in variants.items()}
    labels = {name: classes[scores.argmax(axis=1)] for name, scores in outputs.items()}
    found, results = {}, {}
    for name, variant in variants.items():
        notes = counted(labels[name] == y, groups=groups)
        pair = mcnemar(y, labels[FP32], labels[name], groups)
        found[name] = {
            "accuracy": notes["accuracy"],
            "accuracy_ci": notes["wilson_interval"],
            "design_effect": notes.get("design_effect"),
            "recall_by_class": {str(c): r for c, r in recall_per_class(y, labels[name]).items()},
            "accuracy_with_noise": float(np.mean(classes[np.asarray(variant.call(noisy)).argmax(axis=1)] == y)),
            "loss": pair.difference,
            "loss_ci": list(pair.difference_ci),
            "label_agreement": float(np.mean(labels[name] == labels[FP32])),
            "largest_difference": float(np.abs(outputs[name] - outputs[FP32]).max()),
        }
        results[name] = BenchmarkResult("accuracy", [notes["accuracy"]], {**notes, **machine_notes()})
    return found, results


def study_energy(
    calls: Mapping[str, Call], x: Any, latencies: Mapping[str, float], rounds: int, seconds: float, seed: int
) -> tuple[dict[str, BenchmarkResult], dict[str, float]]:
    """Measure each variant in shuffled rounds. Return the energy per call and the median number of busy cores.

    If this machine cannot measure energy, the processor seconds per call are returned instead of joules per call.
    """
    meter = best_meter()
    energy: dict[str, list[float]] = {name: [] for name in calls}
    busy: dict[str, list[float]] = {name: [] for name in calls}
    for order in round_orders(list(calls), rounds, seed):
        idle = idle_power(meter, seconds, time.perf_counter, time.sleep) if meter.measured else 0.0
        for name in order:
            loops = max(1, round(seconds / latencies[name]))
            used = time.process_time()
            joules, wall = energy_reading(calls[name], x, loops, meter, time.perf_counter)
            busy[name].append((time.process_time() - used) / wall)
            energy[name].append((joules - idle * wall) / loops)
    metric = "energy" if meter.unit == "J" else "cpu_time"
    shared = {**meter.details, "measured": meter.measured, "pairing": uuid.uuid4().hex, **machine_notes()}
    results = {n: BenchmarkResult(metric, v, {**shared, "model": n}, unit=meter.unit) for n, v in energy.items()}
    return results, {name: median(values) for name, values in busy.items()}


def study_memory(variant: Variant, x: Any, repeats: int) -> dict[str, Any]:
    """Return the bytes that each stage adds in a fresh process, and the bytes of the whole process and of the model.

    The stages are import, load, first call and steady calls. A value is None if a stage added no memory, or if memory
    was not measured. A note gives the reason.
    """
    names = ("import", "load", "first_call", "steady")
    if variant.file.suffix == ".npz":
        none = dict.fromkeys([*(f"memory_{name}" for name in names), "memory_process", "memory_model"])
        return {**none, "note_on_memory": "not measured: its arrays are scikit-learn's, in this process"}
    args = (str(variant.file), variant.optimization)
    stages = memory_stages(load_variant, x, repeats, args=args, steady_calls=5)
    found = {f"memory_{name}": stages[name].median for name in names}
    imported, whole = (median(stages[name].metadata["resident"]) for name in ("import", "steady"))
    found |= {"memory_process": whole, "memory_model": whole - imported}
    kept = {name: value if value > 0 else None for name, value in found.items()}
    unseen = [name.removeprefix("memory_").replace("_", " ") for name, value in kept.items() if value is None]
    told = f"not seen: {', '.join(unseen)}; what the stages before left free was enough" if unseen else ""
    return {**kept, "note_on_memory": told}


def throughput_and_bandwidth(latency: float, batch_size: int, weight_bytes: int, row_bytes: int) -> tuple[float, float]:
    """Return the throughput in rows/s and the effective bandwidth in bytes/s.

    The bandwidth is a lower bound, because repeated reads of the same data are not counted.

    Parameters
    ----------
    latency
        Seconds of one call with the whole batch.
    batch_size
        Rows in the batch.
    weight_bytes
        Bytes of the model's weights, each of which is read once per call.
    row_bytes
        Bytes of input and output of one row.

    Raises
    ------
    ValueError
        If a call took no time, or a number is negative or not finite.
    """
    check_positive(latency=latency, batch_size=batch_size)
    check_least(weight_bytes=weight_bytes, row_bytes=row_bytes)
    return batch_size / latency, (weight_bytes + batch_size * row_bytes) / latency


def study_batch(
    variants: Mapping[str, Variant],
    x: np.ndarray,
    rounds: int,
    threads: int,
    seed: int,
    kept: dict[str, Any],
    say: Callable[[str], Any],
) -> dict[str, dict[str, Any]]:
    """Measure all variants at one batch size and return their columns. Store latency and energy by round in `kept`."""
    calls = {name: variant.call for name, variant in variants.items()}

    def shown(orders: Iterable[Any]) -> Iterator[Any]:
        told = time.monotonic()
        for number, order in enumerate(orders, 1):
            if time.monotonic() - told > 2:
                told = time.monotonic()
                say(f"batch {len(x)}: round {number} of {rounds}")
            yield order

    latency = measure_latencies(calls, x, measurement_runs=rounds, mode="hot", seed=seed, progress=shown)
    kept["latency"] = latency
    whole_round = sum(result.median for result in latency.values())
    say(f"batch {len(x)}: single calls, energy and operators")
    served = measure_latencies(calls, x, 0, max(20, min(100, round(2 / whole_round))), seed=seed)
    medians = {name: result.median for name, result in latency.items()}
    energy, busy = study_energy(calls, x, medians, max(6, rounds // 3), 0.02, seed)
    kept["energy"] = energy
    columns = {}
    for name, variant in variants.items():
        ends, shares = latency[name].median_ci(), None
        if variant.file.suffix == ".onnx":
            profiled = OnnxModel(variant.file, threads, variant.optimization)
            shares = operator_profile(profiled, x, runs=20).shares
        rate, bandwidth = throughput_and_bandwidth(medians[name], len(x), variant.weight_bytes or 0, variant.row_bytes)
        columns[name] = {
            "latency": medians[name],
            "latency_ci": list(ends) if is_interval(*ends) else None,
            "latency_p95": served[name].percentile(95),
            "throughput": rate,
            "effective_bandwidth": None if variant.weight_bytes is None else bandwidth,
            "energy": energy[name].median if energy[name].unit == "J" else None,
            "cpu_time": energy[name].median if energy[name].unit == "s" else None,
            "energy_is_measured": energy[name].measured,
            "cpu_share": busy[name],
            "operator_shares": shares,
        }
    return columns


def without_failing(variants: Mapping[str, Variant], x: Any, notes: list[str]) -> dict[str, Variant]:
    """Return the variants that can run the batch `x`. For every other variant, add the error to `notes`."""
    found = {}
    for name, variant in variants.items():
        try:
            variant.call(x)
            found[name] = variant
        except Exception as error:
            notes.append(f"{name} fails at batch {len(x)} and is left out there: {type(error).__name__}: {error}")
    return found
