"""What a result says of the machine it was measured on: measured everywhere, told where it matters, never in the way."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tinybench.accuracy import measure_accuracy
from tinybench.benchmark import Benchmark
from tinybench.comparison import compare, regression_gate
from tinybench.energy import CpuTimeMeter, cpu_utilisation, measure_energy
from tinybench.latency import (
    measure_cold_start,
    measure_latencies,
    measure_latency,
    measure_session_latency,
    shape_notes,
)
from tinybench.load import closed_loop, open_loop
from tinybench.memory import measure_memory, resident_growth
from tinybench.onnx import time_breakdown
from tinybench.result import BenchmarkResult
from tinybench.shell.timed_comparison import comparison_table
from tinybench.support.comparisons.two_samples import check_comparable
from tinybench.support.footprint.first_calls import memory_stages
from tinybench.support.reports.sections import busy_warnings
from tinybench.support.rounds import machine_state
from tinybench.support.rounds.machine_state import Conditions, machine_notes, machine_warnings

X, LABELS = np.zeros((4, 2), dtype=np.float32), np.zeros(4, dtype=int)
NOISY = {"machine": {"verdict": "SMT, load", "warnings": ["load: others keep 3.0 of 4 cores busy"]}}
QUIET = {"machine": {"verdict": "ok", "warnings": []}}


def classifier(x: Any) -> np.ndarray:
    return np.zeros(len(x), dtype=int)


@pytest.fixture
def noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the check find a noisy machine."""
    monkeypatch.setattr(machine_notes, "notes", NOISY)
    monkeypatch.setattr(machine_notes, "until", float("inf"))


def stages(task: Any) -> dict[str, Any]:
    numbers = {"peak": 1e6, "retained": 0, "resident": 1e6}
    return {
        "method": "made up",
        "stages": dict.fromkeys(("import", "load", "first_call", "second_call", "steady"), numbers),
    }


MEASURED = {
    "latency": lambda: measure_latency(classifier, X),
    "latencies": lambda: measure_latencies({"a": classifier, "b": classifier}, X)["b"],
    "session": lambda: measure_session_latency(classifier, X, seconds=0.01),
    "cold start": lambda: measure_cold_start(
        list, X, launch=lambda _: dict.fromkeys(("import", "load", "first_call", "steady"), 1.0)
    )["load"],
    "accuracy": lambda: measure_accuracy(classifier, (X, LABELS)),
    "memory": lambda: measure_memory(classifier, X),
    "stages": lambda: memory_stages(list, X, launch=stages)["load"],
    "growth": lambda: resident_growth(classifier, X, runs=4, blocks=2),
    "energy": lambda: measure_energy(classifier, X, meter=CpuTimeMeter(), measurement_runs=2, min_reading=0.001),
    "utilisation": lambda: cpu_utilisation(classifier, X, measurement_runs=2, min_reading=0.001),
    "breakdown": lambda: time_breakdown({"model": classifier}, X)["total"],
    "throughput": lambda: Benchmark({"m": classifier}).run_throughput_benchmark([4], rows=X)["m"],
    "open loop": lambda: open_loop(lambda _: True, [0.0, 0.001]).latency(),
    "closed loop": lambda: closed_loop(lambda _: True, clock=partial(next, count(0.0, 0.5))).latency(),
}


@pytest.mark.usefixtures("noisy")
@pytest.mark.parametrize("name", MEASURED)
def test_every_result_carries_the_verdict_and_times_tell_it(name: str) -> None:
    result = MEASURED[name]()
    assert result.metadata["machine"] == NOISY["machine"]
    told = NOISY["machine"]["warnings"][0] in result.cautions
    assert told == (result.unit not in ("", "B"))
    assert BenchmarkResult.from_dict(json.loads(json.dumps(result.to_dict()))).metadata["machine"] == NOISY["machine"]


def test_what_always_holds_on_a_machine_is_in_the_verdict_but_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = SimpleNamespace(
        verdict="SMT, load", warnings=[SimpleNamespace(name=n, seen=f"{n}!") for n in ("SMT", "load")]
    )
    looks: list[int] = []
    parts = {
        "tinybench.machine": SimpleNamespace(machine_check=lambda before: looked),
        "tinybench.support.conditions.machine_facts": SimpleNamespace(look=lambda: looks.append(1)),
    }
    monkeypatch.setattr(machine_state, "import_module", parts.__getitem__)
    notes = Conditions()
    found = {"verdict": "SMT, load", "warnings": ["load: load!"], "conditions": machine_state.library_conditions()}
    assert notes() == {"machine": found}
    assert notes() == notes()
    assert len(looks) == 2, "one look, kept for a while"


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("tinybench.machine"), NotImplementedError("write judge"), KeyError()]
)
def test_a_check_that_is_not_there_or_fails_costs_no_measurement(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        if isinstance(error, ImportError):
            raise error
        return SimpleNamespace(look=lambda: None, machine_check=failing_check)

    def failing_check(**_: Any) -> Any:
        raise error

    monkeypatch.setattr(machine_state, "import_module", failing)
    assert Conditions()() == {}


def test_nothing_of_the_check_is_imported_before_something_is_measured() -> None:
    code = "import sys, tinybench.latency; print('tinybench.machine' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def timed(notes: dict[str, Any], factor: float = 1.0) -> BenchmarkResult:
    values = (factor * np.random.default_rng(0).uniform(1.0, 1.1, 40)).tolist()
    return BenchmarkResult("latency", values, {**notes, "sessions": list(range(40))}, unit="s")


def test_another_state_of_the_machine_is_a_caution_and_no_refusal() -> None:
    quiet, noisy = timed(QUIET), timed(NOISY, 1.3)
    check_comparable(quiet, noisy)
    assert "the machine was not in the same state: SMT, load, then ok" in compare(noisy, quiet).caution
    assert "machine" not in compare(quiet, timed(QUIET, 1.3)).caution
    gate = regression_gate(quiet, noisy, 0.5)
    assert gate.verdict == "passes"
    assert gate.differences == ("machine check: ok → SMT, load",)


def test_a_machine_that_is_named_by_hand_still_tells_machines_apart() -> None:
    with pytest.raises(ValueError, match="machine differs"):
        check_comparable(timed({"machine": "board"}), timed({"machine": "server"}))


def test_pages_and_the_command_line_tell_it_once() -> None:
    results = {name: timed({**NOISY, "system": {"cpu": "Some", "cores": 4, "load_average": None}}) for name in "ab"}
    assert machine_warnings(*results.values(), timed(QUIET), timed({})) == NOISY["machine"]["warnings"]
    assert busy_warnings(list(results.values()))[0].startswith("The machine: load: others keep 3.0 of 4 cores busy")
    assert comparison_table(results).caption.endswith("; the machine: load (tinybench machine says more)")
    assert "machine" not in comparison_table({"a": timed(QUIET), "b": timed(QUIET)}).caption


def test_an_input_alone_is_described_without_the_machine() -> None:
    assert shape_notes(X) == {"input_shape": [4, 2], "input_dtype": "float32", "batch_size": 4}
