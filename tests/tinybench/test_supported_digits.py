"""Numbers have the digits that their interval supports: no text gives both ends of an interval fixed digits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import combinations_with_replacement
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.house import ROOT, files
from tests.tinybench.test_one_value import SAMPLES, VIEWS, parts, samples
from tinybench.comparison import compare, regression_gate
from tinybench.result import BenchmarkResult
from tinybench.shell.gate_run import GateRun
from tinybench.suite import dashboard_rows
from tinybench.support.basics.numbers import with_digits, with_ends
from tinybench.support.comparisons.ratio_words import gain_text
from tinybench.support.profiling.what_if_gains import Row, WhatIf
from tinybench.support.reports.sections import _pair_row
from tinybench.tools.roofline.batch_sizes import Gain, gains_table
from tinybench.tools.scaling.fitted_laws import Estimate

# the library says so itself, in a warning
pytestmark = pytest.mark.filterwarnings("ignore:.*a single value or row does not show any scatter")

# Two numbers with fixed digits and a dash or "to" between them.
FIXED = re.compile(r"\{[^{}]*:[^{}]*\.\d[fg%]\}[^{}]{0,4}(?:–| to )[^{}]{0,2}\{[^{}]*:[^{}]*\.\d[fg%]\}")
# Ranges, not intervals: of sessions, of measurements, of what a reason names.
RANGES = {
    "tinybench/shell/gate_run.py": "min(medians)",
    "tinybench/support/basics/result_report.py": "self.min_val",
    "tinybench/support/profiling/what_if_gains.py": "runs scatter too much",
    "tinybench/tools/history/pictures.py": "min(values)",
    "autograder/leaderboard/referee/referee.py": "varies too much",
}
ENDS = [(1.6, 1.71), (1.2, 2.6), (1.648, 1.6502), (0.5, 9.0)]
NUMBER = r"−?[\d,]+(?:\.\d+)?"
INTERVAL = re.compile(rf"({NUMBER})[^\d(−]*\([^\d−]*(?:95 % CI )?({NUMBER})(?: to |–)({NUMBER})")


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def step(text: str) -> float:
    """Return what the last digit of a number is worth."""
    return 10.0 ** -len(text.partition(".")[2])


def test_no_interval_has_fixed_digits() -> None:
    found = []
    for path in files("tinybench", "autograder"):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(("autograder/checks/", "tinybench/course/lessons/")):  # exact values, and ranges in captions
            continue
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if FIXED.search(line)]
        found += [(name, line) for line in lines if RANGES.get(name, "\0") not in line]
    assert found == []


def shown(value: float, ends: tuple[float, float]) -> dict[str, str]:
    """Return what tables and sentences make of a number and its interval."""
    low, high = ends
    row = {
        "model_a": "a", "model_b": "b", "metric": "latency", "unit": "s", "ratio": value, "ratio_lower": low,
        "ratio_upper": high, "p_corrected": 0.01, "verdict": "slower", "test": "sign",
    }  # fmt: skip
    gained = Row(2, value / 10, low / 10, high / 10, 0.2, 0.0)
    return {
        "with_ends": with_ends(value, ends),
        "report": _pair_row(row, "latency")["ratio or difference"],
        "roofline": str(gains_table([Gain(1, 2.0, value, ends, (0.5, 0.5))]).rows[0]["measured (95 % CI)"]),
        "fits": str(Estimate(value, low, high)),
        "gate": str(GateRun("fails", "a", "b", value + 1, (low + 1, high + 1), 0.05, 8, 1.0, None)),
        "what_if": WhatIf.sentence(WhatIf("model", (), None, "repeats", {}, {}), gained),  # type: ignore[arg-type]
    }


@pytest.mark.parametrize("ends", ENDS)
def test_what_is_shown_has_the_digits_that_its_interval_supports(ends: tuple[float, float]) -> None:
    value = math.sqrt(ends[0] * ends[1])
    for name, text in shown(value, ends).items():
        if name == "what_if" and "less time" not in text:
            continue  # it scatters too much for an answer
        found = INTERVAL.search(text)
        assert found, f"{name}: {text}"
        low, high = number(found[2]), number(found[3])
        for each in found.groups():
            assert step(each) >= (high - low) / 100, f"{name}: {text} has too many digits"
        assert step(found[1]) == step(found[2]) == step(found[3]), f"{name}: {text} has unequal digits"


@pytest.mark.parametrize(("value", "width", "text"), [
    (18_077_819.0, 2.5e6, "18,100,000"), (1.653, 0.11, "1.65"), (-0.004, 1.0, "0.0"), (0.0, 0.0, "0"), (12.34567, 0.0, "12.35"),
])  # fmt: skip
def test_digits(value: float, width: float, text: str) -> None:
    assert with_digits(value, width) == text


# A number, and behind it the ends of its interval; or the ends alone.
PRINTED = re.compile(rf"(?<![\w.,])({NUMBER})(?: ?%| [µnmk]?[sBJ]| 10⁹ \S+| rows/s)?(?:–| to )({NUMBER})(?![\w,.]*\d)")
ONE_OF_MANY = re.compile(r"(?<![\d.,/–−] )(?<![\w.,–−])1 ((?!(?:is|was|has|this|less|as)\b)[a-z]+s)\b(?! *=)")
MARKUP = r"range</th><td[^>]*>[^<]*|<[^>]*>"  # with the range of all measurements, which is not an interval


def texts(view: str, given: SimpleNamespace) -> list[str]:
    """Return all that a view of `test_one_value` prints, without markup."""
    shown = VIEWS[view](given)
    if isinstance(shown, Figure):
        return [text.get_text() for axes in shown.axes for text in axes.texts]
    return [re.sub(MARKUP, "\n", value) for _, value in parts(shown) if isinstance(value, str)]


def too_many_digits(text: str) -> list[str]:
    """Return the intervals of a text that have more digits than their width supports, as printed."""
    found = []
    for match in PRINTED.finditer(text):
        low, high = number(match[1]), number(match[2])
        if min(step(match[1]), step(match[2])) < (high - low) / 100 and high - low > 0 and "." in match[0]:
            found.append(match[0])
    return found


def test_too_many_digits_are_noticed() -> None:
    assert too_many_digits("it takes 12.345 ms (95 % CI 11.024–14.318), n = 30") == ["11.024–14.318"]
    assert not too_many_digits("it takes 12 ms (95 % CI 11.0–14.3), 0 to 1 of 30")
    assert ONE_OF_MANY.findall("1 rounds, 11 rounds, 2.1 calls, 1 is") == ["rounds"]


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_prints_more_digits_than_its_interval_supports(view: str) -> None:
    values = 0.0123 * np.random.default_rng(1).lognormal(0, 0.2, 30)
    for text in texts(view, samples(values.tolist())):
        assert not too_many_digits(text), text


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_says_one_of_many(view: str) -> None:
    for text in texts(view, samples(SAMPLES["one value"])):
        assert not ONE_OF_MANY.search(text), text


@pytest.mark.parametrize(("gain", "ends", "said"), [
    (2.063, (2.03, 2.09), "2.06 (2.03–2.09)"), (0.606, (0.59, 0.62), "1.65 times as long (1.61–1.69)"), (0.5, (0.0, math.inf), "2.000 times as long"),
])  # fmt: skip
def test_a_gain_below_1_is_said_to_be_slower(gain: float, ends: tuple[float, float], said: str) -> None:
    assert gain_text(gain, ends) == said
    table = str(gains_table([Gain(1, 2.0, gain, ends, (0.5, 0.5))]))
    assert said in table


def result(values: Iterable[float]) -> BenchmarkResult:
    return BenchmarkResult("latency", [float(value) for value in values], unit="s")


@pytest.mark.parametrize("counts", combinations_with_replacement((1, 2, 7), 2))
@pytest.mark.parametrize("swapped", [False, True])
def test_single_values_decide_nothing(counts: tuple[int, int], swapped: bool) -> None:
    first, second = (result(np.linspace(1, 1.1, n) * size) for n, size in zip(counts, (1, 3), strict=True))
    if swapped:
        first, second = second, first
    found, gate = compare(first, second, paired=False), regression_gate(first, second, paired=False)
    if 1 in counts:
        assert (found.p_value, found.decided) == (1.0, False)
        assert "no finite interval" in str(found)
        assert gate.verdict.startswith("cannot tell: needs")
    else:
        assert found.p_value < 1


def test_one_value_has_no_95th_percentile() -> None:
    (one, *_), (several, *_) = (dashboard_rows({"latency": {"a": result([0.01] * n)}}) for n in (1, 2))
    assert (one["latency_p95_ms"], several["latency_p95_ms"]) == (None, pytest.approx(10))
