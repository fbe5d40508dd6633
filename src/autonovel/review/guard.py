"""Who may ask: only pages of this server, in a browser or program that holds the token.

A page of another site can make a browser send requests to 127.0.0.1.  It knows neither the token nor the cookie
(which is not sent from other sites), its Origin is foreign, and a name that it lets point to 127.0.0.1 shows as a
foreign Host.
"""

import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets through what comes from our own page with our token, and adds headers that keep the page to itself."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app = app
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}
        self.cookie = f"autonovel-{port}"  # cookies of 127.0.0.1 are shared by all ports
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        answer = self._refusal(scope, headers) or self._entrance(scope) or self.app
        await answer(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        if headers.get("host") not in self.hosts:
            return _refused("this page answers to its own address alone")
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins:
            return _refused("the request comes from another site")
        by_header = self._right(headers.get("authorization", "").removeprefix("Bearer "))
        if by_header or self._enters(scope):
            return None
        if not self._right(self._from_cookie(headers)):
            return _refused("the token is missing; open the address that autonovel review printed")
        if scope["method"] not in ("GET", "HEAD") and origin is None:
            return _refused("the request does not say which page it comes from")
        return None

    def _entrance(self, scope: Scope) -> Response | None:
        """Return the answer to the printed address: the token moves into a cookie and out of the address bar."""
        if not self._enters(scope):
            return None
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
        return answer

    def _enters(self, scope: Scope) -> bool:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return bool(scope["path"] == "/" and scope["method"] == "GET" and self._right(given))

    def _from_cookie(self, headers: dict[str, str]) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found else ""

    def _right(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())


def _refused(reason: str) -> Response:
    return JSONResponse({"error": f"refused: {reason}."}, status_code=403)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message["headers"]}
            added = [(n.lower().encode(), v.encode()) for n, v in HEADERS.items() if n.lower().encode() not in there]
            message["headers"] = [*message["headers"], *added]
        await send(message)

    return sending
