# Written by "autograder export" from modules/10_suite/10_suite.ipynb: edit the notebook, not this file.

"""A study of several models: measurements that survive a crash, then tables, figures and a report.

A study is measured in pieces. Each piece is saved as one file once it is complete.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, wraps
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.accuracy import named_datasets
from tinybench.benchmark import Benchmark, system_info
from tinybench.latency import as_callable
from tinybench.memory import model_size
from tinybench.pareto import DIRECTIONS, Requirements, as_rows, central, interval, visible
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import finite, number_of
from tinybench.support.basics.pages import Page, Section
from tinybench.support.basics.table import csv_text
from tinybench.support.basics.type_checks import check_kinds
from tinybench.support.comparisons.optional_toolbox import corrected
from tinybench.support.conditions.cores import usable_cores
from tinybench.support.metric_tests import compare_pair
from tinybench.support.reports.sections import (
    best_section,
    conditions_section,
    decision_sentence,
    metric_section,
    models_section,
    pairs_section,
    requirements_section,
    shortcomings,
    study_warnings,
)
from tinybench.support.reports.study_figures import (
    Results,
    draw_frontier,
    metric_label,
    picture_of,
    plot_metric,
    tradeoff,
)
from tinybench.support.rounds.checked_calls import Clock

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METRICS = ("latency", "throughput", "accuracy", "memory", "energy")
_LATENCY_PARTS = 5


def write_text(path: Path, text: str) -> None:
    """Write a text to a file in UTF-8, atomically: at every moment, either the old or the new file is complete.

    The text is forced to the disk before the new file takes the place of the old one, so that this also holds if the
    power fails. The file's folder is made if it is missing. If the file cannot be written, raise OSError; the message
    contains the path and the advice to choose another output_dir.
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
        with suppress(OSError):
            temporary.unlink()
        raise OSError(f"cannot write {path} ({error.strerror}); choose another output_dir") from error


def merge_results(parts: Sequence[BenchmarkResult]) -> BenchmarkResult:
    """Merge the parts of one measurement into one result, which holds all values in order.

    Metadata and ``confidence`` are those of the first part, with two exceptions. If there are ``round_orders``, the
    lists of all parts are joined. If there is a ``pairing``, it is replaced by a digest of the pairings of all parts.
    This digest is the same for all results that are merged from the same rounds.

    Raises ValueError if there is no part, or if metric, unit or processor (``metadata["system"]["cpu"]``) differ.
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
    """Return one row for each single measurement in results by metric and model.

    The columns are ``metric``, ``model``, ``run`` (from 0), ``value`` (unrounded, in ``unit``), ``unit``, ``measured``.
    """
    return [
        {"metric": m, "model": name, "run": run, "value": value, "unit": result.unit, "measured": result.measured}
        for m, by_model in results.items()
        for name, result in by_model.items()
        for run, value in enumerate(result.values)
    ]


def summary_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each result.

    The columns are ``metric``, ``model``, ``unit``, ``measured``, ``count``, ``mean``, ``std``, ``median``,
    ``min_val``, ``max_val``; then ``value`` (from `central`) with ``lower`` and ``upper`` (from `interval`), and
    ``interval``, the kind of interval: ``"Wilson"``, ``"median"``, ``"range"`` for fewer than 6 measurements, or
    ``"none"`` if `interval` returns NaN, as for one measurement. An ``undetermined`` number, such as the deviation of
    one measurement, is None.
    """
    rows = []
    for metric, by_model in results.items():
        for name, result in by_model.items():
            lower, upper = interval(result)
            kind = "Wilson" if "total" in result.metadata else "median" if result.count >= 6 else "range"
            kind = "none" if math.isnan(upper) else kind
            row = {"metric": metric, "model": name, "unit": result.unit, "measured": result.measured}
            for key in ("count", "mean", "std", "median", "min_val", "max_val"):
                row[key] = None if key in result.undetermined else getattr(result, key)
            rows.append({**row, "value": central(result), "lower": lower, "upper": upper, "interval": kind})
    return rows


