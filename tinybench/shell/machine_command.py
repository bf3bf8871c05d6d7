"""The `tinybench machine` command: check if the machine is fit to measure on; with --roofs, measure its limits."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tinybench.shell.options import FILE, Command, refuse_given, with_options
from tinybench.tools.gpu.nvml import Gpu, read_gpus

LOOKING = [
    click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, for programs."),
    click.option(
        "--roofs",
        is_flag=True,
        help="Also measure the machine's limits (roofs): operations/s by number type, bytes/s by working set.",
    ),
    click.option("--threads", type=click.IntRange(min=1), default=1, help="With --roofs: number of threads."),
    click.option("--seconds", type=click.FloatRange(min=0.5), default=6.0, help="With --roofs: seconds to measure."),
    click.option("--figure", type=FILE, metavar="FILE", help="With --roofs: draw the roofs, .svg or .png."),
]


@click.command(cls=Command)
@with_options(LOOKING)
def machine(as_json: bool, roofs: bool, threads: int, seconds: float, figure: Path | None) -> int:
    """Check whether this machine is fit to measure on.

    The check covers what limits or disturbs the machine: cores, quotas, threads, load, clock rate, heat, battery,
    memory, clocks. Each warning explains why the condition matters for a measurement and what to type to improve it.
    The check takes half a second. With the package nvidia-ml-py, NVIDIA GPUs are listed, too. The exit code is
    0 even if there are warnings.
    """
    if not roofs:
        refuse_given({"threads", "seconds", "figure"}, "with --roofs")
    try:
        from tinybench.machine import machine_check
    except ImportError as missing:  # in a student's package without module 15
        raise ValueError(f"tinybench machine uses what module 15 builds, and {missing}") from None
    checked = machine_check()
    found: dict[str, Any] = {"verdict": checked.verdict, "findings": [each._asdict() for each in checked.findings]}
    gpus, not_read = seen_gpus()
    found["gpus"] = [asdict(gpu) for gpu in gpus]
    if not as_json:
        print(checked)
        for line in [*gpus, *not_read]:
            print(line)
    if roofs:
        from tinybench.tools.roofline.roofs import measure_roofs

        measured = measure_roofs(threads=threads, seconds=seconds)
        found["roofs"] = [result.to_dict() for result in [*measured.products, *measured.bandwidths]]
        found["notes"] = list(measured.notes)
        if not as_json:
            print(f"\n{measured}")
        if figure:
            from tinybench.tools.roofline.roofline_figures import roof_picture

            roof_picture(measured).save(figure, dpi=130)
    if as_json:
        print(json.dumps(found))
    return 0


def seen_gpus(driver: Path = Path("/proc/driver/nvidia")) -> tuple[list[Gpu], list[str]]:
    """Return the NVIDIA GPUs, and what keeps them from being read if there is a driver."""
    try:
        return read_gpus(), []
    except (ImportError, OSError) as error:
        return [], [f"GPUs not read: {error}"] if driver.exists() else []
