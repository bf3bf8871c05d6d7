# Written by "autograder export" from modules/12_quantize/12_quantize.ipynb: edit the notebook, not this file.

"""What INT8 gains and costs a classifier on this machine: variants measured side by side, judged by a rule."""

from __future__ import annotations

import json
import tempfile
import textwrap
import time
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tinybench.accuracy import difference_interval, mcnemar, recall_per_class, wilson_interval
from tinybench.benchmark import system_info
from tinybench.comparison import Comparison, compare
from tinybench.energy import best_meter, energy_reading, idle_power
from tinybench.latency import Call, as_input, measure_latencies, round_orders
from tinybench.memory import memory_pressure, memory_stages, model_size
from tinybench.onnx import OnnxModel, check_parity, integer_products, numpy_baseline, operator_profile, to_onnx
from tinybench.pareto import Requirements
from tinybench.quantize import (
    claim_verdict,
    int8_pays,
    quantization_verdict,
    quantize_dynamic_int8,
    quantize_static_int8,
    throughput_and_bandwidth,
)
from tinybench.result import BenchmarkResult, json_safe
from tinybench.suite import write_text
from tinybench.table import Table, csv_text

SKLEARN, NUMPY, FP32 = "scikit-learn", "NumPy", "ONNX FP32"
DYNAMIC, STATIC, PER_CHANNEL = "INT8 dynamic", "INT8 static", "INT8 dynamic, per channel"
_FULL_RANGE = {DYNAMIC: "INT8 dynamic, full range", PER_CHANNEL: "INT8 dynamic, per channel, full range"}


@dataclass(frozen=True)
class Variant:
    """One form of a model in a study; its note says how many of its products are of integers."""

    call: Call
    file: Path
    precision: str
    note: str = ""
    saturates: bool = False

    @property
    def fake(self) -> bool:
        """Whether it is called INT8 and computes no product in integers."""
        return self.note.startswith("no")


def load_variant(path: str) -> Any:
    """Return what a study saved: an ``.onnx`` file or a scikit-learn model."""
    if path.endswith(".onnx"):
        from tinybench.onnx import OnnxModel

        return OnnxModel(path)
    import joblib  # type: ignore[import-untyped]

    return joblib.load(path)


def study_variants(
    model: Any, X: np.ndarray, calibration: np.ndarray, folder: Path, threads: int, notes: list[str]
) -> dict[str, Variant]:
    """Return all forms of a classifier; what cannot be made is left out, with a sentence in the notes."""
    import joblib

    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba; the study takes a fitted classifier")
    path = to_onnx(model, X, folder / "fp32.onnx", overwrite=True)
    fp32 = OnnxModel(path, threads)
    check_parity(model, fp32, X[:512])
    joblib.dump(model, folder / "scikit-learn.joblib")
    dtype = str(np.asarray(model.predict_proba(X[:1])).dtype)
    variants = {SKLEARN: Variant(model.predict_proba, folder / "scikit-learn.joblib", dtype)}
    if dtype != "float32":
        notes.append(f"scikit-learn answers in {dtype}: part of ONNX's gain is the change of precision, not of engine")
    try:
        variants[NUMPY] = Variant(numpy_baseline(model), folder / "numpy.npz", "float32")
        np.savez(folder / "numpy.npz", *[np.asarray(a, np.float32) for a in [*model.coefs_, *model.intercepts_]])
    except TypeError:
        notes.append("no NumPy baseline: it is written for multilayer perceptrons alone")
    variants[FP32] = Variant(fp32.forward, path, "float32")
    saturating = integer_products()["uint8 × int8"] == "saturating"

    def dynamic(suffix: str = "", **choices: Any) -> Callable[[], Path]:
        return partial(
            quantize_dynamic_int8, path, folder / f"fp32-int8-dynamic{suffix}.onnx", overwrite=True, **choices
        )

    makers = {
        DYNAMIC: dynamic(),
        STATIC: lambda: quantize_static_int8(path, calibration, check=X, overwrite=True),
        PER_CHANNEL: dynamic("-per-channel", per_channel=True),
    }
    if saturating:
        makers[_FULL_RANGE[DYNAMIC]] = dynamic("-full-range", reduce_range=False)
        makers[_FULL_RANGE[PER_CHANNEL]] = dynamic("-per-channel-full-range", per_channel=True, reduce_range=False)
    for name, make in makers.items():
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = make()
        except ValueError as error:
            notes.append(f"{name} could not be made: {error}")
            continue
        notes += [f"{name}: {warning.message}" for warning in caught if warning.category is UserWarning]
        verdict = quantization_verdict(path, made)
        precision = "float32" if verdict.startswith("no") else "int8"
        saturates = precision == "int8" and name in _FULL_RANGE.values()
        variants[name] = Variant(OnnxModel(made, threads).forward, made, precision, verdict, saturates)
    if any(variant.precision == "int8" for variant in variants.values()):
        notes.append(
            "on this processor ONNX Runtime's product of uint8 by int8 saturates (pairs of products are added in 16 "
            "bits): the INT8 files keep 7 bits of each weight (reduce_range), those of full range are here to compare"
            if saturating
            else "on this processor ONNX Runtime's integer products are exact; on others (AVX2 without VNNI) those of "
            "these files may saturate: for a file that goes there set reduce_range=True"
        )
    return variants


