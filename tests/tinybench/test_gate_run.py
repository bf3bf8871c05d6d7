"""`tinybench gate --run` as a release meets it: right as often as it says, and clear when something is in the way."""

from __future__ import annotations

import json
import math
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinybench.result import BenchmarkResult
from tinybench.shell import comparison_sessions, gate_run
from tinybench.shell import measuring_sessions as running
from tinybench.shell.cli import OK, REGRESSION, UNDECIDED, WRONG, main
from tinybench.shell.comparison_sessions import Measured, share_plan
from tinybench.shell.gate_run import LEAST, GateRun, answer_so_far, decision_so_far, sessions_needed
from tinybench.shell.gate_targets import read_target, read_targets
from tinybench.shell.measuring_sessions import run_sessions, stopping_on_term
from tinybench.shell.side_process import ProcessorWait

ZOO = """
import asyncio, os, sys, time
with open("started", "a") as file:
    file.write(".")

def short():
    return sum(range(2_000))

def long():
    return sum(range(60_000))

def loud():
    print("not an answer", flush=True)
    return short()

def bad():
    raise ArithmeticError("out of luck")

def late():
    if os.path.getsize("started") > 4:
        raise ArithmeticError("in the third session")

def dies():
    print("last words", file=sys.stderr, flush=True)
    os._exit(7)

def hangs():
    time.sleep(1000)

def sleeps():
    time.sleep(2e-2)

async def later():
    pass

def yields():
    yield 1

def model():
    return lambda x: x.sum()

def changes():
    def call(x):
        x += 1
    return call

number = 5
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(comparison_sessions, "WARM_UP", 0.01)
    monkeypatch.setattr(running, "SHARE", 1e-4)
    (tmp_path / "zoo_of_gates.py").write_text(ZOO)
    (tmp_path / "needy_gates.py").write_text("import nothing_of_this_name\n")
    np.save(tmp_path / "rows.npy", np.ones((3, 4)))
    return tmp_path


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let four sessions decide that agree."""
    monkeypatch.setattr(gate_run, "STOP_AT", 3.0)


def gate(*arguments: str) -> int:
    return main(["gate", "--run", *(a.replace("zoo:", "zoo_of_gates:") for a in arguments)])


def measured_ratios(*ratios: float) -> Measured:
    """Sessions of one round each."""
    measured = Measured({"old": [], "new": []})
    for number, ratio in enumerate(ratios):
        measured.add(number, {"old": 1e-3, "new": ratio * 1e-3})
    return measured


def git(*arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *arguments], check=True, capture_output=True, text=True).stdout


