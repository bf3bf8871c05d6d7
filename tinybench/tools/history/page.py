"""Tables of a history of results, and a report page with its figures and tables."""

from __future__ import annotations

from collections.abc import Sequence

from tinybench.support.basics.numbers import number_of, plural, with_digits
from tinybench.support.basics.pages import Page, Section
from tinybench.support.basics.result_text import is_interval
from tinybench.support.basics.table import Table
from tinybench.tools.history.changed_conditions import Changed, conditions_over_time
from tinybench.tools.history.changes import Change
from tinybench.tools.history.pictures import picture, scaled
from tinybench.tools.history.series import Series

LEAST = 10  # fewest commits in which a change can be detected
ADVICE = (
    "Where a condition changed, measure again: the baseline and the commit before it, under the new condition. What "
    "they then differ by is the condition's, the rest is the code's."
)


def title_of(series: Series) -> str:
    """Return a title that names the benchmark and the machine of a series."""
    return f"{series.benchmark} on {series.machine}"


def what_changed(series: Series, changes: Sequence[Change]) -> str:
    """Return a sentence that states the last change of a series, or why there is no change."""
    n = len(series.points)
    commits = f"{n} commit{'s' * (n > 1)}"
    if changes:
        earlier = len(changes) - 1
        more = f" Before that, {earlier} change{'s' * (earlier > 1)}." if earlier else ""
        return f"{series.benchmark}, {commits}: {changes[-1].told(series)}{more}"
    return f"{series.benchmark}, {commits}: {no_change(series)}"


def no_change(series: Series) -> str:
    """Return the reason why a series has no change: its level is constant, or it has too few commits."""
    if len(series.points) < LEAST:
        return f"too few to detect a change; at least {LEAST} commits are needed."
    return "no change of level."


def commits_table(series: Series, changes: Sequence[Change], last: int = 0) -> Table:
    """Return a table with one row per commit, newest first.

    The table shows only the `last` commits, or all commits if `last` is 0.
    """
    rows, unit = scaled(series)
    changed = {change.place: change for change in changes}
    table = []
    for index, (point, (value, low, high)) in enumerate(zip(series.points, rows, strict=True)):
        width = high - low if is_interval(low, high) else 0.0
        median, *ends = (
            f"{'+' if series.baseline and each > 0 else ''}{with_digits(each, width)}"
            for each in (value, low, high)[: 3 if width else 1]
        )
        table.append(
            {
                "commit": point.commit[:10],
                "time": point.committed[:16].replace("T", " "),
                f"{'to the baseline' if series.baseline else 'median'} ({unit})": median,
                "95 % interval": " to ".join(ends) if width else "–",
                "measured": str(len(point.entries)),
                "change": changed[index].in_percent()[0] if index in changed else "",
            }
        )
    against = f", against {series.baseline[:10]} measured in the same rounds" if series.baseline else ""
    return Table(table[::-1][: last or None], title_of(series) + against)


def changes_table(series: Series, changes: Sequence[Change]) -> Table:
    """Return a table with one row per change of the series."""
    rows = []
    for change in changes:
        size, interval = change.in_percent()
        first, last = series.commits[change.earliest][:10], series.commits[change.latest][:10]
        within = "this commit" if first == last else f"one of {first} to {last}"
        rows.append(
            {
                "from": change.commit[:10],
                "place": within,
                "change": size,
                "95 % interval": interval,
                "verdict": "worse" if change.worse else "better",
            }
        )
    return Table(rows, title_of(series))


def conditions_table(changed: Sequence[Changed]) -> list[dict[str, str]]:
    """Return one table row for each condition that changed."""
    return [
        {
            "from": each.commit[:10],
            "kind": each.kind,
            "condition": each.condition,
            "change": f"{each.before} → {each.after}",
        }
        for each in changed
    ]


def cautions(series: Series) -> list[str]:
    """Return warnings about a series: that it has no baseline, or that measurements were left out."""
    told = []
    if not series.baseline:
        told.append(
            f"{title_of(series)}: without a baseline of the same rounds, a slower machine looks like slower code. "
            "`tinybench gate --run … --beside COMMIT --save FILE` measures one."
        )
    if series.left_out:
        told.append(
            f"{title_of(series)}: {number_of(series.left_out, 'measurement')} against another baseline "
            f"{plural(series.left_out, 'is', 'are')} left out; measure "
            f"{series.baseline[:10] or 'the old baseline'} against it, and they join."
        )
    return told


def page_of(found: Sequence[tuple[Series, list[Change]]]) -> Page:
    """Return a report page with all series and their changes."""
    pictures, sections, sentences, warnings = {}, [], [], []
    for number, (series, changes) in enumerate(found):
        told = [change.told(series) for change in changes] or [no_change(series).capitalize()]
        pictures[f"{number}"] = picture(series, changes, told)
        name = "" if len(found) == 1 else f": {title_of(series)}"
        shown = Section(title_of(series), "" if len(found) == 1 else what_changed(series, changes), [], [f"{number}"])
        sections.append(shown)
        if changes:
            sections.append(Section(f"Changes{name}", _CHANGES, changes_table(series, changes).rows, []))
        if changed := conditions_over_time(series.points):
            sections.append(Section(f"When to measure again{name}", ADVICE, conditions_table(changed), []))
        table = commits_table(series, changes)
        sections.append(Section(f"Commits{name}", table.caption, table.rows, []))
        sentences.append(what_changed(series, changes))
        warnings += cautions(series)
    head = sentences[0] if len(sentences) == 1 else _summary(found)
    return Page("History", head, pictures, sections, warnings)


def _summary(found: Sequence[tuple[Series, list[Change]]]) -> str:
    worse = [series.benchmark for series, changes in found if any(change.worse for change in changes[-1:])]
    if not worse:
        return f"{len(found)} series; none has become worse by its last change."
    return f"{len(found)} series; worse by their last change: {'; '.join(worse)}."


_CHANGES = (
    "A change is where the level changed, not where one commit is odd. Among 300 commits without any, there is a false "
    "one in at most 1 % of histories, if what disturbs a commit does not disturb its neighbours as well. Places and "
    "sizes have 95 % intervals."
)
