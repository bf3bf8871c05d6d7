# Written by "autograder export" from modules/12_quantize/12_quantize.ipynb: edit the notebook, not this file.

"""What INT8 gains and costs a classifier on this machine: variants measured side by side, judged by a rule."""

from __future__ import annotations

import json
import tempfile
import textwrap
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.accuracy import difference_interval, mcnemar, recall_per_class, wilson_interval
from tinybench.benchmark import system_info
from tinybench.decisions import (
    sentence_to_act_on,
    study_cautions,
    study_claims,
    study_decision,
    study_gains,
    study_requirements,
)
from tinybench.energy import best_meter, energy_reading, idle_power
from tinybench.latency import as_input, measure_latencies, round_orders
from tinybench.memory import memory_pressure, memory_stages, model_size
from tinybench.onnx import OnnxModel, operator_profile
from tinybench.pareto import Requirements, membership_probability
from tinybench.result import BenchmarkResult, is_interval, json_safe
from tinybench.suite import write_text
from tinybench.support.basics.arguments import check_least, check_positive
from tinybench.support.basics.numbers import number_of, with_ends
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table, csv_text
from tinybench.support.comparisons.ratio_words import gain_text
from tinybench.support.rounds.calls import Call
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.variants import FP32, SKLEARN, load_variant, study_variants

if TYPE_CHECKING:
    from tinybench.variants import Variant


def study_accuracy(
    variants: Mapping[str, Variant], X: np.ndarray, y: np.ndarray, classes: np.ndarray, noise: float, seed: int
) -> tuple[dict[str, dict[str, Any]], dict[str, BenchmarkResult]]:
    """Return each variant's row of accuracies, and its accuracy as a result.

    The row has the accuracy by class and under noise, and how the answers differ from those of FP32. The result knows
    which rows were right.
    """
    rng = np.random.default_rng(seed)
    noisy = X + rng.normal(0, noise, X.shape).astype(np.float32) * X.std(axis=0)
    outputs = {name: np.asarray(variant.call(X)) for name, variant in variants.items()}
    labels = {name: classes[scores.argmax(axis=1)] for name, scores in outputs.items()}
    found, results = {}, {}
    for name, variant in variants.items():
        hits = labels[name] == y
        right = int(np.sum(hits))
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
        notes = {"correct": right, "total": len(y), "right": np.packbits(hits).tobytes().hex(), **machine_notes()}
        results[name] = BenchmarkResult("accuracy", [right / len(y)], notes)
    return found, results


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
    shared = {**meter.details, "measured": meter.measured, "pairing": uuid.uuid4().hex, **machine_notes()}
    results = {n: BenchmarkResult(metric, v, {**shared, "model": n}, unit=meter.unit) for n, v in energy.items()}
    return results, {name: median(values) for name, values in busy.items()}


def study_memory(variant: Variant, x: Any, repeats: int) -> dict[str, Any]:
    """Return bytes of each stage in a fresh process, of the process, and of the model in it; None where not seen."""
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
    """Return rows a second, and effective bandwidth in bytes a second: a lower bound, as no second reading counts.

    Parameters
    ----------
    latency
        Seconds of one call with the whole batch.
    batch_size
        Rows in the batch.
    weight_bytes
        Bytes of the model, read once in a call.
    row_bytes
        Bytes of input and output of one row.

    ValueError if a call took no time, or a number is negative or not finite.
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
    """Return the table's columns at one batch size by variant; latency and energy by round go into `kept`."""
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
    """Return the variants that answer a batch; the notes say why others do not."""
    found = {}
    for name, variant in variants.items():
        try:
            variant.call(x)
            found[name] = variant
        except Exception as error:
            notes.append(f"{name} fails at batch {len(x)} and is left out there: {type(error).__name__}: {error}")
    return found


