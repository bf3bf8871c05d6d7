"""The server without a browser: who gets in, how much is read, what pages say, and that names stay data."""

from __future__ import annotations

import csv
import io
import random
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from autograder import time_limits
from autograder.leaderboard.settings import Olympics, Quota
from autograder.leaderboard.store import jobs
from autograder.leaderboard.store.store import Store
from autograder.leaderboard.web import app, connection_timeouts, uploads
from autograder.leaderboard.web.app import create_app
from autograder.leaderboard.web.cache import CHECK_EVERY
from tests.leaderboard.boards import dense, fill, made_up_scores, serving, small_olympics

API = "/api/events/latency/entries"
SAME_SITE = {"Sec-Fetch-Site": "same-origin"}  # as browsers say


@contextmanager
def client_of(store: Store, olympics: Olympics, prefix: str = "") -> Iterator[httpx.Client]:
    with (
        serving(create_app(store, olympics, prefix)) as address,
        httpx.Client(
            base_url=address, follow_redirects=True, timeout=time_limits.wall(30), headers=SAME_SITE
        ) as client,
    ):
        yield client


@pytest.fixture
def client(light_store: Store) -> Iterator[httpx.Client]:
    with client_of(light_store, small_olympics()) as client:
        yield client


@pytest.fixture
def token(light_store: Store) -> str:
    return light_store.add_token("Ada", 1)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def measure_all(store: Store) -> None:
    """Give every waiting entry made-up scores."""
    while job := jobs.claim(store, "w"):
        jobs.finish(store, job, made_up_scores(random.Random(3)), {})


def test_pages_of_an_empty_board(client: httpx.Client) -> None:
    for path in ("/", "/events/latency", "/events/all-around", "/pareto", "/rules", "/enter", "/events/latency.csv"):
        assert client.get(path).status_code == 200, path


def test_enter_by_api_and_follow(client: httpx.Client, light_store: Store, token: str) -> None:
    answer = client.post(API, params={"name": "mine.onnx"}, content=dense(), headers=bearer(token))
    assert answer.status_code == 201
    entry = answer.json()
    assert (entry["state"], entry["student"], entry["name"]) == ("queued", "Ada", "mine.onnx")
    assert "It is next" in client.get(entry["url"]).text
    measure_all(light_store)
    assert client.get(f"/api/entries/{entry['id']}").json()["state"] == "measured"
    assert "measured" in client.get(entry["url"]).text


def test_an_invalid_file_becomes_a_refused_entry(client: httpx.Client, token: str) -> None:
    entry = client.post(API, content=b"junk", headers=bearer(token)).json()
    assert entry["state"] == "refused"
    assert "not an .onnx file" in entry["reason"]
    assert "not an .onnx file" in client.get(entry["url"]).text


def test_progress_is_sent_only_when_it_changed(client: httpx.Client, light_store: Store, token: str) -> None:
    entry = client.post(API, content=dense(), headers=bearer(token)).json()
    page = client.get(entry["url"]).text
    now = re.search(r'hx-get="([^"]+)"', page)
    assert now
    assert client.get(now[1]).status_code == 204
    job = jobs.claim(light_store, "w")
    assert job
    jobs.renew(light_store, job, "timing, process 1 of 6")
    changed = client.get(now[1])
    assert "timing, process 1 of 6" in changed.text
    assert "<html" not in changed.text


@pytest.mark.parametrize("wrong", ["", "forged", "' OR ''='", "a" * 5000])
def test_without_a_good_token_nothing_enters(client: httpx.Client, light_store: Store, token: str, wrong: str) -> None:
    answer = client.post(API, content=dense(), headers=bearer(wrong))
    assert answer.status_code == 401
    assert "token" in answer.json()["detail"]
    assert light_store.version() == 0


def test_many_wrong_tokens_are_slowed_and_right_ones_not(client: httpx.Client, token: str) -> None:
    answers = [client.post(API, content=b"x", headers=bearer("wrong")).status_code for _ in range(40)]
    assert answers[0] == 401
    assert answers[-1] == 429
    assert client.post(API, content=dense(), headers=bearer(token)).status_code == 201


def test_many_uploads_are_slowed(client: httpx.Client, token: str) -> None:
    answers = [client.post(API, content=dense(1, seed), headers=bearer(token)) for seed in range(25)]
    assert answers[0].status_code == 201
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) > 0


