"""The progress of a measurement on stderr: a bar on a terminal or in a notebook, else a line every few seconds."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from tinybench.support.basics.numbers import number_of

__all__ = ["Progress"]

LEAST_SECONDS = 2.0  # a shorter measurement needs no bar
BAR = "{desc} {percentage:3.0f}%|{bar}| {n:.0f} of {total:.3g} s{postfix}"


class Progress:
    """A display of how much of `seconds` has passed, warm-up included. It wraps the rounds and updates between them."""

    def __init__(
        self, seconds: float, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds, self.clock, self.stream = seconds, clock, stream or sys.stderr
        self.bar: Any = None
        self.silent = seconds <= LEAST_SECONDS

    def __enter__(self) -> Progress:
        """Show that the warm-up begins."""
        self.began = self.shown = self.clock()
        if not self.silent:
            self.bar = self._bar()
            if self.bar is None:
                self._line("warming up")
        return self

    def __exit__(self, *error: object) -> None:
        """Clear the bar."""
        if self.bar is not None:
            self.bar.close()

    def __call__(self, rounds: Iterable[Any]) -> Iterator[Any]:
        """Yield the rounds, and update the display between them."""
        every = 5.0 if self.bar is None else 0.2
        for number, order in enumerate(rounds):
            yield order
            if not self.silent and self.clock() - self.shown >= every:
                self._show(number + 1)

    def _show(self, rounds: int) -> None:
        self.shown = self.clock()
        passed = min(self.shown - self.began, self.seconds)
        if self.bar is None:
            self._line(f"{passed:.0f} of {self.seconds:.3g} s, {number_of(rounds, 'round')}")
            return
        self.bar.set_description_str("measuring", refresh=False)
        self.bar.set_postfix_str(number_of(rounds, "round"), refresh=False)
        self.bar.n = passed
        self.bar.refresh()

    def _line(self, text: str) -> None:
        print(f"tinybench: {text}", file=self.stream, flush=True)

    def _bar(self) -> Any:
        in_notebook = "ipykernel" in sys.modules and self.stream is sys.stderr
        if not (in_notebook or self.stream.isatty()):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets, tqdm.auto warns and draws its bar as text
            from tqdm.auto import tqdm
        tqdm.monitor_interval = 0  # no monitor thread while code is timed
        return tqdm(total=self.seconds, desc="warming up", bar_format=BAR, file=self.stream, leave=False)
