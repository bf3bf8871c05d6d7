"""What a gate against regressions answers; sessions and conditions of stored results."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import number_of
from tinybench.support.comparisons.two_samples import measurement_conditions, same_rounds
from tinybench.support.conditions.environment_variables import differing

if TYPE_CHECKING:
    from tinybench.support.comparisons.verdict import Gate

HIGHER_IS_BETTER = ("accuracy", "balanced_accuracy", "recall", "throughput")
MANY = 10**5  # more runs are no advice
# differ from one measurement to the next, or describe what was measured and not how
_NO_CONDITION = re.compile(
    r"(model|name|target|seed|pairing|notes?|time|memory|sessions|warmup.*|round_.*|session_.*|by_batch|model_bytes.*|.*_shape|shape|stage|"
    r"measured|processes|load_average|frequency|pools)"
)
# times under these do not compare: another clock, other work, another pace of the processor, or other kernels
_IDLE = r"PYTHON(HASHSEED|UNBUFFERED|DONTWRITEBYTECODE) "
_LIBRARIES_RUN = rf"BLAS (kernel|threads)( of |$)|^(?!{_IDLE}).* \(environment\)$"
_PACE = re.compile(
    rf"governor|turbo|clock|timer|\bmode\b|dtype|threads|\bcores\b|power|{_LIBRARIES_RUN}", re.IGNORECASE
)
_ONE_SESSION = (
    "cannot tell: one session each says nothing about how sessions differ; measure several sessions each "
    "(`tinybench measure … --sessions 5 --save`), or use `tinybench gate --run`"
)


def stored_conditions(metadata: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return what metadata says of the conditions of a measurement, flat, as text; numbers that are measured left out.

    Of the system, its ``conditions`` where it has them; else everything, by names such as ``system.python``.
    """
    found: dict[str, str] = {}
    for key, value in metadata.items():
        if prefix == "" and key == "system" and isinstance(value, Mapping) and value.get("conditions"):
            conditions = {**value["conditions"], **_blas_of_numpy(value)}
            found |= {name: str(said) for name, said in conditions.items() if said is not None}
        elif prefix == "" and key == "machine" and isinstance(value, Mapping):
            found["machine check"] = str(value.get("verdict"))
        elif value is None or isinstance(value, float) or _NO_CONDITION.fullmatch(key):
            continue
        elif isinstance(value, list | tuple):
            if not any(isinstance(item, float | list | dict) for item in value):
                found[prefix + key] = ", ".join(map(str, value))
        elif isinstance(value, Mapping):
            found |= stored_conditions(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = str(value)
    machine = metadata.get("machine")
    # those of the process that was measured count, not those of the process that saved the result
    return found | machine.get("conditions", {}) if prefix == "" and isinstance(machine, Mapping) else found


def _blas_of_numpy(system: Mapping[str, Any]) -> dict[str, str]:
    """Return NumPy's linear algebra library and its threads, if the loaded pools identify it.

    Older results name the first pool that was loaded, which may be the one of SciPy.
    """
    threads = system.get("threads")
    pools = threads.get("pools", []) if isinstance(threads, Mapping) else []
    version = str(system.get("blas") or "").rpartition(" ")[2]
    found = {str(pool) for pool in pools if version and f" {version}: " in str(pool)}
    if len(found) != 1:
        return {}
    name, _, number = found.pop().rpartition(": ")
    return {"BLAS": name, "BLAS threads": number}


def _load_and_rate(result: BenchmarkResult) -> tuple[float | None, float | None]:
    """Return the load when measuring began, and the processor's rate in MHz then; None where unknown."""
    system = result.metadata.get("system")
    if not isinstance(system, Mapping):
        return None, None
    load, rate = system.get("load_average"), system.get("frequency")
    return float(load[0]) if load else None, rate.get("current") if isinstance(rate, Mapping) else None


def condition_changes(baseline: BenchmarkResult, candidate: BenchmarkResult) -> dict[str, str]:
    """Return each condition of both results that differs, as ``{"Python": "3.11.2 → 3.12.1"}``."""
    old, new = stored_conditions(baseline.metadata), stored_conditions(candidate.metadata)
    changes = {name: f"{before} → {after}" for name, (before, after) in differing(old, new).items()}
    (load, rate), (load_now, rate_now) = _load_and_rate(baseline), _load_and_rate(candidate)
    if load is not None and load_now is not None and abs(load - load_now) >= 1:
        changes["load"] = f"{load:.1f} → {load_now:.1f}"
    if rate and rate_now and not 0.9 < rate_now / rate < 1.1:
        changes["processor rate"] = f"{rate:.0f} → {rate_now:.0f} MHz"
    return changes


def library_changes(baseline: BenchmarkResult, candidate: BenchmarkResult) -> list[str]:
    """Return the kernels, threads and variables of numerical libraries that differ, as text."""
    changes = condition_changes(baseline, candidate)
    return [f"{name} {change}" for name, change in changes.items() if re.search(_LIBRARIES_RUN, name)]


def allowed_changes(
    baseline: BenchmarkResult, candidate: BenchmarkResult, allow: Collection[str]
) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the conditions that differ, those of them that make times incomparable, and what is left of `allow`.

    What is left is for `check_comparable`; a condition may be allowed by its last part, ``governor``, too.
    """
    changes = condition_changes(baseline, candidate)
    stated = {*stored_conditions(baseline.metadata), *stored_conditions(candidate.metadata)}
    short = {name for whole in stated for name in (whole, whole.rpartition(".")[2])}
    shared = measurement_conditions(baseline)
    if unknown := set(allow) - short - set(shared):
        raise ValueError(f"allow names {sorted(unknown)}; there are {', '.join([*shared, *sorted(stated)])}")
    machine = "machine" in allow  # what is allowed to be another machine has another pace
    blocking = [
        name
        for name in changes
        if _PACE.search(name) and not machine and not {name, name.rpartition(".")[2]} & set(allow)
    ]
    return changes, blocking, [name for name in allow if name in shared]


def by_session(result: BenchmarkResult) -> tuple[BenchmarkResult, bool]:
    """Return a result with one median for each session, and whether these can tell how sessions differ.

    ``metadata["sessions"]`` has the session of each value. Latencies without it were measured in a row by one process,
    which is one session; other values count as independent.
    """
    marks = result.metadata.get("sessions")
    if marks is None and not {"order", "loops", "round_starts"} & set(result.metadata):
        return result, True
    marks = [0] * result.count if marks is None else list(marks)
    if len(marks) != result.count:
        raise ValueError(
            f"sessions has {number_of(len(marks), 'entry')} for "
            f"{number_of(result.count, 'value')}; give the session of each value"
        )
    groups: dict[Any, list[float]] = {}
    for mark, value in zip(marks, result.values, strict=True):
        groups.setdefault(mark, []).append(value)
    if len(groups) < 2:
        return result, False
    medians = [float(np.median(group)) for group in groups.values()]
    kept = {key: value for key, value in result.metadata.items() if key != "loops"}
    return replace(result, values=medians, metadata=kept), True


def gate_samples(
    worse: BenchmarkResult, better: BenchmarkResult, paired: bool | None
) -> tuple[BenchmarkResult, BenchmarkResult, bool, str]:
    """Return what a gate compares, whether in pairs, and what its values are: rounds, runs, sessions, or one session.

    Results of the same rounds compare round by round, others by the medians of their sessions.
    """
    paired = same_rounds(worse, better) if paired is None else paired
    marked = "sessions" in worse.metadata and worse.metadata["sessions"] == better.metadata.get("sessions")
    if paired and not marked:
        return worse, better, True, "rounds"
    (first, some), (second, others) = by_session(worse), by_session(better)
    if paired:
        return first, second, True, "sessions" if some else "rounds"
    if not (some and others):
        return worse, better, False, "one session"
    return first, second, False, "runs" if first is worse and second is better else "sessions"


def gate_answer(gate: Gate, changes: Mapping[str, str], blocking: Sequence[str], values: str) -> Gate:
    """Return the answer with the conditions that differ, and with what no number of runs would cure."""
    gate = replace(gate, differences=tuple(f"{name}: {change}" for name, change in changes.items()))
    comparison = gate.comparison
    if values == "one session":
        nothing: Any = {"ratio_ci": (0.0, math.inf), "difference_ci": (-math.inf, math.inf), "p_value": 1.0}
        comparison = replace(comparison, **nothing, verdict="undecided: one session each")
        gate = replace(gate, verdict=_ONE_SESSION, needs=None, interval=(-1.0, math.inf), comparison=comparison)
    elif values == "sessions":
        verdict = f"cannot tell: needs {number_of(gate.needs, 'session')} each" if gate.needs else gate.verdict
        method, seen = f"{comparison.method}, of medians of sessions", comparison.verdict.replace("rounds", "sessions")
        gate = replace(gate, verdict=verdict, comparison=replace(comparison, method=method, verdict=seen))
    if blocking:
        names = ", ".join(blocking)
        meant = f"allow={list(blocking)}, in a shell --allow {shlex.join(blocking)}"
        cure = f"measure both alike, or allow the difference if it is meant: {meant}"
        verdict = f"cannot tell: {names} differ{'s' if len(blocking) == 1 else ''}, and so may times; {cure}"
        return replace(gate, verdict=verdict, needs=None)
    if gate.needs is not None and gate.needs > MANY:
        return replace(gate, verdict="cannot tell: the slowdown is too close to the limit", needs=None)
    return gate
