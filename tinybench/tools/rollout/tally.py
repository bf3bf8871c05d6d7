"""Counts of the events in a rollout, which are evidence for or against the new version.

A mirrored request goes to both versions, and its two answers are a pair. Failures are counted by user, different or
wrong answers by pair, and latency differences by blocks of pairs in a tenth of a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinybench.rollout import STAGES
from tinybench.tools.rollout.e_values import Evidence
from tinybench.tools.rollout.plan import Plan
from tinybench.tools.rollout.router import NEW, OLD, Router

__all__ = ["Tally"]

BLOCK, FEWEST_IN_BLOCK = 0.1, 5  # smallest block, in s and in pairs; longer than most stalls of a busy machine
SETTLED = 0.5  # s after which a pair is evaluated; a missing answer is then at least this late
RECENT = 100  # number of pairs from which the spread of latencies is estimated


class Tally:
    """The events of a rollout, counted by the process that runs the rollout.

    Parameters
    ----------
    router, plan, evidence
        The router that sends the requests, the settings of the rollout, and the object in which events are counted.
    users, rows
        The user who sends each request, and the index of the request's body.
    truth
        The label of each body, if known.
    numbers
        Whether answers are numbers, which can be more or less wrong, instead of classes.
    """

    def __init__(
        self,
        router: Router,
        plan: Plan,
        evidence: Evidence,
        users: np.ndarray,
        rows: np.ndarray,
        truth: Sequence[Any] | np.ndarray | None,
        numbers: bool = False,
    ) -> None:
        self.router, self.plan, self.evidence = router, plan, evidence
        self.users, self.rows, self.truth, self.numbers = users, rows, truth, numbers
        self.stage, self.is_new, self.mirrored = (np.zeros(len(users), kind) for kind in (np.int8, bool, bool))
        self.taken = 0
        self.waiting: list[int] = []
        self.pairs_waiting: list[int] = []
        self.labels_waiting: list[int] = []
        self.blocks_waiting: list[int] = []
        self.block: list[int] = []
        self.recent: list[tuple[float, float]] = []
        self.counted: dict[str, set[int]] = {"failures": set()}
        self.fresh_users: list[tuple[str, int]] = []  # counted since the last checkpoint, for the journal
        self.known = np.full(int(rows.max()) + 1, math.nan)  # the old version's answer to each row
        self.seen: set[int] = set()
        self.exposed: set[int] = set()
        self.harmed: set[int] = set()
        self.differing: set[int] = set()
        self.uncompared: list[int] = []  # answers of the new version to rows that the old one has not answered yet
        self.stage_users: list[set[int]] = [set() for _ in STAGES]
        self.stage_pairs, self.stage_blocks = [0] * len(STAGES), [0] * len(STAGES)
        self.compared = self.disagreed = self.right = self.wrong = 0
        self.restarts = [0, 0]

    @property
    def usual(self) -> float:
        """The recent median latency of the old version in seconds; infinity if there is none yet."""
        return float(np.median([old for old, _ in self.recent])) if self.recent else math.inf

    @property
    def latencies(self) -> tuple[float, float]:
        """The recent median latencies of the old and of the new version in seconds; NaN if there are none yet."""
        if not self.recent:
            return math.nan, math.nan
        old, new = np.median(self.recent, axis=0)
        return float(old), float(new)

    def take(self) -> None:
        """Count all events since the last call."""
        sent = range(self.taken, self.router.next)
        self.taken = self.router.next
        self.waiting += sent
        self.pairs_waiting += [number for number in sent if self.mirrored[number]]
        self.blocks_waiting += [number for number in sent if self.mirrored[number]]
        self.waiting = [number for number in self.waiting if not self._user(number)]
        self.pairs_waiting = [number for number in self.pairs_waiting if not self._pair(number)]
        self._blocks()
        self.labels_waiting = [number for number in self.labels_waiting if not self._label(number)]
        self.uncompared = [number for number in self.uncompared if not self._differs(number)]

    def take_restarts(self, stage: int, old: int, new: int) -> None:
        """Count the workers that died since the last call. `old` and `new` are the totals of the two versions."""
        for is_new, number in ((False, old), (True, new)):
            for _ in range(number - self.restarts[is_new]):
                self.evidence.add(stage, "crashes", is_new, self.plan.answers_at(stage))
            self.restarts[is_new] = max(number, self.restarts[is_new])

    def enough(self, stage: int) -> bool:
        """Return whether a stage has all the data that it needs."""
        plan = self.plan
        return (
            len(self.stage_users[stage]) >= plan.fewest_users
            and self.stage_pairs[stage] >= plan.pairs_at(stage)
            and self.stage_blocks[stage] >= plan.fewest_blocks
        )

    def _user_event(self, number: int, metric: str) -> None:
        user = int(self.users[number])
        if user not in self.counted[metric]:
            self.counted[metric].add(user)
            self.fresh_users.append((metric, user))
            stage = int(self.stage[number])
            self.evidence.add(stage, metric, bool(self.is_new[number]), STAGES[stage])

    def _user(self, number: int) -> bool:
        """Count the outcome of a request for its user. Return False if the request has not ended yet."""
        is_new = int(self.is_new[number])
        side, user = self.router.sides[is_new], int(self.users[number])
        if math.isnan(side.finished[number]):
            return False
        stage = int(self.stage[number])
        self.seen.add(user)
        if is_new:
            self.exposed.add(user)
            self.stage_users[stage].add(user)
        if not side.ok[number]:
            self._user_event(number, "failures")
            if is_new:
                self.harmed.add(user)
            return True
        if self.truth is not None:
            self.labels_waiting.append(number)
        if is_new:
            if side.finished[number] - side.submitted[number] > self.usual + self.plan.bound / 5:
                self.harmed.add(user)
            self.uncompared.append(number)
        else:
            self.known[self.rows[number]] = side.labels[number]
        return True

    def _differs(self, number: int) -> bool:
        """Compare the new version's answer with the old version's answer to the same row.

        Return False if the old version has not answered this row yet.
        """
        before, after = self.known[self.rows[number]], self.router.sides[NEW].labels[number]
        if math.isnan(before):
            return False
        if not same_answer(before, after):
            self.differing.add(int(self.users[number]))
            if self.truth is not None and self._error(number, after) > self._error(number, before):
                self.harmed.add(int(self.users[number]))
        return True

    def _error(self, number: int, answer: float) -> float:
        """Return the error of an answer: 0 or 1 for a class, the distance from the label for a number."""
        assert self.truth is not None
        truth = float(self.truth[self.rows[number]])
        return abs(answer - truth) if self.numbers else float(not same_answer(answer, truth))

    def _pair(self, number: int) -> bool:
        """Compare the two answers to a mirrored request.

        Return False until both requests have ended and their label, if there is one, has arrived.
        """
        old, new = self.router.sides
        if old.ok[number]:
            self.known[self.rows[number]] = old.labels[number]
        ended = np.maximum(old.finished[number], new.finished[number])  # NaN until both have ended
        wait = self.plan.label_delay if self.truth is not None else 0.0
        if not ended + wait <= self.router.clock():
            return False
        stage = int(self.stage[number])
        self.stage_pairs[stage] += 1
        if old.ok[number] and new.ok[number]:
            differs = not same_answer(old.labels[number], new.labels[number])
            self.compared, self.disagreed = self.compared + 1, self.disagreed + differs
            self.evidence.add(stage, "differs", differs, self.plan.allowed)
        if self.truth is not None:
            before, after = (
                self._error(number, side.labels[number]) if side.ok[number] else math.inf for side in (old, new)
            )
            if before != after and not same_answer(before, after):
                self.evidence.add(stage, "labels", after > before, 0.5)
        return True

    def _blocks(self) -> None:
        """Group mirrored pairs into blocks of a tenth of a second, and evaluate all complete blocks."""
        settled = self.router.now - SETTLED
        while self.blocks_waiting and self.router.due[self.blocks_waiting[0]] < settled:
            number = self.blocks_waiting.pop(0)
            if self.block and self.stage[self.block[0]] != self.stage[number]:
                self.block = []
            self.block.append(number)
            if len(self.block) >= FEWEST_IN_BLOCK and self.router.due[number] - self.router.due[self.block[0]] >= BLOCK:
                self._judge(self.block)
                self.block = []

    def _judge(self, numbers: Sequence[int]) -> None:
        old, new = (self._latencies(side, numbers) for side in (OLD, NEW))
        self.recent = [*self.recent, *zip(old.tolist(), new.tolist(), strict=True)][-RECENT:]
        # the margin uses the smaller of the two spreads: a version cannot hide behind its own varying latency, and
        # noise of the machine, which widens both spreads, does not count against either version
        low, high = np.percentile(self.recent, [25, 75], axis=0)
        margin = max(self.plan.bound / 5, float(np.min(high - low)))
        stage, difference = int(self.stage[numbers[0]]), float(np.median(new - old))
        self.stage_blocks[stage] += margin <= 2 * self.plan.bound / 5  # noisier blocks cannot reveal a slow version
        if abs(difference) > margin:
            self.evidence.add(stage, "slow", difference > 0, 0.5)

    def _latencies(self, which: int, numbers: Sequence[int]) -> np.ndarray:
        side, index = self.router.sides[which], np.array(numbers)
        ends = np.where(np.isnan(side.finished[index]), self.router.clock(), side.finished[index])
        return np.where(np.isnan(side.finished[index]) | side.ok[index], ends - side.submitted[index], side.timeout)

    def _label(self, number: int) -> bool:
        """Compare an answer with its label. Return False until the label has arrived."""
        assert self.truth is not None
        side = self.router.sides[int(self.is_new[number])]
        if self.router.clock() < side.finished[number] + self.plan.label_delay:
            return False
        if same_answer(side.labels[number], float(self.truth[self.rows[number]])):
            self.right += 1
        else:
            self.wrong += 1
        return True


def same_answer(a: float, b: float) -> bool:
    """Return whether two answers agree: equal labels, or numbers within a thousandth of each other."""
    return math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-6)
