"""The GitHub Action's steps and the pre-commit hook, run here in repositories made for it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.tinybench.actions import ACTION, Runner
from tinybench.shell.commit_hook import sides
from tinybench.tools.history.sqlite_store import History

HOOKS = ACTION.with_name(".pre-commit-hooks.yaml")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="runs bash")
NASTY = "$(touch${IFS}pwned);`touch pwned`'\"|&<img>".replace(" ", "${IFS}")
QUIET = {"install": "false", "call": f"{sys.executable} -S -E task.py", "max_slowdown": "90%"}


def git(folder: Path, *arguments: str) -> str:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}  # fmt: skip
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", "commit.gpgsign=false", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=plain | who).stdout.strip()


def commit(folder: Path, loops: int, note: str = "") -> str:
    """Commit a task of so many loops, and return the commit."""
    (folder / "task.py").write_text(f"# {note}\nfor _ in range({loops}):\n    pass\n")
    git(folder, "add", "task.py")
    git(folder, "commit", "-qm", f"{loops} {note}")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clone of a bare repository, with three commits on main of which no two differ in what they do."""
    origin, work = tmp_path / "origin.git", tmp_path / "work"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(origin)], check=True)
    subprocess.run(["git", "clone", "-q", f"file://{origin}", str(work)], check=True, capture_output=True)
    git(work, "checkout", "-q", "-b", "main")
    for note in "abc":
        commit(work, 1000, note)
    git(work, "push", "-q", "origin", "main")
    return work


@pytest.fixture
def runner(repository: Path, tmp_path: Path) -> Runner:
    return Runner(repository, tmp_path / "runner")


def stored(folder: Path) -> list[str]:
    """Return the files on the branch of the history, as the other side has it."""
    return git(folder.parent / "origin.git", "ls-tree", "--name-only", "tinybench-history").splitlines()


def test_what_comes_from_outside_is_pasted_into_no_script() -> None:
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert [step["name"] for step in action["runs"]["steps"] if "${{" in step["run"] or step["shell"] != "bash"] == []
    text = ACTION.read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action["inputs"])
    assert not re.search(r"upload|curl|wget|https?://", text)


def test_a_slower_pull_request_of_a_hostile_name(runner: Runner, repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", NASTY)
    commit(repository, 3_000_000)
    git(repository, "push", "-q", "origin", NASTY)
    git(repository, "checkout", "-q", "main")
    commit(repository, 1000, "the base goes on")
    git(repository, "push", "-q", "origin", "main")
    git(repository, "checkout", "-q", "--detach", "HEAD")
    git(repository, "branch", "-q", "-D", NASTY)  # the runner has it as origin/… alone
    ran = runner.run("pull_request", {"pull_request": {"number": 7}}, base="main", head=NASTY, **QUIET)
    assert (ran.code, ran.step) == (1, "Gate"), ran.printed
    assert "::error::slower than allowed" in ran.printed
    assert ran.outputs["measure"]["verdict"] == "fails"
    assert ran.outputs["commits"]["base"] == git(repository, "rev-parse", "main~1"), "where the branch left main"
    assert list(repository.glob("**/pwned*")) == list(runner.home.glob("**/pwned*")) == []
    [comment] = runner.comments
    assert comment["path"] == "repos/someone/something/issues/7/comments"
    assert "**fails** (limit 90 % slower)" in comment["body"]
    assert comment["body"].count("\n| ") == 4, "a table of two rows"
    assert "img" not in comment["body"]
    assert "**fails**" in ran.summary
    assert set(json.loads(Path(ran.outputs["measure"]["result"]).read_text())["results"]) == {"old", "new"}
    assert git(repository, "ls-remote", "origin", "tinybench-history") == "", "a pull request is no part of the history"
    again = runner.run("pull_request", {"pull_request": {"number": 7}}, only=("Comment",), outputs=ran.outputs, **QUIET)
    assert (again.code, [comment["edits"] for comment in runner.comments]) == (0, [1]), "one comment, changed"
    Path(f"{runner.comments_file}.denied").touch()
    denied = runner.run(
        "pull_request", {"pull_request": {"number": 7}}, only=("Comment",), outputs=ran.outputs, **QUIET
    )
    assert (denied.code, "::warning::no comment" in denied.printed) == (0, True)


def test_pushes_are_kept_beside_the_same_baseline(runner: Runner, repository: Path) -> None:
    first, second, third = git(repository, "rev-list", "--reverse", "main").split()
    git(repository, "checkout", "-q", second)
    one = runner.run("push", {"before": first}, **QUIET)
    assert one.code == 0, one.printed
    assert one.outputs["measure"]["verdict"] == "passes"
    assert len(stored(repository)) == 1
    git(repository, "checkout", "-q", third)

    def other_job() -> None:
        """Push a measurement of another machine in between."""
        other = runner.home / "other"
        git(
            repository.parent,
            "clone",
            "-q",
            "-b",
            "tinybench-history",
            str(repository.parent / "origin.git"),
            str(other),
        )
        [file] = other.glob("*.jsonl")
        entry = json.loads(file.read_text()) | {"machine": "another"}
        (other / "other.jsonl").write_text(json.dumps(entry) + "\n")
        git(other, "add", "other.jsonl")
        git(other, "commit", "-qm", "in between")
        git(other, "push", "-q", "origin", "tinybench-history")

    two = runner.run("push", {"before": second}, before={"Store": other_job}, machine="mine", **QUIET)
    assert two.code == 0, two.printed
    assert len(stored(repository)) == 3, "nothing is lost when two push"
    assert set(json.loads(Path(two.outputs["measure"]["result"]).read_text())["results"]) == {"old", "new", "baseline"}
    with History(two.outputs["known"]["history"], create=False) as history:
        kept = [(entry.commit, entry.baseline) for entry in history.entries()]
        assert kept == [(second, first), (third, first)]
        assert history.series(machine="mine").commits == [third]
    assert "2 series" in Path(two.outputs["store"]["page"]).read_text(encoding="utf-8")
    assert third[:10] in two.summary
    assert git(repository, "status", "--porcelain") == ""
    # the same once more, where the job may not push
    hook = repository.parent / "origin.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    refused = runner.run("push", {}, only=("Store",), outputs=two.outputs, **QUIET)
    assert (refused.code, "permissions: contents: write" in refused.printed) == (3, True)


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        ("0" * 40 + "\nwork=/tmp\nkeep=false", "no line breaks or other control characters"),
        ("--upload-pack=touch", "not the hash of a commit"),
    ],
)
def test_a_hostile_history_writes_no_output(runner: Runner, repository: Path, baseline: str, said: str) -> None:
    first, second, _ = git(repository, "rev-list", "--reverse", "main").split()
    git(repository, "checkout", "-q", second)
    assert runner.run("push", {"before": first}, **QUIET).code == 0
    other = runner.home / "other"
    git(runner.home, "clone", "-q", "-b", "tinybench-history", str(repository.parent / "origin.git"), str(other))
    [file] = other.glob("*.jsonl")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"baseline": baseline}) + "\n")
    git(other, "commit", "-qam", "hostile")
    git(other, "push", "-q", "origin", "tinybench-history")
    ran = runner.run("push", {"before": first}, **QUIET)
    assert (ran.code != 0, ran.step) == (True, "Take in the history"), ran.printed
    assert said in ran.printed
    assert "keep" not in ran.outputs.get("known", {})


