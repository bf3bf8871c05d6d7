"""What single benchmarks count and judge, on records that are known."""

from __future__ import annotations

import math
from argparse import Namespace
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import (
    ab,
    comparison,
    coverage,
    distillation,
    drift,
    drift_delay,
    drift_dependence,
    drift_digits,
    gates,
    grading,
    precision,
    profiler,
    referee,
    rollout,
    roofline,
    scaling,
    subjects,
    timing,
    verdicts,
    what_if,
)
from tests.benchmarks.harness import Trial
from tests.benchmarks.peers import AGAIN, MORE
from tests.benchmarks.processes import in_child
from tests.benchmarks.subjects import CALLS, ITERATIONS, LENGTHS, calls_of, work
from tinybench.support.conditions.int8_probe import integer_products
from tinybench.tools.roofline.batch_sizes import Gain


def test_ab_peeking_and_counting_by_request_alarm_too_often() -> None:
    equal, counted = ab.rules(0.0, 100, 1000), ab.counted(100, 1000)
    assert equal["peeking"]["alarms"] > equal["fixed horizon"]["alarms"]
    assert equal["anytime-valid"]["alarms"] <= equal["anytime-valid, twice"]["alarms"] < 20
    assert counted["by request"] > counted["by user"]
    found = {"trials": 100, "users": 1000, "equal": equal, "worse": equal, "counted": counted}
    assert all(ab.goals(found).values())
    assert not all(ab.goals(found | {"counted": {"by request": 30, "by user": 30}}).values())


def test_comparison_counts_and_errors() -> None:
    assert comparison.RATIOS == {"A again": 1.0, "A + 2 %": 1.02, "A + 5 %": 1.05}
    assert all(call() == work(ITERATIONS[name]) for name, call in CALLS.items())
    shared = {"condition": "quiet", "tool": "tinybench, 1 s", "wall": 1.0, "interval": [0.99, 1.03]}
    found = [
        {**shared, "subject": subject, "ratio": comparison.RATIOS[subject] * np.exp(error), "flagged": flag}
        for subject, error, flag in (("A again", 0.03, True), ("A + 2 %", -0.03, True), ("A + 5 %", 0.03, False))
    ]
    told = "\n".join(comparison.page(found))
    assert "| tinybench, 1 s | 1.0 s | 3.00 % | 100 % (21–100) | 100 % (21–100) | 0 % (0–79) |" in told
    assert "- tinybench, 1 s: 67 % (21–94) of 3 intervals hold the true ratio." in told


def test_coverage_what_misses_without_a_word_decides() -> None:
    """An interval that covers 80 % says so if it is silent on at most 7 % of all results that miss."""
    judged = [(0.931, 0.069), (0.80, 0.06), (0.80, 0.08), (0.80, None)]
    cells = [coverage.cell(held, 10**6, silent=silent) for held, silent in judged]
    assert [coverage.verdict(cell) for cell in cells] == ["holds", "says so", "FAILS", "FAILS"]
    assert coverage.verdict(cells[0] | {"agree": False}) == "FAILS"
    assert coverage.goals(cells) == {"2 of 4 cells fail": False}
    assert coverage.text(cells[1], 0.2) == "20.0 ± 0.0, says 0%: says so"


@pytest.mark.parametrize("kind", coverage.KINDS)
def test_coverage_the_truth_of_each_kind(kind: str) -> None:
    noise = coverage.KINDS[kind]
    values = noise.draw(np.random.default_rng(2), 2000, 100)
    assert np.median(values) == pytest.approx(0, abs=0.02)
    assert np.percentile(values, 90) == pytest.approx(noise.truths["p90"], rel=0.02)
    assert values.mean() == pytest.approx(noise.truths["mean"], abs=0.1)
    if noise.phi:
        assert np.mean(values[:, 1:] * values[:, :-1]) == pytest.approx(noise.phi, abs=0.02)
        assert np.var(values) == pytest.approx(1, abs=0.03)


