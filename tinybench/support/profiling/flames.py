"""The output of a profile as a flame graph, or as a file for the viewers speedscope and Perfetto."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.short_reprs import short_repr

__all__ = ["flame_figure", "flame_svg", "save_flame", "save_perfetto", "save_speedscope"]

ROW, TEXT, DEEPEST = 19, 12, 40  # row height in px, font size in px, maximum number of nested calls
SLIMMEST, NAMED = 0.002, 0.05  # the smallest fraction of the width for a box, and for a box with a name
# tints of Okabe's and Ito's colours on which black text is legible; each source file has a tint besides its name
TINTS = ["#9fcbe8", "#f6c98a", "#8fd6bf", "#e6bcd3", "#f3ea8e", "#f0b391", "#c9c9c9"]


class ProfileData(Protocol):
    """The attributes of a `stacks.Profile` that are needed to draw and save it."""

    samples: list[Any]
    how: str

    @property
    def seconds(self) -> float:
        """The total time in seconds that the samples stand for."""

    @property
    def trunk(self) -> int:
        """The number of outermost functions that are left out of the graph."""

    @property
    def shares(self) -> Any:
        """The table of functions and their shares of the time."""

    def by_stack(self) -> dict[tuple[str, ...], float]:
        """Return the seconds of each stack."""


def shared_depth(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the number of functions that two stacks share, counted from the outermost."""
    return next((depth for depth, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@dataclass
class Box:
    """A function in the graph. `seconds` includes the time of the functions that it calls, `own` does not."""

    name: str
    seconds: float = 0.0
    own: float = 0.0
    calls: dict[str, Box] = field(default_factory=dict)

    __repr__ = short_repr


def tree(profile: ProfileData) -> Box:
    """Return the calls of a profile as a tree. A function that calls itself directly becomes one box."""
    root = Box("all")
    for stack, seconds in profile.by_stack().items():
        box = root
        box.seconds += seconds
        for name, _ in groupby(stack):
            box = box.calls.setdefault(name, Box(name))
            box.seconds += seconds
        box.own += seconds
    return next(iter(root.calls.values())) if len(root.calls) == 1 else root


def placed(root: Box) -> Iterator[tuple[Box, int, float]]:
    """Yield each box that is large enough to be drawn, with its depth and its left edge as a fraction of the width."""
    waiting = [(root, 0, 0.0)]
    while waiting:
        box, depth, left = waiting.pop()
        yield box, depth, left
        for call in sorted(box.calls.values(), key=lambda call: -call.seconds):
            if call.seconds >= SLIMMEST * root.seconds and depth + 1 < DEEPEST:
                waiting.append((call, depth + 1, left))
            left += call.seconds / root.seconds


def flame_svg(profile: ProfileData) -> str:
    """Return the flame graph as SVG. The graph fills the available width. The font size does not depend on the width.

    The outermost function is at the top, with the functions that it calls below it. The width of a box shows its share
    of the time. A tooltip shows the name of a box, and its shares of the time with and without the functions it calls.
    """
    root = tree(profile)
    boxes = list(placed(root)) if root.seconds else []
    files = sorted({_file(box.name) for box, _, _ in boxes})
    height = ROW * (1 + max((depth for _, depth, _ in boxes), default=0))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(flame_in_words(profile))}" '
        f'width="100%" height="{height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{TEXT}">'
    ]
    for box, depth, left in boxes:
        share = box.seconds / root.seconds
        told = f"{box.name}: {100 * share:.1f} % of the time, itself {100 * box.own / root.seconds:.1f} %"
        tint = TINTS[files.index(_file(box.name)) % len(TINTS)]
        name = f'<text x="4" y="{ROW - 6}">{html.escape(_short(box.name, share))}</text>' if share >= NAMED else ""
        parts.append(
            f'<svg x="{left:.3%}" y="{depth * ROW}" width="{share:.3%}" height="{ROW}"><title>{html.escape(told)}'
            f'</title><rect width="100%" height="{ROW}" fill="{tint}" stroke="#555" stroke-width="0.7"/>{name}</svg>'
        )
    return "".join([*parts, "</svg>"])


