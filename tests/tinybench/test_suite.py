"""A whole study on real models: killed and resumed, its tables, figures and report, read in a real browser."""

from __future__ import annotations

import csv
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from tinybench import suite
from tinybench.energy import CpuTimeMeter
from tinybench.pareto import Requirements
from tinybench.suite import BenchmarkSuite
from tinybench.support.metric_tests import is_detected

NAMES = ["logistic", "logistic ONNX", "forest", "forest ONNX", "bayes", "<b>&bold"]
TABLES = {
    "benchmark_runs.csv": "metric model run value unit measured",
    "benchmark_summary.csv": "metric model unit measured count mean std median min_val max_val value lower upper interval",
    "comparisons.csv": "metric model_a model_b unit ratio ratio_lower ratio_upper difference difference_lower "
    "difference_upper p cohens_d paired test verdict p_corrected",
    "benchmark_dashboard.csv": "model latency_ms latency_p95_ms throughput_qps accuracy memory_mb energy_mj energy_measured",
}


def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return (X / 16).astype(np.float32), y


@functools.cache
def real_models() -> dict[str, Any]:
    """Three scikit-learn models, two of them in ONNX as well, and one under an awkward name."""
    import onnxruntime
    from skl2onnx import to_onnx
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    X, y = digits()
    models = LogisticRegression(max_iter=200), RandomForestClassifier(10, random_state=0), GaussianNB()
    logistic, forest, bayes = (model.fit(X[:1200], y[:1200]) for model in models)

    def session(model: Any) -> Any:
        converted = to_onnx(model, X[:1], options={"zipmap": False})
        return onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])

    return dict(zip(NAMES, [logistic, session(logistic), forest, session(forest), bayes, bayes], strict=True))


