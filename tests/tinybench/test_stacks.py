"""The sampling profiler: when it looks, by what, what it makes of it, and what it refuses."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.undisturbed import once_undisturbed
from tinybench.support.profiling.sampling import Ticks, running, ticking
from tinybench.support.profiling.stacks import Profile, collapsed

alarms = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")


class Look(NamedTuple):
    start: float
    stack: tuple[str, ...]
    seconds: float


class Notes:
    """A sampler: which functions were on, and the weight of each look."""

    def __init__(self, ticks: Ticks) -> None:
        self.clock, self.last = ticks.clock, 0.0
        self.looks: list[Look] = []

    def take(self, frame: Any) -> None:
        names = []
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        now = self.clock()
        self.looks.append(Look(self.last, tuple(reversed(names)), now - self.last))
        self.last = now

    def share(self, name: str) -> float:
        return sum(look.seconds for look in self.looks if name in look.stack) / sum(look.seconds for look in self.looks)


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def ticks_of(timer: Time, interval: float = 0.01, seed: int = 0) -> Ticks:
    ticks = Ticks(interval, timer, Random(seed))
    ticks.start()
    return ticks


def test_there_is_one_look_in_every_interval() -> None:
    timer = Time()
    ticks, moments = ticks_of(timer), []
    for _ in range(500):
        timer.now = ticks.due
        moments.append(timer.now - 100)
        assert ticks.clock() == pytest.approx(0.01 * len(moments))
    assert [math.floor(moment / 0.01) for moment in moments] == list(range(500))
    within = np.array(moments) % 0.01 / 0.01
    assert [np.mean(within < k) for k in (0.25, 0.5, 0.75)] == pytest.approx([0.25, 0.5, 0.75], abs=0.06)


def test_the_clock_stands_still_between_two_moments() -> None:
    timer = Time()
    ticks = ticks_of(timer)
    assert ticks.clock() == 0
    timer.now = (100 + ticks.due) / 2
    assert ticks.clock() == 0
    assert ticks.pause() == pytest.approx(ticks.due - timer.now)
    timer.now = 100.0501  # in the sixth interval, whose moment may have come
    assert ticks.clock() in (pytest.approx(0.05), pytest.approx(0.06))
    assert ticks.pause() > 0


def test_what_is_short_between_long_native_calls_keeps_its_share() -> None:
    """Native code of 15 ms keeps looks waiting, Python code of 1 ms does not: 1/16 of the time."""
    timer = Time()
    ticks, told = ticks_of(timer, 0.01), {"native": 0.0, "python": 0.0}
    last = 0.0
    for _ in range(20_000):
        for name, long in (("native", 0.015), ("python", 0.001)):
            end = timer.now + long
            while ticks.due < end:
                timer.now = end if name == "native" else ticks.due
                now = ticks.clock()
                told[name] += now - last
                last = now
            timer.now = end
    assert told["python"] / sum(told.values()) == pytest.approx(1 / 16, abs=0.005)


@pytest.mark.parametrize("interval", [0, -1, math.nan, math.inf])
def test_an_interval_is_a_time(interval: float) -> None:
    with pytest.raises(ValueError, match=r"interval is .* such as 0\.01"):
        Ticks(interval)


def working(seconds: float) -> float:
    began = time.perf_counter()
    total = 0
    while time.perf_counter() - began < seconds:
        total += sum(range(50))
    return time.perf_counter() - began


def more(seconds: float) -> float:
    return working(seconds)


def looked_at(call: Callable[[], Any], interval: float = 0.002) -> tuple[Notes, Ticks]:
    ticks = Ticks(interval)
    notes = Notes(ticks)
    with ticking(notes.take, ticks):
        call()
    return notes, ticks


@once_undisturbed
def test_shares_are_those_of_the_time() -> None:
    spent = {"more": 0.0, "waiting": 0.0}

    def waiting() -> float:
        began = time.perf_counter()
        time.sleep(0.002)
        return time.perf_counter() - began

    def program() -> None:
        for _ in range(40):
            spent["waiting"] += waiting()
            spent["more"] += more(0.006)

    notes, _ = looked_at(program)
    total = sum(spent.values())
    assert notes.share("waiting") == pytest.approx(spent["waiting"] / total, abs=0.15)
    assert notes.share("more") == pytest.approx(spent["more"] / total, abs=0.15)
    assert sum(look.seconds for look in notes.looks) == pytest.approx(total, rel=0.2)


def test_looks_are_counted_and_none_is_of_the_looking_itself() -> None:
    for _ in range(10):
        notes, ticks = looked_at(lambda: more(0.03))
        assert all(look.stack[-1] != "__exit__" for look in notes.looks)
        assert f"{len(notes.looks)} looks" in ticks.how


@alarms
@once_undisturbed
def test_an_operator_at_the_end_of_a_function_is_the_functions() -> None:
    """Python takes no signal after one; NumPy releases the lock in this one, so that the other thread sees it."""
    a = np.ones((900, 900))

    def multiplying() -> Any:
        return a @ a

    def program() -> None:
        for _ in range(8):
            multiplying()

    notes, ticks = looked_at(program, 0.003)
    assert notes.share("multiplying") > 0.5
    assert "by a signal in the main thread" in ticks.how


def code_of(function: Any) -> Any:
    return function.__code__


def test_a_function_that_only_begins_was_not_on() -> None:
    above = SimpleNamespace(f_code=code_of(more), f_lasti=10_000, f_back=None)
    begins = SimpleNamespace(f_code=code_of(working), f_lasti=0, f_back=above)
    goes_on = SimpleNamespace(f_code=code_of(working), f_lasti=20, f_back=above)
    assert running(begins) is above
    assert running(goes_on) is goes_on
    alone = SimpleNamespace(f_code=code_of(working), f_lasti=0, f_back=None)
    assert running(alone) is alone
    assert running(None) is None

    def numbers() -> Iterator[int]:
        yield 1
        yield 2

    resumes = [
        k
        for k in range(0, 200, 2)
        if running(SimpleNamespace(f_code=code_of(numbers), f_lasti=k, f_back=above)) is above
    ]
    assert len(resumes) >= 3  # where it begins, and after each yield


def test_the_looking_itself_is_not_looked_at() -> None:
    own = SimpleNamespace(f_code=code_of(ticking.__exit__), f_lasti=20, f_back=None)
    assert running(own) is None
    own.f_back = SimpleNamespace(f_code=code_of(more), f_lasti=20, f_back=None)
    assert running(own) is own.f_back


@alarms
def test_the_signal_is_left_as_it_was() -> None:
    def mine(*_: Any) -> None: ...

    before = signal.signal(signal.SIGALRM, mine)
    try:
        looked_at(lambda: working(0.02))
        assert signal.getsignal(signal.SIGALRM) is mine
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
        signal.setitimer(signal.ITIMER_REAL, 100)
        with pytest.raises(RuntimeError, match=r"own alarm goes off in .* profile without it"):
            looked_at(lambda: working(0.02))
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 100
        assert signal.getsignal(signal.SIGALRM) is mine
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@alarms
def test_a_signal_of_code_that_is_not_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: None)
    with pytest.raises(RuntimeError, match="belongs to code that is not Python"):
        looked_at(lambda: working(0.02))


@alarms
def test_a_program_that_takes_the_signal_keeps_it() -> None:
    def theirs(*_: Any) -> None: ...

    def program() -> None:
        working(0.05)
        signal.signal(signal.SIGALRM, theirs)

    try:
        _, ticks = looked_at(program)
        assert signal.getsignal(signal.SIGALRM) is theirs
        assert "took SIGALRM for itself" in ticks.how
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_one_profile_at_a_time() -> None:
    with ticking(lambda _: None), pytest.raises(RuntimeError, match="one after the other"), ticking(lambda _: None):
        pass
    notes, _ = looked_at(lambda: working(0.05))
    assert notes.looks


@once_undisturbed
def test_another_thread_is_looked_at_from_one_more() -> None:
    found: list[tuple[Notes, Ticks]] = []
    thread = threading.Thread(target=lambda: found.append(looked_at(lambda: more(0.3))))
    thread.start()
    thread.join()
    notes, ticks = found[0]
    assert notes.share("more") > 0.8
    assert "from another thread" in ticks.how
    assert "seem to take less" in ticks.how


@pytest.mark.parametrize("lacking", ["timer", "permission"])
@once_undisturbed
def test_where_there_is_no_signal_another_thread_looks(lacking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise ValueError("signal only works in main thread of the main interpreter")

    if lacking == "timer":
        monkeypatch.delattr(signal, "setitimer", raising=False)
    else:
        monkeypatch.setattr(signal, "signal", refuse)
    notes, ticks = looked_at(lambda: more(0.3))
    assert notes.share("more") > 0.8
    assert "from another thread" in ticks.how


def test_what_the_look_raises_comes_at_the_end() -> None:
    def broken(_: Any) -> None:
        raise NotImplementedError("write Sampler.take")

    done = []

    def program(error: type[Exception] | None = None) -> None:
        with suppress(NotImplementedError):  # the program's own way with such errors is not met
            working(0.05)
        done.append(True)
        if error:
            raise error

    def look(error: type[Exception] | None = None) -> None:
        with ticking(broken, 0.001):
            program(error)

    with pytest.raises(NotImplementedError, match="write Sampler"):
        look()
    with pytest.raises(KeyError):
        look(KeyError)
    assert len(done) == 2


def test_waiting_is_not_cut_short() -> None:
    got: list[bytes] = []

    def program() -> None:
        reader, writer = os.pipe()
        threading.Timer(0.05, os.write, (writer, b"answer")).start()
        began = time.perf_counter()
        got.append(os.read(reader, 10))
        time.sleep(0.05)
        assert time.perf_counter() - began >= 0.05
        os.close(reader)
        os.close(writer)

    looked_at(program, 0.001)
    assert got == [b"answer"]


@once_undisturbed
def test_dear_looks_become_rare() -> None:
    def dear(_: Any) -> None:
        sum(range(200_000))

    ticks = Ticks(0.002)
    with ticking(dear, ticks):
        working(0.4)
    assert ticks.interval > 0.01
    assert "(not 2: a look takes" in ticks.how


SAMPLES = [
    Look(0.0, ("start", "main", "load"), 0.02),
    Look(0.02, ("start", "main", "walk", "walk", "leaf"), 0.03),
    Look(0.05, ("start", "main", "walk", "leaf"), 0.01),
    Look(0.06, ("start", "main"), 0.04),
]


def test_shares_of_functions() -> None:
    profile = Profile(SAMPLES, "by hand")
    assert profile.seconds == pytest.approx(0.1)
    assert profile.trunk == 1
    rows = {row["function"]: row for row in profile.shares.rows}
    own = {name: row["itself"] for name, row in rows.items()}
    assert own == {"leaf": "40.0 %", "main": "40.0 %", "load": "20.0 %", "walk": "0.0 %"}
    whole = {name: row["with what it calls"] for name, row in rows.items()}
    assert whole == {"leaf": "40.0 %", "main": "100.0 %", "load": "20.0 %", "walk": "40.0 %"}
    assert "Where 0.1 s went: by hand" in str(profile)
    # Agresti and Coull for 1000 looks of which 400
    many = Profile([Look(k, ("main", "leaf" if k % 5 < 2 else "load"), 1.0) for k in range(1000)])
    assert {row["function"]: row["± points"] for row in many.shares.rows}["leaf"] == "3.0"


def test_small_shares_are_summed_up() -> None:
    looks = [Look(0, ("main", "large"), 1.0), *(Look(0, ("main", f"small{k}"), 0.001) for k in range(20))]
    shares = Profile(looks).shares
    assert [row["function"] for row in shares.rows] == ["large", "main"]
    assert "20 more functions take 2.0%" in shares.caption


def test_a_notebook_gets_picture_and_table() -> None:
    bundle = Profile(SAMPLES, "by hand")._repr_mimebundle_()
    assert bundle["text/html"].startswith("<figure")
    assert "<svg" in bundle["text/html"]
    assert "<table>" in bundle["text/html"]
    assert "| leaf | 40.0 % |" in bundle["text/markdown"]
    assert "40.0 %" in bundle["text/plain"]


def test_nothing_seen() -> None:
    empty = Profile([], "0 looks")
    assert "nothing ran long enough" in str(empty)
    assert "nothing ran long enough" in empty._repr_mimebundle_()["text/html"]
    assert empty.seconds == 0


def test_collapsed_stacks() -> None:
    odd = [Look(0, ("a;b", "c\nd"), 0.001), Look(0, ("a;b", "c\nd"), 0.002), Look(0, ("e f (g.py)",), 1e-6)]
    assert collapsed(odd) == "a,b;c d 3000\ne f (g.py) 1\n"
