"""Options, option types and checks that the commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tinybench.support.basics.table import FORMATS

EXAMPLES = """\b
examples:
  tinybench compare fp32.onnx int8.onnx --data digits.npz --batch 256
  tinybench compare app.models:small app.models:large --data rows.npy --seconds 10 --format markdown
  tinybench measure model.onnx --data digits.npz --save baseline.json
  tinybench gate baseline.json candidate.json --max-slowdown 5%
  tinybench gate --run v1.2 HEAD --call app.models:predict_once
  tinybench gate --run v1.2 HEAD --call app.models:predict_once --beside v1.0 --save result.json
  tinybench history add result.json
  tinybench history changes
  tinybench run a.onnx b.onnx --data digits.npz --out study
  tinybench study app.models:classifier --data digits.npz --out hardware
  tinybench machine --roofs
  tinybench serve digits.onnx --port 8000 --workers 2 --max-wait 5ms
  tinybench load http://127.0.0.1:8000 --rate 200 --seconds 20 --bound 50ms
  tinybench rollout old.onnx new.onnx --data digits.npz --bound 50ms
  tinybench watch http://127.0.0.1:8000 --objective 99.9% --bound 50ms

\b
A model is an .onnx file, a .joblib file of scikit-learn (loading one runs code from it), or module:function where the
function returns a model (anything with predict_proba, predict, forward, run or a call). Data is an .npy array of rows,
or an .npz with X and, for accuracy, y.

\b
exit codes: 0 done or gate passed, 1 regression, 2 the gate cannot tell yet, 3 wrong use, bad input, a failing model or
a full disk, 130 stopped by Ctrl-C; what was measured until then is printed and kept in a file"""


class Command(click.Command):
    """A command whose repeatable options take several values at once: ``--batches 1 32 256``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the name of a repeatable option before each of its values, then parse."""
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
    """A group that lists its commands in the order of their definition and suggests them for an unknown name."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of their definition, not alphabetically."""
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command by name. For an unknown name, raise UsageError with the list of all names."""
        if args[0] not in self.commands:
            ctx.fail(f"invalid choice: {args[0]!r} (choose from {', '.join(self.commands)})")
        return super().resolve_command(ctx, args)


def share(text: str) -> float:
    """Read a proportion, such as 5% or 0.05, which must be below 100%."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no share; write 5% or 0.05") from None
    if not 0 <= share < 1:
        raise click.BadParameter(f"{text!r} is not from 0 up to 100 %; write 5% or 0.05")
    return share


def share_or_all(text: str) -> float:
    """Read a proportion, such as 5% or 0.05, up to and including 100%."""
    return 1.0 if text == "100%" else share(text)


UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
SIZES = {"B": 1, "kB": 2**10, "KB": 2**10, "MB": 2**20, "GB": 2**30}


def _quantity(text: str, units: dict[str, Any], what: str, examples: str) -> float:
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Zµ]+)\s*", text)
    if found is None or (unit := found[2].replace("µ", "u")) not in units:
        raise click.BadParameter(f"{text!r} is no {what}; write {examples}")
    return float(found[1]) * float(units[unit])


def duration(text: str) -> float:
    """Read a duration, such as 2ms, 1s or 1min, and return it in seconds."""
    return _quantity(text, UNITS, "duration", "2ms, 1s or 1min")


def some_time(text: str) -> float:
    """Read a duration above zero and return it in seconds."""
    if not (seconds := duration(text)):
        raise click.BadParameter(f"{text!r} is no time at all; write 2ms, 1s or 1min")
    return seconds


def size(text: str) -> int:
    """Read a size, such as 64kB or 1MB, and return it in bytes."""
    if not (count := int(_quantity(text, SIZES, "size", "64kB or 1MB"))):
        raise click.BadParameter(f"{text!r} is nothing at all; write 64kB or 1MB")
    return count


def stalls(text: str) -> tuple[float, float]:
    """Read a stall, such as 1s/10s for 1 s in every 10 s, and return its length and its period in seconds."""
    stall, _, every = text.partition("/")
    pair = some_time(stall), some_time(every) if every else 0.0
    if not pair[0] < pair[1]:
        raise click.BadParameter(f"{text!r} is no part of a time; write 1s/10s for a stall of 1 s in every 10 s")
    return pair


FILE = click.Path(path_type=Path)
MODELS = click.argument("models", nargs=-1, required=True, metavar="MODEL...")
DATA = click.option(
    "--data", type=FILE, required=True, metavar="FILE", help="Input rows: .npy, or .npz with X and optionally y."
)
BATCH = click.option("--batch", default=1, help="Rows per call.")
THREADS = click.option("--threads", default=1, help="Threads of an ONNX model.")
LIMITS = "YAML with limits such as latency_p95_ms: 5 and accuracy_min: 0.9; the report then says who meets them"
REQUIREMENTS = click.option("--requirements", "limits", type=FILE, metavar="FILE", help=f"{LIMITS}.")
FORMAT = click.option(
    "--format", "form", type=click.Choice([*FORMATS, "json"]), default="table", help="Format of the output."
)
MODES = "as_served: one call a round; hot: blocks of 5 ms with warm caches"
MEASURING = [
    DATA,
    BATCH,
    THREADS,
    click.option("--seconds", default=4.0, help="Time for everything, warm-up included."),
    click.option(
        "--mode", type=click.Choice(["as_served", "hot"]), default="as_served", help=f"How to time calls ({MODES})."
    ),
    click.option("--seed", type=int, help="Seed of the order of the rounds."),
    click.option("--save", type=FILE, metavar="FILE", help="Write every measurement as JSON."),
    FORMAT,
]

