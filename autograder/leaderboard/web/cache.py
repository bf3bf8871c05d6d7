"""Rendered pages, kept until something happens, with ETags; in front of routing, so that a hit costs microseconds."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAME_FOR_ALL = re.compile(r"/(events/[\w-]+(\.csv)?|pareto|rules|api/events(/[\w-]+)?)?")
PAGE = re.compile(rb"(page=\d{1,4})?")
CHECK_EVERY = 0.5  # seconds
MOST = 512

Headers = list[tuple[bytes, bytes]]


@dataclass
class Kept:
    """One rendered page, plain and compressed."""

    state: Any
    etag: bytes
    plain: bytes
    packed: bytes
    headers: Headers
    headers_packed: Headers


@dataclass
class _Answer:
    status: int = 500
    headers: Headers = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)


class Cache:
    """Serves pages that are the same for everybody from memory.

    Parameters
    ----------
    app
        The application behind.
    state
        Returns what pages depend on; a page is rendered anew when it differs. Called at most every `CHECK_EVERY` s.
    """

    def __init__(self, app: ASGIApp, state: Callable[[], Any]) -> None:
        self.app, self.state = app, state
        self.kept: dict[tuple[str, str, bytes], Kept] = {}
        self.current: Any = None
        self.checked = float("-inf")
        self.lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if (
            scope["type"] != "http"
            or scope["method"] not in ("GET", "HEAD")
            or not PAGE.fullmatch(scope["query_string"])
        ):
            await self.app(scope, receive, send)
            return
        prefix = scope.get("root_path", "")
        path = scope["path"].removeprefix(prefix)
        if not SAME_FOR_ALL.fullmatch(path):
            await self.app(scope, receive, send)
            return
        key = (prefix, path, scope["query_string"])
        if time.monotonic() - self.checked > CHECK_EVERY:
            self.current = await asyncio.to_thread(self.state)
            self.checked = time.monotonic()
        kept = self.kept.get(key)
        if kept is None or kept.state != self.current:
            async with self.lock:  # whoever comes meanwhile waits for this rendering
                kept = self.kept.get(key)
                if kept is None or kept.state != self.current:
                    answer = await self._render(scope, receive)
                    if answer.status != 200:
                        await _send(send, answer.status, answer.headers, bytes(answer.body))
                        return
                    kept = self._keep(key, answer)
        wanted = dict(scope["headers"])
        if kept.etag in wanted.get(b"if-none-match", b""):
            await _send(send, 304, [(b"etag", kept.etag), (b"cache-control", b"no-cache")], b"")
            return
        pack = b"gzip" in wanted.get(b"accept-encoding", b"")
        body = kept.packed if pack else kept.plain
        headers = kept.headers_packed if pack else kept.headers
        await _send(send, 200, headers, b"" if scope["method"] == "HEAD" else body)

    async def _render(self, scope: Scope, receive: Receive) -> _Answer:
        answer = _Answer()

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status, answer.headers = message["status"], list(message["headers"])
            else:
                answer.body += message.get("body", b"")

        await self.app({**scope, "method": "GET"}, receive, collect)
        return answer

    def _keep(self, key: tuple[str, str, bytes], answer: _Answer) -> Kept:
        plain = bytes(answer.body)
        packed = gzip.compress(plain, 6)
        etag = b'"' + hashlib.sha256(plain).hexdigest()[:24].encode() + b'"'
        fixed = [pair for pair in answer.headers if pair[0] != b"content-length"]
        fixed += [(b"etag", etag), (b"cache-control", b"no-cache"), (b"vary", b"accept-encoding")]
        kept = Kept(
            self.current,
            etag,
            plain,
            packed,
            [*fixed, (b"content-length", str(len(plain)).encode())],
            [*fixed, (b"content-length", str(len(packed)).encode()), (b"content-encoding", b"gzip")],
        )
        if len(self.kept) >= MOST:
            self.kept.clear()
        self.kept[key] = kept
        return kept


async def _send(send: Send, status: int, headers: Headers, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
