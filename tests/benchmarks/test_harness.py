"""The harness: which trials run in which order, what is kept, what a page shows, and that pages name their machine."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.benchmarks import formats, harness
from tests.benchmarks.__main__ import BENCHMARKS, DEFAULT, main, question_of
from tests.benchmarks.harness import RESULTS, Benchmark, Part, Trial, on_this_machine
from tests.benchmarks.processes import busy_cores, in_child
from tinybench.support.conditions.library_kernels import loaded_blas

PAGES = sorted(RESULTS.glob("*.md"))
MACHINE = re.compile(r"\bon \d+ (?:virtual )?cores of ")


class Example:
    """A benchmark of two parts that keeps its trials, and is interrupted at the trial after `left` ones."""

    def __init__(self) -> None:
        self.ran: list[Trial] = []
        self.left = 10**6

    def measured(self, trial: Trial) -> dict[str, Any]:
        if len(self.ran) == self.left:
            raise KeyboardInterrupt
        self.ran.append(trial)
        return {} if trial.case else {"whole": True}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Example:
    found = Example()

    def page(records: list[dict[str, Any]]) -> list[str]:
        return [f"{letter}: {len(each)}" for (letter,), each in sorted(formats.grouped(records, "letter").items())]

    def ten(records: list[dict[str, Any]]) -> dict[str, bool]:
        return {"ten": len(records) >= 10}

    parts = {
        "letters": Part(
            "Letters", found.measured, page, ten, [("a",), ("b", (1, 2)), ("a",)], short=[("c",)], fields=["letter"]
        ),
        "whole": Part("Whole", found.measured, lambda record: [str(record["whole"])]),
    }
    made = Benchmark("Title", parts, rounds=2, conditions=lambda options: {"quiet": 0, "busy": 1})
    monkeypatch.setattr(harness, "import_module", lambda name: SimpleNamespace(BENCHMARK=made))
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.chdir(tmp_path)
    return found


def run(*arguments: str) -> int:
    return harness.main("example", "Question?", [*arguments, "--out", "."])


def test_a_run_has_all_cases_in_shuffled_rounds_under_all_conditions(
    example: Example, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--only", "letters") == 0
    assert [(trial.round, trial.condition) for trial in example.ran] == [
        (number, condition) for number in range(2) for condition in ("quiet", "busy") for _ in range(3)
    ]
    orders = {tuple(trial.case[0] for trial in example.ran[i : i + 3]) for i in range(0, 12, 3)}
    assert len(orders) > 1
    assert {tuple(sorted(order)) for order in orders} == {("a", "a", "b")}
    told = capsys.readouterr().out
    assert "## Letters\n\n`python -m tests.benchmarks example --only letters --out .`, on " in told
    assert "a: 8\n\nb: 4\n\n- met: ten" in told
    assert "## Whole" not in told


def test_a_run_that_was_interrupted_goes_on(example: Example) -> None:
    example.left = 7
    with pytest.raises(KeyboardInterrupt):
        run("--only", "letters", "--publish")
    example.left = 10**6
    assert run("--only", "letters", "--publish") == 0
    assert len(example.ran) == 12
    assert [(line["run"], "part" in line) for line in harness.read(Path("example.jsonl"))] == [
        *[(1, True)] * 12,
        (1, False),
    ]
    assert Path("example.md").read_text().startswith("# Title")


def test_a_new_run_replaces_its_parts_and_adds_on_demand(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--rounds", "1") == 1, "the goal of ten is missed"
    assert "- MISSED: ten" in capsys.readouterr().out
    assert run("--only", "letters", "--rounds", "1", "--add", "--beside", "ran a test") == 0
    told = capsys.readouterr().out
    assert "a: 8\n" in told
    assert told.count("- `python -m tests.benchmarks example") == 2
    assert "Beside it ran a test." in told
    ran = len(example.ran)
    run("--only", "--publish", "other")
    assert (len(example.ran), Path("other.md").read_text()) == (ran, told.removesuffix("\n"))
    run("--only", "letters", "--rounds", "1")
    told = capsys.readouterr().out
    assert "a: 4\n" in told
    assert "## Whole" in told, "parts that were not measured again stay"


def test_the_short_form_keeps_apart_and_is_not_published(example: Example) -> None:
    assert run("--short") == 0
    assert {trial.case for trial in example.ran} == {("c",), ()}
    assert sorted(path.name for path in Path().iterdir()) == ["example-short.jsonl", "example-short.md"]
    with pytest.raises(SystemExit):
        run("--short", "--publish")


def halved(trial: Trial) -> Any:
    return in_child(divmod, trial.case[0], 2)


@pytest.mark.parametrize("parallel", ["", "threads", "cores", "processes"])
def test_every_way_to_share_the_machine_returns_every_trial(parallel: str) -> None:
    trials = [Trial("part", "quiet", 0, (n,), n, Namespace(jobs=2), Path()) for n in range(3)]
    found = harness.results(Part("", halved, lambda found: [], parallel=parallel), trials)
    assert {trial.case: value for trial, value in found} == {(n,): [n // 2, n % 2] for n in range(3)}


def test_busy_processes_end() -> None:
    with pytest.raises(KeyError), busy_cores(1):
        raise KeyError


def test_formats() -> None:
    assert formats.share(97, 100) == "97 % (92–99)"
    assert formats.exact_share(0, 40) == "0 of 40 (0 to 9 %)"
    assert formats.exact_share(37, 40) == "37 of 40 (80 to 98 %)"
    assert formats.ranged([3, 1, 2], "{:.0f} %") == "2 % (1 % to 3 %)"
    assert formats.ranged([]) == "–"
    assert formats.interval(1, -2, 3, "{:+.0f}") == "+1 (-2 to +3)"


def test_a_table_is_written_as_it_reads() -> None:
    records = [{"n": 2, "s": 0.0123, "x": None}, {"n": 3, "s": 1, "x": 5.04}]
    told = formats.lines(records, "n | s, ms | x", "{n} | {s:1e3×.1f} | {x:.1f} %")
    assert told.splitlines()[2:] == ["| 2 | 12.3 | – |", "| 3 | 1000.0 | 5.0 % |"]


def test_help_lists_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert all(f"{question_of(name)} ({takes})" in told for name, takes in BENCHMARKS.items())
    assert DEFAULT == ["timing", "comparison", "load", "profiler"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_states_the_kernel_wherever_it_states_the_machine(page: Path) -> None:
    _, *machines = MACHINE.split(page.read_text(encoding="utf-8"))
    assert machines, "a page is about a machine: on_this_machine describes it"
    for machine in machines:
        head = machine.partition("\n\n")[0]
        assert "BLAS kernel" in head, head
        assert "not recorded" not in head, head


def test_the_machine_is_described_with_its_kernel_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")  # too late for what is loaded, which is why the kernel is asked
    kernel = next((blas.kernel for blas in loaded_blas() or () if blas.kernel), "not reported")
    assert f", BLAS kernel {kernel}, " in on_this_machine()
    assert ", OPENBLAS_CORETYPE=Nehalem, " in on_this_machine()
    assert MACHINE.search(on_this_machine())
