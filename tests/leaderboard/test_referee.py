"""The referee: real measurements in the sandbox, on a small scale."""

from __future__ import annotations

import io
import json
import math
import multiprocessing
import os
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from autograder import time_limits
from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import EntryRefused, check
from autograder.leaderboard.referee.host_lock import locked_host
from autograder.leaderboard.referee.referee import Referee, rerun_interval, unconfined
from autograder.leaderboard.settings import Effort
from autograder.sandbox import bubblewrap
from tests.leaderboard.boards import dense, model, small_olympics, trained
from tinybench.course.case_study_data import distorted

OLYMPICS = small_olympics(referee=Effort(processes=3, rounds=5, widest=1000))


@pytest.fixture(scope="module")
def referee() -> Referee:
    return Referee(OLYMPICS, trained(64), seed=1)


@pytest.mark.audit
@pytest.mark.needs("sandbox")
def test_the_baseline_against_itself(referee: Referee) -> None:
    seen: list[str] = []
    scores, evidence = referee.measure(trained(64), seen.append)
    ratio, lower, upper = scores["latency"]["ratio"]
    assert lower < ratio < upper
    assert ratio == pytest.approx(1, abs=0.3)
    assert scores["memory"]["ratio"][0] == pytest.approx(1, abs=0.1)
    assert scores["size"]["ratio"] == 1
    assert list(scores["memory"]["stages"]) == ["load", "first call", "second call", "steady"]
    assert len(evidence["latency"]) == 3
    elsewhere = "waiting for another measurement on this machine"  # such as of a test that runs at the same time
    assert [step for step in seen if step != elsewhere][:2] == ["waiting for the machine", "reading digits"]


@pytest.mark.needs("sandbox")
def test_a_smaller_network_is_faster_and_lighter(referee: Referee) -> None:
    scores, _ = referee.measure(trained(8))
    assert scores["latency"]["ratio"][2] < 0.9
    assert scores["memory"]["ratio"][2] < 1


def lookup_table(images: np.ndarray, labels: np.ndarray) -> bytes:
    """Return a model that knows the given digits by heart: the nearest stored one answers."""
    sharpness = 50.0
    keys = sharpness * images.T
    offset = -sharpness * (images**2).sum(axis=1) / 2
    answers = np.eye(10, dtype=np.float32)[labels]
    nodes = [
        helper.make_node("MatMul", ["digits", "keys"], ["products"]),
        helper.make_node("Add", ["products", "offset"], ["closeness"]),
        helper.make_node("Softmax", ["closeness"], ["nearest"]),
        helper.make_node("MatMul", ["nearest", "answers"], ["scores"]),
    ]
    arrays = {"keys": keys, "offset": offset, "answers": answers}
    constants = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    return bytes(model(nodes, constants).SerializeToString())


@pytest.mark.needs("sandbox")
def test_a_lookup_table_of_the_public_digits_is_seen_through(referee: Referee) -> None:
    data = lookup_table(*digits.public_split(OLYMPICS.task.public_rows))
    check(data)
    scores, _ = referee.measure(data)
    (public, rows, worth), (private, _, private_worth) = (scores["accuracy"][split] for split in ("public", "private"))
    assert public == rows
    assert 1 < worth <= rows  # one row for each original, as a table without a mistake does not show how they scatter
    assert 1 < private_worth <= rows
    assert private < 0.9 * rows


def test_splits_share_no_picture_and_seeds_make_fresh_ones() -> None:
    splits = digits.public_split(50), digits.private_split(50, 1), digits.private_split(50, 2)
    public, private, other = (split[0] for split in splits)
    pictures = {row.tobytes() for row in np.concatenate([public, private, other])}
    assert len(pictures) == 150
    assert np.array_equal(private, distorted(np.arange(1258, 1797, 2), 50, 1)[0])


def test_each_digit_has_the_label_of_its_original() -> None:
    from sklearn.datasets import load_digits

    truth = load_digits().target
    for labels, originals in [
        (digits.public_split(600)[1], digits.public_originals(600)),
        (digits.private_split(600, 3)[1], digits.private_originals(600, 3)),
    ]:
        assert np.array_equal(labels, truth[originals])
        assert set(np.unique(originals, return_counts=True)[1]) == {2, 3}


def test_the_sandbox_shows_no_labels_and_no_other_files(referee: Referee) -> None:
    asked: list[bytes] = []

    def listening(stdin: bytes, limits: bubblewrap.Limits) -> bubblewrap.Finished:
        asked.append(stdin)
        raise EntryRefused("enough")

    spy = Referee(OLYMPICS, trained(64), 1, listening)
    with pytest.raises(EntryRefused):
        spy.measure(trained(8))
    packed = np.load(io.BytesIO(asked[0]))
    assert set(packed.files) == {"rows", "entry", "baseline", "tiny", "question"}
    assert all("label" not in name for name in packed.files)


@pytest.mark.parametrize(
    ("finished", "reason"),
    [
        (bubblewrap.Finished(0, b"not json", b""), "broke down"),
        (bubblewrap.Finished(0, b"[1]", b""), "broke down"),
        (bubblewrap.Finished(0, b'{"labels": [1], "agreement": 1}', b""), "no sound answer"),
        (bubblewrap.Finished(139, b"", b""), "exit code 139"),
        (bubblewrap.Finished(134, b"", b"std::bad_alloc"), "more memory"),
        (bubblewrap.Finished(-9, b"", b"", "it ran longer than 5 s"), "stopped: it ran longer"),
    ],
)
def test_whatever_the_sandbox_says_becomes_a_reason(finished: bubblewrap.Finished, reason: str) -> None:
    broken = Referee(OLYMPICS, trained(64), 1, lambda stdin, limits: finished)
    with pytest.raises(EntryRefused, match=reason):
        broken.measure(trained(8))


