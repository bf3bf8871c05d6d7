"""The `tinybench` command as a user meets it: models in files, tables on the screen, exit codes for machines."""

from __future__ import annotations

import csv
import errno
import importlib
import io
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.shown import text_of
from tests.tinybench.test_shown_pages import compare_study
from tinybench.benchmark import system_info
from tinybench.result import BenchmarkResult
from tinybench.shell.cli import OK, REGRESSION, UNDECIDED, WRONG, main

BRIEF = ["--seconds", "0.5", "--seed", "1"]


ZOO = """import asyncio, time
def snail(): return lambda x: time.sleep(0.4)
def fails():
    calls = iter(range(10**9))
    def model(x):
        time.sleep(1e-3)
        if next(calls) > 400: raise ZeroDivisionError("weights")
    return model
def stopped():
    calls = iter(range(10**9))
    def model(x):
        time.sleep(1e-3)
        if next(calls) > 400: raise KeyboardInterrupt
    return model
async def answer(x): ...
def later(): return answer
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models, data, and things that are neither."""
    from skl2onnx import to_onnx
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier

    folder = tmp_path_factory.mktemp("models")
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    models = {"logistic": LogisticRegression(max_iter=200), "forest": RandomForestClassifier(100, random_state=0)}
    for name, model in models.items():
        converted = to_onnx(model.fit(X[:800], y[:800]), X[:1], options={"zipmap": False})
        (folder / f"{name}.onnx").write_bytes(converted.SerializeToString())
    np.savez(folder / "digits.npz", X=X[800:], y=y[800:])
    np.savez(folder / "unnamed.npz", X[800:])
    arrays = {"rows": X[800:], "wide": np.zeros((3, 65), np.float32), "objects": np.array([{}], object), "empty": X[:0]}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    for name, text in {
        "broken.onnx": "no model",
        "other.json": '{"a": 1}',
        "broken.npz": "PK\x03\x04 no archive",
        "zoo.py": ZOO + "slow = lambda: lambda x: time.sleep(2e-4)\nquick = lambda: lambda x: time.sleep(1e-4)\n",
        "typo.yaml": "latency_p59_ms: 1\n",
        "requirements.yaml": "latency_p95_ms: 1000\naccuracy_min: 0.93\n",
    }.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(autouse=True)
def _in_folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_compare_as_table(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "logistic.onnx", "forest.onnx", "--data", "digits.npz", "--batch", "64", "--seconds", "1"]
    assert main(command) == OK
    caption, _, head, first, second = capsys.readouterr().out.splitlines()
    assert "shuffled rounds" in caption
    assert f"{system_info()['cpu']}, " in caption  # on which machine
    assert [line.split()[0] for line in (head, first, second)] == ["model", "logistic", "forest"]
    assert "slower" in second


@pytest.mark.parametrize("form", ["json", "csv", "markdown"])
def test_compare_in_other_forms(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "logistic.onnx", "forest.onnx", "--data", "rows.npy", "--format", form, *BRIEF]) == OK
    text = capsys.readouterr().out
    if form == "json":
        results = {name: BenchmarkResult.from_dict(data) for name, data in json.loads(text).items()}
        assert list(results) == ["logistic", "forest"]
        assert results["forest"].metadata["system"]["cpu"]
    elif form == "csv":
        assert [row["model"] for row in csv.DictReader(io.StringIO(text))] == ["logistic", "forest"]
    else:
        assert text.startswith("| model | median")
        assert len(text.splitlines()) == 4


def test_the_time_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "zoo:snail", "zoo:slow", "--data", "rows.npy", "--seconds", "2", "--format", "json"]
    began = time.perf_counter()
    assert main(command) == OK
    results = {name: BenchmarkResult.from_dict(data) for name, data in json.loads(capsys.readouterr().out).items()}
    measured = sum(sum(result.values) + result.metadata["warmup"]["seconds"] for result in results.values())
    assert measured < 2.4 + 0.4
    assert time.perf_counter() - began < 60
    assert 1 <= results["zoo:snail"].count <= 4


