"""What the rooflines and the optional part of module 15 show: networks, sentences and figures, from results that are made up."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tinybench.course.lessons import m15_roofline as roofline
from tinybench.course.lessons import m15_scaling as lesson
from tinybench.onnx import OnnxModel
from tinybench.quantize import integer_operators
from tinybench.result import BenchmarkResult
from tinybench.support.profiling.scaling_laws import usl
from tinybench.tools.roofline.roofs import Roofs
from tinybench.tools.scaling.measure import Scaling


def made_up(contention: float, noise: float = 0.01) -> dict[int, BenchmarkResult]:
    rng = np.random.default_rng(1)
    return {
        n: BenchmarkResult("seconds", (rng.normal(1, noise, 8) / usl(n, contention, 0.001)).tolist(), {}, unit="s")
        for n in (1, 2, 4, 8)
    }


def test_both_networks_answer_alike_and_one_in_integers(tmp_path: Path) -> None:
    files = roofline.write_networks(tmp_path, (12, 16, 3))
    X = roofline.rows(12, 40)
    exact, short = (OnnxModel(path).forward(X) for path in files.values())
    assert exact.shape == short.shape == (40, 3)
    assert np.corrcoef(exact.ravel(), short.ravel())[0, 1] > 0.99
    assert sum(integer_operators(files["INT8"]).values()) == 2
    assert not integer_operators(files["FP32"])


@pytest.mark.parametrize(
    ("kind", "says"), [("exact", "VNNI"), ("saturating", "saturates"), ("unsupported", "no product")]
)
def test_the_sentence_on_int8_is_made_of_what_was_found(kind: str, says: str) -> None:
    rates = {"float32": 50.0, "uint8 × int8": 150.0}
    products = [
        BenchmarkResult("rate", [rate] * 6, {"dtype": dtype, "ran_in": dtype}, unit="10⁹ operations/s")
        for dtype, rate in rates.items()
    ]
    told = roofline.why_int8(Roofs(products, []), {"uint8 × int8": kind})
    assert says in told
    assert ("3 times the peak" in told) == (kind != "unsupported")


def test_a_figure_of_scaling_tells_its_own_data() -> None:
    measured = Scaling({"threads": made_up(0.05), "processes": made_up(0.3, noise=2e-3)}, ["a note"])
    laws = lesson.laws_within(measured, 8)
    shown = lesson.figure_of_scaling(measured, laws, 8)
    assert shown["figure"].axes[0].get_ylim()[1] <= 1.3 * 8
    plt.close(shown["figure"])
    last = dict(zip(shown["data"]["way"], shown["data"]["speed-up"], strict=True))  # of each way with 8 workers
    for way, contention in (("threads", 0.05), ("processes", 0.3)):
        assert last[way] == pytest.approx(usl(8, contention, 0.001), rel=0.05)
        assert f"{way} {last[way]:.2f} times" in shown["caption"]
        assert laws[way].contention.low <= contention <= laws[way].contention.high
    told = lesson.what_is_seen(measured, laws, 8)
    assert "a note" in told
    assert "Nothing was measured beyond 8 workers" in told
    assert "take turns" not in told


def test_no_law_is_fitted_across_the_number_of_cores() -> None:
    kinked = {n: BenchmarkResult("seconds", [1 / min(n, 4) * 1.01**k for k in range(8)], {}) for n in (1, 2, 4, 8)}
    measured = Scaling({"threads": kinked})
    [law] = lesson.laws_within(measured, 4).values()
    assert law.contention.value == pytest.approx(0, abs=1e-6), "four cores, four times as fast"
    shown = lesson.figure_of_scaling(measured, {"threads": law}, 4)
    plt.close(shown["figure"])
    assert "With 4 workers on 4 cores: threads 4.00 times" in shown["caption"]
    assert lesson.laws_within(measured, 2) == {}, "two unknown numbers, and one speed-up"
    shown = lesson.figure_of_scaling(measured, {}, 2)
    plt.close(shown["figure"])
    assert "Law" not in shown["caption"]
    told = lesson.what_is_seen(measured, {}, 2)
    assert "no law is fitted" in told
    assert "With more than 2 workers they take turns" in told


def test_cores_are_those_that_a_control_group_grants() -> None:
    def measured(**about: float | None) -> Scaling:
        return Scaling({"x": {1: BenchmarkResult("seconds", [1.0] * 6, about)}})

    assert lesson.cores_of(measured(usable_cores=8, granted=2.5)) == 2
    assert lesson.cores_of(measured(usable_cores=8, granted=0.5)) == 1
    assert lesson.cores_of(measured(usable_cores=8, granted=None)) == 8


def test_a_share_above_one_is_an_error_of_the_roof() -> None:
    assert roofline.of_its_roof(0.43) == "43% of its roof"
    assert roofline.of_its_roof(1.01).startswith("its roof, within the error")


def test_work_to_be_shared_computes_and_two_libraries_are_told_of() -> None:
    assert lesson.counting()() == sum(i * i for i in range(10_000))
    assert lesson.multiplying(4)().tolist() == [[4.0] * 4] * 4
    assert lesson.worker_counts()[0] == 1
    told = lesson.told_of_two_libraries()
    assert "Cure" in told or "no threads" in told
