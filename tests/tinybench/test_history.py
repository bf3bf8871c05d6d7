"""The store of a history: nothing is lost, nothing is there twice, and what is wrong with a file is said."""

from __future__ import annotations

import json
import math
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinybench.result import BenchmarkResult
from tinybench.shell.cli import main
from tinybench.support.comparisons.stored_results import condition_changes as differences
from tinybench.tools.history.changed_conditions import changed_since, conditions_over_time, kind_of
from tinybench.tools.history.changes import changes_of
from tinybench.tools.history.entry import Measurement, entry_of
from tinybench.tools.history.page import cautions, page_of, what_changed
from tinybench.tools.history.series import Point, series_of
from tinybench.tools.history.sqlite_store import History

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def pair(ratio: float, number: int = 0, **metadata: Any) -> tuple[BenchmarkResult, BenchmarkResult]:
    """Return a result and its baseline, of the same rounds in ten sessions."""
    rng = random.Random(number)
    sessions = [session for session in range(10) for _ in range(3)]
    paces = [rng.gauss(2e-4, 1e-6) for _ in sessions]
    shared = {"pairing": f"{number:032x}", "sessions": sessions}
    new = [pace * ratio * rng.gauss(1, 0.002) for pace in paces]
    return (
        BenchmarkResult("latency", new, shared | {"target": "app:predict"} | metadata, unit="s"),
        BenchmarkResult("latency", paces, shared, unit="s"),
    )


def entry(ratio: float, number: int, baseline: str = "base", machine: str = "m", **metadata: Any) -> Measurement:
    """Return the entry of a commit that is called by its number, one a minute."""
    at = f"2026-01-{1 + number // 1440:02}T{number // 60 % 24:02}:{number % 60:02}:00+00:00"
    return entry_of(*pair(ratio, number, **metadata), commit=f"c{number:04}", committed=at, baseline=baseline, machine=machine)  # fmt: skip


def stepping(size: float, commits: int = 60, at: int = 40) -> list[Measurement]:
    rng = random.Random(7)
    ratios = [rng.gauss(1, 0.003) * (1 + size * (number >= at)) for number in range(commits)]
    version = {n: {"conditions": {"numpy version": "2.4.6" if n < 20 else "2.5.0"}} for n in range(commits)}
    return [entry(ratio, number, system=version[number]) for number, ratio in enumerate(ratios)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def test_what_is_added_is_read_as_ratios_by_commit(file: Path) -> None:
    with History(file) as history:
        for number, ratio in enumerate((1.0, 1.1, 0.9)):
            new, old = pair(ratio, number)
            kept = history.add(
                new, old, commit=f"c{number}", committed=f"2026-01-0{3 - number}", baseline="b", machine="m"
            )
            assert kept.low <= kept.value <= kept.high
        series = history.series()
    assert (series.benchmark, series.machine, series.baseline, series.unit) == ("latency of app:predict", "m", "b", "")
    assert series.commits == ["c2", "c1", "c0"], "in the order of the commits, not of adding"
    assert series.values == pytest.approx([0.9, 1.1, 1.0], abs=0.01)
    assert BenchmarkResult.from_dict(kept.result).to_dict() == pair(0.9, 2)[0].to_dict(), "all of the result"


def test_the_interval_is_of_sessions_not_of_rounds() -> None:
    new, old = pair(1.0)
    new.metadata["sessions"] = old.metadata["sessions"] = [0] * new.count
    alone = entry_of(new, old, commit="c")
    assert (alone.low, alone.high) == (0, math.inf), "one session says nothing about how sessions differ"
    assert alone.to_dict()["high"] is None


def test_a_measurement_is_there_once_however_often_it_is_added(file: Path) -> None:
    with History(file) as history:
        assert [history.add_all([entry(1.0, 1), entry(1.0, 1)]) for _ in range(3)] == [1, 0, 0]
        assert history.add_all([entry(1.0, 1, machine="another")]) == 1
        assert history.names() == [("latency of app:predict", "another"), ("latency of app:predict", "m")]
        with pytest.raises(ValueError, match="2 series fit, choose benchmark and machine"):
            history.series()


names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)


