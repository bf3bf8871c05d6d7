"""The implementation of `tinybench gate --run`: measure old and new code in sessions until a verdict is reached.

A session starts a fresh process for each side (old, new and an optional third commit) and measures the sides in turn.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tinybench.comparison import anytime_interval, sign_e_value
from tinybench.result import BenchmarkResult
from tinybench.shell.comparison_sessions import Measured
from tinybench.shell.files import keep
from tinybench.shell.gate_targets import Target, read_target, read_targets
from tinybench.shell.measuring_sessions import run_sessions, stopping_on_term
from tinybench.shell.result_output import finish
from tinybench.shell.side_process import ProcessorWait
from tinybench.support.basics.numbers import finite, number_of, with_digits
from tinybench.support.basics.result_text import is_interval, scale_unit
from tinybench.support.basics.table import Table
from tinybench.support.comparisons.ratio_words import short_number, span
from tinybench.support.conditions.environment_variables import differing
from tinybench.support.rounds.machine_state import disturbed, machine_notes

# The two-sided e-value at which the interval excludes a median. The one-sided e-value is then about 50: twice as large,
# minus the contribution of the other direction (below 3 %). So each end of the interval is wrong with a probability of
# at most 2 %, however often the data are examined.
STOP_AT = 26.0
LEAST, MOST = 8, 10_000  # sessions: the fewest for a verdict (if all agree), and the most in a forecast


@dataclass(frozen=True)
class GateRun:
    """The gate's result after the sessions so far. ``str`` formats the result as lines of text.

    The verdict is ``passes``, ``fails``, or ``cannot tell`` with an estimate of the sessions still needed. `ratio` is
    the new time divided by the old time, as the median over sessions, or None before the first session. Each end of
    `interval` is wrong with a probability of at most 2 %, however often the result is examined.
    """

    verdict: str
    old: str
    new: str
    ratio: float | None
    interval: tuple[float, float]
    limit: float
    sessions: int
    seconds: float
    needs: int | None
    medians: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the verdict, the medians with the number of sessions and the time taken, and the notes."""
        lines = [f"{self.verdict} (limit {100 * self.limit:.3g} % slower): {self._change()}"]
        if self.medians:
            factor, unit = scale_unit(min(self.medians.values()), "s")
            times = ", ".join(f"{name} {seconds / factor:.4g} {unit}" for name, seconds in self.medians.items())
            lines.append(
                f"medians: {times}; {number_of(self.sessions, 'session')} in fresh processes, {self.seconds:.1f} s"
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def markdown(self) -> str:
        """Return the verdict, a table and the notes in Markdown, for a comment on a code change."""
        change = "nothing measured yet" if self.ratio is None else "{} ({})".format(*self._size(self.ratio))
        rows = []
        for side, label in (("old", self.old), ("new", self.new)):
            factor, unit = scale_unit(self.medians[side], "s") if side in self.medians else (1.0, "")
            took = f"{self.medians[side] / factor:.4g} {unit}" if unit else "–"
            rows.append({"measured": label, "median": took, "change": change if side == "new" else ""})
        head = f"**{self.verdict}** (limit {100 * self.limit:.3g} % slower)"
        how = f"{number_of(self.sessions, 'session')} in fresh processes that took turns, {self.seconds:.1f} s."
        return "\n\n".join([head, Table(rows).markdown(), how, *(f"Note: {note}." for note in self.notes)])

    def _change(self) -> str:
        if self.ratio is None:
            return f"{self.new} against {self.old}: nothing measured yet"
        size, within = self._size(self.ratio)
        if self.ratio >= 2:
            return f"{self.new} takes {size} as {self.old} ({within})"
        return f"{self.new} against {self.old}: time {size} ({within})"

    def _size(self, ratio: float) -> tuple[str, str]:
        """Return the change and its interval as texts: in percent, or as multiples if the ratio is 2 or more."""
        low, high = self.interval
        change, ends = 100 * (ratio - 1), (100 * (low - 1), 100 * (high - 1))
        if ratio >= 2:
            width = high - low if is_interval(low, high) else 0.0
            size = f"{with_digits(ratio, width) if width else format(ratio, '.3g')} times as long"
            within = " to ".join(with_digits(end, width) for end in (low, high) if width)
        else:
            size, within = f"{'+' if change > 0 else ''}{short_number(change, ends)} %", span(ends, "%")
        return size, within if is_interval(low, high) else "no interval yet"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for ``json.dumps``."""
        interval = (self.interval[0] - 1, self.interval[1] - 1) if is_interval(*self.interval) else None
        slowdown = None if self.ratio is None else self.ratio - 1
        fields = asdict(self) | {"slowdown": slowdown, "interval": interval, "max_slowdown": self.limit}
        return finite(fields | {"notes": list(self.notes)})  # type: ignore[no-any-return]


def sessions_needed(logs: Sequence[float], limit: float) -> int | None:
    """Estimate how many more sessions a verdict needs. Return None if the total would exceed `MOST`.

    The estimate assumes that the fraction of sessions whose log ratio is above `limit` stays the same.
    """
    n = len(logs)
    above = sum(value > limit for value in logs)
    share = max(above, n - above) / n if n else 1.0
    size = max(LEAST, n + 1)
    while size <= MOST:
        if sign_e_value(round(share * size), size) >= STOP_AT:
            return size - n
        size += max(1, size // 50)
    return None


def decision_so_far(logs: Sequence[float], limit: float) -> tuple[str, tuple[float, float]]:
    """Return the verdict (``passes``, ``fails`` or an empty string) and the interval of new / old that supports it."""
    low, high = (math.exp(end) for end in anytime_interval(logs, STOP_AT))
    return "passes" if high <= 1 + limit else "fails" if low > 1 + limit else "", (low, high)


def log_ratios(measured: Measured) -> list[float]:
    """Return the median of log(new / old) over the rounds of each session."""
    return measured.medians(lambda row: math.log(row["new"] / row["old"]))


def answer_so_far(
    targets: Mapping[str, Target], measured: Measured, limit: float, seconds: float, notes: Sequence[str] = ()
) -> GateRun:
    """Return the gate's result after the sessions so far."""
    logs = log_ratios(measured)
    verdict, interval = decision_so_far(logs, limit)
    needs = None if verdict else sessions_needed(logs, math.log1p(limit))
    if not verdict:
        verdict = undecided(needs, seconds / max(1, len(logs)))
    return GateRun(
        verdict,
        targets["old"].label,
        targets["new"].label,
        math.exp(median(logs)) if logs else None,
        interval,
        limit,
        len(logs),
        seconds,
        needs,
        {name: median(values) for name, values in measured.values.items() if values},
        (*notes, *remarks(targets, measured)),
    )


def undecided(needs: int | None, each: float) -> str:
    """Return an undecided verdict with the sessions and the time still needed, at `each` seconds per session."""
    if needs is None:
        return f"cannot tell: would need over {MOST:,} sessions, so close is the ratio to the limit"
    more = f"{needs} more session{'s' * (needs > 1)}"
    return f"cannot tell: needs about {more} (about {max(1.0, needs * each):.0f} s more)"


def remarks(targets: Mapping[str, Target], measured: Measured) -> Iterator[str]:
    """Yield remarks that a reader needs to interpret the ratio."""
    if same_code(targets["old"], targets["new"], measured):
        yield "old and new run the same bytes"
    own = (measured.conditions.get(name, {}) for name in ("old", "new"))
    if changes := [f"{name} {before} → {after}" for name, (before, after) in differing(*own).items()]:
        yield f"old and new set their own conditions: {', '.join(changes)}"
    for name in targets:
        if measured.busy.get(name, 1.0) < 0.05:
            yield f"{name} waits most of its time (sleep, disk, network), and that wait is in what was measured"


def same_code(old: Target, new: Target, measured: Measured) -> bool:
    """Return whether both sides are known to run the same files. Return False for commands that run in two commits."""
    if not old.commit or old.is_file:
        return old.digests() == new.digests()
    files = measured.files.get("old")
    return bool(files) and files == measured.files.get("new")


def run_gate(
    old: str,
    new: str,
    limit: float,
    *,
    call: str | None = None,
    beside: str | None = None,
    seconds: float = 60.0,
    seed: int | None = None,
    save: Path | None = None,
    form: str = "table",
    **how: Any,
) -> str:
    """Measure old and new until a verdict is reached, print and save the result, and return the verdict.

    An optional third commit, `beside`, is measured in the same rounds but does not affect the verdict.

    If an exception or Ctrl-C ends the run early, the measurements so far are printed and saved first.
    """
    if save and not save.absolute().parent.is_dir():
        raise FileNotFoundError(f"--save {save}: there is no folder {save.absolute().parent}")
    if beside and not call:
        raise ValueError("--beside names a commit, and so takes --call, what to run in each")
    with stopping_on_term(), read_targets(old, new, call, beside, **how) as (targets, notes):
        measured, began, interrupted = Measured({name: [] for name in targets}), time.monotonic(), True
        try:
            run_sessions(
                targets, measured, seconds, seed=seed, decided=lambda: decision_so_far(log_ratios(measured), limit)[0]
            )
            interrupted = False
        finally:
            answer = answer_so_far(targets, measured, limit, time.monotonic() - began, notes)
            if measured.count or not interrupted:
                show_answer(answer, form)
            problem = keep_rounds(measured.results(targets), save, interrupted) if measured.count else ""
        if problem:
            raise OSError(problem)
        return answer.verdict


def show_answer(answer: GateRun, form: str) -> None:
    """Print the gate's result with the conditions of the measurement."""
    from tinybench.benchmark import system_info

    system, notes = system_info(), machine_notes()
    load = f", load {system['load_average'][0]:.1f}" if system["load_average"] else ""
    if form == "json":
        print(json.dumps(answer.to_dict() | {"system": system} | notes), flush=True)
    else:
        text = answer.markdown() + "\n" if form == "markdown" else answer
        wait = "without" if can_tell_waits() else "with"
        where = f"on {number_of(system['cores'], 'core')} of {system['cpu']}{load}, Python {system['python']}"
        told = disturbed(notes.get("machine", {}).get("warnings", []))
        print(f"{text}\n{where}; {wait} the wait for a busy processor{told and f'; {told}'}", flush=True)


def keep_rounds(results: dict[str, BenchmarkResult], save: Path | None, interrupted: bool) -> str:
    """If `save` is given or the run was interrupted, write all rounds and print the file's path. Return any error."""
    file, problem = keep(results, save, interrupted)
    if file:
        print(f"the measurements are in {file}", file=sys.stderr)
    return problem


def can_tell_waits() -> bool:
    """Return whether this system reports how long a process waits for a processor."""
    wait = ProcessorWait()
    wait.close()
    return wait.file >= 0


def measure_in_sessions(
    model: str, sessions: int, seconds: float, form: str, seed: int | None = None, save: Path | None = None, **how: Any
) -> str:
    """Measure one model in `sessions` fresh processes, print and save the result, and return any file error as text."""
    if sessions < 1:
        raise ValueError(f"--sessions is {sessions}; it takes at least 1")
    target = read_target(model, Path.cwd(), **how)
    name = Path(target.label).stem if target.is_file else target.label
    measured, problem, interrupted = Measured({name: []}), "", True
    with stopping_on_term():
        try:
            run_sessions({name: target}, measured, seconds, seed=seed, sessions=sessions)
            interrupted = False
        finally:  # keep the sessions so far, whatever ended the run
            if measured.count:
                results = measured.results({name: target})
                problem = finish(results, sessions_table(name, measured, sessions), form, save, interrupted)
    return problem


def sessions_table(name: str, measured: Measured, sessions: int) -> Table:
    """Return a table of the median of each session."""
    medians = measured.medians(lambda row: row[name])
    factor, unit = scale_unit(median(medians), "s")
    rounds = list(Counter(measured.sessions).values())
    rows = [
        {"session": str(number), f"median ({unit})": f"{value / factor:.4g}", "rounds": str(count)}
        for number, (value, count) in enumerate(zip(medians, rounds, strict=True), 1)
    ]
    fewer = "" if len(medians) == sessions else f" of {sessions}; for all of them give more --seconds"
    spread = f"{min(medians) / factor:.4g} to {max(medians) / factor:.4g} {unit}"
    caption = (
        f"{name}: {median(medians) / factor:.4g} {unit} ({spread}), medians of "
        f"{number_of(len(medians), 'session')}{fewer}"
    )
    return Table(rows, caption)
