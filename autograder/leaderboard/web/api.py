"""The API: the same as the pages, as JSON, described in ``openapi.json``."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, Field

from autograder.leaderboard.board import Board
from autograder.leaderboard.ranking import Entry, Score
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.web.uploads import Door, EntryId

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


class Interval(BaseModel):
    """A number with its 95 % interval."""

    value: float
    lower: float
    upper: float


class Measured(BaseModel):
    """What the referee measured."""

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
    """An entry and what became of it."""

    id: int
    event: str
    student: str
    name: str
    state: str = Field(description="queued, running, measured or refused")
    progress: str
    reason: str = Field(description="Why it was refused; empty otherwise.")
    place: int | None
    measured: Measured | None
    url: str


def _interval(score: Score) -> Interval:
    return Interval(value=score.value, lower=score.lower, upper=score.upper)


def _measured(entry: Entry, private: bool) -> Measured:
    return Measured(
        latency=_interval(entry.latency),
        memory=_interval(entry.memory),
        size=entry.size,
        accuracy=_interval(entry.accuracy(private)),
    )


def add_routes(app: FastAPI, store: Store, board: Board, door: Door) -> None:
    """Add the API to the server."""
    olympics = board.olympics

    @app.get("/api/events", name="api_events", summary="The events and their rules")
    def events() -> list[EventInfo]:
        final = board.state()[1]
        shared: dict[str, Any] = {"deadline": olympics.deadline.isoformat(), "final": final}
        return [
            EventInfo(id=event.id, title=event.title, goal=event.goal, rules=event.rules, **shared)
            for event in olympics.events
        ]

    @app.get("/api/events/{event}", name="api_standings", summary="The standings of an event")
    def standings(event: str) -> list[Line]:
        snapshot = board.snapshot()
        if event not in snapshot.standings:
            raise HTTPException(404, f"there is no event {event!r}; there are {', '.join(snapshot.standings)}")
        return [
            Line(
                place=place.place,
                shared=place.shared,
                student=place.entry.student,
                entry=place.entry.id,
                name=place.entry.name,
                score=_interval(place.score),
                measured=_measured(place.entry, snapshot.private),
            )
            for place in snapshot.standings[event].places
        ]

    def describe(request: Request, entry_id: int) -> EntryInfo:
        row = store.entry(entry_id)
        if row is None:
            raise HTTPException(404, f"there is no entry {entry_id}")
        snapshot = board.snapshot()
        entry = next((each for each in snapshot.entries if each.id == entry_id), None)
        place = snapshot.place_of(entry_id)
        reasons = [line.detail for line in store.history(entry_id) if line.what == "refused"]
        return EntryInfo(
            id=row.id,
            event=row.event,
            student=row.student,
            name=row.name,
            state=row.state,
            progress=row.progress,
            reason=reasons[-1] if reasons else "",
            place=place.place if place else None,
            measured=_measured(entry, snapshot.private) if entry else None,
            url=request.url_for("entry", entry_id=entry_id).path,
        )

    @app.get("/api/entries/{entry_id}", name="api_entry", summary="An entry and what became of it")
    def entry_info(request: Request, entry_id: EntryId) -> EntryInfo:
        return describe(request, entry_id)

    @app.post(
        "/api/events/{event}/entries",
        name="api_enter",
        summary="Enter a model: the file is the body, the token is the bearer",
        status_code=201,
        openapi_extra=FILE,
        responses={
            401: {"description": "The token is missing, forged, replaced or expired."},
            409: {"description": "This very file was entered before."},
            413: {"description": "The file is too large."},
            429: {"description": "The quota of the day is used up, or there were too many tries in a minute."},
        },
    )
    async def enter(request: Request, event: str, name: str = "model.onnx") -> EntryInfo:
        # Never by the cookie: a browser sends that along for whoever asks it to.
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        student = await door.student(request, bearer.strip() if scheme.lower() == "bearer" else "")
        entry_id = await door.take_body(request, student, event, name)
        return describe(request, entry_id)
