"""The progress of a measurement on stderr: a bar on a terminal or in a notebook, else a line every few seconds."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from tinybench.support.basics.numbers import number_of

__all__ = ["Progress"]

LEAST_SECONDS = 2.0  # a shorter measurement needs no bar
BAR = "{percentage:3.0f}%|{bar}| {n:.0f} of {total:.3g} s{postfix}"


class Progress:
    """A display of how much of `seconds` has passed, with a text such as ``"12 rounds"``.

    If called with an iterable of rounds, the display yields the rounds and is updated after each round.
    """

    def __init__(
        self, seconds: float, first: str = "", stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds, self.first, self.clock, self.stream = seconds, first, clock, stream or sys.stderr
        self.bar: Any = None

    def __enter__(self) -> Progress:
        """Start the clock, and show the first text."""
        self.began, self.shown = self.clock(), -math.inf
        if self.seconds > LEAST_SECONDS:
            self.bar = self._bar()
        if self.first:
            self.show(self.first)
        return self

    def __exit__(self, *error: object) -> None:
        """Clear the bar."""
        if self.bar is not None:
            self.bar.close()

    def __call__(self, rounds: Iterable[Any]) -> Iterator[Any]:
        """Yield the rounds, and show how many are complete."""
        for number, order in enumerate(rounds):
            yield order
            self.show(number_of(number + 1, "round"))

    def show(self, text: str) -> None:
        """Show the elapsed time and a text, unless the display was updated a moment ago."""
        now = self.clock()
        if self.seconds <= LEAST_SECONDS or now - self.shown < (5.0 if self.bar is None else 0.2):
            return
        self.shown, passed = now, min(now - self.began, self.seconds)
        if self.bar is None:
            print(f"tinybench: {passed:.0f} of {self.seconds:.3g} s, {text}", file=self.stream, flush=True)
            return
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.n = passed
        self.bar.refresh()

    def _bar(self) -> Any:
        in_notebook = "ipykernel" in sys.modules and self.stream is sys.stderr
        if not (in_notebook or self.stream.isatty()):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets, tqdm.auto warns and draws its bar as text
            from tqdm.auto import tqdm
        tqdm.monitor_interval = 0  # no monitor thread while code is timed
        return tqdm(total=self.seconds, bar_format=BAR, file=self.stream, leave=False)