def test_distillation_gains_are_differences_of_the_same_seed() -> None:
    case, found = list(distillation.CASES)[1], []
    for seed, (teacher, alone, taught) in enumerate([(0.97, 0.80, 0.83), (0.96, 0.90, 0.93)]):
        about = {"case": (case,), "round": seed, "units": 64, "steps": 9, "teacher": teacher}
        found += [{**about, "taught": how, "accuracy": a} for how, a in (("labels", alone), ("T = 1", taught))]
    told = distillation.page(found)[1]
    assert f"| {case} | 64 | labels | 85.0 | – | 96.5 |" in told
    assert f"| {case} | 64 | T = 1 | 88.0 | +3.0 (+3.0 to +3.0) | 96.5 |" in told


def test_drift_too_many_false_alarms_miss_the_goal() -> None:
    found = [{"kind": "normal", "way": way, "n": 50, "rang": 27, "of": 500} for way in drift.WAYS]
    assert all(drift.goals(found).values())
    found[0]["rang"] = 50
    assert list(drift.goals(found).values()) == [False] + [True] * 4


def test_drift_the_rule_of_thumb_is_counted_with_half_a_value_and_without() -> None:
    halves, plains = np.repeat([0.3, 0.15, 0.0], (30, 46, 24)), np.repeat([0.3, 0.15, 0.0], (45, 41, 14))
    found = [{"n": 50, "half": h, "plain": p, "rang": False} for h, p in zip(halves, plains, strict=True)]
    assert all(drift.thumb_goals(found).values())
    half, plain = drift.thumb_rows(found)
    assert [row[change] for row in (half, plain) for change in drift.THUMBS] == [76, 30, 86, 45]
    assert list(drift.thumb_goals([{**row, "rang": True} for row in found]).values()) == [False, True]


def test_drift_delays_count_from_the_change() -> None:
    early, late = drift_delay.BEFORE, drift_delay.BEFORE + 7
    assert drift_delay.delays([early, late, math.inf]) == (1, [7, math.inf])
    found: list[dict[str, Any]] = [
        {"detector": "tinybench x", "change": "none", "first": [math.inf] * 19 + [5.0]},
        {"detector": "tinybench x", "change": "shift 1", "first": [late] * 20},
    ]
    assert all(drift_delay.goals(found).values())
    found[0]["first"] = [5.0, 5.0, *[math.inf] * 18]
    assert list(drift_delay.goals(found).values()) == [False, True]
    assert "7; 0 before, 0 missed, of 20" in drift_delay.page(found)[1]


def test_drift_streams_change_where_they_should() -> None:
    n = drift_delay.WARM + drift_delay.BEFORE
    for change in (change for changes in drift_delay.CHANGES.values() for change in changes):
        before, after = np.split(drift_delay.stream_of(change, np.random.default_rng(1)), [n])
        moved = abs(after.mean() - before.mean()) + abs(after.std() - before.std())
        assert (moved > 0.1) == (change not in drift_delay.STILL)


def test_drift_dependent_streams_that_ring_and_shifts_that_are_found_late_miss_the_goals() -> None:
    def record(what: str, way: str, first: list[int | None]) -> dict[str, Any]:
        return {"kind": "AR(1), 0.8", "what": what, "way": way, "first": first}

    found = [record("long", way, [0] * 190 + [7] * 9 + [None]) for way in drift_dependence.WAYS]
    found += [record("delay", "spaced", [40, 80, None])]
    assert list(drift_dependence.goals(found).values()) == [True] * 4
    page = drift_dependence.page(found)
    assert page[1].splitlines()[-1].count("4.5 % (2.4–8.3); 0.5% refused") == 4
    assert page[3].splitlines()[-1].split(" | ")[-1] == "60 |"
    found[0]["first"] = found[1]["first"] = [0] * 150 + [7] * 50
    found[-1]["first"] = [0, 0, 50]
    assert list(drift_dependence.goals(found).values()) == [False, True, True, False]


@pytest.mark.parametrize("kind", drift_dependence.KINDS)
def test_drift_dependent_streams_do_not_change(kind: str) -> None:
    rows, users = drift_dependence.KINDS[kind](40_000, np.random.default_rng(3))
    before, after = np.split(rows, 2)
    assert len(rows) == 40_000
    assert np.abs(after.mean(axis=0) - before.mean(axis=0)) == pytest.approx(0, abs=0.5)
    assert (users is not None) == kind.startswith("users")


