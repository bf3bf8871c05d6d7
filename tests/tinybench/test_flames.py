"""Flame graphs and files for speedscope and Perfetto: what they hold, and that others can read them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tinybench.support.profiling.flames import (
    DEEPEST,
    TINTS,
    flame_figure,
    flame_svg,
    save_flame,
    save_perfetto,
    save_speedscope,
)
from tinybench.support.profiling.stacks import Profile

SCHEMA = Path(__file__).parents[1] / "vendor" / "speedscope.schema.json"  # of speedscope 1.25 (MIT), dist/release
SVG = "{http://www.w3.org/2000/svg}"


class Look(NamedTuple):
    start: float
    stack: tuple[str, ...]
    seconds: float


LOOKS = [
    Look(0.0, ("start (a.py)", "main (a.py)", "load (b.py)"), 0.02),
    Look(0.02, ("start (a.py)", "main (a.py)", "Tree.walk (c.py)", "Tree.walk (c.py)", "<lambda> (c.py)"), 0.03),
    Look(0.05, ("start (a.py)", "main (a.py)", "Tree.walk (c.py)", "<lambda> (c.py)"), 0.01),
    Look(0.06, ("start (a.py)", "main (a.py)"), 0.04),
]
PROFILE = Profile(LOOKS, "by hand")


def boxes(profile: Profile) -> dict[str, dict[str, float]]:
    """Return left end, width and row of each box, by the name in its title."""
    found = {}
    for box in ET.fromstring(flame_svg(profile)).findall(f"{SVG}svg"):
        title = box.findtext(f"{SVG}title") or ""
        x, width = (float(box.attrib[key].rstrip("%")) for key in ("x", "width"))
        found[title.split(":")[0]] = {"x": x, "width": width, "y": float(box.attrib["y"])}
    return found


def test_boxes_are_as_wide_as_their_share_and_stand_below_their_callers() -> None:
    found = boxes(PROFILE)
    assert found.keys() == {"main (a.py)", "Tree.walk (c.py)", "<lambda> (c.py)", "load (b.py)"}
    widths = {name: box["width"] for name, box in found.items()}
    assert widths == {"main (a.py)": 100, "Tree.walk (c.py)": 40, "<lambda> (c.py)": 40, "load (b.py)": 20}
    assert found["Tree.walk (c.py)"]["x"] == 0  # the largest first
    assert found["load (b.py)"]["x"] == 40
    rows = [found[name]["y"] for name in ("main (a.py)", "Tree.walk (c.py)", "<lambda> (c.py)")]
    assert rows == [0, rows[1], 2 * rows[1]]
    assert rows[1] >= 12


def test_boxes_say_what_they_are() -> None:
    picture = flame_svg(PROFILE)
    assert "&lt;lambda&gt; (c.py): 40.0 % of the time, itself 40.0 %" in picture
    assert ">walk 40 %  (c.py)</text>" in picture
    root = ET.fromstring(picture)
    assert root.attrib["role"] == "img"
    assert "Tree.walk (c.py) itself 0.0 %, with what it calls 40.0 %" in root.attrib["aria-label"]


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("tint", TINTS)
def test_names_can_be_read_on_every_tint(tint: str) -> None:
    assert (luminance(tint) + 0.05) / 0.05 >= 7


def test_one_file_has_one_tint() -> None:
    tints: dict[str, set[str]] = {}
    for box in ET.fromstring(flame_svg(PROFILE)).findall(f"{SVG}svg"):
        rect = box.find(f"{SVG}rect")
        assert rect is not None
        tints.setdefault((box.findtext(f"{SVG}title") or "").split("(")[1].split(")")[0], set()).add(
            rect.attrib["fill"]
        )
    assert all(len(used) == 1 for used in tints.values())
    assert len(set.union(*tints.values())) == 3


def test_deep_and_slim_boxes_stay_out() -> None:
    deep = tuple(f"f{k} (a.py)" for k in range(3000))
    looks = [
        Look(0, deep, 1.0),
        Look(1, deep[:1], 1.0),
        *(Look(2, (deep[0], f"slim{k} (b.py)"), 1e-4) for k in range(500)),
    ]
    found = boxes(Profile(looks))
    assert len(found) == DEEPEST
    assert not any("slim" in name for name in found)


def test_a_profile_without_looks() -> None:
    empty = Profile([], "0 looks")
    assert "nothing ran long enough" in flame_svg(empty)
    assert "No samples: nothing ran long enough." in flame_figure(empty)


def test_pages_and_pictures(tmp_path: Path) -> None:
    save_flame(PROFILE, tmp_path / "flame.svg")
    assert ET.parse(tmp_path / "flame.svg").getroot().tag == f"{SVG}svg"
    save_flame(PROFILE, tmp_path / "flame.html")
    page = (tmp_path / "flame.html").read_text(encoding="utf-8")
    assert page.startswith('<!doctype html><html lang="en">')
    assert "color-scheme:light dark" in page
    assert "<table>" in page


def test_speedscope_can_read_it(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    save_speedscope(PROFILE, tmp_path / "p.json")
    page = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    jsonschema.validate(page, json.loads(SCHEMA.read_text(encoding="utf-8")))
    frames = [frame["name"] for frame in page["shared"]["frames"]]
    [told] = page["profiles"]
    stacks = [tuple(frames[k] for k in sample) for sample in told["samples"]]
    assert stacks == [look.stack[1:] for look in LOOKS]
    assert told["weights"] == [look.seconds for look in LOOKS]
    assert told["endValue"] == pytest.approx(sum(told["weights"]))


def slices(profile: Profile, file: Path) -> list[tuple[str, float, float]]:
    save_perfetto(profile, file)
    events: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
    assert {event["ph"] for event in events} <= {"M", "X"}
    found = [(event["name"], event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    for name, start, length in found:  # as the format wants it: slices of one thread lie within each other, or apart
        for other, begin, took in found:
            apart = start + length <= begin + 1e-3 or begin + took <= start + 1e-3
            within = begin >= start - 1e-3 and begin + took <= start + length + 1e-3
            assert apart or within or (start >= begin - 1e-3 and start + length <= begin + took + 1e-3), (name, other)
    return found


def test_neighbouring_looks_are_one_slice(tmp_path: Path) -> None:
    found = slices(PROFILE, tmp_path / "p.json")
    assert [(name, round(start), round(took)) for name, start, took in found] == [
        ("main (a.py)", 0, 100_000),
        ("load (b.py)", 0, 20_000),
        ("Tree.walk (c.py)", 20_000, 40_000),
        ("Tree.walk (c.py)", 20_000, 30_000),
        ("<lambda> (c.py)", 20_000, 30_000),
        ("<lambda> (c.py)", 50_000, 10_000),
    ]


def test_a_gap_ends_all_slices(tmp_path: Path) -> None:
    found = slices(Profile([Look(5.0, ("a", "b"), 0.01), Look(5.03, ("a", "b"), 0.01)]), tmp_path / "p.json")
    assert [(name, round(start), round(took)) for name, start, took in found] == [
        ("b", 0, 10_000),
        ("b", 30_000, 10_000),
    ]
    assert slices(Profile([]), tmp_path / "p.json") == []
