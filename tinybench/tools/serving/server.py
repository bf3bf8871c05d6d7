"""The server process: its settings, listening socket, connection limits and shutdown."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tinybench.tools.drifting import Reference
from tinybench.tools.drifting.detectors import make_detector
from tinybench.tools.serving.drift_monitor import DETECTOR, LEVEL, Drift, reference_for
from tinybench.tools.serving.http_front import Front, Submit, plain_queue
from tinybench.tools.serving.model_worker import error_body
from tinybench.tools.serving.open_files import allow_files
from tinybench.tools.serving.request_body import Reader
from tinybench.tools.serving.request_log import Trace
from tinybench.tools.serving.worker_pool import Pool

HEAD_SECONDS = 10.0  # time limit for the head of a request, unless the timeout of the whole request is shorter
KEEP_SECONDS = 60  # idle time allowed between two requests of a connection
HEAD_BYTES = 2**16
FILES, RESERVED = 65_536, 50  # most open files, if the system allows, and how many of them are not connections


@dataclass(frozen=True)
class Settings:
    """The settings of `tinybench serve`. Times are in seconds."""

    model: str
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 1
    max_batch: int = 8
    max_wait: float = 0.002
    max_queue: int = 1000
    timeout: float = 10.0
    max_body: int = 2**20
    stall: tuple[float, float] | None = None
    fault: str = ""
    trace: Path | None = None
    reference: Path | None = None
    detector: str = DETECTOR


class OneWrite:
    """A transport that sends the head and body of an answer in one packet, so that the client wakes up only once."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport, self.keep, self.kept = transport, False, b""
        self.written = 0.0  # when the last answer was passed to the system; 0 before the first answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        """Hold back the head of an answer, and send the head together with the bytes that follow."""
        if self.keep:
            self.keep, self.kept = False, data
        else:
            data, self.kept = self.kept + data, b""
            self.written = time.perf_counter()  # before the call below, which may return after the client has read
            self.transport.write(data)


class Connection(HttpToolsProtocol):
    """A connection that records when a request arrives, and cancels the request's task if the client disconnects."""

    task: asyncio.Task[None] | None = None
    gone = False
    since: float | None = None  # when the request that is still arriving began
    in_head, head_bytes = True, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for the head of a request; refuse the connection if too many are open."""
        super().connection_made(OneWrite(transport))  # type: ignore[arg-type]
        self.since = time.perf_counter()
        if len(self.connections) > (self.config.limit_concurrency or FILES):
            self.refuse(503, "too many connections are open; try again in 1 s", b"retry-after: 1\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the open request of a client that has disconnected."""
        self.gone = True
        super().connection_lost(exc)
        if self.task is not None:
            self.task.cancel()

    def on_message_begin(self) -> None:
        """Record the arrival time of a request, and store the time in the request's ASGI scope."""
        super().on_message_begin()
        self.since = time.perf_counter()
        self.in_head, self.head_bytes = True, 0
        self.scope["received"] = self.since  # type: ignore[typeddict-unknown-key]
        self.scope["connection"] = self  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        """Stop limiting the size of the head of a request, because the head has arrived completely."""
        self.in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the time limit of a request that has arrived completely."""
        self.since = None
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse bytes from the client; refuse the request if its head is too large."""
        super().data_received(data)
        if self.in_head and self.since is not None:
            self.head_bytes += len(data)
            if self.head_bytes > HEAD_BYTES:
                self.refuse(431, f"the head of the request is larger than {HEAD_BYTES} bytes")

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is not HTTP. The error is in JSON, instead of uvicorn's plain text."""
        self.refuse(400, "this is no HTTP request")

    def check_time(self, now: float, timeout: float) -> None:
        """Close the connection if its request takes too long to arrive."""
        if self.since is None:
            return
        most = min(timeout, HEAD_SECONDS)
        if self.in_head and now - self.since > most:
            self.refuse(408, f"the head of the request took longer than {most:g} s to arrive")
        elif now - self.since > timeout + HEAD_SECONDS:  # the request was answered long ago, but its body still arrives
            self.transport.close()

    def refuse(self, code: int, why: str, more: bytes = b"") -> None:
        """Answer an incomplete or invalid request with an error, and close the connection."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:  # otherwise the error would end up inside another answer
            body = error_body(why)
            head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n" % len(body)
            self.transport.write(STATUS_LINE[code] + head + more + b"\r\n" + body)
        self.transport.close()


class Server(uvicorn.Server):
    """A uvicorn server that prints when it is ready, and finishes open requests before it closes connections."""

    def __init__(self, app: Front, ready: str, drift: Drift | None) -> None:
        options: dict[str, Any] = {"lifespan": "off", "ws": "none", "log_config": None, "log_level": "error"}
        options |= {
            "access_log": False,
            "proxy_headers": False,
            "server_header": False,
            "timeout_keep_alive": KEEP_SECONDS,
        }
        options |= {"limit_concurrency": allow_files(FILES) - RESERVED, "timeout_graceful_shutdown": 1}
        super().__init__(uvicorn.Config(app, http=Connection, **options))
        self.app, self.ready, self.drift = app, ready, drift

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the sockets, then print that the server is ready."""
        await super().startup(sockets)
        print(self.ready, flush=True)

    async def on_tick(self, counter: int) -> bool:
        """Once a second, enforce the timeouts of clients and workers, update the drift monitor and flush the trace."""
        if counter % 10 == 0:  # each second
            if self.drift is not None:
                self.drift.tick()
            now = time.perf_counter()
            for connection in list(self.server_state.connections):
                connection.check_time(now, self.app.timeout)  # type: ignore[union-attr]
            self.app.pool.kill_stuck()
            self.app.trace.flush()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and wait until every open request is answered."""
        self.app.draining = True
        for server in self.servers:
            server.close()
        while self.app.open and not self.force_exit:  # no request is open for longer than the timeout
            await asyncio.sleep(0.01)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle Ctrl-C and SIGTERM while the server runs, without raising these signals again at the end."""
        with on_signals(self.handle_exit):  # uvicorn would raise them again, which would end the process
            yield