def test_drift_every_detector_of_river_and_of_ours_runs_on_what_it_is_for() -> None:
    cases = drift_delay.cases(Namespace(short=False))
    assert len(cases) == len(set(cases)) == 4 + 7 + 2
    stream = drift_delay.stream_of("shift 1", np.random.default_rng(2))
    _, tried = drift_delay.settings()["PageHinkley"]
    assert drift_delay.BEFORE < tried["threshold 30"](stream) < drift_delay.BEFORE + 200


def test_drift_slower_servers_and_slower_pictures_miss_the_goals() -> None:
    pairs = [{"p50 without": 1 + 0.001 * i, "p50 with": 1.009 - 0.001 * i} for i in range(10)]
    assert all(drift_digits.cost_goals(pairs).values())
    assert not any(drift_digits.cost_goals([{**pair, "p50 with": 1.1} for pair in pairs]).values())
    ratios = [0.98 + 0.002 * i for i in range(20)]
    assert drift_digits.middle_of(ratios) == pytest.approx((0.999, ratios[5], ratios[14]))
    run = {"kind": "shifted", "alarm": 10, "first label": 201, "accuracy before": 0.95, "accuracy after": 0.1}
    assert all(drift_digits.goals([{**run, "shifted / plain": each} for each in ratios]).values())
    slow = drift_digits.goals([{**run, "shifted / plain": 1.06 * each} for each in ratios])
    assert list(slow.values()) == [True, True, False, True]


def test_gates_count_verdicts_and_wrong_ones() -> None:
    case = {"case": (gates.RUN, "short", 10), "gate": gates.RUN, "wall": 9.0}
    verdicts = ["fails"] * 18 + ["passes", "cannot tell"]
    found = [{**case, "verdict": verdict, "wrong": verdict == "passes"} for verdict in verdicts]
    _, told, wrong = gates.page(found)
    assert "| --run | function, 0.2 ms | 10 % | 20 | 5 % (1–24) | 90 % (70–97) | 5 % (1–24) | 1 | 9 s (9 s) |" in told
    assert wrong == "`--run`: 1 of 20 verdicts wrong, 5 % (1–24)."


def test_gates_judge_work_in_exact_proportion() -> None:
    assert subjects.long_10.args[0] == 71_500
    assert subjects.model_short_6()(None) is not None
    with pytest.raises(AttributeError):
        _ = subjects.middling_3


def test_grading_is_simulated_as_counted_by_hand() -> None:
    assert grading.simulate([1.0], 0.0, 10, 1) == pytest.approx(10)
    assert grading.simulate([1.0], 0.0, 10, 4) == pytest.approx(3)
    assert grading.simulate([1.0], 0.5, 10, 10) == pytest.approx(1 + 10 * 0.5), "the writer is the bottleneck"
    assert grading.simulate([1.0], 0.25, 2, 1) == pytest.approx(2.25)


def test_grading_that_is_slow_is_named() -> None:
    about = {"write": 0.01, "dask 1": 18.0, "dask 2": 10.0}
    fast = {**about, "module": "01_result", "stock": 15.0, "ours": 0.5, "seconds": [0.5, 0.4, 0.9]}
    assert all(grading.goals([fast]).values())
    slow = {**about, "module": "02_timer", "stock": 14.0, "ours": 0.5, "seconds": [0.9], "dask 2": 11.0}
    goals = grading.goals([fast, slow])
    assert not any(goals.values())
    assert all(goal.endswith("; not in 02_timer") for goal in goals)


def test_precision_needs_a_row_of_every_form() -> None:
    row = {"form": "FP32", "reason": None, "types": {"float": 1.0}, "ratio": 1.0, "size": 1, "agreement": 1.0}
    rows = [{**row, "form": form} for form in precision.FORMS]
    assert all(precision.goals({"studies": [{"rows": rows}]}).values())
    assert not all(precision.goals({"studies": [{"rows": rows[1:]}]}).values())
    rows[2]["agreement"] = 0.9
    assert not all(precision.goals({"studies": [{"rows": rows}]}).values())


