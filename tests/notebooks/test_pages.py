"""The map and the cheat sheet as pages in a real browser: readable by all, in light and dark, wide and narrow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from autograder.course.notebook import cells_of, read_notebook
from autograder.course.student_package import give_reference
from tests.course.cheat_sheet import PAGE
from tests.course.test_overview import first_day
from tests.tiny_course import ROOT
from tinybench.course import BUILT_BY_STUDENT, course_map
from tinybench.course.passed_checks import PROGRESS

pytestmark = [pytest.mark.browser, pytest.mark.needs("chromium")]
AROUND = """<!doctype html><html lang="en"><title>The map</title><meta charset="utf-8"><body style="{colors}"><main>
<h1>The course</h1><h2>The map</h2>{map}</main>"""
COLORS = {"light": "background:#fff;color:#212121", "dark": "background:#111;color:#e0e0e0"}  # JupyterLab's


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The map of somebody who has built one module, begun one, and was given one."""
    home = first_day(tmp_path_factory.mktemp("student"))
    (home / "tinybench" / "result.py").write_text(f"{BUILT_BY_STUDENT}01_result.ipynb on some day.\n")
    begun = home / "02_timer"
    checks = [cell.id for cell in cells_of(read_notebook(begun / "02_timer.ipynb")) if cell.is_check]
    (begun / PROGRESS).write_text(json.dumps({"checks": dict.fromkeys(checks[:4], "now"), "of": len(checks)}))
    give_reference(ROOT, home / "tinybench", "latency", "released by your instructor")
    return str(course_map(home).markup)


@pytest.mark.parametrize("width", [400, 800])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_are_readable_by_all(
    scheme: Any, width: int, browser: Browser, shown: str, barriers: Callable[[Page], list[str]], tmp_path: Path
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    for name, content in (("map", AROUND.format(colors=COLORS[scheme], map=shown)), ("sheet", PAGE.read_text("utf-8"))):
        page.set_content(content)
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        page.screenshot(path=tmp_path / f"{name}-{scheme}-{width}.png", full_page=True)
        assert barriers(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.close()


@pytest.mark.parametrize("first_choice", ["Liberation Sans", "DejaVu Sans"])
def test_the_cheat_sheet_prints_on_two_pages(browser: Browser, first_choice: str) -> None:
    """With the fonts of this machine, and with DejaVu Sans, which is wider than those that the PDF was made with."""
    from tests.course.cheat_sheet import pages

    page = browser.new_page()
    page.set_content(PAGE.read_text(encoding="utf-8").replace("Liberation Sans", first_choice))
    assert pages(page.pdf(prefer_css_page_size=True)) == 2
    page.close()
