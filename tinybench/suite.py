# Written by "autograder export" from modules/10_suite/10_suite.ipynb: edit the notebook, not this file.

"""A whole study of several models: measured in pieces that survive, then tables, figures and a report."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tinybench.accuracy import (
    checked_outputs,
    difference_interval,
    known_classes,
    mcnemar,
    named_datasets,
    output_kind,
    predicted_labels,
)
from tinybench.benchmark import Benchmark, system_info
from tinybench.comparison import compare, holm
from tinybench.latency import Clock, as_callable
from tinybench.memory import model_size
from tinybench.pareto import (
    DIRECTIONS,
    Requirements,
    as_rows,
    central,
    interval,
    membership_probability,
    pareto_frontier,
)
from tinybench.pareto import plot_pareto_frontier as draw_points
from tinybench.result import BenchmarkResult, scale_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = dict[str, dict[str, BenchmarkResult]]
_METRICS = ("latency", "throughput", "accuracy", "memory", "energy")
_LATENCY_PARTS = 5


def write_text(path: Path, text: str) -> None:
    """Write a file so that at every moment the old or the new one is there, whole.

    Parameters
    ----------
    path
        The file; its folder is made where it is missing.
    text
        Its content, written in UTF-8.

    Raises
    ------
    OSError
        If the folder cannot be written; the message has the path and what to do.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(f"cannot write {path} ({error.strerror}); choose another output_dir") from error


def merge_results(parts: Sequence[BenchmarkResult]) -> BenchmarkResult:
    """Return the parts of one measurement as one result.

    Parameters
    ----------
    parts
        Results of one metric and model, in order.

    Returns
    -------
    BenchmarkResult
        All values in order. Metadata and ``confidence`` are the first part's; where there are ``round_orders``
        they are joined, and where there is a ``pairing`` it becomes a digest of the parts' pairings: results merged
        from the same rounds have the same one.

    Raises
    ------
    ValueError
        If there is no part, or metric, unit or processor (``metadata["system"]["cpu"]``) differ.
    """
    if not parts:
        raise ValueError("no parts to merge; a result has at least one")
    first = parts[0]
    kinds = {(p.metric_name, p.unit, p.metadata.get("system", {}).get("cpu")) for p in parts}
    if len(kinds) > 1:
        raise ValueError(f"parts differ in metric, unit or processor: {sorted(map(str, kinds))}; measure afresh")
    metadata = dict(first.metadata)
    if "pairing" in metadata:
        together = "".join(str(part.metadata["pairing"]) for part in parts)
        metadata["pairing"] = hashlib.sha256(together.encode()).hexdigest()[:32]
    if "round_orders" in metadata:
        metadata["round_orders"] = [order for part in parts for order in part.metadata["round_orders"]]
    values = [value for part in parts for value in part.values]
    return BenchmarkResult(first.metric_name, values, metadata, first.unit, first.confidence)


def run_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each measurement.

    Parameters
    ----------
    results
        Results by metric and model.

    Returns
    -------
    list of dict
        ``metric``, ``model``, ``run`` (from 0), ``value`` (unrounded, in ``unit``), ``unit``, ``measured``.
    """
    return [
        {"metric": m, "model": name, "run": run, "value": value, "unit": result.unit, "measured": result.measured}
        for m, by_model in results.items()
        for name, result in by_model.items()
        for run, value in enumerate(result.values)
    ]


def summary_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each metric and model.

    Parameters
    ----------
    results
        Results by metric and model.

    Returns
    -------
    list of dict
        ``metric``, ``model``, ``unit``, ``measured``, ``count``, ``mean``, ``std``, ``median``, ``min_val``,
        ``max_val``; then ``value`` (see `tinybench.pareto.central`) with ``lower`` and ``upper`` (see
        `tinybench.pareto.interval`), and ``interval``: ``"Wilson"``, ``"median"``, or ``"range"`` below 6
        measurements.
    """
    rows = []
    for metric, by_model in results.items():
        for name, result in by_model.items():
            lower, upper = interval(result)
            kind = "Wilson" if "total" in result.metadata else "median" if result.count >= 6 else "range"
            row = {"metric": metric, "model": name, "unit": result.unit, "measured": result.measured}
            row |= {key: getattr(result, key) for key in ("count", "mean", "std", "median", "min_val", "max_val")}
            rows.append({**row, "value": central(result), "lower": lower, "upper": upper, "interval": kind})
    return rows


