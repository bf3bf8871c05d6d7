"""The pieces of a study: its plan, how a piece is measured, and how the parts of a metric become one result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tinybench.accuracy import named_datasets
from tinybench.benchmark import Benchmark, system_info
from tinybench.latency import as_callable
from tinybench.memory import model_size
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.type_checks import check_kinds
from tinybench.support.basics.whole_files import replacing
from tinybench.support.conditions.cores import usable_cores
from tinybench.support.reports.study_figures import Results
from tinybench.support.rounds.checked_calls import Clock

METRICS = ("latency", "throughput", "accuracy", "memory", "energy")
_LATENCY_PARTS = 5


class StudyPieces:
    """The plan of a study, its pieces, and their measurement. `BenchmarkSuite` documents the parameters."""

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

    def _file(self, piece: str) -> Path:
        """Return the path of the file that holds a piece, or the plan of the study (``"plan"``)."""
        return self.output_dir / "measurements" / f"{piece}.json"

    def _set_aside(self) -> None:
        """Move earlier measurements, if any, to the first free folder of ``measurements.1``, ``measurements.2``.

        Nothing is deleted.
        """
        folder, number = self._file("plan").parent, 1
        if folder.is_dir() and any(folder.iterdir()):
            while (self.output_dir / f"measurements.{number}").exists():
                number += 1
            folder.rename(self.output_dir / f"measurements.{number}")

    def kept(self, rounds: Mapping[str, BenchmarkResult] = MappingProxyType({})) -> str:
        """Save the given `rounds`. Return a sentence on the pieces on disk and on how to resume.

        `rounds` holds the complete rounds of the piece that was interrupted.
        """
        broken = self._file(f"{self.piece}.incomplete")
        if rounds:
            with suppress(OSError):
                broken.parent.mkdir(parents=True, exist_ok=True)
                with replacing(broken) as file:
                    file.write(json.dumps({name: result.to_dict() for name, result in rounds.items()}).encode())
        done = [piece for piece in self.pieces() if self._file(piece).is_file()]
        more = f"; the complete rounds of {self.piece} are in {broken.name}" if broken.is_file() else ""
        said = f"{', '.join(done) or 'nothing yet'}{more}"
        return f"kept in {broken.parent}: {said}; resume=True (--resume) goes on from there"

    def _each(self, pieces: Sequence[str]) -> Iterable[str]:
        """Return the names of pieces one by one, and show a progress bar."""
        return Benchmark(self.models, **self.options)._each(pieces, "study")

    def _measure(self, piece: str) -> dict[str, BenchmarkResult]:
        """Measure one piece, and return a result for each model."""
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
        raise ValueError(f"parts differ in metric, unit or processor: {sorted(map(str, kinds))}; measure again")
    metadata = dict(first.metadata)
    if "pairing" in metadata:
        together = "".join(str(part.metadata["pairing"]) for part in parts)
        metadata["pairing"] = hashlib.sha256(together.encode()).hexdigest()[:32]
    if "round_orders" in metadata:
        metadata["round_orders"] = [order for part in parts for order in part.metadata["round_orders"]]
    values = [value for part in parts for value in part.values]
    return BenchmarkResult(first.metric_name, values, metadata, first.unit, first.confidence)


def naming_the_folder(write: Callable[[Path, str], None]) -> Callable[[Path, str], None]:
    """Wrap a function that writes a file, so that its OSError contains the path and advises another output_dir."""

    @wraps(write)
    def advising(path: Path, text: str) -> None:
        try:
            write(path, text)
        except OSError as error:
            why = error.strerror or error
            raise OSError(f"cannot write {path} ({why}); choose another output_dir") from error

    return advising


def keeping(run: Callable[..., Results]) -> Callable[..., Results]:
    """Wrap a run so that any exception that ends it gets a note on the pieces that were saved.

    Such an exception may be a model's error, a full disk, or Ctrl-C.
    """

    @wraps(run)
    def noting(suite: StudyPieces, *args: Any, **options: Any) -> Results:
        before = suite.piece
        try:
            return run(suite, *args, **options)
        except BaseException as error:
            if suite.piece != before:
                error.add_note(suite.kept(getattr(error, "results", {})))
            raise

    return noting