def test_quota_and_duplicates_are_said(light_store: Store, token: str) -> None:
    with client_of(light_store, small_olympics(quota=Quota(per_day=1))) as client:
        assert client.post(API, content=dense(), headers=bearer(token)).status_code == 201
        again = client.post(API, content=dense(), headers=bearer(token))
        more = client.post(API, content=dense(1, 5), headers=bearer(token))
    assert (again.status_code, "entry 1 already" in again.json()["detail"]) == (409, True)
    assert (more.status_code, "tomorrow" in more.json()["detail"]) == (429, True)


def test_a_second_entry_while_one_waits_is_told_so(client: httpx.Client, token: str) -> None:
    client.post(API, content=dense(), headers=bearer(token))
    answer = client.post(API, content=dense(1, 5), headers=bearer(token))
    assert (answer.status_code, "entry 1 to this event still waits" in answer.json()["detail"]) == (409, True)


@contextmanager
def half_sent(
    client: httpx.Client, path: str, *headers: str, body: bytes = b"", length: int = 50_000
) -> Iterator[socket.socket]:
    """Begin a request and keep the line open."""
    own = ("Host: x", "Connection: close", "Sec-Fetch-Site: none", f"Content-Length: {length}")
    head = [f"POST {path} HTTP/1.1", *own, *headers]
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=time_limits.wall(20)) as line:
        line.sendall("\r\n".join([*head, "", ""]).encode() + body)
        yield line


def test_slow_uploads_hold_up_nobody_else(client: httpx.Client, light_store: Store, token: str) -> None:
    with ExitStack() as stack:
        for number in range(2 * uploads.AT_ONCE):
            slow = light_store.add_token(f"slow {number}", 1)
            stack.enter_context(half_sent(client, API, f"Authorization: Bearer {slow}", body=b"x"))
        second = 0
        while second != 429:  # as soon as the server has seen the first one's upload
            second = client.post(API, content=b"y", headers=bearer(slow)).status_code
            assert second in (201, 429)
        start = time.monotonic()
        assert client.post(API, content=dense(), headers=bearer(token)).status_code == 201
        assert time.monotonic() - start < min(time_limits.wall(5), uploads.UPLOAD_SECONDS / 2)


def test_an_upload_that_never_ends_is_ended(client: httpx.Client, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "UPLOAD_SECONDS", 0.3)
    with half_sent(client, API, f"Authorization: Bearer {token}", body=b"x") as line:
        assert line.recv(100).startswith(b"HTTP/1.1 408 ")
    monkeypatch.undo()  # a whole upload may take its time
    assert client.post(API, content=dense(), headers=bearer(token)).status_code == 201


def test_the_deadline_goes_by_when_an_upload_begins(light_store: Store, token: str) -> None:
    now = time.time()
    light_store.clock = lambda: now
    data = dense()
    with (
        client_of(light_store, small_olympics(deadline=datetime.fromtimestamp(now + 100, UTC))) as client,
        half_sent(client, API, f"Authorization: Bearer {token}", body=data[:100], length=len(data)) as line,
    ):
        time.sleep(time_limits.wall(1))
        now += 200
        line.sendall(data[100:])
        assert line.recv(100).startswith(b"HTTP/1.1 201 ")


def test_who_signs_in_sends_little(client: httpx.Client) -> None:
    kind = "Content-Type: application/x-www-form-urlencoded"
    with half_sent(client, "/sign-in", kind, body=b"token=", length=2**20) as line:
        assert line.recv(100).startswith(b"HTTP/1.1 413 ")
    answer = client.post("/sign-in", content=iter([b"token=x"]), headers=dict([kind.split(": ")]))
    assert answer.status_code == 413


def test_connections_that_say_nothing_are_closed(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    patience = time_limits.wall(0.5)
    monkeypatch.setattr(connection_timeouts, "HEAD_SECONDS", patience)
    address = (client.base_url.host, client.base_url.port)
    whole, half = b"HEAD /api/events HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX: "
    for said in (b"", half, whole + half):
        with socket.create_connection(address, timeout=20 * patience) as line:
            line.sendall(said)
            while line.recv(2**16):
                pass
    with socket.create_connection(address, timeout=20 * patience) as line:  # one that goes on speaking stays
        until = time.monotonic() + 2 * patience
        while time.monotonic() < until:
            line.sendall(whole)
            assert line.recv(2**16).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.1)