def rows_right(model: Any, datasets: Any) -> np.ndarray:
    """Return for each row of all datasets whether a classifier labels it correctly, as `measure_accuracy` counts it."""
    named, call = named_datasets(datasets), as_callable(model)
    outputs = {name: checked_outputs(call(inputs), len(y), name) for name, (inputs, y) in named.items()}
    everything = np.concatenate(list(outputs.values()))
    kind = output_kind(everything)
    classes = known_classes(model, kind, everything, named)
    right = [predicted_labels(outputs[name], kind, classes) == y for name, (_, y) in named.items()]
    return np.concatenate(right)


def compare_pair(metric: str, names: tuple[str, str], a: BenchmarkResult, b: BenchmarkResult) -> dict[str, Any] | None:
    """Compare two results of one metric by the test that fits them.

    Parameters
    ----------
    metric
        Their metric.
    names
        Their models.
    a, b
        The results. Accuracies with ``metadata["right"]`` (the bits of `rows_right`, as hexadecimal text) are
        compared row by row.

    Returns
    -------
    dict or None
        ``metric``, ``model_a``, ``model_b``; ``ratio`` (a / b) and ``difference`` (a − b, in ``unit``) with their
        ``_lower`` and ``_upper``; ``p`` (uncorrected), ``cohens_d``, ``paired``, ``test``, ``verdict`` (of a,
        seen from b). None where there is no test.
    """
    row: dict[str, Any] = {"metric": metric, "model_a": names[0], "model_b": names[1], "unit": a.unit}
    row |= dict.fromkeys(f"{what}{end}" for what in ("ratio", "difference") for end in ("", "_lower", "_upper"))
    if "right" in a.metadata and "right" in b.metadata:
        right = [np.frombuffer(bytes.fromhex(r.metadata["right"]), np.uint8) for r in (a, b)]
        bits = [np.unpackbits(packed)[: a.metadata["total"]].astype(bool) for packed in right]
        found = mcnemar(np.ones(len(bits[0]), bool), *bits)
        lower, upper = difference_interval(found.only_a, found.only_b, found.rows)
        verdict = "undecided" if found.p_value >= 0.05 else "higher" if found.difference > 0 else "lower"
        row |= {"difference": found.difference, "difference_lower": lower, "difference_upper": upper}
        return row | {"p": found.p_value, "cohens_d": None, "paired": True, "test": "McNemar", "verdict": verdict}
    if "total" in a.metadata or a.measured != b.measured or a.unit != b.unit or min(a.count, b.count) < 2:
        return None
    same_input = a.metadata.get("input_shape") == b.metadata.get("input_shape")
    comparison = compare(a, b, names=names, allow=() if same_input else ("shape",))
    row |= {"ratio": comparison.ratio, "ratio_lower": comparison.ratio_ci[0], "ratio_upper": comparison.ratio_ci[1]}
    row |= {"difference": comparison.difference, "p": comparison.p_value, "cohens_d": comparison.effect_size}
    row["difference_lower"], row["difference_upper"] = comparison.difference_ci
    test = "sign test" if comparison.paired else "Welch"
    return row | {"paired": comparison.paired, "test": test, "verdict": comparison.verdict.partition(":")[0]}