RAW = """\
<module> (programs.py:9);take_turns (programs.py:210);numpy (programs.py:80) 50
<module> (programs.py:9);take_turns (programs.py:220);numpy.<locals>.sorting (programs.py:90);sort (numpy/core.py:10) 6
<module> (programs.py:9);take_turns (programs.py:220);numpy.<locals>.multiplying (programs.py:90) 3
<module> (programs.py:9);take_turns (programs.py:221) 1
<module> (programs.py:9);report (programs.py:300) 7
"""


def test_profiler_only_the_rounds_count() -> None:
    found = profiler.rounds_of(profiler.raw_stacks(RAW), ["multiplying", "sorting"])
    pieces = [("sorting", "sort", 6), ("multiplying", "numpy.<locals>.multiplying", 3), ("take_turns", "take_turns", 1)]
    assert found == pieces


def test_profiler_judges_shares_and_costs() -> None:
    def shares(told: float) -> list[dict[str, Any]]:
        truth, off = {"a": 0.6, "b": 0.4}, {profiler.OURS: told, profiler.PY_SPY: 0.59, profiler.NONBLOCKING: 0.3}
        run = {"program": "p", "truth": truth, "looks": 100}
        return [run | {"tool": tool, "told": {"a": a, "b": 1 - a}} for tool, a in off.items()] * 2

    near, far = shares(0.61), shares(0.64)
    assert "| p | a | 60.0 | 61.0 | +1.0 | -1.0 | -30.0 |" in profiler.share_page(near)[1]
    assert profiler.share_goals(near) == {
        "all shares are within 3 points of the truth; the worst is `a` of `p`, +1.0": True,
        "all shares are within 3 points of py-spy; the worst is `a` of `p`, +2.0; py-spy is -1.0 off the truth there": True,
    }
    assert [*profiler.share_goals(far).values()] == [False, False]
    ratios = [1 + k / 1000 for k in range(21)]
    cost = {"program": "p", "every": 0.01, "clock": ratios, "processor": ratios}
    assert profiler.cost_goals([cost]) == {
        "looking every 10 ms makes `p` take +1.0 % (+0.5 to +1.5) longer, of 2% allowed": True
    }
    assert [*profiler.cost_goals([cost | {"clock": [x + 0.02 for x in ratios]}]).values()] == [False]


@pytest.mark.parametrize("name", profiler.PROGRAMS)
def test_profiler_programs_tell_their_truth_and_are_seen(name: str) -> None:
    found = profiler.take_turns(name, 0.25, 0.005)
    assert min(found["truth"].values()) > 0
    assert {piece for piece, *_ in profiler.rounds_of(found["seen"], found["truth"])} & found["truth"].keys()


def ended(kind: str, number: int, right: bool = True) -> dict[str, Any]:
    """Return the record of a rollout."""
    status, stage = rollout.RIGHT[kind] if right else ("rolled back", 3)
    record = {
        "kind": kind,
        "round": number,
        "load": 1.0,
        "status": status,
        "stage": stage,
        "why": "slow",
        "problems": 1,
    }
    record |= {"users": 1000, "exposed": 50, "met": 40, "seconds": 2.0, "watched_by": "Prometheus", "all_seconds": 6.0}
    return record | {"right": right}


def test_rollout_counts_what_was_right_and_names_the_rest() -> None:
    found = [ended("equal", number, right=number > 1) for number in range(40)]
    found += [ended(kind, number) for kind in list(rollout.FAULTS)[1:] for number in range(40)]
    assert all(rollout.goals(found).values()), "38 of 40 are 95 %"
    found[2] = ended("equal", 2, right=False) | {"status": "failed", "why": "OSError: none"}
    assert [met for met in rollout.goals(found).values() if not met] == [False]
    page = "\n".join(rollout.page(found))
    assert "| equal | promoted at 100 % | 37 of 40 (80 to 98 %) | 2.0 (2.0 to 2.0) |" in page
    assert "- equal, trial 2: failed at 100 %, OSError: none" in page
    assert "4.0 % (4.0 % to 4.0 %)" in page


