"""The review server before strangers: its description holds, slow and huge requests end, and no edit is lost."""

import contextlib
import importlib.util
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from requests_outside import PORT, TOKEN, Line, request, statuses
from schema import Schemas

from autonovel import open_run
from autonovel.review import app as review_app
from autonovel.review.patience import ImpatientProtocol, server_options
from autonovel.review.view import View
from test_review import BEARER, client_of

API = json.loads((resources.files("autonovel.review") / "openapi.json").read_text(encoding="utf-8"))
SCHEMAS = Schemas(API)
GETS = [path for path, item in API["paths"].items() if "get" in item]


@pytest.fixture
def client(finished_with_files: Path) -> httpx.Client:
    made = client_of(finished_with_files)
    made.headers.update(BEARER)
    return made


def test_every_address_is_described_and_nothing_else(finished: Path) -> None:
    view = View(open_run(finished))
    guard: Any = review_app.make_app(view, PORT, TOKEN)
    served = {(route.path.replace(view.key, "{key}"), method) for route in guard.app.routes for method in route.methods}
    described = {(path, method.upper()) for path, item in API["paths"].items() for method in item}
    assert served - {(path, "HEAD") for path, _ in served} == described


def check(answer: httpx.Response, path: str, method: str = "get") -> None:
    """Hold an answer against the description: its status, its kind, what it says."""
    described = API["paths"][path][method]["responses"]
    assert str(answer.status_code) in described, (answer.status_code, answer.text[:300])
    content = described[str(answer.status_code)].get("content", {})
    kind = answer.headers.get("content-type", "").split(";")[0]
    assert not content or kind in content
    if kind == "application/json":
        assert not (wrong := SCHEMAS.misfit(answer.json(), content[kind]["schema"])), wrong
    assert answer.status_code < 500


@pytest.mark.parametrize("path", GETS)
def test_what_is_read_is_as_described(path: str, client: httpx.Client) -> None:
    key = client.get("/api/state").json()["key"]
    parameters = API["paths"][path]["get"].get("parameters", [])
    values = {one["name"]: SCHEMAS.values(one["schema"]) for one in parameters}
    values |= {"key": st.just(key) | st.text(max_size=4)} if "key" in values else {}

    @settings(max_examples=12)
    @given(st.fixed_dictionaries(values))
    def one(chosen: dict[str, Any]) -> None:
        words = {name: ",".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in chosen.items()}
        address = re.sub(r"{(\w+)}", lambda found: quote(words[found[1]], safe=""), path)
        query = {one["name"]: words[one["name"]] for one in parameters if one["in"] == "query" and one["name"] in words}
        answer = client.get(address, params=query)
        if answer.status_code not in (404, 405):  # a value may spell another address
            check(answer, path)

    one()


def test_what_is_written_is_as_described(client: httpx.Client, finished_with_files: Path) -> None:
    wishes = SCHEMAS.values({"$ref": "#/components/schemas/Wish"})
    leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
    anything = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=4), inner))
    made = 0

    @settings(max_examples=60)
    @given(wishes, st.booleans(), anything)
    def one(wish: dict[str, Any], right: bool, other: Any) -> None:
        nonlocal made
        if right:
            wish = wish | {"based_on": client.get("/api/state").json()["edits"]}
        answer = client.post("/api/edit", json=wish)
        check(answer, "/api/edit", "post")
        made += answer.status_code == 200
        check(client.post("/api/edit", json=other), "/api/edit", "post")
        journal = finished_with_files / "edits.jsonl"
        assert made == (len(journal.read_text().splitlines()) if journal.exists() else 0)

    one()
    assert made, "not one edit was made, so nothing was tried"


