"""Every hostile entry is refused with its reason, quickly, and without filling the server's memory."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from autograder.leaderboard.entry import Refused, check
from autograder.leaderboard.referee import Referee
from tests.attacks.onnx.hostile import FILES, MEASURED
from tests.leaderboard.boards import small_olympics, trained


def test_there_are_enough() -> None:
    assert len(FILES) + len(MEASURED) >= 25


@pytest.mark.parametrize("name", FILES)
def test_refused_at_the_door(name: str) -> None:
    build, reason = FILES[name]
    data = build()
    start = time.thread_time()
    with pytest.raises(Refused, match=reason):
        check(data)
    assert time.thread_time() - start < 1


PEAK = """
import resource
from autograder.leaderboard.entry import Refused, check
from tests.attacks.onnx.hostile import FILES

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

files = [build() for build, _ in FILES.values()]
before = peak()
for data in files:
    try:
        check(data)
    except Refused:
        pass
print(peak() - before)
"""


def test_memory_stays_flat() -> None:
    # A file of 8 MB of empty nodes alone would take 600 MB, parsed.
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100


@pytest.fixture(scope="module")
def referee() -> Referee:
    return Referee(small_olympics(), trained(), seed=1)


@pytest.mark.parametrize("name", MEASURED)
def test_refused_by_the_referee(referee: Referee, name: str) -> None:
    build, reason = MEASURED[name]
    data = build()
    check(data)
    start = time.monotonic()
    with pytest.raises(Refused) as refused:
        referee.measure(data)
    assert re.search(reason, str(refused.value)), refused.value
    assert time.monotonic() - start < 60
