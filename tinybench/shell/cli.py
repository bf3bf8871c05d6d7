"""The `tinybench` command, which measures, compares and studies models, and checks them for slowdowns."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tinybench import __version__
from tinybench.shell.history_command import history
from tinybench.shell.machine_command import machine
from tinybench.shell.options import (
    BATCH,
    DATA,
    EXAMPLES,
    FILE,
    GATING,
    LOADING,
    MEASURING,
    MODELS,
    REQUIREMENTS,
    THREADS,
    Group,
    check_gating,
    check_loading,
    refuse_given,
    refuse_threads,
    share,
    with_options,
)
from tinybench.shell.profile_command import profile_script
from tinybench.shell.rollout_command import rollout
from tinybench.shell.serve_command import serve_model
from tinybench.shell.streams import escape_unprintable
from tinybench.shell.study_command import requirements_of, study
from tinybench.shell.watch_command import watch

__all__ = ["main"]

OK, REGRESSION, UNDECIDED, WRONG = 0, 1, 2, 3
GATE_CODES = {"passes": OK, "fails": REGRESSION}


@click.group(
    cls=Group,
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings={"max_content_width": 120, "show_default": True, "help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="tinybench")
def commands() -> None:
    """Run trustworthy benchmarks of machine-learning inference."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default that of the command line, and return its exit code."""
    escape_unprintable()
    try:  # click's own main uses other exit codes
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
    except Exception as error:  # raised by a model; ONNX Runtime's errors share no base class
        print(f"tinybench: {type(error).__name__}: {error}", file=sys.stderr)
    return WRONG


@commands.command(name="compare")
@MODELS
@with_options(MEASURING)
@click.option(
    "--margin", type=share, default="0%", help="The largest relative change that does not matter, such as 2%."
)
def compare_files(
    models: Sequence[str], margin: float, data: Path, batch: int, threads: int, save: Path | None, form: str, **how: Any
) -> int:
    """Compare the latency of two or more models.

    The first model is the baseline. The models are timed in shuffled rounds, each model once per round. The table shows
    how much faster or slower each model is than the baseline, with intervals, p-values and a verdict.
    """
    from tinybench.shell.files import refuse_missing
    from tinybench.shell.result_output import finish, rescued
    from tinybench.shell.timed_comparison import comparison_table, measure_for
    from tinybench.support.basics.array_files import load_data
    from tinybench.tools.serving.models import load_models

    if len(models) < 2:
        raise ValueError("compare takes two or more models; for one there is `tinybench measure`")
    refuse_threads(models)
    refuse_missing(*models, data)
    inputs, _, _ = load_data(data, batch)
    loaded = load_models(models, threads)
    with rescued(save, form):
        results = measure_for(loaded, inputs, **how)
    return WRONG if finish(results, comparison_table(results, margin), form, save) else OK


@commands.command()
@click.argument("model")
@click.option(
    "--sessions",
    type=int,
    help="Divide the time among this number of fresh processes, as is best for a later `tinybench gate`.",
)
@with_options(MEASURING)
def measure(
    model: str,
    sessions: int | None,
    data: Path,
    batch: int,
    threads: int,
    seconds: float,
    save: Path | None,
    form: str,
    **how: Any,
) -> int:
    """Measure the latency of one model.

    The median is estimated from 30 rounds spread over the measuring time, and the tail percentiles from single calls.
    --save writes the rounds to a file, which `tinybench gate` can compare later.
    """
    from tinybench.shell.files import refuse_missing

    refuse_threads([model])
    refuse_missing(model, data)
    if sessions is not None:
        refuse_given({"mode"}, "without --sessions, whose sessions are timed as served")
        from tinybench.shell.gate_run import measure_in_sessions

        about = {"data": data, "batch": batch, "threads": threads}
        problem = measure_in_sessions(model, sessions, seconds, form, how["seed"], save, **about)
        return WRONG if problem else OK
    from tinybench.shell.result_output import finish, rescued
    from tinybench.shell.timed_comparison import measure_one, tail_table
    from tinybench.support.basics.array_files import load_data
    from tinybench.tools.serving.models import load_models

    inputs, _, _ = load_data(data, batch)
    [(name, loaded)] = load_models([model], threads).items()
    with rescued(save, form):
        session, calls = measure_one(name, loaded, inputs, seconds, **how)
    return WRONG if finish({name: session}, tail_table(name, session, calls), form, save) else OK


