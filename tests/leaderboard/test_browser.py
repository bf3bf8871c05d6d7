"""The leaderboard as students use it: `autograder leaderboard serve` in a real browser, with real measurements."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, FileChooser, Page, TimeoutError, expect

from autograder import time_limits
from tests.leaderboard.boards import answers, dense, free_port, trained, wait_until

SECOND = time_limits.wall(1000)  # Playwright counts milliseconds
EVENTS = """
title = "Test Olympics"
deadline = 2999-01-01T00:00:00Z
[task]
public_rows = 256
private_rows = 256
batch = 32
[baseline]
hidden = [48]
iterations = 6
[referee]
processes = 2
widest = 1000
rounds = 5
[[event]]
id = "latency"
title = "Latency Sprint"
goal = "The fastest."
measure = "latency"
accuracy_min = 0.3
[[event]]
id = "memory"
title = "Memory Challenge"
goal = "The lightest."
measure = "memory"
accuracy_min = 0.3
"""

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.needs("sandbox", "chromium")]


@dataclass
class Site:
    """A running `autograder leaderboard serve`."""

    address: str
    root: Path
    events: Path

    def autograder(self, *arguments: str) -> str:
        """Run a command of the leaderboard and return what it prints."""
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, what: str, *arguments: str) -> list[str]:
        start = [sys.executable, "-m", "autograder", "--root", str(self.root), "leaderboard", what]
        return [*start, *arguments, *([] if what == "enter" else ["--events", str(self.events)])]

    def token(self, student: str) -> str:
        """Make a token as an instructor does."""
        return self.autograder("token", student).strip().split("\t")[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("course")
    events = root / "events.toml"
    events.write_text(EVENTS)
    port = free_port()
    site = Site(f"http://127.0.0.1:{port}", root, events)
    with subprocess.Popen(site.command("serve", "--port", str(port))) as server:
        try:
            wait_until(lambda: answers(site.address) or server.poll() is not None, 180)
            assert server.poll() is None
            yield site
        finally:
            server.terminate()


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A page that notices every complaint of the browser, of the security policy among them."""
    context = browser.new_context(base_url=site.address, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(30 * SECOND)
    complaints: list[str] = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert not complaints


@pytest.fixture(scope="module")
def ranked(site: Site, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a measured entry, entered from the shell."""
    model = tmp_path_factory.mktemp("models") / "from_the_shell.onnx"
    model.write_bytes(trained(24))
    said = site.autograder("enter", str(model), "--url", site.address, "--token", site.token("Shelly"))
    found = re.search(r"entry (\d+) is queued", said)
    assert found
    entry = f"{site.address}/api/entries/{found[1]}"
    wait_until(lambda: httpx.get(entry, timeout=time_limits.wall(30)).json()["state"] == "measured", 400)
    return f"/entries/{found[1]}"


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Continue").click()


def test_enter_watch_and_see_it_ranked(page: Page, site: Site, ranked: str, tmp_path: Path) -> None:
    model = tmp_path / "browsers_own.onnx"
    model.write_bytes(trained(16))
    page.goto("/")
    page.get_by_role("link", name="Enter a model").click()
    sign_in(page, site.token("Browne"))
    page.get_by_label("Latency Sprint").check()
    page.get_by_label("Model", exact=True).set_input_files(model)
    page.get_by_role("button", name="Enter").click()
    # Watched without a reload: what was there stays the same document.
    page.evaluate("window.same = true")
    expect(page.get_by_role("status")).to_contain_text(re.compile("timing|weighing"), timeout=240 * SECOND)
    expect(page.get_by_role("status")).to_contain_text("Place", timeout=240 * SECOND)
    assert page.evaluate("window.same") is True
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Latency Sprint").click()
    expect(page.get_by_role("row", name=re.compile("Browne"))).to_contain_text("browsers_own.onnx")
    expect(page.get_by_role("row", name=re.compile("Shelly"))).to_be_visible()


def test_a_refused_entry_says_why(page: Page, site: Site, tmp_path: Path) -> None:
    model = tmp_path / "junk.onnx"
    model.write_bytes(dense()[:500])
    page.goto("/enter")
    sign_in(page, site.token("Junko"))
    page.get_by_label("Model", exact=True).set_input_files(model)
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_role("status")).to_contain_text("not an .onnx file")


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the focus is on something of this name, and that the focus can be seen."""
    for _ in range(40):
        page.keyboard.press("Tab")
        text = page.evaluate("(document.activeElement.innerText || document.activeElement.name || '').trim()")
        if text.startswith(name):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"Tab does not reach {name!r}")


def choose_by_key(page: Page) -> FileChooser:
    """Press Enter on a file field; on a busy machine Chromium now and then opens nothing, and one presses again."""
    for _ in range(5):
        with suppress(TimeoutError):
            with page.expect_file_chooser(timeout=6 * SECOND) as chooser:
                page.keyboard.press("Enter")
            return chooser.value
    raise AssertionError("Enter on the file field opens no dialog")


def test_by_keyboard_alone(page: Page, site: Site, ranked: str, tmp_path: Path) -> None:
    model = tmp_path / "keys.onnx"
    model.write_bytes(dense(4, 4))
    token = site.token("Keys")
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to content"
    tab_to(page, "Enter a model")
    page.keyboard.press("Enter")
    page.wait_for_url("**/enter")
    tab_to(page, "token")
    page.keyboard.type(token)
    page.keyboard.press("Enter")
    expect(page.get_by_text("You are Keys")).to_be_visible()
    tab_to(page, "event")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Memory Challenge")).to_be_checked()
    tab_to(page, "file")
    choose_by_key(page).set_files(model)
    tab_to(page, "Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("keys.onnx")


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (360, "dark"),
        *(pytest.param(*case, marks=pytest.mark.audit) for case in ((1280, "dark"), (360, "light"))),
    ],
)
def test_accessible_and_within_the_screen(
    browser: Browser, site: Site, ranked: str, barriers: Callable[[Page], list[str]], scheme: Any, width: int
) -> None:
    context = browser.new_context(base_url=site.address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    for path in ("/", "/events/latency", "/events/memory", "/pareto", "/rules", "/enter", ranked, "/nothing"):
        page.goto(path)
        assert barriers(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    # Nothing is left out or cut off on a small screen.
    page.goto("/events/latency")
    for number in ("latency", "memory", "kB", "%") if width == 360 else ("×", "kB", "%"):
        expect(page.get_by_role("row", name=re.compile("Shelly"))).to_contain_text(number, use_inner_text=True)
    page.goto("/pareto")
    assert page.evaluate(
        "(box => box.left >= 0 && box.right <= innerWidth)(document.querySelector('.chart').getBoundingClientRect())"
    )
    page.goto("/enter")
    sign_in(page, site.token(f"{scheme} {width}"))
    expect(page.get_by_label("Model", exact=True)).to_be_visible()
    assert barriers(page) == []
    context.close()


def test_rows_are_in_the_page_without_scripts(browser: Browser, site: Site, ranked: str) -> None:
    context = browser.new_context(base_url=site.address, java_script_enabled=False)
    page = context.new_page()
    page.goto("/events/latency")
    expect(page.get_by_role("row", name=re.compile("Shelly"))).to_be_visible()
    context.close()


def test_export_from_the_shell(site: Site, ranked: str, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "winter"
    said = site.autograder("export", "--out", str(folder))
    assert "latency.csv: " in said
    assert "Shelly" in (folder / "latency.csv").read_text()
