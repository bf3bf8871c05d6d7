"""A study of the gains and costs of INT8 on this machine, which measures and judges variants of a classifier."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.benchmark import system_info
from tinybench.memory import memory_pressure, model_size
from tinybench.pareto import Requirements
from tinybench.support.basics.grouped_rows import numbered_groups
from tinybench.support.basics.numbers import number_of
from tinybench.support.rounds.input_notes import as_input
from tinybench.support.rounds.machine_state import machine_notes
from tinybench.tools.study.conversion import study_variants
from tinybench.tools.study.decisions import study_decision, study_requirements
from tinybench.tools.study.gains import study_cautions, study_claims, study_gains
from tinybench.tools.study.measurements import study_accuracy, study_batch, study_memory, without_failing
from tinybench.tools.study.tradeoff_result import TradeoffStudy
from tinybench.tools.study.variants import FP32, SKLEARN

if TYPE_CHECKING:
    from tinybench.tools.study.variants import Variant


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
    groups: Any = None,
) -> TradeoffStudy:
    """Compare the forms of a classifier: scikit-learn, NumPy, ONNX FP32 (at each level of optimisation), FP16, INT8.

    Parameters
    ----------
    model
        A fitted scikit-learn classifier or pipeline with ``predict_proba``.
    X, y
        Rows as in production, of shape (n, features), and their labels. Do not pass the training data.
    calibration
        Rows that calibrate static INT8. By default, these are the first quarter of `X`, at most 512 rows, and they are
        not used to measure accuracy.
    batch_sizes
        The batch sizes to measure, in rows per call.
    rounds
        Number of shuffled rounds for each batch size, at least 6.
    threads
        Number of threads of every engine.
    noise
        Standard deviation of the noise added to each feature to measure accuracy under noise, as a multiple of the
        feature's own standard deviation.
    requirements
        The user's limits; see `Requirements`. Only a variant that meets all of them is recommended.
    variants
        Names or patterns of the variants to make, such as ``("NumPy", "INT8*")``. scikit-learn and ONNX FP32 are
        always made.
    memory_repeats
        Number of fresh processes that measure the memory of each variant; 0 skips the measurement.
    out
        Folder for the models and for the files of `TradeoffStudy.write`, which are updated after each batch size. With
        None, no file is written.
    seed
        Random seed for the order of the variants and for the noise.
    progress
        Function that is called with a line of text at each step, and every 2 s within a step.
    groups
        The group of each row, if rows depend on each other, such as the original of each copy. The intervals of all
        accuracies and losses are then by groups.

    Returns
    -------
    TradeoffStudy

    Raises
    ------
    TypeError
        If the model is not a classifier with probabilities, or cannot be converted.
    ValueError
        If the rows have a wrong shape or are not finite, if a weight is NaN, or if the answers of the converted model
        differ from the original's.

    Notes
    -----
    A variant that fails is left out, and the study's `notes` give the reason. If an exception ends the study early
    (Ctrl-C, a full disk), the exception's attribute ``study`` holds the results so far. These results are also written
    to `out` or, if this is not possible, to a temporary folder. The folder's path is added to the exception as a note.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    say = progress or (lambda text: None)
    X, y = _checked_rows(X, y)
    if groups is not None:
        groups = numbered_groups(groups, len(X))
    if rounds < 6 or not batch_sizes or min(batch_sizes) < 1:
        raise ValueError(
            f"rounds is {rounds} and batch_sizes {batch_sizes}; at least 6 rounds, and batches of 1 or more"
        )
    if calibration is None:
        held = min(512, len(X) // 4)
        calibration, X, y = X[:held], X[held:], y[held:]
        groups = None if groups is None else np.asarray(groups)[held:]
    system = system_info()
    study = TradeoffStudy([], [], [], [], [], [], system)
    study.cautions.extend(_machine_cautions(system))
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
            found, accuracies = study_accuracy(forms, X, y, np.asarray(model.classes_), noise, seed, groups)
            study.accuracies.update(accuracies)
            if groups is not None:
                effect = f"the design effect of {FP32} is {found[FP32]['design_effect']:.2g}"
                counted = number_of(accuracies[FP32].metadata["groups"], "group")
                study.notes.append(f"intervals of accuracies are by {counted} of {number_of(len(y), 'row')}; {effect}")
            _fill_columns(columns, forms, found, np.resize(X, (max(batch_sizes), X.shape[1])), memory_repeats, say)
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


def _checked_rows(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = np.asarray(as_input(X), np.float32), np.asarray(y)
    if X.ndim != 2 or len(X) != len(y) or not np.isfinite(X).all():
        raise ValueError(
            f"X has shape {X.shape}, y has length {len(y)}; X needs 2 dimensions and finite values, y a label a row"
        )
    return X, y


def _machine_cautions(system: Mapping[str, Any]) -> list[str]:
    """Return warnings about conditions on this machine that may disturb a study, such as a high load."""
    load = system["load_average"][0]
    if machine := machine_notes().get("machine"):
        return [f"the machine, as the study began: {warning}" for warning in machine["warnings"]]
    if load > system["cores"] / 2:
        cores = number_of(system["cores"], "core")
        return [f"the load average was {load:.1f} on {cores} as the study began: other programs ran"]
    return []


def _fill_columns(
    columns: dict[str, dict[str, Any]],
    forms: Mapping[str, Variant],
    accuracies: Mapping[str, Mapping[str, Any]],
    x: np.ndarray,
    memory_repeats: int,
    say: Callable[[str], Any],
) -> None:
    """Add accuracy, file size, and memory at the largest batch size to the columns of each form."""
    for name, form in forms.items():
        columns[name] = {**accuracies[name], "file_size": model_size(form.file), "quantization": form.note}
        columns[name] |= {"note": form.note, "fake": form.fake, "saturates": form.saturates}
        columns[name]["optimization"] = form.optimization
    for name, form in forms.items() if memory_repeats else ():
        say(f"memory of {name}, in fresh processes")
        try:
            columns[name] |= study_memory(form, x, memory_repeats)
        except RuntimeError as error:
            columns[name]["note_on_memory"] = f"not measured: {error}"


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
    """Add the rows, gains, decision and cautions of one batch size to a study."""
    latency, real = kept["latency"], {name: form for name, form in forms.items() if not form.fake}
    rows = []
    for name, form in forms.items():
        row = {"variant": name, "batch_size": batch, "precision": form.precision, **measured[name], **columns[name]}
        working = row.get("memory_steady") if is_largest else None  # bytes of a warm call at the largest batch size
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
    """Save a study that ends early: add the complete rounds, attach the study to the error, and write the files."""
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