def comparison_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each metric and pair of models that can be tested.

    Parameters
    ----------
    results
        Results by metric and model.

    Returns
    -------
    list of dict
        What `compare_pair` returns, and ``p_holm``: corrected over the tested pairs of the metric. Where it
        is not below 0.05, the ``verdict`` is ``"undecided"``.
    """
    rows = []
    for metric, by_model in results.items():
        pairs = [compare_pair(metric, (a, b), by_model[a], by_model[b]) for a, b in combinations(by_model, 2)]
        tested = [pair for pair in pairs if pair is not None]
        for row, p_holm in zip(tested, holm([row["p"] for row in tested]), strict=True):
            verdict = row["verdict"] if p_holm < 0.05 else "undecided"
            rows.append({**row, "p_holm": p_holm, "verdict": verdict})
    return rows


def best_by_dimension(results: Results) -> dict[str, dict[str, Any]]:
    """Return for each metric the best model, and who cannot be told apart from it.

    Parameters
    ----------
    results
        Results by metric and model; `tinybench.pareto.DIRECTIONS` says which way is better.

    Returns
    -------
    dict
        For each metric ``model``, ``value``, ``lower``, ``upper``, ``unit``, ``measured``, and ``tied``: the
        other models for which `comparison_rows` is undecided against the best, or without such a row, whose
        interval overlaps the best one's. Where some models are measured and others estimated, the measured
        ones alone compete.
    """
    verdicts = {(r["metric"], frozenset((r["model_a"], r["model_b"]))): r["verdict"] for r in comparison_rows(results)}
    best = {}
    for metric, by_model in results.items():
        measured = {name: result for name, result in by_model.items() if result.measured}
        competing = measured or by_model
        sign = -1 if DIRECTIONS[metric] == "max" else 1
        values = {name: sign * central(result) for name, result in competing.items()}
        winner = min(values, key=lambda name: values[name])
        lower, upper = interval(competing[winner])
        tied = []
        for name, result in competing.items():
            low, high = interval(result)
            overlapping = "undecided" if low <= upper and high >= lower else "apart"
            if name != winner and verdicts.get((metric, frozenset((winner, name))), overlapping) == "undecided":
                tied.append(name)
        champion = competing[winner]
        row = {"model": winner, "value": central(champion), "lower": lower, "upper": upper}
        best[metric] = row | {"unit": champion.unit, "measured": champion.measured, "tied": tied}
    return best


def dashboard_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each model, in units for people.

    Parameters
    ----------
    results
        Results by metric and model, in SI units.

    Returns
    -------
    list of dict
        ``model``, ``latency_ms`` (median), ``latency_p95_ms``, ``throughput_qps`` (median), ``accuracy``,
        ``memory_mb`` (10⁶ bytes, median), ``energy_mj`` (median; None where the unit is not joules),
        ``energy_measured``; in this order, the models in the order in which they appear. None where there is no
        result.
    """

    def value(metric: str, model: str, factor: float = 1.0, q: float = 50, unit: str = "") -> float | None:
        result = results.get(metric, {}).get(model)
        if result is None or (unit and result.unit != unit):
            return None
        return (central(result) if metric == "accuracy" else result.percentile(q)) / factor

    rows = []
    for model in dict.fromkeys(name for by_model in results.values() for name in by_model):
        energy = results.get("energy", {}).get(model)
        rows.append(
            {
                "model": model,
                "latency_ms": value("latency", model, 1e-3),
                "latency_p95_ms": value("latency", model, 1e-3, q=95),
                "throughput_qps": value("throughput", model),
                "accuracy": value("accuracy", model),
                "memory_mb": value("memory", model, 1e6),
                "energy_mj": value("energy", model, 1e-3, unit="J"),
                "energy_measured": energy.measured if energy and energy.unit == "J" else None,
            }
        )
    return rows


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header; None and NaN are empty, and text that a spreadsheet would run gets a quote."""
    if not rows:
        return ""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return stream.getvalue()


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value


def plot_metric(metric: str, by_model: Mapping[str, BenchmarkResult]) -> Figure:
    """Draw every measurement of one metric, and each model's value with its interval."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    white = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    results = list(by_model.values())
    factor, unit = scale_unit(float(np.median([abs(central(result)) for result in results])), results[0].unit)
    if metric == "accuracy":
        factor, unit = 0.01, "%"
    figure = Figure(figsize=(7, 0.6 * len(results) + 1.5), layout="constrained")
    axes = figure.subplots()
    for row, result in enumerate(results):
        if result.count > 1:
            height = row + np.linspace(-0.24, 0.24, result.count)
            axes.plot(np.array(result.values) / factor, height, ".", color="#0072B2", alpha=0.35, zorder=1)
        lower, value, upper = (
            number / factor for number in (interval(result)[0], central(result), interval(result)[1])
        )
        error = [[max(0.0, value - lower)], [max(0.0, upper - value)]]
        axes.errorbar(
            value, row, xerr=error, fmt="D", color="#D55E00", ecolor="black", markersize=7, capsize=7, zorder=2
        )
        text = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
        axes.annotate(
            text, (value, row), (0, 15), textcoords="offset points", ha="center", va="center", fontsize=9, bbox=white
        )
    values = [value for result in results for value in result.values]
    if min(values) > 0 and max(values) > 20 * min(values):
        axes.set_xscale("log")
        few_decades = max(values) < 300 * min(values)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few_decades else (1,), numticks=12))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.12g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    estimate = "" if all(result.measured for result in results) else ", estimated"
    better = "lower is better" if DIRECTIONS[metric] == "min" else "higher is better"
    axes.set_xlabel(f"{metric}{estimate}{f' ({unit})' if unit else ''}, {better}")
    axes.set_yticks(range(len(results)), list(by_model))
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.4)
    return figure


