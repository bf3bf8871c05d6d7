"""The `tinybench` command: compare, measure, gate and study models from a shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinybench.shell.options import (
    BATCH,
    DATA,
    FILE,
    MEASURING,
    MODELS,
    REQUIREMENTS,
    THREADS,
    Group,
    share,
    with_options,
)

if TYPE_CHECKING:
    from tinybench.pareto import Requirements
    from tinybench.result import BenchmarkResult
    from tinybench.table import Table

__all__ = ["main"]

OK, REGRESSION, UNDECIDED, WRONG = 0, 1, 2, 3

EXAMPLES = """\b
examples:
  tinybench compare fp32.onnx int8.onnx --data digits.npz --batch 256
  tinybench compare app.models:small app.models:large --data rows.npy --seconds 10 --format markdown
  tinybench measure model.onnx --data digits.npz --save baseline.json
  tinybench gate baseline.json candidate.json --max-slowdown 5%
  tinybench run a.onnx b.onnx --data digits.npz --out study
  tinybench study app.models:classifier --data digits.npz --out hardware

\b
A model is an .onnx file, a .joblib file of scikit-learn (loading one runs code from it), or module:function where the
function returns a model (anything with predict_proba, predict, forward, run or a call). Data is an .npy array of rows,
or an .npz with X and, for accuracy, y.

