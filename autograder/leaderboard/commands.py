"""`autograder leaderboard …`: serve, work, hand out tokens, enter, rehearse, export."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autograder.course.config import with_root
from autograder.files import write_atomically
from autograder.leaderboard.web.local_server import PORT, database_of

if TYPE_CHECKING:
    from autograder.leaderboard.settings import Olympics


@click.group()
def leaderboard() -> None:
    """Run the Olympics: serve, measure and enter models."""


def command(function: Callable[..., None]) -> click.Command:
    """Make a command of a function that takes the course's folder, the Olympics and options of its own."""

    @leaderboard.command()
    @click.option("--events", type=Path, help="File of the events; by default the one that comes with autograder.")
    @with_root
    @functools.wraps(function)
    def called(root: Path, events: Path | None, **options: Any) -> int:
        from autograder.leaderboard.settings import load

        function(root, load(events), **options)
        return 0

    return called


def with_database(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the address of the database."""

    @click.option(
        "--database",
        envvar="TINYBENCH_DATABASE",
        show_envvar=True,
        help="Address, such as postgresql+psycopg://user@host/name; by default course/leaderboard.db.",
    )
    @functools.wraps(function)
    def called(root: Path, olympics: Olympics, database: str | None, **options: Any) -> None:
        function(root, olympics, database or database_of(root), **options)

    return called


@command
@with_database
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=PORT, show_default=True)
@click.option("--fd", type=int, help="Number of a socket that listens already, handed over by what starts it.")
@click.option("--prefix", default="", help="Path under which a proxy shows it.")
@click.option("--no-worker", is_flag=True, help="Only the pages; workers run elsewhere.")
def serve(
    root: Path, olympics: Olympics, database: str, host: str, port: int, fd: int | None, prefix: str, no_worker: bool
) -> None:
    """Start the leaderboard and a worker."""
    import uvicorn

    from autograder.leaderboard.referee.worker import check_baseline
    from autograder.leaderboard.store.store import Store
    from autograder.leaderboard.web import listen
    from autograder.leaderboard.web.app import create_app
    from autograder.leaderboard.web.middleware import PREFIX
    from autograder.sandbox.bubblewrap import available

    store = Store(database)
    check_baseline(store, olympics)
    prefix = prefix.rstrip("/")
    if prefix and not PREFIX.fullmatch(prefix.encode()):
        raise ValueError(f"--prefix {prefix!r} is no path; write it like /user/ada/proxy/8017")
    app = create_app(store, olympics, prefix)
    listening = _listen(host, port) if fd is None else socket.socket(fileno=fd)
    worker = None
    if not no_worker:
        available()
        events = click.get_current_context().params["events"]
        words = [sys.executable, "-m", "autograder", "--root", str(root), "leaderboard", "worker"]
        words += ["--events", str(events)] if events else []
        # By the environment: arguments, which may hold a password, can be read by all users of a machine.
        worker = subprocess.Popen(words, env={**os.environ, "TINYBENCH_DATABASE": database})
    print(f"{olympics.title}: http://{host}:{port}{prefix}/   Ctrl+C ends it.", flush=True)
    # After a signal uvicorn ends by sending it again: without this the worker would outlive the pages.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        uvicorn.Server(listen.config(app)).run([listening])
    finally:
        if worker:
            worker.terminate()
            worker.wait()


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise ValueError(f"there is no port {port}; ports go from 0, any free one, to {2**16 - 1}")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(
            f"cannot listen on {host}, port {port}: {error}; choose another with --host or --port"
        ) from None


@command
@with_database
def worker(root: Path, olympics: Olympics, database: str) -> None:
    """Measure entries.

    As many as you like may run, on other machines too.
    """
    from autograder.leaderboard.referee.worker import run_worker

    run_worker(database, olympics)


@command
@with_database
@click.argument("students", nargs=-1, required=True, metavar="STUDENT...")
def token(root: Path, olympics: Olympics, database: str, students: tuple[str, ...]) -> None:
    """Make tokens for students.

    Each is shown once; a student's earlier one ends.
    """
    from autograder.leaderboard.store.store import Store

    store, names = Store(database), [name.strip() for name in students]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice or "" in names:  # before any token is made: a second one would end the first
        raise ValueError(f"{twice[0]!r} is named twice" if twice else "one of the names is blank")
    for student in names:
        print(f"{student}\t{store.add_token(student, olympics.quota.token_days)}")


@command
@with_database
@click.option("--trust", is_flag=True, help="Go by this machine's clock again, which was ahead and is right now.")
def clock(root: Path, olympics: Olympics, database: str, trust: bool) -> None:
    """Show the time that deadline and quotas go by.

    It never goes back by itself.
    """
    from autograder.leaderboard.formatting import moment
    from autograder.leaderboard.store.store import Store

    store = Store(database)
    if trust:
        store.trust_clock()
    last = store.last()
    print(f"this machine's clock:      {moment(store.clock())}")
    print(f"last thing that happened:  {moment(last) if last else 'none'}")
    print(f"deadline and quotas go by: {moment(store.now())}")


def _read(model: Path) -> bytes:
    try:
        return model.read_bytes()
    except OSError as error:
        raise ValueError(f"{model} cannot be read: {error.strerror}") from None


@command
@click.argument("model", type=Path)
@click.option("--event", default="latency", show_default=True)
@click.option("--url", default=f"http://127.0.0.1:{PORT}", envvar="TINYBENCH_LEADERBOARD", show_envvar=True)
@click.option("--token", default="", envvar="TINYBENCH_TOKEN", show_envvar=True)
@click.option("--wait", is_flag=True, help="Until it has been measured.")
def enter(root: Path, olympics: Olympics, model: Path, event: str, url: str, token: str, wait: bool) -> None:
    """Enter a model."""
    from autograder.leaderboard import client

    entry = client.enter(url, token, event, model.name, _read(model))
    page = client.page(url, entry)
    if wait and entry["state"] != "refused":
        print(f"entry {entry['id']}: {page}", flush=True)
        entry = client.follow(url, entry, lambda step: print(f"  {step}", flush=True))
    if entry["state"] == "refused":
        raise ValueError(f"entry {entry['id']} is refused: {entry['reason']} ({page})")
    print(f"entry {entry['id']} is {entry['state']}: {page}")
    if entry["measured"]:
        print(f"  {client.in_words(entry['measured'])}")
        print(f"  place {entry['place'] or 'none: a better entry of yours counts, or it misses a bar'}")


@command
@click.argument("model", type=Path)
def check(root: Path, olympics: Olympics, model: Path) -> None:
    """Tell whether a file is a valid entry.

    Takes milliseconds and runs nothing of it.
    """
    from autograder.leaderboard.entry import validate

    facts = validate.check(_read(model), olympics.limits)
    operators = ", ".join(f"{name} {count}" for name, count in facts.operators.items())
    print(f"valid: {facts.size} bytes, {facts.nodes} nodes, {facts.weights} weights, opset {facts.opset}; {operators}")


@command
@click.argument("model", type=Path)
@click.option("--baseline", type=Path, help="An .onnx file; by default the baseline is trained and kept.")
@click.option("--quick", is_flag=True, help="In three processes: sooner, with wider intervals.")
@click.option("--unconfined", is_flag=True, help="Without the sandbox, for a model of your own.")
def rehearse(root: Path, olympics: Olympics, model: Path, baseline: Path | None, quick: bool, unconfined: bool) -> None:
    """Measure a model on this machine with the referee's code.

    The public digits count.
    """
    from autograder.leaderboard import digits
    from autograder.leaderboard.entry import validate
    from autograder.leaderboard.formatting import percent, quantity, times
    from autograder.leaderboard.ranking import Score, accuracy_of
    from autograder.leaderboard.referee.referee import Referee, confined
    from autograder.leaderboard.referee.referee import unconfined as without_sandbox

    data, recipe = _read(model), olympics.baseline
    validate.check(data, olympics.limits)
    if quick:
        effort = dataclasses.replace(olympics.referee, processes=3, widest=math.inf)
        olympics = dataclasses.replace(olympics, referee=effort)
    trained = "-".join(map(str, ("baseline", *recipe.hidden, recipe.iterations, recipe.seed)))
    kept = baseline or root / "course" / f"{trained}.onnx"
    if not kept.exists() and not baseline:
        print("training the baseline once ...", flush=True)
        write_atomically(kept, digits.train_baseline(recipe))
    referee = Referee(olympics, _read(kept), None, without_sandbox if unconfined else confined)
    scores, _ = referee.measure(data, lambda text: print(f"  {text}", flush=True))
    latency, memory, (right, total) = scores["latency"], scores["memory"], scores["accuracy"]["public"]
    rows = [
        ("latency", Score(*latency["ratio"]), times, quantity(latency["seconds"], "s")),
        ("memory", Score(*memory["ratio"]), times, quantity(memory["bytes"], "B")),
        ("accuracy", accuracy_of(right, total), percent, f"{right} of {total} public digits"),
    ]
    for name, score, form, more in rows:
        print(f"{name:<9} {form(score.value):>8}  ({form(score.lower)} to {form(score.upper)})  {more}")
    print(f"{'size':<9} {times(scores['size']['ratio']):>8}  {quantity(len(data), 'B')}")


@command
@click.argument("out", type=Path)
def data(root: Path, olympics: Olympics, out: Path) -> None:
    """Write the training and the public digits for numpy.load."""
    import numpy as np

    from autograder.leaderboard import digits

    images, labels = digits.training_split()
    test_images, test_labels = digits.public_split(olympics.task.public_rows)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        np.savez(file, train_images=images, train_labels=labels, public_images=test_images, public_labels=test_labels)
    print(f"{out}: {len(labels)} training digits, {len(test_labels)} public ones")


@command
@with_database
@click.option("--out", type=Path, default=Path(), help="The folder, made if need be (default: here).")
def export(root: Path, olympics: Olympics, database: str, out: Path) -> None:
    """Write the standings of each event as CSV."""
    from autograder.leaderboard.board import Board, export_csv
    from autograder.leaderboard.store.store import Store

    snapshot = Board(Store(database), olympics).snapshot()
    out.mkdir(parents=True, exist_ok=True)
    for event in olympics.events:
        path = out / f"{event.id}.csv"
        path.write_text(export_csv(event, snapshot.standings[event.id]), encoding="utf-8")
        print(f"{path}: {len(snapshot.standings[event.id].places)} places")