@contextlib.contextmanager
def serving(folder: Path, patience: float, **options: Any) -> Iterator[int]:
    """Serve the review of ``folder`` from a thread, with less patience than usual, and give its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    protocol = type("Hasty", (ImpatientProtocol,), {"seconds": patience})
    chosen = server_options() | {"http": protocol, "log_level": "critical"} | options
    server = uvicorn.Server(uvicorn.Config(review_app.make_app(View(open_run(folder)), port, TOKEN), **chosen))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def until_closed(connection: socket.socket) -> bytes:
    heard = b""
    while some := connection.recv(65536):
        heard += some
    return heard


BEGUN = (
    b"",
    b"GET /api/state HT",
    b"GET /api/state HTTP/1.1\r\nHost: x\r\nX: ",
    request("POST /api/edit HTTP/1.1", b'{"edit": {"edit": "undo"}, "based_on": 0}')[:-5],
)


def test_requests_that_never_end_are_cut_off_and_others_are_answered(finished: Path) -> None:
    with serving(finished, 0.4) as port:
        slow = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in (*BEGUN, "by drops")]
        for one, begun in zip(slow, BEGUN, strict=False):
            one.sendall(begun.replace(str(PORT).encode(), str(port).encode()))
        assert httpx.get(f"http://127.0.0.1:{port}/api/state", headers=BEARER).status_code == 200
        for one in slow[:-1]:
            assert b"200" not in until_closed(one)[:15]
        assert dripped(slow[-1]), "a drop every 20 ms was waited for without end"
        assert httpx.get(f"http://127.0.0.1:{port}/api/state", headers=BEARER).status_code == 200
        for one in slow:
            one.close()
    assert not open_run(finished).n_edits


def dripped(connection: socket.socket) -> bool:
    """Send a request letter by letter; tell whether the other side hung up in the middle."""
    for letter in b"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"x" * 10_000:
        try:
            connection.sendall(bytes([letter]))
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_too_many_connections_are_told_so(finished: Path) -> None:
    with serving(finished, 30, limit_concurrency=3) as port:
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
        assert httpx.get(f"http://127.0.0.1:{port}/api/state", headers=BEARER).status_code == 503
        for one in held:
            one.close()
        deadline = time.monotonic() + 30
        while (answer := httpx.get(f"http://127.0.0.1:{port}/api/state", headers=BEARER)).status_code == 503:
            assert time.monotonic() < deadline
        assert answer.status_code == 200


def test_a_huge_request_is_refused_before_it_is_sent(finished: Path) -> None:
    line = Line(review_app.make_app(View(open_run(finished)), PORT, TOKEN))
    head = request("POST /api/edit HTTP/1.1", b"", "Content-Type: application/json", f"Content-Length: {17 * 2**20}")
    assert statuses(line.say(head)) == [413]
    assert statuses(line.say(request("POST /api/edit HTTP/1.1", b"", "Content-Length: 99999999999999999999"))) == [415]
    assert statuses(line.say(b"GET /api/state HTTP/1.1\r\nX: " + b"y" * 100_000)) == [400], "a header without end"
    assert statuses(line.say(request("GET /api/state HTTP/1.1", b"", "Host: evil.example"))) == [400]
    assert statuses(line.say(request(f"GET /api/images/{'9' * 5000} HTTP/1.1"))) == [404]


def test_two_editors_lose_nothing(client: httpx.Client, finished_with_files: Path) -> None:
    """Each acknowledged edit is in the journal at its place; the slower of two hears of it and looks again."""
    acknowledged: dict[int, str] = {}
    conflicts = []

    def editor(name: str) -> None:
        mine = client_of(finished_with_files)  # a server of its own: locks of one process would not help
        mine.headers.update(BEARER)
        state = mine.get("/api/state").json()
        for number in range(12):
            while True:
                wish = {"edit": "rename", "number": 5 + number % 5, "name": f"{name} {number}"}
                answer = mine.post("/api/edit", json={"edit": wish, "based_on": state["edits"]})
                if answer.status_code == 200:
                    state = answer.json()["state"]
                    acknowledged[state["edits"]] = wish["name"]
                    break
                assert answer.status_code == 409, answer.text
                conflicts.append(name)
                state = mine.get("/api/state").json()

    both = [threading.Thread(target=editor, args=(name,)) for name in ("Ada", "Ben")]
    for one in both:
        one.start()
    for one in both:
        one.join()
    lines = [json.loads(text)["name"] for text in (finished_with_files / "edits.jsonl").read_text().splitlines()]
    assert len(lines) == 24 and dict(enumerate(lines, 1)) == acknowledged


def test_a_moment_of_load_loses_nothing(finished: Path) -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "review_load.py"
    spec = importlib.util.spec_from_file_location("review_load", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["review_load"] = module
    spec.loader.exec_module(module)
    load = module.run_load(finished, 2.0, 100.0)
    assert not load.lost and load.acknowledged and set(load.statuses) <= {200, 409}, module.described(load)
    assert "lost or made up: 0" in module.described(load)
