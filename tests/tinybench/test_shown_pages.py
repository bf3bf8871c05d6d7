"""What the gate, the report of a study and a server's pages show, number by number, against the raw values."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind
from statsmodels.stats.proportion import proportion_confint

from tests.shown import is_shown, numbers, text_of
from tests.tinybench.servers import double, served
from tests.tinybench.test_report import BADLY, ROWS, WELL, studied
from tests.tinybench.test_shown_numbers import quantile_ends
from tinybench import suite
from tinybench.result import BenchmarkResult
from tinybench.shell.cli import main
from tinybench.support.basics.pages import Page


@pytest.mark.parametrize("slowdown", [1.2, 0.9])
def test_gate(slowdown: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, sessions = np.random.default_rng(3), np.repeat(range(12), 20).tolist()
    times = {name: size * rng.lognormal(0, 0.01, (12, 20)) for name, size in (("old", 0.01), ("new", 0.01 * slowdown))}
    for name, values in times.items():
        result = BenchmarkResult("latency", values.ravel().tolist(), {"sessions": sessions}, unit="s")
        (tmp_path / f"{name}.json").write_text(json.dumps(result.to_dict()))
    code = main(["gate", str(tmp_path / "old.json"), str(tmp_path / "new.json"), "--max-slowdown", "5%"])
    assert code == (slowdown > 1.05)
    old, new = (np.median(values, axis=1) for values in times.values())
    test = ttest_ind(np.log(new), np.log(old), equal_var=False)  # of geometric means over sessions
    shown = capsys.readouterr().out
    assert test.pvalue < 0.001
    limit, size, level, low, high, p, n_new, n_old = numbers(shown.replace("–", " "))
    assert (limit, level, p, n_new, n_old) == ("5", "95", "0.001", "12", "12")
    logs = [float(np.mean(np.log(new)) - np.mean(np.log(old))), *test.confidence_interval(0.95)]
    truths = [abs(100 * math.expm1(value)) for value in logs]
    for number, truth in zip([size, *sorted([low, high], key=float)], [truths[0], *sorted(truths[1:])], strict=True):
        assert is_shown(number, truth), (shown, truths)


MODELS = {"quick": (0.001, ROWS < 300), "right": (0.16, WELL), "poor": (0.2, BADLY)}


def test_report() -> None:
    """The page, as text: medians, quantiles, shares and their intervals, and ratios of common rounds."""
    results, rounds = studied(**MODELS), np.resize([1.0, 0.97, 1.03, 1.01, 0.99], 40)
    sections = {each.title: each._replace(pictures=[]) for each in suite.report_sections(results)}
    seconds, right = {n: s * rounds for n, (s, _) in MODELS.items()}, {n: r.mean() for n, (_, r) in MODELS.items()}

    def ms(text: str) -> float:
        number, unit = text.split()
        return float(number) * {"µs": 1e-3, "ms": 1.0, "s": 1e3}[unit]

    for row in sections["The models"].rows:
        name = row["model"]
        assert ms(row["latency"]) == pytest.approx(1e3 * np.median(seconds[name]), rel=2e-3)
        assert ms(row["95th percentile"]) == pytest.approx(1e3 * np.quantile(seconds[name], 0.95), rel=5e-3)
        assert is_shown(row["accuracy"].split()[0], 100 * right[name])
        beaten = any(
            MODELS[other][0] <= MODELS[name][0] and right[other] >= right[name] and other != name for other in MODELS
        )
        assert row["frontier"].startswith("yes") != beaten
    for row in sections["Latency"].rows:
        values = 1e3 * seconds[row["model"]]
        assert [ms(end) for end in row["interval"].split(" to ")] == pytest.approx(quantile_ends(values, 0.5), rel=6e-3)
        assert row["measurements"] == "40"
    for row in sections["Accuracy"].rows:
        share = right[row["model"]]
        truths = [100 * share, *(100 * end for end in proportion_confint(round(400 * share), 400, method="wilson"))]
        for shown, truth in zip([row["value"], *row["interval"].split(" to ")], truths, strict=True):
            assert is_shown(shown.split()[0], truth), (row, truths)
    for row in sections["Comparisons"].rows:
        one, other = row["pair"].split(" against ")
        if row["metric"] == "latency":
            assert is_shown(row["ratio or difference"].split()[1], MODELS[one][0] / MODELS[other][0])
        else:
            assert is_shown(row["ratio or difference"].split()[0], 100 * (right[one] - right[other]))
    best = {row["dimension"]: row for row in sections["Best in each dimension"].rows}
    assert (best["latency"]["best"], best["accuracy"]["best"]) == ("quick", "right")
    page = text_of(Page("Study", "sentence", {}, list(sections.values())).html())
    for section in sections.values():
        for row in section.rows:
            assert all(cell in page for cell in row.values()), "the page shows what the sections hold"


def is_rounded(text: str, truth: float) -> bool:
    """Return whether a number that stands before its interval is the truth, rounded as the interval's width asks."""
    shown, *ends = (float(each.replace(",", "")) for each in re.findall(r"[\d,.]+", text))
    return abs(shown - truth) <= 0.15 * (ends[1] - ends[0]) if ends else is_shown(text, truth)


