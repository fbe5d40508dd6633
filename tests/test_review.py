"""The server behind the review page: who is let in, what it answers, and that nothing acknowledged is lost."""

import asyncio
import io
import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from starlette.types import ASGIApp

from autonovel import open_run
from autonovel.errors import UsageError
from autonovel.report import gather
from autonovel.report.subject import corrected
from autonovel.review import app as review_app
from autonovel.review import serve
from autonovel.review.view import View
from finished import as_known, rows_of
from runs import command, environment

PORT, TOKEN = 4242, "let-me-in"
HOME = f"http://127.0.0.1:{PORT}"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class InProcess(httpx.BaseTransport):
    """Asks an application in this process, without a network."""

    def __init__(self, app: ASGIApp) -> None:
        self.transport = httpx.ASGITransport(app)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def ask() -> httpx.Response:
            answer = await self.transport.handle_async_request(request)
            return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

        return asyncio.run(ask())


def client_of(folder: Path) -> httpx.Client:
    """Return a program that talks to the review of ``folder`` and holds no token yet."""
    return httpx.Client(transport=InProcess(review_app.make_app(View(open_run(folder)), PORT, TOKEN)), base_url=HOME)


@pytest.fixture
def client(finished_with_files: Path) -> httpx.Client:
    made = client_of(finished_with_files)
    made.headers.update(BEARER)
    return made


def edit(client: httpx.Client, based_on: int, **wish: Any) -> httpx.Response:
    return client.post("/api/edit", json={"edit": wish, "based_on": based_on})


def test_the_printed_address_gives_a_cookie_that_opens_everything(finished: Path) -> None:
    client = client_of(finished)
    assert client.get("/").status_code == 403
    assert client.get("/?token=wrong").status_code == 403
    entered = client.get(f"/?token={TOKEN}")
    assert entered.status_code == 303 and entered.headers["location"] == "/"
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    page = client.get("/")
    assert page.status_code == 200 and "autonovel review" in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff" and page.headers["x-frame-options"] == "DENY"
    assert client.get("/api/state").json()["edits"] == 0


@pytest.mark.parametrize(
    "path", ["/", "/api/state", "/api/images/5", "/static/main.js", "/report", "/sheet/x?rows=1", "/nothing"]
)
def test_nothing_is_shown_without_the_token(finished: Path, path: str) -> None:
    client = client_of(finished)
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"autonovel-{PORT}=wrong"}):
        assert client.get(path, headers=headers).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""])
