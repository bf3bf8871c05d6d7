"""The API. It serves the content of the pages as JSON, and is described in ``openapi.json``."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, Field

from autograder.leaderboard.board import Board
from autograder.leaderboard.ranking import Entry, Place
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.web.uploads import EntryId, Uploads

FILE = {
    "requestBody": {
        "required": True,
        "description": "The .onnx file itself.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
    "security": [{"token": []}],
}


class EventInfo(BaseModel):
    """An event and its rules."""

    id: str
    title: str
    goal: str
    rules: str
    deadline: str
    final: bool = Field(description="Whether the deadline has passed: then the private digits count.")


class Interval(BaseModel, from_attributes=True):
    """A number with its 95 % interval."""

    value: float
    lower: float
    upper: float


class Measured(BaseModel):
    """The referee's measurements of an entry."""

    latency: Interval = Field(description="Of the baseline's.")
    memory: Interval = Field(description="Of the baseline's.")
    size: int = Field(description="Bytes.")
    accuracy: Interval


class Line(BaseModel):
    """A place in the standings."""

    place: int
    shared: bool
    student: str
    entry: int
    name: str
    score: Interval
    measured: Measured


class EntryInfo(BaseModel):
    """An entry, its state and its result."""

    id: int
    event: str
    student: str
    name: str
    state: str = Field(description="queued, running, measured or refused")
    progress: str
    reason: str = Field(description="Why it was refused; empty otherwise.")
    place: int | None
    outcome: str = Field(description="The place, or why there is none, as a sentence; empty until it is measured.")
    measured: Measured | None
    url: str


def _measured(entry: Entry, private: bool) -> dict[str, Any]:
    accuracy = entry.accuracy(private)
    return {"latency": entry.latency, "memory": entry.memory, "size": entry.size, "accuracy": accuracy}


def add_routes(app: FastAPI, store: Store, board: Board, uploads: Uploads) -> None:
    """Add the routes below ``/api/`` to the application."""
    olympics = board.olympics

    @app.get("/api/events", name="api_events", summary="The events and their rules")
    def events() -> list[EventInfo]:
        final = board.state()[1]
        shared: dict[str, Any] = {"deadline": olympics.deadline.isoformat(), "final": final}
        return [
            EventInfo(id=event.id, title=event.title, goal=event.goal, rules=event.rules, **shared)
            for event in olympics.events
        ]

    @app.get("/api/events/{event}", name="api_standings", summary="An event's standings", response_model=list[Line])
    def standings(event: str) -> list[dict[str, Any]]:
        snapshot = board.snapshot()
        if event not in snapshot.standings:
            raise HTTPException(404, f"there is no event {event!r}; there are {', '.join(snapshot.standings)}")

        def line(place: Place) -> dict[str, Any]:
            entry = place.entry
            whose = {"student": entry.student, "entry": entry.id, "name": entry.name}
            return {**vars(place), **whose, "measured": _measured(entry, snapshot.private)}

        return [line(place) for place in snapshot.standings[event].places]

    def describe(request: Request, entry_id: int) -> dict[str, Any]:
        row = store.entry(entry_id)
        if row is None:
            raise HTTPException(404, f"there is no entry {entry_id}")
        snapshot = board.snapshot()
        entry, place = snapshot.entry(entry_id), snapshot.place_of(entry_id)
        reasons = [line.detail for line in store.history(entry_id) if line.what == "refused"]
        return {
            **row._mapping,
            "reason": reasons[-1] if reasons else "",
            "place": place.place if place else None,
            "outcome": snapshot.outcome_of(entry).sentence if entry else "",
            "measured": _measured(entry, snapshot.private) if entry else None,
            "url": request.url_for("entry", entry_id=entry_id).path,
        }

    @app.get("/api/entries/{entry_id}", name="api_entry", summary="An entry and its fate", response_model=EntryInfo)
    def entry_info(request: Request, entry_id: EntryId) -> dict[str, Any]:
        return describe(request, entry_id)

    @app.post(
        "/api/events/{event}/entries",
        name="api_enter",
        summary="Enter a model: the file is the body, the token is the bearer",
        status_code=201,
        response_model=EntryInfo,
        openapi_extra=FILE,
        responses={
            401: {"description": "The token is missing, forged, replaced or expired."},
            409: {"description": "This very file was entered before."},
            413: {"description": "The file is too large."},
            429: {"description": "The quota of the day is used up, or there were too many tries in a minute."},
        },
    )
    async def enter(request: Request, event: str, name: str = "model.onnx") -> dict[str, Any]:
        # The cookie is never accepted here, because a browser also sends it with requests that other sites cause.
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        student = await uploads.student(request, bearer.strip() if scheme.lower() == "bearer" else "")
        entry_id = await uploads.receive_body(request, student, event, name)
        return describe(request, entry_id)
