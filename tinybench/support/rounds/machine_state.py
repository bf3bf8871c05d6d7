"""The state of the machine, as every result carries it."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from tinybench.support.conditions.environment_variables import conditions_of_settings, read_settings
from tinybench.support.conditions.library_kernels import conditions_of_blas, loaded_pools, read_pools

# Always so on a machine, and hardly ever a reason to doubt one result: `tinybench machine` tells it, a result need not.
STANDING = ("cores", "quota", "kinds of cores", "turbo", "SMT", "NUMA", "WSL")


def library_conditions(pools: Sequence[Mapping[str, Any]] | None = None) -> dict[str, str]:
    """Return the conditions of the numerical libraries: versions, kernels, and the variables that are set.

    `pools` is what `loaded_pools` returns, if the caller has it already.
    """
    found = (loaded_pools() or []) if pools is None else pools
    return {**conditions_of_blas(read_pools(found)), **conditions_of_settings(read_settings())}


class Conditions:
    """The last look at this machine, and what it found."""

    def __init__(self) -> None:
        self.before: dict[str, Any] | None = None
        self.notes: dict[str, Any] = {}
        self.until = 0.0

    def __call__(self) -> dict[str, Any]:
        """Return the notes, those of some seconds ago while they are fresh."""
        if time.monotonic() >= self.until:
            first = self.before is None
            self.notes = self._looked()
            linux = platform.system() == "Linux"  # elsewhere commands are asked, which takes longer
            self.until = time.monotonic() + (
                60 if not linux else 0.5 if first else 5
            )  # a first look sees no change yet
        return dict(self.notes)

    def _looked(self) -> dict[str, Any]:
        try:
            # imported late: they measure, too
            check, facts = map(import_module, ("tinybench.machine", "tinybench.support.conditions.machine_facts"))
        except ImportError:  # module 15 is not built yet
            return {}
        try:
            before = self.before or facts.look()
            self.before = facts.look()
            found = check.machine_check(before=before)
        except Exception:  # a check that fails, such as a student's, must not cost a measurement
            return {}
        told = [f"{each.name}: {each.seen}" for each in found.warnings if each.name not in STANDING]
        return {"machine": {"verdict": found.verdict, "warnings": told, "conditions": library_conditions()}}


machine_notes = Conditions()


def machine_warnings(*results: Any) -> list[str]:
    """Return what results say against the machine they were measured on, each sentence once."""
    found = (result.metadata.get("machine") for result in results)
    return list(dict.fromkeys(told for notes in found if isinstance(notes, dict) for told in notes.get("warnings", [])))


def disturbed(warnings: Sequence[str]) -> str:
    """Return in short what a machine's warnings are about, an empty text where there are none."""
    names = ", ".join(told.partition(":")[0] for told in warnings)
    return f"the machine: {names} (tinybench machine says more)" if names else ""


def verdict_of(result: Any) -> str | None:
    """Return the verdict on the machine that a result carries, None if it has none."""
    notes = result.metadata.get("machine")  # a user's own name for a machine is no verdict
    return notes.get("verdict") if isinstance(notes, dict) else None
