"""Numbers, lists and tables as the pages write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from string import Formatter
from typing import Any

from tinybench.accuracy import wilson_interval
from tinybench.support.basics.table import Table


def share(count: int, of: int, digits: int = 0) -> str:
    """Return a share in percent with its 95 % Wilson interval: ``3 % (1–9)``."""
    percent, low, high = (f"{100 * value:.{digits}f}" for value in (count / of, *wilson_interval(count, of)))
    return f"{percent} % ({low}–{high})"


def exact_share(count: int, of: int) -> str:
    """Return a count with the 95 % interval of its share by Clopper and Pearson: ``19 of 20 (75 to 100 %)``."""
    from scipy.stats import binomtest

    low, high = binomtest(count, of).proportion_ci(method="exact")
    return f"{count} of {of} ({100 * low:.0f} to {100 * high:.0f} %)"


def ranged(values: Sequence[float], form: str = "{:.1f}") -> str:
    """Return median and range: ``2.0 (1.5 to 3.5)``, or a dash if there are no values."""
    middle, low, high = (form.format(f(values)) if values else "–" for f in (median, min, max))
    return f"{middle} ({low} to {high})" if values else middle


def interval(middle: float, low: float, high: float, form: str = "{:.1f}") -> str:
    """Return a value with its interval: ``+3.0 (+2.0 to +4.0)``."""
    return f"{form} ({form} to {form})".format(middle, low, high)


def grouped(records: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[Any, ...], list[Any]]:
    """Return records by their values of some keys, in the order in which these come first."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in keys), []).append(record)
    return groups


def pooled(records: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Return how many `rang` of how many, by the values of some keys."""
    groups = grouped(records, *keys).items()
    return {key: (sum(each["rang"] for each in these), sum(each["of"] for each in these)) for key, these in groups}


def table(rows: Iterable[Mapping[str, str]]) -> str:
    """Return rows as a Markdown table."""
    return Table(rows).markdown()


class _Cell(Formatter):
    def format_field(self, value: Any, spec: str) -> str:
        factor, times, form = spec.rpartition("×")
        return format(float(factor) * value if times else value, form)


def lines(records: Iterable[Mapping[str, Any]], head: str, row: str) -> str:
    """Return records as a Markdown table. `row` has the format of each cell: ``{way} | {seconds:1e3×.2f} | {share:.0%}``.

    A factor before ``×`` multiplies the value. A cell that names a None is a dash.
    """

    def cell(form: str, record: Mapping[str, Any]) -> str:
        missing = any(record[name] is None for _, name, _, _ in _Cell().parse(form) if name)
        return "–" if missing else _Cell().vformat(form, (), record)

    heads, cells = head.split(" | "), row.split(" | ")
    return table({name: cell(form, record) for name, form in zip(heads, cells, strict=True)} for record in records)


def bullets(lines: Iterable[str]) -> str:
    """Return lines as a Markdown list."""
    return "\n".join(f"- {line}" for line in lines)