def test_an_unknown_event(client: httpx.Client, token: str) -> None:
    answer = client.post("/api/events/marathon/entries", content=dense(), headers=bearer(token))
    assert answer.status_code == 404
    assert "there are latency, memory" in answer.json()["detail"]


def test_an_error_of_ours_is_no_missing_page(client: httpx.Client, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "check_in_process", Mock(side_effect=ValueError("ours")))
    assert client.post(API, content=dense(), headers=bearer(token)).status_code == 500


def test_a_gigabyte_is_refused_while_it_is_read(client: httpx.Client, light_store: Store, token: str) -> None:
    sent = 0

    def gigabyte() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1024):
            sent += 2**20
            yield bytes(2**20)

    answer = client.post(API, content=gigabyte(), headers=bearer(token))
    assert answer.status_code == 413
    assert "larger than 16 MB" in answer.json()["detail"]
    assert light_store.version() == 0


def test_a_declared_gigabyte_is_refused_unread(client: httpx.Client, token: str) -> None:
    address = (client.base_url.host, client.base_url.port)
    with socket.create_connection(address) as line:  # no client library would lie about a length
        head = f"POST {API} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {2**30}\r\n\r\n"
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 413 ")


def sign_in(client: httpx.Client, token: str) -> None:
    assert client.post("/sign-in", data={"token": token}).status_code == 200


def test_enter_by_form(client: httpx.Client, token: str) -> None:
    assert "token" in client.get("/enter").text
    sign_in(client, token)
    assert "You are <strong>Ada</strong>" in client.get("/enter").text
    answer = client.post("/enter", data={"event": "memory"}, files={"file": ("m.onnx", dense())})
    assert answer.url.path == "/entries/1"
    client.post("/sign-out")
    assert "You are" not in client.get("/enter").text


@pytest.mark.parametrize(
    ("data", "files", "status", "words"),
    [
        ({"event": "memory"}, {}, 400, "no file was chosen"),
        ({"event": "none"}, {"file": ("m.onnx", b"x")}, 404, "there is no event"),
        ({"event": "memory"}, {"file": ("m.onnx", bytes(17 * 2**20))}, 413, "larger than 16 MB"),
    ],
)
def test_forms_filled_in_wrongly(
    client: httpx.Client, token: str, data: dict[str, str], files: dict[str, Any], status: int, words: str
) -> None:
    sign_in(client, token)
    answer = client.post("/enter", data=data, files=files)
    assert answer.status_code == status
    assert words in answer.text


def test_a_form_that_fails_keeps_the_event(client: httpx.Client, token: str) -> None:
    sign_in(client, token)
    chosen = re.compile(r'value="(\S+)" required checked')
    for status in (200, 409):
        answer = client.post("/enter", data={"event": "accuracy"}, files={"file": ("m.onnx", dense())})
        assert answer.status_code == status
    assert chosen.findall(answer.text) == ["accuracy"]
    assert chosen.findall(client.post("/enter", data={"event": "accuracy"}).text) == ["accuracy"]
    assert chosen.findall(client.get("/enter?event=memory").text) == ["memory"]
    assert chosen.findall(client.get("/enter?event=none").text) == ["latency"]


def test_students_see_their_own_entries_and_what_is_left(light_store: Store, token: str) -> None:
    with client_of(light_store, small_olympics(quota=Quota(per_day=3))) as client:
        sign_in(client, token)
        assert "Your entries" not in client.get("/enter").text
        client.post("/enter", data={"event": "memory"}, files={"file": ("mine.onnx", dense())})
        text = client.get("/enter").text
        assert re.findall(r"(\d) of 3 entries left today", text) == ["3", "2", "3", "3"]
        assert "mine.onnx" in text.partition("Your entries")[2]
        sign_in(client, light_store.add_token("Ben", 1))
        assert "mine.onnx" not in client.get("/enter").text


def test_the_rules_say_what_refuses(client: httpx.Client) -> None:
    text = re.sub(r"<[^>]+>", "", client.get("/rules").text)
    words = (
        "load_digits", "UTC; an upload that has begun by then counts", "At most 1000 entries a day", "entered to an event once",
        "One entry of yours to an event waits", "first call: 5 s", "0.25 s", "1024 MB", "± 100000 %",
    )  # fmt: skip
    assert [word for word in words if word not in text] == []


