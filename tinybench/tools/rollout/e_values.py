"""Evidence of harm: an e value for each metric, valid however often one looks.

Each metric counts events, of which the new version has its part, at most a known share of them, where it does no harm:

slow
    Tenths of a second in which the median of mirrored pairs differed by more than a margin. The new version was the
    slower one in half of them.
failures
    Users who got no answer, each counted once. Users are divided by a hash, so the stage's share of them is new.
crashes
    Workers that died, as the servers' own metrics say. The new version gives a known part of all answers.
labels
    Mirrored requests whose label came and shows that one version is right and the other one is not, or that one number
    is closer than the other. If both versions are equally good, the new version is the worse one in half of them. A
    missing answer is always wrong.
differs
    Mirrored requests that both versions answered. At most the allowed share of them may have different answers. A
    different answer is not harm: the new version may be the better one. So this metric is only counted where labels
    decide. Without labels it stops a rollout, as nobody can tell which answers are right.

Given the past, each event is the new version's with at most that probability, so the bet "more than that, and nobody
knows by how much" is a process with a mean of 1 or less. Stages multiply, as each begins with a capital of 1 under its
own share. A quarter of the capital enters at each stage: what begins late finds some that nothing was lost of. By
Ville's inequality (1939) a metric ever reaches 1/level with a probability of at most `level`, and by the union bound
any of m metrics reaches m/total with at most `total`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["FALSE_ALARMS", "METRICS", "Evidence", "harm_e_value"]

METRICS = ("slow", "failures", "crashes", "labels", "differs")
FALSE_ALARMS = 0.04  # of a whole rollout, all metrics together
STAGES = 4


def harm_e_value(new: int, both: int, share: float) -> float:
    """Return the evidence that the new version has more than its part of the events, however often one looks.

    As `tinybench.production.share_e_value`, but the bets are spread over shares above `share` only: a version that has
    fewer failures is no reason to go back.
    """
    from scipy.special import betaincc

    from tinybench.production import share_e_value

    beyond = float(betaincc(new + 1, both - new + 1, share))
    return share_e_value(new, both, share) * beyond / (1 - share)


class Evidence:
    """Counts of events by stage and metric, and what they are worth.

    Parameters
    ----------
    metrics
        The metrics that can stop a rollout. Events of others are counted, too.
    """

    def __init__(self, metrics: Sequence[str] = METRICS) -> None:
        self.metrics = tuple(metrics)
        # by stage and metric: the events of the new version, all events, and the new version's share without harm
        self.counts: dict[tuple[int, str], tuple[int, int, float]] = {}

    @property
    def stop_at(self) -> float:
        """What one metric must reach, so that all together give at most `FALSE_ALARMS`."""
        return len(self.metrics) / FALSE_ALARMS

    def add(self, stage: int, metric: str, is_new: bool, share: float) -> None:
        """Count an event."""
        new, both, _ = self.counts.get((stage, metric), (0, 0, share))
        self.counts[stage, metric] = new + is_new, both + 1, share

    def e_values(self) -> dict[str, float]:
        """Return the evidence of each metric."""
        return {metric: self._all_stages(metric) for metric in self.metrics}

    def _all_stages(self, metric: str) -> float:
        product, total = 1.0, 0.0
        values = [self._stage(stage, metric) for stage in range(STAGES)]
        for value in reversed(values):  # from this stage to the last
            product = min(product * value, 1e300)
            total += product / STAGES
        return total

    def _stage(self, stage: int, metric: str) -> float:
        new, both, share = self.counts.get((stage, metric), (0, 0, 1.0))
        # at a share of 1 all events are the new version's, which says nothing
        return harm_e_value(new, both, share) if share < 1 else 1.0

    def seen(self, stage: int) -> dict[str, tuple[int, int]]:
        """Return by metric how many events of a stage were the new version's, and of both."""
        return {metric: (new, both) for (at, metric), (new, both, _) in self.counts.items() if at == stage}

    def to_rows(self) -> list[list[Any]]:
        """Return all counts as JSON has them."""
        return [[*key, *value] for key, value in self.counts.items()]

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        """Go on from counts that `to_rows` gave; those of earlier versions have six columns, and count other events."""
        self.counts = {
            (int(row[0]), str(row[1])): (int(row[2]), int(row[3]), float(row[4])) for row in rows if len(row) == 5
        }
