"""The files beside a page that is too large to hold them: sheets of thumbnails and names, in a folder of their own.

``report.html`` has ``report/KEY/``, where KEY is a checksum of the content.  A report made anew gets a folder of its
own before the page is replaced, and the old one goes after that: a page never meets the sheets of another.
"""

import contextlib
import hashlib
import re
from pathlib import Path
from urllib.parse import quote

from autonovel.errors import UsageError, writes_explained
from autonovel.storage import writing
from autonovel.storage.folder_lock import LOCK
from autonovel.storage.run_folder import subfolder_lock

ADVICE = "Free space, or choose another place with --to."
MAKING = "making"
_OURS = re.compile(rf"[0-9a-f]{{12}}|{MAKING}|{re.escape(LOCK)}")


class FilesBeside:
    """A folder that is filled, then given its name; locked, so that two reports are not written into each other.

    Args:
        page: the HTML file that the files are for.
    """

    def __init__(self, page: Path) -> None:
        self.folder = page.with_suffix("")
        check_ours(self.folder)
        self.making = self.folder / MAKING
        self.sum = hashlib.blake2b(digest_size=6)
        self.lock = subfolder_lock(self.folder, patience=0)
        with writes_explained(self.making, ADVICE):
            _remove(self.making)
            writing.make_folder(self.making)

    def add(self, name: str, content: bytes) -> None:
        """Write one file."""
        self.sum.update(f"{name} {len(content)} ".encode() + content)
        with writes_explained(self.making / name, ADVICE):
            writing.write_file(self.making / name, content)

    def finish(self) -> str:
        """Give the folder its name, and return its address for the page."""
        key = self.sum.hexdigest()
        with writes_explained(self.folder / key, ADVICE):
            if (self.folder / key).exists():
                _remove(self.making)  # the same content is there
            else:
                writing.sync_folder(self.making)
                writing.rename(self.making, self.folder / key)
                writing.sync_folder(self.folder)
        return f"{quote(self.folder.name)}/{key}"

    def close(self) -> None:
        """Remove what was not finished, and give up the lock."""
        try:
            with contextlib.suppress(OSError):  # the next report removes it
                _remove(self.making)
        finally:
            self.lock.close()


def check_ours(folder: Path) -> None:
    """Say so if ``folder``, where files of a report would go, holds something else."""
    if folder.exists() and not (folder.is_dir() and all(_OURS.fullmatch(entry.name) for entry in folder.iterdir())):
        raise UsageError(
            f"{folder} holds something other than files of a report, so none are put there. Choose another --to."
        )


def remove_others(page: Path, kept: str | None) -> None:
    """Remove the files of earlier reports beside ``page``, all but those at the address ``kept`` (None: all)."""
    folder = page.with_suffix("")
    if not folder.is_dir():
        return
    entries = list(folder.iterdir())
    if not entries or not all(_OURS.fullmatch(entry.name) for entry in entries):
        return  # not a folder of ours
    with contextlib.suppress(OSError):  # the page is there; the next report tries again
        for entry in entries:
            if kept is None or entry.name != kept.rsplit("/", 1)[-1]:
                _remove(entry)
        if kept is None:
            writing.remove(folder)


def _remove(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        writing.remove(folder)