def test_referee_pairs_are_counted_in_both_directions() -> None:
    wide, narrow, far = (1.0, 0.5, 2.0), (1.1, 1.05, 1.15), (3.0, 2.9, 3.1)
    assert referee.agreement([wide, narrow]) == (1, 2)  # the wide interval holds 1.1, the narrow one does not hold 1.0
    assert referee.agreement([wide, wide, wide]) == (6, 6)
    assert referee.agreement([wide, narrow, far]) == (1, 6)
    found = [{"entry": "x", "measure": "latency", "ratio": ratio} for ratio in ((1.0, 0.5, 2.0), (1.1, 0.5, 2.0))]
    [row] = referee.rows(found)
    assert [row[key] for key in ("smallest", "largest", "width", "agree", "pairs")] == [1.0, 1.1, 4.0, 2, 2]


def test_referee_intervals_that_say_what_they_mean_agree_as_often() -> None:
    values = np.random.default_rng(0).normal(0, 1, 400)
    for factor, low, high in ((1.96 * 2**0.5, 0.93, 0.97), (1.0, 0.4, 0.6)):  # two draws differ by √2 deviations
        agree, pairs = referee.agreement([np.exp([v, v - factor, v + factor]) for v in values])
        assert low < agree / pairs < high


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(rollout.FAULTS))
def test_rollout_each_version_meets_its_fate(kind: str, tmp_path: Path) -> None:
    """A minute, all five: Prometheus takes 5 s to look at its list."""
    records = []
    for number in range(3):  # a trial is right in 19 of 20, at least: all three are wrong in 1 of 8,000
        records.append(rollout.measured(Trial("rollouts", "quiet", number, (kind,), 0, Namespace(), tmp_path)))
        if records[-1]["right"]:
            return
    pytest.fail(f"none ended as is right: {records}")


def test_roofline_explains_known_gains() -> None:
    def found(hidden: str, *gains: tuple[int, float, float, float]) -> dict[str, Any]:
        made = [Gain(b, by_roofs, got, (got - 0.1, got + 0.1), (0.9, share)) for b, by_roofs, got, share in gains]
        return {"hidden": hidden, "peaks": [100.0, 200.0], "products": "exact", "gains": [*map(asdict, made)]}

    fine = [found("nothing", (1, 4, 3, 0.6), (256, 8, 5, 0.5)), found("AMX", (1, 4, 3, 0.6), (256, 2, 1.9, 0.8))]
    assert [*roofline.kernel_goals(fine).values()] == [True, True]
    rows, told = roofline.kernel_page(fine)
    assert "| AMX | exact | 100 | 200 | 2.00 | 256 | 2.00 |" in rows
    assert "Nothing could be hidden here" in told
    goals = roofline.kernel_goals([found("nothing", (1, 4, 5, 1.2), (256, 8, 1.5, 0.1)), fine[1]])
    assert [*goals.values()] == [False, False]
    assert next(iter(goals)).endswith("; nothing hidden, batch 1")
    assert len(roofline.kernel_goals(fine[:1])) == 1


def test_roofline_hidden_instructions_are_not_found(tmp_path: Path) -> None:
    """Counted, not timed: products of the largest numbers saturate as on processors without VNNI."""
    if (library := roofline.hiding_library(tmp_path)) is None:
        pytest.skip("needs Linux on x86-64, cpuid_fault among the flags, and cc")
    hide = {"LD_PRELOAD": str(library), "HIDE": roofline.HIDDEN["AMX, VNNI, AVX-512"]}
    kinds = in_child(integer_products, **hide)
    assert (kinds["uint8 × int8"], kinds["uint8 × uint8"]) == ("saturating", "exact")


def test_scaling_intervals_that_are_too_narrow_miss_the_goal() -> None:
    found = [{"way": "ours", "trials": 250, "found": [0.95] * 3}]
    assert all(scaling.goals(found).values())
    found[0]["found"] = [0.95, 0.95, 0.85]
    assert not any(scaling.goals(found).values())


