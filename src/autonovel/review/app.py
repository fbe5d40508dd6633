"""The addresses of the review page; all of them behind the guard."""

import json
from collections.abc import Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from autonovel.editing.edited import EditConflictError
from autonovel.errors import AutonovelError, RunFolderError
from autonovel.review.guard import Guard
from autonovel.review.view import View
from autonovel.visible import visible

LARGEST_REQUEST = 16 * 2**20  # bytes: the names of 100,000 images
STATIC = {
    "page.html": "text/html",
    "icon.svg": "image/svg+xml",
    "review.css": "text/css",
    "main.js": "text/javascript",
    "api.js": "text/javascript",
    "home.js": "text/javascript",
    "dialogs.js": "text/javascript",
    "images.js": "text/javascript",
    "tiles.js": "text/javascript",
}
REPORT_POLICY = (  # the report brings its own script; in a sandbox it cannot reach this server's addresses
    "sandbox allow-scripts; default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'"
)
KEEP = {"Cache-Control": "private, max-age=86400, immutable"}


def make_app(view: View, port: int, token: str) -> ASGIApp:
    """Return the application that serves ``view`` on ``port`` to whoever holds ``token``."""

    def page(_: Request) -> Response:
        return _static("page.html")

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name == "report.css":
            return Response((resources.files("autonovel.report") / "style.html").read_bytes(), media_type="text/css")
        return _static(name) if name in STATIC else _error("there is no such file", 404)

    def report(_: Request) -> Response:
        path = view.report
        if path is None:
            return _error("this run has no report in one file; open its report.html from disk", 404)
        headers = {"Content-Security-Policy": REPORT_POLICY}
        return Response(path.read_bytes(), media_type="text/html", headers=headers)

    def state(_: Request) -> Response:
        return JSONResponse(view.state())

    def images(request: Request) -> Response:
        number = request.path_params["number"]
        if not _is_number(number):
            return _error("there is no such class", 404)
        return JSONResponse(view.images_of(int(number)))

    def sheet(request: Request) -> Response:
        rows = request.query_params.get("rows", "")
        if not all(map(_is_number, rows.split(","))):
            return _error("rows are whole numbers with commas between them", 400)
        return Response(view.sheet([int(part) for part in rows.split(",")]), media_type="image/webp", headers=KEEP)

    def large(request: Request) -> Response:
        row = request.path_params["row"]
        if not _is_number(row):
            return _error("there is no such image", 404)
        return Response(view.large(int(row)), media_type="image/webp", headers=KEEP)

    async def edit(request: Request) -> Response:
        body = await _body(request)
        if isinstance(body, Response):
            return body
        return await run_in_threadpool(_told, lambda: JSONResponse(view.edit(body)))

    def route(path: str, endpoint: Callable[[Request], Response]) -> Route:
        def answer(request: Request) -> Response:
            return _told(lambda: endpoint(request))

        return Route(path, answer, methods=["GET"])

    app = Starlette(
        routes=[
            route("/", page),
            route("/static/{name}", static),
            route("/report", report),
            route("/api/state", state),
            route("/api/images/junk", lambda _: JSONResponse(view.images_of(-1))),
            route("/api/images/{number}", images),
            route(f"/sheet/{view.key}", sheet),
            route(f"/image/{view.key}/{{row}}", large),
            Route("/api/edit", edit, methods=["POST"]),
        ]
    )
    return Guard(app, port, token)


def _told(answer: Callable[[], Response]) -> Response:
    """Return an answer; our own errors become their sentence and a fitting status."""
    try:
        return answer()
    except EditConflictError as error:
        return _error(str(error), 409)
    except RunFolderError as error:
        return _error(str(error), 500)
    except AutonovelError as error:
        return _error(str(error), 400)


def _is_number(text: str) -> bool:
    """Tell whether a part of an address is a whole number, and no longer one than there are images."""
    return text.isdecimal() and len(text) < 10


def _error(text: str, status: int) -> Response:
    return JSONResponse({"error": visible(text)}, status_code=status)


def _static(name: str) -> Response:
    content = (resources.files("autonovel.review") / "static" / name).read_bytes()
    return Response(content, media_type=STATIC[name])


async def _body(request: Request) -> Any:
    """Return the JSON object that was sent, or the answer to one that is too large or something else."""
    if request.headers.get("content-type", "").split(";")[0] != "application/json":
        return _error("send application/json", 415)
    if not (said := request.headers.get("content-length", "0")).isdecimal() or int(said[:20]) > LARGEST_REQUEST:
        return _error(f"the request is larger than {LARGEST_REQUEST // 2**20} MiB", 413)
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > LARGEST_REQUEST:
            return _error(f"the request is larger than {LARGEST_REQUEST // 2**20} MiB", 413)
    try:
        body = json.loads(bytes(content))
    except (ValueError, RecursionError):
        return _error("this is not JSON", 400)
    return body if isinstance(body, dict) else _error("send a JSON object", 400)
