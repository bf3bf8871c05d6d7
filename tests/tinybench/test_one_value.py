"""One value, or equal ones, say nothing about scatter: no view of a result shows a deviation or an interval of them.

The views are found by their annotations: each function of the library that takes results and returns text, a table, a
figure or rows. A new one is tried without further ado, or the test names what it lacks.
"""

from __future__ import annotations

import inspect
import json
import math
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import tinybench
from tinybench.accuracy import measure_accuracy
from tinybench.benchmark import Benchmark
from tinybench.comparison import compare, regression_gate
from tinybench.pareto import Requirements
from tinybench.result import BenchmarkResult
from tinybench.shell.cli import main
from tinybench.suite import BenchmarkSuite, best_by_dimension, comparison_rows, summary_rows
from tinybench.support.basics.pages import Picture, Section
from tinybench.support.basics.table import Table
from tinybench.support.comparisons.verdict import Comparison, Gate
from tinybench.support.reports.frontier_figure import plot_pareto_frontier

# the library says so itself, in a warning
pytestmark = pytest.mark.filterwarnings("ignore:.*a single value or row does not show any scatter")

SAMPLES = {"one value": [0.0123], "three values": [0.0123, 0.0119, 0.0131], "six equal values": [0.0123] * 6}
TAKEN = re.compile(r"\bBenchmarkResult\b|^Results$")
RETURNED = re.compile(r"str|Table|Section|Figure|Picture|Comparison|Gate|Entry|(list|dict)\[.*(str|Section|Any).*")
STUDY = [
    f"tinybench.tools.study.{name}" for name in ("decisions", "gains", "int8_study", "measurements", "tradeoff_result")
]
UNSEEN = ("tinybench.course.", "tinybench.__main__", *STUDY)
NOT_SHOWN = {  # a file's path, what came before measuring, or a result again
    "_given", "keep", "keep_rounds", "note_stages", "kept", "finish", "measurement_conditions", "against", "judged",
    "comparison_of", "allowed_changes", "race_summary", "_rounds", "entry_of",
}  # fmt: skip

Views = dict[str, Callable[[SimpleNamespace], Any]]


def samples(values: list[float]) -> SimpleNamespace:
    """Return what views take, by the names of their parameters: results of a, and of b, which takes a fifth more."""
    system = {"cpu": "a processor", "cpu_flags": [], "cores": 2, "governor": None, "platform": "Linux", "python": "3"}
    system |= {"libraries": {}, "blas": "a library", "threads": {}, "time": "2026-11-24T10:00:00+00:00"}
    notes = {"pairing": "the same rounds", "system": system | {"load_average": None}, "commit": "a" * 40}

    def two(metric: str, unit: str, size: float) -> dict[str, BenchmarkResult]:
        rows = {name: [value * size * more for value in values] for name, more in (("a", 1.0), ("b", 1.2))}
        return {name: BenchmarkResult(metric, row, notes | {"model": name}, unit) for name, row in rows.items()}

    shares = {name: measure_accuracy(lambda x: x, (np.eye(10), [*range(9), 0])) for name in "ab"}
    for result in shares.values():
        result.metadata["system"] = notes["system"]
    results = {"latency": two("latency", "s", 1), "throughput": two("throughput", "rows/s", 1e5), "accuracy": shares}
    results |= {"memory": two("memory", "B", 1e9), "energy": two("energy", "J", 1)}
    a, b = results["latency"].values()
    given = SimpleNamespace(results=results, a=a, b=b, result=a, baseline=a, candidate=b, session=a, calls=a, first=b)
    given.by_model = given.latency = given.models = results["latency"]
    given.metric, given.name, given.names, given.wanted = "latency", "a", ("a", "b"), tuple(results)
    given.rows, given.pairs, given.best = summary_rows(results), comparison_rows(results), best_by_dimension(results)
    given.labels, given.points, given.of, given.figure = {m: m for m in results}, [], 2, Figure()
    given.x_metric, given.y_metric, given.factor, given.unit, given.comparison, given.p = (
        "latency", "accuracy", 1e-3, "ms", None, 1.0,
    )  # fmt: skip
    given.requirements = Requirements(latency_p95_ms=20, energy_budget_mj=20)
    return given


@cache
def discovered() -> Views:
    """Return every function of the library that shows results, by its name."""
    found: Views = {}
    for module in pkgutil.walk_packages(tinybench.__path__, "tinybench."):
        if module.name.startswith(UNSEEN):
            continue
        for name, function in vars(import_module(module.name)).items():
            if not inspect.isfunction(function) or function.__module__ != module.name or name in NOT_SHOWN:
                continue
            notes = {key: str(kind) for key, kind in function.__annotations__.items()}
            returned = notes.pop("return", "")
            takes = any(map(TAKEN.search, notes.values()))
            if takes and RETURNED.fullmatch(returned.removesuffix(" | None")) and "BenchmarkResult" not in returned:
                found[f"{module.name}.{name}"] = called(function)
    return found


