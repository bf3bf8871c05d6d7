"""How often one may try."""

from __future__ import annotations

import pytest

from autograder.leaderboard.web.middleware import RateLimit


def test_a_rate_limit_refills() -> None:
    now = [0.0]
    limit = RateLimit(60, clock=lambda: now[0])
    for _ in range(60):
        limit.spend("ada")
    with pytest.raises(Exception, match="wait"):
        limit.spend("ada")
    limit.spend("ben")
    now[0] += 1.5
    limit.spend("ada")
