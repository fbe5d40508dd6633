"""How long the review server waits, and for how many at a time.

A browser sends a request in one go; whoever opens a connection and dawdles would keep it, and a thousand such
connections would keep everybody else out.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 20.0  # from its first byte, or the connection, until a request is there with its whole body
MOST_CONNECTIONS = 200  # a browser opens six; the next one is told that there are too many


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, but a request that does not come to its end is cut off."""

    seconds = REQUEST_SECONDS
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what has come, and go on waiting only if more of the request has to come."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing():
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.seconds, self._cut_off)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _cut_off(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.close()


def server_options() -> dict[str, Any]:
    """Return what uvicorn is told besides the application."""
    return {
        "http": ImpatientProtocol,
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "lifespan": "off",
        "timeout_graceful_shutdown": 2,
        "limit_concurrency": MOST_CONNECTIONS,
        "server_header": False,
    }
