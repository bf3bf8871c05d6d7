# Written by "autograder export" from modules/15_bottleneck/15_bottleneck.ipynb: edit the notebook, not this file.

"""Is this machine fit to measure on? What is checked, what was found, why it matters and what to type."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinybench.bottleneck import granted_cores, judge, stolen_share
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.conditions.machine_facts import read_facts
from tinybench.support.conditions.machine_rules import rules_for

if TYPE_CHECKING:
    from tinybench.bottleneck import Finding


@dataclass(frozen=True)
class MachineCheck:
    """What was found on a machine, warnings first."""

    findings: tuple[Finding, ...]

    __repr__ = short_repr

    @property
    def warnings(self) -> list[Finding]:
        """The findings that may spoil a measurement."""
        return [finding for finding in self.findings if finding.level == "warn"]

    @property
    def passed(self) -> bool:
        """Whether no condition may spoil a measurement; ``if machine_check():`` tests the same."""
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
        """How many things may spoil a measurement, and which."""
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
    """Return what limits and disturbs measurements on a machine, why that matters, and what to type.

    Parameters
    ----------
    root
        Where the machine's ``proc`` and ``sys`` are found.
    how
        For `machine_facts.read_facts`: what to look through, and an earlier look.
    """
    facts = read_facts(root, **how)
    facts["granted"] = None if facts["cpu_max"] is None else granted_cores(facts["cpu_max"], facts["cores"])
    facts["stolen"] = stolen_share(*facts["stat"]) if facts["stat"] else None
    return MachineCheck(tuple(judge(rules_for(facts), facts)))