class BenchmarkSuite:
    """A study of several models in one folder.

    Parameters
    ----------
    models
        See `tinybench.benchmark.name_models`.
    datasets
        A pair ``(X, y)`` or several, see `tinybench.accuracy.measure_accuracy`.
    output_dir
        Folder of the study.
    inputs
        What latency, memory and energy are measured on; by default the first row of the first dataset.
    warmup_runs, measurement_runs
        Untimed calls before, and rounds of latency. Throughput takes a third as many rounds, memory and energy a
        tenth, at least 6.
    batch_sizes
        For the throughput.
    meter
        See `tinybench.energy.measure_energy`.
    seed
        Seed of the orders.
    clock, progress
        See `tinybench.benchmark.Benchmark`.

    Attributes
    ----------
    results : dict
        Results by metric and model, once `run_full_benchmark` has run.

    Raises
    ------
    ValueError
        If there is no model or no dataset, or two models have one name.
    """

    def __init__(
        self,
        models: Mapping[str, Any] | Sequence[Any],
        datasets: Any,
        output_dir: str | Path = "benchmark_results",
        *,
        inputs: Any = None,
        warmup_runs: int = 5,
        measurement_runs: int = 100,
        batch_sizes: Sequence[int] = (1, 16, 256),
        meter: Any = None,
        seed: int | None = 0,
        clock: Clock | None = None,
        progress: Any = "bar",
    ) -> None:
        first = next(iter(named_datasets(datasets).values()))
        self.models = Benchmark(models, progress=None).models
        self.datasets, self.output_dir = datasets, Path(output_dir)
        self.rows = np.asarray(first[0])
        self.inputs = self.rows[:1] if inputs is None else inputs
        self.measurement_runs, self.batch_sizes, self.meter = measurement_runs, tuple(batch_sizes), meter
        self.seed, self.warmup_runs = seed, warmup_runs
        self.options: dict[str, Any] = {"warmup_runs": warmup_runs, "progress": progress}
        self.options |= {"clock": clock} if clock is not None else {}
        self.results: Results = {}

    def plan(self) -> dict[str, Any]:
        """Return what makes this study this study: models and their answers, data, settings, processor."""
        system = system_info()
        data = hashlib.sha256()
        for inputs, y in named_datasets(self.datasets).values():
            data.update(np.ascontiguousarray(inputs).tobytes() + np.ascontiguousarray(y).tobytes())
        return {
            **{f"model {name}": self._answers(model) for name, model in self.models.items()},
            "data": data.hexdigest()[:16],
            "input shape": [int(size) for size in np.shape(self.inputs)],
            "warmup_runs": self.warmup_runs,
            "measurement_runs": self.measurement_runs,
            "batch_sizes": list(self.batch_sizes),
            "seed": self.seed,
            "processor": f"{system['cpu']}, {system['cores']} cores",
        }

    def _answers(self, model: Any) -> str:
        """Return the model's type and a digest of its labels for up to 256 rows: a model fitted anew has another."""
        outputs = np.asarray(as_callable(model)(self.rows[:256]))
        labels = outputs.argmax(axis=1) if outputs.ndim > 1 else outputs
        return f"{type(model).__name__} {hashlib.sha256(str(labels.tolist()).encode()).hexdigest()[:16]}"

    def pieces(self) -> list[str]:
        """Return the names of the pieces in the order in which they are measured: latency spread over the study."""
        parts = [f"latency-{part}" for part in range(min(_LATENCY_PARTS, self.measurement_runs))]
        others = ["accuracy", "throughput", "memory", "energy"]
        turns = [[*parts[index : index + 1], *others[index : index + 1]] for index in range(_LATENCY_PARTS)]
        return [piece for turn in turns for piece in turn]

    def _each(self, pieces: Sequence[str]) -> Iterable[str]:
        return Benchmark(self.models, **self.options)._each(pieces, "study")

    def _measure(self, piece: str) -> dict[str, BenchmarkResult]:
        metric, _, part = piece.partition("-")
        if metric == "latency":
            parts = min(_LATENCY_PARTS, self.measurement_runs)
            runs = self.measurement_runs // parts + (int(part) < self.measurement_runs % parts)
            seed = None if self.seed is None else self.seed + int(part)
            bench = Benchmark(self.models, measurement_runs=runs, seed=seed, **self.options)
            return bench.run_latency_benchmark(inputs=self.inputs)
        few = max(6, self.measurement_runs // (3 if metric == "throughput" else 10))
        options = {**self.options, "measurement_runs": few, "seed": self.seed}
        bench = Benchmark(self.models, self.datasets, **options)
        if metric == "accuracy":
            found = bench.run_accuracy_benchmark()
            for name, result in found.items():
                result.metadata["right"] = np.packbits(rows_right(self.models[name], self.datasets)).tobytes().hex()
            return found
        if metric == "throughput":
            return bench.run_throughput_benchmark(self.batch_sizes, rows=self.rows)
        if metric == "memory":
            found = bench.run_memory_benchmark(inputs=self.inputs)
            for name, result in found.items():
                result.metadata["model_bytes"] = _size_or_none(self.models[name])
            return found
        return bench.run_energy_benchmark(inputs=self.inputs, meter=self.meter)

    def run_full_benchmark(self, resume: bool = False) -> Results:
        """Measure everything, piece by piece, and write each piece when it is done.

        Parameters
        ----------
        resume
            Keep the pieces of an interrupted run of the same study and measure the missing ones. Otherwise earlier
            pieces move to ``measurements.1`` (2, 3 …), nothing is deleted.

        Returns
        -------
        dict
            ``{metric: {model: BenchmarkResult}}``; also written as tables, see `write_tables`.

        Raises
        ------
        ValueError
            If `resume` meets the pieces of another study; the message says what differs.
        OSError
            If the folder cannot be written.
        """
        folder = self.output_dir / "measurements"
        plan_file = folder / "plan.json"
        if resume and plan_file.is_file():
            self._check_same_study(json.loads(plan_file.read_text(encoding="utf-8")))
        elif folder.is_dir() and any(folder.iterdir()):
            number = 1
            while (self.output_dir / f"measurements.{number}").exists():
                number += 1
            folder.rename(self.output_dir / f"measurements.{number}")
        write_text(plan_file, json.dumps(self.plan(), indent=1))
        write_text(self.output_dir / "system.json", json.dumps(system_info(), indent=1))
        for piece in self._each([piece for piece in self.pieces() if not (folder / f"{piece}.json").is_file()]):
            measured = {name: result.to_dict() for name, result in self._measure(piece).items()}
            write_text(folder / f"{piece}.json", json.dumps(measured))
        self.results = self.load()
        self.write_tables()
        return self.results

    def _check_same_study(self, earlier: Mapping[str, Any]) -> None:
        """Raise ValueError if an earlier plan is not this study's; the message says in what."""
        mine = self.plan()
        differing = [key for key in {**earlier, **mine} if mine.get(key) != earlier.get(key)]
        if differing:
            listed = "; ".join(f"{key} was {earlier.get(key)}, is {mine.get(key)}" for key in differing)
            raise ValueError(
                f"{self.output_dir} holds another study ({listed}); choose another output_dir, or resume=False"
            )

    def load(self) -> Results:
        """Return what has been measured so far, also by a run that was killed.

        Returns
        -------
        dict
            ``{metric: {model: BenchmarkResult}}``, the parts of a metric merged; latency first, then throughput,
            accuracy, memory and energy; no metric that has not been measured.
        """
        parts: dict[str, dict[str, list[BenchmarkResult]]] = {metric: {} for metric in _METRICS}
        for piece in self.pieces():
            file = self.output_dir / "measurements" / f"{piece}.json"
            if file.is_file():
                for name, data in json.loads(file.read_text(encoding="utf-8")).items():
                    parts[piece.partition("-")[0]].setdefault(name, []).append(BenchmarkResult.from_dict(data))
        return {
            metric: {name: merge_results(results) for name, results in by_model.items()}
            for metric, by_model in parts.items()
            if by_model
        }

    def _measured(self) -> Results:
        self.results = self.results or self.load()
        if not self.results:
            raise ValueError(f"nothing is measured in {self.output_dir} yet; call run_full_benchmark() first")
        return self.results

    def write_tables(self) -> list[Path]:
        """Write the tables of what has been measured, and return their paths.

        ``benchmark_runs.csv`` has the columns of `run_rows`, ``benchmark_summary.csv`` of `summary_rows`,
        ``comparisons.csv`` of `comparison_rows`, ``benchmark_dashboard.csv`` of `dashboard_rows`;
        ``benchmark_summary.json`` is what `best_by_dimension` returns.
        """
        results = self._measured()
        texts = {
            "benchmark_runs.csv": csv_text(run_rows(results)),
            "benchmark_summary.csv": csv_text(summary_rows(results)),
            "comparisons.csv": csv_text(comparison_rows(results)),
            "benchmark_dashboard.csv": csv_text(dashboard_rows(results)),
            "benchmark_summary.json": json.dumps(best_by_dimension(results), indent=1, ensure_ascii=False),
        }
        for name, text in texts.items():
            write_text(self.output_dir / name, text)
        return [self.output_dir / name for name in texts]

    def _save(self, figure: Figure, name: str) -> None:
        self.output_dir.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.output_dir / name, dpi=130)

    def plot_results(self, save_plots: bool = True) -> dict[str, Figure]:
        """Return a figure for each metric; with `save_plots` also written as ``benchmark_<metric>.png``."""
        figures = {metric: plot_metric(metric, by_model) for metric, by_model in self._measured().items()}
        for metric, figure in figures.items() if save_plots else ():
            self._save(figure, f"benchmark_{metric}.png")
        return figures

    def generate_pareto_frontier(self, x_metric: str = "latency", y_metric: str = "accuracy") -> list[dict[str, Any]]:
        """Return one row for each model: how two metrics trade off.

        Parameters
        ----------
        x_metric, y_metric
            Two metrics that were measured.

        Returns
        -------
        list of dict
            ``model``, the two results by metric, ``on_frontier``, and ``probability`` of being on it given the
            scatter.

        Raises
        ------
        ValueError
            If a metric was not measured; the message has those that were.
        """
        results = self._measured()
        for metric in (x_metric, y_metric):
            if metric not in results:
                raise ValueError(f"{metric!r} was not measured; there are {', '.join(results)}")
        points = as_rows({metric: results[metric] for metric in (x_metric, y_metric)})
        objectives = {metric: DIRECTIONS[metric] for metric in (x_metric, y_metric)}
        frontier = {row["model"] for row in pareto_frontier(points, objectives)}
        shares = membership_probability(points, objectives)
        return [
            {**point, "on_frontier": point["model"] in frontier, "probability": share}
            for point, share in zip(points, shares, strict=True)
        ]

    def plot_pareto_frontier(
        self, x_metric: str = "latency", y_metric: str = "accuracy", save_plots: bool = True
    ) -> Figure:
        """Return the trade-off of two metrics as a figure; with `save_plots` also as ``benchmark_tradeoff.png``."""
        points = self.generate_pareto_frontier(x_metric, y_metric)
        figure = draw_frontier(points, {metric: DIRECTIONS[metric] for metric in (x_metric, y_metric)})
        if save_plots:
            self._save(figure, "benchmark_tradeoff.png")
        return figure

    def generate_report(self, requirements: Requirements | None = None) -> str:
        """Write ``report.md`` and ``report.html`` (one file, opens offline) and return the Markdown.

        Parameters
        ----------
        requirements
            What a model must fulfil; the report then begins with who does.
        """
        results = self._measured()
        figures = {f"benchmark_{metric}.png": figure for metric, figure in self.plot_results().items()}
        if {"latency", "accuracy"} <= set(results):
            figures["benchmark_tradeoff.png"] = self.plot_pareto_frontier()
        sections = report_sections(results, requirements)
        markdown = "# Benchmark report\n\n" + "\n\n".join(_markdown(section, results) for section in sections) + "\n"
        write_text(self.output_dir / "report.md", markdown)
        write_text(self.output_dir / "report.html", html_report(sections, figures, results))
        return markdown


