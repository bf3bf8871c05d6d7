"""The server's HTTP application. Worker processes answer /predict; this process answers all other paths."""

from __future__ import annotations

import asyncio
import math
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from tinybench.support.basics.numbers import number_of
from tinybench.tools.serving.counters import Metrics
from tinybench.tools.serving.model_worker import Answer, error_body
from tinybench.tools.serving.request_body import Reader, Refused
from tinybench.tools.serving.request_log import Trace
from tinybench.tools.serving.worker_pool import Job, Pool

LEFT = 499  # status if the client disconnected before the answer; nginx uses the same code
LONGEST_NAME = 128
PATHS = {"/predict": "POST", "/health": "GET", "/metrics": "GET"}
JSON = (b"content-type", b"application/json")

Submit = Callable[[Job], Awaitable[Answer]]


class Front:
    """The HTTP application. ``submit`` passes a job (one request) to the workers and waits for the answer.

    FastAPI serves every path except /predict. FastAPI's layers take about 0.1 ms, a third of the end-to-end time of a
    small request. Requests to /predict bypass FastAPI, because they would not benefit from these layers.
    """

    def __init__(
        self, reader: Reader, pool: Pool, submit: Submit, trace: Trace, name: str, timeout: float, max_body: int
    ) -> None:
        self.reader, self.pool, self.submit, self.trace = reader, pool, submit, trace
        self.model_name, self.timeout, self.max_body = name, timeout, max_body
        self.jobs: set[Job] = set()
        self.open, self.draining, self.numbers = 0, False, count(1)
        # receives the rows, the answer and the user of successful requests
        self.note: Callable[[Any, bytes, str | None], None] | None = None
        gauges = {
            "queue_length: Requests that wait for a worker": self.queue_length,
            "requests_open: Requests to /predict without an answer yet": lambda: self.open,
        }
        self.metrics = Metrics(gauges, lambda: pool.restarts)
        pool.on_batch = self.metrics.on_batch
        self.pages = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
        self.pages.add_route("/health", self.health, methods=["GET"])
        self.pages.add_route("/metrics", self.show_metrics, methods=["GET"])
        self.pages.add_exception_handler(HTTPException, self._sentence)  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: POST /predict directly, everything else through FastAPI."""
        if scope["path"] == "/predict" and scope["method"] == "POST":
            await self.predict(scope, receive, send)
        else:
            await self.pages(scope, receive, send)

    async def _sentence(self, request: Request, error: HTTPException) -> Response:
        path = request.url.path
        if path in PATHS:
            text = f"{path} takes {PATHS[path]}, not {request.method}"
            return JSONResponse({"detail": text}, 405, headers={"Allow": PATHS[path]})
        text = f"there is no {path[:100]}; there are {', '.join(f'{how} {known}' for known, how in PATHS.items())}"
        return JSONResponse({"detail": text}, error.status_code)

    async def health(self, request: Request) -> Response:
        """Return the status, model, workers and input. The code is 200 if requests are accepted, otherwise 503."""
        workers = sum(worker.introduced for worker in self.pool.workers)
        status = "draining" if self.draining else "ok" if workers else "no worker"
        about: dict[str, Any] = {"status": status, "model": self.model_name, "workers": workers}
        about["input"] = {"shape": self.reader.row, "dtype": self.reader.dtype.name}
        return JSONResponse(about, 200 if status == "ok" else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Return the metrics in Prometheus's text format."""
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    def queue_length(self) -> int:
        """Return the number of requests that wait for a worker."""
        return sum(not job.started for job in self.jobs)

    async def predict(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request to /predict, and record it in the metrics and the trace."""
        received = scope.get("received") or time.perf_counter()
        connection, job = scope.get("connection"), Job()
        if connection is not None:
            connection.task = asyncio.current_task()  # this task is cancelled if the client disconnects
            connection.transport.written = 0.0
        self.open += 1
        name, user, code, body = "", "", LEFT, b""
        more: list[tuple[bytes, bytes]] = []
        try:
            try:
                headers = dict(scope["headers"])
                name = _text(headers, "X-Request-Id")
                user = _text(headers, "X-User") if self.note is not None else ""
                if name:
                    more.append((b"x-request-id", name.encode()))
                code, body = await self._answer(headers, receive, job)
            except Refused as refused:
                code, body = refused.code, error_body(str(refused))
                more += refused.headers.items()
            head = [JSON, (b"content-length", b"%d" % len(body)), *more]
            if connection is not None:
                connection.transport.keep = True
            await send({"type": "http.response.start", "status": code, "headers": head})
            await send({"type": "http.response.body", "body": body})
        except asyncio.CancelledError:
            if connection is None or not connection.gone:
                raise
            code = LEFT
        finally:
            finished = 0.0
            if connection is not None:
                connection.task, finished = None, connection.transport.written
            self.open -= 1
            self._record(job, name, code, received, finished or time.perf_counter())
            if code == 200 and self.note is not None:
                self.note(job.rows, body, user or None)

    def _record(self, job: Job, name: str, code: int, received: float, finished: float) -> None:
        """Count a finished request and add it to the trace."""
        self.metrics.codes[code] += 1
        if code == 200:
            self.metrics.request.add(finished - received)
        if self.trace.file is not None:
            row = (name or str(next(self.numbers)), received, job.started, finished, code, job.batch)
            self.trace.rows.append(row)

    async def _answer(self, headers: dict[bytes, bytes], receive: Receive, job: Job) -> Answer:
        if self.draining:
            raise self._later("the server is stopping", {b"connection": b"close"})
        self._check_headers(headers)
        try:
            async with asyncio.timeout(self.timeout):
                job.rows = self.reader.read(await self._body(receive))
                self.jobs.add(job)
                try:
                    return await self.submit(job)
                finally:
                    job.dropped = True
                    self.jobs.discard(job)
        except TimeoutError:
            if job.rows is None:
                why = f"the body took longer than {self.timeout:g} s to arrive"
                raise Refused(408, why, {b"connection": b"close"}) from None
            raise self._later(f"no answer within {self.timeout:g} s") from None
        except asyncio.QueueFull:
            raise self._later("too many requests wait already") from None
        except Refused:
            raise
        except Exception:
            traceback.print_exc(file=sys.stderr)
            raise Refused(500, "the server failed at this request; its log says how") from None

    def _later(self, why: str, headers: dict[bytes, bytes] | None = None) -> Refused:
        seconds = max(1, math.ceil(self.pool.wait_seconds(self.queue_length())))
        return Refused(503, f"{why}; try again in {seconds} s", {b"retry-after": b"%d" % seconds, **(headers or {})})

    def _check_headers(self, headers: dict[bytes, bytes]) -> None:
        kind = headers.get(b"content-type", b"application/json").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise Refused(422, f"the body is {kind[:100].decode('latin-1')}; send application/json")
        if b"content-encoding" in headers:
            raise Refused(422, "the body is compressed; send it as it is")
        if int(headers.get(b"content-length", b"0")) > self.max_body:  # httptools accepts only numbers
            raise self._too_large()

    def _too_large(self) -> Refused:
        return Refused(413, f"the body is larger than {number_of(self.max_body, 'byte')}; send fewer rows at a time")

    async def _body(self, receive: Receive) -> bytes:
        message = await receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self.max_body:
                break
        if len(body) > self.max_body:
            raise self._too_large()
        return body


def _text(headers: dict[bytes, bytes], name: str) -> str:
    """Return the value of a request's header, or an empty string if the request does not have it."""
    text = headers.get(name.lower().encode(), b"").decode("latin-1")
    if len(text) > LONGEST_NAME or (text and not (text.isascii() and text.isprintable())):
        raise Refused(422, f"{name} must be at most {LONGEST_NAME} printable ASCII characters")
    return text


def plain_queue(pool: Pool, longest: int) -> Submit:
    """Return a function that submits each job to a worker separately, without batching.

    Jobs wait in order of arrival. If `longest` jobs wait already, the function raises `asyncio.QueueFull`.
    """

    async def submit(job: Job) -> Answer:
        if not pool.idle and len(pool.waiting) >= longest:
            raise asyncio.QueueFull
        [answer] = await pool.run([job])
        return answer

    return submit