def comparison_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each metric and pair of models that can be tested.

    A row has the columns of `compare_pair`, where ``p`` is the p value, and ``p_corrected``: ``p`` corrected for the
    number of pairs that are tested for the metric (see `corrected`). If ``p_corrected`` is not below 0.05, the
    ``verdict`` is ``"undecided"``.
    """
    rows = []
    for metric, by_model in results.items():
        pairs = [compare_pair(metric, (a, b), by_model[a], by_model[b]) for a, b in combinations(by_model, 2)]
        tested = [pair for pair in pairs if pair is not None]
        for row, p_corrected in zip(tested, corrected([row["p"] for row in tested]), strict=True):
            verdict = row["verdict"] if p_corrected < 0.05 else "undecided"
            rows.append({**row, "p_corrected": p_corrected, "verdict": verdict})
    return rows


def best_by_dimension(results: Results) -> dict[str, dict[str, Any]]:
    """Return the best model for each metric, and the models that cannot be distinguished from the best.

    The result has one dictionary for each metric, with the keys ``model``, ``value``, ``lower``, ``upper``, ``unit``,
    ``measured`` and ``tied``. ``tied`` lists the other models whose comparison with the best model is undecided in
    `comparison_rows`. A model that is not compared there is tied if its interval overlaps the interval of the best
    model. An unknown interval (NaN) cannot separate models.
    `DIRECTIONS` states for each metric whether smaller or larger values are better. If some models are measured and
    others estimated, only the measured ones compete.
    """
    results = visible(results)
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
            overlapping = "apart" if low > upper or high < lower else "undecided"  # NaN cannot separate models
            if name != winner and verdicts.get((metric, frozenset((winner, name))), overlapping) == "undecided":
                tied.append(name)
        champion = competing[winner]
        row = {"model": winner, "value": central(champion), "lower": lower, "upper": upper}
        best[metric] = row | {"unit": champion.unit, "measured": champion.measured, "tied": tied}
    return best


def dashboard_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each model, in readable units, in the order in which the models appear.

    The columns are, in this order, ``model``, ``latency_ms`` (median), ``latency_p95_ms``, ``throughput_qps`` (median),
    ``accuracy``, ``memory_mb`` (10⁶ bytes, median), ``energy_mj`` (median; None if the unit is not joules) and
    ``energy_measured``. A value is None if there is no result, or if the result was not detected (see
    `metric_tests.is_detected`). The 95th percentile is also None for a single measurement.

    Parameters
    ----------
    results
        Results by metric and model, in SI units.
    """
    results = visible(results)

    def value(metric: str, model: str, factor: float = 1.0, q: float = 50, unit: str = "") -> float | None:
        result = results.get(metric, {}).get(model)
        if result is None or (unit and result.unit != unit) or (q != 50 and result.count == 1):
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


def keeping(run: Callable[..., Results]) -> Callable[..., Results]:
    """Wrap a run so that any exception that ends it gets a note on the pieces that were saved.

    Such an exception may be a model's error, a full disk, or Ctrl-C.
    """

    @wraps(run)
    def told(suite: BenchmarkSuite, *args: Any, **options: Any) -> Results:
        before = suite.piece
        try:
            return run(suite, *args, **options)
        except BaseException as error:
            if suite.piece != before:
                error.add_note(suite.kept(getattr(error, "results", {})))
            raise

    return told


