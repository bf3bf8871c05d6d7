"""No option is ignored: each is used whatever else stands on the command line, or refused with the reason.

Every option of every command stands in one of two tables, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

from autograder.cli import commands as autograder
from autograder.cli import main as run_autograder
from tinybench.shell import magic
from tinybench.shell.cli import WRONG
from tinybench.shell.cli import commands as tinybench
from tinybench.shell.cli import main as run_tinybench
from tinybench.shell.profile_command import profile_script

# Options that hold for every use of their command.
ALWAYS = {
    "tinybench compare": "--data --batch --seconds --mode --seed --save --format --margin",
    "tinybench measure": "--sessions --data --batch --seconds --seed --save --format",
    "tinybench gate": "--max-slowdown --run --format",
    "tinybench run": "--data --batch --out --rounds --resume --requirements",
    "tinybench study": "--out --batches --rounds --threads --variants --requirements",
    "tinybench load": "--seconds --closed --data --bound --timeout --save --format",
    "tinybench machine": "--json --roofs",
    # the server prints that it makes no batches, where --max-wait has nothing to wait for
    "tinybench serve": "--host --port --workers --threads --max-batch --max-wait --max-queue --timeout --max-body "
    "--stall --fault --reference --trace",
    "tinybench history add": "--file --baseline --model --against --commit --committed --benchmark --machine --lines "
    "--condition",
    "tinybench history show": "--file --benchmark --machine --json --figure --page",
    "tinybench history changes": "--file --benchmark --machine --json",
    "tinybench history export": "--file --benchmark --machine",
    "tinybench history import": "--file",
    "tinybench watch": "--objective --bound --rules --dashboard",
    "tinybench rollout": "--data --rate --users --bound --mirrored --every --patience --longest --fault "
    "--seed --prometheus --journal --json",
    "autograder export": "--check",
    "autograder lint": "--fix",
    "autograder release": "--path --with --force --no-explanations --no-verify",
    "autograder restore": "--programs",
    "autograder publish": "--with --url --force",
    "autograder borrow": "--force",
    "autograder course": "--no-browser --port",
    "autograder grade": "--student --regrade --dry-run --scheduler --json",
    "autograder feedback": "--student",
    "autograder package": "--student --json",
    "autograder similarity": "--top --with",
    "autograder demo": "--out",
    "autograder leaderboard check": "--events",
    "autograder leaderboard clock": "--database --trust",
    "autograder leaderboard data": "--events",
    "autograder leaderboard enter": "--event --url --token --wait",
    "autograder leaderboard export": "--events --database --out",
    "autograder leaderboard rehearse": "--events --baseline --quick --unconfined",
    "autograder leaderboard serve": "--events --database --port --fd --prefix --no-worker",
    "autograder leaderboard token": "--events --database",
    "autograder leaderboard worker": "--events --database",
}
# Uses in which an option would have no effect, and what is said then.
REFUSED = {
    "tinybench compare zoo:a zoo:b --data rows.npy --threads 2": "--threads: only for .onnx files",
    "tinybench measure zoo:a --data rows.npy --threads 2": "--threads: only for .onnx files",
    "tinybench measure zoo:a --data rows.npy --sessions 2 --mode hot": "--mode: only without --sessions",
    "tinybench gate a.json b.json --call zoo:a": "--call: only with --run",
    "tinybench gate a.json b.json --beside v1": "--beside: only with --run",
    "tinybench gate a.json b.json --data rows.npy": "--data: only with --run",
    "tinybench gate a.json b.json --batch 2": "--batch: only with --run",
    "tinybench gate a.json b.json --threads 2": "--threads: only with --run",
    "tinybench gate a.json b.json --seconds 2": "--seconds: only with --run",
    "tinybench gate a.json b.json --seed 2": "--seed: only with --run",
    "tinybench gate a.json b.json --save c.json": "--save: only with --run",
    "tinybench gate --run zoo:a zoo:b --model a": "--model: only without --run",
    "tinybench gate --run zoo:a zoo:b --allow cpu": "--allow: only without --run",
    "tinybench gate --run zoo:a zoo:b --beside v1": "--beside: only with --call",
    "tinybench gate --run 'python a.py' 'python b.py' --batch 8": "--batch: only with --data",
    "tinybench gate --run 'python a.py' 'python b.py' --threads 8": "--threads: only for .onnx files",
    "tinybench gate --run v1 v2 --call zoo:a --threads 8": "--threads: only for .onnx files",
    "tinybench run zoo:a zoo:b --data rows.npy --threads 2": "--threads: only for .onnx files",
    "tinybench study --data rows.npy": "--data belongs to a model of yours",
    "tinybench serve model.onnx --detector conformal": "--detector: only with --reference",
    "tinybench load http://127.0.0.1:1 --think 1ms": "--think: only with --closed",
    "tinybench load http://127.0.0.1:1 --closed 2 --rate 5": "--rate: only without --closed",
    "tinybench load http://127.0.0.1:1 --closed 2 --scenario constant": "--scenario: only without --closed",
    "tinybench load http://127.0.0.1:1 --closed 2 --connections 5": "--connections: only without --closed",
    "tinybench load http://127.0.0.1:1 --closed 2 --data rows.npy --seed 5": "--seed: only without --data or",
    "tinybench machine --threads 2": "--threads: only with --roofs",
    "tinybench machine --seconds 2": "--seconds: only with --roofs",
    "tinybench machine --figure roofs.svg": "--figure: only with --roofs",
    "tinybench profile model.onnx --module": "No such option '--module'",
    "tinybench profile --interval 5ms model.onnx": "--interval: only for a script",
    "tinybench profile --out folder model.onnx": "--out: only for a script",
    "tinybench profile --flame a.svg model.onnx": "--flame: only for a script",
    "tinybench profile --speedscope a.json model.onnx": "--speedscope: only for a script",
    "tinybench profile --perfetto a.json model.onnx": "--perfetto: only for a script",
    "tinybench profile --batch 8 model.onnx": "write it after the file, as in tinybench profile model.onnx --batch",
    "tinybench history show --json --format csv": "--format: only without --json",
    "tinybench history show --json --last 5": "--last: only for a table",
    "tinybench history show --format json --last 5": "--last: only for a table",
    "tinybench watch --rules r.yml --every 1s": "--every: only with a server",
    "tinybench watch --rules r.yml --for 1min": "--for: only with a server",
    "tinybench watch --rules r.yml --window 2h": "--window: only with a server",
    "tinybench watch --rules r.yml --factor 2": "--factor: only with a server",
    "tinybench watch --rules r.yml --json": "--json: only with a server",
    "tinybench watch --rules r.yml --figure f.svg": "--figure: only with a server",
    "tinybench watch --rules r.yml --start-prometheus": "--start-prometheus: for which servers?",
    "tinybench watch http://127.0.0.1:1 --prometheus http://127.0.0.1:2": "--prometheus knows its servers",
    "tinybench rollout model.onnx model.onnx --data rows.npy --label-delay 1s": "--label-delay: only for --data with",
    "tinybench rollout model.onnx model.onnx --data labelled.npz --allowed 2%": "--allowed: only for --data without",
    "tinybench rollout model.onnx model.onnx --data rows.npy --resume": "--resume: without a --journal",
    "autograder grade 01 --assignment 01_tiny": "name assignments",
    "autograder feedback 01 --assignment 01_tiny": "name assignments",
    "autograder similarity 01 --assignment 01_tiny": "name assignments",
    "autograder grade 01 --dry-run --workers 2": "--workers: only without --dry-run",
    "autograder grade 01 --dry-run --scheduler tcp://a": "--scheduler: only without --dry-run",
    "autograder grade 01 --dry-run --unsafe": "--unsafe: only without --dry-run",
    "autograder grade 01 --scheduler tcp://a --workers 2": "--workers: only without --scheduler",
    "autograder grade 01 --scheduler tcp://a --unsafe": "--unsafe: only without --scheduler",
    "autograder similarity 01 --json --csv": "--json or --csv",
    "autograder leaderboard serve --fd 0 --host 0.0.0.0": "--host: only without --fd",
}


def walk(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a group with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from walk(command, f"{words} {name}")
        else:
            yield f"{words} {name}", command


def spellings(command: click.Command) -> list[str]:
    return [max(each.opts, key=len) for each in command.params if isinstance(each, click.Option)]


COMMANDS = dict([*walk(tinybench, "tinybench"), *walk(autograder, "autograder")])


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_is_in_one_of_the_tables(words: str) -> None:
    refused = {
        option
        for use in REFUSED
        if use.startswith(f"{words} ")
        for option in shlex.split(use)
        if option.startswith("--") and option not in ALWAYS.get(words, "").split()
    }
    known = {*ALWAYS.get(words, "").split(), *refused}
    assert known >= {*spellings(COMMANDS[words])}, "a new option: when is it ignored?"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, course: Path, module: object) -> Path:
    """A folder with a course of one module and files of the names above; nothing of them is measured."""
    module()  # type: ignore[operator]
    for name in ("model.onnx", "a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    np.save(tmp_path / "rows.npy", np.zeros((2, 2), np.float32))
    np.savez(tmp_path / "labelled.npz", X=np.zeros((2, 2), np.float32), y=np.zeros(2, int))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("use", "said"), REFUSED.items())
def test_what_would_have_no_effect_is_refused(
    use: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(folder)
    program, *words = shlex.split(use)
    if program == "tinybench":
        assert run_tinybench(words) == WRONG
    else:
        with pytest.raises(SystemExit, match="2"):
            run_autograder(words)
    assert said in capsys.readouterr().err
    assert files(folder) == before, "nothing is written before the refusal"


@pytest.mark.parametrize(
    ("use", "named"),
    [
        ("tinybench compare a.onnx b.onnx zoo:c --data d.npy", "a.onnx, b.onnx, d.npy: no such files"),
        ("tinybench measure a.joblib --data d.npy", "a.joblib, d.npy: no such files"),
        ("tinybench run a.onnx model.onnx b.joblib --data rows.npy", "a.onnx, b.joblib: no such files"),
        ("tinybench rollout a.onnx b.onnx --data d.npy", "a.onnx, b.onnx, d.npy: no such files"),
        ("tinybench rollout a.pt b.pt --data d.npy", "'a.pt', 'b.pt': not an .onnx file"),
        ("tinybench history import a.jsonl b.jsonl", "a.jsonl, b.jsonl: no such files"),
        ("tinybench profile --flame no/f.svg --perfetto nor/p.json script.py", "there is no folder no, nor"),
        ("autograder leaderboard token Ada Ada Ben Ben ''", "'Ada' is named twice; 'Ben' is named twice; one of"),
    ],
)
def test_all_that_is_wrong_is_said_at_once(
    use: str, named: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("script.py").touch()
    program, *words = shlex.split(use)
    assert (run_tinybench if program == "tinybench" else run_autograder)(words)
    assert named in capsys.readouterr().err


HANDED_ON = [*(spelling for each in profile_script.params if isinstance(each, click.Option) for spelling in each.opts), "-h", "--help"]  # fmt: skip


@pytest.mark.parametrize("option", HANDED_ON)
def test_an_option_after_the_script_is_refused_and_handed_on_after_dashes(
    option: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("script.py").write_text("import sys\nprint('ran with', sys.argv[1:])\n")
    for words in ([option], [f"{option}=5"], ["first", option, "5"]):
        assert run_tinybench(["profile", "script.py", *words]) == WRONG
        told = capfd.readouterr()
        assert f"tinybench profile {option}" in told.err
        assert f"tinybench profile script.py -- {option}" in told.err
        assert "ran with" not in told.out
    if option != HANDED_ON[0]:
        return  # once is enough: these run the script
    for words, passed in (
        (["script.py", "--", option, "5"], [option, "5"]),
        (["--", "script.py", option, "5"], [option, "5"]),
        (["script.py", "a", "--", option, "--"], ["a", option, "--"]),
    ):
        assert run_tinybench(["profile", *words]) == 0
        assert capfd.readouterr().out == f"ran with {passed}\n"


@pytest.mark.parametrize(
    ("line", "cell", "said"),
    [
        ("f(x) -s 4", None, "-s 4 is not read here"),
        ("f(x) vs g(x) --seconds 4", None, "--seconds is not read here"),
        ("--seconds 4 f(x)", None, "--seconds is not read here"),
        ("--seconds 4", "f(x)", "--seconds is not read here"),
        ("-s 4 f(x)", "g(x)", "'f(x)' on its own line would be ignored"),
    ],
)
def test_the_magic_reads_all_of_its_line(line: str, cell: str | None, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        magic._read(line, cell)
    assert magic._read("-s4 f(x) vs g(x)", None) == (4, {"f(x)": "f(x)", "g(x)": "g(x)"})
    assert magic._read("f('a -s 4 b') - s", None)[0] == magic.SECONDS
