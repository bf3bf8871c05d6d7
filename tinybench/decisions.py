# Written by "autograder export" from modules/12_quantize/12_quantize.ipynb: edit the notebook, not this file.

"""What the numbers of a study say: gains, the rule, what to ship, requirements, claims, and when to be careful."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybench.comparison import compare
from tinybench.pareto import Requirements, observed
from tinybench.quantize import int8_pays
from tinybench.result import BenchmarkResult, scale_unit
from tinybench.support.basics.dependence import caution, is_dependent
from tinybench.support.basics.numbers import with_digits, with_ends
from tinybench.support.comparisons.ratio_words import gain_text
from tinybench.support.comparisons.verdict import Comparison
from tinybench.variants import DYNAMIC, FP32, NUMPY, SKLEARN, STATIC

if TYPE_CHECKING:
    from tinybench.variants import Variant

_WORTH_IT = 0.02  # a form that is not simpler has to be faster by more than this


def study_gains(
    batch: int, latency: Mapping[str, BenchmarkResult], energy: Mapping[str, BenchmarkResult], fakes: Collection[str]
) -> list[dict[str, Any]]:
    """Return how many times less time and energy a variant takes than each baseline, at one batch size; no fakes."""
    gains = []
    for baseline in (SKLEARN, NUMPY, FP32):
        for name in latency:
            if baseline in latency and name != baseline and name not in (SKLEARN, NUMPY, *fakes):
                kinds = [("latency", latency)]
                if name in energy and baseline in energy:
                    kinds.append((energy[name].metric_name, energy))
                for metric, results in kinds:
                    positive = min(results[baseline].min_val, results[name].min_val) > 0
                    found = compare(results[baseline], results[name], names=(baseline, name)) if positive else None
                    gains.append(
                        {
                            "batch_size": batch,
                            "variant": name,
                            "baseline": baseline,
                            "metric": metric,
                            "gain": found.ratio if found is not None else None,
                            "gain_ci": list(found.ratio_ci) if found is not None else None,
                            "quotient_of_medians": results[baseline].median / results[name].median
                            if positive
                            else None,
                            "p_value": found.p_value if found is not None else None,
                            "rounds": results[name].count,
                            "measured": results[name].measured,
                        }
                    )
    return gains


def study_cautions(batch: int, latency: Mapping[str, BenchmarkResult], gains: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences on rounds that vary, depend on one another, or disagree with the medians they belong to."""
    found = []
    spread = {name: (r.percentile(90) - r.percentile(10)) / r.median for name, r in latency.items() if r.count > 1}
    varies = median(spread.values()) if spread else 0.0
    if varies > 0.1:
        found.append(
            f"batch {batch}: the machine was busy or changed its clock: absolute times vary by {varies:.0%} from round "
            "to round (10th to 90th percentile); the ratios are of the same rounds and hold"
        )
    dependent = [name for name, result in latency.items() if is_dependent(result.values)]
    if dependent:
        first = caution(latency[dependent[0]].values)
        found.append(
            f"batch {batch}: rounds of {len(dependent)} of {len(latency)} variants resemble those before them, such as "
            f"{dependent[0]}: {first}"
        )
    logs = {name: np.log(np.divide(r.values, latency[FP32].values)).tolist() for name, r in latency.items()}
    drifting = [name for name, values in logs.items() if name != FP32 and is_dependent(values)]
    if drifting:
        names = "; ".join(drifting)
        found.append(
            f"batch {batch}: ratios to {FP32} resemble those before them ({names}): intervals may be too narrow"
        )
    apart = []
    for gain in gains:
        if gain["metric"] == "latency" and gain["gain"] is not None:
            low, high = gain["gain_ci"]
            if not low <= gain["quotient_of_medians"] <= high:
                apart.append((abs(math.log(gain["quotient_of_medians"] / gain["gain"])), gain))
    if apart:
        gain = max(apart, key=lambda pair: pair[0])[1]
        found.append(
            f"batch {batch}: for {len(apart)} of the ratios the quotient of two latencies is another; the most for "
            f"{gain['variant']} against {gain['baseline']}: the medians give {gain['quotient_of_medians']:.2f} times, "
            f"the rounds {with_ends(gain['gain'], gain['gain_ci'])}. The machine was "
            f"busy: absolute times vary by {varies:.0%}, the ratio holds"
        )
    return found


