# Written by "autograder export" from modules/15_bottleneck/15_bottleneck.ipynb: edit the notebook, not this file.

"""A check of whether this machine is fit for measurements, with advice on what to do if it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tinybench.support.conditions.machine_facts import read_facts
from tinybench.support.conditions.machine_findings import MachineCheck, judge, stolen_share
from tinybench.support.conditions.machine_rules import rules_for


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
