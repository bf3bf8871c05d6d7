"""The result of a trade-off study, with its tables and files."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinybench.pareto import membership_probability
from tinybench.result import BenchmarkResult
from tinybench.suite import write_text
from tinybench.support.basics.numbers import with_ends
from tinybench.support.basics.result_text import json_safe
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table, csv_text
from tinybench.support.comparisons.ratio_words import gain_text
from tinybench.tools.study.decisions import sentence_to_act_on
from tinybench.tools.study.variants import FP32, SKLEARN

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class TradeoffStudy:
    """The result of a trade-off study. ``str`` formats the result as text.

    Attributes
    ----------
    rows : list of dict
        One dict for each variant and batch size. Values are in SI units; a value that was not measured is None.
    gains : list of dict
        The factors by which each variant reduces latency and energy compared with each baseline. A factor is the median
        of paired ratios, with an interval.
    decisions : list of dict
        For each batch size: the variant to ship, a sentence with the reasons, and the rule's verdict on each variant.
    claims : list of dict
        Widely repeated claims compared with the measurements.
    requirements : list of dict
        For each batch size: the variants that meet the user's requirements, fastest first, and the reasons why
        other variants do not meet them.
    notes : list of str
        Further remarks, such as variants that could not be made.
    system : dict
        A description of the machine at the beginning of the study.
    cautions : list of str
        Reasons to read the numbers with care, such as a busy machine or autocorrelated rounds.
    latencies : dict
        The latencies of all rounds, by batch size and then by name of the variant.
    accuracies : dict
        The accuracy of each variant. The metadata record which rows the variant classifies correctly.
    """

    rows: list[dict[str, Any]]
    gains: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    requirements: list[dict[str, Any]]
    notes: list[str]
    system: dict[str, Any]
    cautions: list[str] = field(default_factory=list)
    latencies: dict[int, dict[str, BenchmarkResult]] = field(default_factory=dict)
    accuracies: dict[str, BenchmarkResult] = field(default_factory=dict)

    __repr__ = short_repr

    @property
    def sentence(self) -> str:
        """The recommendation in one sentence."""
        return sentence_to_act_on(self.decisions)

    def frontier(self, batch: int) -> list[dict[str, Any]]:
        """Return each variant's latency, accuracy and probability of lying on the Pareto frontier.

        Fakes (called INT8, but computed without integers) and variants with reduced graph optimisation are left out.
        """
        others = {row["variant"] for row in self.rows if row.get("fake") or row.get("optimization", "all") != "all"}
        points = [
            {"model": name, "latency": latency, "accuracy": self.accuracies[name]}
            for name, latency in self.latencies[batch].items()
            if name not in others
        ]
        shares = membership_probability(points)
        return [{**point, "probability": share} for point, share in zip(points, shares, strict=True)]

    def write(self, folder: str | Path) -> list[Path]:
        """Write ``hardware_tradeoffs.csv``, ``…_rounds.csv`` and ``…_summary.json``; return their paths."""
        folder = Path(folder)
        flat = [{k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()} for row in self.rows]
        rounds = [
            {"batch_size": batch, "variant": name, "round": number, "latency": value}
            for batch, by_name in self.latencies.items()
            for name, result in by_name.items()
            for number, value in enumerate(result.values, 1)
        ]
        parts = ("sentence", "gains", "decisions", "claims", "requirements", "cautions", "notes", "system")
        rule = "INT8 pays if accuracy falls by less than 1 point and latency by more than 20 %, both by 95 % intervals"
        summary = json_safe({"rule": rule, **{name: getattr(self, name) for name in parts}}, "study")
        files = {
            folder / "hardware_tradeoffs.csv": csv_text(flat),
            folder / "hardware_tradeoffs_rounds.csv": csv_text(rounds),
            folder / "hardware_tradeoffs_summary.json": json.dumps(summary, indent=1, ensure_ascii=False) + "\n",
        }
        for path, text in files.items():
            write_text(path, text)
        return list(files)

    def tables(self) -> dict[str, list[dict[str, str]]]:
        """Return the main tables as a dict from caption to rows. Every cell is text."""
        speed = {(g["batch_size"], g["variant"], g["baseline"]): g for g in self.gains if g["metric"] == "latency"}

        def gain(row: Mapping[str, Any], baseline: str) -> str:
            found = speed.get((row["batch_size"], row["variant"], baseline))
            if found is None or found["gain"] is None:
                return "–"
            return gain_text(found["gain"], found["gain_ci"])

        def number(row: Mapping[str, Any], name: str, scale: float, form: str) -> str:
            return "–" if row.get(name) is None else f"{row[name] / scale:{form}}"

        def latency(row: Mapping[str, Any]) -> str:
            if row.get("latency") is None:
                return "–"
            return with_ends(row["latency"] * 1e6, [end * 1e6 for end in row.get("latency_ci") or ()], "–")

        measured = [
            {
                "batch": str(row["batch_size"]),
                "variant": row["variant"],
                "latency (µs)": latency(row),
                "× scikit-learn": gain(row, SKLEARN),
                "× ONNX FP32": gain(row, FP32),
                "accuracy": number(row, "accuracy", 1, ".4f"),
                "with noise": number(row, "accuracy_with_noise", 1, ".4f"),
                "largest difference": number(row, "largest_difference", 1, ".2g"),
                "file (kB)": number(row, "file_size", 1e3, ".0f"),
                "GB/s": number(row, "effective_bandwidth", 1e9, ".2g"),
                "what it is": row.get("note") or "–",
            }
            for row in self.rows
        ]
        judged = dict.fromkeys(name for d in self.decisions for name in d["rule"])
        decided = [
            {"batch": str(d["batch_size"]), "ship": d["ship"] or "none"}
            | {name: d["rule"][name]["verdict"] if name in d["rule"] else "–" for name in judged}
            for d in self.decisions
        ]
        return {"measured": measured, "by the rule": decided, "claims": self.claims}

    def __str__(self) -> str:
        """Return the recommendation, tables, decisions, requirements, cautions and notes as text."""
        lines = [self.sentence, ""]
        for caption, rows in self.tables().items():
            lines += [caption, textwrap.indent(Table(rows).text(), "  "), ""]
        lines += [f"batch {decision['batch_size']}: {decision['sentence']}" for decision in self.decisions]
        for entry in self.requirements:
            lines.append(f"batch {entry['batch_size']}, requirements: {', '.join(entry['meet']) or 'none meets them'}")
            lines += [f"  {name}: {'; '.join(why)}" for name, why in entry["broken"].items()]
        told = [*(f"caution: {line}" for line in self.cautions), *(f"note: {note}" for note in self.notes)]
        return "\n".join([*lines, *told]).rstrip()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        tables = [Table(rows, caption) for caption, rows in self.tables().items()]
        told = [{"to know": text} for text in [self.sentence, *self.cautions, *self.notes]]
        return {"text/plain": str(self), "text/html": "".join(t.html() for t in [*tables, Table(told)])}