@settings(max_examples=10)
@given(
    st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=20),
    names,
    names,
    st.dictionaries(names, st.one_of(st.integers(), st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False)), max_size=3),
)  # fmt: skip
def test_json_out_and_in_is_the_same(values: list[float], commit: str, machine: str, metadata: dict[str, Any]) -> None:
    told = {f"x{name}": value for name, value in metadata.items()} | {"pairing": "p"}
    old = BenchmarkResult("latency", values[::-1], {"pairing": "p"}, unit="s")
    for first in (
        entry_of(BenchmarkResult("latency", values, told, unit="s"), old, commit=commit, machine=machine),
        entry_of(BenchmarkResult("latency", values, told, unit="s"), commit=commit, machine=machine),
    ):
        again = Measurement.from_dict(json.loads(json.dumps(first.to_dict())))
        assert (again, again.id) == (first, first.id)
        with History(":memory:") as history:
            assert history.add_all([first, again]) == 1
            assert history.entries() == [first]


WRITER = """
import sys
from tests.tinybench.test_history import entry
from tinybench.tools.history.sqlite_store import History
first, last, form = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
print("ready", flush=True)
sys.stdin.readline()
with History(sys.argv[1]) as history:
    for number in range(first, last, 3):
        batch = [entry(1.0, n) for n in range(number, number + 3)]
        if form == "stop within" and number > first:
            with history._writing():
                history.connection.execute("INSERT INTO entries SELECT 'half', benchmark, machine, commit_name, committed, measured, "
                    "baseline, value, low, high, unit, result, baseline_result FROM entries LIMIT 1")
                print("within", flush=True)
                sys.stdin.readline()
        history.add_all(batch)
        print(number, flush=True)
"""


def writer(file: Path, first: int, last: int, form: str = "") -> subprocess.Popen[str]:
    """Start a process that adds entries three at a time, as soon as it is told to."""
    command = [sys.executable, "-c", WRITER, str(file), str(first), str(last), form]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_writers_at_once_one_of_them_killed_while_it_writes(file: Path) -> None:
    steady, hasty, doomed = writer(file, 0, 90), writer(file, 90, 180), writer(file, 180, 210, "stop within")
    for process in (doomed, steady, hasty):  # the file is not there yet: all make it
        tell(process)
    assert doomed.stdout
    assert [doomed.stdout.readline() for _ in range(2)] == ["180\n", "within\n"]
    killed(doomed)  # with the lock in its hand
    for process in (steady, hasty):
        said, _ = process.communicate()
        assert process.returncode == 0
        assert len(said.split()) == 30
    with History(file, create=False) as history:
        assert [each.commit for each in history.entries()] == [f"c{number:04}" for number in range(183)]
        assert history.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("after", [1, 4])
def test_a_writer_killed_anywhere(file: Path, after: int) -> None:
    process = writer(file, 0, 3000)
    tell(process)
    assert process.stdout
    told = [int(process.stdout.readline()) for _ in range(after)]
    killed(process)
    with History(file) as history:
        commits = [each.commit for each in history.entries()]
        assert len(commits) % 3 == 0, "batches are whole"
        assert {f"c{number + n:04}" for number in told for n in range(3)} <= set(commits), "what was told is there"
        assert history.add_all([entry(1.0, n) for n in range(len(commits) + 3)]) == 3, "and it goes on from there"


def test_a_full_disk_costs_nothing_that_was_there(file: Path) -> None:
    with History(file) as history:
        history.add_all([entry(1.0, 0)])
        pages = history.connection.execute("PRAGMA page_count").fetchone()[0]
        history.connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(OSError, match=r"no room for .*: nothing was added; make room"):
            history.add_all([entry(1.0, n) for n in range(1, 40)])
        assert [each.commit for each in history.entries()] == ["c0000"]
        history.connection.execute("PRAGMA max_page_count = 100000")
        assert history.add_all([entry(1.0, n) for n in range(40)]) == 39


def foreign(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE songs (name)")
    connection.close()


def later(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def tampered(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("UPDATE entries SET result = replace(result, '0.00', '0.01')")
    connection.commit()
    connection.close()


def torn(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[4096:] = b"\x00" * (len(raw) - 4096)
    file.write_bytes(raw)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda file: file.write_text("a text, and no database at all\n" * 40), "is no history of tinybench"),
        (lambda file: file.unlink() or foreign(file), "is a database, but no history of tinybench; name another file"),
        (later, r"was written by a later tinybench \(schema 99, known: 1\); update"),
        (tampered, "is damaged: entry [0-9a-f]{64} is not what was written; begin a new history from a file of"),
        (torn, "is damaged"),
    ],
)
def test_a_file_that_is_none_says_so_and_is_left_as_it_is(
    file: Path, harm: Callable[[Path], Any], message: str
) -> None:
    with History(file) as history:
        history.add_all([entry(1.0, n) for n in range(3)])
    harm(file)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=message), History(file) as history:
        history.entries()
    assert file.read_bytes() == before


