# Written by "autograder export" from modules/08_benchmark/08_benchmark.ipynb: edit the notebook, not this file.

"""A benchmark of several models by every metric: fair rounds, a record of the machine, a table of comparisons."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.comparison import compare
from tinybench.result import BenchmarkResult
from tinybench.support.basics.type_checks import check_kinds
from tinybench.support.benchmarks.best_batch import check_batches, confidence_of_choice
from tinybench.support.benchmarks.metric_runs import MetricRuns, name_attribute
from tinybench.support.benchmarks.system_facts import TELLING_FLAGS, system_record
from tinybench.support.benchmarks.table_rows import COMPARED, SPEEDUP, against_first, stated
from tinybench.support.comparisons.optional_toolbox import corrected


def cpu_info(text: str) -> dict[str, Any]:
    """Return the processor's name as ``model`` and its instruction sets as ``flags``.

    `text` is the content of ``/proc/cpuinfo``. Only the first core in it counts. The text may be empty, as on systems
    other than Linux. If the text has no name, the name is "unknown". Only flags in `TELLING_FLAGS` are returned, with
    the names and in the order given there.
    """
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), value.strip())
    flags = set((fields.get("flags") or fields.get("features") or "").split())
    return {
        "model": fields.get("model name") or fields.get("cpu part") or "unknown",
        "flags": [name for flag, name in TELLING_FLAGS.items() if flag in flags],
    }


def system_info(root: Path | str = "/") -> dict[str, Any]:
    """Return the conditions under which measurements on this machine are made.

    Parameters
    ----------
    root
        Folder that holds Linux's ``proc/cpuinfo`` and ``sys``. Facts that are missing there come from other sources.

    Returns
    -------
    dict
        ``platform``, ``cpu`` and ``cpu_flags`` (see `cpu_info`), ``cores`` (the number that this process may use),
        ``cores_logical`` and ``cores_physical`` (the numbers in the whole machine), ``frequency`` (``current``, ``min``
        and ``max`` in MHz, 0 where unknown), ``governor`` (None where unknown), ``turbo`` and ``clock_source`` (None
        where unknown), ``memory`` in bytes, ``python``, ``libraries``, ``integer_products`` (whether ONNX Runtime
        multiplies 8-bit integers exactly or with saturation; None without ONNX Runtime), ``blas``, ``threads``,
        ``settings`` (see `read_settings`), ``time`` (UTC, ISO 8601) and ``load_average`` over 1, 5 and 15 minutes.
        ``conditions`` holds the conditions that two measurements must share to be compared, as plain text under
        readable names.
    """
    return system_record(Path(root), cpu_info)


def name_models(models: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return models by name, in the order given.

    In a sequence, the name of a model is its attribute ``name`` if that is a non-empty text, else ``model_0``,
    ``model_1``, … by its position. Raises ValueError if there is no model, or if two models have the same name; the
    message contains that name.
    """
    if isinstance(models, Mapping):
        pairs = list(models.items())
    else:
        pairs = [(name_attribute(model) or f"model_{index}", model) for index, model in enumerate(models)]
    if not pairs:
        raise ValueError("models is empty; pass a list of models, or a dictionary such as {'fp32': model}")
    named: dict[str, Any] = {}
    for name, model in pairs:
        if name in named:
            raise ValueError(f"two models are called {name!r}; pass a dictionary with a name for each")
        named[name] = model
    return named


def best_throughput(latencies: Mapping[int, BenchmarkResult]) -> BenchmarkResult:
    """Return the throughput in ``rows/s`` at the batch size with the highest median throughput.

    `latencies` are seconds per call, by batch size. The result has one value for each measurement at the best size.
    Its ``confidence`` comes from `confidence_of_choice`. Its metadata is that of the latency at the best size, with two
    additions: ``batch_size`` is the best size, and ``by_batch`` holds, for each size (as text, for JSON), the medians
    of ``throughput`` in rows/s and of ``latency`` in s. Raises ValueError as `check_batches` does.
    """
    check_batches(latencies)
    rates = {size: [size / seconds for seconds in result.values] for size, result in latencies.items()}
    medians = {size: float(np.median(values)) for size, values in rates.items()}
    best = max(medians, key=lambda size: medians[size])
    table = {str(size): {"throughput": medians[size], "latency": latencies[size].median} for size in rates}
    metadata = {**latencies[best].metadata, "batch_size": best, "by_batch": table}
    sure = confidence_of_choice(rates, best)
    return BenchmarkResult("throughput", rates[best], metadata, unit="rows/s", confidence=sure)


