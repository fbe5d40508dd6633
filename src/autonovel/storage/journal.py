"""Journals: files of JSON lines that only grow, whole up to the last line also after a kill."""

import json
from pathlib import Path
from typing import Any

from autonovel.errors import RunFolderError, writes_explained
from autonovel.storage import writing
from autonovel.storage.documents import replace_file
from autonovel.storage.folder_lock import check_still_there


class Journal:
    """A file of JSON lines that only grows.

    A last line torn by a kill is left out on reading and cut off before the first line is added: who only
    reads never writes, since another process may be writing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        content = path.read_bytes() if path.exists() else b""
        self.lines = _whole_lines(content, path)
        self._torn = not content.endswith(b"\n") and bool(content)

    def append(self, line: dict[str, Any]) -> None:
        """Add a line and wait until it is on disk."""
        if self._torn:
            self._rewrite()
        check_still_there(self.path)
        with writes_explained(self.path):
            writing.append(self.path, _encode(line))
        self.lines.append(line)

    def rewind(self, stage: str, epoch: int) -> None:
        """Forget the lines of ``stage`` from ``epoch`` on: they will be written again."""
        kept = [line for line in self.lines if line.get("stage") != stage or line.get("epoch", -1) < epoch]
        if kept != self.lines:
            self.lines = kept
            self._rewrite()

    def _rewrite(self) -> None:
        replace_file(self.path, b"".join(map(_encode, self.lines)))
        self._torn = False


def _encode(line: dict[str, Any]) -> bytes:
    return (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _whole_lines(content: bytes, path: Path) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    raw = content.split(b"\n")
    for number, line in enumerate(raw):
        try:
            entry = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError) as error:
            if number < len(raw) - 1:
                raise RunFolderError(f"line {number + 1} of {path} is damaged ({error}).") from error
            entry = None  # torn by a kill while it was written
        if isinstance(entry, dict):
            lines.append(entry)
    return lines
