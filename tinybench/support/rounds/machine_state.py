"""The state of the machine, which is stored with every result."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from tinybench.support.conditions.environment_variables import conditions_of_settings, read_settings
from tinybench.support.conditions.library_kernels import conditions_of_blas, loaded_pools, read_pools

# Permanent properties of a machine, which are hardly a reason to doubt a single result. `tinybench machine` reports
# these properties, but they are not stored as warnings with a result.
STANDING = ("cores", "quota", "kinds of cores", "turbo", "SMT", "NUMA", "WSL")


def library_conditions(pools: Sequence[Mapping[str, Any]] | None = None) -> dict[str, str]:
    """Return the conditions of the numerical libraries: versions, kernels, and the environment variables that are set.

    `pools` is the result of `loaded_pools`, if the caller already has it.
    """
    found = (loaded_pools() or []) if pools is None else pools
    return {**conditions_of_blas(read_pools(found)), **conditions_of_settings(read_settings())}


class Conditions:
    """A cache of the result of the latest machine check."""

    def __init__(self) -> None:
        self.before: dict[str, Any] | None = None
        self.notes: dict[str, Any] = {}
        self.until = 0.0

    def __call__(self) -> dict[str, Any]:
        """Return the notes of the machine check. For a few seconds (60 s outside Linux), reuse the previous notes."""
        if time.monotonic() >= self.until:
            first = self.before is None
            self.notes = self._looked()
            linux = platform.system() == "Linux"  # elsewhere the check runs commands, which is slower
            self.until = time.monotonic() + (
                60 if not linux else 0.5 if first else 5
            )  # the first check has no earlier reading to compare with
        return dict(self.notes)

    def _looked(self) -> dict[str, Any]:
        try:
            # imported late because these modules measure, too
            check, facts = map(import_module, ("tinybench.machine", "tinybench.support.conditions.machine_facts"))
        except ImportError:  # module 15 is not built yet
            return {}
        try:
            before = self.before or facts.look()
            self.before = facts.look()
            found = check.machine_check(before=before)
        except Exception:  # a failing check, such as a student's, must not spoil a measurement
            return {}
        told = [f"{each.name}: {each.seen}" for each in found.warnings if each.name not in STANDING]
        return {"machine": {"verdict": found.verdict, "warnings": told, "conditions": library_conditions()}}


machine_notes = Conditions()


def machine_warnings(*results: Any) -> list[str]:
    """Return the machine warnings stored in results, without duplicates."""
    found = (result.metadata.get("machine") for result in results)
    return list(dict.fromkeys(told for notes in found if isinstance(notes, dict) for told in notes.get("warnings", [])))


def disturbed(warnings: Sequence[str]) -> str:
    """Return a short text that names the causes of machine warnings, or an empty string if there are no warnings."""
    names = ", ".join(told.partition(":")[0] for told in warnings)
    return f"the machine: {names} (tinybench machine says more)" if names else ""


def verdict_of(result: Any) -> str | None:
    """Return the verdict of the machine check stored in a result, or None if no verdict is stored."""
    notes = result.metadata.get("machine")  # may also be a user's name for the machine
    return notes.get("verdict") if isinstance(notes, dict) else None
