"""What the guest knows of the grader's fakes ahead of a request, so that a thousand calls cost a few messages."""

from __future__ import annotations

from typing import Any

from .codec import References, encode

MAX_MADE, MAX_CHARACTERS = 200, 5000  # calls that the guest makes ahead of the grader, and the length of each


class Ahead:
    """The times of the grader's clocks and the next calls of its fakes, valid until the grader's next message.

    Attributes
    ----------
    standing
        The times of clocks that stand still, by number.
    made
        The calls that the guest made since its last message. The grader makes the same calls when it receives them, so
        that only its own fakes say what happened.
    """

    def __init__(self) -> None:
        self.standing: dict[int, float] = {}
        self.made: list[Any] = []
        self._plans: dict[int, tuple[int, list[list[float]]]] = {}  # by fake: its clock and its next calls
        self._times: dict[int, float] = {}  # the times of these clocks

    def learn(self, standing: list[list[float]], plans: list[Any]) -> None:
        """Take over what a message of the grader tells."""
        self.standing = {int(number): now for number, now in standing}
        self._plans = {number: (clock, calls) for number, clock, _, calls in plans}
        self._times = {clock: now for _, clock, now, _ in plans}

    def call(self, number: int, args: tuple[Any, ...], refs: References) -> tuple[bool, Any]:
        """Call one of the grader's fakes, if what the call does is known. Return whether it is, and the result."""
        clock, calls = self._plans.get(number, (0, []))
        if not calls or len(args) != (clock != number) or len(self.made) >= MAX_MADE:
            return False, None
        made = [number, encode(list(args), refs)]
        if len(repr(made)) > MAX_CHARACTERS:
            return False, None
        self._times[clock] += calls[0][0]
        calls[0][1] -= 1
        if calls[0][1] <= 0:
            calls.pop(0)
        if clock in self.standing:
            self.standing[clock] = self._times[clock]
        self.made.append(made)
        return True, self._times[clock] if clock == number else args[0]
