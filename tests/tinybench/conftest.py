"""Real models are measured more briefly than users would, by every test of the library."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from tinybench.energy import measure_energy
from tinybench.latency import warm_up


@pytest.fixture(autouse=True, scope="module")
def short_measurements() -> Iterator[None]:
    """Shorten warm-ups and readings of energy, which last 0.1 s each otherwise."""
    readings = tuple(0.02 if default == 0.1 else default for default in measure_energy.__defaults__ or ())
    with (
        mock.patch.dict(warm_up.__kwdefaults__, min_seconds=0.02),
        mock.patch.object(measure_energy, "__defaults__", readings),
    ):
        yield
