"""The `tinybench` command: compare, measure, gate and study models from a shell."""

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
    """Benchmarks of machine-learning inference that can be trusted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    escape_unprintable()
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


@commands.command(name="compare")
@MODELS
@with_options(MEASURING)
@click.option("--margin", type=share, default="0%", help="a change that does not matter, such as 2%")
def compare_files(
    models: Sequence[str], margin: float, data: Path, batch: int, threads: int, save: Path | None, form: str, **how: Any
) -> int:
    """Which model is faster, by how much, how sure.

    Two or more models, the first is the baseline. They are timed in shuffled rounds, each round every model once, and
    compared pair by pair with the first.
    """
    from tinybench.shell.files import refuse_missing
    from tinybench.shell.output import finish, rescued
    from tinybench.shell.quick_comparison import comparison_table, measure_for
    from tinybench.support.basics.arrays import load_data
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
@click.option("--sessions", type=int, help="spread the time over so many fresh processes, as a gate on files needs it")
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

    The median comes from 30 rounds spread over the time, the tail from single calls. The rounds are what --save writes,
    for a later `tinybench gate`.
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
    from tinybench.shell.output import finish, rescued
    from tinybench.shell.quick_comparison import measure_one, tail_table
    from tinybench.support.basics.arrays import load_data
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
    """Has the candidate become slower than allowed.

    Two files written by --save, or by BenchmarkResult.to_dict(); best of `measure --sessions 10`. Or measured now, with
    --run, in fresh processes that take turns: commands in quotes, .onnx or .joblib files with --data, functions as
    module:function, or with --call two commits ("." is the working tree). It stops as soon as it knows; a wrong verdict
    has a probability of 2 % at most.

    Exit code 0: no; 1: yes; 2: these measurements cannot tell, and how many would. For continuous integration.
    """
    check_gating(run, (old, new), how["data"], how["call"])
    if run:
        from tinybench.shell.gate_run import run_gate

        return GATE_CODES.get(run_gate(old, new, max_slowdown, form=form, **how), UNDECIDED)
    from tinybench.comparison import regression_gate
    from tinybench.result import is_interval
    from tinybench.shell.files import load_result

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
    """The full study, with a page to hand on.

    Latency, throughput, accuracy, memory and energy. Writes report.html (which model to take, what speaks against it,
    the frontier, all comparisons, the conditions), report.md, tables and figures; a study that was stopped goes on
    with --resume.
    """
    from tinybench.shell.files import refuse_missing
    from tinybench.shell.output import print_decisions
    from tinybench.suite import BenchmarkSuite
    from tinybench.support.basics.arrays import load_labelled
    from tinybench.tools.serving.models import load_models

    refuse_threads(models)
    refuse_missing(*models, data)
    requirements = requirements_of(limits)
    inputs, rows, labels = load_labelled(data, batch)
    suite = BenchmarkSuite(load_models(models, threads), (rows, labels), out, inputs=inputs, measurement_runs=rounds)
    try:
        suite.run_full_benchmark(resume=resume)
    except BaseException as stopped:  # Ctrl-C too: what was measured is kept, and where
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
    """How long users of a server wait, at a given rate.

    URL is what `tinybench serve` prints. Requests go out when they are due, by default as independent users send them,
    and latency counts from then on: what a slow answer keeps waiting is counted too. Says how late its own sends were,
    and gives no percentile that is its own rather than the server's (exit code 3).
    """
    check_loading(how["users"] is not None, how["data"])
    from tinybench.shell.load_command import run_load

    return OK if run_load(url, rate, seconds, **how) else WRONG


@commands.command()
def system() -> int:
    """The conditions of a measurement here.

    As every result records them.
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