@contextmanager
def on_signals(handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    """Call `handler` on Ctrl-C and SIGTERM while the block runs. Windows sends only Ctrl-C."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. If the host or port cannot be used, raise ValueError or OSError with the reason."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=2048)
        # Nagle's algorithm would delay the second part of an answer by 40 ms; asyncio turns the algorithm off only for
        # sockets that name their protocol
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except socket.gaierror:
        raise ValueError(f"--host {host} is no address of this machine") from None
    except OSError as error:
        hint = "another program has it; choose another --port, or 0 for any that is free"
        why = hint if error.errno == 98 or "in use" in str(error) else error.strerror
        raise OSError(f"cannot listen on {host}:{port}: {why}") from None


@asynccontextmanager
async def submitting(pool: Pool, settings: Settings) -> AsyncIterator[Submit]:
    """Yield a function that passes a request to the workers: alone if `max_batch` is 1, otherwise in a batch."""
    if settings.max_batch == 1:
        yield plain_queue(pool, settings.max_queue)
        return
    from tinybench.scenarios import Batcher

    how: dict[str, Any] = {"workers": settings.workers, "max_queue": settings.max_queue}
    async with Batcher(pool.run, settings.max_batch, settings.max_wait, **how) as batcher:
        yield batcher.submit


async def serve(settings: Settings) -> int:
    """Run the server until a signal stops it. Return exit code 3 if the trace could not be written, otherwise 0."""
    name = Path(settings.model).name
    pool = Pool(settings.model, settings.workers, settings.threads, settings.stall, settings.timeout, settings.fault)
    with listen(settings.host, settings.port) as listener, closing(Trace(settings.trace)) as trace:
        try:
            loop, starting = asyncio.get_running_loop(), asyncio.ensure_future(pool.start())
            try:
                with on_signals(lambda *_: loop.call_soon_threadsafe(starting.cancel)):
                    facts = await starting
            except asyncio.CancelledError:
                return 0
            reference = await reference_for(settings.reference, pool, facts) if settings.reference else None
            if facts.alone and settings.max_batch > 1:
                raise ValueError(f"{name}: {facts.alone}; serve it with --max-batch 1")
            async with submitting(pool, settings) as submit:
                front = Front(Reader(facts), pool, submit, trace, name, settings.timeout, settings.max_body)
                with watching(front, reference, settings.detector) as drift:
                    try:
                        await Server(front, _ready(name, listener, settings), drift).serve([listener])
                    finally:
                        await pool.stop()  # no client waits for the work that is still in progress
        finally:
            await pool.stop()
    return 3 if trace.failed else 0


@contextmanager
def watching(front: Front, reference: Reference | None, detector: str) -> Iterator[Drift | None]:
    """Monitor drift while the block runs, and yield the monitor. Without a reference, yield None."""
    if reference is None:
        yield None
        return
    make_detector(detector, reference, LEVEL)  # a wrong name is refused here, not in the other process
    with closing(Drift(reference, detector)) as drift:
        front.note = drift.note
        front.metrics.more.append(drift.collect)
        yield drift


def _ready(name: str, listener: socket.socket, settings: Settings) -> str:
    host, port = listener.getsockname()[:2]
    workers = f"{settings.workers} worker{'s' * (settings.workers > 1)} of {settings.threads} thread"
    batches = f"batches of {settings.max_batch} within {1e3 * settings.max_wait:g} ms"
    about = f"{workers}{'s' * (settings.threads > 1)}, {batches if settings.max_batch > 1 else 'no batches'}"
    windows = ", only Ctrl-C stops it in good order" * (sys.platform == "win32")
    return f"serving {name} on http://{f'[{host}]' if ':' in host else host}:{port} ({about}{windows})"
