"""The server's handling of connections. Idle connections are closed, and many connections may be open at once."""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
FILES = 65_536  # files open at once, if the system allows it
RESERVED = 100  # open files for databases, logs and uploads


class HeadTimeoutProtocol(H11Protocol):
    """A protocol that closes a connection if no complete request head arrives in time.

    uvicorn's own protocol would wait for ever.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the first request of a connection."""
        super().connection_made(transport)
        self._await_head()

    def on_response_complete(self) -> None:
        """Start the timeout for the next request."""
        super().on_response_complete()
        self._await_head()

    def _await_head(self) -> None:
        self.loop.call_later(HEAD_SECONDS, self._close_if_still, self.cycle)

    def _close_if_still(self, cycle: Any) -> None:
        if self.cycle is cycle:  # no request has begun since
            self.transport.close()


def config(app: Any, **options: Any) -> uvicorn.Config:
    """Return uvicorn's configuration for the leaderboard, and raise this process's limit on open files."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    options |= {"log_level": "warning", "server_header": False, "limit_concurrency": files - RESERVED}
    return uvicorn.Config(app, http=HeadTimeoutProtocol, **options)
