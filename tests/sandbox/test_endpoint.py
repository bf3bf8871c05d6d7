"""What grader and guest may hand each other, and what not."""

from __future__ import annotations

import enum
import gc
import math
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from autograder.checks.check_helpers import FakeClock, plain
from autograder.grading.session import may_lend
from autograder.sandbox.rpc.codec import Channel, ChannelError, ProtocolViolation
from autograder.sandbox.rpc.endpoint import MAX_CLOCKS, Endpoint
from autograder.sandbox.rpc.proxy import AnswerNotTaken


class Clock:
    """A fake of a check."""

    def __init__(self) -> None:
        self.now, self._secret, self.calls = 0.0, "secret", 0

    def __call__(self) -> float:
        self.calls += 1
        self.now += 1.0
        return self.now

    def fail(self) -> None:
        raise ZeroDivisionError("by the fake")


class Standing(FakeClock):
    """A clock whose readings are counted."""

    readings, known = 0, True

    def __call__(self) -> float:
        self.readings += 1
        return super().__call__()

    @property
    def standing(self) -> float | None:
        return self.now if self.known else None


class Box:
    """An object of a student."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.entered = False

    @property
    def double(self) -> Any:
        return 2 * self.value

    def __enter__(self) -> Box:
        self.entered = True
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return isinstance(error, KeyError)

    @classmethod
    def make(cls, value: Any, *, twice: bool = False) -> Box:
        return cls(2 * value if twice else value)

    def __iter__(self) -> Iterator[Any]:
        return iter([self.value] * 3)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return [self.value] * 3


class Late(ValueError):
    """An error of a student's."""


class Work:
    """The names of a student."""

    Box = Box
    Late = Late
    kept: Any = None

    echo = staticmethod(lambda value: value)
    time = staticmethod(lambda clock, times: [clock() for _ in range(times)])
    around = staticmethod(lambda clock, work: [clock(), clock(), work(), clock(), clock()])
    rounds = staticmethod(lambda model, x, times, clock: [[model(x) for _ in range(times)], clock()][-1])
    call = staticmethod(lambda function, *args: function(*args))
    draw = staticmethod(lambda generator: float(generator.random()))
    count = staticmethod(lambda: iter(range(3)))

    @staticmethod
    def read(thing: Any, name: str) -> Any:
        return thing._endpoint.ask("get", thing, name)  # without the proxy's own attributes

    @staticmethod
    def read_back(array: Any, name: str) -> Any:
        # the copy knows its number, so the grader takes it for its own
        end = next(
            p for p in gc.get_objects() if isinstance(p, Endpoint) and p.may_lend is None and id(array) in p.copies
        )
        return end.ask("get", array, name)

    @staticmethod
    def scale(array: Any) -> Any:
        array *= 2
        return array

    @staticmethod
    def late() -> None:
        raise Late("too late")

    @staticmethod
    def leave() -> None:
        raise SystemExit(3)


Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


@pytest.fixture
def student(ends: Ends) -> Iterator[Any]:
    here, there = ends
    guest = Endpoint(Channel(there))
    guest.share(Work())
    thread = threading.Thread(target=guest.serve, daemon=True)
    thread.start()
    yield Endpoint(Channel(here), may_lend=may_lend).root()
    here.shutdown(socket.SHUT_RDWR)
    thread.join(5)


