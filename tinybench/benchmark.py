# Written by "autograder export" from modules/08_benchmark/08_benchmark.ipynb: edit the notebook, not this file.

"""A benchmark of several models by every metric: fair rounds, a record of the machine, a table of comparisons."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tinybench.accuracy import measure_accuracy, named_datasets
from tinybench.comparison import compare
from tinybench.energy import measure_energy
from tinybench.latency import measure_latencies
from tinybench.memory import measure_memory
from tinybench.result import BenchmarkResult, percentile_interval
from tinybench.support.basics.type_checks import check_kinds
from tinybench.support.comparisons.optional_toolbox import corrected
from tinybench.support.conditions.cores import usable_cores
from tinybench.support.conditions.environment_variables import read_settings
from tinybench.support.conditions.int8_probe import integer_products
from tinybench.support.conditions.library_kernels import loaded_pools, read_pools
from tinybench.support.conditions.machine_facts import turbo
from tinybench.support.conditions.system_files import installed_version
from tinybench.support.metric_tests import compare_pair, is_detected, untestable
from tinybench.support.rounds.machine_state import library_conditions

_TELLING_FLAGS = {
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx512_vnni": "AVX-512 VNNI",
    "avx_vnni": "AVX-VNNI",
    "amx_int8": "AMX INT8",
    "amx_bf16": "AMX BF16",
    "asimd": "NEON",
    "asimddp": "NEON dot product",
    "sve": "SVE",
}
_NUMPY_FLAGS = {
    "avx2": {"AVX2", "X86_V3"},
    "avx512f": {"AVX512F", "X86_V4"},
    "avx512_vnni": {"AVX512_CLX", "AVX512_ICL"},
    "asimd": {"ASIMD", "NEON"},
    "asimddp": {"ASIMDDP"},
    "sve": {"SVE"},
}
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "onnx", "onnxruntime", "skl2onnx", "tinybench-ml")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def cpu_info(text: str) -> dict[str, Any]:
    """Return the processor's name as ``model`` and its instruction sets as ``flags``.

    `text` is the content of ``/proc/cpuinfo``. Only the first core in it counts. The text may be empty, as on systems
    other than Linux. If the text has no name, the name is "unknown". Only flags in `_TELLING_FLAGS` are returned, with
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
        "flags": [name for flag, name in _TELLING_FLAGS.items() if flag in flags],
    }


def library_versions(names: Iterable[str] = _LIBRARIES) -> dict[str, str]:
    """Return the installed version of each Python distribution. Distributions that are not installed are left out."""
    found = {}
    for name in names:
        try:
            found[name] = installed_version(name)
        except PackageNotFoundError:
            continue
    return found


