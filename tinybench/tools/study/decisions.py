"""The decisions of a study: whether INT8 and FP16 pay, which variant to ship, and which meet the requirements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tinybench.comparison import compare
from tinybench.pareto import Requirements
from tinybench.quantize import int8_pays
from tinybench.result import BenchmarkResult
from tinybench.support.basics.numbers import with_ends
from tinybench.support.basics.result_text import scale_unit
from tinybench.support.choices.requirement_files import observed
from tinybench.support.comparisons.verdict import Comparison
from tinybench.tools.study.gains import points
from tinybench.tools.study.variants import FP32, SKLEARN

if TYPE_CHECKING:
    from tinybench.tools.study.variants import Variant

_WORTH_IT = 0.02  # a more complex form must be faster by more than this proportion to be shipped


def study_rule(
    variants: Mapping[str, Variant], latency: Mapping[str, BenchmarkResult], accuracy: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Judge each INT8 and FP16 variant by the rule `int8_pays`. Return a verdict and a reason for each variant."""
    rule = {}
    for name, variant in variants.items():
        if variant.precision not in ("int8", "float16") and not variant.fake:
            continue
        if variant.fake:
            rule[name] = {"verdict": "no INT8", "why": f"{variant.note}: its latency and answers are those of {FP32}"}
            continue
        versus: Comparison = compare(latency[name], latency[FP32], names=(name, FP32))
        low, high = accuracy[name]["loss_ci"]
        verdict = int8_pays((low, high), versus.ratio_ci)
        lost = f"accuracy lost {points(low, high)}"
        apart = f"probabilities differ by up to {accuracy[name]['largest_difference']:.2g}"
        why = f"{variant.note}; {versus}; {lost}; {apart}"
        if variant.saturates:
            verdict, why = "saturates", f"its products can saturate on this processor; {why}"
        rule[name] = {"verdict": verdict, "why": why}
    return rule


def study_decision(
    batch: int,
    variants: Mapping[str, Variant],
    latency: Mapping[str, BenchmarkResult],
    accuracy: Mapping[str, Mapping[str, Any]],
    met: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Choose the variant to ship at one batch size. Return the choice with the verdicts of `study_rule`.

    `variants` is ordered from simple to complex. A variant is only preferred to a simpler one if it is shown to be
    faster by over 2 %. It must also meet the requirements (`met` is the result of `study_requirements`). A fake
    variant, which is called INT8 but computes without integers, is never shipped. Neither is a variant whose integer
    arithmetic can saturate. An INT8 or FP16 variant that does not pay is shipped only if no other variant meets the
    requirements. If no variant meets the requirements, ``ship`` is None and ``sentence`` gives the smallest shortfall.
    """
    rule = study_rule(variants, latency, accuracy)
    sound = [name for name, variant in variants.items() if not variant.fake and not variant.saturates]
    left = sound if met is None else [name for name in sound if name in met["meet"]]
    if not left:
        assert met is not None
        return {"batch_size": batch, "ship": None, "sentence": f"none meets the requirements: {met['nearest']}"} | {
            "rule": rule
        }
    paying = [name for name in left if name not in rule or rule[name]["verdict"] == "pays"]
    ship, *others = paying or left
    for name in others:
        if compare(latency[name], latency[ship]).ratio_ci[1] < 1 - _WORTH_IT:
            ship = name
    factor, unit = scale_unit(latency[ship].median, "s")
    parts = [f"{latency[ship].median / factor:.3g} {unit} a call"]
    for baseline in (SKLEARN, FP32):
        if baseline != ship:
            found = compare(latency[baseline], latency[ship])
            parts.append(f"{baseline} takes {with_ends(found.ratio, found.ratio_ci, unit='times as long')}")
    parts.append(f"accuracy {accuracy[ship]['accuracy']:.4f}")
    if not paying:
        parts.append("by the rule it does not pay, but nothing else meets the requirements")
    sentence = f"ship {ship}: {', '.join(parts)}"
    return {"batch_size": batch, "ship": ship, "sentence": sentence, "rule": rule}


def sentence_to_act_on(decisions: Sequence[Mapping[str, Any]]) -> str:
    """Summarise the decisions for all batch sizes in one sentence."""
    if not decisions:
        return "Nothing was measured to the end yet."
    groups: dict[str, list[str]] = {}
    for decision in decisions:
        groups.setdefault(decision["sentence"].partition(":")[0], []).append(str(decision["batch_size"]))
    if len(groups) == 1 and len(decisions) > 1 and decisions[0]["ship"]:
        return f"Ship {decisions[0]['ship']} at every batch size ({', '.join(groups.popitem()[1])} rows)."
    if len(decisions) == 1:
        return f"At batch {decisions[0]['batch_size']}: {decisions[0]['sentence']}."
    if not any(decision["ship"] for decision in decisions):
        first = decisions[0]
        return f"Ship none: {first['sentence']} (at batch {first['batch_size']}; for the others see below)."
    told = [f"{what} at batch {', '.join(batches)}" for what, batches in groups.items()]
    return f"{told[0][0].upper()}{told[0][1:]}; {'; '.join(told[1:])}."


def study_requirements(requirements: Requirements, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Check the variants at one batch size against the user's requirements.

    In the returned dict, ``meet`` lists the variants that meet all requirements, fastest first. ``broken`` maps every
    remaining variant to the reasons why it is rejected. If no variant meets all requirements, ``nearest`` describes the
    variant with the smallest shortfall.
    """
    known = ("latency", "latency_p95", "accuracy", "throughput", "energy")
    meet, broken, short = [], {}, dict[str, tuple[float, str]]()
    asked = {name.partition("_")[0] for name in requirements.limits()}
    for row in sorted(rows, key=lambda row: float(row["latency"])):
        taken = [row[n] for n in ("memory_import", "memory_load", "memory_first_call") if row.get(n) is not None]
        candidate = {name: row[name] for name in known if row.get(name) is not None}
        candidate |= {"memory": sum(taken)} if taken else {}
        missing = [f"its {metric} was not measured" for metric in sorted(asked) if metric not in candidate]
        why = missing or requirements.violations(candidate)
        if why and not missing:
            short[row["variant"]] = _shortfall(requirements, candidate)
        for fault in ("saturates", "fake"):
            if row.get(fault):
                why = ["its products can saturate on this processor" if fault == "saturates" else "it is no INT8", *why]
                short.pop(row["variant"], None)
        if why:
            broken[row["variant"]] = why
        else:
            meet.append(row["variant"])
    found = {"batch_size": rows[0]["batch_size"], "meet": meet, "broken": broken, "nearest": None}
    if not meet:
        name, (_, told) = min(short.items(), key=lambda item: item[1][0], default=("", (0.0, "")))
        found["nearest"] = f"nearest is {name}, short by {told}" if name else "none was measured in all they limit"
    return found


def _shortfall(requirements: Requirements, candidate: Mapping[str, Any]) -> tuple[float, str]:
    """Return a candidate's largest violation of a limit, as a proportion of the limit, and a text on all violations."""
    missed = []
    for name, limit in requirements.limits().items():
        got = observed(candidate, name)
        gap = limit - got if "_min" in name else got - limit
        if gap > 0:
            missed.append((gap / limit if limit else math.inf, f"{gap:.3g} of {name} {limit:g} (it has {got:.4g})"))
    return max(share for share, _ in missed), " and ".join(told for _, told in missed)