def two_models() -> dict[str, Any]:
    """Two scikit-learn models that need no ONNX."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    X, y = digits()
    return {"logistic": LogisticRegression(max_iter=50).fit(X[:200], y[:200]), "bayes": GaussianNB().fit(X, y)}


def make(folder: Path | str, models: dict[str, Any] | None = None, **options: Any) -> BenchmarkSuite:
    X, y = digits()
    given = {"measurement_runs": 12, "batch_sizes": (1, 16), "meter": CpuTimeMeter(10.0), "progress": None}
    return BenchmarkSuite(models or real_models(), (X[1200:], y[1200:]), folder, **{**given, **options})


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkSuite:
    """A study of six models, with its report."""
    done = make(tmp_path_factory.mktemp("study"))
    done.run_full_benchmark()
    done.generate_report(Requirements(latency_p95_ms=60_000, accuracy_min=0.9))  # no machine is that busy
    return done


def rows_of(study: BenchmarkSuite, name: str) -> list[dict[str, str]]:
    with (study.output_dir / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_everything_is_measured(study: BenchmarkSuite) -> None:
    assert list(study.results) == ["latency", "throughput", "accuracy", "memory", "energy"]
    for by_model in study.results.values():
        assert list(by_model) == NAMES
    X, y = digits()
    for name in ("logistic", "forest", "bayes"):
        found = study.results["accuracy"][name].metadata["accuracy"]
        assert found == pytest.approx(study.models[name].score(X[1200:], y[1200:]))
    assert study.results["latency"]["bayes"].count == 12
    assert not study.results["energy"]["bayes"].measured


def test_tables_have_their_documented_columns(study: BenchmarkSuite) -> None:
    functions: dict[str, list[Any]] = {
        "benchmark_runs.csv": [suite.run_rows],
        "benchmark_summary.csv": [suite.summary_rows],
        "comparisons.csv": [suite.compare_pair, suite.comparison_rows],
        "benchmark_dashboard.csv": [suite.dashboard_rows],
    }
    for name, columns in TABLES.items():
        assert list(rows_of(study, name)[0]) == columns.split(), name
        assert name in (BenchmarkSuite.write_tables.__doc__ or "")
        documented = " ".join(function.__doc__ or "" for function in functions[name])
        for column in columns.split():
            known = re.sub("_(lower|upper)$", "", column) if name == "comparisons.csv" else column
            assert f"``{known}``" in documented, f"{column} of {name} is not documented"


def test_tables_agree_with_results(study: BenchmarkSuite) -> None:
    runs = rows_of(study, "benchmark_runs.csv")
    for metric, by_model in study.results.items():
        for name, result in by_model.items():
            mine = [float(row["value"]) for row in runs if (row["metric"], row["model"]) == (metric, name)]
            assert mine == result.values
    assert len(rows_of(study, "benchmark_summary.csv")) == 5 * len(NAMES)
    metrics = [row["metric"] for row in rows_of(study, "comparisons.csv")]
    assert [metrics.count(metric) for metric in ("latency", "throughput", "accuracy", "energy")] == [15] * 4
    best = json.loads((study.output_dir / "benchmark_summary.json").read_text(encoding="utf-8"))
    seen = {metric for metric, models in study.results.items() if any(map(is_detected, models.values()))}
    assert set(best) == seen >= {"latency", "throughput", "accuracy", "energy"}
    assert "bayes" not in [best["accuracy"]["model"], *best["accuracy"]["tied"]]
    assert "logistic ONNX" in [best["accuracy"]["model"], *best["accuracy"]["tied"]]
    assert json.loads((study.output_dir / "system.json").read_text(encoding="utf-8"))["cpu"]


def test_figures(study: BenchmarkSuite, tmp_path: Path) -> None:
    for name in [*study.results, "tradeoff"]:
        assert (study.output_dir / f"benchmark_{name}.png").read_bytes().startswith(b"\x89PNG")
    before = {path.name for path in study.output_dir.iterdir()}
    figures = study.plot_results(save_plots=False)
    assert set(figures) == set(study.results)
    assert "lower is better" in figures["latency"].axes[0].get_xlabel()
    assert figures["energy"].axes[0].get_xlabel().startswith("energy, estimated (mJ)")
    study.plot_pareto_frontier("latency", "throughput", save_plots=False)
    assert {path.name for path in study.output_dir.iterdir()} == before


def test_frontier(study: BenchmarkSuite) -> None:
    points = study.generate_pareto_frontier()
    assert [point["model"] for point in points] == NAMES
    assert any(point["on_frontier"] for point in points)
    assert all(0 <= point["probability"] <= 1 for point in points)
    with pytest.raises(ValueError, match="'speed' was not measured"):
        study.generate_pareto_frontier("speed")


def test_report_says_what_a_reader_needs(study: BenchmarkSuite) -> None:
    text = (study.output_dir / "report.md").read_text(encoding="utf-8")
    headings = re.findall("^## (.*)$", text, re.M)
    assert re.search(r"^\*\*Take .*\*\*$", text, re.M), "one sentence to act on"
    assert {"Requirements", "The models", "Best in each dimension", "Latency"} <= set(headings)
    assert {"Energy, estimated", "Comparisons", "Conditions"} <= set(headings)
    assert "bayes | no | accuracy_min is 0.9, the model has 0.8" in text
    assert "<b>&bold" in text
    for picture in re.findall(r"\]\((\S+)\)", text):
        assert (study.output_dir / picture).is_file()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_in_a_browser(
    study: BenchmarkSuite, browser: Browser, barriers: Callable[[Page], list[str]], scheme: Any
) -> None:
    page_file = study.output_dir / "report.html"
    text = page_file.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text), "the page must need no network"
    page = browser.new_page(color_scheme=scheme, viewport={"width": 900, "height": 900})
    asked: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: problems.append(message.text))
    page.goto(page_file.as_uri())
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert problems == []
    assert page.locator("th[scope=row]", has_text="<b>&bold").first.inner_text() == "<b>&bold"
    assert page.locator("img").count() == 6
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 300 && i.alt.length > 20)")
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "tables scroll, the page does not"
    page.locator("details").evaluate_all("all => all.forEach(d => d.open = true)")
    assert barriers(page) == []
    page.close()


KILLED = """
import sys
from tests.tinybench.test_suite import make, two_models
print("ready", flush=True)
make(sys.argv[1], two_models()).run_full_benchmark(resume=len(sys.argv) > 2)
"""


def test_killed_and_resumed(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    pieces = tmp_path / "measurements"
    with subprocess.Popen(command, env=environment, cwd=root) as process:
        deadline = time.monotonic() + 1200  # against hanging only
        while not (pieces / "latency-1.json").is_file():
            assert process.poll() is None, "the study ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    left = {path.name: path.read_bytes() for path in pieces.glob("[!.]*.json")}
    assert "energy.json" not in left
    for content in left.values():
        json.loads(content)
    half = make(tmp_path, two_models())
    found = half.load()
    assert found["latency"]["bayes"].count >= 3
    assert half.write_tables(), "what is there can be read and reported"
    half.generate_report()
    subprocess.run([*command, "resume"], env=environment, cwd=root, check=True)
    for name, content in left.items():
        assert (pieces / name).read_bytes() == content, f"{name} was measured again"
    whole = make(tmp_path, two_models()).load()
    assert list(whole) == ["latency", "throughput", "accuracy", "memory", "energy"]
    assert whole["latency"]["bayes"].count == 12
    assert whole["latency"]["bayes"].values[: found["latency"]["bayes"].count] == found["latency"]["bayes"].values


def test_resume_refuses_another_study(study: BenchmarkSuite, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(study.output_dir, folder)
    with pytest.raises(ValueError, match="seed was 0, is 3"):
        make(folder, seed=3).run_full_benchmark(resume=True)
    X, y = digits()
    models = {**study.models, "bayes": type(study.models["bayes"])().fit(X[:300], y[:300])}
    options: dict[str, Any] = {"measurement_runs": 12, "batch_sizes": (1, 16), "progress": None}
    other = BenchmarkSuite(models, study.datasets, folder, **options)
    with pytest.raises(ValueError, match="model bayes was GaussianNB"):
        other.run_full_benchmark(resume=True)


def test_a_second_run_keeps_the_first(tmp_path: Path) -> None:
    folder, data = tmp_path / "deep" / "study", (np.eye(3), np.arange(3))
    options: dict[str, Any] = {"measurement_runs": 6, "batch_sizes": (1,), "progress": None}
    for _ in range(3):
        small = BenchmarkSuite({"double": lambda x: 2 * x}, data, folder, meter=CpuTimeMeter(10.0), **options)
        small.run_full_benchmark()
    kept = sorted(path.name for path in folder.glob("measurements*"))
    assert kept == ["measurements", "measurements.1", "measurements.2"]


def test_bad_input(tmp_path: Path) -> None:
    data = (np.eye(3), np.arange(3))
    with pytest.raises(ValueError, match="no dataset"):
        BenchmarkSuite([abs], [], tmp_path)
    with pytest.raises(ValueError, match=r"lengths|labels"):
        BenchmarkSuite([abs], (np.eye(3), [0, 1]), tmp_path)
    with pytest.raises(ValueError, match="models is empty"):
        BenchmarkSuite([], data, tmp_path)
    with pytest.raises(OSError, match="choose another output_dir"):
        BenchmarkSuite([abs], data, "/proc/nowhere", progress=None).run_full_benchmark()
    with pytest.raises(ValueError, match=r"call run_full_benchmark\(\) first"):
        BenchmarkSuite([abs], data, tmp_path / "empty").generate_report()

    def broken(x: Any) -> Any:
        raise ZeroDivisionError("a model's own error")

    with pytest.raises(ZeroDivisionError):
        BenchmarkSuite([broken], data, tmp_path / "broken", progress=None).run_full_benchmark()


def test_requirements_that_cannot_be_judged(study: BenchmarkSuite) -> None:
    results = {metric: by_model for metric, by_model in study.results.items() if metric != "memory"}
    section = suite.report_sections(results, Requirements(memory_max_mb=1.0))[0]
    assert {row["meets them"] for row in section.rows} == {"cannot tell"}
    assert "measure it" in section.rows[0]["why not"]
