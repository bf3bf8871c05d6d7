"""The `tinybench profile MODEL.onnx` command: show which limit of this machine bounds each operator of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tinybench.shell.options import FILE, THREADS, Command


@click.command(cls=Command, name="profile")
@click.argument("model", type=FILE, metavar="MODEL.onnx")
@click.option("--batch", type=click.IntRange(min=1), default=1, help="Rows of random numbers per call.")
@THREADS
@click.option(
    "--seconds", type=click.FloatRange(min=0.5), default=4.0, help="Seconds for measuring the machine's limits."
)
@click.option(
    "--figure",
    type=FILE,
    metavar="FILE",
    help="Draw the operators and the machine's limits (a roofline plot), .svg or .png.",
)
def profile_model(model: Path, batch: int, threads: int, seconds: float, figure: Path | None) -> int:
    """Show where the time of an ONNX model goes.

    The command measures how many operations and bytes per second this machine achieves at most (its roofs). It then
    counts the operations and bytes of every operator in a run of the model, and shows whether computation, memory or
    neither limits the operator.
    """
    from tinybench.onnx import OnnxModel
    from tinybench.tools.roofline.batch_sizes import model_input, roofs_for
    from tinybench.tools.roofline.operator_bottlenecks import place_operators

    loaded = OnnxModel(model, threads)
    feeds = model_input(loaded, batch)
    roofs = roofs_for(loaded, feeds, seconds)
    placed = place_operators(loaded, feeds, roofs)
    print(placed)
    if figure:
        from tinybench.tools.roofline.roofline_figures import roof_picture

        roof_picture(roofs, {loaded.name: placed}).save(figure, dpi=130)
    return 0


def run_for(model: str, arguments: Sequence[str]) -> int:
    """Run `profile_model` on a model with further arguments, and return the exit code."""
    with profile_model.make_context("tinybench profile", [model, *arguments]) as context:
        return int(profile_model.invoke(context))