def test_where_there_is_no_file_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no history there yet"):
        History(tmp_path / "none.db", create=False)
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(OSError, match="cannot be opened or written"):
        History(tmp_path)


def test_what_makes_no_entry() -> None:
    new, old = pair(1.0, 1)
    with pytest.raises(ValueError, match="of which commit"):
        entry_of(new, old)
    with pytest.raises(ValueError, match="come from different rounds"):
        entry_of(new, pair(1.0, 2)[1], commit="c")
    with pytest.raises(ValueError, match="'yesterday' is no time; write 2026-"):
        entry_of(new, old, commit="c", committed="yesterday")
    zero = BenchmarkResult("energy", [0.0] * new.count, new.metadata, unit="J")
    with pytest.raises(ValueError, match=r"0\.0 has no ratio"):
        entry_of(zero, old, commit="c")
    for data, message in (([], "is a dictionary"), ({}, "benchmark, machine, commit, baseline, result missing")):
        with pytest.raises(ValueError, match=message):
            Measurement.from_dict(data)  # type: ignore[arg-type]


def test_times_are_in_one_zone() -> None:
    new, old = pair(1.0)
    times = [
        entry_of(new, old, commit="c", committed=text).committed for text in ("2026-01-01T02:00:00+02:00", "2026-01-01")
    ]
    assert times == ["2026-01-01T00:00:00+00:00"] * 2


def test_a_new_baseline_goes_on_where_the_old_one_ended(file: Path) -> None:
    with History(file) as history:
        history.add_all(
            [entry(1.0, 1), entry(1.2, 2), entry(1.2, 3, baseline="c0002"), entry(1.0, 4, baseline="c0002")]
        )
        series = history.series()
        assert series.values == pytest.approx([1.0, 1.2, 1.44, 1.2], abs=0.01)
        assert (series.baseline, series.left_out, cautions(series)) == ("base", 0, [])
        spread = [math.log(point.high / point.low) for point in series.points]
        assert spread[2] > max(spread[1], spread[0]), "both measurements add to the error"
        history.add_all([entry(1.0, 5, baseline="unknown"), entry(1.1, 6, baseline="unknown")])
        series = history.series()
        assert (series.commits, series.left_out) == (["c0005", "c0006"], 4)
        assert "4 measurements against another baseline are left out" in cautions(series)[0]


def test_a_commit_measured_again_is_one_point_and_a_better_one(file: Path) -> None:
    rounds = [pair(ratio, number) for number, ratio in enumerate((1.00, 1.02, 1.01))]
    with History(file) as history:
        for new, old in rounds:
            history.add(new, old, commit="c", committed="2026-01-01", baseline="b", machine="m")
        [point] = history.series().points
        alone = [math.log(each.high / each.low) for each in history.entries()]
    assert point.value == pytest.approx(1.01, abs=0.002)
    assert len(point.entries) == 3
    assert math.log(point.high / point.low) == pytest.approx(math.hypot(*alone) / 3, rel=0.2)


def test_without_a_baseline_there_is_a_warning(file: Path) -> None:
    with History(file) as history:
        history.add(pair(1.0)[0], commit="c", machine="m")
        series = history.series()
    assert (series.baseline, series.unit) == ("", "s")
    assert "a slower machine looks like slower code" in cautions(series)[0]
    assert "too few to detect" in what_changed(series, [])


def test_a_step_of_two_percent_is_found_and_called_worse_or_better() -> None:
    for size, word in ((0.02, "worse"), (-0.02, "better")):
        series = series_of(stepping(size))
        [change] = changes_of(series)
        assert abs(change.place - 40) <= 1
        assert change.low < 1 + size < change.high
        assert change.told(series).endswith(f"{word}.")
    assert changes_of(series_of(stepping(0.0))) == []
    fall = [entry_of(BenchmarkResult("accuracy", [0.9 - 0.1 * (n > 20) + 1e-4 * (n % 5)]), commit=str(n), committed=f"2026-01-01T00:{n:02}") for n in range(40)]  # fmt: skip
    [change] = changes_of(series_of(fall))
    assert change.worse, "less accuracy is worse"


