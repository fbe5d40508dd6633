"""Every write of the package, act by act: make a folder, open, write, sync, rename, remove.

Documents are written beside their place, synced, renamed over it, and then their folder is synced, so that a reader, a
kill and a power cut each meet the old document or the new one.  Journals grow by synced pieces; a piece that cannot be
written whole is cut off again.  Folders that take long to fill are filled beside their place and renamed.

All of it raises ``OSError`` as the system does; callers say what that means for a person.

``watch`` is for the tests of crashes (``tests/faults``): a watcher is told before and after every act, where it may
kill the process, raise what a full disk raises, or record.  Without a watcher an act costs one look at a variable.
"""

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

PARTIAL = ".partial"  # ending of what is not whole yet
PREVIOUS = ".autonovel-previous"  # ending of a folder that is just being replaced
BEFORE, AFTER = "before", "after"
AT_ONCE = 1 << 16  # bytes that a stream hands on together

T = TypeVar("T")


@dataclass(frozen=True)
class Act:
    """One step at the file system.

    Attributes:
        kind: ``folder`` (made), ``open``, ``write``, ``sync``, ``sync-folder``, ``rename``, ``remove`` or ``link``
            (a file put in place by the system: a copy or a link).
        path: what it is done to.
        to: the new place, of ``rename``.
        content: of ``write``.
        mode: of ``open``.
    """

    kind: str
    path: Path
    to: Path | None = None
    content: bytes = b""
    mode: str = ""


Watcher = Callable[[str, Act], None]
_watcher: Watcher | None = None


def watch(watcher: Watcher | None) -> None:
    """Let ``watcher`` be told before and after every act of this process and those forked from it; None ends that."""
    global _watcher
    _watcher = watcher


def _do(act: Act, call: Callable[[], T]) -> T:
    if _watcher is None:
        return call()
    _watcher(BEFORE, act)
    done = call()
    _watcher(AFTER, act)
    return done


