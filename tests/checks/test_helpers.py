"""What the helpers of hidden checks accept, and what they say; also of objects in another process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from autograder.checks.check_helpers import CheckFailed, agrees, holds, number, refuses, same
from autograder.grading.session import may_lend
from autograder.sandbox.rpc.codec import Channel
from autograder.sandbox.rpc.endpoint import Endpoint


class Equal(str):
    """Text that calls itself equal to all."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


class Work:
    """The names of a student."""

    unit = "s"

    @staticmethod
    def mean(values: list[float], scale: float = 1.0) -> float:
        if not values:
            raise ValueError("values is empty")
        return scale * sum(values) / len(values)


@pytest.fixture(params=["here", "there"])
def student(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "here":
        yield Work
        return
    here, there = socket.socketpair()
    guest = Endpoint(Channel(there))
    guest.share(Work())
    thread = threading.Thread(target=guest.serve, daemon=True)
    thread.start()
    with here, there:
        yield Endpoint(Channel(here), may_lend=may_lend).root()
        here.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def says(call: Any, *args: Any, **more: Any) -> str:
    with pytest.raises(CheckFailed) as failure:
        call(*args, **more)
    return str(failure.value)


@pytest.mark.parametrize(
    ("value", "truth"),
    [(1 + 1e-12, 1), (np.float32(2), 2.0), (float("nan"), float("nan")), ((1, 2), [1, 2]), (np.eye(2), [[1, 0], [0, 1]]),
     (np.bool_(True), True), ({"a": [1, None]}, {"a": [1, None]}), (np.array(["a"]), ["a"])],
)  # fmt: skip
def test_same(value: Any, truth: Any) -> None:
    same(value, truth, "it")


@pytest.mark.parametrize(
    ("value", "truth", "said"),
    [(1.1, 1, "it: expected 1, got 1.1; why"), (1, True, "it: expected True, got 1; why"), ([1], [1, 2], "of length 2"),
     (Equal("a"), "b", "it: expected 'b', got 'a'; why"), ({"a": 1}, {"a": 1, "b": 2}, "expected the keys ['a', 'b']"),
     ({"a": [1, 3]}, {"a": [1, 2]}, "it['a'][1]: expected 2, got 3; why"), ("1", 1, "it should be a number, not str")],
)  # fmt: skip
def test_not_the_same(value: Any, truth: Any, said: str) -> None:
    assert said in says(same, value, truth, "it", "why")


def test_functions_and_attributes(student: Any) -> None:
    agrees(student.mean, np.mean, [[1.0, 2.0], [3.0]])
    refuses(student.mean, [], {"values": []}, mentions="empty")
    holds(student, {"unit": "s"}, "the work")
    scaled = partial(student.mean, scale=2)
    assert says(agrees, scaled, 7, [[1.0] * 9]) == "mean([1, 1, 1, 1, 1, 1, …], scale=2): expected 7, got 2"
    assert says(agrees, student.mean, 7, [[1.0]], "why", what="the mean") == "the mean: expected 7, got 1; why"
    assert says(refuses, student.mean, [1.0]) == "mean([1]) should raise ValueError, it raises nothing"
    assert says(refuses, student.mean, [], error=TypeError) == (
        "mean([]) should raise TypeError, not ValueError: values is empty"
    )
    assert "with 'full' in its message" in says(refuses, student.mean, [], mentions=["empty", "full"])
    assert says(holds, student, {"unit": "B"}, "the work") == "the work.unit: expected 'B', got 's'"
    assert says(holds, student, {"size": 3}, "the work") == "the work has no 'size'"
    assert "should be a number" in says(number, student, "it")
