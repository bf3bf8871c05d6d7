"""The trials of all ways run and are counted; how often each is right is for the command, not for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks import verdicts
from tests.benchmarks.peers import PEERS
from tests.benchmarks.subjects import LENGTHS, calls_of
from tests.benchmarks.ways import AGAIN, MORE, WAYS


def test_the_same_object_stands_beside_a_longer_one() -> None:
    for length, (_, _, sizes) in LENGTHS.items():
        calls = calls_of(length)
        assert calls["A"] is calls[AGAIN]
        assert (MORE in calls) == (len(sizes) > 1)
        assert calls["A"](1) == calls["A"](1)


def test_verdicts_are_counted_by_way() -> None:
    about = {"condition": "quiet", "length": "1 µs", "way": "compare", "seconds": 0.5}
    records = [
        {**about, "subject": AGAIN, "flagged": True, "took": 0.5},
        {**about, "subject": AGAIN, "flagged": False, "took": 0.6},
        {**about, "subject": MORE, "flagged": True, "took": 0.4},
    ]
    (row,) = verdicts.summarise(records)
    assert (row["flagged"]["count"], row["flagged"]["of"]) == (1, 2)
    assert (row["found"]["count"], row["found"]["of"]) == (1, 1)
    assert row["late"] == {"median": pytest.approx(1.0), "longest": pytest.approx(1.2)}
    assert "| 1 µs | compare | 50 % (" in verdicts.markdown(
        [{"command": "command", "machine": "here", "records": records}]
    )


@pytest.mark.slow
def test_every_way_and_peer_runs(tmp_path: Path) -> None:
    options = ["--only=20 µs", "--trials=1", "--found=1", "--peers=1", "--seconds=0.05", "--condition=quiet"]
    verdicts.main([*options, "--out", str(tmp_path)])
    records = json.loads((tmp_path / "verdicts.json").read_text(encoding="utf-8"))["runs"][0]["records"]
    assert {(record["way"], record["subject"]) for record in records} == {
        (way, subject) for way in [*WAYS, *PEERS] for subject in (AGAIN, MORE)
    }
    assert all(isinstance(record["flagged"], bool) for record in records)