@pytest.mark.parametrize(("model", "code"), [("zoo:fails", WRONG), ("zoo:stopped", 130)])
@pytest.mark.parametrize("command", ["compare zoo:slow", "measure"])
def test_what_was_measured_before_an_error_is_kept(
    command: str, model: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], files: Path
) -> None:
    file = tmp_path / "rounds.json"
    arguments = [*command.split(), model, "--data", str(files / "rows.npy"), "--seconds", "60"]
    assert main([*arguments, "--save", str(file)]) == code
    shown = capsys.readouterr()
    assert "interrupted by" in shown.out
    assert f"complete rounds are in {file}" in shown.err
    results = json.loads(file.read_text())["results"]
    assert all("interrupted" in result["metadata"] for result in results.values())
    assert len({len(result["values"]) for result in results.values()}) == 1


def test_rounds_without_a_file_go_to_the_folder(
    tmp_path: Path, files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(files)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "zoo:slow", "zoo:fails", "--data", str(files / "rows.npy"), "--seconds", "60"]) == WRONG
    [file] = tmp_path.iterdir()
    assert f"complete rounds are in {file.name}" in capsys.readouterr().err


def test_a_full_disk_loses_nothing(
    tmp_path: Path, files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old.json"
    old.write_text("{}")
    command = ["compare", "zoo:slow", "zoo:quick", "--data", "rows.npy", "--save", str(old), *BRIEF]
    opened = Path.open

    def full(room: Path | None) -> None:
        def open_file(path: Path, mode: str = "r", *args: Any, **how: Any) -> Any:
            if "r" not in mode and (room is None or path.parent != room):
                raise OSError(errno.ENOSPC, "No space left on device")
            return opened(path, mode, *args, **how)

        monkeypatch.setattr(Path, "open", open_file)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(elsewhere))
    full(elsewhere)
    assert main(command) == WRONG
    shown = capsys.readouterr()
    assert "speed" in shown.out
    assert f"cannot write {old} (No space left on device); " in shown.err
    [file] = elsewhere.iterdir()
    assert str(file) in shown.err
    assert list(json.loads(file.read_text())["results"]) == ["zoo:slow", "zoo:quick"]
    full(None)
    assert main(command) == WRONG
    shown = capsys.readouterr()
    assert "above, as JSON" in shown.err
    assert list(json.loads(shown.out.splitlines()[-1])) == ["zoo:slow", "zoo:quick"]
    assert old.read_text() == "{}", "what stood there before is still there"


def test_compare_functions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "zoo:slow", "zoo:quick", "--data", "rows.npy", "--margin", "2%", "--seconds", "2"]) == OK
    assert "faster" in capsys.readouterr().out.splitlines()[-1]


def test_measure_saves_for_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "baseline.json"
    command = ["measure", "logistic.onnx", "--data", "rows.npy", "--save", str(file), "--seconds", "2", "--seed", "1"]
    assert main(command) == OK
    lines = capsys.readouterr().out.splitlines()
    assert re.search(r"median of \d+ rounds over", lines[0])
    assert [line.split()[0] for line in lines[3:]] == ["median", "p90", "p95", "p99"]
    assert main(["gate", str(file), str(file), "--max-slowdown", "90%"]) == UNDECIDED
    assert "several sessions" in capsys.readouterr().out


def saved(path: Path, factor: float, scatter: float = 0.01, **more: object) -> str:
    rng = np.random.default_rng(int(factor * 100))
    values = [float(v) for v in 0.001 * factor * rng.lognormal(0, scatter, 30)]
    path.write_text(json.dumps(BenchmarkResult("latency", values, dict(more), unit="s").to_dict()))
    return str(path)


def test_gate_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = saved(tmp_path / "base.json", 1.0)
    assert main(["gate", base, saved(tmp_path / "same.json", 1.001), "--max-slowdown", "5%"]) == OK
    assert main(["gate", base, saved(tmp_path / "slow.json", 1.2), "--max-slowdown", "5%"]) == REGRESSION
    assert main(["gate", base, saved(tmp_path / "wild.json", 1.05, 0.5), "--max-slowdown", "0.05"]) == UNDECIDED
    assert "cannot tell: needs" in capsys.readouterr().out
    assert main(["gate", base, str(tmp_path / "slow.json"), "--format", "json"]) == REGRESSION
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "fails"
    assert answer["slowdown"] == pytest.approx(0.2, abs=0.02)


