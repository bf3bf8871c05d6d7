"""The `tinybench rollout` command: move 5, 20, 50, then 100 % of the users to a new version, or roll it back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinybench.shell.options import (
    DATA,
    FILE,
    Command,
    duration,
    refuse_given,
    share,
    share_or_all,
    some_time,
    with_options,
)
from tinybench.shell.serve_command import FAULTS, fault
from tinybench.support.basics.numbers import number_of
from tinybench.tools.rollout.e_values import METRICS

if TYPE_CHECKING:
    from tinybench.tools.rollout.plan import Checkpoint, Report

PROMOTED, BACK, UNKNOWN = 0, 1, 2
CANNOT_TELL = ("blind", "interrupted", "differs")
ROLLING = [
    DATA,
    click.option("--rate", default=200.0, help="Requests per second from all users."),
    click.option("--users", type=click.IntRange(min=100), default=20_000, help="Number of users."),
    click.option(
        "--bound",
        type=some_time,
        default="50ms",
        metavar="TIME",
        help="Latency bound; a rise by a fifth of it is harm.",
    ),
    click.option("--mirrored", type=share, default="40%", help="Fraction of requests that go to both versions."),
    click.option(
        "--allowed",
        type=share_or_all,
        default="1%",
        help="Without labels: the fraction of answers that may differ; 100% allows any difference.",
    ),
    click.option("--every", type=some_time, default="500ms", metavar="TIME", help="Time between polls."),
    click.option(
        "--patience",
        type=click.IntRange(min=1),
        default=20,
        help="Roll back after this number of polls without new readings.",
    ),
    click.option(
        "--longest",
        type=some_time,
        default="1min",
        metavar="TIME",
        help="Longest time for a stage; after it, roll back.",
    ),
    click.option(
        "--label-delay", type=duration, default="1s", metavar="TIME", help="Time from an answer to its label."
    ),
    click.option("--fault", type=fault, default="", metavar="KIND:AMOUNT", help=f"Make the new version {FAULTS}."),
    click.option("--seed", default=0, help="Random seed for arrivals, users and their order."),
    click.option(
        "--prometheus/--no-prometheus",
        default=None,
        help="Read the servers' metrics through Prometheus [default: if installed].",
    ),
    click.option("--journal", type=FILE, metavar="FILE", help="Record every poll as a line of JSON."),
    click.option(
        "--resume", is_flag=True, help="Resume the unfinished rollout in the journal; otherwise it is rolled back."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print everything as JSON at the end, and nothing before."),
]


@click.command(cls=Command)
@click.argument("old")
@click.argument("new")
@with_options(ROLLING)
def rollout(
    old: str, new: str, data: Path, users: int, journal: Path | None, resume: bool, as_json: bool, **how: Any
) -> int:
    """Roll out a new .onnx model alongside an old one.

    The command starts two servers on this machine, and a Prometheus server that reads the metrics of both. Simulated
    users send requests. The new version serves 5, 20, 50, then 100 % of the users, and a part of all requests goes to
    both versions. After each poll, a line shows for each metric the number of events in the new version and in both
    versions together. If there is evidence of harm, the new version is rolled back. The evidence remains valid however
    often it is checked: a new version that is as good as the old one is rolled back with a probability of at most 4 %.

    Labels decide whether answers are better or worse. Give the labels in --data, an .npz with X and y. Without labels,
    a new version is not promoted if more than --allowed of its answers differ from those of the old version, because it
    is unknown which answers are right.

    Exit code 0: promoted; 1: rolled back for harm; 2: rolled back without proof of harm; 3: wrong input.
    """
    from tinybench.shell.files import refuse_missing
    from tinybench.support.basics.array_files import load_data

    if wrong := [repr(file) for file in (old, new) if not file.endswith(".onnx")]:
        raise ValueError(f"{', '.join(wrong)}: not an .onnx file; rollout takes no other models")
    refuse_missing(old, new, data)
    try:
        from tinybench.tools.rollout.engine import roll_out
        from tinybench.tools.rollout.plan import Plan
    except ImportError as missing:  # in a student's package without these modules
        raise ValueError(
            f"tinybench rollout runs on modules 14 and 16 and the optional 16_rollout, and {missing}"
        ) from None
    from tinybench.shell.measuring_sessions import stopping_on_term

    _, rows, labels = load_data(data, 1)
    if labels is None:
        refuse_given({"label_delay"}, "for --data with labels, an .npz with X and y")
    else:
        refuse_given({"allowed"}, "for --data without labels: these labels decide which answers are right")
    if labels is not None and len(labels) != len(rows):
        raise ValueError(
            f"{data} holds {number_of(len(rows), 'row')} and {number_of(len(labels), 'label')}; each row needs one"
        )
    show = (lambda look: None) if as_json else _Printer()
    with stopping_on_term():
        plan = Plan(population=users, **how)
        report = roll_out(old, new, rows, labels, plan, journal=journal, resume=resume, on_look=show)
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        _print_end(report)
    if report.state.status == "promoted":
        return PROMOTED
    return UNKNOWN if report.state.why in CANNOT_TELL else BACK


class _Printer:
    """A printer of one line per poll, with a heading for each stage."""

    def __init__(self) -> None:
        self.stage = -1.0

    def __call__(self, look: Checkpoint) -> None:
        if look.share != self.stage:
            self.stage = look.share
            click.echo(f"{100 * look.share:g} % of the users")
        worst = max(look.evidence, key=lambda name: look.evidence[name])
        parts = [f"{look.at:6.1f} s", number_of(look.users, "user"), number_of(look.pairs, "pair")]
        if not math.isnan(look.latencies[0]):
            parts.append("old {:.1f} ms, new {:.1f} ms".format(*(1e3 * seconds for seconds in look.latencies)))
        for metric in METRICS:
            new, both = look.events.get(metric, (0, 0))
            if new:
                parts.append(f"{metric} {new} of {both}")
        parts.append(f"most evidence {look.evidence[worst]:.2g} ({worst})")
        click.echo("  ".join(parts) + (f"  held: {look.problem}" if look.problem else ""))


def _print_end(report: Report) -> None:
    click.echo(report.sentence)
    if report.state.why == "differs":
        click.echo(
            "The answers differ in more than the allowed share, which is not harm by itself: without labels nobody can "
            "tell which are right. Give labels (--data FILE.npz with X and y), or allow a larger share (--allowed)."
        )
    if report.looks:
        click.echo(f"The servers were read by {report.watched_by}; a metric stops at an e value of {report.stop_at:g}.")
    if report.labels_missing:
        click.echo(
            f"{number_of(report.labels_missing, 'answer')} without a label yet, counted neither as right nor as wrong."
        )
