"""A comparison of one model in several precisions by size, answers, time, and the number types that really ran."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.accuracy import parity, wilson_interval
from tinybench.latency import measure_latencies
from tinybench.onnx import OnnxModel, operator_shares
from tinybench.precision import types_that_ran
from tinybench.result import BenchmarkResult
from tinybench.support.basics.class_labels import output_kind
from tinybench.support.basics.numbers import number_of, with_ends
from tinybench.support.basics.result_text import is_interval
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.engines.parity_rows import both_answers
from tinybench.support.profiling.matrix_operators import FOUR_BITS
from tinybench.support.rounds.input_notes import as_input

FP32 = "FP32"
TRACED = 12  # number of traced runs

# the types in which the matrix multiplications of each form should run; any other type is a fallback
_WANTED = {
    FP32: {"float"},
    "FP16": {"float16"},
    "bfloat16": {"bfloat16"},
    "INT8 dynamic": {"uint8", "int8"},
    "INT8 static": {"uint8", "int8"},
    FOUR_BITS: {FOUR_BITS},
}
FORMS = tuple(_WANTED)


@dataclass(frozen=True)
class PrecisionStudy:
    """The size, answers and time of each form of a model. ``str`` formats the study as a table.

    Attributes
    ----------
    rows
        One dict for each form. ``form`` is the name of the form. If the form cannot be made or does not run, ``reason``
        holds the reason, otherwise None. ``size`` is the size of the file in bytes. ``gap`` is the largest difference
        between the scores of this form and of FP32. ``agreement`` is the proportion of rows with the same label as
        FP32, with the interval ``agreement_ci``. ``ratio`` is the time of this form divided by the time of FP32, with
        ``ratio_ci`` and ``verdict``. ``ran`` gives each operator's share of the total time of all operators. ``types``
        gives each number type's share of the time of all matrix multiplications. ``fell_back`` describes the
        multiplications that ran in another type than requested.
    latencies
        Seconds per call of each form that runs, measured in the same rounds.
    batch, confidence
        Rows in a timed call, and the confidence level of the intervals.
    """

    rows: list[dict[str, Any]]
    latencies: dict[str, BenchmarkResult] = field(repr=False)
    batch: int
    confidence: float = 0.95

    __repr__ = short_repr

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data for ``json.dumps``."""
        latencies = {form: result.to_dict() for form, result in self.latencies.items()}
        return {"rows": self.rows, "latencies": latencies, "batch": self.batch, "confidence": self.confidence}

    def table(self) -> Table:
        """Return the rows as a table of text."""
        level = f"{100 * self.confidence:.3g} %"
        return Table(
            [_cells(row) for row in self.rows],
            f"one model in several precisions, {number_of(self.batch, 'row')} in a call; time as "
            f"a ratio to FP32, {level} intervals",
        )

    def __str__(self) -> str:
        """Return the table."""
        return str(self.table())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self.table()._repr_mimebundle_()


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    """Format a row as the cells of the table."""

    def shown(name: str, scale: float = 1.0) -> str:
        return with_ends(scale * row[name], [scale * end for end in row[f"{name}_ci"] or ()], "–")

    return {
        "form": row["form"],
        "size (kB)": "–" if row["size"] is None else f"{row['size'] / 1e3:.0f}",
        "largest gap": "–" if row["gap"] is None else f"{row['gap']:.2g}",
        "same label": "–" if row["agreement"] is None else f"{shown('agreement', 100)} %",
        "time": "–" if row["ratio"] is None else shown("ratio"),
        "products ran in": ", ".join(f"{kind} {share:.0%}" for kind, share in row["types"].items()) or "–",
        "fell back": row["reason"] or row["fell_back"] or "nothing",
    }


def write_form(form: str, path: Path, out: Path, calibration: Any) -> None:
    """Convert a model to one of `FORMS`, but not FP32, and write the result to `out`."""
    if form == FOUR_BITS:
        from tinybench.tools.study.four_bits import to_four_bits

        to_four_bits(path, out)
    elif form in ("FP16", "bfloat16"):
        from tinybench.tools.study.half_precision import to_half

        to_half(path, out, kind="float16" if form == "FP16" else form)
    else:
        from tinybench.quantize import quantize_dynamic_int8, quantize_static_int8

        if form == "INT8 dynamic":
            quantize_dynamic_int8(path, out)
        else:
            quantize_static_int8(path, calibration, out)