def test_a_foreign_host_is_refused_even_with_the_token(client: httpx.Client, host: str) -> None:
    assert client.get("/api/state", headers={"Host": host}).status_code == 403
    assert client.get(f"/?token={TOKEN}", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:1"])
def test_a_foreign_origin_is_refused_even_with_the_token(client: httpx.Client, origin: str) -> None:
    wish = {"edit": {"edit": "rename", "number": 5, "name": "x"}, "based_on": 0}
    assert client.post("/api/edit", json=wish, headers={"Origin": origin}).status_code == 403
    assert client.get("/api/state", headers={"Origin": origin}).status_code == 403
    assert client.get("/api/state").json()["edits"] == 0


def test_an_edit_by_cookie_must_say_where_it_comes_from(finished: Path) -> None:
    client = client_of(finished)
    client.get(f"/?token={TOKEN}")
    wish = {"edit": {"edit": "rename", "number": 5, "name": "x"}, "based_on": 0}
    assert client.post("/api/edit", json=wish).status_code == 403
    assert client.post("/api/edit", json=wish, headers={"Origin": HOME}).status_code == 200


def test_every_kind_of_edit_is_on_disk_when_it_is_answered(client: httpx.Client, finished_with_files: Path) -> None:
    ids = open_run(finished_with_files).found.ids
    wishes: list[dict[str, Any]] = [
        {"edit": "rename", "number": 5, "name": "seven"},
        {"edit": "merge", "numbers": [6], "into": 5},
        {"edit": "move", "images": list(ids[:2]), "to": 7},
        {"edit": "junk", "images": [ids[3]]},
        {"edit": "split", "number": 7, "images": list(ids[:2])},
        {"edit": "halve", "number": 8},
        {"edit": "undo"},
        {"edit": "junk-class", "number": 9},
    ]
    for n, wish in enumerate(wishes):
        answer = edit(client, n, **wish)
        assert answer.status_code == 200, answer.text
        assert answer.json()["state"]["edits"] == n + 1
        assert len((finished_with_files / "edits.jsonl").read_text().splitlines()) == n + 1
    state = client.get("/api/state").json()
    names = {one["id"]: one["name"] for one in state["classes"]}
    assert names == {0: "0", 1: "1", 2: "2", 3: "3", 4: "4", 5: "seven", 7: "new-3", 8: "new-4", 10: "new-6"}
    assert state["undo"] == "marked the class new-5 as junk"
    assert [one["undo"] for one in state["history"]] == [False, True] + [False] * 6
    images = client.get("/api/images/10").json()
    assert sorted(images["ids"]) == sorted(ids[:2]) and images["moved"] == [1, 1]
    assert len(client.get("/api/images/junk").json()["rows"]) == state["junk"]["size"]


def test_images_of_a_class_come_by_confidence(client: httpx.Client, finished_with_files: Path) -> None:
    answer = client.get("/api/images/6").json()
    run = open_run(finished_with_files)
    assert sorted(answer["rows"]) == run.found.members(6).tolist()
    assert answer["confidence"] == sorted(answer["confidence"], reverse=True)
    assert [run.found.ids[row] for row in answer["rows"]] == answer["ids"]


def test_images_of_a_merged_class_were_not_moved_by_anybody(finished: Path) -> None:
    run = open_run(finished)
    run.merge("new-3", "new-2")
    run.move(run.found.ids[run.found.members(8)[0]], "new-3")
    run.junk_class("new-5")
    view = View(run)
    shown = [view.images_of(number) for number in (*run.sorting.names, -1)]
    moved = {name for one in shown for name, is_so in zip(one["ids"], one["moved"], strict=True) if is_so}
    assert moved == {row["id"] for row in run.rows() if row["by_hand"]} == {run.found.ids[run.found.members(8)[0]]}


def test_a_stale_edit_is_a_conflict_and_changes_nothing(client: httpx.Client, finished_with_files: Path) -> None:
    open_run(finished_with_files).rename("new-1", "by somebody else")
    answer = edit(client, 0, edit="rename", number=6, name="mine")
    assert answer.status_code == 409 and "changed since" in answer.json()["error"]
    assert [one["name"] for one in client.get("/api/state").json()["classes"]][5:7] == ["by somebody else", "new-2"]


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"edit": {"edit": "rename", "number": 5, "name": "new-2"}, "based_on": 0}', "application/json", 400),
        (b'{"edit": {"edit": "halve", "number": "5"}, "based_on": 0}', "application/json", 400),
        (b'{"edit": {"edit": "explode"}, "based_on": 0}', "application/json", 400),
        (b'{"edit": {"edit": "undo"}}', "application/json", 400),
        (b'{"edit": {"edit": "junk", "images": ["\\ud800"]}, "based_on": 0}', "application/json", 400),
        (b'{"edit": {"edit": "undo"}, "based_on": true}', "application/json", 400),
        (b'{"edit": {"edit": "undo"}, "based_on": 0}', "text/plain", 415),
        (b"x" * (16 * 2**20 + 1), "application/json", 413),
    ],
)
def test_bad_requests_are_refused_in_words(client: httpx.Client, content: bytes, kind: str, status: int) -> None:
    answer = client.post("/api/edit", content=content, headers={"Content-Type": kind})
    assert answer.status_code == status and answer.json()["error"]
    assert client.get("/api/state").json()["edits"] == 0


