"""The leaderboard's web application and its pages. `api` serves the same data as JSON."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.types import ASGIApp

from autograder.leaderboard.board import Board, export_csv
from autograder.leaderboard.entry import validate
from autograder.leaderboard.formatting import FILTERS
from autograder.leaderboard.ranking import Standings, smaller_is_better
from autograder.leaderboard.settings import Event, Olympics
from autograder.leaderboard.store import jobs
from autograder.leaderboard.store.store import NotAllowed, Store, Student
from autograder.leaderboard.store.tables import QUEUED, REFUSED, RUNNING
from autograder.leaderboard.web import api
from autograder.leaderboard.web.cache import PageCache
from autograder.leaderboard.web.middleware import HttpMiddleware, check_same_site
from autograder.leaderboard.web.pareto_chart import lay_out
from autograder.leaderboard.web.uploads import COOKIE, OVERHEAD, EntryId, Uploads
from tinybench.support.basics.numbers import number_of

HERE = Path(__file__).parent
PAGE = re.compile(r"[0-9]{1,6}")
ROWS = 100  # the number of rows on a page of the standings
Render = Callable[..., Response]  # takes a request, the name of a template, a status, and the template's variables


def create_app(store: Store, olympics: Olympics, prefix: str = "") -> ASGIApp:
    """Return the leaderboard's web application.

    `prefix` is the path under which a proxy serves the application, such as ``/user/ada/proxy/8001``. No prefix is
    needed if the proxy sends it in ``X-Forwarded-Prefix``, or in the header of jupyter-server-proxy.
    """
    app = FastAPI(
        title=olympics.title,
        description="Enter a model, follow its measurement, read the standings. Tokens come from the instructor.",
        docs_url=None,  # these two pages would load scripts from other hosts
        redoc_url=None,
    )
    board, uploads = Board(store, olympics), Uploads(store, olympics)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    page = _renderer(olympics)
    _add_errors(app, page)
    _add_standings(app, board, page)
    _add_entries(app, store, board, page)
    _add_forms(app, store, board, uploads, page)
    api.add_routes(app, store, board, uploads)
    app.add_middleware(GZipMiddleware, compresslevel=6)
    return HttpMiddleware(PageCache(app, board.state), olympics.limits.size + OVERHEAD, prefix)


def _templates(olympics: Olympics) -> Jinja2Templates:
    version = hashlib.sha256()
    for path in sorted((HERE / "static").iterdir()):
        version.update(path.read_bytes())

    def for_all(request: Request) -> dict[str, Any]:
        def url(name: str, **parts: Any) -> str:
            # Without scheme and host, because a proxy may use others.
            return request.url_for(name, **parts).path

        return {"url": url, "olympics": olympics, "static_version": version.hexdigest()[:12]}

    templates = Jinja2Templates(directory=HERE / "templates", context_processors=[for_all])
    templates.env.filters.update(FILTERS)
    templates.env.trim_blocks = templates.env.lstrip_blocks = True
    return templates


def _renderer(olympics: Olympics) -> Render:
    """Return a function that renders a template as a response."""
    templates = _templates(olympics)

    def page(request: Request, name: str, status: int = 200, **context: Any) -> Response:
        return templates.TemplateResponse(request, name, context, status_code=status)

    return page


def _is_api(request: Request) -> bool:
    return request.url.path.removeprefix(request.scope.get("root_path", "")).startswith("/api/")


def _add_errors(app: FastAPI, page: Render) -> None:
    """Add handlers that answer errors with a page, or with JSON if the request was to the API."""

    @app.exception_handler(RequestValidationError)
    async def no_such_address(request: Request, error: RequestValidationError) -> Response:
        if _is_api(request):
            return await request_validation_exception_handler(request, error)
        return page(request, "message.html", 404, detail="There is no such page.")

    @app.exception_handler(AnyHTTPException)
    async def explain(request: Request, error: AnyHTTPException) -> Response:
        if _is_api(request):
            return await http_exception_handler(request, error)
        detail = "There is no such page." if error.status_code == 404 and error.detail == "Not Found" else error.detail
        answer = page(request, "message.html", error.status_code, detail=detail)
        answer.headers.update(error.headers or {})
        return answer


def _add_standings(app: FastAPI, board: Board, page: Render) -> None:
    """Add the public pages: events, their standings, the Pareto chart and the rules."""

    @app.get("/", name="home", include_in_schema=False)
    def home(request: Request) -> Response:
        return page(request, "home.html", snapshot=board.snapshot())

    @app.get("/events/{event}", name="event", include_in_schema=False)
    def event_page(request: Request, event: str) -> Response:
        found = _event(board.olympics, event.removesuffix(".csv"))
        ranked = board.snapshot().standings[found.id]
        if event.endswith(".csv"):
            headers = {"content-disposition": f'attachment; filename="{found.id}.csv"'}
            return Response(export_csv(found, ranked), media_type="text/csv; charset=utf-8", headers=headers)
        context = _rows_of_page(found, ranked, request.query_params.get("page", "1"))
        return page(request, "event.html", event=found, ranked=ranked, **context)

    @app.get("/pareto", name="pareto", include_in_schema=False)
    def pareto(request: Request) -> Response:
        entries = board.snapshot().entries
        chart = lay_out(entries)
        ordered = sorted(chart.points, key=lambda point: (not point.best, point.entry.latency)) if chart else []
        return page(request, "pareto.html", chart=chart, rows=ordered[: 2 * ROWS], total=len(entries))

    @app.get("/rules", name="rules", include_in_schema=False)
    def rules(request: Request) -> Response:
        return page(request, "rules.html", allowed=validate.ALLOWED)


def _add_entries(app: FastAPI, store: Store, board: Board, page: Render) -> None:
    """Add the page of an entry, and a route for the part of it that changes while the entry is measured."""

    @app.get("/entries/{entry_id}", name="entry", include_in_schema=False)
    def entry_page(request: Request, entry_id: EntryId) -> Response:
        return page(request, "entry.html", **_entry_context(store, board, entry_id))

    @app.get("/entries/{entry_id}/now", name="entry_now", include_in_schema=False)
    def entry_now(request: Request, entry_id: EntryId) -> Response:
        """Return the changing part of an entry's page, or 204 if it is unchanged.

        While an entry waits or runs, its page requests this part every second.
        """
        context = _entry_context(store, board, entry_id)
        found = context["entry"]
        if request.query_params.get("seen") == f"{found.state}-{found.progress}-{context['ahead']}":
            return Response(status_code=204)
        return page(request, "_entry.html", **context)


def _add_forms(app: FastAPI, store: Store, board: Board, uploads: Uploads, page: Render) -> None:
    """Add the pages with forms: to sign in and out, and to enter a model."""
    olympics = board.olympics
    titles = {event.id: event.title for event in olympics.events}

    def entering(request: Request, student: Student, chosen: str, status: int = 200, error: str = "") -> Response:
        own, snapshot = store.entries_of(student), board.snapshot()
        found = [entry for row in own if (entry := snapshot.entry(row.id))]
        context: dict[str, Any] = {
            "student": student,
            "chosen": chosen if chosen in titles else olympics.events[0].id,
            "closed": board.state()[1],
            "left": {event: store.entries_left(student, event, olympics.quota) for event in titles},
            "own": own,
            "outcomes": {entry.id: snapshot.outcome_of(entry) for entry in found},
            "titles": titles,
        }
        return page(request, "enter.html", status, error=error, **context)

    @app.get("/enter", name="enter", include_in_schema=False)
    def enter_form(request: Request) -> Response:
        try:
            student = store.student(request.cookies.get(COOKIE, ""))
        except NotAllowed:
            return page(request, "sign_in.html")
        return entering(request, student, request.query_params.get("event", ""))

    @app.post("/enter", name="enter_file", include_in_schema=False)
    async def enter_file(request: Request) -> Response:
        check_same_site(request)
        student = await uploads.student(request)
        try:
            entry_id = await uploads.receive_form(request, student)
        except HTTPException as error:
            chosen = getattr(request.state, "event", "")
            answer = await run_in_threadpool(entering, request, student, chosen, error.status_code, error.detail)
            answer.headers.update(error.headers or {})
            return answer
        return _see_other(request, "entry", entry_id=entry_id)

    @app.post("/sign-in", name="sign_in", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        check_same_site(request)
        token = await uploads.token_of_form(request)
        try:
            await uploads.student(request, token)
        except HTTPException as error:
            return page(request, "sign_in.html", error.status_code, error=error.detail)
        answer = _see_other(request, "enter")
        secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").partition(",")[0].strip())
        options: dict[str, Any] = {"httponly": True, "samesite": "strict", "secure": secure}
        answer.set_cookie(COOKIE, token, max_age=43_200, path=_root(request), **options)
        return answer

    @app.post("/sign-out", name="sign_out", include_in_schema=False)
    async def sign_out(request: Request) -> Response:
        check_same_site(request)
        answer = _see_other(request, "home")
        answer.delete_cookie(COOKIE, path=_root(request))
        return answer


def _entry_context(store: Store, board: Board, entry_id: int) -> dict[str, Any]:
    """Return the template variables for an entry's page. Raise HTTPException if there is no such entry."""
    found = store.entry(entry_id)
    if found is None:
        raise HTTPException(404, f"There is no entry {entry_id}.")
    snapshot = board.snapshot()
    measured = snapshot.entry(entry_id)
    event = _event(board.olympics, found.event)
    return {
        "entry": found,
        "event": event,
        "measured": measured,
        "private": snapshot.private,
        "outcome": snapshot.outcome_of(measured) if measured else None,
        "history": store.history(entry_id),
        "ahead": jobs.ahead(store, entry_id) if found.state == QUEUED else 0,
        "waiting": found.state in (QUEUED, RUNNING),
        "refused": found.state == REFUSED,
    }