class _File(io.FileIO):
    """A file opened for writing.  Where acts are watched, content goes in two pieces, as it may on a full disk."""

    def __init__(self, path: Path, mode: str) -> None:
        self.path, self._rest = path, False
        _do(Act("open", path, mode=mode), lambda: io.FileIO.__init__(self, path, mode))

    def write(self, content: object) -> int:
        """Write ``content`` or its beginning; return how many bytes were written."""
        if _watcher is None:
            return super().write(content)  # type: ignore[arg-type]
        data = bytes(memoryview(content))  # type: ignore[arg-type]
        if not self._rest:
            data = data[: max(len(data) // 2, 1)]
        self._rest = not self._rest and len(data) > 0
        return _do(Act("write", self.path, content=data), lambda: io.FileIO.write(self, data))

    def sync(self) -> None:
        """Wait until the content is on disk."""
        _do(Act("sync", self.path), lambda: os.fsync(self.fileno()))


def _write_all(file: _File, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


def make_folder(path: Path) -> None:
    """Make a folder with those above it, each on disk before anything is put into it."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        if path.parent == path:
            break
        path = path.parent
    for folder in reversed(missing):
        _do(Act("folder", folder), lambda folder=folder: folder.mkdir(exist_ok=True))  # type: ignore[misc]
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the system knows how to."""
    if os.name != "nt":
        _do(Act("sync-folder", folder), lambda: _sync_folder(folder))


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rename(path: Path, to: Path) -> None:
    """Give a file or folder another name, in place of a file or an empty folder that has it."""
    _do(Act("rename", path, to), lambda: os.replace(path, to))


def replace_file(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step: readers see the old file or the new one, never a part."""
    make_folder(path.parent)
    beside = path.with_name(path.name + PARTIAL)
    with _cleared_on_failure(beside):
        write_file(beside, content)
        rename(beside, path)
    sync_folder(path.parent)


class Stream:
    """A file that is written piece by piece.  What the disk did not take is not tried again on closing."""

    def __init__(self, file: _File) -> None:
        self._file, self._waiting = file, bytearray()

    def write(self, content: bytes) -> int:
        """Add ``content``; small pieces wait for others."""
        self._waiting += content
        if len(self._waiting) >= AT_ONCE:
            self.flush()
        return len(content)

    def flush(self) -> None:
        """Hand everything to the system."""
        ready, self._waiting = bytes(self._waiting), bytearray()
        _write_all(self._file, ready)


@contextlib.contextmanager
def replacing(path: Path, beside: Path | None = None, keep: bool = False) -> Iterator[Stream]:
    """Give a file to write into, which is put at ``path`` in one step at the end of the block.

    Args:
        path: where it goes.
        beside: where it is written meanwhile; ``PATH.partial`` by default.
        keep: leave it there where the block fails.
    """
    make_folder(path.parent)
    beside = beside or path.with_name(path.name + PARTIAL)
    with contextlib.nullcontext() if keep else _cleared_on_failure(beside):
        with _File(beside, "wb") as file:
            stream = Stream(file)
            try:
                yield stream
            except BaseException:
                if keep:
                    stream.flush()
                raise
            stream.flush()
            file.sync()
        rename(beside, path)
    sync_folder(path.parent)


@contextlib.contextmanager
def growing(path: Path, anew: bool) -> Iterator[Stream]:
    """Give a file to add to, or one begun ``anew``: a download that may break off and goes on another time."""
    make_folder(path.parent)
    with _File(path, "wb" if anew else "ab") as file:
        stream = Stream(file)
        try:
            yield stream
        finally:
            stream.flush()
        file.sync()


@contextlib.contextmanager
def _cleared_on_failure(beside: Path) -> Iterator[None]:
    """Remove what was written beside where it cannot be finished: a full disk has better uses for the space."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def write_file(path: Path, content: bytes, sync: bool = True) -> None:
    """Write a file and, with ``sync``, wait until its content is on disk; its name is, once its folder is synced."""
    with _File(path, "wb") as file:
        _write_all(file, content)
        if sync:
            file.sync()


def append(path: Path, content: bytes) -> None:
    """Add ``content`` to the end of a file and wait until it is on disk; where that fails, nothing was added."""
    make_folder(path.parent)
    new = not path.exists()
    with _File(path, "ab") as file:
        before = os.fstat(file.fileno()).st_size
        try:
            _write_all(file, content)
            file.sync()
            if new:
                sync_folder(path.parent)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file.fileno(), before)
            raise


def open_lock(path: Path) -> IO[bytes]:
    """Return a file that holds nothing and is there to be locked."""
    return _do(Act("open", path, mode="ab"), lambda: path.open("ab"))


def open_log(path: Path) -> IO[str]:
    """Return a text file that only grows and that nothing depends on."""
    make_folder(path.parent)
    return io.TextIOWrapper(io.BufferedWriter(_File(path, "ab")), encoding="utf-8", line_buffering=True)


def open_records(path: Path, size: int) -> int:
    """Return an open file of ``size`` bytes for ``write_at``; made anew it is a hole, and takes room as it fills."""

    def opened() -> int:
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            if os.fstat(file).st_size != size:
                os.ftruncate(file, size)
        except OSError:
            os.close(file)
            raise
        return file

    return _do(Act("open", path, mode="r+b"), opened)


def write_at(file: int, content: bytes, position: int, path: Path) -> None:
    """Write into the middle of an open file, in which a torn record is known by its checksum."""
    left = memoryview(content)
    while left:
        piece, start = left, position

        def write(piece: memoryview = piece, start: int = start) -> int:
            if hasattr(os, "pwrite"):
                return os.pwrite(file, piece, start)
            os.lseek(file, start, os.SEEK_SET)  # pragma: no cover - Windows
            return os.write(file, piece)  # pragma: no cover

        written = _do(Act("write", path), write)
        left, position = left[written:], position + written


def place_file(path: Path, how: Callable[[Path], object]) -> None:
    """Let ``how`` put a file at ``path``: a copy or a link that the system makes."""
    _do(Act("link", path), lambda: how(path))


def copy_tree(source: Path, target: Path, left_out: Callable[[str], bool]) -> None:
    """Copy all files under ``source`` whose name is not ``left_out`` into the folder ``target``."""
    make_folder(target)
    for entry in sorted(source.iterdir()):
        if left_out(entry.name):
            continue
        if entry.is_dir() and not entry.is_symlink():
            copy_tree(entry, target / entry.name, left_out)
        else:
            place_file(target / entry.name, lambda to, entry=entry: shutil.copy2(entry, to))  # type: ignore[misc]


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder; what is not there is no error."""
    if path.is_dir() and not path.is_symlink():
        for entry in sorted(path.iterdir()):
            remove(entry)
        _do(Act("remove", path), path.rmdir)
    elif path.exists() or path.is_symlink():
        _do(Act("remove", path), lambda: path.unlink(missing_ok=True))


@contextlib.contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder to fill, which takes the place of ``path`` at the end of the block.

    What was at ``path`` goes after that; of a kill between, the next call clears up.
    """
    beside, previous = (path.with_name(path.name + ending) for ending in (PARTIAL, PREVIOUS))
    try:
        remove(beside)
        make_folder(beside)
        yield beside
        if path.exists():
            remove(previous)
            rename(path, previous)
        rename(beside, path)
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(beside)
            if previous.exists() and not path.exists():
                rename(previous, path)
        raise
    remove(previous)
