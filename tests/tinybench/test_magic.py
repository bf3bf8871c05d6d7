"""``%load_ext tinybench``: measuring expressions and blocks in plain IPython and in a Jupyter kernel."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

from autograder import time_limits
from tinybench.shell import magic
from tinybench.shell.progress_bar import Progress
from tinybench.support.basics.table import Table


@pytest.fixture
def shell() -> InteractiveShell:
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "tinybench")
    shell.user_ns.update(data=list(range(2000)), sort=sorted)
    return shell


def test_two_expressions(shell: InteractiveShell) -> None:
    table = shell.run_line_magic("bench", f"-s {time_limits.wall(1):g} sum(data) vs sort(data, key=lambda v: -v)")
    assert [row["code"] for row in table.rows] == ["sum(data)", "sort(data, key=lambda v: -v)"]
    assert table.rows[0]["speed"] == "the baseline"
    assert table.rows[1]["verdict"] == "slower"
    assert "times as long" in table.rows[1]["speed"]
    assert "<table>" in table._repr_mimebundle_()["text/html"]


def test_one_expression(shell: InteractiveShell) -> None:
    assert len(shell.run_line_magic("bench", "-s 0.05 sum(data)").rows) == 1


def test_blocks_of_a_cell(shell: InteractiveShell) -> None:
    cell = "total = 0\nfor v in data:\n    total += v\n--- built in\nsum(data)\n---\n# nothing but\nsum(data)\n"
    table = shell.run_cell_magic("bench", f"-s {time_limits.wall(2):g}", cell)
    assert [row["code"] for row in table.rows] == ["total = 0", "built in", "# nothing but"]
    assert table.rows[1]["verdict"] == "faster"
    assert "total" not in shell.user_ns, "blocks run in a function of their own"


def test_text_with_vs_is_no_divider() -> None:
    assert list(magic._expressions("len('a vs b') vs len('b')")) == ["len('a vs b')", "len('b')"]


@given(st.lists(st.sampled_from(["f(x)", "g(x, 'a vs b')", "[v for v in x]", "{'vs': 1}"]), min_size=1, max_size=4))
def test_expressions_are_split(parts: list[str]) -> None:
    assert list(magic._expressions(" vs ".join(parts)).values()) == parts


def test_same_code_twice_has_two_names() -> None:
    assert list(magic._expressions("f(x) vs f(x)")) == ["f(x)", "f(x) (2)"]


def test_help_and_errors(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_line_magic("bench", "") is None
    assert "%%bench -s 4" in capsys.readouterr().out
    with pytest.raises(ValueError, match="-s takes seconds"):
        shell.run_line_magic("bench", "-s long sum(data)")
    with pytest.raises(ValueError, match="-s takes seconds, a positive number, not '-1'"):
        shell.run_line_magic("bench", "-s -1 sum(data)")
    with pytest.raises(TypeError, match=r"zip\(data\) gives a zip"):
        shell.run_line_magic("bench", "-s 0.05 zip(data)")
    with pytest.raises(NameError, match="nowhere"):
        shell.run_line_magic("bench", "-s 0.05 nowhere(data)")
    with pytest.raises(UsageError, match=r"'1 \+' cannot be measured: invalid syntax"):
        shell.run_line_magic("bench", "-s 0.05 1 +")


def test_plain_ipython(tmp_path: Path) -> None:
    script = tmp_path / "session.ipy"
    script.write_text(
        "%load_ext tinybench\nprint(get_ipython().run_line_magic('bench', '-s 1 sum(range(99)) vs sum(range(9999))'))\n"
    )
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", str(script)]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=time_limits.wall(120), check=True, cwd=tmp_path
    )
    assert "sum(range(9999))" in run.stdout
    assert "slower" in run.stdout


def test_jupyter_kernel_without_ipywidgets(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['ipywidgets'] = None"
    progress = "from tinybench import Benchmark\nimport warnings\nwarnings.simplefilter('error')\nBenchmark([abs], measurement_runs=3).run_latency_benchmark()['model_0'].count"
    cells = [hide, "%load_ext tinybench", "%%bench -s 0.1\nsum(range(99))\n---\nsum(range(999))", progress]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    limits = {"timeout": int(time_limits.wall(120)), "startup_timeout": int(time_limits.wall(60))}
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_name="python3", resources=resources, **limits).execute()
    [shown] = notebook.cells[2].outputs
    assert {"text/html", "text/plain", "text/markdown"} <= set(shown["data"])
    assert "sum(range(999))" in shown["data"]["text/html"]
    assert notebook.cells[3].outputs[-1]["data"]["text/plain"] == "3"


def test_table_escapes() -> None:
    table = Table([{"code": "a | b <c>", "n": "1"}], "x < y")
    assert "a \\| b <c>" in table.markdown()
    assert "a | b &lt;c&gt;" in table._repr_mimebundle_()["text/html"]
    assert table.csv() == "code,n\na | b <c>,1"


def test_numbers_stand_to_the_right() -> None:
    table = Table([{"what": "a", "n": "1.5"}, {"what": "b", "n": "12"}])
    assert table.text().splitlines() == ["what    n", "a     1.5", "b      12"]
    assert table.markdown().splitlines()[1] == "| --- | ---: |"


def bench(shell: InteractiveShell, cell: str, seconds: float = 0.3) -> Table:
    table = shell.run_cell_magic("bench", f"-s {seconds}", cell)
    assert isinstance(table, Table)
    return table


@pytest.mark.parametrize(
    "cell",
    [
        "k += 1\nassert k == 6",
        "k -= 1\n---\nk += 1\nassert k == 6",
        "del k",
        "import math\nfrom os import path as k\nmath.pi, k",
        "k = [k for k in range(3)]\nassert k == [0, 1, 2]",
        "def step():\n    global k\n    k += 1\nstep()",
        "if (k := k + 1) != 6:\n    raise ValueError(k)",
        "for k in range(3):\n    pass",
        "global k\nk = 7",
        'text = """a\nb"""\nassert len(text) == 3',
        "class C:\n    k = k\nassert C.k == 5",
        "try:\n    1 / 0\nexcept ZeroDivisionError as k:\n    pass",
        "data = data.copy()\ndata.append(k)",
        "assert _ == 'last'",
        "# nothing but a comment\n---\nk",
    ],
)
def test_blocks_see_the_notebook_and_change_nothing(shell: InteractiveShell, cell: str) -> None:
    shell.user_ns.update(k=5, _="last")
    before = {**shell.user_ns, "data": list(shell.user_ns["data"])}
    assert bench(shell, cell).rows
    assert shell.user_ns == before


def test_a_name_that_is_nowhere_is_an_error(shell: InteractiveShell) -> None:
    with pytest.raises(NameError, match="unheard"):
        bench(shell, "unheard += 1")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("await sleep(0)", r"asyncio\.run\(main\(\)\)"),
        ("async with lock:\n    pass", "asyncio"),
        ("x = 1\nreturn x", "end the block with the expression itself"),
        ("yield 1", "end the block with the expression itself"),
        ("%time sum(data)", "a magic or shell command cannot be measured"),
        ("!ls", "a magic or shell command cannot be measured"),
        ("sum(data)\n---\nsum(data", "never closed"),
        ("from math import *", "module level"),
    ],
)
def test_what_cannot_be_a_block_is_named(shell: InteractiveShell, cell: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bench(shell, cell)


@pytest.mark.parametrize("cell", ["data.append(1)", "data[0] += 1", "data += [1]", "data.sort(reverse=True)"])
def test_blocks_that_change_data_are_refused(shell: InteractiveShell, cell: str) -> None:
    before = list(shell.user_ns["data"])
    with pytest.raises(ValueError, match=r"changes data: .*data = data\.copy\(\)"):
        bench(shell, f"sum(data)\n---\n{cell}")
    assert shell.user_ns["data"] == before


def test_what_answers_later_is_refused(shell: InteractiveShell) -> None:
    async def answer() -> None: ...

    shell.user_ns["answer"] = answer
    with pytest.raises(TypeError, match="gives a coroutine"):
        bench(shell, "answer()")
    with pytest.raises(TypeError, match="gives a generator"):
        bench(shell, "(v for v in data)")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interruption_shows_the_rounds_so_far(
    shell: InteractiveShell, error: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    calls = iter(range(10**9))

    def fails() -> None:
        time.sleep(1e-3)
        if next(calls) > 400:
            raise error("now")

    shell.user_ns["fails"] = fails
    if error is KeyboardInterrupt:
        assert "interrupted by KeyboardInterrupt" in str(bench(shell, "fails()", 60))
        return
    with pytest.raises(error):
        bench(shell, "fails()", 60)
    assert "interrupted by OSError" in capsys.readouterr().out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_progress_is_shown_on_what_lasts(stream: type[io.StringIO]) -> None:
    now = [0.0]
    shown, silent = stream(), stream()
    for out, seconds in ((shown, 30.0), (silent, 2.0)):
        now[0] = 0.0
        with Progress(seconds, "warming up", out, lambda: now[0]) as progress:
            for _ in progress(range(10)):
                now[0] += seconds / 10
    assert silent.getvalue() == ""
    text = shown.getvalue()
    assert "warming up" in text
    assert "of 30 s" in text
    assert "10 rounds" in text
    if stream is Terminal:
        assert "\n" not in text, "one line, rewritten in place"
    if stream is io.StringIO:
        assert text.splitlines()[0] == "tinybench: 0 of 30 s, warming up"
        assert text.splitlines()[1:] == [f"tinybench: {3 * i} of 30 s, {i} rounds" for i in (2, 4, 6, 8, 10)]


@pytest.mark.parametrize(
    ("cell", "cause"),
    [
        ("%bench nope(data)", "nope is not defined; run the cell that defines it"),
        ("%bench -s 0.1 sum(data) vs nope(data)", "nope is not defined"),
        ("%%bench -s 0.1\nsum(data)\n---\ny = nope", "nope is not defined"),
        ("%bench -s 0.1 data.nope(1)", "'list' object has no attribute 'nope'"),
        ("%bench -s 0.1 broken(data)", "list indices must be integers"),
        ("%bench -s 0.1 sum(data) vs broken(data)", "list indices must be integers"),
        ("%bench 1 +", "'1 +' cannot be measured: invalid syntax"),
        ("%bench sum(data) vs", "one side of vs is missing"),
        ("%bench vs sum(data)", "one side of vs is missing"),
        ("%bench -n 3 sum(data)", "the only option is -s SECONDS"),
        ("%bench -s long sum(data)", "-s takes seconds"),
        ("%%bench\nsum(data)\n---\nreturn 1", "end the block with the expression itself"),
        ("%%bench\ndata.append(1)", "changes data"),
        ("%bench -s 0.1 zip(data)", "gives a zip"),
    ],
)
def test_a_line_that_fails_shows_its_cause_in_a_few_lines(
    shell: InteractiveShell, cell: str, cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("def broken(x):\n    return x['key']")
    assert not shell.run_cell(cell).success
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    error = shown[shown.rfind('File "<block') :] if 'File "<block' in shown else shown.strip().splitlines()[-1]
    assert cause in error
    assert "magic.py" not in shown, "none of our frames"
    assert len(error.splitlines()) <= 7
    if "broken" in cell:
        assert "return x['key']" in shown, "but the line of the caller's own code"
