"""Evidence of harm: an e-value for each metric, valid for any number of checkpoints.

Each metric counts events. If the new version does no harm, at most a known share of them belongs to it:

slow
    Tenths of a second in which the median difference of mirrored pairs was larger than a margin. Without harm, the new
    version was the slower one in half of them.
failures
    Users who got no answer, each counted once. Users are divided by a hash, so the new version's share is that of the
    stage.
crashes
    Workers that died, according to the servers' own metrics. Without harm, the new version's share is its known share
    of all answers.
labels
    Mirrored requests whose label has arrived and shows that one version is right and the other one is not, or that one
    number is closer than the other. If both versions are equally good, the new version is the worse one in half of
    them. A missing answer is always wrong.
differs
    Mirrored requests that both versions answered. At most the allowed share of them may have different answers. A
    different answer is not harm, because the new version may be the better one. If there are labels, this metric is
    therefore only counted. Without labels it stops a rollout, because nobody can tell which answers are right.

Given the past, each event belongs to the new version with at most that probability. So the bet "the probability is
higher, by an unknown amount" is a process with a mean of 1 or less. The bets of all stages are multiplied, because each
stage begins with a capital of 1 under its own share. A quarter of the capital enters at each stage, so that harm that
begins late meets capital that has not been lost. By Ville's inequality (1939), a metric ever reaches 1/level with a
probability of at most `level`. By the union bound, any of m metrics reaches m/total with a probability of at most
`total`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["FALSE_ALARMS", "METRICS", "Evidence", "harm_e_value"]

METRICS = ("slow", "failures", "crashes", "labels", "differs")
FALSE_ALARMS = 0.04  # false-alarm rate of a whole rollout, over all metrics
STAGES = 4


def harm_e_value(new: int, both: int, share: float) -> float:
    """Return the e-value for "the new version has more than its share of the events", valid at any time.

    The bets are those of `tinybench.production.share_e_value`, but only on shares above `share`, because a version that
    has fewer failures is not a reason for a rollback.
    """
    from scipy.special import betaincc

    from tinybench.production import share_e_value

    beyond = float(betaincc(new + 1, both - new + 1, share))
    return share_e_value(new, both, share) * beyond / (1 - share)


class Evidence:
    """Counts of events by stage and metric, and the e-values computed from them.

    Parameters
    ----------
    metrics
        The metrics that can stop a rollout. Events of other metrics are also counted.
    """

    def __init__(self, metrics: Sequence[str] = METRICS) -> None:
        self.metrics = tuple(metrics)
        # by stage and metric: the events of the new version, all events, and the new version's share without harm
        self.counts: dict[tuple[int, str], tuple[int, int, float]] = {}

    @property
    def stop_at(self) -> float:
        """The threshold for one metric that keeps the overall false-alarm rate at `FALSE_ALARMS`."""
        return len(self.metrics) / FALSE_ALARMS

    def add(self, stage: int, metric: str, is_new: bool, share: float) -> None:
        """Count one event of a metric in a stage. `share` is the new version's share without harm."""
        new, both, _ = self.counts.get((stage, metric), (0, 0, share))
        self.counts[stage, metric] = new + is_new, both + 1, share

    def e_values(self) -> dict[str, float]:
        """Return the e-value of each metric."""
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
        # at a share of 1 all events are the new version's, so they carry no evidence
        return harm_e_value(new, both, share) if share < 1 else 1.0

    def seen(self, stage: int) -> dict[str, tuple[int, int]]:
        """Return the number of events in a stage by metric: those of the new version, and those of both versions."""
        return {metric: (new, both) for (at, metric), (new, both, _) in self.counts.items() if at == stage}

    def to_rows(self) -> list[list[Any]]:
        """Return all counts as rows that JSON can hold."""
        return [[*key, *value] for key, value in self.counts.items()]

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        """Restore counts from `to_rows`. Rows of earlier versions have six columns and other events; skip them."""
        self.counts = {
            (int(row[0]), str(row[1])): (int(row[2]), int(row[3]), float(row[4])) for row in rows if len(row) == 5
        }
