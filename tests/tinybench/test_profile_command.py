"""`tinybench profile` as a user meets it: scripts that end well, badly, at once, or somewhere else."""

from __future__ import annotations

import csv
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.undisturbed import once_undisturbed
from tinybench.shell.cli import WRONG, main
from tinybench.shell.profile_command import read

SCRIPT = """
import os, signal, sys, threading, time

def working(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(50))

def waiting():
    time.sleep(0.06)

class Unusual(Exception):
    pass

assert __name__ == "__main__" and sys.modules["__main__"].working is working
print("arguments", sys.argv[1:], os.path.dirname(os.path.abspath(__file__)) in sys.path)
working(0.06)
waiting()
"""
ENDS = {  # what the script does at its end, its exit code, and what is said of it
    "sys.exit(3)": (3, "ended with exit code 3"),
    "sys.exit('no data')": (1, "ended with exit code 1"),
    "raise Unusual('here')": (1, "the script raised Unusual"),
    "os._exit(4)": (4, "ended its process at once, with exit code 4"),
}
POSIX_ENDS = {
    "os.kill(os.getpid(), signal.SIGKILL)": (137, "killed by SIGKILL"),
    "os.kill(os.getpid(), signal.SIGINT); time.sleep(9)": (130, "stopped by Ctrl-C"),
    "os.kill(os.getppid(), signal.SIGTERM); time.sleep(9)": (143, "killed by SIGTERM"),
    "os.execv(sys.executable, [sys.executable, '-c', 'print(5)'])": (0, "replaced itself by"),
    "os.fork() or sys.exit(); os.wait()": (0, "the script forked 1 process, not looked at"),
    "signal.signal(signal.SIGALRM, print)": (0, "took SIGALRM for itself"),
}
posix = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX")


def script(folder: Path, end: str = "") -> str:
    file = folder / "script.py"
    file.write_text(SCRIPT + end + "\n")
    return str(file)


@once_undisturbed
def test_where_the_time_of_a_script_goes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = Path(tempfile.mkdtemp(dir=tmp_path), "out")
    code = main(["profile", "--interval", "2ms", "--out", str(out), script(tmp_path), "--", "--interval", "7", "-m"])
    told = capfd.readouterr()
    assert code == 0
    assert told.out == "arguments ['--interval', '7', '-m'] True\n"  # its own, and nothing else
    assert "Where 0." in told.err
    with (out / "shares.csv").open() as file:
        rows = {row["function"]: float(row["itself"].split()[0]) for row in csv.DictReader(file)}
    assert rows["waiting (script.py)"] == pytest.approx(50, abs=30)
    assert rows["working (script.py)"] == pytest.approx(50, abs=30)
    stacks = (out / "collapsed.txt").read_text().splitlines()
    assert all(line.startswith("<module> (script.py)") for line in stacks)  # nothing of what started it
    assert json.loads((out / "speedscope.json").read_text())["profiles"][0]["type"] == "sampled"
    assert json.loads((out / "perfetto.json").read_text())["traceEvents"]
    assert "<svg" in (out / "flame.html").read_text()


@pytest.mark.parametrize(("end", "code", "said"), [(end, *found) for end, found in ENDS.items()])
def test_however_it_ends(end: str, code: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--interval", "2ms", script(tmp_path, end)]) == code
    told = capfd.readouterr().err
    assert said in told
    assert "waiting (script.py)" in told
    assert "profiled_script.py" not in told  # neither in the table nor in its traceback
    if "raise" in end:
        assert "Unusual: here" in told
    if "no data" in end:
        assert "no data" in told


@posix
@pytest.mark.parametrize(("end", "code", "said"), [(end, *found) for end, found in POSIX_ENDS.items()])
def test_however_it_ends_under_posix(
    end: str, code: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    test_however_it_ends(end, code, said, tmp_path, capfd)


def test_other_threads_are_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    end = "thread = threading.Thread(target=working, args=[0.2]); thread.start(); working(0.1); thread.join()"
    assert main(["profile", script(tmp_path, end)]) == 0
    assert "only its main thread was looked at" in capfd.readouterr().err


def test_modules_and_files(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["--flame", "f.svg", "--speedscope", "s.json", "--perfetto", "p.json"]
    assert main(["profile", "-m", *words, "script", "-x"]) == 0
    told = capfd.readouterr()
    assert "arguments ['-x']" in told.out
    assert "working (script.py)" in told.err
    assert all((tmp_path / name).stat().st_size for name in ("f.svg", "s.json", "p.json"))
    assert told.err.count("tinybench: wrote") == 3


def test_a_script_that_is_over_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "brief.py").write_text("x = 1\n")
    assert main(["profile", "--interval", "1h", str(tmp_path / "brief.py")]) == 0
    assert "give a smaller --interval, or more to do" in capfd.readouterr().err


def test_mistakes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words, said in {
        ("nowhere.py",): "no such file; a module takes -m",
        ("--interval", "fast", "x.py"): "is no duration",
        ("--interval", "0ms", "x.py"): "no time at all",
        ("--flame", str(tmp_path / "no" / "f.svg"), script(tmp_path)): "there is no folder",
    }.items():
        assert main(["profile", *words]) == WRONG
        told = capfd.readouterr()
        assert said in told.err
        assert "arguments" not in told.out  # nothing ran


def test_a_script_with_an_error_of_syntax(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    assert main(["profile", str(tmp_path / "broken.py")]) == 1
    assert "SyntaxError" in capfd.readouterr().err


def test_a_line_that_was_not_finished_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "looks").write_text('{"stack": ["a", "b"]}\n[0.0, 0.01, 0]\n[0.01, 0.0')
    run = read(tmp_path / "looks", -9)
    assert [tuple(sample) for sample in run.samples] == [(0.0, ("a", "b"), 0.01)]
    assert "killed by SIGKILL" in run.ended or sys.platform == "win32"
