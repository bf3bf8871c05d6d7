# Written by "autograder export" from modules/15_bottleneck/15_bottleneck.ipynb: edit the notebook, not this file.

"""A check of whether this machine is fit for measurements, with advice on what to do if it is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.conditions.machine_facts import read_facts
from tinybench.support.conditions.machine_rules import Rule, rules_for


def granted_cores(cpu_max: str, cores: int) -> float:
    """Return the number of cores that a control group may use.

    Parameters
    ----------
    cpu_max
        Content of the group's file ``cpu.max``: the µs that the group may run, and the µs of the period.
        ``"50000 100000"`` means half a core. ``"max 100000"``, or an empty text, means that there is no limit.
    cores
        Number of cores of the machine. A group never gets more.
    """
    quota, _, period = cpu_max.strip().partition(" ")
    if quota in ("", "max"):
        return float(cores)
    return min(float(cores), int(quota) / int(period))


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


class Finding(NamedTuple):
    """A finding on one condition of a machine: its level, what was seen, why it matters, and what to type.

    The level is ok, warn or unknown.
    """

    name: str
    level: str
    seen: str
    why: str = ""
    do: str = ""


def judge(rules: Iterable[Rule], facts: Mapping[str, Any]) -> list[Finding]:
    """Return a finding for each rule: first the warnings, then the unknown ones, then the rest.

    Within each of these three groups, findings are in the order of the rules.

    A rule has ``name``, ``fact`` (the key of its value in `facts`), ``fine(value)``, ``show(value)`` (the observation
    as text), ``why`` and ``do``. If the fact is missing or None, the level is ``"unknown"`` and ``seen`` is
    ``"not known here"``. Only a warning has ``why`` and ``do``.
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


def machine_check(root: Path | str = "/", **how: Any) -> MachineCheck:
    """Return the findings of a check for conditions that limit or disturb measurements on a machine.

    They include why each condition matters, and what to type.

    Parameters
    ----------
    root
        Folder that contains the machine's ``proc`` and ``sys``.
    how
        Options of `machine_facts.read_facts`, such as an earlier reading.
    """
    facts = read_facts(root, **how)
    facts["granted"] = None if facts["cpu_max"] is None else granted_cores(facts["cpu_max"], facts["cores"])
    facts["stolen"] = stolen_share(*facts["stat"]) if facts["stat"] else None
    return MachineCheck(tuple(judge(rules_for(facts), facts)))
