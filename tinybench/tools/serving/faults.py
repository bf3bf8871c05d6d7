"""Faults injected into a server (slow or wrong answers, crashes, drift) to test whether monitoring detects them.

When this module is run as a program, it is the worker process of a server with a fault.
"""

from __future__ import annotations

import math
import os
import random
import re
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinybench.tools.serving.model_worker import Answer, Model, answer_batches

__all__ = ["Fault", "FaultyModel", "parse_fault"]

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
EXAMPLES = "write slow:20ms, wrong:10%, crash:5%, crash:500 or drift:2000, and perhaps a seed behind it, wrong:10%:7"


class Fault(NamedTuple):
    """An injected fault.

    ``kind`` is ``"slow"``, ``"wrong"``, ``"crash"`` or ``"drift"``. ``amount`` is a time in seconds (slow), a
    proportion (wrong, crash), or a number of answers (crash, drift).
    """

    kind: str
    amount: float
    seed: int = 0


def parse_fault(text: str) -> Fault:
    """Parse ``slow:TIME``, ``wrong:SHARE``, ``crash:SHARE``, ``crash:ANSWERS`` or ``drift:ANSWERS``.

    A seed may follow, as in ``wrong:10%:7``. ``crash:5%`` ends the worker at about 5 % of the rows. The choice depends
    only on the row and the seed, so a retry does not help. ``crash:500`` ends the worker after 500 answers. With
    ``drift:2000``, the proportion of wrong answers grows with the square of the number of answers given, until all
    answers after the first 2000 are wrong. If the text is not a fault, raise ValueError.
    """
    found = re.fullmatch(r"(slow|wrong|crash|drift):(\d+\.?\d*|\.\d+)(%|us|ms|s|)(?::(\d+))?", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no fault; {EXAMPLES}")
    kind, unit, seed = found[1], found[3], int(found[4] or 0)
    amount = float(found[2]) * (0.01 if unit == "%" else UNITS.get(unit, 1.0))
    is_time, is_share = unit in UNITS, unit == "%" or (not unit and amount <= 1)
    fits = {"slow": is_time, "wrong": is_share, "crash": not is_time, "drift": not unit and amount > 1}[kind]
    if not fits or amount <= 0 or (is_share and amount > 1):
        raise ValueError(f"{text!r} is no fault of that kind; {EXAMPLES}")
    return Fault(kind, amount, seed)


class FaultyModel(Model):
    """A model with an injected fault."""

    def __init__(
        self, path: str, threads: int, fault: Fault, die: Callable[[int], Any] = os._exit, sleep: Any = time.sleep
    ) -> None:
        super().__init__(path, threads)
        self.fault, self.die, self.sleep = fault, die, sleep
        self.coin, self.given = random.Random(fault.seed), 0

    def answer(self, rows: np.ndarray, counts: Sequence[int]) -> list[Answer]:
        """Answer requests. If the fault is "slow", wait first. If a "crash" is due, end the process."""
        kind, amount = self.fault.kind, self.fault.amount
        if kind == "slow":
            self.sleep(amount)
        if kind == "crash" and (self.given >= amount > 1 or any(self._deadly(row) for row in rows)):
            self.die(1)
        answers = super().answer(rows, counts)
        self.given += len(counts)
        return answers

    def call(self, rows: np.ndarray) -> list[Any]:
        """Return the answer to each row. If the fault is "wrong" or "drift", some answers are wrong."""
        answers = super().call(rows)
        share = {"wrong": self.fault.amount, "drift": min(1.0, (self.given / self.fault.amount) ** 2)}
        wrong = share.get(self.fault.kind, 0.0)
        return [spoilt(answer) if self.coin.random() < wrong else answer for answer in answers]

    def _deadly(self, row: np.ndarray) -> bool:
        return zlib.crc32(row.tobytes(), self.fault.seed) / 2**32 < self.fault.amount <= 1


def spoilt(answer: Any) -> Any:
    """Return a wrong answer of the same shape: a list rotated by one place, a number plus 1, or an inverted boolean."""
    if isinstance(answer, list) and len(answer) > 1:
        return answer[-1:] + answer[:-1]
    if isinstance(answer, list):
        return [spoilt(each) for each in answer]
    if isinstance(answer, bool):
        return not answer
    return answer + 1 if math.isfinite(answer) else 0


if __name__ == "__main__":
    answer_batches(lambda path, threads: FaultyModel(path, threads, parse_fault(sys.argv[3])))
