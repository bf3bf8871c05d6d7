"""How the server listens: idle connections are closed, and many may be open at once."""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
FILES = 65_536  # open at once, if this system lets us
RESERVED = 100  # for databases, logs and uploads


class HeadTimeoutProtocol(H11Protocol):
    """Closes a connection on which no whole head of a request arrives in time; uvicorn would wait for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for the first request of a connection."""
        super().connection_made(transport)
        self._await_head()

    def on_response_complete(self) -> None:
        """Start the time limit for the next request."""
        super().on_response_complete()
        self._await_head()

    def _await_head(self) -> None:
        self.loop.call_later(HEAD_SECONDS, self._close_if_still, self.cycle)

    def _close_if_still(self, cycle: Any) -> None:
        if self.cycle is cycle:  # no request has begun since
            self.transport.close()


def config(app: Any, **options: Any) -> uvicorn.Config:
    """Return how to serve the leaderboard, and let this process open many connections."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    options |= {"log_level": "warning", "server_header": False, "limit_concurrency": files - RESERVED}
    return uvicorn.Config(app, http=HeadTimeoutProtocol, **options)
