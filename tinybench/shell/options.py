"""What the commands' options have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource


class Command(click.Command):
    """A command whose repeatable options take several values at once: ``--batches 1 32 256``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        repeatable = {name for option in self.params if option.multiple for name in option.opts}
        spread, option = [], ""
        for argument in args:
            if argument in repeatable:
                option = argument
                continue
            option = "" if argument.startswith("-") else option
            spread += [option, argument] if option else [argument]
        return super().parse_args(ctx, spread)


class Group(click.Group):
    """Commands in the order of their definition; a wrong name is answered with the right ones."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in self.commands:
            ctx.fail(f"invalid choice: {args[0]!r} (choose from {', '.join(self.commands)})")
        return super().resolve_command(ctx, args)


def share(text: str) -> float:
    """Read 5% or 0.05."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no share; write 5% or 0.05") from None
    if not 0 <= share < 1:
        raise click.BadParameter(f"{text!r} is not from 0 up to 100 %; write 5% or 0.05")
    return share


FILE = click.Path(path_type=Path)
MODELS = click.argument("models", nargs=-1, required=True, metavar="MODEL...")
DATA = click.option("--data", type=FILE, required=True, metavar="FILE", help=".npy, or .npz with X and perhaps y")
BATCH = click.option("--batch", default=1, help="rows per call")
THREADS = click.option("--threads", default=1, help="threads of an ONNX model")
LIMITS = "YAML with limits such as latency_p95_ms: 5 and accuracy_min: 0.9; the report then says who meets them"
REQUIREMENTS = click.option("--requirements", "limits", type=FILE, metavar="FILE", help=LIMITS)
MODES = "as_served: one call a round; hot: blocks of 5 ms with warm caches"
MEASURING = [
    DATA,
    BATCH,
    THREADS,
    click.option("--seconds", default=4.0, help="time for everything, warm-up included"),
    click.option("--mode", type=click.Choice(["as_served", "hot"]), default="as_served", help=MODES),
    click.option("--seed", type=int, help="seed of the order of the rounds"),
    click.option("--save", type=FILE, metavar="FILE", help="write every measurement as JSON"),
    click.option("--format", "form", type=click.Choice(["table", "markdown", "csv", "json"]), default="table"),
]

GATING = [
    click.option("--max-slowdown", type=share, default="5%", help="such as 5% or 0.05"),
    click.option("--model", help="which model, where a file holds several"),
    click.option("--allow", multiple=True, metavar="NAME...", help="conditions that may differ"),
    click.option("--run", is_flag=True, help="measure now; OLD and NEW are commands, models, functions or commits"),
    click.option("--call", metavar="TARGET", help="what to run in two commits: function, model or command"),
    click.option("--data", type=FILE, metavar="FILE", help="input of models; a function then returns a model"),
    BATCH,
    THREADS,
    click.option("--seconds", default=60.0, help="time to measure at most"),
    click.option("--seed", type=int, help="seed of the order of the rounds"),
    click.option("--save", type=FILE, metavar="FILE", help="write every measurement as JSON"),
    click.option("--format", "form", type=click.Choice(["table", "json"]), default="table"),
]


def check_gating(run: bool) -> None:
    """Refuse options of `gate --run` without it, and options for files with it."""
    context = click.get_current_context()
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    wrong = given & ({"model", "allow"} if run else {"call", "data", "batch", "threads", "seconds", "seed", "save"})
    if wrong:
        options = ", ".join(f"--{name}" for name in sorted(wrong))
        raise click.UsageError(f"{options}: only {'without' if run else 'with'} --run")


def with_options(options: Sequence[Any]) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