class Benchmark(MetricRuns):
    """A fair benchmark of several models by every metric.

    Parameters
    ----------
    models
        See `name_models`, and `tinybench.latency.as_callable` for the kinds of models.
    datasets
        A dataset ``(X, y)`` or several datasets; see `tinybench.accuracy.measure_accuracy`. They are needed for
        accuracy. By default, other metrics take their inputs from the first dataset.
    warmup_runs, measurement_runs
        Number of untimed warm-up calls, and number of measurements after the warm-up.
    seed
        Seed for random inputs and for the order of the models in each round. With None, they differ each time.
    clock
        A function that returns seconds.
    progress
        A function that wraps the iteration of a long run, to show its progress; None to show nothing, a `tqdm.auto` bar
        by default.

    Attributes
    ----------
    models : dict
        Models by name.
    results : dict
        The latest results by metric and model name.

    Raises
    ------
    ValueError
        If there is no model, or two have the same name.
    """

    def __init__(
        self,
        models: Mapping[str, Any] | Sequence[Any],
        datasets: Any = None,
        warmup_runs: int = 5,
        measurement_runs: int = 10,
        *,
        seed: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
        progress: Callable[..., Iterable[Any]] | str | None = "bar",
    ) -> None:
        check_kinds({"models": "Mapping[str, Any] | Sequence[Any]"}, {"models": models})
        super().__init__(name_models(models), datasets, warmup_runs, measurement_runs, seed, clock, progress)

    def _system(self) -> dict[str, Any]:
        return system_info()

    def _best(self, latencies: Mapping[int, BenchmarkResult]) -> BenchmarkResult:
        return best_throughput(latencies)

    def compare_models(self, metric: str = "latency") -> list[dict[str, Any]]:
        """Compare each model with the first model, by one metric. Return one row for each model.

        A metric that has not been measured yet is measured with the defaults. Raises ValueError if the metric is none
        of latency, throughput, accuracy, memory and energy.

        A row has ``model``, ``metric``, ``unit``, ``measured``, and the columns of `stated`: ``mean``, ``std``,
        ``ci_lower``, ``ci_upper``, ``count`` and ``note``. For accuracy, ``mean`` is the fraction of correct rows among
        the rows of all datasets, with Wilson's interval. For latency, a row also has ``speedup`` (how many times as
        fast as the first model), ``speedup_lower`` and ``speedup_upper``. For other metrics, it has the columns of
        `against_first`. The ``p_value`` is corrected for the number of comparisons (see `corrected`). All columns in
        `SPEEDUP` and `COMPARED`, and the p value, are None for the first model and wherever they are unknown.
        """
        results = self._measured(metric)
        baseline = next(iter(results.values()))
        rows = []
        for name, result in results.items():
            row: dict[str, Any] = {"model": name, "metric": metric, "unit": result.unit, "measured": result.measured}
            row |= stated(result)
            row |= dict.fromkeys((*SPEEDUP, *COMPARED, "p_value"))
            if "wilson_interval" in result.metadata:
                row["mean"] = result.metadata["accuracy"]
                row["ci_lower"], row["ci_upper"] = result.metadata["wilson_interval"]
            if metric == "latency" and result is not baseline and result.count > 1:
                found = compare(baseline, result)
                row |= {"speedup": found.ratio, "p_value": found.p_value}
                row["speedup_lower"], row["speedup_upper"] = found.ratio_ci
            elif result is not baseline:
                row |= against_first(result, baseline)
            rows.append(row)
        compared = [row for row in rows if row["p_value"] is not None]
        for row, p in zip(compared, corrected([row["p_value"] for row in compared]), strict=True):
            row["p_value"] = p
        return rows
