"""``autonovel review``: a server on 127.0.0.1 with a token of its own, and the browser that looks at it."""

import os
import secrets
import socket
import threading
import webbrowser
from pathlib import Path

from autonovel.editing.edited import open_run
from autonovel.errors import UsageError
from autonovel.extras import installing

HOST = "127.0.0.1"


def serve(folder: Path, data: Path | None, port: int, browser: bool) -> None:
    """Serve the run at ``folder`` until interrupted.

    Args:
        folder: a finished run.
        data: where its images lie now, if they were moved.
        port: to listen on; 0 takes any that is free.
        browser: open a browser.
    """
    run = open_run(folder)
    try:
        import uvicorn

        from autonovel.review.app import make_app
        from autonovel.review.patience import server_options
    except ImportError as error:
        raise UsageError(f"review needs the package {error.name}. Install it with: {installing('review')}.") from error
    from autonovel.review.view import View

    listening = _socket(port)
    print(f"Reading {folder} …", flush=True)
    view = View(run, data)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    address = f"http://{HOST}:{port}/?token={token}"
    config = uvicorn.Config(make_app(view, port, token), **server_options())
    if view.images_missing:
        print(view.images_missing)
    saved = (
        "Every edit is saved at once."
        if os.access(folder, os.W_OK)
        else "No edit can be saved: the folder of the run is not yours to write to."
    )
    print(f"Review {folder} at\n  {address}\n{saved} Ctrl-C closes the page.", flush=True)
    if browser:
        threading.Timer(0.5, webbrowser.open, (address,)).start()
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
    print(f"Closed. {run.n_edits} edits are in {folder / 'edits.jsonl'}.")


def _socket(port: int) -> socket.socket:
    """Return a socket that listens on this machine alone."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # whoever comes between the printed address and the first answer waits
    except OSError as error:
        listening.close()
        raise UsageError(f"port {port} cannot be used ({error.strerror or error}). Choose another --port.") from error
    return listening
