"""A cache of rendered pages, with ETags. The pages are kept until the leaderboard changes.

The cache runs before routing and rendering, so that a hit takes microseconds. No ASGI library does that.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from fastapi import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAME_FOR_ALL = re.compile(r"/(events/[\w-]+(\.csv)?|pareto|rules|api/events(/[\w-]+)?)?")
PAGE = re.compile(rb"(page=\d{1,4})?")
CHECK_EVERY = 0.5  # seconds
MOST = 512


class Page(NamedTuple):
    """A rendered page, and the response 304 for a browser that has the page already."""

    etag: bytes
    whole: Response
    unchanged: Response


class PageCache:
    """A cache of the pages that are the same for everybody. The cache is cleared when the value of `state` changes."""

    def __init__(self, app: ASGIApp, state: Callable[[], Any]) -> None:
        self.app, self.state = app, state
        self.pages: dict[Any, Page] = {}
        self.current: Any = None
        self.checked = float("-inf")
        self.lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, from the cache if possible."""
        prefix, query = scope.get("root_path", ""), scope.get("query_string", b"")
        if (
            scope["type"] != "http"
            or scope["method"] not in ("GET", "HEAD")
            or not PAGE.fullmatch(query)
            or not SAME_FOR_ALL.fullmatch(path := scope["path"].removeprefix(prefix))
        ):
            await self.app(scope, receive, send)
            return
        if time.monotonic() - self.checked > CHECK_EVERY:
            state = await asyncio.to_thread(self.state)
            self.checked = time.monotonic()
            if state != self.current:
                self.current, self.pages = state, {}
        headers = dict(scope["headers"])
        key = (prefix, path, query, b"gzip" in headers.get(b"accept-encoding", b""))
        page = self.pages.get(key) or await self._render(key, scope, receive)
        response = page.unchanged if page.etag in headers.get(b"if-none-match", b"") else page.whole
        await response(scope, receive, send)

    async def _render(self, key: Any, scope: Scope, receive: Receive) -> Page:
        async with self.lock:  # concurrent requests wait for this rendering
            pages = self.pages  # if `self.pages` is replaced during rendering, this page is not kept
            if key in pages:
                return pages[key]
            whole, body = Response(), bytearray()

            async def collect(message: Message) -> None:
                if message["type"] == "http.response.start":
                    whole.status_code, whole.raw_headers = message["status"], list(message["headers"])
                else:
                    body.extend(message.get("body", b""))

            await self.app({**scope, "method": "GET"}, receive, collect)
            whole.body = bytes(body)
            etag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
            headers = {"etag": etag, "cache-control": "no-cache", "vary": "Accept-Encoding"}
            page = Page(etag.encode(), whole, Response(status_code=304, headers=headers))
            if whole.status_code == 200:
                whole.headers.update(headers)
                if len(pages) >= MOST:
                    pages.clear()
                pages[key] = page
            return page
