"""The output of results to the screen and to a file, even if measuring or writing fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tinybench.result import BenchmarkResult
from tinybench.shell.files import keep
from tinybench.shell.timed_comparison import comparison_table
from tinybench.support.basics.numbers import number_of, plural
from tinybench.support.basics.table import FORMATS, Table

if TYPE_CHECKING:
    from tinybench.pareto import Requirements


@contextmanager
def rescued(save: Path | None, form: str) -> Iterator[None]:
    """Print and save the complete rounds that an exception in the block carries, then raise the exception again.

    Ctrl-C counts as an exception. An exception without rounds is only raised again.
    """
    try:
        yield
    except BaseException as error:
        if results := getattr(error, "results", None):
            finish(results, comparison_table(results), form, save, rescue=True)
        raise


def finish(
    results: dict[str, BenchmarkResult], table: Table, form: str, save: Path | None, rescue: bool = False
) -> str:
    """Write and print results. Return the error message, or an empty string if there was no error.

    If `save` cannot be written, print where the results are instead.
    """
    file, problem = keep(results, save, rescue)
    print_results(results, table, form)
    if problem and file is None and form != "json":
        print_results(results, table, "json")
    if problem or rescue:
        where, rounds = f"in {file}" if file else "above, as JSON", next(iter(results.values())).count
        said = f"{problem}; " if problem else ""
        print(
            f"tinybench: {said}the {number_of(rounds, 'complete round')} {plural(rounds, 'is', 'are')} {where}",
            file=sys.stderr,
        )
    return problem


def print_results(results: dict[str, BenchmarkResult], table: Table, form: str) -> None:
    """Print results as JSON, or as a table in text, Markdown or CSV with a caption that names the system."""
    if form == "json":
        print(json.dumps({name: result.to_dict() for name, result in results.items()}))
        return
    system = next(iter(results.values())).metadata["system"]
    load = f", load {system['load_average'][0]:.1f}" if system["load_average"] else ""
    table.caption += f"; {system['cpu']}, {number_of(system['cores'], 'core')}{load}"
    print(FORMATS[form](table))


def print_decisions(results: Mapping[str, Mapping[str, BenchmarkResult]], requirements: Requirements) -> None:
    """Print whether each model may be shipped, as decided from the confidence intervals of its results."""
    try:
        from tinybench.tools.study.ship_decision import may_ship
    except ImportError:  # modules 09 and 14 are not built yet
        return
    for model in dict.fromkeys(name for by_model in results.values() for name in by_model):
        known = {name: results.get(name.partition("_")[0], {}).get(model) for name in requirements.limits()}
        decision = may_ship({name: result for name, result in known.items() if result is not None}, requirements)
        told = "; ".join(f"{name} {found}" for name, found in decision.findings.items())
        print(f"{model}, by the intervals of its results: {decision.verdict} ({told})")
