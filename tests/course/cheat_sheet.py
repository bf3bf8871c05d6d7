"""The cheat sheet as PDF, from its page: ``python -m tests.course.cheat_sheet`` after a change. It takes Chromium."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys

from autograder.course.student_guides import PAPERS

PAGE, PDF = PAPERS / "cheat_sheet.html", PAPERS / "cheat_sheet.pdf"
MARK = b"% the source's SHA-256: "  # a comment at the end, which readers of PDF skip


def digest() -> bytes:
    """Return what the PDF ends with as long as it is in step with its page."""
    return MARK + hashlib.sha256(PAGE.read_bytes()).hexdigest().encode() + b"\n"


def pages(pdf: bytes) -> int:
    """Return how many pages a PDF of Chromium's has."""
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


def write() -> int:
    """Print the page into the PDF."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(PAGE.as_uri())
        content = page.pdf(prefer_css_page_size=True, tagged=True, outline=True)
        browser.close()
    PDF.write_bytes(content.rstrip() + b"\n" + digest())
    print(f"{PDF.name}: {pages(content)} pages, {len(content) / 1000:.0f} kB")
    return pages(content) != 2


if __name__ == "__main__":
    sys.exit(write())
