"""Every command line of the documents runs, here or in another test, and what it promises is there afterwards."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import yaml
from IPython.core.interactiveshell import InteractiveShell

from autograder import time_limits
from autograder.cli import main as autograder
from autograder.course.export import export_course
from autograder.files import write_atomically
from tests.documents import ROOT, all_commands, blocks, documents
from tests.documents.elsewhere import ELSEWHERE, NAMES
from tests.grading.instructor_page import STEPS
from tests.tiny_course import CHECK, HALVE, SETUP, code, new_course, write_module
from tinybench.result import BenchmarkResult
from tinybench.shell.cli import main as tinybench

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
MEASURED = (0, 1, 2)  # a gate passes, fails or cannot tell


class Run(NamedTuple):
    """How a command line runs here: more words that make it short, and what it promises."""

    more: str = ""
    makes: tuple[str, ...] = ()
    says: str = ""
    codes: tuple[int, ...] = (0,)


# In this order, in one folder; servers are stopped at the end.
ENGINEER = {
    "tinybench --help": Run(says="examples:"),
    "tinybench machine": Run(says="measurement"),
    "tinybench machine --roofs": Run("--seconds 0.5", says="float32"),
    "tinybench compare fp32.onnx int8.onnx --data digits.npz --batch 256": Run("--seconds 0.5", says="int8"),
    "tinybench compare app.models:small app.models:large --data rows.npy --seconds 10 --format markdown": Run("--seconds 0.5", says="| app.models:large"),
    "tinybench measure model.onnx --data digits.npz --save baseline.json": Run("--seconds 0.5", ("baseline.json",), "median"),
    "tinybench gate baseline.json candidate.json --max-slowdown 5%": Run(says="passes"),
    "tinybench gate --run v1.2 HEAD --call app.models:predict_once": Run("--seconds 1", says="app.models:predict_once at v1.2", codes=MEASURED),
    "tinybench gate --run v1.2 HEAD --call app.models:predict_once --beside v1.0 --save result.json": Run("--seconds 1", ("result.json",), codes=MEASURED),
    "tinybench history add result.json": Run(makes=("tinybench-history.db",), says="added"),
    "tinybench history changes": Run(says="commit", codes=MEASURED),
    "tinybench history show --page history.html": Run(makes=("history.html",)),
    "tinybench history import FOLDER/*.jsonl": Run(says="1 measurement"),
    "tinybench run fp32.onnx int8.onnx --data digits.npz --out study": Run("--rounds 6", ("study/report.html", "study/report.md", "study/*.csv"), "report.html"),
    "tinybench study classifier.joblib --data digits.npz --out hardware": Run("--rounds 6 --batches 1 --variants NumPy 'ONNX FP32'", ("hardware/report.html", "hardware/hardware_tradeoffs.csv"), "report.html"),
    "tinybench serve model.onnx --workers 2 --max-batch 16 --max-wait 2ms": Run(says="tinybench_requests"),
    "tinybench load http://127.0.0.1:8000 --rate 200 --seconds 20 --bound 50ms": Run("--seconds 3", says="p99", codes=(0, 3)),  # 3: a busy machine
    "tinybench watch http://127.0.0.1:8000 --objective 99.9% --bound 50ms": Run("--for 1s --every 500ms --window 6s", says="99.9", codes=MEASURED),
    "tinybench serve model.onnx --reference tested.npz": Run(says="tinybench_drift"),
    "tinybench profile --out profile script.py": Run(makes=tuple(f"profile/{name}" for name in ("flame.html", "speedscope.json", "perfetto.json", "shares.csv")), says="profile/flame.html"),
    "tinybench profile model.onnx --batch 64": Run("--seconds 0.5", says="MatMul|Gemm"),
}  # fmt: skip
SERVER = "http://127.0.0.1:8000"

# In a course of seven small modules; the proof of a release has its own tests.
INSTRUCTOR = {
    "autograder lint --fix": Run(says="7 notebooks are clean"),
    "autograder export": Run(makes=("tinybench/latency.py",), says="8 files"),
    "autograder release --no-explanations": Run("--no-verify", ("course/release/03_latency", "student/map.ipynb"), "released"),
    "autograder release --with 01-05": Run("--no-verify", ("student/tinybench/references/memory.py",), "01_result, 02_timer, 03_latency, 04_accuracy, 05_memory"),
    "autograder publish ../our-course": Run(makes=("../our-course/README.md", "../our-course/01_result/01_result.ipynb"), says="our-course: "),
    "autograder publish ../our-course --url https://github.com/OWNER/REPOSITORY": Run(says="https://github.com/OWNER/REPOSITORY"),
    "autograder release": Run("--no-verify --with none", says="references in student/tinybench: none"),
    "autograder status": Run(says="03_latency +not built yet"),
    "autograder borrow 03_latency": Run(makes=("student/tinybench/references/latency.py",), says="03_latency: reference, borrowed"),
    "autograder borrow 01 02 05-07": Run(makes=("student/tinybench/references/comparison.py",), says="07_comparison: reference, borrowed"),
    "autograder save my-work.zip": Run(makes=("my-work.zip",)),
    "autograder restore my-work.zip": Run(says="my-work.zip|notebook|module"),
}  # fmt: skip

LEADERBOARD = {
    'autograder leaderboard token "Ada" "Ben"': Run(says="Ben\t"),
    "autograder leaderboard export --out results/": Run(makes=("results/latency.csv",), says="0 places"),
    "autograder leaderboard data digits.npz": Run(makes=("digits.npz",), says="training digits"),
    "autograder leaderboard check model.onnx": Run(says="valid: "),
    "autograder leaderboard clock --trust": Run(says="deadline and quotas go by"),
}
GUIDE = {step.command: Run() for step in STEPS if step.command}
BRANCH = ("git fetch origin tinybench-history", "git archive FETCH_HEAD | tar -x -C FOLDER")
MAGIC = ("%load_ext tinybench", "%bench f(x) vs g(x)")
HERE = {*ENGINEER, *INSTRUCTOR, *LEADERBOARD, *GUIDE, *BRANCH, *MAGIC}


def test_every_command_line_is_run_somewhere() -> None:
    """A part of a line that runs, such as the name of a command in a sentence, counts as that line."""
    known = {*HERE, *ELSEWHERE}
    forgotten = [
        found
        for found in all_commands()
        if found.command not in known | NAMES and not any(line.startswith(f"{found.command} ") for line in known)
    ]
    assert not forgotten


def test_the_tables_hold_no_line_that_is_gone() -> None:
    there = {found.command for found in all_commands()}
    assert not (HERE | {*ELSEWHERE} | NAMES) - there - {"python -m tests.notebooks.reading NN"}


@pytest.mark.parametrize("test", sorted({test for test, _ in ELSEWHERE.values()}))
def test_the_other_test_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in functions if name else any(each.startswith("test_") for each in functions)


def run(line: str, how: Run, command: Callable[[list[str]], int], said: Callable[[], str], folder: Path) -> None:
    """Run a line and check its promises."""
    words = shlex.split(line)[1:]
    words = [name for word in words for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
    more = re.sub(r"(?<=--seconds )\S+", lambda found: f"{time_limits.wall(float(found[0])):g}", how.more)
    code = command([*words, *shlex.split(more)])
    text = said()
    assert code in how.codes, (line, text)
    assert re.search(how.says, text), (line, text)
    missing = [pattern for pattern in how.makes if not list(folder.glob(pattern)) and not (folder / pattern).exists()]
    assert not missing, (line, text)


APP = """
import numpy as np
def small(): return lambda x: x.sum()
def large(): return lambda x: np.sort(x, axis=None).sum()
ROWS = np.ones((40, 40))
def predict_once(): return (ROWS @ ROWS).sum()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the models, data and commits of the README."""
    import joblib
    from skl2onnx import to_onnx
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    from tinybench.quantize import quantize_dynamic_int8

    folder = tmp_path / "project"
    (folder / "app").mkdir(parents=True)
    (folder / "app" / "__init__.py").touch()
    (folder / "app" / "models.py").write_text(APP)
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    with warnings.catch_warnings(action="ignore"):  # it need not converge
        classifier = MLPClassifier((16,), max_iter=20, random_state=0).fit(X[:1200], y[:1200])
    joblib.dump(classifier, folder / "classifier.joblib")
    model = to_onnx(classifier, X[:1], options={"zipmap": False}).SerializeToString()
    for name in ("fp32", "model"):
        (folder / f"{name}.onnx").write_bytes(model)
    (folder / "int8.onnx").write_bytes(quantize_dynamic_int8(folder / "fp32.onnx").read_bytes())
    np.savez(folder / "digits.npz", X=X[1200:], y=y[1200:])
    np.savez(folder / "tested.npz", X=X[1200:])
    np.save(folder / "rows.npy", X[1200:])
    (folder / "script.py").write_text("import time\nend = time.time() + 0.3\nwhile time.time() < end: sum(range(99))\n")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    for tag in ("v1.0", "v1.2", ""):
        with (folder / "app" / "models.py").open("a") as file:
            file.write(f"VERSION = {tag!r}\n")
        git(folder, "add", "app")
        git(folder, "commit", "-qm", tag or "head")
        if tag:
            git(folder, "tag", tag)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    return folder


def git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.slow
def test_an_engineer_s_commands(project: Path, servers: ExitStack, capfd: pytest.CaptureFixture[str]) -> None:
    from tests.tinybench.servers import served

    address = ""
    for line, how in ENGINEER.items():
        if line.startswith("tinybench serve "):
            model, *options = shlex.split(line)[2:]
            server = servers.enter_context(served(project / model, *options))
            address = server.url
            assert how.says in server.ask("GET", "/metrics")[2], line
            assert server.ask("GET", "/health")[0] == 200
            continue
        if "candidate.json" in line:  # what was measured may be too little on a busy machine
            for number, name in enumerate(("baseline.json", "candidate.json")):
                steady = BenchmarkResult("latency", [1e-3 + 1e-6 * (n % 7 + number) for n in range(60)], unit="s")
                (project / name).write_text(json.dumps(steady.to_dict()))
        if "FOLDER" in line:
            fetch_history(project)
        run(line.replace(SERVER, address), how, tinybench, lambda: "".join(capfd.readouterr()), project)


def fetch_history(project: Path) -> None:
    """Fetch the branch of the history from a remote, as the README says, into a folder."""
    remote = project.parent / "remote"
    git(project.parent, "init", "-q", "-b", "tinybench-history", str(remote))
    assert tinybench(["history", "export", str(remote / "one.jsonl")]) == 0
    git(remote, "add", "-A")
    git(remote, "commit", "-qm", "measured")
    git(project, "remote", "add", "origin", str(remote))
    (project / "FOLDER").mkdir()
    for line in BRANCH:
        subprocess.run(["bash", "-ec", line], cwd=project, check=True, capture_output=True)
    (project / "tinybench-history.db").unlink()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of the first seven modules, each with one small function."""
    root = tmp_path / "course"
    root.mkdir()
    new_course(root)
    for path in ("support", "course"):
        (root / "tinybench" / path).symlink_to(ROOT / "tinybench" / path)
    names = sorted(path.name for path in (ROOT / "modules").iterdir() if "01" <= path.name[:2] <= "07")
    for name in (name for name in names if name != "07_toolbox"):
        cells = [
            code(SETUP, "setup", locked=True),
            code('"""Halves."""', "doc", "export", locked=True),
            code(HALVE, "halve", "export", solution=True),
            code(CHECK, "check", grade=True, locked=True, points=1),
        ]
        write_module(root, *cells, name=name)
    for path, text in export_course(root).items():
        write_atomically(path, text)
    monkeypatch.chdir(root)
    return root