def _rows_of_page(event: Event, ranked: Standings, number: str) -> dict[str, Any]:
    """Return the rows on one page of the standings, and the scale on which their intervals are drawn."""
    current = max(1, int(number)) if PAGE.fullmatch(number) else 1
    pages = max(1, -(-len(ranked.places) // ROWS))
    if current > pages:
        raise HTTPException(404, f"These standings have {number_of(pages, 'page')}.")
    rows = ranked.places[(current - 1) * ROWS : current * ROWS]
    ratio = smaller_is_better(event)
    high = max((place.score.upper for place in rows), default=1.0)
    low = 0.0 if ratio else min((place.score.lower for place in rows), default=0.0)
    return {"rows": rows, "current": current, "pages": pages, "ratio": ratio, "low": low, "high": high}


def _root(request: Request) -> str:
    """Return the path of the home page.

    The cookie is limited to this path, so that other applications do not get it.
    """
    return request.url_for("home").path


def _see_other(request: Request, name: str, **parts: Any) -> RedirectResponse:
    """Return a redirect to a relative address, because only some proxies add their prefix to an absolute one."""
    target = request.url_for(name, **parts).path
    address = posixpath.relpath(target, posixpath.dirname(request.url.path)) + "/" * target.endswith("/")
    return RedirectResponse(address, status_code=303)


def _event(olympics: Olympics, name: str) -> Any:
    try:
        return olympics.event(name)
    except ValueError as error:
        raise HTTPException(404, f"{error}.".capitalize()) from None
