"""A pytest plugin for runs under an emulated processor, where everything takes some thirty times as long."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from hypothesis import settings

UNUSED = {"pandas"}  # scikit-learn takes it where it is, and nothing here needs it


class Without(MetaPathFinder):
    """Packages that nothing can import."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in UNUSED:
            raise ModuleNotFoundError(f"{name} is left out under an emulated processor", name=name)
        return None


sys.meta_path.insert(0, Without())
settings.register_profile("emulated", max_examples=10, deadline=None, database=None, derandomize=True)


def pytest_configure() -> None:
    """Take fewer examples, whatever conftest.py has chosen before."""
    settings.load_profile("emulated")