\b
exit codes: 0 done or gate passed, 1 regression, 2 the gate cannot tell yet, 3 wrong use or bad input"""


@click.group(
    cls=Group,
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings={"max_content_width": 120, "show_default": True, "help_option_names": ["-h", "--help"]},
)
def commands() -> None:
    """Benchmarks of machine-learning inference that can be trusted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:  # click's own main knows other exit codes
        with commands.make_context("tinybench", list(sys.argv[1:] if arguments is None else arguments)) as context:
            return int(commands.invoke(context))
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        error.show()
    except KeyboardInterrupt:
        print("tinybench: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `tinybench … | head`
        sys.stderr.close()
        return OK
    except (OSError, ValueError, TypeError) as error:
        print(f"tinybench: {error}", file=sys.stderr)
    except Exception as error:  # a model's own error: ONNX Runtime's share no base class
        print(f"tinybench: {type(error).__name__}: {error}", file=sys.stderr)
    return WRONG


@commands.command()
@MODELS
@with_options(MEASURING)
@click.option("--margin", type=share, default="0%", help="a change that does not matter, such as 2%")
def compare(
    models: Sequence[str], margin: float, data: Path, batch: int, threads: int, save: Path | None, form: str, **how: Any
) -> int:
    """Which model is faster, by how much, how sure.

    Two or more models, the first is the baseline. They are timed in shuffled rounds, each round every model once, and
    compared pair by pair with the first.
    """
    from tinybench.shell.files import keep, load_data, load_models
    from tinybench.shell.quick import comparison_table, measure_for

    if len(models) < 2:
        raise ValueError("compare takes two or more models; for one there is `tinybench measure`")
    inputs, _, _ = load_data(data, batch)
    results = measure_for(load_models(models, threads), inputs, **how)
    keep(results, save)
    _print_results(results, comparison_table(results, margin), form)
    return OK


@commands.command()
@click.argument("model")
@with_options(MEASURING)
def measure(
    model: str, data: Path, batch: int, threads: int, seconds: float, save: Path | None, form: str, **how: Any
) -> int:
    """Measure the latency of one model.

    The median comes from 30 rounds spread over the time, the tail from single calls. The rounds are what --save writes,
    for a later `tinybench gate`.
    """
    from tinybench.latency import measure_session_latency
    from tinybench.shell.files import keep, load_data, load_models
    from tinybench.shell.quick import measure_for, tail_table

    inputs, _, _ = load_data(data, batch)
    [(name, loaded)] = load_models([model], threads).items()
    calls = measure_for({name: loaded}, inputs, seconds / 3, **how)[name]
    session = measure_session_latency(loaded, inputs, rounds=30, seconds=seconds * 2 / 3, seed=how["seed"])
    keep({name: session}, save)
    _print_results({name: session}, tail_table(name, session, calls), form)
    return OK


def _print_results(results: dict[str, BenchmarkResult], table: Table, form: str) -> None:
    match form:
        case "json":
            print(json.dumps({name: result.to_dict() for name, result in results.items()}))
        case "markdown":
            print(table.markdown())
        case "csv":
            print(table.csv())
        case _:
            system = next(iter(results.values())).metadata["system"]
            load = f", load {system['load_average'][0]:.1f}" if system["load_average"] else ""
            table.caption += f"; {system['cpu']}, {system['cores']} cores{load}"
            print(table)


@commands.command()
@click.argument("baseline", type=FILE)
@click.argument("candidate", type=FILE)
@click.option("--max-slowdown", type=share, default="5%", help="such as 5% or 0.05")
@click.option("--model", help="which model, where a file holds several")
@click.option("--allow", multiple=True, metavar="NAME...", help="conditions that may differ, as the refusal names them")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
def gate(
    baseline: Path, candidate: Path, max_slowdown: float, model: str | None, allow: Sequence[str], form: str
) -> int:
    """Has the candidate become slower than allowed.

    Both are files written by --save, or by BenchmarkResult.to_dict(). Exit code 0: no; 1: yes; 2: these measurements
    cannot tell, and how many would. For continuous integration.
    """
    from tinybench.comparison import regression_gate
    from tinybench.shell.files import load_result

    found = regression_gate(load_result(baseline, model), load_result(candidate, model), max_slowdown, allow=allow)
    if form == "json":
        fields = {"verdict": found.verdict, "slowdown": found.slowdown, "interval": found.interval}
        print(json.dumps(fields | {"needs": found.needs, "max_slowdown": found.max_slowdown}))
    else:
        print(found)
    return {"passes": OK, "fails": REGRESSION}.get(found.verdict, UNDECIDED)


def _requirements(file: Path | None) -> Requirements | None:
    from tinybench.pareto import Requirements

    return Requirements.from_yaml(file if file.exists() else str(file)) if file else None  # or the text itself


@commands.command()
@with_options([MODELS, DATA, BATCH, THREADS])
@click.option("--out", type=FILE, default="benchmark_results", metavar="FOLDER")
@click.option("--rounds", default=100, help="rounds of latency")
@click.option("--resume", is_flag=True, help="measure only what an interrupted study has left")
@REQUIREMENTS
def run(
    models: Sequence[str],
    data: Path,
    batch: int,
    threads: int,
    out: Path,
    rounds: int,
    resume: bool,
    limits: Path | None,
) -> int:
    """The full study, with a report.

    Latency, throughput, accuracy, memory and energy. Writes tables, figures, report.md and report.html; an interrupted
    study goes on with --resume.
    """
    from tinybench.shell.files import load_labelled, load_models
    from tinybench.suite import BenchmarkSuite

    requirements = _requirements(limits)
    inputs, rows, labels = load_labelled(data, batch)
    suite = BenchmarkSuite(load_models(models, threads), (rows, labels), out, inputs=inputs, measurement_runs=rounds)
    suite.run_full_benchmark(resume=resume)
    print(suite.generate_report(requirements))
    print(f"tables, figures and report.html are in {out}")
    return OK


@commands.command()
@click.argument("model", required=False)
@click.option("--data", type=FILE, metavar="FILE", help=".npz with X and y that the fit has not seen")
@click.option("--out", type=FILE, default="hardware_study", metavar="FOLDER")
@click.option("--batches", multiple=True, type=int, default=(1, 32, 256), metavar="ROWS...", help="rows per call")
@click.option("--rounds", default=30, help="rounds for each batch size")
@click.option("--threads", default=1, help="threads of every engine")
@click.option("--variants", multiple=True, default=("*",), metavar="NAME...", help="such as NumPy 'INT8*'; all")
@REQUIREMENTS
def study(
    model: str | None, data: Path | None, out: Path, batches: Sequence[int], limits: Path | None, **how: Any
) -> int:
    """Does INT8 pay for this classifier, on this machine.

    One fitted scikit-learn classifier (by default the course's network on digits) as it is, in NumPy, in ONNX FP32 (at
    each level of graph optimisation), FP16 and INT8 (dynamic, static, per channel), every gain with its interval.
    Writes report.html, a page to hand to a colleague, and all numbers as hardware_tradeoffs.csv, …_rounds.csv and
    …_summary.json. What was measured before Ctrl-C or an error is kept.
    """
    from tinybench.course import case_study
    from tinybench.shell.files import load_labelled, load_model
    from tinybench.shell.study_page import write_page
    from tinybench.study import tradeoff_study

    requirements = _requirements(limits)
    if model is None:
        if data is not None:
            raise ValueError("--data belongs to a model of yours; name it: tinybench study MODEL --data FILE")
        case = case_study("small")
        classifier, rows, labels = case.model, case.X, case.y
    else:
        if data is None:
            raise ValueError(f"on which data? tinybench study {model} --data FILE, an .npz with X and y")
        classifier = load_model(model)
        _, rows, labels = load_labelled(data)
    options = {"batch_sizes": batches, "requirements": requirements, "out": out, **how}
    try:
        found = tradeoff_study(classifier, rows, labels, progress=lambda line: print(line, file=sys.stderr), **options)
    except BaseException as error:
        if (broken_off := getattr(error, "study", None)) is not None:
            print(broken_off)
            print("tinybench:", *getattr(error, "__notes__", []), file=sys.stderr)
            with suppress(OSError):  # the disk may be full
                write_page(broken_off, out)
        raise
    print(found)
    print(f"the page is {write_page(found, out)}, the tables are beside it")
    return OK


@commands.command()
def system() -> int:
    """The conditions of a measurement here.

    As every result records them.
    """
    from tinybench.benchmark import system_info

    print(json.dumps(system_info(), indent=1))
    return OK
