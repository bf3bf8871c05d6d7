"""The reception of uploads. The sender is identified, the size is limited, and valid files become entries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from tempfile import SpooledTemporaryFile
from typing import Annotated

from fastapi import HTTPException, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from autograder.leaderboard.entry.check_process import check_in_process
from autograder.leaderboard.entry.validate import EntryRefused
from autograder.leaderboard.settings import Olympics
from autograder.leaderboard.store.store import Conflict, Exhausted, NotAllowed, Store, Student, UnknownToken, Waiting
from autograder.leaderboard.web.middleware import RateLimit, check_declared_size, check_short_form, too_large

EntryId = Annotated[int, Path(ge=1, le=2**31 - 1)]  # the range of a database's integers
COOKIE = "tinybench_token"
AT_ONCE = 4  # files that are checked in memory at the same time; files that still arrive are in temporary files
SPOOLED = 2**20
UPLOAD_SECONDS = 120
OVERHEAD = 64 * 1024  # bytes that a form adds to its file
STATUS = {UnknownToken: 401, Conflict: 409, Waiting: 409, Exhausted: 429}


class Uploads:
    """A receiver of uploads, which signs students in and checks and enters their files."""

    def __init__(self, store: Store, olympics: Olympics) -> None:
        self.store, self.olympics = store, olympics
        self.checking = asyncio.Semaphore(AT_ONCE)
        self.uploading: set[int] = set()
        self.upload_rate, self.failure_rate = RateLimit(20), RateLimit(30)

    async def student(self, request: Request, token: str | None = None) -> Student:
        """Return the sender of a request, by token or cookie. Raise error 401, or 429 after too many wrong tokens."""
        if token is None:
            token = request.cookies.get(COOKIE, "")
        try:
            return await run_in_threadpool(self.store.student, token)
        except UnknownToken as error:
            # Valid tokens are never limited, because students behind one proxy share its address.
            self.failure_rate.spend(request.client.host if request.client else "")
            raise HTTPException(401, str(error), headers={"WWW-Authenticate": "Bearer"}) from None

    async def token_of_form(self, request: Request) -> str:
        """Return the token of a sign-in form. Size and time are limited, because the sender is unknown."""
        check_short_form(request)
        async with _time_limit():
            return str((await request.form()).get("token", "")).strip()

    @contextmanager
    def _one_upload(self, request: Request, student: Student) -> Iterator[None]:
        self.upload_rate.spend(student.id)
        check_declared_size(request, self.olympics.limits.size + OVERHEAD)
        if student.id in self.uploading:
            raise HTTPException(429, "another upload of yours is under way; wait until it has ended")
        self.uploading.add(student.id)
        try:
            yield
        finally:
            self.uploading.remove(student.id)

    async def receive_form(self, request: Request, student: Student) -> int:
        """Receive a form with a file, and return the number of the queued or refused entry."""
        with self._one_upload(request, student):
            arrived = await run_in_threadpool(self.store.now)
            async with _time_limit():
                form = await request.form(max_files=1, max_fields=8)
            try:
                upload, event = form.get("file"), str(form.get("event", ""))
                request.state.event = event  # for the form that is shown again with an error
                if not isinstance(upload, UploadFile) or not upload.filename:
                    raise HTTPException(400, "no file was chosen; choose an .onnx file")
                return await self._check(student, event, upload.filename, upload, arrived)
            finally:
                await form.close()

    async def receive_body(self, request: Request, student: Student, event: str, name: str) -> int:
        """Receive a file sent as the whole request body, and return the number of the queued or refused entry."""
        with self._one_upload(request, student), SpooledTemporaryFile(SPOOLED) as file:
            arrived = await run_in_threadpool(self.store.now)
            upload, size = UploadFile(file), 0  # type: ignore[arg-type]
            async with _time_limit():
                async for piece in request.stream():
                    size += len(piece)
                    if size > self.olympics.limits.size:
                        raise too_large(self.olympics.limits.size)
                    await upload.write(piece)
            return await self._check(student, event, name, upload, arrived)

    async def _check(self, student: Student, event: str, name: str, upload: UploadFile, arrived: float) -> int:
        async with self.checking:
            await upload.seek(0)
            data = await upload.read(self.olympics.limits.size + 1)
            return await run_in_threadpool(self._enter, student, event, name, data, arrived)

    def _enter(self, student: Student, event: str, name: str, data: bytes, arrived: float) -> int:
        olympics = self.olympics
        try:
            olympics.event(event)
        except ValueError as error:
            raise HTTPException(404, str(error)) from None
        try:
            try:
                facts = check_in_process(data, olympics.limits)
            except EntryRefused as refused:
                return self.store.record_refusal(student, event, name, data, str(refused))
            return self.store.enter(student, event, name, data, facts, olympics.quota, olympics.deadline, arrived)
        except NotAllowed as error:
            raise HTTPException(STATUS.get(type(error), 403), str(error)) from None


@asynccontextmanager
async def _time_limit() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            yield
    except TimeoutError:
        raise HTTPException(408, f"the upload took longer than {UPLOAD_SECONDS} s; try again") from None
