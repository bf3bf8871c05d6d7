"""The report of a study: its one sentence, its warnings, its page; and studies that break off half-way."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinybench import suite
from tinybench.benchmark import Benchmark
from tinybench.energy import CpuTimeMeter
from tinybench.pareto import Requirements
from tinybench.result import BenchmarkResult
from tinybench.suite import BenchmarkSuite
from tinybench.support.basics import pages
from tinybench.support.reports import study_figures
from tinybench.support.reports.sections import pairs_section, study_warnings


def test_report_claims_only_what_it_has() -> None:
    """Nobody is beaten where all are on the frontier, one value is no dot, and 0 bytes mean that none were seen."""
    results: dict[str, dict[str, BenchmarkResult]] = {"latency": {}, "accuracy": {}, "memory": {}}
    for name, seconds, right in (("slow", 2.0, 90), ("quick", 1.0, 80)):
        results["latency"][name] = BenchmarkResult("latency", [seconds] * 9, unit="s")
        results["accuracy"][name] = graded(np.arange(100) < right)
        results["memory"][name] = BenchmarkResult("memory", [0.0] * 9, {"seen": False, "at_most": 4096}, unit="B")
    sections = {section.title: section for section in suite.report_sections(results)}
    assert "On the frontier of latency and accuracy: slow; quick." in sections["The models"].text
    assert "beaten by" not in str(sections["The models"].rows)
    assert "each dot is one measurement" in sections["Latency"].text
    assert "dot" not in sections["Accuracy"].text
    assert list(sections["Memory"].rows[0].values())[1:3] == ["not seen", "at most 4.1 kB"]
    assert "memory" not in [row["dimension"] for row in sections["Best in each dimension"].rows]
    assert "memory" not in [row["metric"] for row in sections["Comparisons"].rows]
    results["memory"]["slow"] = BenchmarkResult("memory", [9e6] * 9, unit="B")
    best = {row["dimension"]: row for row in suite.report_sections(results)[1].rows}["memory"]
    assert (best["best"], best["cannot be told apart from it"]) == ("slow", "quick (not seen)")
    results["memory"]["slow"] = results["memory"]["quick"]
    assert [row["memory_mb"] for row in suite.dashboard_rows(results)] == [None, None]
    assert "memory" not in suite.best_by_dimension(results)
    figure = study_figures.plot_metric("memory", results["memory"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["not seen", "not seen"]
    told = study_warnings(results, suite.comparison_rows(results), list(results))
    assert len(told) == 1
    assert told[0].startswith("The memory of slow; quick was not seen")


def graded(right: np.ndarray) -> BenchmarkResult:
    """An accuracy that knows on which rows it is right."""
    counts = {"correct": int(right.sum()), "total": len(right), "right": np.packbits(right).tobytes().hex()}
    return BenchmarkResult("accuracy", [float(right.mean())], counts)


def studied(**models: tuple[float, np.ndarray]) -> dict[str, dict[str, BenchmarkResult]]:
    """Results of models with so many seconds of latency in common rounds, right on these rows."""
    rounds = np.resize([1.0, 0.97, 1.03, 1.01, 0.99], 40)
    return {
        "latency": {name: timed(seconds * rounds) for name, (seconds, _) in models.items()},
        "accuracy": {name: graded(right) for name, (_, right) in models.items()},
    }


def timed(seconds: Any) -> BenchmarkResult:
    """A latency in common rounds."""
    return BenchmarkResult("latency", list(seconds), {"pairing": "x"}, unit="s")


ROWS = np.arange(400)
WELL, BADLY = ROWS < 380, ROWS < 300


@pytest.mark.parametrize(
    ("models", "limits", "said"),
    [
        (
            {"a": (0.001, WELL), "b": (0.16, WELL)},
            None,
            "Take a (1 ms, 95.0 %): none was measured to be faster or more accurate.",
        ),
        (
            {"a": (0.001, ROWS < 379), "b": (0.16, WELL)},
            None,
            "Take a (1 ms, 94.8 %): the fastest; b (160 ms, 95.0 %) may be more accurate by up to 1.4 points",
        ),
        (
            {"a": (0.001, BADLY), "b": (0.001, WELL)},
            None,
            "Take b (1 ms, 95.0 %): the most accurate; these rounds do not show that a",
        ),
        (
            {"a": (0.001, ROWS < 379), "b": (0.001, WELL)},
            None,
            "Take a (1 ms, 94.8 %): the fastest here, though not proven; b (1 ms, 95.0 %) may be",
        ),
        ({"a": (0.001, BADLY), "b": (0.16, WELL)}, None, "if accuracy decides, a (1 ms, 75 %) if latency"),
        ({"a": (0.001, BADLY), "b": (0.16, WELL)}, {"accuracy_min": 0.9}, "Take b. Of 2 models it alone meets"),
        ({"a": (0.001, BADLY), "b": (0.16, WELL)}, {"accuracy_min": 0.99}, "Take no model: of 2, none is known"),
        ({"a": (0.001, BADLY)}, {"memory_max_mb": 1.0}, "Take no model: of 1, none is known"),
    ],
)
def test_one_sentence_to_act_on(models: Any, limits: Any, said: str) -> None:
    assert said in suite.decision(studied(**models), Requirements(**limits) if limits else None)


def test_who_is_beaten_by_whom() -> None:
    results = studied(quick=(0.001, ROWS < 380), copy=(0.16, ROWS < 380), best=(0.01, ROWS < 399))
    points = {point["model"]: point for point in study_figures.tradeoff(results, "latency", "accuracy")}
    assert [(points[n]["on_frontier"], points[n]["probability"]) for n in points] == [(True, 1), (False, 0), (True, 1)]
    assert points["copy"]["beaten_by"] == ["quick, right on the same rows", "best"]


def test_seconds_are_called_cpu_time_and_not_energy() -> None:
    guess = BenchmarkResult("cpu_time", [2e-6, 3e-6], {"measured": False}, unit="s")
    figure = study_figures.plot_metric("energy", {"a": guess})
    assert figure.axes[0].get_xlabel() == "CPU time, in place of energy (µs), lower is better"
    assert study_figures.picture_of("benchmark_energy.png", figure, {"energy": {"a": guess}}).alt.startswith(
        "CPU time, in place of"
    )


def test_without_the_toolbox_p_values_are_corrected_by_bonferroni(monkeypatch: pytest.MonkeyPatch) -> None:
    base = np.random.default_rng(0).lognormal(0, 0.1, 30)
    times = {name: timed((base * by).tolist()) for name, by in (("a", 1.0), ("b", 1.2), ("c", 1.4))}
    for result in times.values():
        result.metadata["pairing"] = "one"
    by_holm = suite.comparison_rows({"latency": times})
    monkeypatch.setitem(sys.modules, "tinybench.toolbox", None)
    rows = suite.comparison_rows({"latency": times})
    assert [row["p_corrected"] for row in rows] == pytest.approx([min(1, 3 * row["p"]) for row in rows])
    assert [row["verdict"] for row in rows] == [row["verdict"] for row in by_holm] == ["faster"] * 3
    assert "Friedman" not in pairs_section(rows, {"latency": times}, {"latency": "latency"}).text
    bench = Benchmark(dict.fromkeys(times), progress=None)
    bench.results["latency"] = times
    assert [row["p_value"] for row in bench.compare_models()[1:]] == pytest.approx([2 * 2 / 2**30] * 2)


def test_one_test_of_all_models_in_the_same_rounds() -> None:
    three = studied(a=(0.001, WELL), b=(0.001, WELL), c=(0.002, WELL))
    sections = {section.title: section.text for section in suite.report_sections(three)}
    assert sections["Comparisons"].startswith("Latencies of all 3 models in the same rounds: p < 0.001 (Friedman)")
    three["latency"]["b"].metadata["pairing"] = "other rounds"
    assert "Friedman" not in {s.title: s.text for s in suite.report_sections(three)}["Comparisons"]


def test_a_busy_machine_is_said() -> None:
    results = studied(a=(0.001, ROWS < 380), b=(0.16, ROWS < 380))
    assert study_warnings(results, [], ["latency", "accuracy"]) == []
    results["latency"]["a"].metadata["system"] = {"load_average": [5.5, 1.0, 1.0], "cores": 2}
    results["latency"]["b"] = timed([1.0] * 20 + [3.0] * 20)
    told = study_warnings(results, suite.comparison_rows(results), ["latency", "accuracy", "memory"])
    expected = ["memory is not measured yet", "load of 5.5 on 2", "vary a lot", "depend"]
    for line, words in zip(told, expected, strict=True):
        assert words in line


def test_a_pair_that_the_medians_contradict_is_said() -> None:
    """A verdict from pairs of rounds against the order of both medians: rounds of two kinds can do that."""
    results = {"latency": {"a": timed([9.0] * 30), "b": timed([8.0] * 30)}}
    pairs = [{"metric": "latency", "model_a": "a", "model_b": "b", "verdict": "faster"}]
    assert any("say the opposite" in line for line in study_warnings(results, pairs, ["latency"]))
    assert not any("opposite" in s for s in study_warnings(results, [{**pairs[0], "verdict": "slower"}], []))


def small(folder: Path, **options: Any) -> BenchmarkSuite:
    given = {"models": {"double": lambda x: 2 * x}, "measurement_runs": 10, "batch_sizes": (1,), "progress": None}
    given |= {"meter": CpuTimeMeter(10.0), **options}
    return BenchmarkSuite(given.pop("models"), (np.eye(3), np.arange(3)), folder, **given)


def test_a_full_disk_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = small(tmp_path)

    def full(number: int) -> None:
        if broken.piece == "throughput":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"throughput\.json .No space left") as caught:
            broken.run_full_benchmark()
    assert caught.value.__notes__ == [
        f"kept in {tmp_path / 'measurements'}: latency-0, accuracy, latency-1; resume=True (--resume) goes on from there"
    ]
    assert not list((tmp_path / "measurements").glob(".*")), "no half file stays on a full disk"
    again = small(tmp_path)
    assert again.load()["latency"]["double"].count == 4
    assert "not complete: throughput, memory, energy is not measured" in again.generate_report()
    found = again.run_full_benchmark(resume=True)
    assert found["latency"]["double"].count == 10


@pytest.mark.parametrize("error", [ZeroDivisionError("in round 50"), KeyboardInterrupt()])
def test_a_model_that_fails_half_way_keeps_what_was_measured(tmp_path: Path, error: BaseException) -> None:
    """The complete rounds of the broken piece too, where the error carries them."""
    calls = 0

    def model(x: Any) -> Any:
        nonlocal calls
        calls += study.piece == "latency-2"
        if calls >= 50:
            raise error
        return x

    study = small(tmp_path, models={"breaks": model, "double": lambda x: 2 * x})
    with pytest.raises(type(error)) as caught:
        study.run_full_benchmark()
    told = caught.value.__notes__[-1]
    assert f"kept in {tmp_path / 'measurements'}: latency-0, accuracy, latency-1, throughput" in told
    error.__dict__.clear()
    calls = -(10**9)
    assert study.run_full_benchmark(resume=True)["latency"]["breaks"].count == 10


def test_rounds_that_an_error_carries_are_kept(tmp_path: Path) -> None:
    study = small(tmp_path)
    study.piece = "latency-1"
    said = study.kept({"double": BenchmarkResult("latency", [1.0, 2.0], unit="s")})
    assert "the complete rounds of latency-1 are in latency-1.incomplete.json" in said
    kept = json.loads((tmp_path / "measurements" / "latency-1.incomplete.json").read_text(encoding="utf-8"))
    assert BenchmarkResult.from_dict(kept["double"]).values == [1.0, 2.0]
    assert study.load() == {}


def test_a_page_of_ones_own() -> None:
    figure = study_figures.plot_metric("latency", studied(a=(0.001, ROWS < 380))["latency"])
    sections = [pages.Section("Table <1>", "Text & more.", [{"model": "<b>", "value": "1"}], ["placed"])]
    drawn = {name: pages.Picture(figure, f"what {name} shows") for name in ("first", "placed")}
    text = pages.Page("A <study>", "Take none & wait.", drawn, sections, ["Busy < machine."]).html()
    order = ["<h1>A &lt;study&gt;</h1>", "Take none &amp; wait.", "Busy &lt; machine.", 'alt="what first shows"']
    order += ["<h2>Table &lt;1&gt;</h2>", "&lt;b&gt;", 'alt="what placed shows"']
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert 'class="warnings"' not in pages.Page("A", "B", {}, []).html()
    written = pages.Page("A", "B", drawn, sections, ["Busy."]).markdown()
    assert written.index("**B**") < written.index("- Busy.") < written.index("(first)") < written.index("(placed)")
