"""A trade-off study as one HTML page to share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tinybench.suite import write_text
from tinybench.support.basics.pages import Page, Picture, Section
from tinybench.support.choices.ranked_values import LATENCY_ACCURACY
from tinybench.support.reports.study_figures import draw_frontier
from tinybench.tools.study.tradeoff_result import TradeoffStudy

__all__ = ["write_page"]


def write_page(study: TradeoffStudy, folder: Path) -> Path:
    """Write the study as ``report.html``, which needs no other file, and return its path."""
    pictures = {f"batch {batch}": _picture(study, batch) for batch in study.latencies if _is_whole(study, batch)}
    _, *others = sorted(pictures, key=lambda name: -int(name.split()[1])) or [""]
    tables = study.tables()
    sections = [
        Section("What to ship", _HOW, [_decision(d) for d in study.decisions], sorted(others, key=len)),
        *(
            Section(f"Batch {batch}" if batch else "Not timed yet", _COLUMNS, _of_batch(tables["measured"], batch), [])
            for batch in dict.fromkeys(row["batch"] for row in tables["measured"])
        ),
        Section("Does it pay?", _RULE, tables["by the rule"], []),
        *_requirements(study),
        Section("Claims often made, and what was measured", "", [dict(row) for row in tables["claims"]], []),
        Section("Conditions", "The numbers hold under these, and may turn round under others.", _conditions(study), []),
        Section("Notes", "", [{"note": note} for note in study.notes], []),
    ]
    kept = [section for section in sections if section.rows]
    file = folder / "report.html"
    page = Page("Which form of this model to ship", study.sentence, pictures, kept, study.cautions)
    write_text(file, page.html())
    return file


_HOW = (
    "The simplest form that none is proven to beat by more than 2 %, among those that meet the requirements; never a "
    "file that is INT8 by name alone, nor one whose products may saturate."
)
_COLUMNS = (
    "Latency is the median of the rounds with its 95 % interval; how many times as fast (×) is the median of the "
    "ratios within each round, which a busy machine does not change."
)
_RULE = (
    "INT8 and FP16 pay if accuracy falls by less than 1 point and latency by more than 20 %, both by 95 % intervals."
)


def _is_whole(study: TradeoffStudy, batch: int) -> bool:
    """Return whether a batch size was measured completely, so that its frontier can be drawn."""
    return any(decision["batch_size"] == batch for decision in study.decisions)


def _picture(study: TradeoffStudy, batch: int) -> Picture:
    points = study.frontier(batch)
    told = "; ".join(
        f"{p['model']} {p['latency'].median * 1e6:.1f} µs and {p['accuracy'].values[0]:.2%}" for p in points
    )
    likely = ", ".join(f"{p['model']} {p['probability']:.0%}" for p in points if p["probability"] > 0.01)
    return Picture(
        draw_frontier(points, LATENCY_ACCURACY),
        f"Accuracy against latency at batch {batch}, with the Pareto frontier as a staircase: {told}.",
        f"Batch {batch}. How probable it is that a form lies on the frontier, by resampling rows and rounds: {likely}. "
        "Levels of optimisation are in the table below.",
    )


def _decision(decision: Mapping[str, Any]) -> dict[str, str]:
    why = decision["sentence"].removeprefix(f"ship {decision['ship']}: ")
    return {"batch": str(decision["batch_size"]), "ship": decision["ship"] or "none", "why": why}


def _of_batch(rows: Iterable[Mapping[str, str]], batch: str) -> list[dict[str, str]]:
    return [{name: value for name, value in row.items() if name != "batch"} for row in rows if row["batch"] == batch]


def _requirements(study: TradeoffStudy) -> list[Section]:
    rows = [
        {"batch": str(entry["batch_size"]), "variant": name, "meets them": "no" if why else "yes", "why not": why}
        for entry in study.requirements
        for name, why in [
            *((name, "") for name in entry["meet"]),
            *((name, "; ".join(broken)) for name, broken in entry["broken"].items()),
        ]
    ]
    return [Section("Requirements", "As you gave them.", rows, [])] if rows else []


def _conditions(study: TradeoffStudy) -> list[dict[str, str]]:
    system = study.system
    loads = ", ".join(f"{load:.1f}" for load in system["load_average"])
    shown = {**system["conditions"], "measured from": system["time"], "load average then": loads}
    return [{"condition": name, "value": value or "unknown"} for name, value in shown.items()]
