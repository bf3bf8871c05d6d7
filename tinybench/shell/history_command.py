"""The `tinybench history` commands: keep results by commit, find changes, and advise when to measure again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tinybench.shell.options import FILE, FORMAT, Group, refuse_given, with_options
from tinybench.support.basics.numbers import number_of, plural
from tinybench.support.basics.table import FORMATS

FINE, WORSE, UNDECIDED = 0, 1, 2

STORE = click.option(
    "--file", "store", type=FILE, default="tinybench-history.db", envvar="TINYBENCH_HISTORY", metavar="FILE",
    help="The history, an SQLite file.",
)  # fmt: skip
WHICH = [
    STORE,
    click.option("--benchmark", default="", metavar="NAME", help="Select this benchmark only."),
    click.option("--machine", default="", metavar="NAME", help="Select this machine only."),
]
ADDING = [
    STORE,
    click.option("--baseline", type=FILE, metavar="FILE", help="The file of the baseline, if RESULT does not hold it."),
    click.option("--model", help="The model, if RESULT holds several; after `gate --run`, by default new."),
    click.option("--against", metavar="MODEL", help="The baseline model; after `gate --run`, by default old."),
    click.option("--commit", default="", help="The commit; by default the one recorded in the result."),
    click.option("--committed", metavar="TIME", help="Time of the commit; by default from git."),
    click.option("--benchmark", default="", metavar="NAME", help="The benchmark's name; by default metric and target."),
    click.option("--machine", default="", metavar="NAME", help="The machine's name; by default processor and cores."),
    click.option("--lines", type=FILE, metavar="FILE", help="Also write the entry to this file, as `export` does."),
    click.option("--condition", "conditions", multiple=True, metavar="NAME=VALUE...",
                 help="A condition of the measurement, such as traffic=200/s."),
]  # fmt: skip
SHOWING = [
    *WHICH,
    click.option("--last", default=0, metavar="N", help="Show only the last N commits in the table; 0 shows all."),
    FORMAT,
    click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
    click.option("--figure", type=FILE, metavar="FILE", help="Draw the series, .svg or .png."),
    click.option("--page", type=FILE, metavar="FILE", help="Write everything as one page, .html."),
]


@click.group(cls=Group, no_args_is_help=True)
def history() -> None:
    """Keep results by commit, and find what changed and when.

    One SQLite file keeps the result of each commit as a ratio to a baseline that was measured in the same rounds. A
    faster or busier machine does not change this ratio. Any number of processes may write to the file at once.
    """


@history.command()
@click.argument("result", type=FILE)
@with_options(ADDING)
def add(result: Path, store: Path, lines: Path | None, conditions: Sequence[str], **named: Any) -> int:
    """Add a result to the history.

    RESULT is a file that `measure`, `compare` or `gate --run` wrote with --save. The file of `gate --run` also holds
    the baseline. Adding the same measurement again changes nothing.
    """
    from tinybench.tools.history.sqlite_store import History

    entry = read_entry(result, conditions=conditions, **named)
    with History(store) as kept:
        new = kept.add_all([entry])
        count = len(kept.entries(entry.benchmark, entry.machine))
    if lines:
        write_lines(lines, [entry])
    said = "added" if new else "is there already"
    print(
        f"{entry.commit[:10]} {said}: {entry.benchmark} on {entry.machine}, "
        f"{number_of(count, 'measurement')} in {store}"
    )
    return FINE


@history.command()
@with_options(SHOWING)
def show(
    store: Path,
    benchmark: str,
    machine: str,
    last: int,
    form: str,
    as_json: bool,
    figure: Path | None,
    page: Path | None,
) -> int:
    """Show every commit as a table, a figure or a page."""
    from tinybench.benchmark import system_info
    from tinybench.tools.history.changed_conditions import changed_since, conditions_over_time
    from tinybench.tools.history.changes import changes_of
    from tinybench.tools.history.page import cautions, commits_table, page_of, what_changed
    from tinybench.tools.history.pictures import draw

    if as_json:
        refuse_given({"form"}, "without --json")
        form = "json"
    if form == "json":
        refuse_given({"last"}, "for a table; JSON holds every commit")
    found = [(series, changes_of(series)) for series in read_series(store, benchmark, machine)]
    if figure and len(found) > 1:
        raise ValueError(f"--figure draws one series and there are {len(found)}; choose with --benchmark and --machine")
    if form == "json":
        print(json.dumps([as_data(*each) for each in found]))
    for series, changes in [] if form == "json" else found:
        table = commits_table(series, changes, last)
        print(FORMATS[form](table), end="\n\n")
        notes = [what_changed(series, changes), *cautions(series), *map(str, conditions_over_time(series.points))]
        notes += [f"measure again, {each}" for each in changed_since(series.points[-1], system_info())]
        print(*notes, sep="\n", file=sys.stdout if form in ("table", "markdown") else sys.stderr)
    if figure:
        draw(*found[0]).savefig(figure, dpi=130)
    if page:
        from tinybench.suite import write_text

        write_text(page, page_of(found).html())
    for file in filter(None, [figure, page]):
        print(f"tinybench: wrote {file}", file=sys.stderr)
    return FINE


@history.command(name="changes")
@with_options([*WHICH, click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")])
def show_changes(store: Path, benchmark: str, machine: str, as_json: bool) -> int:
    """Show what changed, by how much, and since which commit.

    Exit code 0: no series became worse by its last change; 1: at least one did; 2: too few commits to decide.
    """
    from tinybench.tools.history.changes import changes_of
    from tinybench.tools.history.page import LEAST, changes_table, what_changed

    found = [(series, changes_of(series)) for series in read_series(store, benchmark, machine)]
    if as_json:
        print(json.dumps([change.to_dict(series) for series, changes in found for change in changes]))
    else:
        for series, changes in found:
            print(
                what_changed(series, changes),
                *([f"\n{changes_table(series, changes).text()}\n"] if changes else []),
                sep="\n",
            )
    if any(changes and changes[-1].worse for _, changes in found):
        return WORSE
    return UNDECIDED if all(len(series.points) < LEAST for series, _ in found) else FINE


@history.command()
@click.argument("out", type=FILE, required=False)
@with_options(WHICH)
def export(out: Path | None, store: Path, benchmark: str, machine: str) -> int:
    """Write all measurements as lines of JSON to OUT, or print them.

    The lines keep their order, so that a git diff shows only new measurements. `import` reads the file.
    """
    from tinybench.tools.history.sqlite_store import History

    with History(store, create=False) as kept:
        entries = kept.entries(benchmark, machine)
    if write_lines(out, entries):
        print(f"tinybench: wrote {number_of(len(entries), 'measurement')} to {out}", file=sys.stderr)
    return FINE


@history.command(name="import")
@click.argument("files", type=FILE, nargs=-1, required=True)
@STORE
def take_in(files: Sequence[Path], store: Path) -> int:
    """Import files that `export` wrote, all or nothing. Known measurements are not added twice."""
    from tinybench.shell.files import refuse_missing
    from tinybench.tools.history.sqlite_store import History

    refuse_missing(*files)
    entries = [entry for file in files for entry in read_lines(file)]
    with History(store) as kept:
        new = kept.add_all(entries)
    print(f"{new} of {number_of(len(entries), 'measurement')} {plural(new, 'is', 'are')} new in {store}")
    return FINE


def write_lines(file: Path | None, entries: Sequence[Any]) -> bool:
    """Write entries as lines of JSON to a file, or print them if `file` is None. Return whether a file was written."""
    text = "".join(f"{json.dumps(entry.to_dict(), sort_keys=True)}\n" for entry in entries)
    if file is None:
        print(text, end="")
        return False
    from tinybench.suite import write_text

    write_text(file, text)
    return True


def read_lines(file: Path) -> list[Any]:
    """Return the entries of a file of JSON lines. Raise ValueError with the number of the first invalid line."""
    from tinybench.tools.history.entry import Measurement

    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{file} is no text; `tinybench history export` writes lines of JSON") from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(Measurement.from_dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file}, line {number}: {error}; nothing was taken in") from None
    return found


def read_entry(
    file: Path,
    *,
    baseline: Path | None,
    model: str | None,
    against: str | None,
    commit: str,
    committed: str | None,
    conditions: Sequence[str],
    **named: str,
) -> Any:
    """Return a history entry for a result in a file."""
    from tinybench.shell.files import load_result
    from tinybench.tools.history.entry import entry_of

    names = model_names(file)
    if {"old", "new"} <= set(names):  # written by `gate --run`
        model, against = model or "new", against or ("baseline" if "baseline" in names else "old")
    result = load_result(file, model)
    beside = load_result(baseline or file, against) if baseline or against else None
    for text in conditions:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ValueError(f"--condition {text!r}: write NAME=VALUE, such as traffic=200/s")
        result.metadata[name] = value
    commit = commit or str(result.metadata.get("commit") or "")
    if commit == "working tree":
        raise ValueError(
            "the working tree was measured, which is no commit; commit it and measure that, or give --commit"
        )
    commit, committed = look_up(commit, committed)
    return entry_of(result, beside, commit=commit, committed=committed, **named)


def model_names(file: Path) -> list[str]:
    """Return the names of the results in a file. If the file is invalid, return []; `load_result` reports why."""
    try:
        results = json.loads(file.read_text(encoding="utf-8"))["results"]
        return list(results)
    except (OSError, ValueError, KeyError, TypeError):
        return []


def look_up(commit: str, committed: str | None) -> tuple[str, str | None]:
    """Return a commit's full hash and, unless given, its time from git. If git finds no commit, change neither."""
    if not commit:
        return commit, committed
    command = ["git", "show", "--no-patch", "--format=%H %cI", "--end-of-options", f"{commit}^{{commit}}"]
    try:
        told = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=True
        ).stdout.split()
    except (OSError, subprocess.CalledProcessError):  # no git, no repository, or no such commit
        return commit, committed
    return told[0], committed or told[1]