def called(function: Callable[..., Any]) -> Callable[[SimpleNamespace], Any]:
    """Return a view that calls a function with what `samples` has for its parameters."""

    def view(given: SimpleNamespace) -> Any:
        parameters = inspect.signature(function).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        if missing := [name for name in needed if not hasattr(given, name)]:
            pytest.fail(f"give {', '.join(missing)} in `samples`, or name {function.__name__} in NOT_SHOWN")
        arguments = {name: getattr(given, name) for name in needed}
        if isinstance(arguments.get("results"), dict) and "Mapping" in str(function.__annotations__.get("results")):
            arguments["results"] = given.latency
        if "Sequence" in str(function.__annotations__.get("results")):
            arguments["results"] = list(given.latency.values())
        try:
            return function(**arguments)
        except ValueError as refused:  # in words, which are a view as well
            return str(refused)

    return view


def by_hand() -> Views:
    """Return the views that are no functions of a result: methods, protocols, files."""
    names = [name for name, kind in inspect.getmembers(BenchmarkResult) if not name.startswith("_")]
    shown = [name for name in names if not inspect.isfunction(getattr(BenchmarkResult, name))]
    views: Views = {
        "str": lambda given: str(given.a),
        "repr": lambda given: repr(given.a),
        "sd": lambda given: f"{given.a:sd}",
        "html": lambda given: given.a._repr_mimebundle_()["text/html"],
        "to_dict": lambda given: given.a.to_dict(),
        "properties": lambda given: [getattr(given.a, name) for name in shown if name not in ("values", "metadata")],
        "compare_html": lambda given: compare(given.b, given.a)._repr_mimebundle_()["text/html"],
        "compare_apart": lambda given: refusal(compare, given.b, given.a, paired=False),
        "gate": lambda given: str(regression_gate(given.a, given.b)),
        "pareto_figure": lambda given: plot_pareto_frontier(
            [
                {"model": name, "latency": r, "memory": given.results["memory"][name]}
                for name, r in given.latency.items()
            ],
            {"latency": "min", "memory": "min"},
        ),
    }
    for metric in ("latency", "throughput", "memory", "energy", "accuracy"):
        views[f"rows of {metric}"] = lambda given, metric=metric: rows_of(given, metric)
    return views