def precision_study(
    path: str | Path,
    X: Any,
    *,
    batch: int | None = None,
    calibration: Any = None,
    forms: Sequence[str] = FORMS,
    rounds: int = 20,
    threads: int = 1,
    confidence: float = 0.95,
    seed: int | None = None,
    max_seconds: float | None = None,
) -> PrecisionStudy:
    """Compare the forms of a model by size, answers, time, and the number types in which the forms really ran.

    Parameters
    ----------
    path
        An ``.onnx`` file in float32.
    X
        Rows as in production, of shape (n, features). Each form's answers are compared with those of FP32.
    batch
        Rows in a timed call; if X has fewer rows, they are repeated. By default all rows of X.
    calibration
        Rows that calibrate static INT8; by default the first 512 rows of X.
    forms
        The forms to make, from `FORMS`. FP32 is always included.
    rounds, threads, seed, max_seconds
        See `measure_latencies` and `OnnxModel`. There must be at least 6 rounds.
    confidence
        Confidence level of all intervals.

    Returns
    -------
    PrecisionStudy
        If a form cannot be made or does not run here, the row of the form gives the reason.

    Raises
    ------
    FileNotFoundError, ValueError
        If the model itself cannot be loaded or run, or an argument is not valid.
    """
    _check(forms, rounds)
    rows = np.asarray(as_input(X), np.float32)
    timed = rows if batch is None else np.resize(rows, (batch, *rows.shape[1:]))
    calibration = rows[:512] if calibration is None else calibration
    original = OnnxModel(path, threads)
    original.forward(timed)  # fails here if the model itself does not run
    found: dict[str, dict[str, Any]] = {}
    models: dict[str, OnnxModel] = {}
    with tempfile.TemporaryDirectory() as folder:
        for form in dict.fromkeys((FP32, *forms)):
            file = Path(path) if form == FP32 else Path(folder, f"{form}.onnx")
            row = found[form] = dict.fromkeys(("reason", "size", "gap", "agreement", "agreement_ci"))
            row |= dict.fromkeys(("seconds", "ratio", "ratio_ci", "verdict", "fell_back")) | {"ran": {}, "types": {}}
            try:
                if form != FP32:
                    with warnings.catch_warnings(action="ignore"):  # the form's row reports the same problems
                        write_form(form, Path(path), file, calibration)
                row["size"] = file.stat().st_size
                model = OnnxModel(file, threads)
                row |= _answers(original, model, rows, confidence)
                row |= _what_ran(model, timed, Path(folder))
                row["fell_back"] = _fell_back(form, row, found[FP32])
                if form == FOUR_BITS and _same_in_float(Path(path), model, rows, Path(folder)):
                    row["fell_back"] = "all in float: no kernel here takes 8-bit activations to 4-bit weights"
            except NotImplementedError:
                raise
            except Exception as error:
                if form == FP32:
                    raise
                row["reason"] = _why(error)
            else:
                models[form] = model
        latencies = measure_latencies(models, timed, measurement_runs=rounds, seed=seed, max_seconds=max_seconds)
        models.clear()  # Windows cannot delete a file that is open
    for form, result in latencies.items():
        found[form] |= _times(result, latencies[FP32], confidence)
    return PrecisionStudy([{"form": form, **row} for form, row in found.items()], latencies, len(timed), confidence)


def _check(forms: Sequence[str], rounds: int) -> None:
    if unknown := [form for form in forms if form not in FORMS]:
        raise ValueError(f"there is no form {unknown[0]!r}; there are {', '.join(FORMS)}")
    if rounds < 6:
        raise ValueError(f"rounds is {rounds}; an interval takes at least 6 rounds")


def _answers(original: OnnxModel, model: OnnxModel, X: np.ndarray, confidence: float) -> dict[str, Any]:
    """Compare the answers of a form and of the original: the largest difference and the proportion of equal labels."""
    first, second = both_answers(original, model, X)
    found = parity(first, second)
    if output_kind(first) == "logits" and first[0].size == 1:  # single values, which have no labels
        return {"gap": found.max_difference}
    same = round(found.label_agreement * found.rows)
    ends = list(wilson_interval(same, found.rows, confidence))
    return {"gap": found.max_difference, "agreement": found.label_agreement, "agreement_ci": ends}


def _times(candidate: BenchmarkResult, baseline: BenchmarkResult, confidence: float = 0.95) -> dict[str, Any]:
    """Return the median time of a form in seconds, and its ratio to the time of the baseline, FP32."""
    from tinybench.comparison import compare

    if candidate is baseline:
        return {"seconds": baseline.median, "ratio": 1.0, "ratio_ci": None, "verdict": "the baseline"}
    told = compare(candidate, baseline, confidence=confidence)
    ends = list(told.ratio_ci) if is_interval(*told.ratio_ci) else None
    return {"seconds": candidate.median, "ratio": told.ratio, "ratio_ci": ends, "verdict": told.verdict}


def _what_ran(model: OnnxModel, X: np.ndarray, folder: Path) -> dict[str, Any]:
    """Trace a model. Return each operator's share of the total time of all operators.

    Also return each number type's share of the time of all matrix multiplications.
    """
    profiled = OnnxModel(model.path, model.threads, profile=folder / "trace")
    for _ in range(TRACED):
        profiled.forward(X)
    written = profiled.end_profiling()
    events = json.loads(written.read_text(encoding="utf-8"))
    written.unlink()
    try:
        ran = operator_shares(events)
    except ValueError:  # every operator is shorter than the trace's resolution of 1 µs
        ran = {}
    return {"ran": ran, "types": types_that_ran(events)}


def _fell_back(form: str, row: Mapping[str, Any], original: Mapping[str, Any]) -> str:
    """Describe which multiplications did not run in the requested type, and the extra time spent on casts."""
    other = {kind: share for kind, share in row["types"].items() if kind not in _WANTED[form]}
    told = [f"{share:.0%} of the products ran in {kind}" for kind, share in other.items()]
    casts = row["ran"].get("Cast", 0.0) - original["ran"].get("Cast", 0.0)
    if other and casts > 0.01:
        told.append(f"casts take {casts:.0%} of the operators' time")
    return "; ".join(told)


def _same_in_float(path: Path, model: OnnxModel, X: np.ndarray, folder: Path) -> bool:
    """Return True if a 4-bit model does not round its activations to 8 bits.

    A trace does not show this, so the answers are compared with those of a copy that is set not to round activations.
    """
    from tinybench.tools.study.four_bits import to_four_bits

    plain = OnnxModel(to_four_bits(path, folder / "unrounded.onnx", accuracy_level=1), model.threads)
    return np.array_equal(plain.forward(X), model.forward(X))


def _why(error: Exception) -> str:
    """Return the reason why a form failed. If the runtime lacks a kernel, use the runtime's words."""
    text = " ".join(str(error).split())
    words = text.partition("It says: ")[2] or text
    missing = words.lower().find("could not find an implementation")
    if missing >= 0:
        return "no kernel: " + words[missing:].partition(" node with name")[0]
    return words[:300]
