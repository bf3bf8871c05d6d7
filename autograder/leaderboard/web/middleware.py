"""Rules for all pages: the size of uploads, the rate of requests, the headers of answers."""

from __future__ import annotations

import math
import re
import time
from contextlib import suppress
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
]  # fmt: skip
SHORT = 4096  # the maximum size in bytes of a form with a token
# jupyter-server-proxy sends the prefix that it has removed in one of these headers.
PREFIX_HEADERS = (b"x-forwarded-prefix", b"x-forwarded-context", b"x-proxycontextpath")
PREFIX = re.compile(rb"(/[\w.~@+-]+)+")


class HttpMiddleware:
    """Middleware that limits request bodies while they arrive, applies proxies' prefixes, and adds security headers."""

    def __init__(self, app: ASGIApp, most: int, prefix: str = "") -> None:
        self.app, self.most, self.prefix = app, most, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on to the application, with the proxy's prefix and a limit on its body."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        prefix = self.prefix or _named_prefix(dict(scope["headers"]))
        if prefix:
            scope["root_path"] = prefix
            if not scope["path"].startswith(f"{prefix}/"):  # the proxy has removed the prefix; ASGI requires it
                scope["path"] = prefix + scope["path"]
        arrived = 0

        async def counted() -> Message:
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            if arrived > self.most:
                raise too_large(self.most)
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        with suppress(ClientDisconnect):  # nobody waits for an answer; a traceback would only fill the log
            await self.app(scope, counted, with_headers)


def _named_prefix(headers: dict[bytes, bytes]) -> str:
    for name in PREFIX_HEADERS:
        prefix = headers.get(name, b"").rstrip(b"/")
        if PREFIX.fullmatch(prefix):
            return prefix.decode("ascii")
    return ""


def too_large(most: int) -> HTTPException:
    """Return error 413, with the limit for an upload in MB."""
    return HTTPException(413, f"the upload is larger than {most / 2**20:.0f} MB, the limit for an entry")


def check_declared_size(request: Request, most: int) -> None:
    """Refuse a body if its Content-Length exceeds `most`, before any of it is read."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > most:
        raise too_large(most)


def check_short_form(request: Request) -> None:
    """Refuse a form that is larger than necessary for a token, or that does not declare its size."""
    declared = request.headers.get("content-length", "")
    if not declared.isdecimal() or int(declared) > SHORT:
        raise HTTPException(413, "this is no token: it is too long")


def check_same_site(request: Request) -> None:
    """Refuse a form that a page of another site sends with this browser's cookie."""
    site = request.headers.get("sec-fetch-site")
    if site is None:  # browsers send this header only over https or to this machine, but every form has an origin
        host = urlsplit(request.headers.get("origin", "")).netloc
        own = host and host in (request.headers.get("host"), request.headers.get("x-forwarded-host"))
    else:
        own = site in ("none", "same-origin")
    if not own:
        raise HTTPException(403, "this form was sent by another site; open the leaderboard itself")


class RateLimit:
    """A limit of `per_minute` attempts for each key."""

    def __init__(self, per_minute: int) -> None:
        self.limit, self.limiter = RateLimitItemPerMinute(per_minute), MovingWindowRateLimiter(MemoryStorage())

    def spend(self, key: object) -> None:
        """Count one attempt. After too many attempts, raise error 429 with the seconds to wait."""
        if not self.limiter.hit(self.limit, str(key)):
            wait = math.ceil(self.limiter.get_window_stats(self.limit, str(key)).reset_time - time.time()) + 1
            raise HTTPException(429, f"too many tries; wait {wait} s and try again", headers={"Retry-After": str(wait)})