VALUES = [
    None, True, 0, 1.5, float("inf"), "ü", b"\x00\xff", 1 + 2j, [1, [2.0]], (1, "a"), {"a": (1,), 2: None}, {1, 2},
    frozenset({"x"}), range(3), slice(1, None, 2), np.float64(0.1), np.int8(3), np.bool_(True),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_keep_value_and_type(student: Any, value: Any) -> None:
    back = student.echo(value)
    assert type(back) is type(value)
    assert back == value


def test_arrays_travel(student: Any) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    back = student.echo(array)
    assert back.dtype == array.dtype
    assert (back == array).all()
    assert np.isnan(student.echo(float("nan")))


def test_objects_stay_and_answer(student: Any) -> None:
    box = student.Box(4)
    assert box.value == 4
    assert box.double == 8
    assert plain(box) == [4, 4, 4]
    assert student.Box.make(3, twice=True).value == 6
    assert isinstance(box, student.Box)
    assert not isinstance(1, student.Box)
    assert plain(student.count()) == [0, 1, 2]
    with student.Box(1) as inner:
        assert inner.entered
        raise KeyError("swallowed by the box")
    box.value = 5
    assert box.double == 10
    assert type(box).__name__ == "Box"


def test_an_answer_is_taken_or_not_used(student: Any) -> None:
    box = student.Box(4)
    uses: list[Callable[[], Any]] = [
        lambda: list(box), lambda: len(box), lambda: bool(box), lambda: box == 4, lambda: box != 4, lambda: box < 4,
        lambda: box[0], lambda: 4 in box, lambda: box in [4], lambda: float(box), lambda: int(box), lambda: np.asarray(box),
        lambda: box + 1, lambda: 1 + box, lambda: abs(box), lambda: {4: 1}.get(box) or not box, lambda: next(box),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(AnswerNotTaken):
            use()


def test_fakes_stay_with_the_grader(student: Any) -> None:
    clock = Clock()
    assert student.time(clock, 4) == [1.0, 2.0, 3.0, 4.0]
    assert clock.calls == 4
    seen: list[Any] = []
    assert student.call(lambda x: seen.append(x) or 7, [1]) == 7
    assert seen == [[1]]
    assert student.echo(clock) is clock
    assert student.call(np.mean, [1.0, 3.0]) == 2.0


def test_a_clock_that_stands_is_read_without_a_message(student: Any) -> None:
    clock = Standing(3.0)

    def work() -> float:
        clock.now += 1.5
        return 0.0

    assert student.around(clock, work) == [3.0, 3.0, 0.0, 4.5, 4.5]
    assert clock.readings == 0
    clock.known = False
    assert student.around(clock, work) == [4.5, 4.5, 0.0, 6.0, 6.0]
    assert clock.readings == 4
    clocks = [Standing(float(i)) for i in range(2 * MAX_CLOCKS)]
    assert [student.call(each) for each in (*clocks, *clocks)] == [each.now for each in (*clocks, *clocks)]
    assert [clock.readings for clock in clocks] == [0] * 2 * MAX_CLOCKS
    assert student.echo(clocks)[0] is clocks[0]
    clocks[0].now = 9.0
    assert student.call(clocks[0]) == 9.0


class Moving(Clock):
    """A clock that its next two readings move, and a fake model whose calls move the clock, all known ahead."""

    def __init__(self, *seconds: float) -> None:
        super().__init__()
        self.seconds, self.ticks, self.inputs = seconds, 2, list[Any]()
        self.model = Timed(self)

    def __call__(self) -> float:
        return super().__call__() if self.calls < self.ticks else self.now

    @property
    def ahead(self) -> tuple[Moving, list[tuple[float, float]]]:
        return self, [(1.0, self.ticks - self.calls)] if self.calls < self.ticks else []


class Timed:
    """A fake model of a `Moving` clock."""

    def __init__(self, clock: Moving) -> None:
        self.clock = clock

    def __call__(self, x: Any) -> Any:
        self.clock.now += self.clock.seconds[min(len(self.clock.inputs), len(self.clock.seconds) - 1)]
        self.clock.inputs.append(x)
        return x

    @property
    def ahead(self) -> tuple[Moving, list[tuple[float, float]]]:
        left = self.clock.seconds[len(self.clock.inputs) :] or self.clock.seconds[-1:]
        return self.clock, [*((each, 1) for each in left[:-1]), (left[-1], math.inf)]


def test_calls_known_ahead_cost_no_messages_and_are_made_again(student: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, messages, send = Moving(0.5, 0.25, 0.1), list[Any](), Channel.send
    monkeypatch.setattr(Channel, "send", lambda channel, message: messages.append(message) or send(channel, message))
    assert student.time(clock, 4) == [1.0, 2.0, 2.0, 2.0]
    assert clock.calls == 2
    array = np.ones(2)
    messages.clear()
    assert student.rounds(clock.model, array, 500, clock) == pytest.approx(2.75 + 0.1 * 498)
    assert len(messages) < 15
    assert clock.now == pytest.approx(2.75 + 0.1 * 498)
    assert len(clock.inputs) == 500
    assert all(x is array for x in clock.inputs)


@pytest.mark.parametrize(
    "made", [7, {}, [7], [[0, []]], [[99, []]], [[1, []]] * 201, [[1, [1, 2]]], [[1, 7]]], ids=repr
)
def test_calls_that_cannot_have_been_made_end_the_conversation(made: Any, ends: Ends) -> None:
    here, there = ends
    grader, clock = Endpoint(Channel(here), may_lend=may_lend), Moving(0.5)
    grader.channel.set_deadline(2)
    grader.share(Clock())
    grader.encode_reference(clock.model)
    Channel(there).send(["value", 1, made])
    with pytest.raises(ChannelError):
        grader.ask("get", grader.root(), "x")
    assert not clock.inputs or made == [[1, []]] * 201
    assert grader.objects[0].now == 0.0


def test_errors_keep_their_kind(student: Any) -> None:
    with pytest.raises(ValueError, match="too late") as raised:
        student.late()
    assert type(raised.value).__name__ == "Late"
    with pytest.raises(student.Late):
        student.late()
    with pytest.raises(AttributeError):
        _ = student.missing
    with pytest.raises(RuntimeError, match="3"):
        student.leave()
    with pytest.raises(ZeroDivisionError, match="by the fake"):
        student.call(Clock().fail)


@pytest.mark.parametrize(
    "name", ["__globals__", "__class__", "__code__", "__init__", "_secret", "__dict__", "__reduce__"]
)
def test_insides_of_fakes_are_closed(student: Any, name: str) -> None:
    for fake in (Clock(), Clock().fail, lambda: 1):
        with pytest.raises(AttributeError):
            student.read(fake, name)


def test_libraries_objects_are_copied_not_lent(student: Any) -> None:
    generator, marker, array = np.random.default_rng(1), object(), np.ones(3)
    for thing in (generator, marker, array, abs, np.mean):
        assert student.echo(thing) is thing, "what comes back unchanged is the original"
    before = generator.bit_generator.state
    student.draw(generator)
    assert generator.bit_generator.state == before
    changed = student.scale(array)
    assert changed is not array
    assert list(changed) == [2.0, 2.0, 2.0]
    seen: list[int] = []
    student.call(seen.append, 3)
    student.call(iter([1, 2]).__next__)
    assert seen == [3]
    with pytest.raises(Exception, match="pickle"):
        student.echo(socket)


@pytest.mark.parametrize(
    "reply",
    [
        ["value", {"pickle": "gASVHAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjARleGl0lIWUUpQu"}],
        ["value", {"named": "os:system"}],
        ["value", {"yours": 99}],
        ["value", {"mine": "x"}],
        ["value", {"array": ["|O", [1], "AAAAAAAAAAA="]}],
        ["value", {"array": ["<f8", [10**12], "AAAAAAAAAAA="]}],
        ["value", {"array": ["<f8", [-1, -1], "AAAAAAAAAAA="]}],
        ["value", {"dict": [[{"dict": []}, 1]]}],
        ["value", {"range": [0, 1, 0]}],
        ["value", {"range": [0, 10**11, 1]}],
        ["value", {"array": ["<f8", [200_000_000, 0], ""]}],
        ["value", {"objects": [[2], [1]]}],
        ["value", {"nonsense": 1}],
        ["ask", "get", ["text", "format"], {"dict": []}],
        ["ask", "format", [1, "3000000000d"], {"dict": []}],
        ["ask", "special", [{"range": [0, 9, 1]}, "__contains__", 0.5], {"dict": []}],
        ["value", {"dict": [], "tuple": []}],
        ["error", "text", 1, 2, 3],
        ["ask", "set", [{"yours": 0}, "now", 5], {"dict": []}],
        ["ask", "special", [{"yours": 0}, "__reduce__"], {"dict": []}],
        ["ask", "isinstance", [{"yours": 0}, 1], {"dict": []}],
        ["ask", "get", [], {"dict": []}],
        ["ask", "get", 5, 6],
        {"value": 1},
        [],
        7,
    ],
    ids=repr,
)
def test_garbage_harms_nobody(reply: Any, ends: Ends) -> None:
    here, there = ends
    grader = Endpoint(Channel(here), may_lend=may_lend)
    grader.channel.set_deadline(2)
    grader.share(Clock())
    Channel(there).send([*reply, []] if reply and isinstance(reply, list) else reply)  # with no calls made ahead
    there.shutdown(socket.SHUT_WR)
    with pytest.raises((ChannelError, RuntimeError)):
        grader.ask("get", grader.root(), "x")
    assert grader.objects[0].now == 0.0


def test_only_what_was_lent_answers(student: Any) -> None:
    """Else a student could have the grader call any method of what they sent: `tofile` of an array, `format` of a text."""
    array, clock = np.ones(2), Clock()
    assert student.read(clock, "fail") is not None
    with pytest.raises(ProtocolViolation, match="not lent"):
        student.read_back(array, "tofile")


def test_a_conversation_has_an_end(ends: Ends) -> None:
    channel, other = Channel(ends[0], total=99), Channel(ends[1])
    for _ in range(9):
        other.send("x" * 8)
    for _ in range(9):
        channel.receive()
    other.send("x" * 8)
    with pytest.raises(ProtocolViolation, match="more than one conversation"):
        channel.receive()


class Verdict(enum.StrEnum):
    """Text of a student's own class."""

    FASTER = "faster"


class Level(enum.IntEnum):
    """A number of a student's own class."""

    THREE = 3


class Length(float):
    """Another."""


def test_text_and_numbers_of_own_classes_are_text_and_numbers(student: Any) -> None:
    for value, expected in (
        (Verdict.FASTER, "faster"),
        (Level.THREE, 3),
        (Length(-0.0), -0.0),
        (Length("nan"), math.nan),
    ):
        Work.kept = value
        found = student.kept
        assert type(found) is type(expected)
        assert repr(found) == repr(expected)
    labels = np.array([["a", 1], [None, 2.5]], dtype=object)
    Work.kept = labels
    assert student.kept.tolist() == labels.tolist()


def test_a_hash_bomb_of_frames_is_refused(ends: Ends) -> None:
    ends[1].sendall(b"\xff\xff\xff\xff")
    with pytest.raises(ProtocolViolation, match="limit"):
        Channel(ends[0]).receive()
