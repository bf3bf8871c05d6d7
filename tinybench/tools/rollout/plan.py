"""What a rollout was told, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from tinybench.production import STAGES, RolloutState
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.short_reprs import short_repr

__all__ = ["Checkpoint", "Plan", "Report"]


@dataclass(frozen=True)
class Plan:
    """How to roll out.

    Attributes
    ----------
    rate, population
        Requests a second, each by one of so many users.
    bound
        Seconds within which users are to be answered. A fifth of it more than the old version takes is harm.
    mirrored
        Share of requests that go to both versions. At 100 % all do: the new version is never busier than the old.
    allowed
        Share of answers that may differ from the old version's. If more differ, a rollout without labels stops; 1
        never stops it. With labels they decide instead.
    fewest_users, fewest_pairs, fewest_blocks
        The data that each stage needs before the next one starts: users, mirrored pairs (with labels, if there are
        any), and tenths of a second quiet enough to detect a difference of two fifths of the bound. Later stages need
        1.5 times as many pairs, because slow drift shows late.
    every, patience
        Seconds between two looks; so many in a row without new readings and it goes back.
    longest
        Seconds after which a stage that has not seen enough counts as blind.
    label_delay
        Seconds from an answer to its label.
    fault
        What is injected into the new version, as `tinybench serve --fault` takes it.
    prometheus
        Whether a Prometheus reads the servers; None: if it is installed.
    """

    rate: float = 200.0
    population: int = 20_000
    bound: float = 0.05
    mirrored: float = 0.4
    allowed: float = 0.01
    fewest_users: int = 25
    fewest_pairs: int = 250
    fewest_blocks: int = 20
    every: float = 0.5
    patience: int = 20
    longest: float = 60.0
    label_delay: float = 1.0
    timeout: float = 2.0
    fault: str = ""
    seed: int = 0
    prometheus: bool | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name in ("rate", "bound", "every", "longest", "timeout", "population", "patience"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} is {getattr(self, name):g}; give a number above 0")
        if not 0 < self.mirrored < 1:
            raise ValueError(f"mirrored is {self.mirrored:g}; give a share between 0 and 1")
        if not 0 < self.allowed <= 1:
            raise ValueError(f"allowed is {self.allowed:g}; give a share above 0, up to 1")

    def mirrored_at(self, stage: int) -> float:
        """Return the share of requests that go to both."""
        return self.mirrored if STAGES[stage] <= 0.5 else 1.0

    def pairs_at(self, stage: int) -> float:
        """Return how many mirrored pairs a stage must see."""
        return self.fewest_pairs * (1.5 if stage else 1)

    def answers_at(self, stage: int) -> float:
        """Return which part of all answers the new version gives, mirrored ones among them."""
        share, mirrored = STAGES[stage], self.mirrored_at(stage)
        return (share + mirrored * (1 - share)) / (1 + mirrored)


@dataclass(frozen=True)
class Checkpoint:
    """What a look showed, and where the rollout stood then.

    Attributes
    ----------
    at
        Seconds since the first request.
    share
        The share of users who had the new version when it was taken.
    state
        Where the rollout stands after it.
    fresh, problem
        Whether there were new readings, and if not, why.
    evidence
        E values of the metrics that can stop the rollout, by metric.
    events
        By metric, of this stage's events how many were the new version's, and of both.
    users, pairs
        Of this stage: users of the new version, mirrored pairs.
    latencies
        Median latency of mirrored requests in the last second, old and new, in seconds; NaN without any.
    """

    at: float
    share: float
    state: RolloutState
    fresh: bool
    problem: str
    evidence: dict[str, float]
    events: dict[str, tuple[int, int]]
    users: int
    pairs: int
    latencies: tuple[float, float]

    __repr__ = short_repr

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        found = asdict(self)
        found["latencies"] = [None if seconds != seconds else seconds for seconds in self.latencies]
        return found


_NUMBERS = ("users", "exposed", "harmed", "differing", "met", "labelled", "labels_missing", "seconds")


@dataclass
class Report:
    """What became of a rollout.

    Attributes
    ----------
    state
        Its end: promoted or rolled back, at which stage, and why.
    looks
        All looks, in order.
    users, exposed
        Users who sent a request, and those of them who got the new version.
    harmed
        Users who got no answer from the new version, or one later than the old version's by more than the margin, or,
        by its label, a worse one than the old version gives to the same row.
    differing, met
        Users who got another answer than the old version gives to the same row, and those who are either harmed or
        got a differing answer. If the new version is the old one with a fault, these met the fault.
    labelled
        Whether labels were given.
    labels_missing
        Answers whose label had not come when it ended.
    seconds
        From the first request to the decision.
    watched_by
        ``"Prometheus"`` or ``"own reader"``.
    stop_at
        The e value at which a metric stops it.
    """

    state: RolloutState
    looks: list[Checkpoint] = field(default_factory=list)
    users: int = 0
    exposed: int = 0
    harmed: int = 0
    differing: int = 0
    met: int = 0
    labels_missing: int = 0
    seconds: float = 0.0
    watched_by: str = ""
    stop_at: float = 0.0
    fault: str = ""
    labelled: bool = False

    __repr__ = short_repr

    @property
    def promoted(self) -> bool:
        """Whether all users get the new version now."""
        return self.state.status == "promoted"

    @property
    def share_harmed(self) -> float:
        """The share of all users who are harmed."""
        return self.harmed / self.users if self.users else 0.0

    @property
    def sentence(self) -> str:
        """The end in one line."""
        if not self.looks:
            return "an unfinished rollout stood in the journal: it is taken back; run again for a new one"
        share = f"{100 * STAGES[self.state.stage]:g} % of the users"
        why = {"": "", "differs": " because answers differ"}.get(self.state.why, f" by {self.state.why}")
        end = f"{self.state.status} at {share}{why}"
        met = f"{self.harmed} of {number_of(self.users, 'user')} ({100 * self.share_harmed:.1f} %)"
        how = "failed, late or newly wrong" if self.labelled else "failed or late"
        return (
            f"{end} after {self.seconds:.1f} s; {met} got a {how} answer from the new version; {self.differing} got "
            f"one that differs from the old version's; {self.exposed} used the new version"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        known = {name: getattr(self, name) for name in _NUMBERS}
        more = {"share_harmed": self.share_harmed, "watched_by": self.watched_by, "stop_at": self.stop_at}
        state, looks = asdict(self.state), [look.to_dict() for look in self.looks]
        return {"state": state, **known, **more, "fault": self.fault, "looks": looks}