def refusal(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    try:
        return str(function(*args, **options))
    except ValueError as refused:
        return str(refused)


def rows_of(given: SimpleNamespace, metric: str) -> list[dict[str, Any]]:
    """Return the rows of `Benchmark.compare_models` of results that are there already."""
    bench = Benchmark({"a": len, "b": len}, progress=None)
    bench.results[metric] = given.results[metric]
    return bench.compare_models(metric)


VIEWS = {**discovered(), **by_hand()}


def content(value: Any) -> Any:
    """Return a list of what a table, section, picture, comparison or gate shows; any other value as it is."""
    if isinstance(value, Table):
        return [value.caption, value.rows]
    if isinstance(value, Section):
        return [value.title, value.text, value.rows]
    if isinstance(value, Picture):
        return [value.alt, value.caption]
    if isinstance(value, Comparison | Gate):
        return [str(value), str(value.to_dict()["sentence"])]
    return value


def parts(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every number and text of a view with the name under which it stands."""
    value = content(value)
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in ("values", "metadata", "result"):
                yield from parts(item, str(name))
    elif isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(end, float | int) for end in value):
        yield key, tuple(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from parts(item, key)
    else:
        yield key, value


ENDS = re.compile(r"([\d.,]+)(?: ?%| [µnmk]?[sBJ])?(?:–| to )([\d.,]+)")
TABOO = re.compile(r"±|standard deviation|\bsd\b|\bcv\b|CI \d|\bnan\b|\binf\b")
PAIRS = [(f"{a}lower", f"{a}upper") for a in ("", "ci_", "ratio_", "difference_")] + [("low", "high")]


def check_text(text: str, few: str) -> None:
    """Fail if a text shows an interval without width or, where nothing scatters, a deviation or an interval."""
    text = re.sub(r"<[^>]*>", " ", text)
    same = [found[0] for found in ENDS.finditer(text) if found[1] == found[2] and not found[1].isdigit()]
    assert not same, f"an interval without width, {same}, in: {text}"
    if few == "one value":
        assert not TABOO.search(text), f"{TABOO.search(text)} in: {text}"
    if few == "six equal values":
        assert not re.search(r"±|standard deviation|\bcv\b|\bnan\b", text), text


def check_view(shown: Any, few: str) -> None:
    """Fail if any part of a view, whatever its form, shows scatter that nobody saw."""
    if isinstance(shown, Figure):
        check_figure(shown, few)
        return
    for name, value in parts(shown):
        if isinstance(value, str):
            check_text(value, few)
        elif isinstance(value, tuple) and ("ci" in name.split("_") or "interval" in name):
            assert value[0] != value[1], f"{name} is {value}, an interval without width"
        elif name in ("std", "cv") and few == "one value":
            assert value is None or math.isnan(value), f"{name} of one value is {value}"
    for row in rows_in(shown):
        for low, high in PAIRS:
            ends = row.get(low), row.get(high)
            if isinstance(ends[0], float) and isinstance(ends[1], float):
                assert ends[0] != ends[1], f"{low} and {high} are both {ends[0]}: {row}"


def rows_in(shown: Any) -> Iterator[dict[str, Any]]:
    if isinstance(shown, dict):
        yield shown
    for item in shown.values() if isinstance(shown, dict) else shown if isinstance(shown, list | tuple) else ():
        yield from rows_in(item)


def check_figure(figure: Figure, few: str) -> None:
    """Fail if a figure draws a bar where nothing scatters: those of shares of rows stand upright, and may stay."""
    bars = [bar for axes in figure.axes for bar in axes.collections if isinstance(bar, LineCollection)]
    lengths = [float(np.ptp(segment[:, 0])) for bar in bars for segment in bar.get_segments() if len(segment)]
    caps = [line for axes in figure.axes for line in axes.lines if line.get_marker() in ("|", "_")]
    drawn = [x for cap in caps if cap.get_marker() == "|" for x in np.ravel(cap.get_xdata()) if np.isfinite(x)]
    if few == "three values":
        assert any(length > 0 for length in lengths)
    else:
        assert not any(math.isfinite(length) for length in lengths), lengths
        assert not drawn


@pytest.mark.parametrize("few", SAMPLES)
@pytest.mark.parametrize("view", VIEWS)
def test_no_view_shows_scatter_that_nobody_saw(view: str, few: str) -> None:
    check_view(VIEWS[view](samples(SAMPLES[few])), few)


def test_there_are_many_views() -> None:
    for name in (
        "suite.summary_rows",
        "latency.latency_summary",
        "support.reports.sections.pairs_section",
        "shell.timed_comparison.tail_table",
    ):
        assert f"tinybench.{name}" in VIEWS
    assert len(VIEWS) > 35


@pytest.mark.parametrize("few", SAMPLES)
def test_a_result_says_that_it_knows_little(few: str) -> None:
    for by_model in samples(SAMPLES[few]).results.values():
        for result in by_model.values():
            copy = BenchmarkResult.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
            assert copy == result
            assert bool(result.cautions) == (result.metric_name != "accuracy")


@pytest.mark.parametrize("few", SAMPLES)
def test_no_file_of_a_suite_shows_it(few: str, tmp_path: Path) -> None:
    given, count = samples(SAMPLES[few]), len(SAMPLES[few])
    rows = np.eye(4)
    suite = BenchmarkSuite({"a": len, "b": len}, (rows, np.arange(4)), tmp_path, measurement_runs=1, progress=None)
    for metric, by_model in given.results.items():
        piece = tmp_path / "measurements" / f"{'latency-0' if metric == 'latency' else metric}.json"
        piece.parent.mkdir(exist_ok=True)
        piece.write_text(json.dumps({name: result.to_dict() for name, result in by_model.items()}, allow_nan=False))
    suite.write_tables()
    suite.generate_report(Requirements(latency_p95_ms=20))
    for file in [*tmp_path.glob("*.csv"), *tmp_path.glob("*.json"), *tmp_path.glob("report.*")]:
        text = file.read_text(encoding="utf-8")
        check_text(re.sub(r"<(style|svg|script).*?</\1>|data:[^\"')]*", "", text, flags=re.DOTALL), few)
        if file.suffix == ".json":
            json.loads(text, parse_constant=pytest.fail)
    header, *lines = (tmp_path / "benchmark_summary.csv").read_text().splitlines()
    for line in lines:
        row = dict(zip(header.split(","), line.split(","), strict=True))
        if row["metric"] != "accuracy":
            assert (row["std"] == "") == (count == 1)
            assert (row["lower"] == row["upper"] == "") == (few != "three values")
            assert row["interval"] == ("range" if few == "three values" else "none")


@pytest.mark.parametrize("few", SAMPLES)
def test_no_command_shows_it(few: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = samples(SAMPLES[few])
    old, new, history = tmp_path / "old.json", tmp_path / "new.json", tmp_path / "history.db"
    for file, result in ((old, given.a), (new, given.b)):
        file.write_text(json.dumps(result.to_dict(), allow_nan=False))
    commands = [["gate", old, new], ["gate", old, new, "--format", "json"], ["gate", old, new, "--format", "markdown"]]
    commands += [["history", "add", old, "--file", history], ["history", "show", "--file", history]]
    commands += [["history", "show", "--file", history, "--format", form] for form in ("json", "csv", "markdown")]
    commands += [["history", "show", "--file", history, "--page", tmp_path / "history.html"]]
    commands += [["history", "export", "--file", history]]
    for command in commands:
        code = main([str(word) for word in command])
        out, err = capsys.readouterr()
        assert code in (0, 1, 2), err
        if "json" in command or "export" in command:
            for line in [out] if "json" in command else out.splitlines():
                check_view(json.loads(line, parse_constant=pytest.fail), few)
        else:
            check_text(out, few)