@dataclass(frozen=True)
class TradeoffStudy:
    """What a trade-off study found; ``str`` gives it as text.

    Attributes
    ----------
    rows : list of dict
        One for each variant and batch size, in SI units; None where something was not seen.
    gains : list of dict
        Times less latency and energy than each baseline, medians of paired ratios with intervals.
    decisions : list of dict
        For each batch size what to ship, in a sentence, and what the rule says of each variant.
    claims : list of dict
        Widely repeated claims against what was measured.
    requirements : list of dict
        For each batch size which variants meet the user's requirements, the fastest first, and why others do not.
    notes : list of str
        What else to know.
    system : dict
        The machine, as the study began.
    cautions : list of str
        Why to read the numbers with care: a busy machine, rounds that depend on one another.
    latencies : dict
        The latency of each variant by batch size and name, round by round.
    accuracies : dict
        The accuracy of each variant, with the rows it gets right.
    """

    rows: list[dict[str, Any]]
    gains: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    requirements: list[dict[str, Any]]
    notes: list[str]
    system: dict[str, Any]
    cautions: list[str] = field(default_factory=list)
    latencies: dict[int, dict[str, BenchmarkResult]] = field(default_factory=dict)
    accuracies: dict[str, BenchmarkResult] = field(default_factory=dict)

    __repr__ = short_repr

    @property
    def sentence(self) -> str:
        """One sentence to act on."""
        return sentence_to_act_on(self.decisions)

    def frontier(self, batch: int) -> list[dict[str, Any]]:
        """Return latency, accuracy and the probability to lie on their frontier, of each file that is no fake."""
        others = {row["variant"] for row in self.rows if row.get("fake") or row.get("optimization", "all") != "all"}
        points = [
            {"model": name, "latency": latency, "accuracy": self.accuracies[name]}
            for name, latency in self.latencies[batch].items()
            if name not in others
        ]
        shares = membership_probability(points)
        return [{**point, "probability": share} for point, share in zip(points, shares, strict=True)]

    def write(self, folder: str | Path) -> list[Path]:
        """Write ``hardware_tradeoffs.csv``, ``…_rounds.csv`` and ``…_summary.json``; return their paths."""
        folder = Path(folder)
        flat = [{k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()} for row in self.rows]
        rounds = [
            {"batch_size": batch, "variant": name, "round": number, "latency": value}
            for batch, by_name in self.latencies.items()
            for name, result in by_name.items()
            for number, value in enumerate(result.values, 1)
        ]
        parts = ("sentence", "gains", "decisions", "claims", "requirements", "cautions", "notes", "system")
        rule = "INT8 pays if accuracy falls by less than 1 point and latency by more than 20 %, both by 95 % intervals"
        summary = json_safe({"rule": rule, **{name: getattr(self, name) for name in parts}}, "study")
        files = {
            folder / "hardware_tradeoffs.csv": csv_text(flat),
            folder / "hardware_tradeoffs_rounds.csv": csv_text(rounds),
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
            if found is None or found["gain"] is None:
                return "–"
            return gain_text(found["gain"], found["gain_ci"])

        def number(row: Mapping[str, Any], name: str, scale: float, form: str) -> str:
            return "–" if row.get(name) is None else f"{row[name] / scale:{form}}"

        def latency(row: Mapping[str, Any]) -> str:
            if row.get("latency") is None:
                return "–"
            return with_ends(row["latency"] * 1e6, [end * 1e6 for end in row.get("latency_ci") or ()], "–")

        measured = [
            {
                "batch": str(row["batch_size"]),
                "variant": row["variant"],
                "latency (µs)": latency(row),
                "× scikit-learn": gain(row, SKLEARN),
                "× ONNX FP32": gain(row, FP32),
                "accuracy": number(row, "accuracy", 1, ".4f"),
                "with noise": number(row, "accuracy_with_noise", 1, ".4f"),
                "largest difference": number(row, "largest_difference", 1, ".2g"),
                "file (kB)": number(row, "file_size", 1e3, ".0f"),
                "GB/s": number(row, "effective_bandwidth", 1e9, ".2g"),
                "what it is": row.get("note") or "–",
            }
            for row in self.rows
        ]
        judged = dict.fromkeys(name for d in self.decisions for name in d["rule"])
        decided = [
            {"batch": str(d["batch_size"]), "ship": d["ship"] or "none"}
            | {name: d["rule"][name]["verdict"] if name in d["rule"] else "–" for name in judged}
            for d in self.decisions
        ]
        return {"measured": measured, "by the rule": decided, "claims": self.claims}

    def __str__(self) -> str:
        """Return the sentence, tables, requirements, cautions and notes."""
        lines = [self.sentence, ""]
        for caption, rows in self.tables().items():
            lines += [caption, textwrap.indent(Table(rows).text(), "  "), ""]
        lines += [f"batch {decision['batch_size']}: {decision['sentence']}" for decision in self.decisions]
        for entry in self.requirements:
            lines.append(f"batch {entry['batch_size']}, requirements: {', '.join(entry['meet']) or 'none meets them'}")
            lines += [f"  {name}: {'; '.join(why)}" for name, why in entry["broken"].items()]
        told = [*(f"caution: {line}" for line in self.cautions), *(f"note: {note}" for note in self.notes)]
        return "\n".join([*lines, *told]).rstrip()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        tables = [Table(rows, caption) for caption, rows in self.tables().items()]
        told = [{"to know": text} for text in [self.sentence, *self.cautions, *self.notes]]
        return {"text/plain": str(self), "text/html": "".join(t.html() for t in [*tables, Table(told)])}


def tradeoff_study(
    model: Any,
    X: Any,
    y: Any,
    *,
    calibration: Any = None,
    batch_sizes: Sequence[int] = (1, 32, 256),
    rounds: int = 30,
    threads: int = 1,
    noise: float = 0.1,
    requirements: Requirements | None = None,
    variants: Sequence[str] = ("*",),
    memory_repeats: int = 1,
    out: str | Path | None = None,
    seed: int = 0,
    progress: Callable[[str], Any] | None = None,
) -> TradeoffStudy:
    """Compare a classifier in scikit-learn, NumPy, ONNX FP32 (at each level of optimisation), FP16 and INT8.

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
        What the user demands; see `Requirements`. Only what meets them is shipped.
    variants
        Names or patterns of those to make, such as ``("NumPy", "INT8*")``; scikit-learn and ONNX FP32 always are.
    memory_repeats
        Fresh processes for the memory of each variant; 0 for no memory.
    out
        Folder for the models and for what `TradeoffStudy.write` writes, after each batch size; None to write nothing.
    seed
        Of orders and noise.
    progress
        Called with a line of text at each step, and every 2 s within one.

    Returns
    -------
    TradeoffStudy

    Raises
    ------
    TypeError
        If the model is no classifier with probabilities, or cannot be converted.
    ValueError
        If the rows do not fit or are not finite, a weight is NaN, or the converted model answers otherwise.

    Notes
    -----
    A variant that fails is left out, and the notes say so. Whatever ends the study early, Ctrl-C or a full disk,
    carries what was measured as its attribute ``study``; it is written to `out`, else to a temporary folder that the
    error's note names.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    say = progress or (lambda text: None)
    X, y = np.asarray(as_input(X), np.float32), np.asarray(y)
    if X.ndim != 2 or len(X) != len(y) or not np.isfinite(X).all():
        raise ValueError(
            f"X has shape {X.shape}, y has length {len(y)}; X needs 2 dimensions and finite values, y a label a row"
        )
    if rounds < 6 or not batch_sizes or min(batch_sizes) < 1:
        raise ValueError(
            f"rounds is {rounds} and batch_sizes {batch_sizes}; at least 6 rounds, and batches of 1 or more"
        )
    if calibration is None:
        held = min(512, len(X) // 4)
        calibration, X, y = X[:held], X[held:], y[held:]
    system = system_info()
    study = TradeoffStudy([], [], [], [], [], [], system)
    load = system["load_average"][0]
    if machine := machine_notes().get("machine"):
        study.cautions.extend(f"the machine, as the study began: {warning}" for warning in machine["warnings"])
    elif load > system["cores"] / 2:
        study.cautions.append(
            f"the load average was {load:.1f} on {number_of(system['cores'], 'core')} as the study began: "
            "other programs ran"
        )
    with tempfile.TemporaryDirectory() as temporary, threadpool_limits(limits=threads):
        folder = Path(temporary) if out is None else Path(out, "models")
        folder.mkdir(parents=True, exist_ok=True)
        say("converting and quantising")
        rows_to_fit = np.asarray(calibration, np.float32)
        forms = study_variants(model, X, rows_to_fit, folder, threads, study.notes, variants)
        columns: dict[str, dict[str, Any]] = {name: {} for name in forms}
        kept: dict[str, Any] = {}
        batch = 0
        try:
            found, accuracies = study_accuracy(forms, X, y, np.asarray(model.classes_), noise, seed)
            study.accuracies.update(accuracies)
            for name, form in forms.items():
                columns[name] = {**found[name], "file_size": model_size(form.file), "quantization": form.note}
                columns[name] |= {"note": form.note, "fake": form.fake, "saturates": form.saturates}
                columns[name]["optimization"] = form.optimization
            largest = np.resize(X, (max(batch_sizes), X.shape[1]))
            for name, form in forms.items() if memory_repeats else ():
                say(f"memory of {name}, in fresh processes")
                try:
                    columns[name] |= study_memory(form, largest, memory_repeats)
                except RuntimeError as error:
                    columns[name]["note_on_memory"] = f"not measured: {error}"
            for batch in batch_sizes:
                say(f"batch {batch}: {number_of(rounds, 'round')} of {number_of(len(forms), 'variant')}")
                rows, kept = np.resize(X, (batch, X.shape[1])), {}
                sound = forms
                try:
                    measured = study_batch(sound, rows, rounds, threads, seed, kept, say)
                except Exception:
                    sound = without_failing(forms, rows, study.notes)
                    if len(sound) == len(forms) or not {SKLEARN, FP32} <= sound.keys():
                        raise
                    measured = study_batch(sound, rows, rounds, threads, seed, kept, say)
                _judge(study, batch, sound, columns, measured, kept, requirements, batch == max(batch_sizes))
                batch, kept = 0, {}
                if out is not None:
                    study.write(out)
        except BaseException as error:
            _keep(study, error, out, batch, forms, columns, kept, say)
            raise
    return study


def _judge(
    study: TradeoffStudy,
    batch: int,
    forms: Mapping[str, Variant],
    columns: Mapping[str, Mapping[str, Any]],
    measured: Mapping[str, Mapping[str, Any]],
    kept: Mapping[str, Any],
    requirements: Requirements | None,
    is_largest: bool,
) -> None:
    """Add rows, gains, decision and cautions of one batch size to a study."""
    latency, real = kept["latency"], {name: form for name, form in forms.items() if not form.fake}
    rows = []
    for name, form in forms.items():
        row = {"variant": name, "batch_size": batch, "precision": form.precision, **measured[name], **columns[name]}
        working = row.get("memory_steady") if is_largest else None  # what a warm call adds, at the batch it was seen
        row["memory_pressure"] = None if working is None else memory_pressure(working, row["throughput"] / batch)
        rows.append(row)
    gains = study_gains(batch, latency, kept["energy"], forms.keys() - real.keys())
    met = None if requirements is None else study_requirements(requirements, rows)
    study.latencies[batch] = latency
    study.rows.extend(rows)
    study.gains.extend(gains)
    study.requirements.extend([] if met is None else [met])
    study.decisions.append(study_decision(batch, forms, latency, columns, met))
    study.cautions.extend(study_cautions(batch, latency, gains))
    study.claims[:] = study_claims(study.gains, {name: columns[name]["file_size"] for name in real}, columns)


def _keep(
    study: TradeoffStudy,
    error: BaseException,
    out: str | Path | None,
    batch: int,
    forms: Mapping[str, Variant],
    columns: Mapping[str, Mapping[str, Any]],
    kept: Mapping[str, Any],
    say: Callable[[str], Any],
) -> None:
    """Add the complete rounds of a study that ends early, attach it to the error, write it, and say where."""
    latency = kept.get("latency") or getattr(error, "results", {})
    if latency:
        study.latencies[batch] = dict(latency)
        rounds = number_of(next(iter(latency.values())).count, "round")
        study.cautions.append(f"batch {batch}: {rounds}, then the study was stopped")
    if latency or not study.rows:
        for name, form in forms.items():
            row: dict[str, Any] = {"variant": name, "batch_size": batch or None, "precision": form.precision}
            if name in latency:
                row |= {"latency": latency[name].median}
            study.rows.append({**row, **columns[name]})
    vars(error)["study"] = study
    for folder in [out, None] if out is not None else [None]:
        try:
            where = Path(folder or tempfile.mkdtemp(prefix="tinybench-study-"))
            study.write(where)
        except OSError:
            continue
        error.add_note(f"what was measured before is in {where} and in error.study")
        say(f"stopped; what was measured before is in {where}")
        return
    error.add_note("what was measured before could not be written; it is in error.study")
