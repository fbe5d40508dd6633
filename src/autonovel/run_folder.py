"""The run folder: whatever is on disk is whole, also after a kill.

Documents are replaced atomically and journals appended line by line, by ``writing``, which does every write; a journal
is repaired on opening if its last line is torn; a lock keeps a second process out and dies with its owner, however
that died.
"""

import contextlib
import json
import os
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from autonovel import __version__, writing
from autonovel.errors import RunFolderError, UsageError
from autonovel.writing import PARTIAL

FORMAT = 1
LOCK = ".lock"
FINISHED = "stage.json"  # in the folder of a stage that is done
ADVICE = "Free space or choose another folder with --out; what was finished before is kept."
LABELS, REFINED = "labels.csv", "refined.json"  # what a run that goes on from another one has before anything else
CACHE = "cache"  # a folder of what can be made again
SYSTEMS = "systems"  # further systems of a comparison, each in a folder with a lock of its own
RESULTS = "results.json"


def replace_file(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step: readers see the old file or the new one, never a part."""
    _check_still_there(path)
    with explained(path):
        writing.replace_file(path, content)


def write_json(path: Path, content: Any) -> None:
    """Put ``content`` at ``path`` as readable JSON, atomically."""
    replace_file(path, (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """Return the JSON document at ``path``, or say why it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunFolderError(f"{path} is missing; is {path.parent} the folder of a finished run?") from error
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}). Restore it, or start anew with --overwrite.") from error


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
        _check_still_there(self.path)
        with explained(self.path):
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


class RunFolder:
    """A locked run folder.  Make one with ``create`` or ``resume``, and close it (or use ``with``)."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, path: Path, overwrite: bool = False) -> "RunFolder":
        """Return a new, empty, locked run folder; an existing one is replaced only if told so."""
        with explained(path):
            there, is_folder = path.exists(), path.is_dir()
            begun = is_folder and not _barely_begun(path)
        if there and not is_folder:
            raise UsageError(f"{path} is a file; choose another folder with --out.")
        if begun:
            if not overwrite:
                raise UsageError(
                    f"{path} already exists. Go on with it by --resume, replace it by --overwrite, "
                    "or choose another folder with --out."
                )
            if not _is_run(path):
                raise UsageError(f"{path} is not a run folder, so --overwrite does not touch it. Choose another --out.")
        with explained(path):
            writing.make_folder(path)
        folder = cls(path, _lock(path))
        try:
            _empty(path, keep_cache=not begun)
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def resume(cls, path: Path) -> "RunFolder":
        """Return an existing run folder, locked, after checking its format.

        A run that was killed before it wrote anything is begun anew.
        """
        if path.is_dir() and _barely_begun(path):
            return cls.create(path)
        facts = check_format(path)
        folder = cls(path, _lock(path))
        if "finished" not in facts:  # beside a finished one, reports and corrections may be under way
            try:
                sweep(path)
            except BaseException:
                folder.close()
                raise
        return folder

    def close(self) -> None:
        """Give up the lock."""
        self._lock.close()

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _barely_begun(path: Path) -> bool:
    """Tell whether the folder holds nothing, or only what a run killed in its first moments leaves."""
    there = {entry.name for entry in path.iterdir()}
    first = {"run.json" + PARTIAL, *(name + ending for name in (LABELS, REFINED) for ending in ("", PARTIAL))}
    return there <= {LOCK, CACHE} | (first if LOCK in there else set())  # without a lock they are somebody else's


def _is_run(path: Path) -> bool:
    """Tell whether ``path`` is a run of ours, also one whose ``run.json`` is damaged or gone."""
    if (path / LOCK).exists() and ((path / "stages").is_dir() or (path / "metrics.jsonl").exists()):
        return True
    try:
        return "format" in read_json(path / "run.json")
    except (RunFolderError, TypeError):
        return False


def _empty(path: Path, keep_cache: bool = False) -> None:
    """Delete a run.

    ``results.json`` goes first, so that what a kill leaves is not taken for a finished run, and ``run.json`` last, so
    that --overwrite still accepts it.
    """
    entries = sorted(path.iterdir(), key=lambda entry: (entry.name != RESULTS, entry.name == "run.json", entry.name))
    with explained(path):
        for entry in entries:
            if entry.name != LOCK and not (keep_cache and entry.name == CACHE):
                writing.remove(entry)


def sweep(path: Path) -> None:
    """Remove what a killed run was writing in the folder ``path``, which the caller has locked.

    Systems of a comparison have a lock of their own and are left to its owner; the cache is for many processes.
    """
    for entry in sorted(path.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            if entry.name not in (CACHE, SYSTEMS):
                sweep(entry)
        elif entry.name.endswith(PARTIAL):
            with explained(entry):
                writing.remove(entry)


def check_format(path: Path) -> dict[str, Any]:
    """Return ``run.json`` of the run at ``path``, or say why this version cannot use it."""
    if not path.is_dir():
        raise RunFolderError(f"there is no run folder {path}. Name the folder of a run that was started.")
    facts = read_json(path / "run.json")
    found = facts.get("format") if isinstance(facts, dict) else None
    if found != FORMAT:
        versions = facts.get("versions") if isinstance(facts, dict) else None
        writer = versions.get("autonovel") if isinstance(versions, dict) else None
        by = f" (written by autonovel {str(writer)[:20]})" if writer else ""
        raise RunFolderError(
            f"{path} has run-folder format {str(found)[:40]}{by}; this version, {__version__}, reads format {FORMAT}. "
            "Use the version that wrote it, or start anew with --overwrite."
        )
    return dict(facts)


def subfolder_lock(path: Path, patience: float = 5.0) -> RunFolder:
    """Return ``path`` as a locked folder of its own, waiting a little for a dying owner to let go."""
    _check_still_there(path)
    with explained(path):
        writing.make_folder(path)
    return RunFolder(path, _lock(path, patience))


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


def _lock(path: Path, patience: float = 0.0) -> IO[bytes]:
    """Return the open lock file of ``path``; the system frees it when the process ends, killed or not."""
    with explained(path):
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


def _check_still_there(path: Path) -> None:
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
    try:
        return not os.fstat(file.fileno()).st_nlink
    except ValueError:  # another thread has let go of it meanwhile
        return False


@contextlib.contextmanager
def explained(path: Path, advice: str = ADVICE) -> Iterator[None]:
    """Turn the system's refusal to write into an error that says where and what to do."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error.strerror or error}. {advice}") from error
