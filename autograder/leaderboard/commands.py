"""`autograder leaderboard …`: serve, work, hand out tokens, enter, rehearse, export."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.leaderboard.web.local_server import PORT, database

if TYPE_CHECKING:
    from autograder.leaderboard.settings import Olympics
    from autograder.leaderboard.store.store import Store


def add_commands(subparsers: Any) -> None:
    """Add ``leaderboard`` and what it does to the commands of `autograder`.

    Parameters
    ----------
    subparsers
        What ``ArgumentParser.add_subparsers`` returned. Each command sets ``command``, a function of the course's root
        and the options that returns an exit code.
    """
    summary = "The Olympics: serve the leaderboard, measure and enter models"
    parser = subparsers.add_parser("leaderboard", help=summary, description=f"{summary}.")
    commands = parser.add_subparsers(metavar="WHAT", required=True)

    def add(name: str, function: object, summary: str, more: str = "") -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(
            name, help=summary, description=f"{summary}. {more}".strip()
        )
        command.set_defaults(command=function)
        command.add_argument("--events", help="file of the events; by default the one that comes with autograder")
        return command

    def with_database(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--database",
            help="address, such as postgresql+psycopg://user@host/name; by default course/leaderboard.db "
            "(also from the environment: TINYBENCH_DATABASE)",
        )

    serve = add("serve", _serve, "Start the leaderboard and a worker")
    with_database(serve)
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=int, default=PORT)
    serve.add_argument("--fd", type=int, help="number of a socket that listens already, handed over by what starts it")
    serve.add_argument("--prefix", default="", help="path under which a proxy shows it")
    serve.add_argument("--no-worker", action="store_true", help="only the pages; workers run elsewhere")

    with_database(add("worker", _worker, "Measure entries", "As many as you like may run, on other machines too."))

    token = add("token", _token, "Make tokens for students", "Each is shown once; a student's earlier one ends.")
    with_database(token)
    token.add_argument("students", nargs="+", metavar="STUDENT")

    enter = add("enter", _enter, "Enter a model")
    enter.add_argument("model", type=Path)
    enter.add_argument("--event", default="latency")
    enter.add_argument("--url", default=os.environ.get("TINYBENCH_LEADERBOARD", f"http://127.0.0.1:{PORT}"))
    enter.add_argument("--token", default=os.environ.get("TINYBENCH_TOKEN", ""), help="or set TINYBENCH_TOKEN")
    enter.add_argument("--wait", action="store_true", help="until it has been measured")

    rehearse = add(
        "rehearse", _rehearse, "Measure a model on this machine with the referee's code", "The public digits count."
    )
    rehearse.add_argument("model", type=Path)
    rehearse.add_argument("--baseline", type=Path, help="an .onnx file; by default the baseline is trained and kept")
    rehearse.add_argument("--quick", action="store_true", help="in three processes: sooner, with wider intervals")
    rehearse.add_argument("--unconfined", action="store_true", help="without the sandbox, for a model of your own")

    check = add("check", _check, "Tell whether a file is a valid entry", "Takes milliseconds and runs nothing of it.")
    check.add_argument("model", type=Path)

    data = add("data", _data, "Write the training digits and the public ones to a file for numpy.load")
    data.add_argument("out", type=Path)

    clock = add("clock", _clock, "Show the time that deadline and quotas go by", "It never goes back by itself.")
    with_database(clock)
    clock.add_argument(
        "--trust", action="store_true", help="go by this machine's clock again, after it was ahead and is right now"
    )

    export = add("export", _export, "Write the standings of each event as CSV")
    with_database(export)
    export.add_argument("--out", type=Path, default=Path(), help="the folder, made if need be (default: here)")


def _olympics(options: argparse.Namespace) -> Olympics:
    from autograder.leaderboard.settings import load

    return load(Path(options.events) if options.events else None)


def _database(root: Path, options: argparse.Namespace) -> str:
    return options.database or database(root)


def _store(root: Path, options: argparse.Namespace) -> Store:
    from autograder.leaderboard.store.store import Store

    return Store(_database(root, options))


def _serve(root: Path, options: argparse.Namespace) -> int:
    import uvicorn

    from autograder.leaderboard.referee.worker import check_baseline
    from autograder.leaderboard.web import listen
    from autograder.leaderboard.web.app import create_app
    from autograder.leaderboard.web.middleware import PREFIX
    from autograder.sandbox.bubblewrap import available

    olympics, database, store = _olympics(options), _database(root, options), _store(root, options)
    check_baseline(store, olympics)
    prefix = options.prefix.rstrip("/")
    if prefix and not PREFIX.fullmatch(prefix.encode()):
        raise ValueError(f"--prefix {prefix!r} is no path; write it like /user/ada/proxy/8017")
    app = create_app(store, olympics, prefix)
    listening = _listen(options)
    worker = None
    if not options.no_worker:
        available()
        command = [sys.executable, "-m", "autograder", "--root", str(root), "leaderboard", "worker"]
        command += ["--events", options.events] if options.events else []
        # By the environment: arguments, which may hold a password, can be read by all users of a machine.
        worker = subprocess.Popen(command, env={**os.environ, "TINYBENCH_DATABASE": database})
    print(f"{olympics.title}: http://{options.host}:{options.port}{options.prefix}/   Ctrl+C ends it.", flush=True)
    # After a signal uvicorn ends by sending it again: without this the worker would outlive the pages.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        uvicorn.Server(listen.config(app)).run([listening])
    finally:
        if worker:
            worker.terminate()
            worker.wait()
    return 0


def _listen(options: argparse.Namespace) -> socket.socket:
    if options.fd is not None:
        return socket.socket(fileno=options.fd)
    if not 0 <= options.port < 2**16:
        raise ValueError(f"there is no port {options.port}; ports go from 0, any free one, to {2**16 - 1}")
    try:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        return socket.create_server((options.host, options.port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(
            f"cannot listen on {options.host}, port {options.port}: {error}; choose another with --host or --port"
        ) from None


def _worker(root: Path, options: argparse.Namespace) -> int:
    from autograder.leaderboard.referee.worker import run

    return run(_database(root, options), _olympics(options))


def _token(root: Path, options: argparse.Namespace) -> int:
    store, days = _store(root, options), _olympics(options).quota.token_days
    names = [name.strip() for name in options.students]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice or "" in names:  # before any token is made: a second one would end the first
        raise ValueError(f"{twice[0]!r} is named twice" if twice else "one of the names is blank")
    for student in names:
        print(f"{student}\t{store.add_token(student, days)}")
    return 0


def _clock(root: Path, options: argparse.Namespace) -> int:
    from autograder.leaderboard.formatting import moment

    store = _store(root, options)
    if options.trust:
        store.trust_clock()
    last = store.last()
    print(f"this machine's clock:      {moment(store.clock())}")
    print(f"last thing that happened:  {moment(last) if last else 'none'}")
    print(f"deadline and quotas go by: {moment(store.now())}")
    return 0


def _read(model: Path) -> bytes:
    try:
        return model.read_bytes()
    except OSError as error:
        raise ValueError(f"{model} cannot be read: {error.strerror}") from None


def _enter(root: Path, options: argparse.Namespace) -> int:
    from autograder.leaderboard import client

    entry = client.enter(options.url, options.token, options.event, options.model.name, _read(options.model))
    page = client.page(options.url, entry)
    if options.wait and entry["state"] != "refused":
        print(f"entry {entry['id']}: {page}", flush=True)
        entry = client.follow(options.url, entry, lambda step: print(f"  {step}", flush=True))
    if entry["state"] == "refused":
        raise ValueError(f"entry {entry['id']} is refused: {entry['reason']} ({page})")
    print(f"entry {entry['id']} is {entry['state']}: {page}")
    if entry["measured"]:
        print(f"  {client.in_words(entry['measured'])}")
        print(f"  place {entry['place'] or 'none: a better entry of yours counts, or it misses a bar'}")
    return 0


def _check(root: Path, options: argparse.Namespace) -> int:
    from autograder.leaderboard.entry.validate import check

    facts = check(_read(options.model), _olympics(options).limits)
    operators = ", ".join(f"{name} {count}" for name, count in facts.operators.items())
    print(f"valid: {facts.size} bytes, {facts.nodes} nodes, {facts.weights} weights, opset {facts.opset}; {operators}")
    return 0


def _rehearse(root: Path, options: argparse.Namespace) -> int:
    from autograder.leaderboard import digits
    from autograder.leaderboard.entry.validate import check
    from autograder.leaderboard.formatting import percent, quantity, times
    from autograder.leaderboard.ranking import Score
    from autograder.leaderboard.referee import referee
    from tinybench.accuracy import wilson_interval

    olympics, data = _olympics(options), _read(options.model)
    check(data, olympics.limits)
    if options.quick:
        olympics = dataclasses.replace(
            olympics, referee=dataclasses.replace(olympics.referee, processes=3, widest=math.inf)
        )
    recipe = olympics.baseline
    trained = "-".join(map(str, ("baseline", *recipe.hidden, recipe.iterations, recipe.seed)))
    kept = options.baseline or root / "course" / f"{trained}.onnx"
    if not kept.exists() and not options.baseline:
        print("training the baseline once ...", flush=True)
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(digits.train_baseline(recipe))
    run = referee.unconfined if options.unconfined else referee.confined
    umpire = referee.Referee(olympics, _read(kept), None, run)
    scores, _ = umpire.measure(data, lambda text: print(f"  {text}", flush=True))
    right, total = scores["accuracy"]["public"]
    latency, memory = Score(*scores["latency"]["ratio"]), Score(*scores["memory"]["ratio"])
    reading = Score(right / total, *wilson_interval(right, total))
    rows = [
        ("latency", latency, times, quantity(scores["latency"]["seconds"], "s")),
        ("memory", memory, times, quantity(scores["memory"]["bytes"], "B")),
        ("accuracy", reading, percent, f"{right} of {total} public digits"),
    ]
    for name, score, form, more in rows:
        print(f"{name:<9} {form(score.value):>8}  ({form(score.lower)} to {form(score.upper)})  {more}")
    print(f"{'size':<9} {times(scores['size']['ratio']):>8}  {quantity(len(data), 'B')}")
    return 0


def _data(root: Path, options: argparse.Namespace) -> int:
    import numpy as np

    from autograder.leaderboard import digits

    images, labels = digits.training_split()
    test_images, test_labels = digits.public_split(_olympics(options).task.public_rows)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("wb") as file:
        np.savez(file, train_images=images, train_labels=labels, public_images=test_images, public_labels=test_labels)
    print(f"{options.out}: {len(labels)} training digits, {len(test_labels)} public ones")
    return 0


def _export(root: Path, options: argparse.Namespace) -> int:
    from autograder.leaderboard.board import Board, export_csv

    olympics = _olympics(options)
    snapshot = Board(_store(root, options), olympics).snapshot()
    options.out.mkdir(parents=True, exist_ok=True)
    for event in olympics.events:
        path = options.out / f"{event.id}.csv"
        path.write_text(export_csv(event, snapshot.standings[event.id]), encoding="utf-8")
        print(f"{path}: {len(snapshot.standings[event.id].places)} places")
    return 0
