"""Decoded images in a memory-mapped file, filled as images are first decoded.

Every record carries the key of what it was made from and a checksum over pixels and key.  A record that
was never written, was torn by a kill or a power cut, or belongs to a file that has changed since fails
that check and is decoded again: nothing needs a lock, an order of writes or a repair.
"""

import mmap
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autonovel.storage import writing

KEY = 16
CHECK = 4
SHARE_OF_FREE = 0.5  # of the disk that a cache may take


class PixelCache:
    """``n`` records of ``size`` bytes each.  Workers each open it for themselves."""

    def __init__(self, path: Path, n: int, size: int) -> None:
        self.path, self.n, self.size = path, n, size
        self.record = size + KEY + CHECK
        self._file: int | None = None
        self._map: mmap.mmap | None = None
        self._closed = False  # where the disk is full, or the file cannot be opened: then images are decoded each time

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": None, "_map": None}

    @property
    def bytes_needed(self) -> int:
        """Return how large the file becomes."""
        return self.n * self.record

    def fits(self) -> bool:
        """Tell whether the disk has room for it beside other things, or holds the file already."""
        if self.path.exists() and self.path.stat().st_size == self.bytes_needed:
            return True
        return self.bytes_needed <= SHARE_OF_FREE * shutil.disk_usage(self.path.parent).free

    def _open(self) -> mmap.mmap:
        if self._map is None:
            self._file = writing.open_records(self.path, self.bytes_needed)
            self._map = mmap.mmap(self._file, self.bytes_needed, access=mmap.ACCESS_READ)
        return self._map

    def _can_be_opened(self) -> bool:
        if self._map is None and not self._closed:
            try:
                self._open()
            except OSError:
                self._closed = True
        return self._map is not None

    def get(self, slot: int, key: bytes) -> NDArray[np.uint8] | None:
        """Return the pixels in ``slot`` if they are those of ``key`` and whole."""
        if not self._can_be_opened():
            return None
        start = slot * self.record
        record = self._open()[start : start + self.record]
        body, check = record[:-CHECK], record[-CHECK:]
        if body[self.size :] != key or zlib.crc32(body) != int.from_bytes(check, "little"):
            return None
        return np.frombuffer(body, np.uint8, self.size)

    def put(self, slot: int, key: bytes, pixels: NDArray[np.uint8]) -> None:
        """Keep ``pixels`` in ``slot``; once the disk is full, nothing more is kept."""
        if self._closed or not self._can_be_opened():
            return
        assert self._file is not None
        body = pixels.tobytes() + key
        try:
            record = body + zlib.crc32(body).to_bytes(CHECK, "little")
            writing.write_at(self._file, record, slot * self.record, self.path)
        except OSError:
            self._closed = True  # written through the file, not the map, so that a full disk is an error, not a signal

    def release(self) -> None:
        """Let go of the mapped pages, which count as this process's memory; the system keeps what it has room for."""
        if self._map is not None and hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED)
