"""Get a dataset's official files: with checksum, and going on where an earlier download stopped.

pooch decides what is there and right, checks what comes, and puts a file in its place only when it is whole;
the way through the network is ours, since pooch starts every download anew.
"""

import contextlib
import functools
import http
import http.client
import importlib
import logging
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from autonovel import __version__
from autonovel.data.catalogue import Dataset, RemoteFile, find, how_to_get, md5
from autonovel.errors import InputError
from autonovel.extras import installing
from autonovel.storage import writing

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a file, its bytes so far, and all its bytes (None if the server does not say)."""

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
LINK = ".link"
_TEMPORARY = re.compile(r"tmp[a-z0-9_]{8}")  # as the standard library names temporary files
PAUSE = 1.0  # seconds before a broken connection is opened again


class _NetworkError(Exception):
    """The connection was refused, or ended before the file did."""


def fetch(dataset: str | Dataset, to: Path, progress: Progress) -> list[Path]:
    """Return the official files of a dataset in folder ``to``, after downloading those that are not there.

    A file of the same name that is not the official one is replaced, but not before the official one is whole.

    Args:
        dataset: a name of the catalogue, or an entry of one's own.
        to: folder to hold the files; made if need be.
        progress: told how far each download is.

    Raises:
        InputError: if a file cannot be reached, written, or has the wrong checksum.
    """
    entry = find(dataset) if isinstance(dataset, str) else dataset
    if entry.on_request:
        raise InputError(how_to_get(entry.name, to))
    pooch = _pooch()
    return [_fetch_file(pooch, file, to, progress) for file in entry.files]


def _pooch() -> Any:
    try:
        return importlib.import_module("pooch")
    except ImportError as error:
        raise InputError(
            f"downloading needs the package pooch. Install it with: {installing('data')}, or download the "
            "files by hand; the table of datasets names their addresses."
        ) from error


def _fetch_file(pooch: Any, file: RemoteFile, to: Path, progress: Progress) -> Path:
    partial = to / f"{file.name}.partial"

    def download(address: str, output: str, _: Any) -> None:
        _download(file, partial, progress)
        _hand_over(partial, Path(output))

    try:
        _clear_up(partial)
        with _quiet(pooch.get_logger()):
            pooch.retrieve(file.address, f"md5:{file.md5}", fname=file.name, path=to, downloader=download)
        writing.sync_folder(to)
        writing.remove(partial)
    except OSError as error:
        raise InputError(
            f"cannot write {to / file.name}: {error.strerror or error}. Free space or choose another folder with --to; "
            "what was downloaded before is kept."
        ) from error
    return to / file.name


def _hand_over(partial: Path, output: Path) -> None:
    """Give what was downloaded to pooch, which moves it to its place; until it is there, it can still be found."""
    linked = output.with_name(output.name + LINK)
    try:
        writing.place_file(linked, functools.partial(os.link, partial))
    except OSError:  # a file system without links
        writing.rename(partial, output)
    else:
        writing.rename(linked, output)


def _clear_up(partial: Path) -> None:
    """Remove what a killed download leaves beside ``partial``: pooch's empty place for it, or its second name."""
    linked = partial.exists() and partial.stat().st_nlink > 1
    for entry in partial.parent.iterdir() if partial.parent.is_dir() else ():
        if entry in (partial, partial.with_suffix("")) or not entry.is_file():
            continue
        empty = _TEMPORARY.fullmatch(entry.name) and not entry.stat().st_size
        if empty or (linked and entry.samefile(partial)):
            writing.remove(entry)


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch's own lines off the screen: progress is shown by ours."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _download(file: RemoteFile, partial: Path, progress: Progress) -> None:
    """Leave the whole, checked file at ``partial``, going on with what is there already."""
    continued = _size(partial) > 0
    _go_on(file, partial, progress)
    found = md5(partial)
    if found != file.md5 and continued:  # the beginning may be of another time or another file
        writing.remove(partial)
        _go_on(file, partial, progress)
        found = md5(partial)
    if found != file.md5:
        writing.remove(partial)
        raise InputError(
            f"{file.address} gave a file with the MD5 {found}; the official file has {file.md5}. It was thrown away. "
            f"Try again later, or get the file elsewhere and put it at {partial.with_suffix('')}."
        )


def _go_on(file: RemoteFile, partial: Path, progress: Progress) -> None:
    """Download until the file is whole, opening a broken connection again as long as it brings something."""
    while True:
        before = _size(partial)
        try:
            _receive(file, partial, progress)
            return
        except _NetworkError as broken:
            size = _size(partial)
            if size <= before:
                kept = f" {size:,} bytes are kept, and the same command goes on from there." if size else ""
                raise InputError(
                    f"{file.address} could not be reached: {broken}.{kept} Check the network, or download the file "
                    f"by hand to {partial.parent.resolve()} as {file.name}."
                ) from broken
            time.sleep(PAUSE)


def _receive(file: RemoteFile, partial: Path, progress: Progress) -> None:
    """Append to ``partial`` what one connection brings, or start it anew where the server cannot go on."""
    size = _size(partial)
    response = _open(file.address, size)
    if response is None:
        return
    with response:
        done = size if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        with writing.growing(partial, anew=not done) as out:
            progress(file.name, done, total)
            while chunk := _read(response):
                out.write(chunk)
                done += len(chunk)
                progress(file.name, done, total)
    if total is not None and done < total:
        raise _NetworkError(f"the connection ended after {done:,} of {total:,} bytes")


def _open(address: str, start: int) -> http.client.HTTPResponse | None:
    """Return the answer of the server from byte ``start`` on; None if it says that nothing follows."""
    headers = {"User-Agent": f"autonovel/{__version__}"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        request = urllib.request.Request(address, headers=headers)
        response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT)
        return response
    except urllib.error.HTTPError as error:
        error.close()
        if start and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return None  # whole already, or too long; the checksum tells which
        raise _NetworkError(f"the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _NetworkError(str(getattr(error, "reason", error))) from error


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _NetworkError(f"the connection broke ({error})") from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