def history_point(only: Measurement) -> Point:
    return series_of([only]).points[0]


def test_when_to_measure_again(file: Path) -> None:
    entries = [
        entry(1.0, 1, data="aa", commit="x", loops=3, system={"conditions": {"processor": "A", "numpy version": "1"}}),
        entry(1.0, 2, data="aa", commit="y", loops=4, system={"conditions": {"processor": "A", "numpy version": "1"}}),
        entry(1.0, 3, data="bb", commit="z", loops=4, system={"conditions": {"processor": "B", "numpy version": "2"}}, traffic="9/s"),
        entry(1.0, 4, data="bb", commit="z", loops=4, system={"conditions": {"processor": "B", "numpy version": "2"}}, traffic="5/s"),
    ]  # fmt: skip
    with History(file) as history:
        history.add_all(entries)
        found = conditions_over_time(history.series().points)
    assert {(each.commit, each.kind, each.condition) for each in found} == {
        ("c0003", "data", "data"),
        ("c0003", "hardware", "processor"),
        ("c0003", "library", "numpy version"),
        ("c0004", "traffic", "traffic"),
    }
    assert str(found[0]).startswith("data: data aa → bb (from c0003 on)")
    here = {"cpu": "X", "cores": 2, "conditions": {"numpy version": "3", "processor": "B"}}
    last = history_point(
        entry(1.0, 5, machine="X, 2 cores", system=here | {"conditions": {"numpy version": "2", "processor": "B"}})
    )
    assert [str(each) for each in changed_since(last, here)] == ["library: numpy version 2 → 3 (from now on)"]
    assert changed_since(last, here | {"cpu": "Y"}) == [], "another machine"
    assert kind_of("operating system") == "other"
    assert [kind_of(name) for name in ("BLAS of scipy", "BLAS threads of scipy")] == ["library", "hardware"]


@pytest.mark.parametrize("threads", [("4", "4"), ("4", "1")])
def test_of_two_pools_the_one_of_numpy_is_compared(threads: tuple[str, str]) -> None:
    """Older results name whichever pool was loaded first; nothing changed between the two."""
    pools = [f"openblas 0.3.31.188.0: {threads[0]}", "openmp None: 4", f"openblas 0.3.30: {threads[1]}"]
    systems = [
        {
            "blas": "scipy-openblas 0.3.31.188.0",
            "threads": {"pools": order},
            "conditions": dict(zip(("BLAS", "BLAS threads"), order[0].split(": "), strict=True)),
        }
        for order in (pools, pools[::-1])
    ]
    entries = [entry(1.0, n, system=system) for n, system in enumerate(systems, 1)]
    assert conditions_over_time(series_of(entries).points) == []
    old, new = (BenchmarkResult("latency", [1.0], {"system": system}) for system in systems)
    assert differences(old, new) == {}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("full") / "history.db"
    with History(file) as history:
        history.add_all(stepping(0.02))
    return file


def test_show_and_changes(full: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["history", "show", "--file", str(full), "--last", "3"]) == 0
    said = capsys.readouterr().out
    assert said.count("2026-01-01 00:") == 3
    assert "measured in the same rounds" in said
    assert ", worse." in said
    assert "library: numpy version 2.4.6 → 2.5.0 (from c0020 on)" in said
    figure, page = tmp_path / "history.svg", tmp_path / "history.html"
    assert main(["history", "show", "--file", str(full), "--json", "--figure", str(figure), "--page", str(page)]) == 0
    [series] = json.loads(capsys.readouterr().out)
    assert (len(series["points"]), len(series["changes"]), len(series["conditions"])) == (60, 1, 1)
    assert "<svg" in figure.read_text(encoding="utf-8")
    assert "<h2>When to measure again</h2>" in page.read_text(encoding="utf-8")
    assert main(["history", "changes", "--file", str(full), "--json"]) == 1, "the last change made it worse"
    assert json.loads(capsys.readouterr().out)[0]["worse"] is True


@pytest.mark.parametrize(("form", "begins"), [("markdown", "| commit |"), ("csv", "commit,")])
def test_tables_for_programs(file: Path, capsys: pytest.CaptureFixture[str], form: str, begins: str) -> None:
    with History(file) as history:
        history.add_all([entry(1.0, number) for number in range(3)])
    assert main(["history", "show", "--file", str(file), "--format", form]) == 0
    assert capsys.readouterr().out.startswith(begins)


