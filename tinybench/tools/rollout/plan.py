"""The settings of a rollout, its checkpoints, and the report of its outcome."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from tinybench.rollout import STAGES, RolloutState
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.short_reprs import short_repr

__all__ = ["Checkpoint", "Plan", "Report"]


@dataclass(frozen=True)
class Plan:
    """The settings of a rollout.

    Attributes
    ----------
    rate, population
        The number of requests a second, and the number of users who send them.
    bound
        Seconds within which users must get an answer. The new version is harmful if it is slower than the old version
        by more than a fifth of this time.
    mirrored
        Proportion of requests that are mirrored, that is, go to both versions. When 100 % of the users have the new
        version, all requests are mirrored. So the new version is never busier than the old version.
    allowed
        Proportion of answers that may differ from the old version's answers. Without labels, a rollout stops if more
        answers differ; with a value of 1 it never stops for this reason. With labels, the labels decide instead.
    fewest_users, fewest_pairs, fewest_blocks
        The data that each stage needs before the next stage starts: the number of users; of pairs of answers to
        mirrored requests (with labels, if there are any); and of blocks. A block is a tenth of a second with so little
        noise that a latency difference of two fifths of `bound` can be detected. Stages after the first need 1.5 times
        as many pairs, because slow drift becomes visible late.
    every, patience
        Seconds between two checkpoints, and the number of successive checkpoints without new readings of the metrics
        that leads to a rollback.
    longest
        Seconds after which a stage without enough data is treated as if the metrics could not be read.
    label_delay
        Seconds from an answer to its label.
    fault
        The fault to inject into the new version, in the form of `tinybench serve --fault`.
    prometheus
        Whether to read the servers' metrics through Prometheus. With None, Prometheus is used if it is installed.
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
        """Return the proportion of requests that go to both versions in a stage."""
        return self.mirrored if STAGES[stage] <= 0.5 else 1.0

    def pairs_at(self, stage: int) -> float:
        """Return the number of mirrored pairs that a stage needs."""
        return self.fewest_pairs * (1.5 if stage else 1)

    def answers_at(self, stage: int) -> float:
        """Return the new version's proportion of all answers in a stage. Answers to mirrored requests are included."""
        share, mirrored = STAGES[stage], self.mirrored_at(stage)
        return (share + mirrored * (1 - share)) / (1 + mirrored)


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a rollout: the data collected so far, and the state of the rollout after the checkpoint.

    Attributes
    ----------
    at
        Seconds since the first request.
    share
        The proportion of users who had the new version until this checkpoint.
    state
        The state of the rollout after this checkpoint.
    fresh, problem
        Whether there were new and valid readings of the metrics; if not, the reason in `problem`.
    evidence
        The e-value of each metric that can stop the rollout.
    events
        The numbers of events in this stage, by metric: first those of the new version, then those of both versions.
    users, pairs
        The number of users who had the new version in this stage, and the number of mirrored pairs in this stage.
    latencies
        The median latencies of the old and of the new version in seconds, over the last 100 mirrored pairs. Both are
        NaN before the first pair.
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
        """Return the checkpoint as plain data for JSON. A latency of NaN becomes None."""
        found = asdict(self)
        found["latencies"] = [None if seconds != seconds else seconds for seconds in self.latencies]
        return found


_NUMBERS = ("users", "exposed", "harmed", "differing", "met", "labelled", "labels_missing", "seconds")


@dataclass
class Report:
    """The outcome of a rollout.

    Attributes
    ----------
    state
        The final state: promoted or rolled back, at which stage, and why.
    looks
        All checkpoints, in order.
    users, exposed
        The number of users who sent a request, and the number of users whose requests went to the new version.
    harmed
        The number of users to whom the new version gave no answer, a late answer, or, according to the label, a worse
        answer than the old version gave to the same row. An answer is late if it takes longer than the old version's
        median latency by more than a fifth of `Plan.bound`.
    differing, met
        The number of users who got an answer that differs from the old version's answer to the same row, and the number
        of users who were harmed or got a differing answer. If the new version is the old version with an injected
        fault, `met` is the number of users who met the fault.
    labelled
        Whether labels were given.
    labels_missing
        The number of answers whose label had not arrived at the end.
    seconds
        Seconds from the first request to the decision.
    watched_by
        The reader of the metrics: ``"Prometheus"`` or ``"own reader"``.
    stop_at
        The e-value at which a metric stops the rollout.
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
        """Whether all users now get the new version."""
        return self.state.status == "promoted"

    @property
    def share_harmed(self) -> float:
        """The harmed users as a proportion of all users."""
        return self.harmed / self.users if self.users else 0.0

    @property
    def sentence(self) -> str:
        """The outcome of the rollout in one line."""
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
        """Return the report as plain data for JSON."""
        known = {name: getattr(self, name) for name in _NUMBERS}
        more = {"share_harmed": self.share_harmed, "watched_by": self.watched_by, "stop_at": self.stop_at}
        state, looks = asdict(self.state), [look.to_dict() for look in self.looks]
        return {"state": state, **known, **more, "fault": self.fault, "looks": looks}
