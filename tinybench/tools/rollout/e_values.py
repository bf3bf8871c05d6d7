"""Evidence of harm by a new version: an e-value for each metric, valid for any number of checkpoints.

Each metric counts events. A mirrored request goes to both versions, and its two answers are a pair. If the new version
does no harm, at most a known proportion of the events belongs to the new version:

slow
    Intervals of a tenth of a second in which the median latency difference of the mirrored pairs was larger than a
    margin. Without harm, the new version was the slower one in half of these intervals.
failures
    Users who got no answer, each counted once. A hash assigns the users to the versions. Without harm, the new
    version's proportion is the proportion of users who have the new version in this stage of the rollout.
crashes
    Workers that died, according to the servers' own metrics. Without harm, the new version's proportion is its known
    proportion of all answers.
labels
    Mirrored requests whose label has arrived and shows that one version is right and the other version is wrong, or
    that the number from one version is closer. If both versions are equally good, the new version is the worse one in
    half of these requests. A missing answer is always wrong.
differs
    Mirrored requests that both versions answered. At most the allowed proportion of these requests may have different
    answers. A different answer is not harm, because the new version may be the better one. If there are labels, this
    metric is therefore counted but cannot stop a rollout. Without labels it can, because nobody can tell which answers
    are right.

Given the past, each event belongs to the new version with at most this probability. So a bettor who begins with a
capital of 1 and bets that the probability is higher, by an unknown amount, has a mean capital of 1 or less. This
capital is the e-value. Each stage of the rollout has its own proportion and begins with a capital of 1, and the
capitals of the stages are multiplied. A quarter of the total capital enters at each of the four stages. So harm that
begins late meets capital that has not been lost. By Ville's inequality (1939), the probability that the e-value of a
metric ever reaches 1/level is at most `level`. By the union bound, the probability that any of m metrics reaches
m/total is at most `total`.
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

    Of `both` events of the two versions, `new` belong to the new version. The bets are those of
    `tinybench.rollout.share_e_value`, but only on proportions above `share`, because a version that has fewer
    failures is not a reason for a rollback.
    """
    from scipy.special import betaincc

    from tinybench.rollout import share_e_value

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
        # by stage and metric: events of the new version, all events, and the new version's proportion without harm
        self.counts: dict[tuple[int, str], tuple[int, int, float]] = {}

    @property
    def stop_at(self) -> float:
        """The threshold for one metric that keeps the overall false-alarm rate at `FALSE_ALARMS`."""
        return len(self.metrics) / FALSE_ALARMS

    def add(self, stage: int, metric: str, is_new: bool, share: float) -> None:
        """Count one event of a metric in a stage. `share` is the new version's expected proportion without harm."""
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
        # at a share of 1, all events belong to the new version, so they carry no evidence
        return harm_e_value(new, both, share) if share < 1 else 1.0

    def seen(self, stage: int) -> dict[str, tuple[int, int]]:
        """Return the numbers of events in a stage, by metric.

        The first number counts the events of the new version, and the second number counts the events of both versions.
        """
        return {metric: (new, both) for (at, metric), (new, both, _) in self.counts.items() if at == stage}

    def to_rows(self) -> list[list[Any]]:
        """Return all counts as rows that JSON can hold."""
        return [[*key, *value] for key, value in self.counts.items()]

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        """Restore the counts from the output of `to_rows`.

        Earlier releases of TinyBench wrote rows of six columns, which counted other events. Such rows are skipped.
        """
        self.counts = {
            (int(row[0]), str(row[1])): (int(row[2]), int(row[3]), float(row[4])) for row in rows if len(row) == 5
        }