def test_export_and_import(full: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, other = tmp_path / "all.jsonl", tmp_path / "other.db"
    assert main(["history", "export", str(out), "--file", str(full)]) == 0
    for _ in range(2):
        assert main(["history", "import", str(out), "--file", str(other)]) == 0
    assert (
        capsys.readouterr().out
        == f"60 of 60 measurements are new in {other}\n0 of 60 measurements are new in {other}\n"
    )
    assert main(["history", "export", "--file", str(other)]) == 0
    assert capsys.readouterr().out == out.read_text(encoding="utf-8")
    out.write_text(out.read_text(encoding="utf-8") + '{"benchmark": "half"\n')
    third = tmp_path / "third.db"
    assert main(["history", "import", str(out), "--file", str(third)]) == 3
    assert "line 61: " in capsys.readouterr().err
    assert not third.exists()


def test_add_reads_what_the_gate_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str], file: Path) -> None:
    (new, old), rounds = pair(1.1), tmp_path / "rounds.json"
    new.metadata["commit"], old.metadata["commit"] = "1" * 40, "2" * 40
    new.metadata["system"] = {"time": "2026-01-01T00:00:00+00:00"}  # else each of the two adds measures a second later
    results = {"old": pair(1.0)[0].to_dict(), "new": new.to_dict(), "baseline": old.to_dict()}
    rounds.write_text(json.dumps({"results": results}))
    lines = tmp_path / "one.jsonl"
    told = ["--condition", "traffic=5/s", "--lines", str(lines)]
    assert main(["history", "add", str(rounds), "--file", str(file), *told]) == 0
    assert capsys.readouterr().out.startswith("1111111111 added: latency of app:predict on ")
    assert main(["history", "add", str(rounds), "--file", str(file), *told]) == 0
    assert capsys.readouterr().out.startswith("1111111111 is there already")
    with History(file) as history:
        [kept] = history.entries()
    assert (kept.baseline, kept.result["metadata"]["traffic"]) == ("2" * 40, "5/s")
    assert Measurement.from_dict(json.loads(lines.read_text())) == kept
    apart = tmp_path / "new.json", tmp_path / "old.json"
    for path, result in zip(apart, (new, old), strict=True):
        path.write_text(json.dumps(result.to_dict()))
    assert (
        main(["history", "add", str(apart[0]), "--baseline", str(apart[1]), "--file", str(file), "--machine", "m"]) == 0
    )
    capsys.readouterr()
    assert main(["history", "changes", "--file", str(file)]) == 2, "too few to detect"
    results["new"]["metadata"]["commit"] = "working tree"
    rounds.write_text(json.dumps({"results": results}))
    for words, message in (
        ([str(rounds)], "the working tree was measured, which is no commit"),
        ([str(rounds), "--condition", "traffic"], "write NAME=VALUE"),
        ([str(tmp_path / "none.json")], "no such file"),
    ):
        assert main(["history", "add", *words, "--file", str(file)]) == 3
        assert message in capsys.readouterr().err
    assert main(["history", "show", "--benchmark", "nothing", "--file", str(file)]) == 3
    assert "nothing of that name" in capsys.readouterr().err


@pytest.mark.browser
def test_the_page_is_for_everybody(
    full: Path, tmp_path: Path, browser: Browser, barriers: Callable[[Page], list[str]]
) -> None:
    with History(full) as history:
        first = history.series()
    other = series_of([entry(1.0, number, machine="<b>another</b>") for number in range(4)])
    file = tmp_path / "page.html"
    file.write_text(page_of([(first, changes_of(first)), (other, [])]).html(), encoding="utf-8")
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for scheme, width in (("light", 400), ("dark", 1200)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(file.as_uri())
        assert page.locator("img").count() == 2
        assert page.locator("b").count() == 0, "names are text"
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert barriers(page) == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()


def test_git_tells_the_whole_name_and_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tinybench.shell.history_command import look_up

    monkeypatch.chdir(tmp_path)
    assert look_up("HEAD", None) == ("HEAD", None), "no repository"
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    who = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-02T03:04:05+00:00")
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*who, *words], check=True)
    name, committed = look_up("HEAD", None)
    assert len(name) == 40
    assert committed is not None
    assert committed.startswith("2026-01-02T03:04:05")
    assert look_up("HEAD", "2025-01-01") == (name, "2025-01-01")