def study_rule(
    variants: Mapping[str, Variant], latency: Mapping[str, BenchmarkResult], accuracy: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Return what the rule says of each variant with other numbers than FP32, and why."""
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
        lost = f"accuracy lost {_points(low, high)}"
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
    """Return what the rule says, and which variant to ship: the simplest that none is proven to beat by 2 %.

    Only what meets the requirements is shipped; no fake, nothing that saturates, and INT8 or FP16 that does not pay
    only where nothing else meets them. ``ship`` is None, and ``sentence`` says by how much, if none does.
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
    """Return the decisions of all batch sizes as one sentence."""
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
    """Return which variants meet the user's requirements, the fastest first, what the others break, and the nearest."""
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
    """Return by how much the worst broken limit is missed, as a share of it, and in words."""
    missed = []
    for name, limit in requirements.limits().items():
        got = observed(candidate, name)
        gap = limit - got if "_min" in name else got - limit
        if gap > 0:
            missed.append((gap / limit if limit else math.inf, f"{gap:.3g} of {name} {limit:g} (it has {got:.4g})"))
    return max(share for share, _ in missed), " and ".join(told for _, told in missed)


# "28 %" is taken as 23 to 33 %, "75 % smaller" as 73 to 77 %
_CLAIMS = (
    ("ONNX FP32 is 2–3 times as fast as scikit-learn", FP32, SKLEARN, "latency", 2.0, 3.0),
    ("INT8 is 3–5 times as fast as scikit-learn", DYNAMIC, SKLEARN, "latency", 3.0, 5.0),
    ("INT8 takes 28 % less time than FP32", DYNAMIC, FP32, "latency", 1 / 0.77, 1 / 0.67),
    ("INT8 takes 30–50 % less energy than FP32", DYNAMIC, FP32, "energy", 1 / 0.7, 1 / 0.5),
)


def claim_verdict(interval: tuple[float, float], low: float, high: float) -> str:
    """Set the interval of a measurement against a claimed range.

    ``"as claimed"`` if the interval lies within the range, ``"more than claimed"`` or ``"less than claimed"`` if
    wholly above or below it, else ``"cannot tell"``.
    """
    if low <= interval[0] and interval[1] <= high:
        return "as claimed"
    if interval[0] > high:
        return "more than claimed"
    return "less than claimed" if interval[1] < low else "cannot tell"


def _saved(times: float, ends: tuple[float, float], what: str = "") -> str:
    """Return a gain in times as what is saved: ``31 % less (29 to 52 %)``, or ``1 % less (5 % more to 7 % less)``."""
    middle, low, high = (100 * (1 - 1 / each) for each in (times, *ends))
    word = "less" if middle >= 0 else "more"

    def whole(percent: float) -> str:
        return f"{abs(percent):.0f}"

    if low < 0 < high:
        return f"{whole(middle)} % {word}{what} ({whole(low)} % more to {whole(high)} % less)"
    near, far = sorted((low, high), key=abs)
    return f"{whole(middle)} % {word}{what} ({whole(near)} to {whole(far)} %)"


def _points(low: float, high: float) -> str:
    """Return the ends of an interval of shares in points."""
    return f"{' to '.join(with_digits(100 * end, 100 * (high - low)) for end in (low, high))} points"


def study_claims(
    gains: Sequence[Mapping[str, Any]], sizes: Mapping[str, int], accuracy: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Compare widely repeated claims with what was measured; processor time in place of energy decides nothing."""
    table = []
    for claim, name, baseline, metric, low, high in _CLAIMS:
        for gain in gains:
            kinds = (DYNAMIC, STATIC) if name == DYNAMIC else (name,)
            same = gain["variant"] in kinds and gain["baseline"] == baseline
            if same and gain["gain"] is not None and (gain["metric"] == "latency") == (metric == "latency"):
                ends = (gain["gain_ci"][0], gain["gain_ci"][1])
                measured = gain_text(gain["gain"], ends, "times as fast")
                if baseline == FP32:  # these claims say how much less, not how many times
                    processor = " processor time" if gain["metric"] == "cpu_time" else ""
                    measured = _saved(gain["gain"], ends, processor)
                condition = f"{gain['variant']}, batch {gain['batch_size']}"
                verdict = claim_verdict(ends, low, high)
                if gain["metric"] == "cpu_time":  # no joules: whatever it is, it says nothing on the claim
                    verdict = "energy not measured"
                table.append({"claim": claim, "condition": condition, "measured": measured, "verdict": verdict})
    for name in (DYNAMIC, STATIC):
        if name in sizes:
            saved = 1 - sizes[name] / sizes[FP32]
            low, high = accuracy[name]["loss_ci"]
            table += [
                {
                    "claim": "INT8 files are 75 % smaller",
                    "condition": f"{name}, FP32 of {sizes[FP32] / 1e3:.0f} kB",
                    "measured": f"{saved:.1%}",
                    "verdict": claim_verdict((saved, saved), 0.73, 0.77),
                },
                {
                    "claim": "INT8 loses less than 1 point of accuracy",
                    "condition": name,
                    "measured": f"{_points(low, high)} lost",
                    "verdict": "as claimed" if high < 0.01 else "more than claimed" if low >= 0.01 else "cannot tell",
                },
            ]
    return table