def test_gate_refuses_other_conditions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = saved(tmp_path / "base.json", 1.0, input_shape=[1, 64])
    other = saved(tmp_path / "other.json", 1.0, input_shape=[8, 64])
    assert main(["gate", base, other]) == WRONG
    assert "shape differs" in capsys.readouterr().err
    assert main(["gate", base, other, "--max-slowdown", "20%", "--allow", "shape"]) == OK


def test_run_writes_the_study_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "study"
    command = ["run", "logistic.onnx", "forest.onnx", "--data", "digits.npz", "--out", str(out), "--rounds", "6"]
    assert main([*command, "--requirements", "requirements.yaml"]) == OK
    report = capsys.readouterr().out
    assert "## Requirements" in report
    assert "Met by forest." in report
    unsure = "cannot tell (latency_p95_ms cannot tell; accuracy_min cannot tell)"  # six rounds, and close to the limit
    assert f"forest, by the intervals of its results: {unsure}" in report
    pieces = {path.name: path.stat().st_mtime_ns for path in (out / "measurements").iterdir()}
    (out / "measurements" / "memory.json").unlink()
    assert main([*command, "--resume"]) == OK
    after = {path.name: path.stat().st_mtime_ns for path in (out / "measurements").iterdir()}
    assert {name for name in pieces if pieces[name] != after[name]} == {"memory.json", "plan.json"}
    assert main(["run", "logistic.onnx", "--data", "digits.npz", "--out", str(out), "--resume"]) == WRONG
    assert "another study" in capsys.readouterr().err


