"""Evidence of harm: an e value for each metric, valid however often one looks.

Each metric counts events, of which the new version has its part, at most a known share of them, where it does no harm:

slow
    Tenths of a second in which the median of mirrored pairs differed by more than a margin. The new version was the
    slower one in half of them.
failures
    Users who got no answer, each counted once. Users are divided by a hash, so the stage's share of them is new.
crashes
    Workers that died, as the servers' own metrics say. The new version gives a known part of all answers.
disagreements
    Mirrored requests that the old version answered; one that the new version answers otherwise, or not at all, is an
    event. At most the allowed share of them.
predictions
    Users by the label that their first answer has, each label a bet of its own; their mean is an e value again.
labels
    Users with an answer that their label, when it came, showed to be wrong.

Given the past, each event is the new version's with at most that probability, so the bet "more than that, and nobody
knows by how much" is a process with a mean of 1 or less. Stages multiply, as each begins with a capital of 1 under its
own share. A quarter of the capital enters at each stage: what begins late finds some that nothing was lost of. By
Ville's inequality (1939) a metric ever reaches 1/level with a probability of at most `level`, and by the union bound
any of m metrics reaches m/total with at most `total`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

__all__ = ["FALSE_ALARMS", "METRICS", "Evidence", "harm_e_value"]

METRICS = ("slow", "failures", "crashes", "disagreements", "predictions", "labels")
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
        Those that are watched.
    labels
        How many labels an answer can have; 0 if it has none.
    """

    def __init__(self, metrics: Sequence[str] = METRICS, labels: int = 0) -> None:
        self.metrics, self.labels = tuple(metrics), labels
        # by stage, metric, kind of event: how many the new version had, how many both, and its share without harm
        self.counts: dict[tuple[int, str, str], tuple[int, int, float]] = {}

    @property
    def stop_at(self) -> float:
        """What one metric must reach, so that all together give at most `FALSE_ALARMS`."""
        return len(self.metrics) / FALSE_ALARMS

    def add(self, stage: int, metric: str, is_new: bool, share: float, kind: str = "") -> None:
        """Count an event. At a share of 1 all are the new version's, which says nothing."""
        if metric in self.metrics and share < 1:
            new, both, _ = self.counts.get((stage, metric, kind), (0, 0, share))
            self.counts[stage, metric, kind] = new + is_new, both + 1, share

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
        from tinybench.production import share_e_value

        found = {kind: row for (at, name, kind), row in self.counts.items() if (at, name) == (stage, metric)}
        if metric != "predictions":
            return harm_e_value(*found[""]) if found else 1.0
        values = [share_e_value(*row) for row in found.values()]
        return (sum(values) + self.labels - len(values)) / self.labels if values else 1.0

    def seen(self, stage: int) -> dict[str, tuple[int, int]]:
        """Return by metric how many events of a stage were the new version's, and of both."""
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for (at, metric, _), (new, both, _) in self.counts.items():
            if at == stage:
                found[metric][0] += new
                found[metric][1] += both
        return {metric: (new, both) for metric, (new, both) in found.items()}

    def to_rows(self) -> list[list[Any]]:
        """Return all counts as JSON has them."""
        return [[*key, *value] for key, value in self.counts.items()]

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        """Go on from counts that `to_rows` gave."""
        self.counts = {(int(r[0]), str(r[1]), str(r[2])): (int(r[3]), int(r[4]), float(r[5])) for r in rows}