def test_a_command_takes_no_less_than_it_runs(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    waits = iter(range(100))
    monkeypatch.setattr(
        ProcessorWait, "__call__", lambda _: 10.0 * next(waits)
    )  # as if counted twice, on a busy machine
    busy = [sys.executable, "-S", "-c", "for _ in range(100_000): pass"]
    target = read_target(shlex.join(busy), folder)
    least = 1e-3 if ProcessorWait().file >= 0 else -1000
    assert comparison_sessions.run_command("new", target, time.monotonic() + 600) > least


@pytest.fixture
def repository(folder: Path) -> Path:
    """A repository whose last commit made `task` a hundred times as long, with a further change that is not committed."""
    git("init", "-q")
    for iterations in (1_000, 100_000, 200_000):
        (folder / "task.py").write_text(f"def once():\n    return sum(range({iterations}))\n")
        if iterations < 200_000:
            git("add", "task.py")
            git("commit", "-qm", "x")
    return folder


# The verdict


@pytest.mark.parametrize(("truth", "wrong"), [(1.05, "fails"), (1.0501, "passes"), (1.0, "fails"), (1.1, "passes")])
def test_a_wrong_verdict_is_rare_however_often_one_looks(truth: float, wrong: str) -> None:
    rng, found = np.random.default_rng(1), []
    for _ in range(300):
        logs: list[float] = []
        for step in rng.standard_t(2, 60):  # heavy tails
            logs.append(math.log(truth) + 0.02 * step)
            if verdict := decision_so_far(logs, 0.05)[0]:
                break
        found.append(verdict)
    assert found.count(wrong) <= 300 * 0.02 + 3 * math.sqrt(300 * 0.02)
    if truth in (1.0, 1.1):
        assert found.count("passes" if truth == 1.0 else "fails") > 285


def test_eight_sessions_that_agree_are_the_least() -> None:
    assert decision_so_far([0.0] * (LEAST - 1), 0.05)[0] == ""
    assert decision_so_far([0.0] * LEAST, 0.05)[0] == "passes"
    assert decision_so_far([0.1] * LEAST, 0.05)[0] == "fails"
    assert decision_so_far([0.1, 0.0] * 20, 0.05)[0] == ""


def test_what_is_needed_is_about_right() -> None:
    assert sessions_needed([], 0.05) == LEAST
    assert sessions_needed([0.0] * 3, 0.05) == LEAST - 3
    assert sessions_needed([0.0, 0.1] * 5, 0.05) is None
    rng = random.Random(2)
    lengths = []
    for _ in range(200):  # 9 of 10 sessions below the limit
        logs: list[float] = []
        while not decision_so_far(logs, 0.05)[0]:
            logs.append(0.0 if rng.random() < 0.9 else 0.1)
        lengths.append(len(logs))
    told = 10 + (sessions_needed([0.0] * 9 + [0.1], 0.05) or 0)
    assert 0.5 < told / float(np.median(lengths)) < 2


def test_a_session_counts_once_however_many_rounds_it_has() -> None:
    measured = Measured({"old": [], "new": []})
    for _ in range(50):
        measured.add(0, {"old": 1.0, "new": 2.0})
    measured.add(1, {"old": 1.0, "new": 1.0})
    assert gate_run.log_ratios(measured) == [pytest.approx(math.log(2)), 0.0]


def test_the_answer_in_words_and_as_data(folder: Path) -> None:
    targets = {name: read_target(f"m:{name}", folder) for name in ("old", "new")}
    answer = answer_so_far(targets, measured_ratios(*[1.2] * 9), 0.05, 18.0)
    assert str(answer).startswith("fails (limit 5 % slower): m:new against m:old: time +20 %")
    assert "9 sessions in fresh processes, 18.0 s" in str(answer)
    assert answer.to_dict()["slowdown"] == pytest.approx(0.2)
    few = answer_so_far(targets, measured_ratios(1.0, 1.0), 0.05, 4.0)
    assert few.verdict == "cannot tell: needs about 6 more sessions (about 12 s more)"
    assert "no interval yet" in str(few)
    assert json.loads(json.dumps(few.to_dict()))["interval"] is None
    assert "takes 30 times as long" in str(answer_so_far(targets, measured_ratios(30.0), 0.05, 4.0))
    nothing = answer_so_far(targets, measured_ratios(), 0.05, 4.0)
    assert "nothing measured yet" in str(nothing)
    assert nothing.ratio is None


def test_blocks_are_shared_unless_lengths_are_far_apart() -> None:
    alike = share_plan({"old": 50e-9, "new": 60e-9})
    assert alike["old"] == alike["new"]
    assert alike["old"][0] * 50e-9 >= 50e-6  # long for the clock
    apart = share_plan({"old": 1e-6, "new": 1.0})
    assert apart["old"][0] > 1
    assert apart["new"] == (1, 1, 0)


# Whole runs


def test_functions_in_fresh_processes(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert gate("zoo:short", "zoo:long", "--save", "found.json", "--seed", "1") == REGRESSION
    out, err = capsys.readouterr()
    assert out.startswith("fails (limit 5 % slower): zoo_of_gates:long takes")
    assert "cores of" in out
    assert "session 1" in err
    assert "the measurements are in found.json" in err
    found = json.loads((folder / "found.json").read_text())["results"]
    old, new = (BenchmarkResult.from_dict(found[name]) for name in ("old", "new"))
    assert len(set(new.metadata["sessions"])) == 8
    assert len(new.metadata["sessions"]) == new.count == old.count
    assert new.metadata["pairing"] == old.metadata["pairing"]
    assert new.metadata["target"] == "zoo_of_gates:long"
    assert gate("zoo:long", "zoo:loud", "--format", "json") == OK
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "passes"
    assert answer["slowdown"] < -0.5
    assert answer["system"]["cpu"]


@pytest.mark.usefixtures("brief")
def test_models_with_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate("zoo:model", "zoo:model", "--data", "rows.npy", "--max-slowdown", "95%", "--batch", "2") == OK
    assert "note: old and new run the same bytes" in capsys.readouterr().out
    assert gate("zoo:model", "zoo:changes", "--data", "rows.npy") == WRONG
    assert "changes its input" in capsys.readouterr().err


@pytest.mark.usefixtures("brief")
def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    quick, slow = (f'"{sys.executable}" -Sc "import time; time.sleep({s})"' for s in (0, 0.3))
    assert gate(quick, slow) == REGRESSION
    assert gate(quick, f'"{sys.executable}" -c "raise SystemExit(\'sorry\')"') == WRONG
    assert "exit code 1:\nsorry" in capsys.readouterr().err


@pytest.mark.usefixtures("brief")
def test_commits(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(repository.iterdir())
    assert gate("HEAD~1", "HEAD", "--call", "task:once") == REGRESSION
    out = capsys.readouterr().out
    assert "task:once at HEAD takes" in out
    assert '"." measures them' in out  # the change that is not committed
    assert gate("HEAD", ".", "--call", "task:once", "--format", "json", "--max-slowdown", "50%") == REGRESSION
    assert json.loads(capsys.readouterr().out)["slowdown"] == pytest.approx(1, abs=0.7)
    assert git("worktree", "list").count("\n") == 1
    assert set(repository.iterdir()) - before <= {repository / "__pycache__"}


@pytest.mark.usefixtures("brief")
def test_a_model_in_two_commits_gets_the_same_data(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "maker.py").write_text("def make():\n    return lambda x: x.sum()\n")
    git("add", "maker.py")
    git("commit", "-qm", "a model")
    assert gate("HEAD", "worktree", "--call", "maker:make", "--data", "rows.npy", "--max-slowdown", "95%") == OK
    assert "same bytes" in capsys.readouterr().out


@pytest.mark.usefixtures("brief")
def test_two_commits_with_the_same_code_are_named(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "readme").write_text("x")
    git("stash")
    git("add", "readme")
    git("commit", "-qm", "words")
    assert gate("HEAD~1", "HEAD", "--call", "task:once", "--max-slowdown", "95%") == OK
    assert "same bytes" in capsys.readouterr().out
    with read_targets("HEAD~1", "HEAD", "python -m task") as (targets, _):
        assert Path(targets["old"].environment["PYTHONPATH"].split(os.pathsep)[0]) == targets["old"].root


def test_a_third_commit_beside_the_two(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git("stash")
    for beside, names in (("HEAD~1", ["old", "new"]), ("HEAD~2", ["old", "new", "baseline"])):
        if beside == "HEAD~2":
            git("commit", "-qm", "words", "--allow-empty")
        with read_targets("HEAD~1", "HEAD", "task:once", beside) as (targets, _):
            assert list(targets) == names
    assert targets["baseline"].commit == git("rev-parse", "HEAD~2").strip()
    assert gate("HEAD~1", "HEAD", "--beside", "HEAD~2") == WRONG
    assert "--beside: only with --call, which says what to run in each commit" in capsys.readouterr().err
    answer = GateRun(
        "passes", "a|b", "c", 2.5, (2.0, 3.0), 0.05, 8, 1.0, None, {"old": 0.001, "new": 0.0025}, ("busy",)
    )
    assert "| a\\|b | 1 ms |" in answer.markdown()
    assert "2.5 times as long (2.0 to 3.0)" in answer.markdown()
    assert "Note: busy." in answer.markdown()


def test_sessions_of_one_model(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    command = ["measure", "zoo_of_gates:model", "--data", "rows.npy", "--sessions", "3", "--seconds", "6"]
    assert main([*command, "--save", "base.json"]) == OK
    assert "medians of 3 sessions" in capsys.readouterr().out
    [found] = json.loads((folder / "base.json").read_text())["results"].values()
    result = BenchmarkResult.from_dict(found)
    assert set(result.metadata["sessions"]) == {0, 1, 2}
    assert result.metadata["input_shape"] == [1, 4]
    assert main(["measure", "zoo_of_gates:model", "--data", "rows.npy", "--sessions", "0"]) == WRONG


# What is in the way


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("zoo:short", "zoo:bad", "new (zoo_of_gates:bad) raised ArithmeticError: out of luck"),
        ("zoo:dies", "zoo:short", "old (zoo_of_gates:dies) ended with exit code 7:\nlast words"),
        ("zoo:short", "zoo:later", "asyncio.run"),
        ("zoo:yields", "zoo:short", "list(function())"),
        ("zoo:short", "zoo:shrot", "looked for shrot in"),
        ("zoo:short", "zoo:shrot", "there is short"),
        ("zoo:short", "zoo:number", "number cannot be called: it is of the type int"),
        ("zooo:short", "zoo:short", "looked for a module zooo in"),
        ("needy_gates:f", "zoo:short", "No module named 'nothing_of_this_name'"),
        ("nowhere", "zoo:short", "add --call"),
        ("a.onnx", "zoo:short", "a.onnx: no such file"),
        ("'open", "zoo:short", "No closing quotation"),
        ("git --version", "zoo:short", "one is a command"),
    ],
)
def test_a_side_that_cannot_be_measured(old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(old, new, "--seconds", "30") == WRONG
    out, err = capsys.readouterr()
    assert said in err
    assert out == ""


def test_a_side_that_hangs_is_named_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    start = time.monotonic()
    assert gate("zoo:short", "zoo:hangs", "--seconds", "2.5") == WRONG
    assert "new (zoo_of_gates:hangs) gave no answer" in capsys.readouterr().err
    assert time.monotonic() - start < 60
    assert gate(f'"{sys.executable}" -c "import time; time.sleep(1000)"', "git --version", "--seconds", "1") == WRONG
    assert "did not end in the time there was" in capsys.readouterr().err


def test_what_was_measured_before_an_error_is_kept(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert gate("zoo:short", "zoo:late", "--save", "found.json", "--seconds", "40") == WRONG
    out, err = capsys.readouterr()
    assert out.startswith("cannot tell")
    assert "2 sessions in fresh processes" in out
    assert "raised ArithmeticError: in the third session" in err
    [found, _] = json.loads((folder / "found.json").read_text())["results"].values()
    assert set(found["metadata"]["sessions"]) == {0, 1}


def test_ctrl_c_keeps_what_was_measured_and_leaves_no_worktree(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(number: int, targets: Any, measured: Measured, *_: Any, **__: Any) -> None:
        if number == 3:
            raise KeyboardInterrupt
        measured.add(number, {"old": 1.0, "new": 1.0})

    monkeypatch.setattr(running, "process_session", interrupted)
    assert gate("HEAD~1", "HEAD", "--call", "task:once", "--save", "found.json") == 130
    out, err = capsys.readouterr()
    assert "3 sessions in fresh processes" in out
    assert "the measurements are in found.json" in err
    assert git("worktree", "list").count("\n") == 1
    assert (repository / "found.json").is_file()
    assert gate("HEAD~1", "HEAD", "--call", "task:once") == 130
    [rescued] = repository.glob("tinybench-*.json")
    assert f"the measurements are in {rescued.name}" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that can be caught")
def test_a_cancelled_job_ends_like_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), stopping_on_term():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("brief")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_costs_nothing(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert gate("zoo:long", "zoo:short", "--save", "/dev/full") == WRONG
    out, err = capsys.readouterr()
    assert out.startswith("passes")
    assert "cannot write /dev/full" in err
    [rescued] = folder.glob("tinybench-*.json")
    assert rescued.name in err
    assert json.loads(rescued.read_text())["results"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--run", "a:b", "a:c", "--save", "nowhere/x.json"), "no folder"),
        (("--run", "a:b", "a:c", "--model", "m"), "--model: only without --run"),
        (("a.json", "b.json", "--seconds", "4"), "--seconds: only with --run"),
        (("--run", "a:b", "a:c", "--seconds", "0"), "seconds is 0"),
        (("--run", "a:b", "a:c", "--data", "no.npy"), "no.npy: no such file"),
        (("--run", "a:b", "a:c", "--seconds", "nan"), "seconds is nan"),
        (("--run", "HEAD", "HEAD", "--call", "a:b"), "git rev-parse in"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", *arguments]) == WRONG
    assert said in capsys.readouterr().err


def test_commits_that_do_not_exist(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate("v9", "HEAD", "--call", "task:once") == WRONG
    assert "there is no commit 'v9'" in capsys.readouterr().err
    assert gate("HEAD", ".", "--call", "new.onnx", "--data", "rows.npy") == WRONG
    assert "HEAD has no file new.onnx" in capsys.readouterr().err
    assert gate("HEAD", "HEAD", "--call", "json:dumps") == WRONG
    assert "does not belong to the commit" in capsys.readouterr().err
    assert git("worktree", "list").count("\n") == 1


# Time and words


def test_the_time_is_kept(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    now = 100.0

    def session(number: int, targets: Any, measured: Measured, *_: Any, **__: Any) -> None:
        nonlocal now
        now += 3
        measured.add(number, {"old": 1.0, "new": 1.0})

    monkeypatch.setattr(running, "process_session", session)
    monkeypatch.setattr(running.time, "monotonic", lambda: now)
    measured = Measured({"old": [], "new": []})
    run_sessions({name: read_target("a:b", folder) for name in ("old", "new")}, measured, 20.0)
    assert measured.count == 6  # the seventh would end after 21 s


def test_the_wait_for_a_processor() -> None:
    wait = ProcessorWait()
    first = wait()
    assert 0 <= first <= wait()
    wait.close()
    unknown = ProcessorWait("no-such-thread")
    assert unknown() == 0
    unknown.close()


@pytest.mark.usefixtures("brief")
def test_a_call_that_waits_is_said_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate("zoo:sleeps", "zoo:sleeps", "--max-slowdown", "95%") == OK
    assert "waits most of its time" in capsys.readouterr().out


def test_an_undecided_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate("zoo:long", "zoo:short", "--seconds", "0.5") == UNDECIDED
    assert "cannot tell: needs about" in capsys.readouterr().out
