"""The evaluation of a study's measurements: gains with intervals, warnings, and verdicts on widely repeated claims."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from tinybench.comparison import compare
from tinybench.result import BenchmarkResult
from tinybench.support.basics.dependence import caution, is_dependent
from tinybench.support.basics.numbers import with_digits, with_ends
from tinybench.support.comparisons.ratio_words import gain_text
from tinybench.tools.study.variants import DYNAMIC, FP32, NUMPY, SKLEARN, STATIC


def study_gains(
    batch: int, latency: Mapping[str, BenchmarkResult], energy: Mapping[str, BenchmarkResult], fakes: Collection[str]
) -> list[dict[str, Any]]:
    """Return each variant's gains in time and energy over each baseline at one batch size.

    The variants in `fakes` are left out.
    """
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
    """Return warnings if rounds vary, are autocorrelated, or give ratios that differ from the ratio of medians."""
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


# a claim of "28 %" counts as 23 to 33 %, and "75 % smaller" counts as 73 to 77 %
_CLAIMS = (
    ("ONNX FP32 is 2–3 times as fast as scikit-learn", FP32, SKLEARN, "latency", 2.0, 3.0),
    ("INT8 is 3–5 times as fast as scikit-learn", DYNAMIC, SKLEARN, "latency", 3.0, 5.0),
    ("INT8 takes 28 % less time than FP32", DYNAMIC, FP32, "latency", 1 / 0.77, 1 / 0.67),
    ("INT8 takes 30–50 % less energy than FP32", DYNAMIC, FP32, "energy", 1 / 0.7, 1 / 0.5),
)


def claim_verdict(interval: tuple[float, float], low: float, high: float) -> str:
    """Compare the confidence interval of a measured value with a claimed range.

    Return ``"as claimed"`` if the interval lies within the range, ``"more than claimed"`` or ``"less than claimed"`` if
    the interval lies wholly above or below the range, and otherwise ``"cannot tell"``.
    """
    if low <= interval[0] and interval[1] <= high:
        return "as claimed"
    if interval[0] > high:
        return "more than claimed"
    return "less than claimed" if interval[1] < low else "cannot tell"


def _saved(times: float, ends: tuple[float, float], what: str = "") -> str:
    """Format a gain factor as percent saved: ``31 % less (29 to 52 %)`` or ``1 % less (5 % more to 7 % less)``."""
    middle, low, high = (100 * (1 - 1 / each) for each in (times, *ends))
    word = "less" if middle >= 0 else "more"

    def whole(percent: float) -> str:
        return f"{abs(percent):.0f}"

    if low < 0 < high:
        return f"{whole(middle)} % {word}{what} ({whole(low)} % more to {whole(high)} % less)"
    near, far = sorted((low, high), key=abs)
    return f"{whole(middle)} % {word}{what} ({whole(near)} to {whole(far)} %)"


def points(low: float, high: float) -> str:
    """Format an interval of proportions as text in percentage points."""
    return f"{' to '.join(with_digits(100 * end, 100 * (high - low)) for end in (low, high))} points"


def study_claims(
    gains: Sequence[Mapping[str, Any]], sizes: Mapping[str, int], accuracy: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Compare widely repeated claims with the measurements, and return one row for each comparison.

    If only processor time was measured instead of energy, the verdict on a claim about energy is "energy not measured".
    """
    table = []
    for claim, name, baseline, metric, low, high in _CLAIMS:
        for gain in gains:
            kinds = (DYNAMIC, STATIC) if name == DYNAMIC else (name,)
            same = gain["variant"] in kinds and gain["baseline"] == baseline
            if same and gain["gain"] is not None and (gain["metric"] == "latency") == (metric == "latency"):
                ends = (gain["gain_ci"][0], gain["gain_ci"][1])
                measured = gain_text(gain["gain"], ends, "times as fast")
                if baseline == FP32:  # the claims with this baseline are about percent saved, not about a factor
                    processor = " processor time" if gain["metric"] == "cpu_time" else ""
                    measured = _saved(gain["gain"], ends, processor)
                condition = f"{gain['variant']}, batch {gain['batch_size']}"
                verdict = claim_verdict(ends, low, high)
                if gain["metric"] == "cpu_time":  # without joules, the value cannot decide the claim
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
                    "measured": f"{points(low, high)} lost",
                    "verdict": "as claimed" if high < 0.01 else "more than claimed" if low >= 0.01 else "cannot tell",
                },
            ]
    return table