def test_a_shared_place_says_when_each_entered(client: httpx.Client, light_store: Store) -> None:
    for name in ("Ada", "Ben"):
        address = API.replace("latency", "all-around")
        client.post(address, content=dense(1, ord(name[0])), headers=bearer(light_store.add_token(name, 1)))
    measure_all(light_store)
    time.sleep(CHECK_EVERY)
    text = client.get("/events/all-around").text
    assert text.count("<small>entered ") == text.count("1<span aria-hidden") == 2
    assert "the order is that of time, not of score" in text


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(client: httpx.Client, token: str) -> None:
    answer = client.post("/sign-in", data={"token": token}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/;" in cookie
    assert "secure" not in cookie
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/user/ada/proxy/8017"}
    answer = client.post("/sign-in", data={"token": token}, headers=headers, follow_redirects=False)
    assert "path=/user/ada/proxy/8017/;" in answer.headers["set-cookie"].lower()
    assert "secure" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://{host}"}, 200),
        ({"Origin": "https://hub.example", "X-Forwarded-Host": "hub.example"}, 200),
    ],
)
def test_forms_come_from_the_pages_themselves(
    client: httpx.Client, token: str, headers: dict[str, str], status: int
) -> None:
    del client.headers["Sec-Fetch-Site"]
    host = f"{client.base_url.host}:{client.base_url.port}"
    headers = {name: value.replace("{host}", host) for name, value in headers.items()}
    assert client.post("/sign-in", data={"token": token}, headers=headers).status_code == status
    assert client.post("/sign-out", headers=headers).status_code == status


def test_the_cookie_enters_nothing_by_the_api(client: httpx.Client, token: str) -> None:
    sign_in(client, token)
    assert client.post(API, content=dense()).status_code == 401


@pytest.mark.parametrize("number", ["0", "-1", "x", str(2**31), str(10**30), "9" * 5000])
def test_numbers_that_no_entry_has(client: httpx.Client, number: str) -> None:
    for path in (f"/entries/{number}", f"/entries/{number}/now"):
        answer = client.get(path)
        assert (answer.status_code, "<html" in answer.text) == (404, True)
    assert client.get(f"/api/entries/{number}").status_code == 422
    assert client.get(f"/events/latency?page={number}").status_code in (200, 404)


def test_names_and_files_cannot_inject_html(client: httpx.Client, light_store: Store) -> None:
    evil = '<img src=x onerror="alert(1)">'
    token = light_store.add_token(evil, 1)
    client.post(API, params={"name": evil}, content=dense(), headers=bearer(token))
    client.post(API, params={"name": evil}, content=b"junk" + evil.encode(), headers=bearer(token))
    measure_all(light_store)
    for path in ("/", "/events/latency", "/pareto", "/entries/1", "/entries/2", "/nothing/" + evil, "/events/" + evil):
        text = client.get(path).text
        assert "<img" not in text, path
    assert "default-src 'none'" in client.get("/").headers["content-security-policy"]


def test_a_name_is_no_formula_in_the_export(client: httpx.Client, light_store: Store) -> None:
    token = light_store.add_token("=HYPERLINK(1)", 1)
    client.post(API, content=dense(), headers=bearer(token))
    measure_all(light_store)
    rows = list(csv.DictReader(io.StringIO(client.get("/events/latency.csv").text)))
    assert [row["student"] for row in rows] == ["'=HYPERLINK(1)"]


def test_private_accuracy_stays_hidden_until_the_deadline(light_store: Store) -> None:
    early = small_olympics()
    fill(light_store, early, 8, 4)
    row = next(row for row in light_store.measured() if row.event == "accuracy")
    right, total = row.scores["accuracy"]["private"]
    hidden = f"{100 * right / total:.1f}\N{NO-BREAK SPACE}%"
    with client_of(light_store, early) as before:
        assert "shown after the deadline" in before.get(f"/entries/{row.id}").text
        assert hidden not in before.get(f"/entries/{row.id}").text
        for path in (f"/api/entries/{row.id}", "/api/events/accuracy", "/events/accuracy.csv"):
            assert str(right / total) not in before.get(path).text
    token = light_store.add_token("Late", 1)
    with client_of(light_store, small_olympics(deadline=datetime.now(UTC) - timedelta(hours=1))) as after:
        assert hidden in after.get(f"/entries/{row.id}").text
        assert "these standings are final" in after.get("/events/accuracy").text
        late = after.post(API, content=dense(1, 77), headers=bearer(token))
    assert (late.status_code, "deadline" in late.json()["detail"]) == (403, True)