def _size_or_none(model: Any) -> int | None:
    try:
        return model_size(model)
    except (OSError, TypeError):  # a function of the notebook cannot be pickled
        return None


def draw_frontier(points: Sequence[dict[str, Any]], objectives: Mapping[str, str]) -> Figure:
    """Draw rows of `BenchmarkSuite.generate_pareto_frontier`; probabilities are written where one is in doubt."""
    shares = [point["probability"] for point in points]
    doubtful = any(0.01 < share < 0.99 for share in shares)
    return draw_points(points, objectives, probabilities=shares if doubtful else None)


class Section(NamedTuple):
    """One part of a report.

    Parameters
    ----------
    title, text
        Heading, and what to know to read the table.
    rows
        The table: text by column, the first column names the row.
    pictures
        File names of the figures that follow.
    """

    title: str
    text: str
    rows: list[dict[str, str]]
    pictures: list[str]


def report_sections(results: Results, requirements: Requirements | None = None) -> list[Section]:
    """Return the report, part by part, for people."""
    rows = as_rows(results)
    labels = {metric: _label(metric, next(iter(by_model.values()))) for metric, by_model in results.items()}
    best = [
        {
            "dimension": labels[metric],
            "best": row["model"],
            "value": _shown(metric, row["value"], row["unit"]),
            "cannot be told apart from it": "; ".join(row["tied"]) or "–",
        }
        for metric, row in best_by_dimension(results).items()
    ]
    pairs = [_pair_row(row, labels[row["metric"]]) for row in comparison_rows(results)]
    told = "A model that cannot be told apart from the best may be as good: these data do not decide."
    holm_told = "95 % intervals; p values are corrected by Holm. At 0.05 and above a pair is undecided."
    return [
        *([] if requirements is None else [_requirements_section(rows, requirements)]),
        _models_section(results, rows, labels),
        Section("Best in each dimension", told, best, []),
        *(_metric_section(metric, labels[metric], by_model) for metric, by_model in results.items()),
        Section("Comparisons", holm_told, pairs, []),
        _conditions_section(results),
    ]


