"""Whole rollouts between real servers: resumed, interrupted, blind, and by the command."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from sklearn.linear_model import LogisticRegression

from tests.benchmarks.rollout import subject
from tests.tinybench.servers import double, served
from tinybench.onnx import to_onnx
from tinybench.rollout import STAGES, RolloutState
from tinybench.shell.cli import main
from tinybench.tools.rollout.engine import roll_out, run_rollout
from tinybench.tools.rollout.journal import EventLog
from tinybench.tools.rollout.plan import Checkpoint, Plan

QUICK: dict[str, Any] = {"fewest_users": 4, "fewest_pairs": 30, "fewest_blocks": 4, "every": 0.25, "rate": 150.0}
# a machine that stands still for a moment must not end these: patience for minutes, and answers may take as long
PATIENT: dict[str, Any] = {**QUICK, "patience": 400, "longest": 100.0, "timeout": 60.0, "bound": 50.0}

Pair = tuple[str, str, np.ndarray]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Give two servers of one model, and rows."""
    model, rows, _ = subject(tmp_path_factory.mktemp("pair"))
    with served(model) as old, served(model) as new:
        yield old.url, new.url, rows


def test_an_interrupted_rollout_goes_on_at_its_stage_with_its_evidence(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tinybench.tools.rollout.e_values.FALSE_ALARMS", 1e-7)  # the versions are equal
    *urls, rows = pair
    path, plan = tmp_path / "journal", Plan(**PATIENT, prometheus=False)

    def stop_at_20(look: Checkpoint) -> None:
        if look.share == 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_rollout(*urls, rows, None, plan, journal=EventLog(path), on_look=stop_at_20)
    lines = path.read_text().splitlines()
    assert json.loads(lines[-1])["state"] | {"stage": 0} == {
        "stage": 0, "status": "rolled back", "blind": 0, "why": "interrupted"
    }  # fmt: skip
    path.write_text("\n".join(lines[:-1]) + "\n")  # as if the machine had died instead
    before = json.loads(lines[-2])
    report = run_rollout(*urls, rows, None, plan, journal=EventLog(path))
    assert report.state.status == "promoted"
    assert report.looks[0].share == 0.2, "nobody who had the new version loses it meanwhile"
    first = json.loads(path.read_text().splitlines()[len(lines) - 1])
    counted = {tuple(row[:2]): row[3] for row in first["counts"]}
    for *key, _, both, _ in before["counts"]:
        assert counted[tuple(key)] >= both, "what was counted before is not lost"
    assert report.looks[-1].share == 1.0
    assert [look.share for look in report.looks] == sorted(look.share for look in report.looks)
    users = [tuple(pair) for line in path.read_text().splitlines() for pair in json.loads(line).get("counted", [])]
    assert len(users) == len(set(users)), "a user is counted once for a metric, also over an interruption"


def test_an_unfinished_rollout_is_taken_back_unless_it_is_resumed(pair: Pair, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    EventLog(path).write(RolloutState(stage=2), salt="a")
    model = tmp_path / "never-started.onnx"
    report = roll_out(model, model, pair[2], journal=path)
    assert (report.state.status, report.state.why) == ("rolled back", "interrupted")
    assert "taken back" in report.sentence
    with pytest.raises(ValueError, match="holds no unfinished rollout"):
        roll_out(model, model, pair[2], journal=path, resume=True)


@pytest.mark.needs("prometheus")
def test_without_prometheus_a_rollout_is_held_and_then_taken_back(pair: Pair) -> None:
    *urls, rows = pair

    def kill(look: Checkpoint) -> None:
        for process in psutil.Process().children(recursive=True):
            if process.name() == "prometheus":
                process.kill()

    plan = Plan(**{**PATIENT, "patience": 4, "fewest_users": 10**6}, prometheus=True)
    report = run_rollout(*urls, rows, None, plan, on_look=kill)
    assert (report.state.status, report.state.why, report.state.stage) == ("rolled back", "blind", 0)
    assert "Prometheus" in report.looks[-1].problem or "reading" in report.looks[-1].problem
    assert [look.state.status for look in report.looks[-4:-1]] == ["running"] * 3, "first it is held"


def test_too_little_traffic_is_no_reason_to_go_on(pair: Pair) -> None:
    *urls, rows = pair
    plan = Plan(**{**QUICK, "fewest_users": 10**6, "longest": 0.5, "patience": 2, "timeout": 60.0}, prometheus=False)
    report = run_rollout(*urls, rows, None, plan)
    assert (report.state.stage, report.state.why) == (0, "blind")


@pytest.fixture(scope="module")
def learners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Give servers of a model that learned from 40 digits and of one that learned from all, rows and labels."""
    folder = tmp_path_factory.mktemp("learners")
    good, rows, labels = subject(folder)
    seen, known = (np.asarray(each)[-40:] for each in (rows, labels))
    poor = to_onnx(LogisticRegression(max_iter=1000).fit(seen, known), seen[:1], folder / "poor.onnx")
    with served(poor) as worse, served(good) as better:
        yield worse.url, better.url, rows[:-40], labels[:-40]


FATES = {  # by whether labels are given and whether the new version is the better one
    (True, True): ("promoted", ""),
    (True, False): ("rolled back", "labels"),
    (False, True): ("rolled back", "differs"),
    (False, False): ("rolled back", "differs"),
}


@pytest.mark.parametrize(("labelled", "better"), FATES)
def test_labels_decide_over_a_version_that_answers_otherwise(
    learners: tuple[str, str, np.ndarray, np.ndarray], labelled: bool, better: bool
) -> None:
    poor, good, rows, labels = learners
    plan = Plan(**{**PATIENT, "fewest_pairs": 100, "rate": 200.0, "mirrored": 0.9}, label_delay=0.1, prometheus=False)
    urls = (poor, good) if better else (good, poor)
    report = run_rollout(*urls, rows, labels if labelled else None, plan)
    assert (report.state.status, report.state.why) == FATES[labelled, better]
    assert report.looks[-1].events["differs"][0] > 0, "a difference is reported, whatever decides"
    assert f"{report.differing} got one that differs" in report.sentence
    if not labelled:
        assert report.harmed == 0, "a different answer alone harms nobody"


@pytest.mark.parametrize("wrong", [{"rate": 0}, {"bound": -1}, {"mirrored": 1.5}, {"allowed": 0}])
def test_a_plan_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Plan(**wrong)  # type: ignore[arg-type]


def test_the_new_version_is_never_busier_than_the_old() -> None:
    plan = Plan()
    for stage, share in enumerate(STAGES):
        mirrored = plan.mirrored_at(stage)
        new, old = share + mirrored * (1 - share), 1 - share + mirrored * share
        assert new <= old + 1e-12
        assert plan.answers_at(stage) == pytest.approx(new / (new + old))


def test_the_command_rolls_a_version_back_that_answers_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, rows, labels = subject(tmp_path)
    new = Path(shutil.copy(old, tmp_path / "new.onnx"))
    np.savez(data := tmp_path / "digits.npz", X=rows, y=labels)
    journal = tmp_path / "journal"
    more = ["--data", str(data), "--journal", str(journal), "--patience", "400", "--no-prometheus"]
    assert main(["rollout", str(old), str(new), *more, "--fault", "crash:100%"]) == 1
    out = capsys.readouterr().out
    assert "5 % of the users\n" in out
    assert "rolled back at 5 % of the users by " in out
    assert "got a failed, late or newly wrong answer from the new version" in out
    assert EventLog(journal).state is not None
    assert not EventLog(journal).unfinished


def test_wrong_input_has_clear_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = double(tmp_path / "double.onnx")
    np.save(data := tmp_path / "rows.npy", np.ones((4, 4), np.float32))
    np.save(narrow := tmp_path / "narrow.npy", np.ones((4, 3), np.float32))
    np.savez(short := tmp_path / "short.npz", X=np.ones((4, 4)), y=np.ones(3))
    tries = {
        "not an .onnx file": [str(model), "new.joblib", "--data", str(data)],
        "no such file": [str(model), "gone.onnx", "--data", str(data)],
        "answers 422": [str(model), str(model), "--data", str(narrow), "--no-prometheus"],
        "4 rows and 3 labels": [str(model), str(model), "--data", str(short)],
        "holds no unfinished rollout": [str(model), str(model), "--data", str(data), "--resume"],
        "give a number above 0": [str(model), str(model), "--data", str(data), "--rate", "0"],
    }
    for words, arguments in tries.items():
        assert main(["rollout", *arguments]) == 3
        assert words in capsys.readouterr().err


def test_in_a_package_without_the_optional_notebook(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = double(tmp_path / "double.onnx")
    np.save(data := tmp_path / "rows.npy", np.ones((4, 4), np.float32))
    monkeypatch.setitem(sys.modules, "tinybench.rollout", None)
    for name in [name for name in sys.modules if name.startswith("tinybench.tools.rollout.")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["rollout", str(model), str(model), "--data", str(data)]) == 3
    assert "the optional 16_rollout" in capsys.readouterr().err