def test_no_path_leads_out_of_the_page(client: httpx.Client, finished_with_files: Path) -> None:
    for path in (
        "../view.py",
        "..%2Fview.py",
        "%2e%2e/view.py",
        "/etc/passwd",
        "..\\view.py",
        "view.py",
        "__init__.py",
    ):
        assert client.get(f"/static/{path}").status_code == 404
    assert client.get("/run.json").status_code == 404
    assert client.get("/report").status_code == 404, "this run has none"
    (finished_with_files / "report.html").write_text("<p>report")
    shown = client.get("/report")
    assert shown.status_code == 200 and "sandbox" in shown.headers["content-security-policy"]
    assert all(client.get(f"/static/{name}").status_code == 200 for name in (*review_app.STATIC, "report.css"))


def test_a_report_without_the_last_corrections_is_called_older(client: httpx.Client, finished_with_files: Path) -> None:
    def told() -> tuple[bool, bool]:
        state = client.get("/api/state").json()
        return state["report"], state["report_older"]

    report = finished_with_files / "report.html"
    assert told() == (False, False)
    report.write_text("<p>report")
    assert told() == (True, False)
    assert edit(client, 0, edit="rename", number=5, name="x").status_code == 200
    made = (finished_with_files / "edits.jsonl").stat().st_mtime
    os.utime(report, (made - 5, made - 5))
    assert told() == (True, True)
    os.utime(report, (made + 5, made + 5))  # made anew
    assert told() == (True, False)


def test_a_name_that_no_class_has_is_no_hint(finished_with_files: Path) -> None:
    as_known(finished_with_files, "new-2", "no such class")
    client = client_of(finished_with_files)
    client.headers.update(BEARER)
    assert {one["looks_like"] for one in client.get("/api/state").json()["classes"]} == {None}


def test_thumbnails_come_on_sheets(client: httpx.Client, finished_with_files: Path) -> None:
    key = client.get("/api/state").json()["key"]
    answer = client.get(f"/sheet/{key}?rows=0,5,9,1,2,3,4,6,7")
    assert answer.headers["content-type"] == "image/webp" and "max-age" in answer.headers["cache-control"]
    sheet = Image.open(io.BytesIO(answer.content))
    cell = sheet.width // 8
    assert sheet.size == (8 * cell, 2 * cell)
    path = finished_with_files.parent / "my images" / open_run(finished_with_files).table[5]["path"]
    expected = Image.open(path).resize((cell, cell), Image.Resampling.NEAREST)
    assert sheet.crop((cell, 0, 2 * cell, cell)).convert("L").tobytes() == expected.tobytes()
    assert Image.open(io.BytesIO(client.get(f"/image/{key}/5").content)).width > 250
    assert client.get(f"/image/{key}/400").status_code == 400
    for rows in ("", "x", "-1", "1,", "400", "99999999999999", ",".join(["1"] * 49)):
        assert client.get(f"/sheet/{key}", params={"rows": rows}).status_code == 400
    path.unlink()
    gone = Image.open(io.BytesIO(client.get(f"/sheet/{key}?rows=5,6").content)).convert("RGBA")
    assert gone.crop((0, 0, cell, cell)).getextrema()[3] == (0, 0), "a file that is gone leaves an empty cell"
    assert client.get(f"/image/{key}/5").status_code == 400


def test_large_pictures_shrink_and_keep_their_shape(client: httpx.Client, finished_with_files: Path) -> None:
    path = finished_with_files.parent / "my images" / open_run(finished_with_files).table[5]["path"]
    Image.new("RGB", (3000, 1500), "red").save(path, "JPEG")
    key = client.get("/api/state").json()["key"]
    assert Image.open(io.BytesIO(client.get(f"/image/{key}/5").content)).size == (1200, 600)
    sheet = Image.open(io.BytesIO(client.get(f"/sheet/{key}?rows=5").content)).convert("RGBA")
    assert sheet.size == (8 * 96, 96)
    assert sheet.getbbox() == pytest.approx((0, 24, 96, 72), abs=1)