def test_a_deadline_passes_while_the_server_runs(light_store: Store, token: str) -> None:
    now = time.time()
    light_store.clock = lambda: now
    olympics = small_olympics(deadline=datetime.fromtimestamp(now + 100, UTC))
    fill(light_store, olympics, 8, 4)
    with client_of(light_store, olympics) as client:
        before = client.get("/events/accuracy").text
        assert client.post(API, content=dense(1, 70), headers=bearer(token)).status_code == 201
        measure_all(light_store)
        now += 200
        time.sleep(2 * CHECK_EVERY)
        after = client.get("/events/accuracy").text
        late = client.post(API, content=dense(1, 71), headers=bearer(token))
        assert "these standings are final" not in before
        assert "these standings are final" in after
        assert all(event["final"] for event in client.get("/api/events").json())
        assert (late.status_code, "deadline" in late.json()["detail"]) == (403, True)
        rows = list(csv.DictReader(io.StringIO(client.get("/events/accuracy.csv").text)))
        assert {row["digits"] for row in rows} == {"private"}


LINK = re.compile(r'(?:href|src|action|hx-get)="([^"]*)"')


@pytest.mark.parametrize("how", ["option", "x-forwarded-prefix", "x-forwarded-context"])
def test_every_link_stays_behind_the_prefix(light_store: Store, token: str, how: str) -> None:
    prefix = "/user/ada/proxy/8017"
    fill(light_store, small_olympics(), 4, 2)
    headers = {} if how == "option" else {how: prefix}
    with client_of(light_store, small_olympics(), prefix if how == "option" else "") as client:
        client.post(API, content=dense(9, 9), headers={**bearer(token), **headers})
        for path in ("/", "/events/latency", "/pareto", "/rules", "/enter", "/entries/1", "/entries/5"):
            answer = client.get(path, headers=headers)
            assert answer.status_code == 200
            links = [link for link in LINK.findall(answer.text) if not link.startswith(("#", "data:"))]
            assert links
            assert all(link.startswith(prefix + "/") for link in links), (path, links)
        style = client.get("/static/style.css", headers=headers)
    assert style.headers["content-type"].startswith("text/css")


def test_a_forged_prefix_is_no_way_to_inject(client: httpx.Client) -> None:
    for forged in ('/"><script>', "//evil.example", "javascript:alert(1)", "https://evil.example/"):
        text = client.get("/", headers={"x-forwarded-prefix": forged}).text
        assert "evil.example" not in text
        assert "<script>" not in text


def test_unchanged_pages_are_not_sent_again(client: httpx.Client, light_store: Store) -> None:
    first = client.get("/events/latency")
    same = client.get("/events/latency", headers={"If-None-Match": first.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    fill(light_store, small_olympics(), 8, 4)
    time.sleep(CHECK_EVERY)
    changed = client.get("/events/latency", headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    assert changed.headers["content-encoding"] == "gzip"
    assert client.head("/events/latency").content == b""


def test_pages_of_the_standings(client: httpx.Client, light_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "ROWS", 5)
    fill(light_store, small_olympics(), 40, 40)
    time.sleep(CHECK_EVERY)
    places = len(client.get("/api/events/all-around").json())
    assert 5 < places <= 10
    assert "Page 1 of 2" in client.get("/events/all-around").text
    last = client.get("/events/all-around?page=2").text
    assert last.count('<td class="who">') >= places - 5
    assert client.get("/events/all-around?page=99").status_code == 404
    assert client.get("/events/all-around?page=x").status_code == 200


def test_the_description_names_every_call(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    calls = ("events", "events/{event}", "entries/{entry_id}", "events/{event}/entries")
    assert set(paths) == {f"/api/{call}" for call in calls}


@pytest.mark.parametrize("path", ["/sign-in", "/events/latency/entries", API])
def test_a_client_that_leaves_in_the_middle_of_a_body_leaves_no_trace(
    path: str, client: httpx.Client, light_store: Store, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = client.base_url.host, client.base_url.port
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 2000\r\n"
    head += f"Authorization: Bearer {token}\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\ntoken="
    with socket.create_connection((host, port)) as connection:
        connection.sendall(head.encode())
    for _ in range(20):
        assert client.get("/").status_code == 200  # the server goes on, and has had time to notice
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
