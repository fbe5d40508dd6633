"""The lock of a folder: it keeps a second process out and dies with its owner, however that died.

Whoever holds one also learns from it that the folder was deleted meanwhile, and writes no more.
"""

import os
import time
import weakref
from pathlib import Path
from typing import IO

from autonovel.errors import RunFolderError, writes_explained
from autonovel.storage import writing

LOCK = ".lock"

_LOCKS: weakref.WeakValueDictionary[int, IO[bytes]] = weakref.WeakValueDictionary()


def _held() -> list[IO[bytes]]:
    """Return the locks of this process, also while other threads take some."""
    return [file for one in _LOCKS.valuerefs() if (file := one()) is not None and not file.closed]


def _leave_locks_to_the_parent() -> None:
    """Close the locks a forked worker has inherited, or it would hold them for a moment after its parent was killed."""
    for file in _held():
        os.close(file.fileno())
    _LOCKS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_locks_to_the_parent)


def take_lock(path: Path, patience: float = 0.0) -> IO[bytes]:
    """Return the open lock file of ``path``; the system frees it when the process ends, killed or not."""
    with writes_explained(path):
        file = writing.open_lock(path / LOCK)
    _LOCKS[id(file)] = file
    deadline = time.monotonic() + patience
    while not _try_lock(file):
        if time.monotonic() >= deadline:
            file.close()
            raise RunFolderError(f"{path} is in use by another autonovel process. Wait, or choose another --out.")
        time.sleep(0.1)
    return file


def _try_lock(file: IO[bytes]) -> bool:
    try:
        if os.name == "nt":  # pragma: no cover
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def check_still_there(path: Path) -> None:
    """Raise an error if the folder that this process has locked, and in which ``path`` lies, was deleted meanwhile.

    Otherwise the next write would make it anew, without its beginning, and perhaps in the middle of somebody else's.
    """
    for file in _held():
        folder = Path(file.name).parent
        if path.is_relative_to(folder) and _is_deleted(file):
            raise RunFolderError(
                f"{folder} was deleted or replaced while this process worked in it, so nothing more is written. "
                "Start again, with another --out if it was replaced."
            )


def _is_deleted(file: IO[bytes]) -> bool:
    """Tell whether the open ``file`` has no name any more.

    Another thread may let go of it at any moment: its number is then nobody's, or already another file's.
    """
    try:
        deleted = not os.fstat(file.fileno()).st_nlink
    except (ValueError, OSError):
        if file.closed:
            return False
        raise
    return deleted and not file.closed