def test_a_run_without_images_says_so(finished: Path) -> None:
    facts = json.loads((finished / "run.json").read_text())
    facts["recipe"]["data.source"] = "arrays"
    (finished / "run.json").write_text(json.dumps(facts))
    client = client_of(finished)
    client.headers.update(BEARER)
    assert "Python arrays" in client.get("/api/state").json()["missing"]
    assert edit(client, 0, edit="rename", number=5, name="x").status_code == 200


def test_a_hint_names_the_class_that_is_most_often_second(client: httpx.Client, finished_with_files: Path) -> None:
    found = rows_of(finished_with_files / "discovery.csv")
    for one in client.get("/api/state").json()["classes"][5:]:
        seconds = [row["second_class"] for row in found.values() if row["class_name"] == one["name"]]
        most = max(set(seconds), key=seconds.count)
        assert seconds.count(found_name(client, one["near"])) == seconds.count(most)


def test_a_hint_names_the_known_class_that_most_of_a_new_one_look_like(finished_with_files: Path) -> None:
    as_known(finished_with_files, "new-2", "3")
    client = client_of(finished_with_files)
    client.headers.update(BEARER)
    told = {
        one["name"]: (one["looks_like"], one["looks_like_share"]) for one in client.get("/api/state").json()["classes"]
    }
    assert told["new-2"] == (3, 1.0) and told["3"] == (None, 0.0)


def test_images_that_look_like_a_known_class_are_told_of_until_they_are_moved(finished: Path) -> None:
    view = View(open_run(as_known(finished, "new-2", "3", most=7)))
    looking = [row["id"] for row in view.run.table if row["looks_known"] == "0.9"]
    images = view.images_of(6)
    told = {name: (images["looks_known"][i], images["nearest_known"][i]) for i, name in enumerate(images["ids"])}
    assert len(looking) == 7 and {name for name, (known, _) in told.items() if known > 0.5} == set(looking)
    assert all(told[name] == (0.9, 3) for name in looking)
    assert [one["look_known"] for one in view.state()["classes"]] == [0, 0, 0, 0, 0, 0, 7, 0, 0, 0]
    view.run.move(looking[:5], "3")
    assert [one["look_known"] for one in view.state()["classes"]] == [0, 0, 0, 0, 0, 0, 2, 0, 0, 0]
    assert not any(view.images_of(3)["looks_known"]), "they are where they look they belong, and the others have labels"
    head = gather.headline(corrected(view.run)[0], json.loads((finished / "results.json").read_text()))
    assert head.look_known == {"new-2": 2} and head.hint.startswith("2 images look more like a known class: new-2 2 (")


def found_name(client: httpx.Client, number: int) -> str:
    return next(one["name"] for one in client.get("/api/state").json()["classes"] if one["id"] == number)


@pytest.fixture
def server(finished: Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Start ``autonovel review`` and yield the process, its address and its token."""
    process = subprocess.Popen(
        command("review", finished, "--no-browser"), stdout=subprocess.PIPE, text=True, env=environment()
    )
    killer = threading.Timer(120, process.kill)
    killer.start()
    try:
        assert process.stdout is not None
        found = next(m for line in process.stdout if (m := re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)))
        yield process, found[1], found[2]
    finally:
        killer.cancel()
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@pytest.mark.slow
def test_a_killed_server_loses_nothing(server: tuple[subprocess.Popen[str], str, str], finished: Path) -> None:
    process, address, token = server
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}) as client:
        for n in range(3):
            wish = {"edit": {"edit": "rename", "number": 5 + n, "name": f"name {n}"}, "based_on": n}
            assert client.post("/api/edit", json=wish).status_code == 200
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    run = open_run(finished)
    assert [run.sorting.names[n] for n in (5, 6, 7)] == ["name 0", "name 1", "name 2"]
    run.undo()


@pytest.mark.slow
def test_an_interrupted_server_says_what_it_leaves(server: tuple[subprocess.Popen[str], str, str]) -> None:
    process, address, token = server
    assert httpx.get(f"{address}/api/state", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert "0 edits are in" in process.stdout.read()
    assert process.wait() == 0


def test_a_port_in_use_is_told(finished: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="--port"):
            serve(finished, None, taken.getsockname()[1], browser=False)