def study_accuracy(
    variants: Mapping[str, Variant], X: np.ndarray, y: np.ndarray, classes: np.ndarray, noise: float, seed: int
) -> dict[str, dict[str, Any]]:
    """Return each variant's accuracy, by class and under noise, and how its answers differ from those of FP32."""
    rng = np.random.default_rng(seed)
    noisy = X + rng.normal(0, noise, X.shape).astype(np.float32) * X.std(axis=0)
    outputs = {name: np.asarray(variant.call(X)) for name, variant in variants.items()}
    labels = {name: classes[scores.argmax(axis=1)] for name, scores in outputs.items()}
    found = {}
    for name, variant in variants.items():
        right = int(np.sum(labels[name] == y))
        pair = mcnemar(y, labels[FP32], labels[name])
        found[name] = {
            "accuracy": right / len(y),
            "accuracy_ci": list(wilson_interval(right, len(y))),
            "recall_by_class": {str(c): r for c, r in recall_per_class(y, labels[name]).items()},
            "accuracy_with_noise": float(np.mean(classes[np.asarray(variant.call(noisy)).argmax(axis=1)] == y)),
            "loss": pair.difference,
            "loss_ci": list(difference_interval(pair.only_a, pair.only_b, pair.rows)),
            "label_agreement": float(np.mean(labels[name] == labels[FP32])),
            "largest_difference": float(np.abs(outputs[name] - outputs[FP32]).max()),
        }
    return found


def study_energy(
    calls: Mapping[str, Call], x: Any, latencies: Mapping[str, float], rounds: int, seconds: float, seed: int
) -> tuple[dict[str, BenchmarkResult], dict[str, float]]:
    """Return joules (else processor seconds) per call, and the median of busy cores, from shuffled rounds."""
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
    shared = {**meter.details, "measured": meter.measured, "pairing": uuid.uuid4().hex}
    results = {n: BenchmarkResult(metric, v, {**shared, "model": n}, unit=meter.unit) for n, v in energy.items()}
    return results, {name: median(values) for name, values in busy.items()}


def study_memory(variant: Variant, x: Any, repeats: int) -> dict[str, float | None]:
    """Return bytes of each stage in a fresh process, of the process, and of the model in it; None where unseen."""
    names = ("import", "load", "first_call", "steady")
    if variant.file.suffix == ".npz":
        return dict.fromkeys([*(f"memory_{name}" for name in names), "memory_process", "memory_model"])
    stages = memory_stages(load_variant, x, repeats, args=(str(variant.file),), steady_calls=5)
    found = {f"memory_{name}": stages[name].median for name in names}
    imported, whole = (median(stages[name].metadata["resident"]) for name in ("import", "steady"))
    found |= {"memory_process": whole, "memory_model": whole - imported}
    return {name: value if value > 0 else None for name, value in found.items()}