def compare_study(page: str, folder: Path, accuracies: dict[str, float]) -> None:
    """Compare the table of a study's page with its rounds and files, and with accuracies that were computed otherwise.

    The model has 64 inputs and 10 outputs, and answers 8 rows: what it reads and writes is known.
    """
    moved, files = 64 * 10 + 10 + 8 * (64 + 10), {path.stem: path for path in (folder / "models").iterdir()}
    rounds: dict[str, list[float]] = {}
    with (folder / "hardware_tradeoffs_rounds.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rounds.setdefault(row["variant"], []).append(float(row["latency"]))
    lines = page.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("variant | latency"))
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[begin + 1 : begin + 1 + len(rounds)]]
    assert {name for name, *_ in rows} == rounds.keys()
    for name, latency, sklearn, fp32, accuracy, _, _, size, speed, *_ in rows:
        values = np.array(rounds[name])
        assert is_rounded(latency, 1e6 * np.median(values)), (name, latency)
        for gain, other in ((sklearn, "scikit-learn"), (fp32, "ONNX FP32")):
            if gain != "–":
                ratio = math.exp(float(np.median(np.log(np.array(rounds[other]) / values))))  # of the paired rounds
                assert is_rounded(gain, 1 / ratio if "times as long" in gain else ratio), (name, gain)
        if name in accuracies:
            assert is_shown(accuracy, accuracies[name])
        stem = name.lower().replace(", ", "-").replace(" ", "-")
        stem = "fp32" if name.startswith("ONNX FP32") else f"fp32-{stem}" if name.startswith("INT8") else stem
        assert is_shown(size, files[stem].stat().st_size / 1e3), (name, size)
        width = 8 if name == "scikit-learn" else 4  # bytes of a number
        assert is_shown(speed, 1e-9 * width * moved / np.median(values)), (name, speed)


def test_metrics_of_a_server(tmp_path: Path) -> None:
    """Each answer is counted once, by code, in the histogram's bucket of its time, and in a batch."""
    with served(double(tmp_path / "double.onnx"), "--max-batch", "1") as server:
        for number in range(5):
            server.predict([[number] * 4, [1] * 4])
        server.predict([[1]])
        shown = server.ask("GET", "/metrics")[2]
    counts = dict(re.findall(r'^tinybench_requests_total\{code="(\d+)"\} ([\d.]+)$', shown, re.MULTILINE))
    assert {code: float(n) for code, n in counts.items() if float(n)} == {"200": 5, "422": 1}
    heights = [float(n) for n in re.findall(r"^tinybench_request_seconds_bucket\{.*\} ([\d.]+)$", shown, re.MULTILINE)]
    assert heights == sorted(heights)
    assert heights[-1] == 5


def test_a_history_of_one_commit_claims_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tinybench.tools.history.sqlite_store import History

    with History(file := tmp_path / "history.db") as kept:
        values = BenchmarkResult("latency", [0.01, 0.02, 0.03], unit="s")
        kept.add(values, commit="c1", committed="2026-01-01T00:00", benchmark="it", machine="here")
    assert main(["history", "show", "--file", str(file), "--page", str(tmp_path / "page.html")]) == 0
    said = capsys.readouterr().out
    assert "it, 1 commit: too few to detect a change" in said
    page = text_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "no change of level" not in page.lower()
    assert "20.00" in page
