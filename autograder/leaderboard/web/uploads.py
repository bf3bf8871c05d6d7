"""Uploads: whose they are, how much of them is read, and whether they become entries."""

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

EntryId = Annotated[int, Path(ge=1, le=2**31 - 1)]  # what databases count to
COOKIE = "tinybench_token"
AT_ONCE = 4  # files in memory, to be checked; while they arrive, they lie in temporary files
SPOOLED = 2**20
UPLOAD_SECONDS = 120
OVERHEAD = 64 * 1024  # what a form adds to the file it carries
STATUS = {UnknownToken: 401, Conflict: 409, Waiting: 409, Exhausted: 429}


class Uploads:
    """Signs students in and receives their files."""

    def __init__(self, store: Store, olympics: Olympics) -> None:
        self.store, self.olympics = store, olympics
        self.checking = asyncio.Semaphore(AT_ONCE)
        self.uploading: set[int] = set()
        self.upload_rate, self.failure_rate = RateLimit(20), RateLimit(30)

    async def student(self, request: Request, token: str | None = None) -> Student:
        """Return who sends a request, by the given token or the cookie; 401 or, after many wrong tokens, 429."""
        if token is None:
            token = request.cookies.get(COOKIE, "")
        try:
            return await run_in_threadpool(self.store.student, token)
        except UnknownToken as error:
            # Right tokens never wait: students behind one proxy share its address.
            self.failure_rate.spend(request.client.host if request.client else "")
            raise HTTPException(401, str(error), headers={"WWW-Authenticate": "Bearer"}) from None

    async def token_of_form(self, request: Request) -> str:
        """Read the form of somebody who signs in: little of it, and not for long, since it may be anybody."""
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
        """Receive a form with a file and return the number of the entry, queued or refused."""
        with self._one_upload(request, student):
            arrived = await run_in_threadpool(self.store.now)
            async with _time_limit():
                form = await request.form(max_files=1, max_fields=8)
            try:
                upload, event = form.get("file"), str(form.get("event", ""))
                request.state.event = event  # for the form that says what was wrong
                if not isinstance(upload, UploadFile) or not upload.filename:
                    raise HTTPException(400, "no file was chosen; choose an .onnx file")
                return await self._check(student, event, upload.filename, upload, arrived)
            finally:
                await form.close()

    async def receive_body(self, request: Request, student: Student, event: str, name: str) -> int:
        """Receive a file that is the whole body and return the number of the entry, queued or refused."""
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
