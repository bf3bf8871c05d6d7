"""`tinybench serve --reference`: what stands on /metrics, what it refuses, and that requests go on without it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.benchmarks.drift_digits import gauges
from tests.tinybench.servers import WIDTH, Served, double, served
from tinybench.course.lessons.m16_dependence import autoregressive
from tinybench.shell.cli import WRONG, main
from tinybench.tools.drifting import Reference
from tinybench.tools.serving.drift_monitor import BACKLOG, LABELS, Drift, Looker, reference_for
from tinybench.tools.serving.model_worker import Facts

ROWS = np.random.default_rng(0).normal(size=(500, WIDTH)).astype(np.float32)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    np.savez(tmp_path / "reference.npz", X=ROWS)
    with served(double(tmp_path / "double.onnx"), "--reference", str(tmp_path / "reference.npz")) as server:
        yield server


def test_drift_stands_on_the_metrics(server: Served) -> None:
    """Labels of this model are the place of the largest number; the reference got its own from the model."""
    calm = np.random.default_rng(1).normal(size=(80, WIDTH))
    for rows in np.split(calm, 20):
        assert server.predict(rows.tolist())[0] == 200
    found = gauges(server, 80)
    text = server.ask("GET", "/metrics")[2]
    for label, count in zip(*np.unique(calm.argmax(axis=1), return_counts=True), strict=True):
        assert f'tinybench_predictions_total{{label="{label}"}} {float(count)}' in text
    assert found["tinybench_drift_rows_total"] == 80
    assert found["tinybench_drift_alarminputs"] == found["tinybench_drift_alarmpredictions"] == 0
    assert 0 < found["tinybench_drift_evidenceinputs"] < 100
    assert found["tinybench_drift_psiinputs"] > 0
    assert server.predict((calm + np.array([0, 0, 0, 9])).tolist())[0] == 200
    found = gauges(server, 160)
    assert found["tinybench_drift_alarminputs"] == found["tinybench_drift_alarmpredictions"] == 1
    assert found["tinybench_drift_skipped_total"] == 0


def test_one_row_of_each_user_is_compared(server: Served) -> None:
    """Each of 60 users sends the same row five times: with X-User 60 rows count, and without it all 300, and ring."""
    rows = np.random.default_rng(2).normal(size=(60, WIDTH))
    for number, row in enumerate(rows.tolist()):
        for _ in range(5):
            assert server.predict([row], X_User=f"user {number}")[0] == 200
    found = gauges(server, 300)
    assert (found["tinybench_drift_compared_total"], found["tinybench_drift_spacing"]) == (60, 1)
    assert found["tinybench_drift_alarminputs"] == found["tinybench_drift_alarmpredictions"] == 0
    assert server.predict([row], X_User="x" * 129) == (422, "X-User must be at most 128 printable ASCII characters")
    for row in rows.tolist():
        assert server.predict([row] * 5)[0] == 200
    found = gauges(server, 600)
    assert found["tinybench_drift_compared_total"] == 360
    assert found["tinybench_drift_alarminputs"] == 1


def test_the_server_spaces_rows_as_the_reference_demands_and_names_what_moved(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = np.column_stack([autoregressive(0.5, 4000, rng) for _ in range(WIDTH)])
    looker = Looker(Reference.of(rows[:2000], names=["a", "b", "c", "d"]))
    spacing = looker.reference.spacing
    rows[3000:, 2] += 2
    for begin in range(2000, 4000, 100):
        part = rows[begin : begin + 100]
        found = looker.look(part, bodies([0] * len(part)))
        assert not found.alarm["inputs"] or begin >= 3000
    assert 2000 / (2 * spacing) < found.compared < 2000 / spacing
    assert spacing > 1
    assert found.alarm["inputs"]
    assert next(iter(found.features)) == "c"
    assert len(found.features) == 3


def test_a_reference_that_depends_on_itself_too_much_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "slow.npz", X=autoregressive(0.99, 500, np.random.default_rng(4))[:, None] * np.ones(WIDTH))
    model = str(double(tmp_path / "double.onnx"))
    assert main(["serve", model, "--port", "0", "--reference", str(tmp_path / "slow.npz")]) == WRONG
    assert (
        "the rows cannot be a reference for drift: 500 values depend on one another so much" in capsys.readouterr().err
    )


def test_a_reference_that_names_users_compares_only_rows_of_users(tmp_path: Path) -> None:
    np.savez(tmp_path / "users.npz", X=np.repeat(ROWS, 2, axis=0), users=np.repeat(np.arange(len(ROWS)), 2))
    looker = Looker(Reference.load(tmp_path / "users.npz"))
    assert looker.reference.rows == 400
    assert looker.look(ROWS[:4], bodies([1] * 4)).compared == 0
    found = looker.look(ROWS[:4], bodies([1] * 4), ["a", "a", None, "b"])
    assert (found.rows, found.compared) == (8, 2)
    assert found.psi["inputs"] > 0


def test_refused_requests_are_not_watched(server: Served) -> None:
    assert server.predict([[1, 2]])[0] == 422
    assert server.predict([[1, 2, 3, 4]])[0] == 200
    assert gauges(server, 1)["tinybench_drift_rows_total"] == 1


def test_requests_go_on_when_the_process_that_looks_is_killed(tmp_path: Path) -> None:
    Reference.of(ROWS).save(tmp_path / "kept.json")
    with served(double(tmp_path / "double.onnx"), "--reference", str(tmp_path / "kept.json")) as server:
        assert server.predict(ROWS[:3].tolist())[0] == 200
        gauges(server, 3)
        [looking] = [p for p in server.workers() if "spawn_main" in " ".join(p.cmdline())]
        looking.kill()
        psutil.wait_procs([looking])
        while "\ntinybench_drift_watching 1.0" in server.ask("GET", "/metrics")[2]:
            assert server.predict(ROWS[:3].tolist())[0] == 200
            time.sleep(0.05)
        assert server.predict(ROWS[:3].tolist())[0] == 200
        children = server.workers()
    assert not psutil.wait_procs(children, timeout=60)[1]


def test_what_does_not_fit_the_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(double(tmp_path / "double.onnx"))
    np.savez(tmp_path / "narrow.npz", X=ROWS[:, :3])
    for name, why in (("narrow.npz", "the model cannot answer the rows of"), ("missing.npz", "no such file")):
        assert main(["serve", model, "--port", "0", "--reference", str(tmp_path / name)]) == WRONG
        assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("narrow.json", "has 3 numbers a row, and the model takes 4"),
        ("other.npz", "name the rows X"),
        ("no.json", "is no reference"),
    ],
)
def test_what_is_no_reference_for_the_model_is_said(tmp_path: Path, name: str, why: str) -> None:
    Reference.of(ROWS[:, :3]).save(tmp_path / "narrow.json")
    np.savez(tmp_path / "other.npz", rows=ROWS)
    (tmp_path / "no.json").write_text("{}")
    facts = Facts("float32", (WIDTH,), "")
    with pytest.raises(ValueError, match=why):
        asyncio.run(reference_for(tmp_path / name, None, facts))  # type: ignore[arg-type]  # the model is not asked


def bodies(labels: list[int]) -> list[bytes]:
    return [json.dumps({"outputs": [label]}).encode() for label in labels]


def test_labels_without_end_are_counted_as_others() -> None:
    looker = Looker(Reference.of(ROWS))
    found = looker.look(None, bodies(list(range(LABELS + 50))))
    assert (len(found.labels), found.labels["other"], found.rows) == (LABELS + 1, 50, 0)
    assert sum(found.labels.values()) == LABELS + 50
    assert looker.look(ROWS[:2], [b'{"outputs": [[1, 2], [3]]}']).labels["1"] == 2


def test_rows_that_come_too_fast_are_left_out_and_their_answers_counted() -> None:
    drift = Drift(Reference.of(ROWS))
    try:
        for _ in range(BACKLOG // 100 + 1):
            drift.note(np.tile(ROWS[:100], (1, 1)), json.dumps({"outputs": [1] * 100}).encode())
        while drift.noted or drift.looking:
            drift.tick()
            time.sleep(0.01)
        assert drift.found.labels == {"1": BACKLOG + 100}
        assert drift.skipped + drift.found.rows == BACKLOG + 100
        assert drift.skipped >= BACKLOG // 2
    finally:
        drift.close()