GATING = [
    click.option("--max-slowdown", type=share, default="5%", help="Largest slowdown allowed, such as 5% or 0.05."),
    click.option("--model", help="The model, if a file holds several."),
    click.option("--allow", multiple=True, metavar="NAME...", help="Conditions that may differ between the files."),
    click.option("--run", is_flag=True, help="Measure now; OLD and NEW are commands, models, functions or commits."),
    click.option("--call", metavar="TARGET", help="The function, model or command to run in both commits."),
    click.option("--beside", metavar="COMMIT", help="With --call: a third commit, the baseline for `history add`."),
    click.option(
        "--data", type=FILE, metavar="FILE", help="Input of models; module:function must then return a model."
    ),
    BATCH,
    THREADS,
    click.option("--seconds", default=60.0, help="Longest time to measure."),
    click.option("--seed", type=int, help="Seed of the order of the rounds."),
    click.option("--save", type=FILE, metavar="FILE", help="Write every measurement as JSON."),
    click.option(
        "--format",
        "form",
        type=click.Choice(["table", "markdown", "json"]),
        default="table",
        help="Format of the output.",
    ),
]

ROWS = "rows to send in turn, .npy or .npz with X; without it random ones, as the server's /health asks for"
LOADING = [
    click.option("--rate", default=100.0, help="Requests per second, sent whether or not earlier ones were answered."),
    click.option("--seconds", default=20.0, help="Number of seconds during which requests are sent."),
    click.option(
        "--scenario", default="poisson", metavar="NAME", help="Name of the arrival pattern; ? lists all names."
    ),
    click.option(
        "--closed",
        "users",
        type=int,
        metavar="USERS",
        help="Simulate this number of users, who wait for each answer, instead of a fixed rate.",
    ),
    click.option(
        "--think",
        type=duration,
        default="9ms",
        metavar="TIME",
        help="With --closed: time from an answer to the next request.",
    ),
    click.option("--data", type=FILE, metavar="FILE", help=f"File of {ROWS}."),
    click.option(
        "--bound", type=duration, default="50ms", metavar="TIME", help="Answers within this time count as goodput."
    ),
    click.option("--seed", default=0, help="Random seed for the arrival times and the random rows."),
    click.option("--timeout", type=duration, default="10s", metavar="TIME", help="Longest wait for an answer."),
    click.option("--connections", default=1024, help="Maximum number of open connections."),
    click.option("--save", type=FILE, metavar="FILE", help="Write one row per request as CSV."),
    FORMAT,
]


def given(context: click.Context) -> dict[str, str]:
    """Return the options given on the command line: their longest spellings by parameter name."""
    typed = [each for each in context.command.params if isinstance(each, click.Option)]
    return {
        str(each.name): max(each.opts, key=len)
        for each in typed
        if context.get_parameter_source(str(each.name)) is ParameterSource.COMMANDLINE
    }


def refuse_given(names: Collection[str], condition: str) -> None:
    """Raise UsageError if a parameter in `names` was given on the command line, because it would have no effect."""
    if wrong := [option for name, option in given(click.get_current_context()).items() if name in names]:
        raise click.UsageError(f"{', '.join(sorted(wrong))}: only {condition}")


def refuse_threads(models: Iterable[str]) -> None:
    """Raise UsageError for --threads unless a model is an .onnx file, because no other model reads this option."""
    if not any(model.endswith(".onnx") for model in models):
        refuse_given({"threads"}, "for .onnx files; a model of another kind sets its threads itself")


def check_gating(run: bool, targets: Collection[str], data: Path | None, call: str | None) -> None:
    """Raise UsageError for options that the gate would ignore: options for result files with --run, and vice versa."""
    if not run:
        refuse_given({"call", "beside", "data", "batch", "threads", "seconds", "seed", "save"}, "with --run")
        return
    refuse_given({"model", "allow"}, "without --run")
    if call is None:
        refuse_given({"beside"}, "with --call, which says what to run in each commit")
    if data is None:
        refuse_given({"batch"}, "with --data, whose rows make a batch")
    refuse_threads(targets if call is None else [call])


def check_loading(closed: bool, data: Path | None) -> None:
    """Raise UsageError for options of an open loop (fixed rate) in a closed loop (waiting users), and vice versa."""
    if not closed:
        refuse_given({"think"}, "with --closed")
        return
    refuse_given({"rate", "scenario", "connections"}, "without --closed")
    if data is not None:
        refuse_given(
            {"seed"}, "without --data or without --closed: users send these rows in turn, and nothing is random"
        )


def with_options(options: Sequence[Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds the options to a command in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