def _metric_section(metric: str, label: str, by_model: Mapping[str, BenchmarkResult]) -> Section:
    rows = summary_rows({metric: dict(by_model)})
    table = [
        {
            "model": row["model"],
            "value": _shown(metric, row["value"], row["unit"]),
            "interval": " to ".join(_shown(metric, row[end], row["unit"]) for end in ("lower", "upper")),
            "measurements": str(row["count"]),
        }
        for row in rows
    ]
    kinds = {
        "median": "medians with their 95 % order-statistic intervals",
        "Wilson": "shares of all rows with Wilson's 95 % intervals",
        "range": "medians with the range, as fewer than 6 values have no interval",
    }
    shown = "; ".join(kinds[kind] for kind in dict.fromkeys(row["interval"] for row in rows))
    better = "Lower is better" if DIRECTIONS[metric] == "min" else "Higher is better"
    text = (
        f"{better}. Shown are {shown}{'; in the figure each dot is one measurement' if rows[0]['count'] > 1 else ''}."
    )
    return Section(label[0].upper() + label[1:], text, table, [f"benchmark_{metric}.png"])


def _label(metric: str, result: BenchmarkResult) -> str:
    """Return what a metric is called; CPU time, which stands in for energy, by its own name."""
    if metric != "energy":
        return metric
    return f"{result.metric_name.replace('_', ' ')}{'' if result.measured else ' (estimate)'}"


