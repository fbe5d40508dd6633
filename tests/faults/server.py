"""A download for the trials: a server of one small file, in a process of its own, that can go on in the middle."""

import hashlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from autonovel.data import catalogue, fetch
from autonovel.data.catalogue import Dataset, RemoteFile

CONTENT = bytes(range(256)) * 3000  # three pieces of what is received at once


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = self.headers["Range"]
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if start >= len(CONTENT):
            return self.send_error(416)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start:])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def downloads() -> Iterator[None]:
    """Let ``autonovel data fetch small`` work inside the block."""
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    address = f"http://127.0.0.1:{server.server_address[1]}/small.bin"
    file = RemoteFile("small.bin", address, hashlib.md5(CONTENT).hexdigest())
    catalogue.DATASETS["small"] = Dataset("small", "Small", (file,), (), "", "", "")
    fetch.PAUSE = 0.0
    os.environ["no_proxy"] = "127.0.0.1"
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        server.serve_forever()
    server.server_close()
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        del catalogue.DATASETS["small"]
