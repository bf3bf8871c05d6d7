"""Every hostile entry is refused with its reason, quickly, and without filling the server's memory."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from autograder import time_limits
from autograder.leaderboard.entry import check_process, validate
from autograder.leaderboard.entry.validate import EntryRefused, Facts, check
from autograder.leaderboard.referee.referee import Referee
from autograder.leaderboard.settings import EntryLimits
from tests.attacks.onnx.hostile import FILES, MEASURED
from tests.leaderboard.boards import dense, small_olympics, trained
from tests.quick import within


def test_there_are_enough() -> None:
    assert len(FILES) + len(MEASURED) >= 25


@pytest.mark.parametrize("name", FILES)
def test_refused_by_the_check(name: str) -> None:
    build, reason = FILES[name]
    data = build()

    def refused() -> None:
        with pytest.raises(EntryRefused, match=reason):
            check(data)

    within(1, refused)


def test_a_file_that_the_check_itself_fails_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(validate, "_check_signature", lambda graph: 1 / 0)
    with caplog.at_level(logging.ERROR), pytest.raises(EntryRefused, match="tell your instructor"):
        check(dense())
    assert "ZeroDivisionError" in caplog.text


def spin(data: bytes, limits: EntryLimits) -> Facts:
    while True:
        pass


def crash(data: bytes, limits: EntryLimits) -> Facts:
    os.abort()


def hoard(data: bytes, limits: EntryLimits) -> Facts:
    raise AssertionError(len(bytes(2**33)))


@pytest.mark.parametrize("reader", [spin, crash, hoard])
def test_a_reader_that_hangs_or_breaks_costs_the_server_nothing(
    reader: Callable[[bytes, EntryLimits], Facts], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"from tests.attacks.onnx import test_hostile as t; t.check_process.answer_questions(t.{reader.__name__})"
    monkeypatch.setattr(check_process, "COMMAND", [sys.executable, "-c", words])
    monkeypatch.setattr(check_process, "_idle", [])
    mine, start = time.thread_time(), time.monotonic()
    with pytest.raises(EntryRefused, match="breaks the reader"):
        check_process.check_in_process(dense(), EntryLimits())
    assert time.monotonic() - start < time_limits.wall(30)
    assert time.thread_time() - mine < time_limits.cpu(1)
    assert not check_process._idle


def test_in_a_process_of_its_own_the_check_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_process, "_idle", [])
    for _ in range(2):  # the second time by the same process
        assert check_process.check_in_process(dense(), EntryLimits()) == check(dense())
        with pytest.raises(EntryRefused, match="file is empty"):
            check_process.check_in_process(b"", EntryLimits())
        assert len(check_process._idle) == 1
    check_process._idle[0].close()


PEAK = """
import resource
from autograder.leaderboard.entry.validate import EntryRefused, check
from tests.attacks.onnx.hostile import FILES

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

files = [build() for build, _ in FILES.values()]
before = peak()
for data in files:
    try:
        check(data)
    except EntryRefused:
        pass
print(peak() - before)
"""


def test_memory_stays_flat() -> None:
    # A file of 8 MB of empty nodes alone would take 600 MB, parsed.
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100


@pytest.fixture(scope="module")
def referee() -> Referee:
    limits = EntryLimits(start_seconds=2, call_seconds=0.25)
    return Referee(small_olympics(limits=limits), trained(), seed=1)


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize("name", MEASURED)
def test_refused_by_the_referee(referee: Referee, name: str) -> None:
    build, reason = MEASURED[name]
    data = build()
    check(data)
    start = time.monotonic()
    with pytest.raises(EntryRefused) as refused:
        referee.measure(data)
    assert re.search(reason, str(refused.value)), refused.value
    assert time.monotonic() - start < time_limits.wall(60)
