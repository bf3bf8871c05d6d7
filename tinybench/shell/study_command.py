"""The `tinybench study` command: measure the gains of compression, engine and optimisation level for a classifier."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinybench.shell.options import FILE, REQUIREMENTS, Command

if TYPE_CHECKING:
    from tinybench.pareto import Requirements


def requirements_of(file: Path | None) -> Requirements | None:
    """Return the requirements from a YAML file. If there is no such file, parse the argument itself as YAML."""
    from tinybench.pareto import Requirements

    return Requirements.from_yaml(file if file.exists() else str(file)) if file else None  # the text itself may be YAML


@click.command(cls=Command)
@click.argument("model", required=False)
@click.option("--data", type=FILE, metavar="FILE", help="Test data not used for the fit, .npz with X, y, any groups.")
@click.option("--out", type=FILE, default="hardware_study", metavar="FOLDER")
@click.option("--batches", multiple=True, type=int, default=(1, 32, 256), metavar="ROWS...", help="Rows per call.")
@click.option("--rounds", default=30, help="Rounds for each batch size.")
@click.option("--threads", default=1, help="Threads of every engine.")
@click.option(
    "--variants",
    multiple=True,
    default=("*",),
    metavar="NAME...",
    help="Names or patterns of the variants to measure, such as NumPy 'INT8*'.",
)
@REQUIREMENTS
def study(
    model: str | None, data: Path | None, out: Path, batches: Sequence[int], limits: Path | None, **how: Any
) -> int:
    """Check whether INT8 pays for a classifier on this machine.

    The study takes one fitted scikit-learn classifier (by default a network on handwritten digits). It measures the
    classifier as it is, in NumPy, and in ONNX as FP32 (at each level of graph optimisation), FP16 and INT8 (dynamic,
    static, per channel). Each gain is reported with its confidence interval. The study writes report.html, a page to
    share, and all numbers as hardware_tradeoffs.csv, …_rounds.csv and …_summary.json. Measurements made before Ctrl-C
    or an error are kept.

    If rows depend on each other, such as copies of one original, the array groups of the data names the group of each
    row, and intervals of accuracies are by groups.
    """
    from tinybench.shell.study_page import write_page
    from tinybench.support.basics.array_files import load_grouped
    from tinybench.support.basics.example_classifier import digits, network
    from tinybench.tools.serving.models import load_model
    from tinybench.tools.study.int8_study import tradeoff_study

    requirements = requirements_of(limits)
    if model is None:
        if data is not None:
            raise ValueError("--data belongs to a model of yours; name it: tinybench study MODEL --data FILE")
        print("fitting a network on the digits of scikit-learn", file=sys.stderr)
        X_train, y_train, rows, labels = digits()
        with warnings.catch_warnings(action="ignore"):  # the network is good enough before it converges
            classifier = network().fit(X_train, y_train)
        groups = None
    else:
        if data is None:
            raise ValueError(f"on which data? tinybench study {model} --data FILE, an .npz with X and y")
        classifier = load_model(model)
        rows, labels, groups = load_grouped(data)
    options = {"batch_sizes": batches, "requirements": requirements, "out": out, "groups": groups, **how}
    try:
        found = tradeoff_study(classifier, rows, labels, progress=lambda line: print(line, file=sys.stderr), **options)
    except BaseException as error:
        if (broken_off := getattr(error, "study", None)) is not None:
            print(broken_off)
            print("tinybench:", *getattr(error, "__notes__", []), file=sys.stderr)
            with suppress(OSError):  # the disk may be full
                write_page(broken_off, out)
        elif (
            isinstance(error, OSError) and error.errno and error.filename is None
        ):  # some libraries do not name the file
            raise OSError(f"cannot write below {out} ({error.strerror or error}); choose another --out") from error
        raise
    print(found)
    print(f"the page is {write_page(found, out)}, the tables are beside it")
    return 0
