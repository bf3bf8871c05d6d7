"""The runs of a benchmark: several models by one metric, on the same inputs, with the record of the machine."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tinybench.accuracy import measure_accuracy, named_datasets
from tinybench.energy import measure_energy
from tinybench.latency import measure_latencies
from tinybench.memory import measure_memory
from tinybench.result import BenchmarkResult
from tinybench.support.basics.type_checks import check_kinds

DIGIT = (1, 28, 28)  # the default input shape


def name_attribute(model: Any) -> str | None:
    """Return the attribute ``name`` of a model if it is a non-empty text, else None."""
    name = getattr(model, "name", None)
    return name if isinstance(name, str) and name else None


def stated_shape(model: Any) -> tuple[int, ...] | None:
    """Return the input shape that a model declares, for an input of one row, or None if it declares none."""
    session, features = getattr(model, "session", model), getattr(model, "n_features_in_", None)
    if features is not None:
        return 1, int(features)
    if callable(getattr(session, "get_inputs", None)):
        sizes = session.get_inputs()[0].shape[1:]
        return (1, *sizes) if all(isinstance(size, int) for size in sizes) else None
    return None


class MetricRuns(ABC):
    """The runs of `tinybench.Benchmark`, which adds the names of the models and the table.

    The parameters are those of `tinybench.Benchmark`. `models` has a name for each model.
    """

    def __init__(
        self,
        models: dict[str, Any],
        datasets: Any,
        warmup_runs: int,
        measurement_runs: int,
        seed: int | None,
        clock: Callable[[], float],
        progress: Callable[..., Iterable[Any]] | str | None,
    ) -> None:
        check_kinds({"progress": "Callable[..., Any] | str | None"}, {"progress": progress})
        self.models = models
        self.datasets = datasets
        self.warmup_runs, self.measurement_runs = warmup_runs, measurement_runs
        self.seed, self.clock = seed, clock
        self.progress = _progress_bar if progress == "bar" else progress
        self.results: dict[str, dict[str, BenchmarkResult]] = {}

    @abstractmethod
    def _system(self) -> dict[str, Any]:
        """Return the record of the machine for the metadata of each result."""

    @abstractmethod
    def _best(self, latencies: Mapping[int, BenchmarkResult]) -> BenchmarkResult:
        """Return the throughput at the best of several batch sizes."""

    def _each(self, items: Iterable[Any], what: str) -> Iterable[Any]:
        return self.progress(items, what) if callable(self.progress) else items

    def _inputs(self, input_shape: Sequence[int], inputs: Any) -> Any:
        """Return the given inputs, or else random inputs of the given shape.

        If the shape is the default, a row of the data is returned instead, or a shape that a model declares is used.
        """
        if inputs is None and tuple(input_shape) == DIGIT:
            if self.datasets is not None:
                return self._data()[:1]
            input_shape = next(filter(None, map(stated_shape, self.models.values())), DIGIT)
        return (
            np.random.default_rng(self.seed).random(tuple(input_shape), dtype=np.float32) if inputs is None else inputs
        )

    def _rows(self, row_shape: Sequence[int], rows: Any) -> tuple[Sequence[int], Any]:
        """Return the shape of a row, and the rows. The data's shape, or a declared shape, replaces the default."""
        if rows is None and tuple(row_shape) == DIGIT[1:]:
            if self.datasets is not None:
                return row_shape, self._data()
            row_shape = next(filter(None, map(stated_shape, self.models.values())), DIGIT)[1:]
        return row_shape, rows

    def _data(self) -> Any:
        return next(iter(named_datasets(self.datasets).values()))[0]

    def _keep(self, metric: str, results: dict[str, BenchmarkResult]) -> dict[str, BenchmarkResult]:
        system = self._system()
        for name, result in results.items():
            result.metadata |= {"model": name, "system": system}
        self.results[metric] = results
        return results

    def run_latency_benchmark(
        self, input_shape: Sequence[int] = (1, 28, 28), *, inputs: Any = None
    ) -> dict[str, BenchmarkResult]:
        """Measure the latency of all models in shuffled rounds. Return the seconds per call, by model name.

        The input is `inputs` (one for all models, or one for each model name). Without `inputs`, it consists of random
        float32 numbers on [0, 1) in the shape `input_shape`. If this shape is the default, the first row of the
        datasets is used instead, or else the shape that a model declares (see `stated_shape`). Raises ValueError as
        `measure_latencies` does.
        """
        measured = measure_latencies(
            self.models,
            self._inputs(input_shape, inputs),
            warmup_runs=self.warmup_runs,
            measurement_runs=self.measurement_runs,
            clock=self.clock,
            seed=self.seed,
            progress=lambda rounds: self._each(rounds, "latency"),
        )
        return self._keep("latency", measured)

    def run_throughput_benchmark(
        self, batch_sizes: Sequence[int] = (1, 8, 64), row_shape: Sequence[int] = (28, 28), *, rows: Any = None
    ) -> dict[str, BenchmarkResult]:
        """Measure each model's throughput, in rows per second, at its best batch size; see `best_throughput`.

        A batch consists of the first rows of `rows`, which are repeated if there are too few. Without `rows`, it
        consists of random rows of the shape `row_shape`. The default shape is replaced as in `run_latency_benchmark`.
        The results are by model name. Raises ValueError as `best_throughput` does.
        """
        row_shape, rows = self._rows(row_shape, rows)
        by_model: dict[str, dict[int, BenchmarkResult]] = {name: {} for name in self.models}
        for size in self._each(batch_sizes, "throughput"):
            if rows is None:
                batch = self._inputs((size, *row_shape), None)
            else:
                batch = np.resize(rows, (size, *np.shape(rows)[1:]))
            measured = measure_latencies(
                self.models,
                batch,
                warmup_runs=self.warmup_runs,
                measurement_runs=self.measurement_runs,
                clock=self.clock,
                seed=self.seed,
            )
            for name, result in measured.items():
                by_model[name][size] = result
        return self._keep("throughput", {name: self._best(sizes) for name, sizes in by_model.items()})

    def run_accuracy_benchmark(self, **options: Any) -> dict[str, BenchmarkResult]:
        """Measure the accuracy of all models. Return results by model name, with one value for each dataset.

        The options are those of `measure_accuracy`. Raises ValueError without datasets; the message says what to pass.
        """
        if self.datasets is None:
            raise ValueError("accuracy needs data: Benchmark(models, datasets=[(X, y)])")
        names = self._each(self.models, "accuracy")
        return self._keep(
            "accuracy", {name: measure_accuracy(self.models[name], self.datasets, **options) for name in names}
        )

    def run_memory_benchmark(
        self, input_shape: Sequence[int] = (1, 28, 28), *, inputs: Any = None, **options: Any
    ) -> dict[str, BenchmarkResult]:
        """Measure the peak memory, in bytes, that one inference of each model adds, including native allocations.

        The input is chosen as in `run_latency_benchmark` and is the same for all models. The options are those of
        `measure_memory`. The results are by model name.
        """
        return self._one_by_one("memory", measure_memory, self._inputs(input_shape, inputs), options)

    def run_energy_benchmark(
        self, input_shape: Sequence[int] = (1, 28, 28), *, inputs: Any = None, **options: Any
    ) -> dict[str, BenchmarkResult]:
        """Measure the energy of one inference of each model, in joules, or in CPU seconds if no watts are known.

        The input is chosen as in `run_latency_benchmark` and is the same for all models. The options are those of
        `measure_energy`. The results are by model name.
        """
        return self._one_by_one("energy", measure_energy, self._inputs(input_shape, inputs), options)

    def _one_by_one(
        self, metric: str, measure: Callable[..., BenchmarkResult], x: Any, options: dict[str, Any]
    ) -> dict[str, BenchmarkResult]:
        """Measure one model after the other on the same input, and keep the results."""
        options = {"measurement_runs": self.measurement_runs, **options}
        names = self._each(self.models, metric)
        return self._keep(metric, {name: measure(self.models[name], x, **options) for name in names})

    def _measured(self, metric: str) -> dict[str, BenchmarkResult]:
        """Return the latest results of a metric. If there are none, measure them with the defaults."""
        run = getattr(self, f"run_{metric}_benchmark", None)
        if run is None:
            raise ValueError(f"metric is {metric!r}; known are latency, throughput, accuracy, memory and energy")
        return self.results.get(metric) or run()


def _progress_bar(items: Iterable[Any], what: str) -> Iterable[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets tqdm.auto warns, and draws its bar as text
        from tqdm.auto import tqdm
    return tqdm(items, desc=what, leave=False)
