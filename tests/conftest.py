"""What tests of several folders share: a real browser, and what axe finds in a page."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-quic"]  # fmt: skip


@pytest.fixture(scope="module")  # not longer: while Playwright runs, no other test of the process can use asyncio
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    chromium = shutil.which("chromium")
    assert chromium, "no chromium on this machine: run `bash .ci/install-system`"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def barriers() -> Callable[[Page], list[str]]:
    """A function that returns what axe finds on a page that is more than minor."""

    def find(page: Page) -> list[str]:
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = page.evaluate("tags => axe.run(document, {runOnly: tags})", RULES)
        return [
            f"{each['id']} ({each['impact']}): {each['nodes'][0]['html'][:200]}"
            for each in found["violations"]
            if each["impact"] in ("moderate", "serious", "critical")
        ]

    return find
