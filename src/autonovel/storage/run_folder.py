"""The run folder: whatever is on disk is whole, also after a kill.

Its documents are replaced atomically (``documents.py``), its journals grow line by line (``journal.py``), and a lock
keeps a second process out (``folder_lock.py``).  Here it is begun, taken up again, swept and checked.
"""

from pathlib import Path
from typing import IO, Any

from autonovel import __version__
from autonovel.errors import RunFolderError, UsageError, writes_explained
from autonovel.storage import writing
from autonovel.storage.documents import read_json
from autonovel.storage.folder_lock import LOCK, check_still_there, take_lock
from autonovel.storage.writing import PARTIAL

FORMAT = 1
FINISHED = "stage.json"  # in the folder of a stage that is done
LABELS, REFINED = "labels.csv", "refined.json"  # what a run that goes on from another one has before anything else
CACHE = "cache"  # a folder of what can be made again
SYSTEMS = "systems"  # further systems of a comparison, each in a folder with a lock of its own
RESULTS = "results.json"
MOMENT = 10.0  # seconds in which a process that finds nothing left to do in a run lets go of it


class RunFolder:
    """A locked run folder.  Make one with ``create`` or ``resume``, and close it (or use ``with``)."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, path: Path, overwrite: bool = False) -> "RunFolder":
        """Return a new, empty, locked run folder; an existing one is replaced only if told so."""
        with writes_explained(path):
            there, is_folder = path.exists(), path.is_dir()
            begun = is_folder and not _barely_begun(path)
        if there and not is_folder:
            raise UsageError(f"{path} is a file; choose another folder with --out.")
        if begun and not _is_run(path):
            raise UsageError(f"{path} is no run folder and holds other things: it stays so. Choose another --out.")
        if begun and not overwrite:
            raise UsageError(
                f"{path} already exists. Go on with it by --resume, replace it by --overwrite, "
                "or choose another folder with --out."
            )
        with writes_explained(path):
            writing.make_folder(path)
        folder = cls(path, take_lock(path))
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
        finished = "finished" in check_format(path)
        folder = cls(path, take_lock(path, MOMENT if finished else 0))  # who has a finished one mostly just looks at it
        try:
            if "finished" not in check_format(path):  # beside a finished one, reports and corrections may be under way
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
    with writes_explained(path):
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
            with writes_explained(entry):
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
    check_still_there(path)
    with writes_explained(path):
        writing.make_folder(path)
    return RunFolder(path, take_lock(path, patience))


def system_folder(run: Path, system: str, primary: object) -> Path:
    """Return where a system of the run at ``run`` has its stages and journal: the one that delivers, at the top."""
    return run if system == primary else run / "systems" / system
