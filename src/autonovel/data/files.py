"""Where many encoded images lie, packed so that a million of them cost little and forked workers share the memory."""

import errno
import hashlib
import io
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

WHOLE = -1  # offset of a file that is not part of a larger one
LARGEST = 2 << 30  # bytes of a file of its own; Pillow refuses the number of pixels that a larger one would hold


def _handle(path: str | bytes) -> tuple[int, int]:
    """Open a file to read; return it and its size.

    What is no file, such as a pipe, is an error at once instead of a wait without end.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "a folder, pipe or device, not a file")
    return handle, status.st_size


def open_file(path: str | bytes) -> BinaryIO:
    """Return a file opened to look at its beginning."""
    return os.fdopen(_handle(path)[0], "rb")


def read_file(path: str | bytes) -> bytes:
    """Return the bytes of a file, which must be of a size that an image can have."""
    handle, size = _handle(path)
    with os.fdopen(handle, "rb", buffering=0) as file:
        if size > LARGEST:
            raise OSError(errno.EFBIG, f"larger than {LARGEST >> 30} GB")
        return file.readall()


def printable(path: str) -> str:
    """Return a path as text; bytes of a name that are no UTF-8 appear as their hexadecimal numbers."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


class Entry(NamedTuple):
    """One encoded image.

    Attributes:
        id: its stable name.
        path: of its file, below the root; of the shard it lies in.
        offset: where it begins in that file; ``WHOLE`` for a file of its own.
        length: in bytes.
        changed: when its file was last written, in ns.
    """

    id: str
    path: str
    offset: int
    length: int
    changed: int


@dataclass(frozen=True)
class FileTable:
    """Encoded images by number.

    Attributes:
        root: folder of all paths.
        text: ids and paths, one after the other; Python's own strings would be copied page by page into
            every forked worker as their reference counts change.
        ends: n×2, the ends of each id and path in ``text``.
        numbers: n×3: offset, length and time of change.
        slots: number of each image in the table that was first made; a subset keeps them.
        total: images in the table that was first made.
    """

    root: str
    text: bytes
    ends: NDArray[np.int64]
    numbers: NDArray[np.int64]
    slots: NDArray[np.int64]
    total: int

    @classmethod
    def of(cls, root: str, entries: Iterable[Entry]) -> "FileTable":
        """Return the table of ``entries``."""
        text, ends, numbers = bytearray(), [], []
        for entry in entries:
            text += os.fsencode(entry.id)
            middle = len(text)
            text += os.fsencode("" if entry.path == entry.id else entry.path)
            ends.append((middle, len(text)))
            numbers.append(entry[2:])
        return cls(
            root,
            bytes(text),
            np.array(ends, np.int64).reshape(-1, 2),
            np.array(numbers, np.int64).reshape(-1, 3),
            np.arange(len(ends)),
            len(ends),
        )

    def __len__(self) -> int:
        return len(self.slots)

    def subset(self, rows: NDArray[np.int64]) -> "FileTable":
        """Return the table of the images ``rows``."""
        return replace(self, slots=self.slots[rows])

    def whole(self) -> "FileTable":
        """Return the table that was first made."""
        return replace(self, slots=np.arange(self.total))

    def entry(self, row: int) -> Entry:
        """Return image number ``row``."""
        name, path = self._names(row)
        return Entry(os.fsdecode(name), os.fsdecode(path), *self.numbers[self.slots[row]].tolist())

    def _names(self, row: int) -> tuple[bytes, bytes]:
        """Return id and path as they are packed."""
        slot = int(self.slots[row])
        begin = int(self.ends[slot - 1, 1]) if slot else 0
        middle, end = self.ends[slot].tolist()
        name = self.text[begin:middle]
        return name, self.text[middle:end] or name

    def read(self, row: int) -> bytes:
        """Return the bytes of image number ``row``."""
        path = os.path.join(os.fsencode(self.root), self._names(row)[1])
        offset, length, _ = self.numbers[self.slots[row]].tolist()
        if offset == WHOLE:
            return read_file(path)
        with open(path, "rb", buffering=0) as file:
            file.seek(offset)
            return file.read(length)

    def open(self, row: int) -> BinaryIO:
        """Return image number ``row`` as an open file, to look at its beginning."""
        entry = self.entry(row)
        return open_file(os.path.join(self.root, entry.path)) if entry.offset == WHOLE else io.BytesIO(self.read(row))

    def key(self, row: int, *target: int) -> bytes:
        """Return 16 bytes that change with the name, size or time of the file, or with what is made of it."""
        return hashlib.blake2b(
            repr((*self.entry(row), *target)).encode(errors="surrogateescape"), digest_size=16
        ).digest()

    def key_of_rows(self, rows: NDArray[np.int64], *target: int) -> str:
        """Return a name for the images ``rows`` in this order and what is made of them, whatever lies beside them."""
        sums = hashlib.blake2b(repr(target).encode(), digest_size=12)
        for row in rows.tolist():
            for name in self._names(row):
                sums.update(len(name).to_bytes(4, "little") + name)
        sums.update(self.numbers[self.slots[rows]].tobytes())
        return sums.hexdigest()

    def key_of_all(self, *target: int) -> str:
        """Return a name for this very list of files and what is made of them."""
        sums = hashlib.blake2b(repr((self.total, *target)).encode(), digest_size=12)
        sums.update(self.text)
        for part in (self.ends, self.numbers, self.slots):
            sums.update(part.tobytes())
        return sums.hexdigest()
