"""One entry of a history: the measurement of a commit and, optionally, of a baseline.

The commit and the baseline are measured in the same rounds, so that the state of the machine affects both alike.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any

from tinybench.result import BenchmarkResult
from tinybench.support.basics.result_text import is_interval
from tinybench.support.basics.short_reprs import short_repr

NAMES = ("benchmark", "machine", "commit", "baseline")
GIVEN = ("metric_name", "unit", "confidence", "metadata", "values")  # other fields of a result are computed from these


@dataclass(frozen=True)
class Measurement:
    """A measurement of one commit.

    Attributes
    ----------
    benchmark, machine
        The names of the benchmark and of the machine. Entries with the same two names form a series.
    commit, committed
        The name of the commit, and the time at which it was committed. Entries are sorted by this time.
    measured
        The time of the measurement.
    baseline
        The name of the baseline that was measured in the same rounds, usually a commit. Empty without a baseline.
    value, low, high
        The ratio to the baseline with its 95 % interval (0 to infinity if there were too few rounds). Without a
        baseline, the median in `unit` with its interval.
    unit
        The unit of the median; empty for a ratio.
    result, baseline_result
        The complete results of the commit and of the baseline, in the form that ``BenchmarkResult.from_dict`` reads.
    """

    benchmark: str
    machine: str
    commit: str
    committed: str
    measured: str
    baseline: str
    value: float
    low: float
    high: float
    unit: str
    result: dict[str, Any]
    baseline_result: dict[str, Any] | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name in NAMES:
            text = getattr(self, name)
            if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in text):
                raise ValueError(f"{name} is {text!r}; a name holds no line breaks or other control characters")

    @property
    def id(self) -> str:
        """A digest of the measurement, by which a measurement that is added twice is recognised and stored once."""
        texts = [*(getattr(self, name) for name in NAMES), as_text(self.result), as_text(self.baseline_result)]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data for ``json.dumps``. If `low` and `high` are not an interval, both are None."""
        unknown = {} if is_interval(self.low, self.high) else {"low": None, "high": None}
        return asdict(self) | unknown

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measurement:
        """Create an entry from the output of `to_dict`. Raise ValueError if a field is missing or invalid.

        The value and its interval are computed again from the results, so they always match the measurement.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"an entry is a dictionary, not {type(data).__name__}")
        if missing := [name for name in (*NAMES, "result") if not isinstance(data.get(name), str | Mapping)]:
            raise ValueError(f"{', '.join(missing)} missing; an entry is written by `tinybench history export`")
        result = BenchmarkResult.from_dict(data["result"])
        baseline = BenchmarkResult.from_dict(data["baseline_result"]) if data.get("baseline_result") else None
        named = {name: str(data[name]) for name in NAMES}
        return entry_of(result, baseline, **named, committed=data.get("committed"), measured=data.get("measured"))


def entry_of(
    result: BenchmarkResult,
    baseline_result: BenchmarkResult | None = None,
    *,
    commit: str = "",
    committed: str | None = None,
    measured: str | None = None,
    benchmark: str = "",
    machine: str = "",
    baseline: str = "",
) -> Measurement:
    """Return a measurement as an entry of a history.

    Parameters
    ----------
    result, baseline_result
        The result of the commit and, if there is a baseline, the result of the baseline in the same rounds.
    commit, benchmark, machine, baseline
        Names, by default taken from the metadata. The commit comes from ``commit``, the benchmark from ``target`` or
        ``model`` and the metric, the machine from the processor and its number of cores, and the baseline from
        ``commit`` or ``model`` in its own metadata.
    committed, measured
        Times in ISO format. By default, `measured` is ``system.time`` in the metadata or, without this field, the
        current time. By default, `committed` is equal to `measured`.

    Raises
    ------
    ValueError
        If no commit is given, a time is not valid, or the two results come from different rounds.
    """
    told = result.metadata
    if not (commit := commit or str(told.get("commit") or "")):
        raise ValueError("of which commit? The result does not say; give --commit (commit=…)")
    system: Mapping[str, Any] = told["system"] if isinstance(told.get("system"), Mapping) else {}
    measured = as_utc(measured or system.get("time") or datetime.now(UTC).isoformat())
    unit, value, low, high = "", *_ratio(result, baseline_result)
    if baseline_result is None:
        unit, baseline = result.unit, ""
    else:
        other = baseline_result.metadata
        baseline = baseline or str(other.get("commit") or other.get("model") or "baseline")
    return Measurement(
        benchmark or benchmark_name(result),
        machine or machine_name(system),
        commit,
        as_utc(committed) if committed else measured,
        measured,
        baseline,
        *(value, low, high, unit),
        _given(result),
        _given(baseline_result) if baseline_result else None,
    )


def _given(result: BenchmarkResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in GIVEN}


def as_text(result: Mapping[str, Any] | None) -> str:
    """Return a stored result as JSON, or an empty string for None. Equal results give the same text."""
    return "" if result is None else json.dumps(result, sort_keys=True, ensure_ascii=False)


def _ratio(result: BenchmarkResult, baseline: BenchmarkResult | None) -> tuple[float, float, float]:
    """Return the ratio to the baseline and its interval, or the median and its interval if there is no baseline.

    If the rounds come from several sessions, each session contributes one ratio, because sessions differ.
    """
    from tinybench.comparison import median_ratio
    from tinybench.support.comparisons.two_samples import median_interval, same_rounds

    if baseline is None:
        return result.median, *median_interval(result.independent_values)
    if not same_rounds(result, baseline):
        raise ValueError(
            "result and baseline come from different rounds, so what the machine did between them would look like a "
            "change of the code; measure both together, as `tinybench gate --run … --save FILE` does"
        )
    sessions = result.metadata.get("sessions") or range(result.count)
    groups: dict[Any, list[float]] = {}
    for session, new, old in zip(sessions, result.values, baseline.values, strict=True):
        if min(new, old) <= 0:
            raise ValueError(f"{min(new, old)} has no ratio; a history with a baseline takes positive values")
        groups.setdefault(session, []).append(new / old)
    medians = [median(group) for group in groups.values()]
    return median_ratio(medians, [1.0] * len(medians))


def benchmark_name(result: BenchmarkResult) -> str:
    """Return the name of a benchmark, such as ``"latency of app:predict"``. The name of the commit is left out."""
    named = str(result.metadata.get("target") or result.metadata.get("model") or "")
    what = named.rpartition(" at ")[0] or named if result.metadata.get("commit") else named
    return f"{result.metric_name} of {what}" if what else result.metric_name


def machine_name(system: Mapping[str, Any]) -> str:
    """Return the processor and its number of cores, or ``"unknown machine"`` if the processor was not recorded."""
    return f"{system['cpu']}, {system.get('cores', '?')} cores" if system.get("cpu") else "unknown machine"


def as_utc(text: str) -> str:
    """Return an ISO time in UTC without fractions of a second, so that sorting such texts sorts them by time."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(f"{text!r} is no time; write 2026-11-23T20:15:00+00:00") from None
    return (moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat(timespec="seconds")