@commands.command()
@click.argument("old")
@click.argument("new")
@with_options(GATING)
def gate(
    old: str, new: str, max_slowdown: float, model: str | None, allow: Sequence[str], run: bool, form: str, **how: Any
) -> int:
    """Check whether a candidate (NEW) is slower than its baseline (OLD) by more than allowed.

    Without --run, OLD and NEW are two result files, written by --save or from BenchmarkResult.to_dict(). Files of
    `measure --sessions 10` work best. With --run, OLD and NEW are commands in quotes, .onnx or .joblib files with
    --data, functions as module:function, or, with --call, two commits ("." is the working tree). Both are then measured
    now, in fresh processes that take turns, until the verdict is established. A wrong verdict has a probability of at
    most 2 %.

    Exit code 0: not slower than allowed; 1: slower than allowed; 2: undecided, with an estimate of how many
    measurements are needed. The command is meant for continuous integration.
    """
    check_gating(run, (old, new), how["data"], how["call"])
    if run:
        from tinybench.shell.gate_run import run_gate

        return GATE_CODES.get(run_gate(old, new, max_slowdown, form=form, **how), UNDECIDED)
    from tinybench.comparison import regression_gate
    from tinybench.shell.files import load_result
    from tinybench.support.basics.result_text import is_interval

    baseline, candidate = load_result(Path(old), model), load_result(Path(new), model)
    found = regression_gate(baseline, candidate, max_slowdown, allow=allow)
    if form == "json":
        ends = found.interval if is_interval(*found.interval) else None
        fields = {"verdict": found.verdict, "slowdown": found.slowdown, "interval": ends}
        print(json.dumps(fields | {"needs": found.needs, "max_slowdown": found.max_slowdown}))
    else:
        print(f"**{found.verdict}**\n\n{found}" if form == "markdown" else found)
    return GATE_CODES.get(found.verdict, UNDECIDED)


@commands.command()
@with_options([MODELS, DATA, BATCH, THREADS])
@click.option("--out", type=FILE, default="benchmark_results", metavar="FOLDER")
@click.option("--rounds", default=100, help="Number of latency rounds.")
@click.option("--resume", is_flag=True, help="Continue an interrupted study with the measurements still missing.")
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
    """Run the full study and write a report to share.

    The study measures latency, throughput, accuracy, memory and energy. It writes report.html (the recommended model
    and its drawbacks, the Pareto frontier, all comparisons, the conditions), report.md, tables and figures. --resume
    continues a study that was stopped.
    """
    from tinybench.shell.files import refuse_missing
    from tinybench.shell.result_output import print_decisions
    from tinybench.suite import BenchmarkSuite
    from tinybench.support.basics.array_files import load_labelled
    from tinybench.tools.serving.models import load_models

    refuse_threads(models)
    refuse_missing(*models, data)
    requirements = requirements_of(limits)
    inputs, rows, labels = load_labelled(data, batch)
    suite = BenchmarkSuite(load_models(models, threads), (rows, labels), out, inputs=inputs, measurement_runs=rounds)
    try:
        suite.run_full_benchmark(resume=resume)
    except BaseException as stopped:  # Ctrl-C too: print which measurements are kept, and where
        print(*(f"tinybench: {note}" for note in getattr(stopped, "__notes__", [])), sep="\n", file=sys.stderr)
        raise
    print(suite.generate_report(requirements))
    if requirements is not None:
        print_decisions(suite.results, requirements)
    print(f"the page to hand on is {out / 'report.html'}, tables and figures lie beside it")
    return OK


commands.add_command(study)


@commands.command()
@click.argument("url")
@with_options(LOADING)
def load(url: str, rate: float, seconds: float, **how: Any) -> int:
    """Measure how long users of a server wait at a given request rate.

    URL is the address that `tinybench serve` prints. Each request is sent when it is due, by default at random times,
    as from independent users. Latency is measured from the due time, so that it includes the wait behind a slow answer.
    The command reports how late it sent requests. If this lateness, not the server, determines a percentile, the
    percentile is withheld (exit code 3).
    """
    check_loading(how["users"] is not None, how["data"])
    from tinybench.shell.load_command import run_load

    return OK if run_load(url, rate, seconds, **how) else WRONG


@commands.command()
def system() -> int:
    """Print the conditions of a measurement on this machine.

    These conditions, such as the processor, its cores and the load, are also recorded in every result.
    """
    from tinybench.benchmark import system_info

    print(json.dumps(system_info(), indent=1))
    return OK


commands.add_command(machine)
commands.add_command(serve_model)
commands.add_command(profile_script)
commands.add_command(history)
commands.add_command(watch)
commands.add_command(rollout)
