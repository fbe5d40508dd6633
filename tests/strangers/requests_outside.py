"""Requests to the review server, from their first byte on: through the protocol, the guard and the addresses."""

import asyncio
import json
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

PORT, TOKEN = 4242, "let-me-in"
SEEDS = (
    "GET / HTTP/1.1", "GET /?token=let-me-in HTTP/1.1", "GET /api/state HTTP/1.1", "GET /api/images/5 HTTP/1.1",
    "GET /api/images/junk HTTP/1.1", "GET /static/main.js HTTP/1.1", "GET /report HTTP/1.0", "HEAD /api/state HTTP/1.1",
    "GET /sheet/KEY?rows=0,1,2 HTTP/1.1", "GET /image/KEY/3 HTTP/1.1", "OPTIONS * HTTP/1.1",
    "GET /%2e%2e/run.json HTTP/1.1",
    f"GET /api/images/{'9' * 5000} HTTP/1.1", "GET /sheet/KEY?rows=%31,%FF HTTP/1.1",
)  # fmt: skip
WISHES: tuple[dict[str, Any], ...] = (
    {"edit": "rename", "number": 5, "name": "seven"}, {"edit": "merge", "numbers": [6], "into": 5}, {"edit": "undo"},
    {"edit": "move", "images": ["0"], "to": 7}, {"edit": "junk", "images": ["1"]}, {"edit": "halve", "number": 8},
    {"edit": "split", "number": 7, "images": ["0"], "name": ""}, {"edit": "junk-class", "number": 9},
)  # fmt: skip


class Wire(asyncio.Transport):
    """A connection whose other end keeps what it hears."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", PORT), "peername": ("127.0.0.1", 50_000)})
        self.heard = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        """Keep what is said."""
        self.heard += data

    def close(self) -> None:
        """Hang up."""
        self.closed = True

    def is_closing(self) -> bool:
        """Tell whether somebody hung up."""
        return self.closed

    def pause_reading(self) -> None:
        """Nothing comes by itself."""

    def resume_reading(self) -> None:
        """Nothing comes by itself."""


class Line:
    """Lets the server hear bytes, as if they came over a connection."""

    def __init__(self, app: Any) -> None:
        from autonovel.review.patience import server_options

        self.config = uvicorn.Config(app, **(server_options() | {"log_level": "critical"}))
        self.config.load()

    def say(self, content: bytes) -> bytes:
        """Return what the server answers to ``content``."""
        return asyncio.run(self._say(content))

    async def _say(self, content: bytes) -> bytes:
        from autonovel.review.patience import ImpatientProtocol

        state, wire, failed = ServerState(), Wire(), list[dict[str, Any]]()
        asyncio.get_running_loop().set_exception_handler(lambda _, about: failed.append(about))
        protocol = ImpatientProtocol(self.config, state, {}, asyncio.get_running_loop())
        protocol.connection_made(wire)
        if content:
            protocol.data_received(content)
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=0.5)  # one that still waits for the rest of a body
        protocol.connection_lost(None)
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=10)
        assert not failed, failed
        return bytes(wire.heard)


def request(first: str, body: bytes = b"", *more: str) -> bytes:
    """Return a request with the token."""
    lines = [first, f"Host: 127.0.0.1:{PORT}", f"Authorization: Bearer {TOKEN}", "Connection: close", *more]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def statuses(answer: bytes) -> list[int]:
    """Return the statuses of the answers to one or several requests."""
    import re

    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3})", answer)]


def request_parsers(place: Path) -> list[Any]:
    """Return the readers of requests: as bytes, and as what an edit asks for."""
    from outside import Parser

    from autonovel import open_run
    from autonovel.errors import InputError
    from autonovel.review.app import make_app
    from autonovel.review.view import View

    run = place / "run"  # left by the parsers of run folders
    view = View(open_run(run))
    line = Line(make_app(view, PORT, TOKEN))
    kept = (run / "edits.jsonl").read_bytes(), (run / "classes.json").read_bytes()

    def answered(content: bytes) -> object:
        answer = line.say(content)
        codes = statuses(answer)
        assert not [code for code in codes if code >= 500], answer[:300]
        if (run / "edits.jsonl").read_bytes() != kept[0]:
            (run / "edits.jsonl").write_bytes(kept[0])
            (run / "classes.json").write_bytes(kept[1])
        if not codes or max(codes) >= 400:
            raise InputError(f"refused: {answer[:60]!r}")
        return codes

    def wished(content: bytes) -> object:
        return answered(request("POST /api/edit HTTP/1.1", content))

    texts = [json.dumps({"edit": wish, "based_on": view.run.n_edits}).encode() for wish in WISHES]
    whole = [request(first.replace("KEY", view.key)) for first in SEEDS]
    whole += [request("POST /api/edit HTTP/1.1", text) for text in texts[:3]]
    return [
        Parser("HTTP requests", "lines", whole, answered),
        Parser("edits over HTTP", "json", texts, wished),
    ]
