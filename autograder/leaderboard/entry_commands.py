"""The commands of `autograder leaderboard` for students: enter, check, rehearse, data."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autograder.course.nbgrader_settings import with_root
from autograder.files import write_atomically
from autograder.leaderboard.settings import PORT
from tinybench.support.basics.numbers import number_of

if TYPE_CHECKING:
    from autograder.leaderboard.settings import Olympics


@click.group()
def leaderboard() -> None:
    """Run the Olympics: serve the leaderboard, measure models, and enter models."""


def command(function: Callable[..., Any]) -> click.Command:
    """Turn a function into a command.

    The function receives the course's folder, the Olympics and the command's options.
    """

    @leaderboard.command()
    @click.option("--events", type=Path, help="Read the events from this file (default: autograder's own file).")
    @with_root
    @functools.wraps(function)
    def called(root: Path, events: Path | None, **options: Any) -> int:
        from autograder.leaderboard.settings import load

        function(root, load(events), **options)
        return 0

    return called


def _read(model: Path) -> bytes:
    try:
        return model.read_bytes()
    except OSError as error:
        raise ValueError(f"{model} cannot be read: {error.strerror}") from None


@leaderboard.command()
@click.argument("model", type=Path)
@click.option("--event", default="latency", show_default=True)
@click.option("--url", default=f"http://127.0.0.1:{PORT}", envvar="TINYBENCH_LEADERBOARD", show_envvar=True)
@click.option("--token", default="", envvar="TINYBENCH_TOKEN", show_envvar=True)
@click.option("--wait", is_flag=True, help="Wait until the entry has been measured.")
def enter(model: Path, event: str, url: str, token: str, wait: bool) -> None:
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
        print(f"  {entry['outcome']}")


@command
@click.argument("model", type=Path)
def check(root: Path, olympics: Olympics, model: Path) -> None:
    """Check whether a file is a valid entry. This takes a few milliseconds and does not run the file."""
    from autograder.leaderboard.entry import validate

    facts = validate.check(_read(model), olympics.limits)
    operators = ", ".join(f"{name} {count}" for name, count in facts.operators.items())
    print(
        f"valid: {number_of(facts.size, 'byte')}, {number_of(facts.nodes, 'node')}, "
        f"{number_of(facts.weights, 'weight')}, opset {facts.opset}; {operators}"
    )


@command
@click.argument("model", type=Path)
@click.option("--baseline", type=Path, help="Compare with this .onnx file (default: train a baseline and keep it).")
@click.option("--quick", is_flag=True, help="Measure in three processes only. This is faster, with wider intervals.")
@click.option("--unconfined", is_flag=True, help="Run without the sandbox. Use this only for your own model.")
def rehearse(root: Path, olympics: Olympics, model: Path, baseline: Path | None, quick: bool, unconfined: bool) -> None:
    """Measure a model on this machine with the referee's code, on the public digits."""
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
    latency, memory, (right, total, worth) = scores["latency"], scores["memory"], scores["accuracy"]["public"]
    independent = number_of(f"{worth:.0f}", "independent one")
    counted = f"{right} of {number_of(total, 'public digit')}, copies that are worth {independent}"
    rows = [
        ("latency", Score(*latency["ratio"]), times, quantity(latency["seconds"], "s")),
        ("memory", Score(*memory["ratio"]), times, quantity(memory["bytes"], "B")),
        ("accuracy", accuracy_of(right, total, worth), percent, counted),
    ]
    for name, score, form, more in rows:
        print(f"{name:<9} {form(score.value):>8}  ({form(score.lower)} to {form(score.upper)})  {more}")
    print(f"{'size':<9} {times(scores['size']['ratio']):>8}  {quantity(len(data), 'B')}")


@command
@click.argument("out", type=Path)
def data(root: Path, olympics: Olympics, out: Path) -> None:
    """Write the training digits, the public digits and their originals to a file for numpy.load."""
    import numpy as np

    from autograder.leaderboard import digits

    images, labels = digits.training_split()
    test_images, test_labels = digits.public_split(olympics.task.public_rows)
    public = {"images": test_images, "labels": test_labels}
    public["originals"] = digits.public_originals(olympics.task.public_rows)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        arrays: dict[str, Any] = {f"public_{name}": array for name, array in public.items()}
        np.savez(file, train_images=images, train_labels=labels, **arrays)
    print(f"{out}: {number_of(len(labels), 'training digit')}, {len(test_labels)} public ones")