def study_batch(
    variants: Mapping[str, Variant], x: np.ndarray, rounds: int, threads: int, seed: int
) -> tuple[dict[str, dict[str, Any]], dict[str, BenchmarkResult], dict[str, BenchmarkResult]]:
    """Return the table's columns at one batch size, and latency and energy paired by round, each by variant."""
    calls = {name: variant.call for name, variant in variants.items()}
    latency = measure_latencies(calls, x, measurement_runs=rounds, mode="hot", seed=seed)
    whole_round = sum(result.median for result in latency.values())
    served = measure_latencies(calls, x, 0, max(20, min(100, round(2 / whole_round))), seed=seed)
    medians = {name: result.median for name, result in latency.items()}
    energy, busy = study_energy(calls, x, medians, max(6, rounds // 3), 0.02, seed)
    columns = {}
    for name, variant in variants.items():
        shares = None
        if variant.file.suffix == ".onnx":
            shares = operator_profile(OnnxModel(variant.file, threads), x, runs=20).shares
        size = model_size(variant.file) if name != SKLEARN else model_size(variants[FP32].file)
        rate, bandwidth = throughput_and_bandwidth(
            medians[name], len(x), size, 4 * (x.shape[1] + np.asarray(variant.call(x[:1])).shape[1])
        )
        columns[name] = {
            "latency": medians[name],
            "latency_ci": list(latency[name].median_ci()),
            "latency_p95": served[name].percentile(95),
            "throughput": rate,
            "effective_bandwidth": bandwidth,
            "energy": energy[name].median if energy[name].unit == "J" else None,
            "cpu_time": energy[name].median if energy[name].unit == "s" else None,
            "energy_is_measured": energy[name].measured,
            "cpu_share": busy[name],
            "operator_shares": shares,
        }
    return columns, latency, energy


def study_gains(
    batch: int, latency: Mapping[str, BenchmarkResult], energy: Mapping[str, BenchmarkResult]
) -> list[dict[str, Any]]:
    """Return how many times less time and energy a variant takes than each baseline, at one batch size."""
    gains = []
    for baseline in (SKLEARN, NUMPY, FP32):
        for name in latency:
            if baseline in latency and name != baseline and name not in (SKLEARN, NUMPY):
                for metric, results in (("latency", latency), (energy[name].metric_name, energy)):
                    positive = min(results[baseline].min_val, results[name].min_val) > 0
                    found = compare(results[baseline], results[name], names=(baseline, name)) if positive else None
                    gains.append(
                        {
                            "batch_size": batch,
                            "variant": name,
                            "baseline": baseline,
                            "metric": metric,
                            "gain": found.ratio if found else None,
                            "gain_ci": list(found.ratio_ci) if found else None,
                            "p_value": found.p_value if found else None,
                            "rounds": results[name].count,
                            "measured": results[name].measured,
                        }
                    )
    return gains


def study_decision(
    batch: int,
    variants: Mapping[str, Variant],
    latency: Mapping[str, BenchmarkResult],
    accuracy: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return what the rule says of each INT8 variant, and which to ship: the simplest that none is proven to beat."""
    rule, ship = {}, SKLEARN
    for name, variant in variants.items():
        if name not in (SKLEARN, NUMPY, FP32):
            versus: Comparison = compare(latency[name], latency[FP32], names=(name, FP32))
            low, high = accuracy[name]["loss_ci"]
            verdict = "does not pay" if variant.fake else int8_pays((low, high), versus.ratio_ci)
            why = (
                f"{variant.note}; {versus}; accuracy lost {100 * low:.2f} to {100 * high:.2f} points; probabilities "
                f"differ by up to {accuracy[name]['largest_difference']:.2g}"
            )
            if variant.saturates:
                verdict, why = "saturates", f"its products can saturate on this processor; {why}"
            rule[name] = {"verdict": verdict, "why": why}
            if verdict != "pays":
                continue
        if compare(latency[name], latency[ship]).verdict == "faster":
            ship = name
    return {"batch_size": batch, "ship": ship, "rule": rule}


# "28 %" is taken as 23 to 33 %, "75 % smaller" as 73 to 77 %
_CLAIMS = (
    ("ONNX FP32 is 2–3 times as fast as scikit-learn", FP32, SKLEARN, "latency", 2.0, 3.0),
    ("INT8 is 3–5 times as fast as scikit-learn", DYNAMIC, SKLEARN, "latency", 3.0, 5.0),
    ("INT8 takes 28 % less time than FP32", DYNAMIC, FP32, "latency", 1 / 0.77, 1 / 0.67),
    ("INT8 takes 30–50 % less energy than FP32", DYNAMIC, FP32, "energy", 1 / 0.7, 1 / 0.5),
)


def study_claims(
    gains: Sequence[Mapping[str, Any]], sizes: Mapping[str, int], accuracy: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Compare widely repeated claims with what was measured; processor time in place of energy decides nothing."""
    table = []
    for claim, name, baseline, metric, low, high in _CLAIMS:
        for gain in gains:
            kinds = (DYNAMIC, STATIC) if name == DYNAMIC else (name,)
            same = gain["variant"] in kinds and gain["baseline"] == baseline
            if same and gain["gain"] is not None and (gain["metric"] == "latency") == (metric == "latency"):
                ends = (gain["gain_ci"][0], gain["gain_ci"][1])
                measured = f"{gain['gain']:.2f} times ({ends[0]:.2f} to {ends[1]:.2f})"
                if baseline == FP32:  # these claims say how much less, not how many times
                    less = [f"{100 * (1 - 1 / times):.0f}" for times in (gain["gain"], *ends)]
                    measured = f"{less[0]} % less ({less[1]} to {less[2]})".replace("-", "−")
                condition = f"{gain['variant']}, batch {gain['batch_size']}"
                verdict = claim_verdict(ends, low, high)
                if gain["metric"] == "cpu_time":  # no joules: whatever it is, it says nothing on the claim
                    measured, verdict = f"{measured} processor time", "energy not measured"
                table.append({"claim": claim, "condition": condition, "measured": measured, "verdict": verdict})
    for name in (DYNAMIC, STATIC):
        if name in sizes:
            saved = 1 - sizes[name] / sizes[FP32]
            low, high = accuracy[name]["loss_ci"]
            table += [
                {
                    "claim": "INT8 files are 75 % smaller",
                    "condition": f"{name}, FP32 of {sizes[FP32] / 1e3:.0f} kB",
                    "measured": f"{saved:.1%}",
                    "verdict": claim_verdict((saved, saved), 0.73, 0.77),
                },
                {
                    "claim": "INT8 loses less than 1 point of accuracy",
                    "condition": name,
                    "measured": f"{100 * low:.2f} to {100 * high:.2f} points lost",
                    "verdict": "as claimed" if high < 0.01 else "more than claimed" if low >= 0.01 else "cannot tell",
                },
            ]
    return table


@dataclass(frozen=True)
class TradeoffStudy:
    """What a trade-off study found; ``str`` gives it as text.

    Attributes
    ----------
    rows : list of dict
        One for each variant and batch size, in SI units.
    gains : list of dict
        Times less latency and energy than each baseline, with intervals.
    decisions : list of dict
        For each batch size what to ship by the rule, and why.
    claims : list of dict
        Widely repeated claims against what was measured.
    requirements : list of dict
        For each batch size which variants meet the user's requirements, the fastest first, and why others do not.
    notes : list of str
        What else to know.
    system : dict
        The machine.
    """

    rows: list[dict[str, Any]]
    gains: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    requirements: list[dict[str, Any]]
    notes: list[str]
    system: dict[str, Any]

    def write(self, folder: str | Path) -> list[Path]:
        """Write ``hardware_tradeoffs.csv`` and ``hardware_tradeoffs_summary.json``, and return their paths."""
        folder = Path(folder)
        flat = [{k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()} for row in self.rows]
        parts = ("gains", "decisions", "claims", "requirements", "notes", "system")
        rule = "INT8 pays if accuracy falls by less than 1 point and latency by more than 20 %, both by 95 % intervals"
        summary = json_safe({"rule": rule, **{name: getattr(self, name) for name in parts}}, "study")
        files = {
            folder / "hardware_tradeoffs.csv": csv_text(flat),
            folder / "hardware_tradeoffs_summary.json": json.dumps(summary, indent=1, ensure_ascii=False) + "\n",
        }
        for path, text in files.items():
            write_text(path, text)
        return list(files)

    def tables(self) -> dict[str, list[dict[str, str]]]:
        """Return what a reader wants first, as tables of text by caption."""
        speed = {(g["batch_size"], g["variant"], g["baseline"]): g for g in self.gains if g["metric"] == "latency"}

        def gain(row: Mapping[str, Any], baseline: str) -> str:
            found = speed.get((row["batch_size"], row["variant"], baseline))
            return f"{found['gain']:.2f} ({found['gain_ci'][0]:.2f}–{found['gain_ci'][1]:.2f})" if found else "–"

        measured = [
            {
                "batch": str(row["batch_size"]),
                "variant": row["variant"],
                "latency (µs)": f"{row['latency'] * 1e6:.1f}",
                "× scikit-learn": gain(row, SKLEARN),
                "× ONNX FP32": gain(row, FP32),
                "accuracy": f"{row['accuracy']:.4f}",
                "with noise": f"{row['accuracy_with_noise']:.4f}",
                "largest difference": f"{row['largest_difference']:.2g}",
                "file (kB)": f"{row['file_size'] / 1e3:.0f}",
                "GB/s": f"{row['effective_bandwidth'] / 1e9:.1f}",
            }
            for row in self.rows
        ]
        decided = [
            {"batch": str(d["batch_size"]), "ship": d["ship"], **{n: r["verdict"] for n, r in d["rule"].items()}}
            for d in self.decisions
        ]
        return {"measured": measured, "by the rule": decided, "claims": self.claims}

    def __str__(self) -> str:
        """Return tables, requirements and notes."""
        lines = []
        for caption, rows in self.tables().items():
            lines += [caption, textwrap.indent(Table(rows).text(), "  "), ""]
        for entry in self.requirements:
            lines.append(f"batch {entry['batch_size']}, requirements: {', '.join(entry['meet']) or 'none meets them'}")
            lines += [f"  {name}: {'; '.join(why)}" for name, why in entry["broken"].items()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)]).rstrip()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        tables = [Table(rows, caption) for caption, rows in self.tables().items()]
        notes = [Table({"note": note} for note in self.notes)] if self.notes else []
        return {"text/plain": str(self), "text/html": "".join(table.html() for table in [*tables, *notes])}


def tradeoff_study(
    model: Any,
    X: Any,
    y: Any,
    *,
    calibration: Any = None,
    batch_sizes: Sequence[int] = (1, 32, 256),
    rounds: int = 25,
    threads: int = 1,
    noise: float = 0.1,
    requirements: Requirements | None = None,
    memory_repeats: int = 1,
    out: str | Path | None = None,
    seed: int = 0,
    progress: Callable[[str], Any] | None = None,
) -> TradeoffStudy:
    """Compare a classifier in scikit-learn, NumPy, ONNX FP32 and INT8: dynamic, static, and per channel.

    Parameters
    ----------
    model
        A fitted scikit-learn classifier or pipeline with ``predict_proba``.
    X, y
        Rows in use of shape (n, features), and their labels; not those it was fitted on.
    calibration
        Rows for static INT8; by default the first quarter of `X`, at most 512, which then do not count for accuracy.
    batch_sizes
        Rows in a call.
    rounds
        Shuffled rounds for each batch size, at least 6.
    threads
        Threads of every engine.
    noise
        For accuracy under noise: its standard deviation over that of each feature.
    requirements
        What the user demands; see `Requirements`.
    memory_repeats
        Fresh processes for the memory of each variant; 0 for no memory.
    out
        Folder for the models and for what `TradeoffStudy.write` writes; None to write nothing.
    seed
        Of orders and noise.
    progress
        Called with a line of text at each step.

    Returns
    -------
    TradeoffStudy

    Raises
    ------
    TypeError
        If the model is no classifier with probabilities, or cannot be converted.
    ValueError
        If the rows do not fit or are not finite, a weight is NaN, or the converted model answers otherwise.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    say = progress or (lambda text: None)
    X, y = np.asarray(as_input(X), np.float32), np.asarray(y)
    if X.ndim != 2 or len(X) != len(y) or not np.isfinite(X).all():
        raise ValueError(f"X of shape {X.shape} and {len(y)} labels: two dimensions, a label a row, no NaN expected")
    if rounds < 6 or not batch_sizes or min(batch_sizes) < 1:
        raise ValueError(
            f"rounds is {rounds} and batch_sizes {batch_sizes}; at least 6 rounds, and batches of 1 or more"
        )
    if calibration is None:
        held = min(512, len(X) // 4)
        calibration, X, y = X[:held], X[held:], y[held:]
    notes: list[str] = []
    rows: list[dict[str, Any]] = []
    gains: list[dict[str, Any]] = []
    decisions: list[dict[str, Any]] = []
    met: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary, threadpool_limits(limits=threads):
        folder = Path(temporary) if out is None else Path(out, "models")
        folder.mkdir(parents=True, exist_ok=True)
        say("converting and quantising")
        variants = study_variants(model, X, np.asarray(calibration, np.float32), folder, threads, notes)
        accuracy = study_accuracy(variants, X, y, np.asarray(model.classes_), noise, seed)
        sizes = {name: model_size(variant.file) for name, variant in variants.items()}
        largest = np.resize(X, (max(batch_sizes), X.shape[1]))
        memory: dict[str, dict[str, Any]] = {name: {} for name in variants}
        for name, variant in variants.items():
            if memory_repeats:
                say(f"memory of {name}, in fresh processes")
                memory[name] = study_memory(variant, largest, memory_repeats)
        for batch in batch_sizes:
            say(f"batch {batch}: {rounds} rounds of {len(variants)} variants")
            columns, latency, energy = study_batch(variants, np.resize(X, (batch, X.shape[1])), rounds, threads, seed)
            for name, variant in variants.items():
                row = {"variant": name, "batch_size": batch, "precision": variant.precision, **columns[name]}
                row |= {**accuracy[name], "file_size": sizes[name], "quantization": variant.note, **memory[name]}
                row["saturates"] = variant.saturates
                working = row.get("memory_model") if batch == max(batch_sizes) else None
                row["memory_pressure"] = (
                    None if working is None else memory_pressure(working, row["throughput"] / batch)
                )
                rows.append(row)
            gains += study_gains(batch, latency, energy)
            decisions.append(study_decision(batch, variants, latency, accuracy))
            if requirements is not None:
                met.append(study_requirements(requirements, [row for row in rows if row["batch_size"] == batch]))
    system = system_info()
    study = TradeoffStudy(rows, gains, decisions, study_claims(gains, sizes, accuracy), met, notes, system)
    if out is not None:
        study.write(out)
    return study


def study_requirements(requirements: Requirements, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return which variants meet the user's requirements, the fastest first, and what the others break."""
    known = ("latency", "latency_p95", "accuracy", "throughput", "energy")
    candidates = []
    for row in rows:
        taken = [row[n] for n in ("memory_import", "memory_load", "memory_first_call") if row.get(n) is not None]
        candidate = {name: row[name] for name in known if row[name] is not None}
        candidates.append({"name": row["variant"], **candidate, **({"memory": sum(taken)} if taken else {})})
    asked = {name.partition("_")[0] for name in requirements.limits()}
    saturating = {row["variant"] for row in rows if row["saturates"]}
    broken = {}
    for candidate in list(candidates):
        missing = [f"its {metric} was not measured" for metric in sorted(asked) if metric not in candidate]
        why = missing or requirements.violations(candidate)
        if candidate["name"] in saturating:
            why = ["its products can saturate on this processor", *why]
        if why:
            broken[candidate["name"]] = why
            candidates.remove(candidate)
    return {
        "batch_size": rows[0]["batch_size"],
        "meet": [row["name"] for row in sorted(candidates, key=lambda row: float(row["latency"]))],
        "broken": broken,
    }
