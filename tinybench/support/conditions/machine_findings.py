"""The findings of the machine check: the level of each condition, and all of them as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.conditions.rule import Rule


class Finding(NamedTuple):
    """A finding on one condition of a machine: its level, what was seen, why it matters, and what to type.

    The level is ok, warn or unknown.
    """

    name: str
    level: str
    seen: str
    why: str = ""
    do: str = ""


def stolen_share(before: str, after: str) -> float:
    """Return the fraction of time, from 0 to 1, that the hypervisor gave to others between two readings.

    Parameters
    ----------
    before, after
        First line of ``/proc/stat`` at each of the two readings: ``cpu``, and the ticks spent in user, nice, system,
        idle, iowait, irq, softirq, steal, guest and guest_nice since the machine started. The ticks of guest and
        guest_nice are already contained in those of user and nice.
    """
    spent = [int(b) - int(a) for a, b in zip(before.split()[1:9], after.split()[1:9], strict=True)]
    return spent[7] / sum(spent) if sum(spent) else 0.0


def judge(rules: Iterable[Rule], facts: Mapping[str, Any]) -> list[Finding]:
    """Return a finding for each rule: first the warnings, then the unknown ones, then the rest.

    Within each of these three groups, findings are in the order of the rules. If a fact is missing or None, its level
    is unknown: a condition that nobody looked at is not fine.
    """
    findings = []
    for rule in rules:
        value = facts.get(rule.fact)
        if value is None:
            findings.append(Finding(rule.name, "unknown", "not known here"))
        elif rule.fine(value):
            findings.append(Finding(rule.name, "ok", rule.show(value)))
        else:
            findings.append(Finding(rule.name, "warn", rule.show(value), rule.why, rule.do))
    return sorted(findings, key=lambda finding: ("warn", "unknown", "ok").index(finding.level))


@dataclass(frozen=True)
class MachineCheck:
    """The findings on a machine, warnings first."""

    findings: tuple[Finding, ...]

    __repr__ = short_repr

    @property
    def warnings(self) -> list[Finding]:
        """The findings that may spoil a measurement."""
        return [finding for finding in self.findings if finding.level == "warn"]

    @property
    def passed(self) -> bool:
        """Whether there are no warnings. ``if machine_check():`` tests the same."""
        return not self.warnings

    def __bool__(self) -> bool:
        """Return `passed`."""
        return self.passed

    @property
    def verdict(self) -> str:
        """``ok``, or the names of the warnings."""
        return ", ".join(finding.name for finding in self.warnings) or "ok"

    @property
    def sentence(self) -> str:
        """A sentence with the number and the names of the things that may spoil a measurement."""
        count = len(self.warnings)
        found = f"{count} thing{'s' if count > 1 else ''} may spoil a measurement: {self.verdict}"
        return found if count else "nothing was found that would spoil a measurement"

    def __str__(self) -> str:
        """Return a table of all findings, then for each warning why it matters and what to type."""
        rows = [{"": each.level, "what": each.name, "seen": each.seen} for each in self.findings]
        told = [f"{each.name}: {each.why}.\n  → {each.do}" for each in self.warnings]
        return "\n\n".join([self.sentence, Table(rows).text(), *told])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        names = {"": "level", "what": "name", "seen": "seen", "why it matters": "why", "what to type": "do"}
        rows = [{name: getattr(each, field) for name, field in names.items()} for each in self.findings]
        return {"text/plain": str(self), "text/html": Table(rows, self.sentence).html()}
