"""No way of talking that is closed carries anything between sandboxes; each carries all outside, so the trial works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.sandbox.zygote_client import Zygote
from tests.attacks import channels
from tests.attacks.page import part
from tests.attacks.ways import LASTING, TALKING, Lasting, Talking

pytestmark = pytest.mark.needs("sandbox")
EXACT = [way for way in TALKING if not way.noisy]
SILENT = {"keys of the kernel", "hints on a file's use"}  # where the machine is itself a container, or the kernel new


@pytest.fixture(scope="module")
def pair() -> Iterator[list[Zygote]]:
    with channels.zygotes(2) as pair:
        yield pair


@pytest.mark.parametrize("way", [way for way in EXACT if not way.why], ids=lambda way: way.name)
def test_closed(way: Talking, pair: list[Zygote]) -> None:
    assert channels.taught(way, []) == 1 or way.name in SILENT, "the trial does not work, so it shows nothing"
    assert channels.taught(way, pair) == 0


@pytest.mark.parametrize("way", [way for way in LASTING if not way.why], ids=lambda way: way.name)
def test_nothing_is_left(way: Lasting, pair: list[Zygote]) -> None:
    assert channels.left(way, [], 60) > 0, "the trial does not work, so it shows nothing"
    assert channels.left(way, pair, 60) == 0


def test_what_is_carried() -> None:
    bits = [0, 1, 1, 0, 1, 0, 0, 1] * 20
    assert channels.carried(bits, [1.0 - bit for bit in bits]) == 1, "whichever way round"
    assert channels.carried(bits, [7.0] * 160) == 0
    assert channels.carried(bits, [float(number % 2) for number in range(160)]) == 0
    wrong = [bit ^ (number % 10 == 0) for number, bit in enumerate(bits)]
    assert channels.carried(bits, [float(bit) for bit in wrong]) == pytest.approx(1 - 0.468996, abs=1e-6)


def test_the_page_names_every_way() -> None:
    text = part("channels")
    missing = [way.name for way in (*TALKING, *LASTING) if way.name not in text]
    assert not missing, "run `python -m tests.attacks.channels`"
    rows = {line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")}
    closed = [way.name for way in EXACT if not way.why]
    assert not rows & set(closed), "what is closed carries something"