def test_a_rehearsal_uses_the_public_digits_only() -> None:
    scores, _ = Referee(OLYMPICS, trained(64), None, unconfined).measure(trained(8))
    assert set(scores["accuracy"]) == {"public"}


class Program:
    """Stands for the measuring program: keeps what it is asked, and says what a test wants."""

    def __init__(self, **says: Any) -> None:
        self.says, self.asked = says, []  # type: ignore[var-annotated]

    def __call__(self, stdin: bytes, limits: bubblewrap.Limits) -> bubblewrap.Finished:
        packed = dict(np.load(io.BytesIO(stdin)))
        stage = json.loads(packed["question"].tobytes())["stage"]
        self.asked.append((stage, packed))
        usual = {
            "answers": {"labels": [0] * len(packed["rows"]), "agreement": 1.0},
            "latency": {"entry": [1.0], "baseline": [2.0], "repeated": 1.0},
            "memory": {"load": 10**6},
        }
        said = self.says.get(stage, lambda number: usual[stage])(sum(each == stage for each, _ in self.asked))
        return bubblewrap.Finished(0, json.dumps(said).encode(), b"")


def test_no_entry_can_know_the_digits_it_is_timed_and_weighed_with() -> None:
    program = Program()
    umpire = Referee(OLYMPICS, trained(64), 1, program)
    umpire.measure(trained(8))
    assert umpire.private is not None
    known = {row.tobytes() for split in (umpire.public, umpire.private) for row in split[0]}
    seen: dict[bytes, list[bytes]] = {}
    for stage, packed in program.asked:
        pictures = [row.tobytes() for row in packed["rows"]]
        assert known.isdisjoint(pictures) == (stage != "answers")
        if stage != "answers":
            seen.setdefault(packed["rows"].tobytes(), []).append(stage)
    # Entry and baseline are weighed with the same digits; every process has its own.
    assert sorted(seen.values()) == [["latency"]] * 3 + [["memory", "memory"]] * 3


def test_nothing_about_private_digits_is_told() -> None:
    secret = {"unfit": "it cannot be run: indices element out of data bounds, idx=4711"}
    program = Program(answers=lambda number: secret if number == 2 else {"labels": [0] * 128, "agreement": 1.0})
    with pytest.raises(EntryRefused) as refused:
        Referee(OLYMPICS, trained(64), 1, program).measure(trained(8))
    assert "4711" not in str(refused.value)
    assert "private" in str(refused.value)
    public = Program(answers=lambda number: secret)
    with pytest.raises(EntryRefused, match="idx=4711"):
        Referee(OLYMPICS, trained(64), 1, public).measure(trained(8))


@pytest.mark.parametrize("stage", ["latency", "memory"])
@pytest.mark.parametrize("always", [False, True])
def test_what_varies_too_much_is_measured_again_and_then_refused(stage: str, always: bool) -> None:
    def varying(number: int) -> dict[str, Any]:
        factor = 1 + number % 3 if always or number <= {"latency": 3, "memory": 6}[stage] else 1
        latency = {"entry": [factor], "baseline": [2.0], "repeated": 1.0}
        return latency if stage == "latency" else {"load": factor * 10**6}

    program = Program(**{stage: varying})
    umpire = Referee(small_olympics(referee=Effort(processes=3, rounds=5)), trained(64), 1, program)
    if always:
        with pytest.raises(EntryRefused, match=f"its {stage} varies too much"):
            umpire.measure(trained(8))
    else:
        umpire.measure(trained(8))
    assert sum(each == "latency" for each, _ in program.asked) == 6


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize("hidden", [24, 1600])
def test_the_weights_of_an_entry_are_seen_when_it_is_loaded(referee: Referee, hidden: int) -> None:
    data = dense(hidden)
    weights = 4 * check(data).weights
    assert weights < referee.measure_memory(data)["entry"]["load"] < 3 * weights + 2**18


def _hold(name: str, queue: multiprocessing.Queue[tuple[float, float]]) -> None:
    with locked_host(name=name):
        entered = time.monotonic()
        time.sleep(0.3)
        queue.put((entered, time.monotonic()))


def test_one_measurement_at_a_time() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [context.Process(target=_hold, args=(f"test-{os.getpid()}", queue)) for _ in range(3)]
    for process in processes:
        process.start()
    stays = sorted(queue.get(timeout=time_limits.wall(60)) for _ in processes)
    for process in processes:
        process.join()
    assert all(left <= entered for (_, left), (entered, _) in pairwise(stays))


def test_who_keeps_the_machine_is_said_and_stops_nobody_for_good() -> None:
    said: list[str] = []
    name = f"kept-{os.getpid()}"
    with locked_host(name=name), locked_host(said.append, name, patience=0.2):
        pass
    assert said[0] == "waiting for another measurement on this machine"


def test_a_rerun_falls_into_the_interval_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        first, second = (rerun_interval(np.exp(rng.normal(0, 0.05, 6)).tolist(), 0.001) for _ in range(2))
        inside += first[1] <= second[0] <= first[2]
    assert 0.93 < inside / 2000 < 0.97


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=20))
def test_the_interval_holds_its_ratio(ratios: list[float]) -> None:
    ratio, lower, upper = rerun_interval(ratios, 0.01)
    assert lower <= ratio / 1.0099 < ratio * 1.0099 <= upper
    assert math.isclose(ratio / lower, upper / ratio, rel_tol=1e-9)