class BenchmarkSuite:
    """A study of several models, which keeps its measurements and reports in one folder.

    Parameters
    ----------
    models
        See `tinybench.benchmark.name_models`.
    datasets
        A dataset ``(X, y)`` or several datasets; see `tinybench.accuracy.measure_accuracy`.
    output_dir
        Folder of the study.
    inputs
        Input for latency, memory and energy; by default the first row of the first dataset.
    warmup_runs, measurement_runs
        Number of untimed warm-up calls, and number of latency rounds after the warm-up. Throughput is measured in a
        third as many rounds, memory and energy in a tenth as many, but each in at least 6.
    batch_sizes
        Batch sizes for the throughput.
    meter
        See `tinybench.energy.measure_energy`.
    seed
        Seed for the order of the models in each round.
    clock, progress
        See `tinybench.benchmark.Benchmark`.

    Attributes
    ----------
    results : dict
        Results by metric and model, once `run_full_benchmark` has run.

    Raises
    ------
    ValueError
        If there is no model or no dataset, or two models have the same name.
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
        check_kinds({"output_dir": "str | Path"}, {"output_dir": output_dir})
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
        self.piece = ""  # the latest piece that was begun

    def plan(self) -> dict[str, Any]:
        """Return the facts that identify this study: the models and their answers, the data, settings and processor."""
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
            "processor": f"{_processor()}, {number_of(usable_cores(), 'core')}",
        }

    def _answers(self, model: Any) -> str:
        """Return the model's type and a digest of its labels for up to 256 rows.

        The labels, and so the digest, change if the model is refitted.
        """
        outputs = np.asarray(as_callable(model)(self.rows[:256]))
        labels = outputs.argmax(axis=1) if outputs.ndim > 1 else outputs
        return f"{type(model).__name__} {hashlib.sha256(str(labels.tolist()).encode()).hexdigest()[:16]}"

    def pieces(self) -> list[str]:
        """Return the names of the pieces in the order of measurement.

        The pieces for latency are spread over the study.
        """
        parts = [f"latency-{part}" for part in range(min(_LATENCY_PARTS, self.measurement_runs))]
        others = ["accuracy", "throughput", "memory", "energy"]
        turns = [[*parts[index : index + 1], *others[index : index + 1]] for index in range(_LATENCY_PARTS)]
        return [piece for turn in turns for piece in turn]

    def _each(self, pieces: Sequence[str]) -> Iterable[str]:
        return Benchmark(self.models, **self.options)._each(pieces, "study")

    def kept(self, rounds: Mapping[str, BenchmarkResult] = MappingProxyType({})) -> str:
        """Save the given `rounds`. Return a sentence on the pieces on disk and on how to resume.

        `rounds` holds the complete rounds of the piece that was interrupted.
        """
        folder = self.output_dir / "measurements"
        if rounds:
            with suppress(OSError):
                text = json.dumps({name: result.to_dict() for name, result in rounds.items()})
                write_text(folder / f"{self.piece}.incomplete.json", text)
        done = [piece for piece in self.pieces() if (folder / f"{piece}.json").is_file()]
        broken = folder / f"{self.piece}.incomplete.json"
        more = f"; the complete rounds of {self.piece} are in {broken.name}" if broken.is_file() else ""
        return f"kept in {folder}: {', '.join(done) or 'nothing yet'}{more}; resume=True (--resume) goes on from there"

    def _measure(self, piece: str) -> dict[str, BenchmarkResult]:
        self.piece = piece
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
            return bench.run_accuracy_benchmark()
        if metric == "throughput":
            return bench.run_throughput_benchmark(self.batch_sizes, rows=self.rows)
        if metric == "memory":
            found = bench.run_memory_benchmark(inputs=self.inputs)
            for name, result in found.items():
                result.metadata |= _size_notes(self.models[name])
            return found
        return bench.run_energy_benchmark(inputs=self.inputs, meter=self.meter)

    @keeping
    def run_full_benchmark(self, resume: bool = False) -> Results:
        """Measure everything, write each finished piece and finally the tables, and return the results as `load` does.

        With `resume`, pieces of an interrupted run of the same study are kept, and only missing pieces are measured.
        Otherwise, earlier pieces are moved to the folder ``measurements.1`` (or 2, 3 …), and nothing is deleted. Raises
        ValueError if `resume` finds another study (the message lists the differences), and OSError if the folder cannot
        be written.
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
        """Raise ValueError if an earlier plan differs from this study's plan. The message lists the differences."""
        mine = self.plan()
        differing = [key for key in {**earlier, **mine} if mine.get(key) != earlier.get(key)]
        if differing:
            listed = "; ".join(f"{key} was {earlier.get(key)}, is {mine.get(key)}" for key in differing)
            raise ValueError(
                f"{self.output_dir} holds another study ({listed}); choose another output_dir, or resume=False"
            )

    def load(self) -> Results:
        """Return all results saved so far, even by a killed run, as ``{metric: {model: BenchmarkResult}}``.

        The parts of a metric are merged. The order is that of `_METRICS`, without metrics that have not been measured.
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
        """Write the tables of all results so far, and return their paths.

        ``benchmark_runs.csv`` has the columns of `run_rows`, ``benchmark_summary.csv`` of `summary_rows`,
        ``comparisons.csv`` of `comparison_rows`, ``benchmark_dashboard.csv`` of `dashboard_rows`;
        ``benchmark_summary.json`` holds what `best_by_dimension` returns.
        """
        results = self._measured()
        texts = {
            "benchmark_runs.csv": csv_text(run_rows(results)),
            "benchmark_summary.csv": csv_text(summary_rows(results)),
            "comparisons.csv": csv_text(comparison_rows(results)),
            "benchmark_dashboard.csv": csv_text(dashboard_rows(results)),
            "benchmark_summary.json": json.dumps(finite(best_by_dimension(results)), indent=1, ensure_ascii=False),
        }
        for name, text in texts.items():
            write_text(self.output_dir / name, text)
        return [self.output_dir / name for name in texts]

    def _save(self, figure: Figure, name: str) -> None:
        self.output_dir.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.output_dir / name, dpi=130)

    def plot_results(self, save_plots: bool = True) -> dict[str, Figure]:
        """Return a figure for each metric. With `save_plots`, also write each one as ``benchmark_<metric>.png``."""
        figures = {metric: plot_metric(metric, by_model) for metric, by_model in self._measured().items()}
        for metric, figure in figures.items() if save_plots else ():
            self._save(figure, f"benchmark_{metric}.png")
        return figures

    def generate_pareto_frontier(self, x_metric: str = "latency", y_metric: str = "accuracy") -> list[dict[str, Any]]:
        """Return one row for each model on the trade-off between two metrics.

        Parameters
        ----------
        x_metric, y_metric
            Two metrics that were measured.

        Returns
        -------
        list of dict
            ``model``, the two results by metric, ``on_frontier``, the ``probability`` of being on the frontier (see
            `tinybench.pareto.membership_probability`), and ``beaten_by``: the models that dominate this one. A model is
            left out if one of its two results was not detected (see `metric_tests.is_detected`).

        Raises
        ------
        ValueError
            If a metric was not measured (the message lists the metrics that were), or was not detected for any model.
        """
        results = self._measured()
        for metric in (x_metric, y_metric):
            if metric not in results:
                raise ValueError(f"{metric!r} was not measured; there are {', '.join(results)}")
        return tradeoff(results, x_metric, y_metric)

    def plot_pareto_frontier(
        self, x_metric: str = "latency", y_metric: str = "accuracy", save_plots: bool = True
    ) -> Figure:
        """Return a figure of the trade-off between two metrics.

        With `save_plots`, also write ``benchmark_tradeoff.png``.
        """
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
            The requirements on a model. If they are given, the report begins with the models that meet them.
        """
        results = self._measured()
        figures = {f"benchmark_{metric}.png": figure for metric, figure in self.plot_results().items()}
        if {"latency", "accuracy"} <= set(visible(results)):
            figures["benchmark_tradeoff.png"] = self.plot_pareto_frontier()
        pictures = {name: picture_of(name, figure, results) for name, figure in figures.items()}
        warnings = study_warnings(results, comparison_rows(results), _METRICS)
        sections = report_sections(results, requirements)
        page = Page("Benchmark report", decision(results, requirements), pictures, sections, warnings)
        markdown = page.markdown()
        write_text(self.output_dir / "report.md", markdown)
        write_text(self.output_dir / "report.html", page.html())
        return markdown


