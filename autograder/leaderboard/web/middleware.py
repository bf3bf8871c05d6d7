"""What stands before the pages: size of uploads, frequency of requests, headers of answers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
]  # fmt: skip
SHORT = 4096  # bytes of a form that holds a token
# jupyter-server-proxy names the prefix that it has cut off in one of these.
PREFIX_HEADERS = (b"x-forwarded-prefix", b"x-forwarded-context", b"x-proxycontextpath")
PREFIX = re.compile(rb"(/[\w.~@+-]+)+")


class Guard:
    """Limits request bodies while they arrive, takes prefixes from proxies, and adds security headers.

    Parameters
    ----------
    app
        The application behind.
    most
        The largest body in bytes.
    prefix
        Path under which a proxy shows the application; by default what the proxy says.
    """

    def __init__(self, app: ASGIApp, most: int, prefix: str = "") -> None:
        self.app, self.most, self.prefix = app, most, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        prefix = self.prefix or _named_prefix(dict(scope["headers"]))
        if prefix:
            scope["root_path"] = prefix
            if not scope["path"].startswith(f"{prefix}/"):  # the proxy has cut it off; ASGI wants it there
                scope["path"] = prefix + scope["path"]
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.most:
                raise too_large(self.most)
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        await self.app(scope, counted, with_headers)


def _named_prefix(headers: dict[bytes, bytes]) -> str:
    for name in PREFIX_HEADERS:
        prefix = headers.get(name, b"").rstrip(b"/")
        if PREFIX.fullmatch(prefix):
            return prefix.decode("ascii")
    return ""


def too_large(most: int) -> HTTPException:
    """Return the answer to a body that is larger than allowed."""
    return HTTPException(413, f"the upload is larger than {most / 2**20:.0f} MB, the most there is for an entry")


def check_declared_size(request: Request, most: int) -> None:
    """Refuse a body that says itself that it is too large, before any of it is read."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > most:
        raise too_large(most)


def check_short_form(request: Request) -> None:
    """Refuse a form that is larger than a token needs, or does not say beforehand how large it is."""
    declared = request.headers.get("content-length", "")
    if not declared.isdecimal() or int(declared) > SHORT:
        raise HTTPException(413, "this is no token: it is too long")


def check_same_site(request: Request) -> None:
    """Refuse a form that another site's page sends with this browser's cookie."""
    site = request.headers.get("sec-fetch-site")
    if site is None:  # browsers send it over https and to this machine only, but with each form where it comes from
        host = urlsplit(request.headers.get("origin", "")).netloc
        own = host and host in (request.headers.get("host"), request.headers.get("x-forwarded-host"))
    else:
        own = site in ("none", "same-origin")
    if not own:
        raise HTTPException(403, "this form was sent by another site; open the leaderboard itself")


class RateLimit:
    """So many events a minute for each key, with bursts of as many.

    Parameters
    ----------
    per_minute
        The rate.
    clock
        Returns seconds; monotonic.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute, self.clock = per_minute, clock
        self.left: dict[Hashable, tuple[float, float]] = {}

    def spend(self, key: Hashable) -> None:
        """Count one event; raise 429 with the seconds to wait if there were too many."""
        now = self.clock()
        if len(self.left) > 10_000:  # forget those who have their full burst again
            self.left = {key: value for key, value in self.left.items() if now - value[1] < 60}
        tokens, last = self.left.get(key, (float(self.per_minute), now))
        tokens = min(self.per_minute, tokens + (now - last) * self.per_minute / 60)
        if tokens < 1:
            wait = round((1 - tokens) * 60 / self.per_minute) + 1
            raise HTTPException(429, f"too many tries; wait {wait} s and try again", headers={"Retry-After": str(wait)})
        self.left[key] = (tokens - 1, now)