def thread_settings(pools: Sequence[Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Return how many threads linear algebra may use, according to environment variables and to each loaded library.

    `pools` is the result of `loaded_pools`, if the caller has it already.
    """
    settings: dict[str, Any] = {name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ}
    pools = loaded_pools() if pools is None else pools
    if pools is None:
        return settings
    for own in read_pools(pools)[:1]:
        settings |= {"blas": own.name, "blas_threads": own.threads}
    return settings | {"pools": [f"{pool['internal_api']} {pool['version']}: {pool['num_threads']}" for pool in pools]}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def cpu_elsewhere() -> dict[str, Any]:
    """Return what `cpu_info` returns, on systems without ``/proc/cpuinfo``.

    The name comes from the operating system, and the flags from NumPy.
    """
    name = platform.processor() or platform.machine()
    if platform.system() == "Darwin":  # there, platform.processor() only returns "arm"
        asked = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        name = asked.stdout.strip() or name
    found = set(np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", []))
    flags = " ".join(flag for flag, words in _NUMPY_FLAGS.items() if words & found)
    return cpu_info(f"model name: {name}\nflags: {flags}\n")


def clock_rate() -> dict[str, float] | None:
    """Return the processor's ``current``, ``min`` and ``max`` frequency in MHz (0 where unknown).

    Return None if the system does not report any frequency.
    """
    try:
        rate = psutil.cpu_freq()
    except (AttributeError, OSError, RuntimeError):  # not every system and virtual machine has one
        return None
    return rate._asdict() if rate else None


def integer_kernels() -> dict[str, str] | None:
    """Return how ONNX Runtime multiplies 8-bit integers (see `integer_products`), or None without ONNX Runtime."""
    try:
        return integer_products()
    except ImportError:
        return None


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
        ``cores_logical`` and ``cores_physical`` (the numbers in the whole machine), ``frequency`` (see `clock_rate`),
        ``governor`` (None where unknown), ``turbo`` and ``clock_source`` (None where unknown), ``memory`` in bytes,
        ``python``, ``libraries``, ``integer_products`` (whether ONNX Runtime multiplies 8-bit integers exactly or with
        saturation; None without ONNX Runtime), ``blas``, ``threads``, ``settings`` (see `read_settings`), ``time``
        (UTC, ISO 8601) and ``load_average`` over 1, 5 and 15 minutes. ``conditions`` holds the conditions that two
        measurements must share to be compared, as plain text under readable names (see `shared_conditions`).
    """
    root = Path(root)
    text = _text(root / "proc" / "cpuinfo")
    cpu = cpu_info(text) if text else cpu_elsewhere()
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    sources = root / "sys/devices/system/clocksource/clocksource0"
    pools = loaded_pools()
    found = {
        "platform": platform.platform(),
        "cpu": cpu["model"] if cpu["model"] != "unknown" else platform.processor() or platform.machine(),
        "cpu_flags": cpu["flags"],
        "cores": usable_cores(),
        "cores_logical": psutil.cpu_count(),
        "cores_physical": psutil.cpu_count(logical=False),
        "frequency": clock_rate(),
        "governor": _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or None,
        "turbo": turbo(root),
        "clock_source": _text(sources / "current_clocksource") or None,
        "memory": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "libraries": library_versions(),
        "integer_products": integer_kernels(),
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "threads": thread_settings(pools),
        "settings": read_settings(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_average": list(psutil.getloadavg()),
    }
    return found | {"conditions": {**shared_conditions(found), **library_conditions(pools)}}


def shared_conditions(system: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the conditions that two measurements must share to be compared, by name.

    Each condition is plain text, or None if it is unknown.

    The conditions of numerical libraries come from `library_conditions`.
    """
    threads = system["threads"]
    found = {
        "processor": system["cpu"],
        "instruction sets": ", ".join(system["cpu_flags"]),
        "cores": system["cores"],
        "governor": system["governor"],
        "turbo": None if system["turbo"] is None else "on" if system["turbo"] else "off",
        "clock source": system["clock_source"],
        "timer": time.get_clock_info("perf_counter").implementation,
        "operating system": system["platform"],
        "Python": system["python"],
        "BLAS": threads.get("blas", system["blas"]),
        "BLAS threads": threads.get("blas_threads"),
        **{f"{name} version": number for name, number in system["libraries"].items()},
    }
    return {name: None if value is None else str(value) for name, value in found.items()}


def name_models(models: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return models by name, in the order given.

    In a sequence, the name of a model is its attribute ``name`` if that is a non-empty text, else ``model_0``,
    ``model_1``, … by its position. Raises ValueError if there is no model, or if two models have the same name; the
    message contains that name.
    """
    if isinstance(models, Mapping):
        pairs = list(models.items())
    else:
        pairs = [(_name_of(model) or f"model_{index}", model) for index, model in enumerate(models)]
    if not pairs:
        raise ValueError("models is empty; pass a list of models, or a dictionary such as {'fp32': model}")
    named: dict[str, Any] = {}
    for name, model in pairs:
        if name in named:
            raise ValueError(f"two models are called {name!r}; pass a dictionary with a name for each")
        named[name] = model
    return named


def _name_of(model: Any) -> str | None:
    name = getattr(model, "name", None)
    return name if isinstance(name, str) and name else None


def confidence_of_choice(rates: Mapping[int, list[float]], best: int, confidence: float = 0.95) -> float:
    """Return the confidence at which to compute the interval of the best rate.

    The confidence is raised because the best rate was chosen from the same measurements.

    Every rate whose interval reaches up to the interval of the best rate might have been chosen instead. Bonferroni's
    correction is applied for the number of these rates, so that the interval still holds.
    """

    def ends(values: list[float]) -> tuple[float, float]:
        try:
            return percentile_interval(values, 50, confidence)
        except ValueError:  # too few for an interval
            return float("-inf"), float("inf")

    lowest = ends(rates[best])[0]
    rivals = sum(ends(values)[1] >= lowest for values in rates.values())
    return 1 - (1 - confidence) / rivals


def best_throughput(latencies: Mapping[int, BenchmarkResult]) -> BenchmarkResult:
    """Return the throughput in ``rows/s`` at the best batch size, with one value for each measurement.

    The best batch size is the one with the highest median throughput.

    `latencies` are seconds per call, by batch size. The ``confidence`` of the result comes from `confidence_of_choice`.
    Its metadata is that of the latency at the best size, with two additions. ``batch_size`` is the best size.
    ``by_batch`` holds, for each size (as text, for JSON), the medians of ``throughput`` in rows/s and of ``latency`` in
    s.

    Raises ValueError if there is no batch size, if a batch size is not a positive whole number (True does not count as
    a number), or if a call took no time.
    """
    if not latencies:
        raise ValueError("no batch size; pass some, such as batch_sizes=(1, 8, 64)")
    rates = {}
    for size, result in latencies.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"batch size {size!r} is not a positive whole number")
        if result.min_val <= 0:
            raise ValueError(
                f"a call of batch size {size} took {result.min_val} s by this clock; time more calls at once"
            )
        rates[size] = [size / seconds for seconds in result.values]
    medians = {size: float(np.median(values)) for size, values in rates.items()}
    best = max(medians, key=lambda size: medians[size])
    table = {str(size): {"throughput": medians[size], "latency": latencies[size].median} for size in rates}
    metadata = {**latencies[best].metadata, "batch_size": best, "by_batch": table}
    sure = confidence_of_choice(rates, best)
    return BenchmarkResult("throughput", rates[best], metadata, unit="rows/s", confidence=sure)


DIGIT = (1, 28, 28)  # the default input shape


def stated_shape(model: Any) -> tuple[int, ...] | None:
    """Return the input shape that a model declares, for an input of one row, or None if it declares none."""
    session, features = getattr(model, "session", model), getattr(model, "n_features_in_", None)
    if features is not None:
        return 1, int(features)
    if callable(getattr(session, "get_inputs", None)):
        sizes = session.get_inputs()[0].shape[1:]
        return (1, *sizes) if all(isinstance(size, int) for size in sizes) else None
    return None


class Benchmark:
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
        kinds = {"models": "Mapping[str, Any] | Sequence[Any]", "progress": "Callable[..., Any] | str | None"}
        check_kinds(kinds, {"models": models, "progress": progress})
        self.models = name_models(models)
        self.datasets = datasets
        self.warmup_runs, self.measurement_runs = warmup_runs, measurement_runs
        self.seed, self.clock = seed, clock
        self.progress = _progress_bar if progress == "bar" else progress
        self.results: dict[str, dict[str, BenchmarkResult]] = {}

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
        system = system_info()
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
        return self._keep("throughput", {name: best_throughput(sizes) for name, sizes in by_model.items()})

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
        x = self._inputs(input_shape, inputs)
        options.setdefault("measurement_runs", self.measurement_runs)
        names = self._each(self.models, "memory")
        return self._keep("memory", {name: measure_memory(self.models[name], x, **options) for name in names})

    def run_energy_benchmark(
        self, input_shape: Sequence[int] = (1, 28, 28), *, inputs: Any = None, **options: Any
    ) -> dict[str, BenchmarkResult]:
        """Measure the energy of one inference of each model, in joules, or in CPU seconds if no watts are known.

        The input is chosen as in `run_latency_benchmark` and is the same for all models. The options are those of
        `measure_energy`. The results are by model name.
        """
        x = self._inputs(input_shape, inputs)
        options.setdefault("measurement_runs", self.measurement_runs)
        names = self._each(self.models, "energy")
        return self._keep("energy", {name: measure_energy(self.models[name], x, **options) for name in names})

    def compare_models(self, metric: str = "latency") -> list[dict[str, Any]]:
        """Compare each model with the first model, by one metric. Return one row for each model.

        The metric is latency, throughput, accuracy, memory or energy.

        A row has ``model``, ``metric``, ``unit``, ``measured``, ``mean``, ``std``, ``ci_lower``, ``ci_upper``,
        ``count``. For accuracy, ``mean`` is the fraction of correct rows among the rows of all datasets, with Wilson's
        interval. A number that is unknown, such as memory below the detection limit, is None, and ``note`` gives the
        reason.

        For latency, a row also has ``speedup`` (how many times as fast as the first model), ``speedup_lower`` and
        ``speedup_upper``. For the other metrics it has ``ratio`` (this model / the first) and ``difference`` (this
        model − the first) with their ``_lower`` and ``_upper``. Accuracies are compared row by row and have no ratio.
        The ``p_value`` is corrected for the number of comparisons (see `corrected`). All of these columns are None for
        the first model. They are also None if no test is possible; ``note`` then gives the reason.

        A metric that has not been measured yet is measured with the defaults. Raises ValueError if the metric is
        unknown.
        """
        runner = getattr(self, f"run_{metric}_benchmark", None)
        if runner is None:
            raise ValueError(f"metric is {metric!r}; known are latency, throughput, accuracy, memory and energy")
        results = self.results.get(metric) or runner()
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


def _progress_bar(items: Iterable[Any], what: str) -> Iterable[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets tqdm.auto warns, and draws its bar as text
        from tqdm.auto import tqdm
    return tqdm(items, desc=what, leave=False)


STATED = ("mean", "std", "ci_lower", "ci_upper", "count")
SPEEDUP = ("speedup", "speedup_lower", "speedup_upper")
COMPARED = ("ratio", "ratio_lower", "ratio_upper", "difference", "difference_lower", "difference_upper")


def stated(result: BenchmarkResult) -> dict[str, Any]:
    """Return the columns `STATED` of a result, and a ``note`` with its cautions. Unknown numbers are None."""
    numbers = result.to_dict()
    row = {key: numbers[key] for key in STATED}
    if not is_detected(result):
        row |= dict.fromkeys(STATED[:-1])
    return {**row, "note": "; ".join(result.cautions) or None}


def against_first(result: BenchmarkResult, first: BenchmarkResult) -> dict[str, Any]:
    """Compare a result with the first one. Return the columns `COMPARED` and ``p_value``.

    If no test is possible, return a ``note`` with the reason instead.
    """
    if reason := untestable(result, first):
        return {"note": reason}
    found = compare_pair(result.metric_name, ("this", "the first"), result, first) or {}
    known = {key: found[key] for key in COMPARED if found[key] is not None and math.isfinite(found[key])}
    return {**known, "p_value": found["p"]}