@pytest.mark.slow
def test_an_instructor_s_and_a_student_s_commands(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for line, how in INSTRUCTOR.items():
        if line.startswith("autograder lint"):
            continue  # its cells are too small for the lint of this course: `make lint` runs it
        if "save" in line:
            work = small / "student" / "02_timer" / "02_timer.ipynb"
            work.write_text(work.read_text().replace("raise NotImplementedError", "print"))
        run(line, how, autograder, lambda: "".join(capfd.readouterr()), small)


def test_the_leaderboard_s_commands(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from tests.leaderboard.test_validate import dense

    (small / "model.onnx").write_bytes(dense(64, 10))
    for line, how in LEADERBOARD.items():
        run(line, how, autograder, lambda: "".join(capfd.readouterr()), small)


def test_the_magic(capsys: pytest.CaptureFixture[str]) -> None:
    shell = InteractiveShell()
    shell.run_cell("f, g, x = sum, max, [1.0, 2.0]")
    for line in MAGIC:
        assert shell.run_cell(line.replace("%bench ", "%bench -s 0.1 ")).success
    text = documents()["README.md"]
    assert "blocks are divided by lines of dashes" in text
    assert shell.run_cell("%%bench -s 0.1\nf(x)\n---\ng(x)").success


def test_python_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, object] = {}
    for block in blocks(documents()["README.md"], "python"):
        exec(block.replace("max_seconds=20", "max_seconds=2"), space)
    said = capsys.readouterr().out
    assert "latency" in said
    assert "model" in said


def test_yaml_of_the_readme() -> None:
    """The Action's inputs and the hook's id and options are known; tests/tinybench/test_action.py runs both."""
    workflow, hooks = (yaml.safe_load(block) for block in blocks(documents()["README.md"], "yaml"))
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    used = workflow["jobs"]["speed"]["steps"][-1]
    assert used["with"].keys() <= action["inputs"].keys()
    assert {name for name, each in action["inputs"].items() if each.get("required")} <= used["with"].keys()
    [hook] = hooks["repos"][0]["hooks"]
    known = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["id"] in {each["id"] for each in known}
    from tinybench.shell.cli import commands as group

    group.commands["gate"].make_context("gate", ["--run", "HEAD", ".", *hook["args"]])


def test_targets_of_make_are_there() -> None:
    for target in {found.command.split()[1] for found in all_commands() if found.command.startswith("make ")}:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_paths_and_programs_for_maintainers_are_there() -> None:
    for _, line in all_commands():
        words = line.replace("name", "result").split()
        if words[0] == "pytest":
            assert all((ROOT / word).exists() for word in words[1:] if word.startswith("tests/")), line
        if "-m" in words and words[words.index("-m") + 1].startswith("tests."):
            assert find_spec(words[words.index("-m") + 1]), line


def test_a_notebook_is_put_aside_as_the_published_readme_says(tmp_path: Path) -> None:
    """A pull that would overwrite work is refused, and goes on after the three lines."""
    site, clone = tmp_path / "site", tmp_path / "clone"
    notebook = Path("03_latency", "03_latency.ipynb")
    (site / notebook).parent.mkdir(parents=True)
    (site / notebook).write_text("first")
    git(tmp_path, "init", "-q", "-b", "main", str(site))
    git(site, "add", "-A")
    git(site, "commit", "-qm", "first")
    git(tmp_path, "clone", "-q", str(site), str(clone))
    (clone / notebook).write_text("mine")
    (site / notebook).write_text("second")
    git(site, "commit", "-qam", "second")
    with pytest.raises(subprocess.CalledProcessError):
        git(clone, "pull")
    [block] = [each for each in blocks(documents()["the published README"], "bash") if "checkout" in each]
    subprocess.run(["bash", "-ec", block], cwd=clone, check=True, capture_output=True)
    assert (clone / notebook).read_text() == "second"
    assert (clone / "03_latency" / "mine.ipynb").read_text() == "mine"