def _requirements_section(rows: Sequence[Mapping[str, Any]], requirements: Requirements) -> Section:
    limits = ", ".join(f"{name} {limit:g}" for name, limit in requirements.limits().items())
    table, meeting = [], []
    for row in rows:
        try:
            broken = requirements.violations(row)
            verdict = "no" if broken else "yes"
        except ValueError as error:
            broken, verdict = [str(error)], "cannot tell"
        meeting += [row["model"]] if verdict == "yes" else []
        table.append({"model": row["model"], "meets them": verdict, "why not": "; ".join(broken) or "–"})
    text = f"Required: {limits or 'nothing'}. Met by {'; '.join(meeting) or 'no model'}."
    return Section("Requirements", text, table, [])


def _models_section(results: Results, rows: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> Section:
    text, chosen, pictures = "Medians; the accuracy is the share of all rows.", set(), []
    if {"latency", "accuracy"} <= set(results):
        objectives = {"latency": DIRECTIONS["latency"], "accuracy": DIRECTIONS["accuracy"]}
        both = [row for row in rows if set(objectives) <= set(row)]
        chosen = {str(row["model"]) for row in pareto_frontier(both, objectives)}
        text += f" On the frontier of latency and accuracy: {'; '.join(sorted(chosen))}."
        if len(chosen) < len(both):
            text += " By these numbers every other model is beaten, or matched in one and beaten in the other."
        pictures.append("benchmark_tradeoff.png")
    table = []
    for row in rows:
        cells = {"model": str(row["model"])} | (
            {"frontier": "yes" if row["model"] in chosen else "no"} if chosen else {}
        )
        for metric in results:
            result = row.get(metric)
            cells[labels[metric]] = "–" if result is None else _shown(metric, central(result), result.unit)
            if metric == "latency":
                cells["95th percentile"] = "–" if result is None else _shown(metric, result.percentile(95), result.unit)
        size = row["memory"].metadata.get("model_bytes") if "memory" in row else None
        table.append(cells | {"size on disk": "–" if size is None else _shown("memory", size, "B")})
    return Section("The models", text, table, pictures)


def _pair_row(row: Mapping[str, Any], label: str) -> dict[str, str]:
    if row["ratio"] is None or math.isnan(row["ratio"]):
        factor, unit = scale_unit(abs(row["difference"]), row["unit"])
        factor, unit = (0.01, "points") if row["metric"] == "accuracy" else (factor, unit)
        low, value, high = (row[f"difference{end}"] / factor for end in ("_lower", "", "_upper"))
        amount = f"{value:+.3g} ({low:+.3g} to {high:+.3g}) {unit}"
    else:
        amount = f"× {row['ratio']:.3g} ({row['ratio_lower']:.3g} to {row['ratio_upper']:.3g})"
    return {
        "pair": f"{row['model_a']} against {row['model_b']}",
        "metric": label,
        "ratio or difference": amount,
        "p after Holm": "< 0.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}",
        "the first is": row["verdict"],
        "test": row["test"],
    }


def _conditions_section(results: Results) -> Section:
    first = next(iter(next(iter(results.values())).values()))
    system: dict[str, Any] = first.metadata.get("system") or system_info()
    pools = ", ".join(map(str, system["threads"].get("pools", []))) or "threads unknown"
    facts = {
        "processor": f"{system['cpu']} ({', '.join(system['cpu_flags']) or 'no vector extensions of note'})",
        "cores this process may use": system["cores"],
        "governor": system["governor"] or "unknown",
        "system": system["platform"],
        "Python": system["python"],
        "libraries": ", ".join(f"{name} {number}" for name, number in system["libraries"].items()),
        "linear algebra and its threads": f"{system['blas']}; {pools}",
        "input": f"{first.metadata.get('input_shape')} {first.metadata.get('input_dtype', '')}",
        "measured from": system["time"],
        "load average then": ", ".join(f"{load:.1f}" for load in system["load_average"] or []) or "unknown",
    }
    rows = [{"condition": name, "value": str(value)} for name, value in facts.items()]
    return Section("Conditions", "The numbers hold under these, and may turn round under others.", rows, [])


def _shown(metric: str, value: float, unit: str) -> str:
    """Return a value for people."""
    if metric == "accuracy":
        return f"{100 * value:.1f} %"
    if metric == "memory" and value == 0:
        return "none added"  # it fitted into what was free already, which is not the same as needing nothing
    factor, name = scale_unit(value, unit)
    number = value / factor
    return f"{number:{',.0f' if number >= 1000 else '.3g'}} {name}".rstrip()


def _markdown(section: Section, results: Results) -> str:
    parts = [f"## {section.title}", section.text]
    if section.rows:
        lines = [list(section.rows[0]), ["---"] * len(section.rows[0]), *(list(row.values()) for row in section.rows)]
        parts.append("\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines))
    parts += [f"![{_alt(name, results)}]({name})" for name in section.pictures]
    return "\n\n".join(parts)


def _alt(picture: str, results: Results) -> str:
    metric = picture.removeprefix("benchmark_").removesuffix(".png")
    if metric not in results:
        return "Accuracy against latency of every model, with the Pareto frontier as a staircase."
    values = "; ".join(f"{name} {_shown(metric, central(r), r.unit)}" for name, r in results[metric].items())
    return f"{metric} of each model: {values}."


_STYLE = """
:root { color-scheme: light dark; --line: #767676; --soft: #f2f2f2; --page: #fff; --ink: #1a1a1a; }
@media (prefers-color-scheme: dark) { :root { --soft: #26282c; --page: #16181b; --ink: #e8e8e8; } }
body { background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { margin: 0 auto; max-width: 62rem; padding: 1rem; }
p { max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem 1rem .3rem 0; text-align: left; vertical-align: top; }
thead th { background: var(--soft); }
tbody th { font-weight: 600; }
figure { margin: 1rem 0 1.5rem; }
img { background: #fff; height: auto; max-width: 100%; width: 720px; }
"""


def html_report(sections: Sequence[Section], figures: Mapping[str, Figure], results: Results) -> str:
    """Return the report as one page that needs no other file."""
    parts = []
    for section in sections:
        title = html.escape(section.title)
        parts.append(f"<h2>{title}</h2>\n<p>{html.escape(section.text)}</p>")
        if section.rows:
            head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in section.rows[0])
            body = "\n".join(_html_row(list(row.values())) for row in section.rows)
            table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
            table = f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">{table}</div>'
            long = len(section.rows) > 30
            parts.append(f"<details><summary>{len(section.rows)} rows</summary>{table}</details>" if long else table)
        for name in section.pictures:
            stream = io.BytesIO()
            figures[name].savefig(stream, format="png", dpi=130)
            source = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
            parts.append(f'<figure><img alt="{html.escape(_alt(name, results))}" src="{source}"></figure>')
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Benchmark report</title>'
        f"<style>{_STYLE}</style></head>\n<body><main>\n<h1>Benchmark report</h1>\n"
        f"{chr(10).join(parts)}\n</main></body>\n</html>\n"
    )


def _html_row(cells: Sequence[str]) -> str:
    first, *rest = (html.escape(cell) for cell in cells)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