@cache
def _processor() -> str:
    """Return the processor's name, which stays the same while Python runs."""
    return str(system_info()["cpu"])


def _size_notes(model: Any) -> dict[str, Any]:
    """Return metadata: the bytes that a model takes on disk, or the reason why this size is unknown."""
    try:
        return {"model_bytes": model_size(model)}
    except (OSError, TypeError) as error:
        return {"model_bytes": None, "model_bytes_note": str(error)}


def decision(results: Results, requirements: Requirements | None = None) -> str:
    """Return one sentence that says which model to choose among those that meet the requirements."""
    rows = as_rows(results)
    names = [str(row["model"]) for row in rows if not requirements or not shortcomings(row, requirements)[1]]
    left = {m: {n: r for n, r in by_model.items() if n in names} for m, by_model in results.items()}
    left = {metric: by_model for metric, by_model in left.items() if by_model}
    return decision_sentence(left, best_by_dimension(left), len(rows))


def report_sections(results: Results, requirements: Requirements | None = None) -> list[Section]:
    """Return the sections of the report."""
    rows = as_rows(results)
    points = tradeoff(results, "latency", "accuracy") if {"latency", "accuracy"} <= set(visible(results)) else []
    labels = {metric: metric_label(metric, next(iter(by_model.values()))) for metric, by_model in results.items()}
    return [
        *([] if requirements is None else [requirements_section(rows, requirements)]),
        models_section(results, points, labels),
        best_section(best_by_dimension(results), results, labels),
        *(metric_section(labels[metric], summary_rows({metric: results[metric]})) for metric in results),
        pairs_section(comparison_rows(results), results, labels),
        conditions_section(results),
    ]
