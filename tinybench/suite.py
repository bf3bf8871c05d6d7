# Written by "autograder export" from modules/10_suite/10_suite.ipynb: edit the notebook, not this file.

"""A study of several models: measurements that survive a crash, then tables, figures and a report.

A study is measured in pieces. Each piece is saved as one file once it is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinybench.benchmark import system_info
from tinybench.pareto import Requirements
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import finite
from tinybench.support.basics.pages import Page, Section
from tinybench.support.basics.table import csv_text
from tinybench.support.choices.ranked_values import DIRECTIONS, as_rows, central, interval, visible
from tinybench.support.comparisons.optional_toolbox import corrected
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
from tinybench.support.reports.study_pieces import METRICS, StudyPieces, keeping, merge_results, naming_the_folder
from tinybench.support.reports.study_tables import best_row, dashboard_rows, run_rows, summary_rows, verdicts_against

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@naming_the_folder
def write_text(path: Path, text: str) -> None:
    """Write a text to a file in UTF-8, atomically: at every moment, either the old or the new file is complete.

    The text is forced to the disk before the new file takes the place of the old one, so that this also holds if the
    power fails. The file's folder is made if it is missing. If the file cannot be written, raise OSError. A temporary
    file that a crash left behind does no harm.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)  # it is still there if a step failed, such as on a full disk


class BenchmarkSuite(StudyPieces):
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

    @keeping  # given: an error that ends the run says which pieces are saved
    def run_full_benchmark(self, resume: bool = False) -> Results:
        """Measure everything, write each finished piece and finally the tables, and return the results as `load` does.

        With `resume`, pieces of an interrupted run of the same study are kept, and only missing pieces are measured.
        Otherwise, or if there is no plan, earlier pieces are set aside. Raises ValueError if `resume` finds another
        study (the message lists the differences), and OSError if the folder cannot be written.
        """
        if resume and self._file("plan").is_file():
            self._check_same_study(json.loads(self._file("plan").read_text(encoding="utf-8")))
        else:
            self._set_aside()
        write_text(self._file("plan"), json.dumps(self.plan(), indent=1))
        write_text(self.output_dir / "system.json", json.dumps(system_info(), indent=1))
        for piece in self._each([piece for piece in self.pieces() if not self._file(piece).is_file()]):
            measured = {name: result.to_dict() for name, result in self._measure(piece).items()}
            write_text(self._file(piece), json.dumps(measured))
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

        The parts of a metric are merged. The order is that of `METRICS`, without metrics that have not been measured.
        """
        parts: dict[str, dict[str, list[BenchmarkResult]]] = {metric: {} for metric in METRICS}
        saved = [piece for piece in self.pieces() if self._file(piece).is_file()]
        for piece in saved:
            for name, data in json.loads(self._file(piece).read_text(encoding="utf-8")).items():
                parts[piece.partition("-")[0]].setdefault(name, []).append(BenchmarkResult.from_dict(data))
        merged = {m: {name: merge_results(each) for name, each in by_model.items()} for m, by_model in parts.items()}
        return {metric: by_model for metric, by_model in merged.items() if by_model}

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
        warnings = study_warnings(results, comparison_rows(results), METRICS)
        sections = report_sections(results, requirements)
        page = Page("Benchmark report", decision(results, requirements), pictures, sections, warnings)
        markdown = page.markdown()
        write_text(self.output_dir / "report.md", markdown)
        write_text(self.output_dir / "report.html", page.html())
        return markdown


def comparison_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each metric and pair of models that can be tested.

    A row has the columns of `compare_pair`, among them the p value ``p``, and ``p_corrected``: ``p`` corrected for the
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
    ``measured`` and ``tied`` (see `best_row`). ``tied`` lists the other models whose comparison with the best model is
    undecided in `comparison_rows`. A model that is not compared there is tied if its interval overlaps the interval of
    the best model. An unknown interval (NaN) cannot separate models. If some models are measured and others estimated,
    only the measured ones compete.
    """
    results = visible(results)  # a memory of 0 bytes means that the meter saw nothing: it wins no prize
    pairs = comparison_rows(results)
    best = {}
    for metric, by_model in results.items():
        competing = {name: result for name, result in by_model.items() if result.measured} or by_model
        better = max if DIRECTIONS[metric] == "max" else min
        winner = better(competing, key=lambda name: central(competing[name]))
        lower, upper = interval(competing[winner])
        verdicts, tied = verdicts_against(winner, metric, pairs), []
        for name, result in competing.items():
            low, high = interval(result)
            untested = "apart" if low > upper or high < lower else "undecided"  # NaN cannot separate models
            if name != winner and verdicts.get(name, untested) == "undecided":
                tied.append(name)
        best[metric] = best_row(winner, competing[winner], tied)
    return best


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
