"""Where entries come in: who brings one, how much of it is read, and whether it is let in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from tempfile import SpooledTemporaryFile
from typing import Annotated

from fastapi import HTTPException, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from autograder.leaderboard.entry.check_process import check_apart
from autograder.leaderboard.entry.validate import Refused
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


class Door:
    """Lets students and their files in.

    Parameters
    ----------
    store
        The database.
    olympics
        Limits, quota, deadline.
    """

    def __init__(self, store: Store, olympics: Olympics) -> None:
        self.store, self.olympics = store, olympics
        self.room = asyncio.Semaphore(AT_ONCE)
        self.uploading: set[int] = set()
        self.uploads, self.failures = RateLimit(20), RateLimit(30)

    async def student(self, request: Request, token: str | None = None) -> Student:
        """Return who sends a request: by the given token, or by the cookie.

        Raises
        ------
        HTTPException
            401 with the reason; 429 after many wrong tokens from one address.
        """
        if token is None:
            token = request.cookies.get(COOKIE, "")
        try:
            return await run_in_threadpool(self.store.student, token)
        except UnknownToken as error:
            # Right tokens never wait: students behind one proxy share its address.
            self.failures.spend(request.client.host if request.client else "")
            raise HTTPException(401, str(error), headers={"WWW-Authenticate": "Bearer"}) from None

    async def token_of_form(self, request: Request) -> str:
        """Read the form by which somebody signs in, of whom nothing is known yet: little, and not for long."""
        check_short_form(request)
        async with _in_time():
            return str((await request.form()).get("token", "")).strip()

    @contextmanager
    def _one_upload(self, request: Request, student: Student) -> Iterator[None]:
        self.uploads.spend(student.id)
        check_declared_size(request, self.olympics.limits.size + OVERHEAD)
        if student.id in self.uploading:
            raise HTTPException(429, "another upload of yours is under way; wait until it has ended")
        self.uploading.add(student.id)
        try:
            yield
        finally:
            self.uploading.remove(student.id)

    async def take_form(self, request: Request, student: Student) -> int:
        """Read an uploaded form and return the number of the entry, queued or refused."""
        with self._one_upload(request, student):
            arrived = await run_in_threadpool(self.store.now)
            async with _in_time():
                form = await request.form(max_files=1, max_fields=8)
            try:
                upload, event = form.get("file"), str(form.get("event", ""))
                request.state.event = event  # for the form that says what was wrong
                if not isinstance(upload, UploadFile) or not upload.filename:
                    raise HTTPException(400, "no file was chosen; choose an .onnx file")
                return await self._let_in(student, event, upload.filename, upload, arrived)
            finally:
                await form.close()

    async def take_body(self, request: Request, student: Student, event: str, name: str) -> int:
        """Read a file that is the whole body and return the number of the entry, queued or refused."""
        with self._one_upload(request, student), SpooledTemporaryFile(SPOOLED) as file:
            arrived = await run_in_threadpool(self.store.now)
            upload, size = UploadFile(file), 0  # type: ignore[arg-type]
            async with _in_time():
                async for piece in request.stream():
                    size += len(piece)
                    if size > self.olympics.limits.size:
                        raise too_large(self.olympics.limits.size)
                    await upload.write(piece)
            return await self._let_in(student, event, name, upload, arrived)

    async def _let_in(self, student: Student, event: str, name: str, upload: UploadFile, arrived: float) -> int:
        async with self.room:
            await upload.seek(0)
            data = await upload.read(self.olympics.limits.size + 1)
            return await run_in_threadpool(self._check_and_enter, student, event, name, data, arrived)

    def _check_and_enter(self, student: Student, event: str, name: str, data: bytes, arrived: float) -> int:
        olympics = self.olympics
        try:
            olympics.event(event)
        except ValueError as error:
            raise HTTPException(404, str(error)) from None
        try:
            try:
                facts = check_apart(data, olympics.limits)
            except Refused as refused:
                return self.store.refuse_at_the_door(student, event, name, data, str(refused))
            return self.store.enter(student, event, name, data, facts, olympics.quota, olympics.deadline, arrived)
        except NotAllowed as error:
            raise HTTPException(STATUS.get(type(error), 403), str(error)) from None


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            yield
    except TimeoutError:
        raise HTTPException(408, f"the upload took longer than {UPLOAD_SECONDS} s; try again") from None