def _short(name: str, share: float) -> str:
    """Return the text in a box. The most important part comes first because the right end may be cut off."""
    function, _, file = name.rpartition(" (")
    return f"{function.rpartition('.')[2]} {100 * share:.0f} %  ({file}"


def _file(name: str) -> str:
    return name.rpartition("(")[2]


def flame_in_words(profile: ProfileData) -> str:
    """Return a description of the flame graph in words, for readers who cannot see it."""
    if not profile.samples:
        return "Flame graph without boxes: nothing ran long enough to be looked at."
    rows = profile.shares.rows[:5]
    parts = "; ".join(
        f"{row['function']} itself {row['itself']}, with what it calls {row['with what it calls']}" for row in rows
    )
    return f"Flame graph of {profile.seconds:.3g} s. The functions with the largest share: {parts}."


def flame_figure(profile: ProfileData) -> str:
    """Return the flame graph as HTML, with a caption and a table of shares below the graph."""
    said = (
        f"{profile.seconds:.3g} s from left to right, sorted by share; below each function what it calls. One file has "
        f"one colour. {profile.how[:1].upper() + profile.how[1:]}."
    )
    return (
        f'<figure style="margin:0;max-width:960px">{flame_svg(profile)}<figcaption>{html.escape(said)}</figcaption>'
        f"<details><summary>The shares as a table</summary>{profile.shares.html()}</details></figure>"
    )


def save_flame(profile: ProfileData, path: str | Path) -> None:
    """Write the flame graph as SVG if the path ends in ``.svg``, otherwise as an HTML page with the table of shares."""
    page = flame_svg(profile)
    if Path(path).suffix.lower() != ".svg":
        page = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            "<title>Flame graph</title><style>:root{color-scheme:light dark}body{font-family:system-ui;margin:1rem}"
            f"figure{{max-width:none!important}}</style><h1>Where the time went</h1>{flame_figure(profile)}</html>\n"
        )
    Path(path).write_text(page, encoding="utf-8")


def save_speedscope(profile: ProfileData, path: str | Path) -> None:
    """Write a file for https://www.speedscope.app. Its views are in order of time, "left heavy", or a table."""
    trunk, frames = profile.trunk, dict[str, int]()
    samples = [[frames.setdefault(name, len(frames)) for name in sample.stack[trunk:]] for sample in profile.samples]
    page = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "tinybench",
        "name": Path(path).name,
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": [
            {
                "type": "sampled",
                "name": number_of(len(samples), "sample"),
                "unit": "seconds",
                "startValue": 0,
                "endValue": profile.seconds,
                "samples": samples,
                "weights": [sample.seconds for sample in profile.samples],
            }
        ],
    }
    _write(page, path)


def save_perfetto(profile: ProfileData, path: str | Path) -> None:
    """Write a trace that https://ui.perfetto.dev and chrome://tracing open.

    Each series of consecutive samples in which a function was on the stack becomes one slice with its name.
    """
    here = {"pid": 1, "tid": 1}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", **here, "args": {"name": "tinybench profile"}},
        {"ph": "M", "name": "thread_name", **here, "args": {"name": "looked at"}},
    ]
    trunk, begin = profile.trunk, (profile.samples[0].start if profile.samples else 0.0)
    open_slices: list[dict[str, Any]] = []
    now = 0.0
    for sample in profile.samples:
        start, stack = max(now, (sample.start - begin) * 1e6), sample.stack[trunk:]
        is_next = start <= now + 1e-3  # not after a gap
        kept = shared_depth([slice_["name"] for slice_ in open_slices], stack) if is_next else 0
        _close(open_slices, kept, now)
        for name in stack[kept:]:
            open_slices.append({"ph": "X", "name": name, "cat": _file(name).rstrip(")"), "ts": start, **here})
            events.append(open_slices[-1])
        now = start + sample.seconds * 1e6
    _close(open_slices, 0, now)
    _write({"traceEvents": events, "displayTimeUnit": "ms"}, path)


def _close(open_slices: list[dict[str, Any]], kept: int, now: float) -> None:
    for slice_ in open_slices[kept:]:
        slice_["dur"] = now - slice_["ts"]
    del open_slices[kept:]


def _write(page: dict[str, Any], path: str | Path) -> None:
    Path(path).write_text(json.dumps(page, separators=(",", ":")) + "\n", encoding="utf-8")
