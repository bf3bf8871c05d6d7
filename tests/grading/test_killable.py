"""Whatever a task does to its process costs that task only, and comes to an end."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from autograder import time_limits
from autograder.grading import killable
from autograder.grading.killable import Died, TooMuch, each, run


def work(what: str, place: str = "") -> object:
    """Do what is said."""
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "die once" and not Path(place).exists():
        Path(place).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "stall":
        re.search("(a|a)*b", "a" * 200)
    if what == "memory":
        return len([bytearray(2**20) for _ in range(2**14)])
    if what == "size":
        return bytes(2**20)
    if what == "raise":
        raise ZeroDivisionError(what)
    return what.upper()


@pytest.mark.audit
@pytest.mark.slow
def test_each_ends_whatever_it_does(tmp_path: Path) -> None:
    words = ["a", "die", "stall", "b", "memory", "size", "raise", "die once", "c"]
    tasks = [(word, (word, str(tmp_path / "died"))) for word in words]
    started = time.monotonic()
    done = list(each(work, tasks, seconds=2, workers=2, memory=2**28, output=2**16))
    assert time.monotonic() - started < time_limits.wall(60)
    results = dict(done)
    assert sorted(results) == sorted(words) == sorted(key for key, _ in done)
    assert [results[word] for word in "abc"] == ["A", "B", "C"]
    assert results["die once"] == "DIE ONCE"
    assert {word: type(results[word]) for word in words if isinstance(results[word], Exception)} == {
        "die": Died, "stall": TooMuch, "memory": TooMuch, "size": TooMuch, "raise": ZeroDivisionError
    }  # fmt: skip


@pytest.mark.slow
def test_one_call_at_a_time_outlives_a_death(tmp_path: Path) -> None:
    assert run(work, "a", seconds=20) == "A"
    assert run(work, "die once", str(tmp_path / "died"), seconds=20) == "DIE ONCE"
    with pytest.raises(Died):
        run(work, "die", seconds=20)
    with pytest.raises(TooMuch, match="longer than 1 s"):
        run(work, "stall", seconds=1)
    assert run(work, "b", seconds=20) == "B"


def test_a_pool_that_cannot_start_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        active = False

        def schedule(self, *_: object, **__: object) -> None:
            raise RuntimeError("the pool is not active")

        def stop(self) -> None: ...
        def join(self) -> None: ...

    monkeypatch.setattr(killable, "_pool", lambda workers: Broken())
    with pytest.raises(OSError, match="no process for grading can be started"):
        list(each(work, [("a", ("a",))], seconds=1))
