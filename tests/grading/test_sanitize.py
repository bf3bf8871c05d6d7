"""What a submission shows runs nowhere: in no feedback page, and not on the instructor's Formgrader."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader.handlers import template_path
from playwright.sync_api import Browser
from traitlets.config import Config

from autograder.course.nbgrader_settings import configure
from autograder.grading.grade import feedback, grade_assignment
from autograder.grading.sanitize import Allowance, safe_line, safe_markdown, safe_outputs
from tests.tiny_course import NAME, hand_in, solved

EVIL = "evil.example"
HTML = f"""<script>LEAKED('script')</script><img src=x onerror="LEAKED('img')"><svg onload="LEAKED('svg')"></svg>
<a class="bait" href="javascript:LEAKED('link')">click</a><iframe src="https://{EVIL}/frame"></iframe>
<img src="https://{EVIL}/pixel.png"><link rel="stylesheet" href="https://{EVIL}/x.css">
<style>@import "https://{EVIL}/y.css"; body {{ background: url(https://{EVIL}/z.png) }}</style>
<div style="background: url(https://{EVIL}/b.png); position: fixed" onmouseover="LEAKED('mouse')">over</div>
<form action="https://{EVIL}/post"><input name="x" autofocus onfocus="LEAKED('focus')"></form>
<meta http-equiv="refresh" content="0; url=https://{EVIL}/away"><base href="https://{EVIL}/">
<details open ontoggle="LEAKED('toggle')">x</details><video src="https://{EVIL}/v" onerror="LEAKED('video')"></video>"""
CODE = f"""

from IPython.display import HTML, SVG, Javascript, Markdown, display
display(HTML({HTML!r}), Javascript("LEAKED('javascript')"), Markdown({HTML!r}))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' onload=\\"LEAKED('svg output')\\"/>"))
display({{"text/html": {HTML!r}, "image/png": "x' onerror='LEAKED()", "text/latex": "<script>LEAKED('latex')</script>"}}, raw=True)
print({HTML!r})
raise ValueError({HTML!r})"""


@pytest.mark.needs("sandbox", "chromium")
@pytest.mark.browser
@pytest.mark.slow
def test_nothing_runs_in_a_browser(released: Path, browser: Browser, tmp_path: Path) -> None:
    notebook = nbformat.reads(solved(released, extra=CODE).decode(), as_version=4)
    notebook.cells.insert(1, nbformat.v4.new_markdown_cell(HTML))
    notebook.cells.insert(2, nbformat.v4.new_markdown_cell("<script>LEAKED('unclosed') [x](javascript:LEAKED())"))
    notebook.cells.insert(3, nbformat.v4.new_raw_cell(HTML, metadata={"raw_mimetype": "text/html"}))
    hand_in(released, "mallory", nbformat.writes(notebook).encode())
    grade_assignment(released, NAME, progress=False)
    [page_of_feedback] = feedback(released, NAME)
    # as Formgrader's handler of a submission does
    config = configure(Config(), released)
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [template_path]
    autograded = released / "course" / "autograded" / "mallory" / NAME / f"{NAME}.ipynb"
    resources = {"base_url": "/", "index": 0, "total": 1, "assignment_id": NAME, "notebook_id": NAME, "submission_id": "1", "student": "mallory", "notebook_path": "x", "first_name": "", "last_name": ""}  # fmt: skip
    formgrader = tmp_path / "formgrader.html"
    formgrader.write_text(HTMLExporter(config=config).from_filename(str(autograded), resources=resources)[0])

    seen: list[str] = []
    for file in (page_of_feedback, formgrader):
        assert "click" in file.read_text(), "what was written is shown, as text"
        page = browser.new_page()
        page.add_init_script("window.leaked = []; window.LEAKED = what => window.leaked.push(what || 'called')")
        page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: seen.append(request.url))
        page.route("http*://**", lambda route: route.abort())
        page.goto(f"file://{file}")
        page.wait_for_timeout(500)
        assert page.locator("a[href^='javascript:'], script:text('LEAKED'), iframe, form[action*='evil']").count() == 0
        assert page.locator("[onerror], [onload], [onfocus], [onmouseover], [ontoggle]").count() == 0
        assert page.evaluate("window.leaked") == []
        assert page.url == f"file://{file}"
        page.close()
    templates = ("file:", "https://cdnjs.cloudflare.com/", "data:")
    assert [what for what in seen if not what.startswith(templates)] == [], "no dialog, and no request of its own"


@pytest.mark.parametrize(
    "text",
    [
        "<b>bold</b>",
        "[x](javascript:alert(1))",
        "[x][1]\n\n[1]: data:text/html,x",
        "&#106;avascript:",
        "![x](attachment:x.svg)",
        "![x](https://example.org/seen.png)",
        "[Show][w]\n\n- [w]: javascript:alert(1)",
        "[Show][w]\n\n12. [w]: data:text/html,x",
        "$\\href{javascript:alert(1)}{x}$",
        "$\\require{html}\\style{position:fixed}{x}$",
    ],
)
def test_odd_markdown_is_shown_as_it_was_written(text: str) -> None:
    assert safe_markdown(text) == f"~~~text\n{text}\n~~~"


@pytest.mark.parametrize(
    "text",
    [
        "*plain* `code`",
        "[x](https://example.org)",
        "[x][b]\n\n[b]: https://example.org",
        "$\\frac{a}{b} < c$",
        "a ~~~~ b",
    ],
)
def test_plain_markdown_stays(text: str) -> None:
    assert safe_markdown(text) == text


def test_tables_and_pictures_stay_and_formulas_that_link_go() -> None:
    table = "<table><tr><th>n</th></tr><tr><td>3</td></tr></table>"
    picture = '<img src="data:image/png;base64,iVBORw0KGgo=" alt="a plot">'
    linking = "<p>$\\href{javascript:alert(1)}{x}$ $&#92;href{javascript:alert(1)}{x}$</p>"
    [[shown], [drawn], [linked]] = (
        safe_outputs([{"output_type": "display_data", "data": {"text/html": html, "text/plain": "plain"}}])
        for html in (table, picture, linking)
    )
    assert "<td>3</td>" in shown["data"]["text/html"]
    assert drawn["data"]["text/html"] == picture
    assert linked["data"] == {"text/plain": "plain"}


def cleaned(markup: str) -> str:
    """Return what is left of displayed HTML, empty if nothing."""
    shown = safe_outputs([{"output_type": "display_data", "data": {"text/html": markup}}])
    return str(shown[0]["data"]["text/html"]) if shown else ""


@pytest.mark.parametrize("style", ["margin-top:-400px", "margin: 0 -9em", "width:5000px", "max-width: calc(100%*9)"])
def test_nothing_is_laid_over_the_page(style: str) -> None:
    assert cleaned(f'<div class="modal btn-success" style="{style}">x</div>') == "<div>x</div>"


def test_a_data_frame_keeps_its_looks() -> None:
    table = '<table class="dataframe"><tr style="text-align: right;"><th>n</th></tr></table>'
    assert 'class="dataframe"' in cleaned(table)
    assert "text-align: right" in cleaned(table)


@pytest.mark.parametrize("word", ["bbox[border:9px]", "mmlToken{mi}[href=x]", "texttip{a}{b}", "toggle{a}{b}"])
def test_formulas_have_no_looks_of_their_own(word: str) -> None:
    assert cleaned(f"<p>$\\{word}{{x}}$</p>") == ""


@pytest.mark.parametrize("line", ["ok\nada: 4 of 4", "ok\r\u2028ada: 4", "ok\u202eada", "ok\x1b[2Jada"])
def test_one_students_line_does_not_pass_for_anothers(line: str) -> None:
    assert safe_line(line).isprintable()
    assert safe_line(line).startswith("ok")


def test_outputs_have_an_end_in_all() -> None:
    allowance, picture = Allowance(), "iVBORw0KGgoA" + "A" * 1_000_000
    shown = [{"data": {"image/png": picture, "text/plain": "a plot"}}, {"text": "x" * 100_000}]
    kept = [safe_outputs(shown, allowance) for _ in range(20)]
    assert 6_000_000 < sum(len(str(each)) for each in kept) < 10_000_000


def test_cleaning_has_an_end() -> None:
    assert cleaned("<p><b>" * 25_000) == ""
    assert safe_outputs([{"data": {"text/html": object()}}, {"text": object()}, object(), {"data": object()}]) == []