def read_series(store: Path, benchmark: str, machine: str) -> list[Any]:
    """Return the series of a benchmark on a machine. An empty name matches every benchmark or machine."""
    from tinybench.tools.history.sqlite_store import History

    with History(store, create=False) as kept:
        keys = [key for key in kept.names() if benchmark in ("", key[0]) and machine in ("", key[1])]
        if not keys:
            there = "; ".join(f"{name!r} on {where!r}" for name, where in kept.names())
            raise ValueError(f"nothing of that name in {store}; there are {there or 'no results yet'}")
        return [kept.series(*key) for key in keys]


def as_data(series: Any, changes: Sequence[Any]) -> dict[str, Any]:
    """Return a series with its changes as plain data for ``json.dumps``."""
    from tinybench.support.basics.numbers import finite
    from tinybench.support.basics.result_text import is_interval
    from tinybench.tools.history.changed_conditions import conditions_over_time

    points = [{**point._asdict(), "entries": len(point.entries)} for point in series.points]
    for point in points:
        if not is_interval(point["low"], point["high"]):
            point |= {"low": None, "high": None}
    told = {"changes": [change.to_dict(series) for change in changes]}
    again = {"conditions": [each._asdict() for each in conditions_over_time(series.points)]}
    return finite({**series._asdict(), "points": tuple(points)} | told | again)  # type: ignore[no-any-return]
