"""Faults by order: what is read, and what a faulty model does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.tinybench.servers import double, served
from tinybench.shell.cli import main
from tinybench.tools.serving.faults import Fault, FaultyModel, parse_fault, spoilt

ROWS = np.arange(400, dtype=np.float32).reshape(100, 4)


class DiedError(Exception):
    """Stands for the end of the process."""


def die(code: int) -> None:
    raise DiedError(code)


def faulty(folder: Path, text: str) -> FaultyModel:
    """Return a model that doubles rows of four, with a fault."""
    return FaultyModel(str(double(folder / "double.onnx")), 1, parse_fault(text), die)


def wrong_of(model: FaultyModel, rows: np.ndarray) -> list[bool]:
    """Return which answers are wrong, each asked alone."""
    told = [model.answer(row[None], [1])[0] for row in rows]
    return [json.loads(body)["outputs"][0] != (2 * row).tolist() for (_, body), row in zip(told, rows, strict=True)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("slow:20ms", Fault("slow", 0.02)),
        ("slow:1.5s:3", Fault("slow", 1.5, 3)),
        ("wrong:10%", Fault("wrong", 0.1)),
        ("wrong:0.1:7", Fault("wrong", 0.1, 7)),
        ("crash:5%", Fault("crash", 0.05)),
        ("crash:500", Fault("crash", 500)),
        ("drift:2000", Fault("drift", 2000)),
    ],
)
def test_a_fault_is_read(text: str, fault: Fault) -> None:
    found = parse_fault(text)
    assert found.amount == pytest.approx(fault.amount)
    assert (found.kind, found.seed) == (fault.kind, fault.seed)


@pytest.mark.parametrize(
    "text",
    ["", "slow", "slow:20", "slow:0ms", "slow:5%", "wrong:20ms", "wrong:150%", "wrong:12", "crash:3s", "drift:10%", "dim:3"],
)  # fmt: skip
def test_what_is_no_fault_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="write slow:20ms"):
        parse_fault(text)


def test_a_slow_model_sleeps_once_a_batch_and_answers_rightly(tmp_path: Path) -> None:
    slept: list[float] = []
    model = FaultyModel(str(double(tmp_path / "m.onnx")), 1, Fault("slow", 0.02), die, slept.append)
    assert len(model.answer(ROWS[:3], [1, 2])) == 2
    assert slept == [0.02]
    assert not any(wrong_of(model, ROWS))


def test_a_wrong_model_is_wrong_that_often_and_the_same_for_a_seed(tmp_path: Path) -> None:
    found = [wrong_of(faulty(tmp_path, f"wrong:10%:{seed}"), ROWS) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert 2 <= sum(found[0]) <= 25  # of 100 with 10 % each: outside by chance once in 1,000,000 seeds, about


def test_a_drifting_model_becomes_wrong_with_the_answers_it_gives(tmp_path: Path) -> None:
    model = faulty(tmp_path, "drift:300")
    tenths = [sum(wrong_of(model, ROWS)) for _ in range(4)]
    assert tenths[0] <= 15
    assert tenths[0] < tenths[1] < tenths[2]
    assert tenths[3] == 100


def test_a_crashing_model_dies_of_the_same_rows_again(tmp_path: Path) -> None:
    model, deadly = faulty(tmp_path, "crash:10%"), []
    for number, row in enumerate(ROWS):
        for _ in range(2):
            try:
                model.answer(row[None], [1])
            except DiedError:
                deadly.append(number)
    assert 2 <= len(set(deadly)) <= 25
    assert deadly == sorted(list(set(deadly)) * 2)


def test_a_model_can_crash_after_so_many_answers(tmp_path: Path) -> None:
    model = faulty(tmp_path, "crash:6")
    model.answer(ROWS[:6], [1, 1, 2, 2])
    model.answer(ROWS[:2], [1, 1])
    with pytest.raises(DiedError):
        model.answer(ROWS[:1], [1])


@pytest.mark.parametrize("answer", [[1.0, 2.0, 3.0], [0.25], 3, True, 2.5, float("inf")])
def test_a_spoilt_answer_is_another_of_the_same_form(answer: object) -> None:
    found = spoilt(answer)
    assert found != answer
    assert isinstance(found, list) == isinstance(answer, list)


def test_a_server_answers_wrongly_by_order(tmp_path: Path) -> None:
    with served(double(tmp_path / "double.onnx"), "--fault", "wrong:100%") as server:
        assert server.predict([[1, 2, 3, 4]]) == (200, [[8, 2, 4, 6]])


def test_the_command_refuses_what_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(double(tmp_path / "m.onnx")), "--fault", "slow:5"]) == 3
    assert "write slow:20ms" in capsys.readouterr().err