@pytest.mark.slow
def test_study(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "from sklearn.linear_model import LogisticRegression\nfrom sklearn.datasets import load_digits\n\ndef model():\n    X, y = load_digits(return_X_y=True)\n    return LogisticRegression(max_iter=200).fit(X[:800] / 16, y[:800])\n"
    (files / "linear.py").write_text(source)
    out = tmp_path / "hardware"
    command = ["study", "linear:model", "--data", "digits.npz", "--out", str(out), "--rounds", "6", "--batches", "8"]
    assert main([*command, "--requirements", "accuracy_min: 0.999"]) == OK
    text = capsys.readouterr().out
    assert "none meets the requirements: nearest is" in text.splitlines()[0]
    assert "INT8 dynamic" in text
    assert {"hardware_tradeoffs.csv", "hardware_tradeoffs_summary.json"} <= {path.name for path in out.iterdir()}
    page = (out / "report.html").read_text(encoding="utf-8")
    for part in ("short by", "<img alt=", "ONNX FP32, optimisation off", "clock source", "What to ship"):
        assert part in page, part
    model = importlib.import_module("linear").model()
    with np.load("digits.npz") as data:
        right = model.predict(data["X"]) == data["y"]
    right = right[len(right) // 4 :]  # the first quarter calibrates
    compare_study(text_of(page), out, {"scikit-learn": float(np.mean(right))})


@pytest.mark.slow
def test_study_without_a_model_takes_one_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brief = ["--rounds", "6", "--batches", "8", "--variants", "NumPy", "INT8 static"]
    assert main(["study", "--out", str(tmp_path), *brief]) == OK
    assert "INT8 static" in capsys.readouterr().out


def test_a_model_saved_by_joblib(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    joblib.dump(LogisticRegression().fit(np.eye(64), np.arange(64) % 10), files / "saved.joblib")
    assert main(["compare", "saved.joblib", "logistic.onnx", "--data", "digits.npz", "--format", "csv", *BRIEF]) == OK
    assert "saved" in capsys.readouterr().out


def test_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["system"]) == OK
    assert json.loads(capsys.readouterr().out)["python"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compare logistic.onnx --data rows.npy", "two or more models"),
        ("compare logistic.onnx logistic.onnx --data rows.npy", "named twice"),
        ("compare nowhere.onnx logistic.onnx --data rows.npy", "nowhere.onnx: no such file"),
        ("compare broken.onnx logistic.onnx --data rows.npy", "broken.onnx does not load"),
        ("compare logistic forest --data rows.npy", "neither an .onnx or .joblib file nor module:function"),
        ("compare zoo:fast zoo:slow --data rows.npy", "fast"),
        ("compare nozoo:fast zoo:slow --data rows.npy", "nozoo"),
        ("measure logistic.onnx --data nowhere.npy", "nowhere.npy: no such file"),
        ("measure logistic.onnx --data objects.npy", "no .npy or .npz file of numbers"),
        ("measure logistic.onnx --data broken.npz", "no .npy or .npz file of numbers"),
        ("measure logistic.onnx --data unnamed.npz", "name the rows X"),
        ("measure logistic.onnx --data empty.npy", "holds no rows"),
        ("measure logistic.onnx --data rows.npy --batch 0", "--batch is 0"),
        ("measure logistic.onnx --data rows.npy --seconds -1", "seconds is"),
        ("compare zoo:later zoo:slow --data rows.npy", "measure lambda x: asyncio.run(model(x))"),
        ("measure logistic.onnx --data wide.npy", "Got: 65 Expected: 64"),
        ("run logistic.onnx --data rows.npy", "has no labels"),
        ("run logistic.onnx --data digits.npz --requirements typo.yaml", "did you mean 'latency_p95_ms'"),
        ("run logistic.onnx --data digits.npz --out /proc/nowhere", "choose another output_dir"),
        ("gate nowhere.json nowhere.json", "nowhere.json: no such file"),
        ("study zoo:slow --data rows.npy", "has no labels"),
        ("study zoo:slow", "on which data?"),
        ("study zoo:slow --batches 1 8 --rounds 6", "on which data?"),
        ("study --data digits.npz", "a model of yours"),
        ("study nowhere.joblib --data digits.npz", "nowhere.joblib"),
        ("study nowhere.onnx --data digits.npz", "nowhere.onnx: no such file"),
        ("gate broken.onnx broken.onnx", "is not JSON"),
        ("gate other.json other.json", "other.json holds no result of tinybench: 'metric_name' is missing"),
        ("gate a.json b.json --max-slowdown quick", "write 5% or 0.05"),
        ("gate a.json b.json --max-slowdown 500%", "not from 0 up to 100 %"),
        ("compare logistic.onnx forest.onnx", "--data"),
        ("nonsense", "invalid choice"),
        ("", "examples:"),
    ],
)
def test_bad_input_is_named(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == WRONG
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_full_disk_is_named_with_its_folder(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")  # as NumPy and joblib do, without a file

    monkeypatch.setattr("tinybench.tools.study.int8_study.tradeoff_study", full)
    assert main(["study", "zoo:slow", "--data", "digits.npz", "--out", "full"]) == WRONG
    assert "cannot write below full (No space left on device); choose another --out" in capsys.readouterr().err


def test_results_that_hold_several_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "both.json"
    assert main(["compare", "zoo:slow", "zoo:quick", "--data", "rows.npy", "--save", str(file), *BRIEF]) == OK
    capsys.readouterr()
    assert main(["gate", str(file), str(file)]) == WRONG
    assert "choose with --model" in capsys.readouterr().err
    assert main(["gate", str(file), str(file), "--model", "zoo:fast"]) == WRONG
    assert "it has zoo:slow, zoo:quick" in capsys.readouterr().err
    assert main(["gate", str(file), str(file), "--model", "zoo:slow", "--max-slowdown", "50%"]) == OK


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == OK
    text = capsys.readouterr().out
    for word in ("compare", "gate", "examples:", "exit codes:", "X and, for accuracy, y"):
        assert word in text
    for command in ("compare", "measure", "gate", "run", "study", "system"):
        assert main([command, "--help"]) == OK


def test_as_a_process(files: Path) -> None:
    command = [sys.executable, "-m", "tinybench", "gate", "nowhere.json", "nowhere.json"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=files)
    assert run.returncode == WRONG
    assert run.stderr.startswith("tinybench: nowhere.json: no such file")
