"""The course as students and instructors meet it: JupyterLab and nbgrader's pages in a real browser."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from autograder import time_limits

ROOT = Path(__file__).parents[2]
MODULE = "01_result"
SECOND = time_limits.wall(1000)  # Playwright counts milliseconds

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.needs("chromium")]


@dataclass
class Course:
    """A running `autograder course`."""

    root: Path
    notebook_url: str
    formgrader_url: str

    @property
    def notebook(self) -> Path:
        return self.root / "student" / MODULE / f"{MODULE}.ipynb"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """A course of one module, released and served from a folder of its own."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "modules" / MODULE, root / "modules" / MODULE)
    shutil.copytree(ROOT / "tinybench", root / "tinybench")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    home = tmp_path_factory.mktemp("home")
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    log = home / "log"
    command = [sys.executable, "-m", "autograder", "--root", root, "course", "--no-browser", "--port", "0"]
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT) as server,
    ):
        try:
            yield Course(root, *wait_for_addresses(server, log))
        finally:
            server.terminate()


def wait_for_addresses(server: subprocess.Popen[bytes], log: Path) -> tuple[str, str]:
    deadline = time.monotonic() + time_limits.wall(120)
    while time.monotonic() < deadline and server.poll() is None:
        found = re.search(r"First notebook +(\S+)\n(?:.*\n)*? +Formgrader +(\S+)\n", log.read_text())
        if found:
            return found[1], found[2]
        time.sleep(0.2)
    raise AssertionError(f"`autograder course` did not come up:\n{log.read_text()}")


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A page whose last state is kept as a picture."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(60 * SECOND)
    yield page
    page.screenshot(path=tmp_path / "page.png")
    page.close()


def open_notebook(page: Page, address: str) -> None:
    """Open it alone: of what a test before left open, "Idle" in the status bar may be about that."""
    page.goto(f"{address}&reset")
    page.get_by_role("tab", name=re.search(r"[^/]+\.ipynb", address)[0]).wait_for()
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle", timeout=60 * SECOND)


def from_menu(page: Page, menu: str, item: str) -> None:
    page.locator(".lm-MenuBar-itemLabel", has_text=menu).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{item}$")).click()


def click_in_tab(page: Page, tab: str, button: Locator) -> None:
    """Click in a tab that JupyterLab, still opening the notebook of the address, may push behind that notebook."""
    for _ in range(20):
        page.get_by_role("tab", name=tab).click()
        with contextlib.suppress(PlaywrightTimeoutError):
            button.click(timeout=5 * SECOND)
            return
    raise AssertionError(f"the tab {tab!r} did not stay in front")


def validate(page: Page) -> str:
    """Press Validate and return what the dialog says."""
    page.get_by_role("button", name="Validate").click()
    dialog = page.locator(".jp-Dialog-content", has_text=re.compile("success|fail", re.IGNORECASE))
    dialog.wait_for(timeout=180 * SECOND)
    return dialog.inner_text()


def fill_in_solutions(course: Course) -> None:
    """Write into the student's notebook what the reference has in its solution cells."""
    reference = nbformat.read(ROOT / "modules" / MODULE / f"{MODULE}.ipynb", as_version=4)
    sources = {cell.id: cell.source for cell in reference.cells}
    notebook = nbformat.read(course.notebook, as_version=4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = sources[cell.id]
    nbformat.write(notebook, course.notebook)


def test_untouched_notebook_fails_validation(page: Page, course: Course) -> None:
    open_notebook(page, course.notebook_url)
    from_menu(page, "Run", "Run All Cells")
    error = page.locator(".jp-OutputArea-output", has_text="NotImplementedError").first
    expect(error).to_be_attached(timeout=120 * SECOND)
    assert "NotImplementedError" in validate(page)


def test_reference_solutions_pass_validation_and_build(page: Page, course: Course) -> None:
    fill_in_solutions(course)
    open_notebook(page, course.notebook_url)
    from_menu(page, "Run", "Run All Cells")
    build = page.locator(".jp-CodeCell", has_text="-m autograder build")
    expect(build).to_contain_text("tinybench.result is now your own code", timeout=180 * SECOND)
    assert "Success" in validate(page)
    built = course.root / "student" / "tinybench" / "result.py"
    assert built.read_text().startswith("# Built by the student")


def test_the_map_opens_notebooks_and_saves_work(page: Page, course: Course) -> None:
    (course.notebook.parent / "notes.md").write_text("of mine")
    open_notebook(page, course.notebook_url.replace(f"{MODULE}/{MODULE}.ipynb", "map.ipynb"))
    from_menu(page, "Run", "Run All Cells")
    expect(page.locator(".jp-OutputArea", has_text=re.compile("1 module done")).first).to_be_visible(
        timeout=60 * SECOND
    )
    link = page.get_by_text("Download my-work-")
    expect(page.get_by_text("is here already")).to_be_attached(timeout=60 * SECOND)
    with page.expect_download() as download:
        link.click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert f"{MODULE}/notes.md" in archive.namelist()
    page.locator(".jp-OutputArea a", has_text="One number is not a measurement").first.click()
    page.get_by_role("tab", name=f"{MODULE}.ipynb").wait_for()


def test_formgrader_lists_the_module_as_released(page: Page, course: Course) -> None:
    page.goto(course.formgrader_url)
    row = page.frame_locator("iframe").locator("tr", has_text=MODULE)
    expect(row).to_contain_text("released", timeout=60 * SECOND)


def test_assignment_list_submits_the_module(page: Page, course: Course) -> None:
    open_notebook(page, course.notebook_url)
    from_menu(page, "Nbgrader", "Assignment List")
    submit = page.locator("#fetched_assignments_list").get_by_role("button", name="Submit")
    click_in_tab(page, "Assignments", submit)
    expect(page.locator("#submitted_assignments_list")).to_contain_text(MODULE, timeout=60 * SECOND)
    inbound = course.root / "course" / "exchange" / "tinybench" / "inbound"
    assert len(list(inbound.glob(f"*/{MODULE}.ipynb"))) == 1
