"""The commands of `autograder leaderboard` for instructors: serve, worker, token, clock, export."""

from __future__ import annotations

import functools
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

from autograder.course.nbgrader_settings import OK, with_root
from autograder.leaderboard.entry_commands import command, leaderboard
from autograder.leaderboard.settings import PORT
from autograder.leaderboard.web.local_server import database_of
from tinybench.shell.options import refuse_given
from tinybench.support.basics.numbers import number_of

if TYPE_CHECKING:
    from autograder.leaderboard.settings import Olympics

__all__ = ["leaderboard"]


def with_database(function: Callable[..., None]) -> Callable[..., int]:
    """Add the option `--database` to a command, and pass the address to the command."""

    @click.option(
        "--database",
        envvar="TINYBENCH_DATABASE",
        show_envvar=True,
        help="Use this database, such as postgresql+psycopg://user@host/name (default: course/leaderboard.db).",
    )
    @functools.wraps(function)
    def called(root: Path, *olympics: Olympics, database: str | None, **options: Any) -> int:
        function(root, *olympics, database or database_of(root), **options)
        return OK

    return called


@command
@with_database
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=PORT, show_default=True)
@click.option("--fd", type=int, help="Serve on this file descriptor, an inherited socket that already listens.")
@click.option("--prefix", default="", help="Set the path under which a proxy serves the leaderboard.")
@click.option("--no-worker", is_flag=True, help="Serve only the pages, while workers run elsewhere.")
def serve(
    root: Path, olympics: Olympics, database: str, host: str, port: int, fd: int | None, prefix: str, no_worker: bool
) -> None:
    """Start the leaderboard and a worker."""
    import uvicorn

    from autograder.leaderboard.referee.worker import check_baseline
    from autograder.leaderboard.store.store import Store
    from autograder.leaderboard.web import connection_timeouts
    from autograder.leaderboard.web.app import create_app
    from autograder.leaderboard.web.middleware import PREFIX
    from autograder.sandbox.bubblewrap import available

    if fd is not None:
        refuse_given({"host"}, "without --fd, whose socket has an address already")
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
        # The address may hold a password. All users of a machine can read arguments, so it goes into the environment.
        worker = subprocess.Popen(words, env={**os.environ, "TINYBENCH_DATABASE": database})
    print(f"{olympics.title}: http://{host}:{port}{prefix}/   Ctrl+C ends it.", flush=True)
    # After a signal, uvicorn raises the same signal again, which would end this process before it ends the worker.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        uvicorn.Server(connection_timeouts.config(app)).run([listening])
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
    """Measure entries. Any number of workers may run, even on other machines."""
    from autograder.leaderboard.referee.worker import run_worker

    run_worker(database, olympics)


@command
@with_database
@click.argument("students", nargs=-1, required=True, metavar="STUDENT...")
def token(root: Path, olympics: Olympics, database: str, students: tuple[str, ...]) -> None:
    """Create tokens for students. Each token is shown only once, and replaces the student's earlier token."""
    from autograder.leaderboard.store.store import Store

    store, names = Store(database), [name.strip() for name in students]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice or "" in names:  # checked first, because a second token would replace the first
        problems = [f"{name!r} is named twice" for name in twice if name] + ["one of the names is blank"] * (
            "" in names
        )
        raise ValueError("; ".join(problems))
    for student in names:
        print(f"{student}\t{store.add_token(student, olympics.quota.token_days)}")


@leaderboard.command()
@with_root
@with_database
@click.option("--trust", is_flag=True, help="Trust this machine's clock again, if it was ahead and is right now.")
def clock(root: Path, database: str, trust: bool) -> None:
    """Show the time used for the deadline and the quotas. This time never goes back by itself."""
    from autograder.leaderboard.formatting import moment
    from autograder.leaderboard.store.store import Store

    store = Store(database)
    if trust:
        store.trust_clock()
    last = store.last()
    print(f"this machine's clock:      {moment(store.clock())}")
    print(f"last thing that happened:  {moment(last) if last else 'none'}")
    print(f"deadline and quotas go by: {moment(store.now())}")


@command
@with_database
@click.option("--out", type=Path, default=Path(), help="Write to this folder, created if needed (default: here).")
def export(root: Path, olympics: Olympics, database: str, out: Path) -> None:
    """Write the standings of each event as CSV."""
    from autograder.leaderboard.board import Board, export_csv
    from autograder.leaderboard.store.store import Store

    snapshot = Board(Store(database), olympics).snapshot()
    out.mkdir(parents=True, exist_ok=True)
    for event in olympics.events:
        path = out / f"{event.id}.csv"
        path.write_text(export_csv(event, snapshot.standings[event.id]), encoding="utf-8")
        print(f"{path}: {number_of(len(snapshot.standings[event.id].places), 'place')}")
