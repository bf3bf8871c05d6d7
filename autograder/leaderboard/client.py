"""A client of the leaderboard for students, which enters a model and follows the progress of the entry."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from autograder.leaderboard.formatting import interval_of, percent, quantity, times

FINAL = ("measured", "refused")


def enter(server: str, token: str, event: str, name: str, data: bytes) -> dict[str, Any]:
    """Enter a model, and return the server's description of the entry. If this fails, raise ValueError."""
    if not server.startswith(("http://", "https://")):
        raise ValueError(f"{server!r} is no address of a leaderboard; write http://host:port")
    if not re.fullmatch(r"[\w-]*", token, re.ASCII):
        raise ValueError("this is no token: it has characters that none has; copy it again")
    headers = {"Authorization": f"Bearer {token}".strip(), "Content-Type": "application/octet-stream"}
    path = f"/api/events/{quote(event, safe='')}/entries"
    entry: dict[str, Any] = _call(server, path, "POST", params={"name": name}, content=data, headers=headers)
    return entry


def page(server: str, entry: dict[str, Any]) -> str:
    """Return the address of an entry's page.

    If a proxy serves the pages, the entry's path already has the proxy's prefix.
    """
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.netloc}{entry['url']}"


def follow(server: str, entry: dict[str, Any], report: Callable[[str], object], pause: float = 1.0) -> dict[str, Any]:
    """Wait until an entry has been measured or refused, report each new step, and return the entry."""
    said = ""
    while entry["state"] not in FINAL:
        step = entry["progress"] or entry["state"]
        if step != said:
            report(step)
            said = step
        time.sleep(pause)
        entry = _call(server, f"/api/entries/{entry['id']}")
    return entry


def standings(server: str, event: str) -> list[dict[str, Any]]:
    """Return the places of an event, best first."""
    places: list[dict[str, Any]] = _call(server, f"/api/events/{quote(event, safe='')}")
    return places


def in_words(measured: dict[str, Any]) -> str:
    """Return the measurements of an entry as one line of text."""
    latency, memory, accuracy = (measured[name] for name in ("latency", "memory", "accuracy"))
    return (
        f"latency {times(latency['value'])} ({interval_of(latency, times)}), "
        f"memory {times(memory['value'])} ({interval_of(memory, times)}), "
        f"accuracy {percent(accuracy['value'])} ({interval_of(accuracy, percent)}), "
        f"size {quantity(measured['size'], 'B')}"
    )


def _call(server: str, path: str, method: str = "GET", **request: Any) -> Any:
    try:
        answer = httpx.request(method, server.rstrip("/") + path, timeout=120, follow_redirects=True, **request)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ValueError(
            f"no leaderboard answers at {server} ({error}); name its address with --url, or start it with "
            "`autograder leaderboard serve`"
        ) from None
    try:
        content = answer.json()
        if answer.is_success:
            return content
        reason = str(content["detail"])
    except (ValueError, KeyError, TypeError):
        reason = f"{answer.status_code} {answer.reason_phrase}"
    raise ValueError(f"what answers at {server} is no leaderboard" if answer.is_success else reason)
