"""Sessions and conditions of stored results, and the final answer of the regression gate.

A session is a set of measurements from one process. The gate checks whether a candidate is slower than allowed.
"""

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
MANY = 10**5  # the gate does not advise more runs than this
# metadata that are not conditions, because they change with every measurement, or describe what was measured, not how
_NO_CONDITION = re.compile(
    r"(model|name|target|seed|pairing|notes?|time|memory|sessions|warmup.*|round_.*|session_.*|by_batch|model_bytes.*|.*_shape|shape|stage|"
    r"measured|processes|load_average|frequency|pools)"
)
# times are not comparable if these conditions differ: timer, work, clock rate or kernels
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
    """Return the conditions in a measurement's metadata, as a flat dictionary of texts. Leave out measured numbers.

    If ``metadata["system"]`` contains ``conditions``, no other entries of the system are returned. Otherwise all its
    entries are returned, with names such as ``system.python``.
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
    # conditions of the measured process override those of the process that saved the result
    return found | machine.get("conditions", {}) if prefix == "" and isinstance(machine, Mapping) else found


def _blas_of_numpy(system: Mapping[str, Any]) -> dict[str, str]:
    """Return the name and thread count of NumPy's BLAS. If the loaded thread pools do not identify it, return {}.

    Older results name the BLAS that was loaded first, possibly that of SciPy. This function corrects them.
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
    """Return the load average and the clock rate in MHz at the start of the measurement. An unknown value is None."""
    system = result.metadata.get("system")
    if not isinstance(system, Mapping):
        return None, None
    load, rate = system.get("load_average"), system.get("frequency")
    return float(load[0]) if load else None, rate.get("current") if isinstance(rate, Mapping) else None


def condition_changes(baseline: BenchmarkResult, candidate: BenchmarkResult) -> dict[str, str]:
    """Return the conditions that differ between two results, as ``{"Python": "3.11.2 → 3.12.1"}``."""
    old, new = stored_conditions(baseline.metadata), stored_conditions(candidate.metadata)
    changes = {name: f"{before} → {after}" for name, (before, after) in differing(old, new).items()}
    (load, rate), (load_now, rate_now) = _load_and_rate(baseline), _load_and_rate(candidate)
    if load is not None and load_now is not None and abs(load - load_now) >= 1:
        changes["load"] = f"{load:.1f} → {load_now:.1f}"
    if rate and rate_now and not 0.9 < rate_now / rate < 1.1:
        changes["processor rate"] = f"{rate:.0f} → {rate_now:.0f} MHz"
    return changes


def library_changes(baseline: BenchmarkResult, candidate: BenchmarkResult) -> list[str]:
    """Return the differences in kernels, threads and environment variables of the numerical libraries, as texts."""
    changes = condition_changes(baseline, candidate)
    return [f"{name} {change}" for name, change in changes.items() if re.search(_LIBRARIES_RUN, name)]


def allowed_changes(
    baseline: BenchmarkResult, candidate: BenchmarkResult, allow: Collection[str]
) -> tuple[dict[str, str], list[str], list[str]]:
    """Return all changed conditions, the names of those that are not allowed, and the names for `check_comparable`.

    A changed condition that affects speed is not allowed unless `allow` contains its name (the full name or the last
    part of it, such as ``governor``) or ``"machine"``. Other changes are always allowed. The names in `allow` that
    `check_comparable` accepts are returned last. If `allow` contains an unknown name, raise ValueError.
    """
    changes = condition_changes(baseline, candidate)
    stated = {*stored_conditions(baseline.metadata), *stored_conditions(candidate.metadata)}
    short = {name for whole in stated for name in (whole, whole.rpartition(".")[2])}
    shared = measurement_conditions(baseline)
    if unknown := set(allow) - short - set(shared):
        raise ValueError(f"allow names {sorted(unknown)}; there are {', '.join([*shared, *sorted(stated)])}")
    machine = "machine" in allow  # another machine may also have another clock rate
    blocking = [
        name
        for name in changes
        if _PACE.search(name) and not machine and not {name, name.rpartition(".")[2]} & set(allow)
    ]
    return changes, blocking, [name for name in allow if name in shared]


def by_session(result: BenchmarkResult) -> tuple[BenchmarkResult, bool]:
    """Return a result with one median for each session, and whether the result covers more than one session.

    ``metadata["sessions"]`` holds the session of each value. Latencies without this entry were measured in one process,
    which counts as one session. For other results without this entry, each value counts as independent.
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
    """Return the two results to compare, whether they are paired, and the kind of their values.

    The kind is "rounds", "runs", "sessions" or "one session". Results of the same rounds are compared round by round,
    others by the medians of their sessions.
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
    """Add the changed conditions to the gate's answer. If more runs would not help, the answer is "cannot tell".

    More runs do not help if each result has only one session, if a condition that must be the same differs, or if the
    slowdown is too close to the limit.
    """
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