def test_it_cannot_tell_what_now_is_slower_and_now_is_not(runner: Runner, repository: Path, tmp_path: Path) -> None:
    times = tmp_path / "times"
    for loops in ("1000", "3_000_000 if n.stat().st_size % 2 else 1000"):
        start = f"from pathlib import Path\nn = Path({str(times)!r} + {str(len(loops))!r})\nn.open('a').write('.')\n"
        (repository / "task.py").write_text(f"{start}for _ in range({loops}):\n    pass\n")
        git(repository, "commit", "-qam", "now and then")
    ran = runner.run("workflow_dispatch", {}, seconds="3", **QUIET)
    assert ran.code == 0, ran.printed
    assert ran.outputs["commits"]["base"] == git(repository, "rev-parse", "HEAD~1"), "no base was named"
    assert ran.outputs["measure"]["verdict"] == "cannot tell"
    assert "::warning::it cannot tell" in ran.printed
    strict = runner.run("push", {}, only=("Gate",), outputs=ran.outputs, undecided="fail", **QUIET)
    assert strict.code == 2


@pytest.mark.parametrize(
    ("given", "step", "said"),
    [
        ({"base": "no-such-branch"}, "Find the commits", "no commit of the name given as base"),
        ({"head": "--upload-pack=touch"}, "Find the commits", "no commit of the name given as head"),
        ({"baseline": "0" * 40}, "Find the commits", "no commit of the name given as baseline"),
        ({"store": "always"}, "Take in the history", "store is true, false or auto"),
        ({"call": "no-such-command"}, "Gate", "there is no command 'no-such-command'"),
    ],
)
def test_wrong_input_is_said(runner: Runner, given: dict[str, str], step: str, said: str) -> None:
    ran = runner.run("push", {"before": "0" * 40}, **(QUIET | given))
    assert (ran.code, ran.step) == (3, step), ran.printed
    assert said in ran.printed


def test_it_installs_itself_where_asked(runner: Runner) -> None:
    runner.program("python", f'#!/bin/sh\necho "$@" >"{runner.home}/asked"\n')
    assert runner.run("push", {}, only=("Install",), call="x").code == 0
    assert (runner.home / "asked").read_text().split() == ["-m", "pip", "install", "--quiet", str(ACTION.parent)]


def test_the_hook_of_pre_commit(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copy(HOOKS, repository)
    git(repository, "add", HOOKS.name)
    git(repository, "commit", "-qm", "hooks")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ACTION.parent))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(repository)
    manifest = subprocess.run([sys.executable, "-m", "pre_commit", "validate-manifest", HOOKS.name], check=False)
    assert manifest.returncode == 0
    [hook] = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    arguments = ["--call", QUIET["call"], "--max-slowdown", "90%"]
    local = hook | {"args": arguments}
    Path(".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": [local]}]}))

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "run", "tinybench-gate", "--verbose", "--color=never", *more]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    Path("task.py").write_text("for _ in range(3_000_000):\n    pass\n")
    git(repository, "add", "-A")
    slower = run()
    assert (slower.returncode, "fails (limit 90 % slower)" in slower.stdout) == (1, True), slower.stdout
    git(repository, "reset", "-q", "--hard", "HEAD~1")
    Path(".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": [local]}]}))
    git(repository, "add", "-A")
    pushed = run("--hook-stage", "pre-push", "--from-ref", "HEAD~1", "--to-ref", "HEAD")
    assert (pushed.returncode, "passes (limit" in pushed.stdout) == (0, True), pushed.stdout + pushed.stderr


def test_what_the_hook_compares() -> None:
    assert sides({}) == ("HEAD", ".")
    assert sides({"PRE_COMMIT_FROM_REF": "a", "PRE_COMMIT_TO_REF": "b"}) == ("a", "b")
