"""The `tinybench serve` command: serve a model over HTTP until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from tinybench.shell.options import (
    FILE,
    THREADS,
    Command,
    duration,
    refuse_given,
    size,
    some_time,
    stalls,
    with_options,
)

POSITIVE = click.IntRange(min=1)
FAULTS = "go wrong by order: slow:20ms, wrong:10%, crash:5% of the rows, drift:2000 (all wrong after so many answers)"


def fault(text: str) -> str:
    """Check that the text describing a deliberate fault can be parsed. Return the text; the workers parse it again."""
    if text:
        from tinybench.tools.serving.faults import parse_fault

        try:
            parse_fault(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return text


SERVING = [
    click.option("--host", default="127.0.0.1", help="Address; 0.0.0.0 also serves other machines."),
    click.option("--port", type=click.IntRange(0, 65535), default=8000, help="Port; 0 takes a free one."),
    click.option("--workers", type=POSITIVE, default=1, help="Number of processes that run the model."),
    THREADS,
    click.option("--max-batch", type=POSITIVE, default=8, help="Maximum number of requests in one call of the model."),
    click.option(
        "--max-wait", type=duration, default="2ms", help="Longest time that a request waits for others in its batch."
    ),
    click.option(
        "--max-queue", type=POSITIVE, default=1000, help="Maximum number of waiting requests; others are refused (503)."
    ),
    click.option("--timeout", type=some_time, default="10s", help="Longest time for a request, from start to end."),
    click.option("--max-body", type=size, default="1MB", help="Largest size of a request."),
    click.option(
        "--stall", type=stalls, metavar="TIME/EVERY", help="Stall on purpose: 1s/10s means 1 s in every 10 s."
    ),
    click.option("--fault", type=fault, default="", metavar="KIND:AMOUNT", help=f"Make the server {FAULTS}."),
    click.option(
        "--reference",
        type=FILE,
        metavar="FILE",
        help="Rows on which the model was tested, in order of arrival; /metrics then reports drift from them.",
    ),
    click.option("--detector", default="conformal", metavar="NAME", help="Name of the drift detector; ? lists all."),
    click.option(
        "--trace", type=FILE, metavar="FILE", help="Write the server's own timestamps of each request as CSV."
    ),
]


@click.command(cls=Command, name="serve")
@click.argument("model")
@with_options(SERVING)
def serve_model(model: str, threads: int, **how: Any) -> int:
    """Serve an .onnx model over HTTP.

    POST /predict takes {"inputs": [row, …]} and returns {"outputs": [row, …]}. The header X-User may name the user of a
    request: for drift, one row of each user counts. GET /health and GET /metrics are for monitoring. After Ctrl-C or
    SIGTERM, the server finishes the requests that it has accepted, then stops.
    """
    if not model.endswith(".onnx"):
        raise ValueError(f"{model!r} is no .onnx file; serve takes nothing else")
    if not Path(model).is_file():
        raise FileNotFoundError(f"{model}: no such file")
    if how["reference"] is None:
        refuse_given({"detector"}, "with --reference")
    if threads < 1:
        raise ValueError(f"--threads is {threads}; a model needs at least one")
    try:
        from tinybench.tools.serving.server import Settings
        from tinybench.tools.serving.server import serve as run

    except ModuleNotFoundError as missing:
        raise ValueError(f"{missing.name} is missing: pip install 'tinybench-ml[serve]'") from None
    try:
        from tinybench.scenarios import Batcher  # noqa: F401
    except ImportError:
        if how["max_batch"] > 1:
            refuse_given({"max_batch", "max_wait"}, "with the Batcher that the optional module 14_scenarios builds")
        how["max_batch"] = 1
    return asyncio.run(run(Settings(model, threads=threads, **how)))