def test_scaling_a_bootstrap_of_few_rounds_is_narrower_than_ours() -> None:
    rng = np.random.default_rng(1)
    made = scaling.seconds_of(lambda n: scaling.usl(n, 0.1, 0.02), (1, 2, 4, 8), 6, scaling.NOISES[1], rng)
    wide, narrow = scaling.ours(made, 0), scaling.of_resampled_rounds(made, 0)
    assert narrow[1][1] - narrow[1][0] < wide[1][1] - wide[1][0]
    low, middle, high = scaling.recovered((0.1, 0.02), 50)[1]
    assert low is not None
    assert high is not None
    assert low < middle < high  # type: ignore[operator]
    assert middle == pytest.approx(0.02, rel=0.2)


def test_timing_the_rest_of_a_call_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that ticks 0.1 µs a reading, a call takes one reading's tick more than it logs."""
    ticks = count()
    monkeypatch.setitem(timing.KINDS, "ticks", lambda: next(ticks) * 1e-7)
    call, log = timing.known_call("1 µs", "ticks")
    call(None)
    assert log == [pytest.approx(1e-7)]
    assert timing.beyond_the_log(timing.REST, "ticks", "1 µs", 1000) == pytest.approx(1e-7, rel=0.02)


def test_timing_a_call_takes_about_as_long_as_its_name_says() -> None:
    call, log = timing.known_call("1 ms", "cost")
    for _ in range(20):
        call(None)
    assert 0.5e-3 < min(log) < 2e-3


def test_verdicts_the_same_object_stands_beside_a_longer_one() -> None:
    for length, (_, sizes) in LENGTHS.items():
        calls = calls_of(length)
        assert calls["A"] is calls[AGAIN]
        assert (MORE in calls) == (len(sizes) > 1)
        assert calls["A"](1) == calls["A"](1)


def test_verdicts_are_counted_by_way() -> None:
    about = {"condition": "quiet", "length": "1 µs", "way": "compare", "seconds": 0.5}
    flags = [(AGAIN, True, 0.5), (AGAIN, False, 0.6), (MORE, True, 0.4)]
    found = [{**about, "subject": subject, "flagged": flag, "took": took} for subject, flag, took in flags]
    assert "| 1 µs | compare | 50 % (9–91) | 2 | 100 % (21–100) | 1.00 (1.20) |" in verdicts.page(found)[2]


@pytest.mark.parametrize("family", what_if.FAMILIES)
def test_what_if_draws_pipelines_by_seed_and_makes_one_stage_faster(family: str) -> None:
    first, again, other = (what_if.draw(family, seed) for seed in (0, 0, 1))
    assert (first.told, list(first.stages), first.name) == (again.told, list(again.stages), again.name)
    assert (first.told, list(first.stages), first.name) != (other.told, list(other.stages), other.name)
    faster = first.faster(5)
    for name, stage in first.stages.items():
        assert faster[name].amount == pytest.approx(stage.amount / (5 if name == first.name else 1), abs=1)  # type: ignore[attr-defined]
        assert faster[name]("item") == "item"
    first.run(faster)
    holding = sum(stage.kind in what_if.HOLDING for stage in first.stages.values())
    assert holding <= {"threads": 1, "a lock": 0}.get(family, 4)
    assert holding >= {"threads that share the interpreter": 2}.get(family, 0)


def test_what_if_counts_refusals_as_not_answered() -> None:
    about = {"condition": "alone", "stages": "a", "speedup": 2.0, "promised": 0.5, "truth": 0.28, "unsure": 0.002}
    found = [{**about, "family": each, "foreseen": 0.3, "why": ""} for each in what_if.FAMILIES for _ in range(9)]
    found.append({**about, "family": "a lock", "foreseen": None, "why": "runs scatter"})
    found += [{**about, "family": each, "foreseen": 0.4, "why": ""} for each in ("threads", "sequential")]
    [(goal, met)] = what_if.goals(found).items()
    assert goal.endswith("36 of 39")
    assert met
    _, families, _, _, wrong = what_if.page(found)
    assert "| a lock | 10 | 9 | 9 | 90 | 2.0 | 2.0 | 0 | 22.0 |" in families
    assert "| threads | 10 | 10 | 9 | 90 | 2.0 | 12.0 | 0 | 22.0 |" in families
    assert wrong.count("| runs scatter |") == 1
    assert not all(what_if.goals([*found, *found[-2:] * 2]).values())
