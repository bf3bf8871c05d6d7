"""How often one may try."""

from __future__ import annotations

import time

import pytest

from autograder.leaderboard.web.middleware import RateLimit


def test_a_rate_limit_refills(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [time.time()]
    monkeypatch.setattr("time.time", lambda: now[0])
    limit = RateLimit(60)
    for _ in range(60):
        limit.spend("ada")
    with pytest.raises(Exception, match="wait"):
        limit.spend("ada")
    limit.spend("ben")
    now[0] += 61
    limit.spend("ada")
