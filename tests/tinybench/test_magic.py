"""``%load_ext tinybench``: measuring expressions and blocks in plain IPython and in a Jupyter kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

from autograder import pace
from tinybench.shell import magic
from tinybench.table import Table


@pytest.fixture
def shell() -> InteractiveShell:
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "tinybench")
    shell.user_ns.update(data=list(range(2000)), sort=sorted)
    return shell


def test_two_expressions(shell: InteractiveShell) -> None:
    table = shell.run_line_magic("bench", "-s 0.2 sum(data) vs sort(data, key=lambda v: -v)")
    assert [row["code"] for row in table.rows] == ["sum(data)", "sort(data, key=lambda v: -v)"]
    assert table.rows[0]["times as fast"] == "1 (baseline)"
    assert table.rows[1]["verdict"] == "slower"
    assert "<table>" in table._repr_mimebundle_()["text/html"]


def test_one_expression(shell: InteractiveShell) -> None:
    table = shell.run_line_magic("bench", "-s 0.05 sum(data)")
    assert len(table.rows) == 1


def test_blocks_of_a_cell(shell: InteractiveShell) -> None:
    cell = "total = 0\nfor v in data:\n    total += v\n--- built in\nsum(data)\n---\n# nothing but\nsum(data)\n"
    table = shell.run_cell_magic("bench", "-s 0.2", cell)
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
    with pytest.raises(NameError, match="nowhere"):
        shell.run_line_magic("bench", "-s 0.05 nowhere(data)")
    with pytest.raises(SyntaxError):
        shell.run_line_magic("bench", "-s 0.05 1 +")


def test_plain_ipython(tmp_path: Path) -> None:
    script = tmp_path / "session.ipy"
    script.write_text(
        "%load_ext tinybench\nprint(get_ipython().run_line_magic('bench', '-s 0.1 sum(range(99)) vs sum(range(9999))'))\n"
    )
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", str(script)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=pace.wall(120), check=True, cwd=tmp_path)
    assert "sum(range(9999))" in run.stdout
    assert "slower" in run.stdout


def test_jupyter_kernel_without_ipywidgets(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['ipywidgets'] = None"
    progress = "from tinybench import Benchmark\nimport warnings\nwarnings.simplefilter('error')\nBenchmark([abs], measurement_runs=3).run_latency_benchmark()['model_0'].count"
    cells = [hide, "%load_ext tinybench", "%%bench -s 0.1\nsum(range(99))\n---\nsum(range(999))", progress]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    NotebookClient(
        notebook,
        timeout=int(pace.wall(120)),
        startup_timeout=int(pace.wall(60)),
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
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
