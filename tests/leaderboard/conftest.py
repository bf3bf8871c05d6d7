"""Empty stores of the leaderboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.leaderboard.store.store import Store


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """An empty store on either database."""
    store = Store(database)
    yield store
    store.close()


@pytest.fixture
def light_store(tmp_path: Path) -> Iterator[Store]:
    """An empty store on SQLite, for tests of what lies above it."""
    store = Store(f"sqlite:///{tmp_path / 'leaderboard.db'}")
    yield store
    store.close()
