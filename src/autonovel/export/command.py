"""``autonovel export``: one door to all formats, which keeps what is already there."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from autonovel.edited import open_run
from autonovel.errors import RunFolderError, UsageError
from autonovel.export import fiftyone, folders, labelstudio, tables
from autonovel.export.job import HOW, Export
from autonovel.run_images import RunImages

MARK = ".autonovel-export"  # a folder with this file was written by an export, so --overwrite may replace it


def _onnx(job: Export, dest: Path) -> str:
    from autonovel.export.onnx import write  # torch, and packages of an extra

    return write(job, dest)


FORMATS: dict[str, Callable[[Export, Path], str]] = {
    "csv": tables.write,
    "folders": folders.write,
    "fiftyone": fiftyone.write,
    "labelstudio": labelstudio.write,
    "onnx": _onnx,
}
SINGLE_FILES = ("csv", "onnx")


def export_run(
    folder: Path, to: str, dest: Path, files: str = "copy", data: Path | None = None, overwrite: bool = False
) -> None:
    """Write the run at ``folder`` to ``dest`` in the form ``to``, whole or not at all, and say what was written.

    Args:
        folder: a finished run.
        to: one of ``FORMATS``.
        dest: file (csv, onnx) or folder (all others) to write.
        files: how image files get there: ``copy``, ``hardlink`` or ``symlink``.
        data: where the images lie now, if they were moved since.
        overwrite: replace an earlier export at ``dest``.
    """
    if to not in FORMATS:
        raise UsageError(f"--to is {to!r}; choose one of {', '.join(FORMATS)}.")
    if files not in HOW:
        raise UsageError(f"--files is {files!r}; choose one of {', '.join(HOW)}.")
    run = open_run(folder)
    _check_free(dest, to, overwrite)
    beside = dest.with_name(dest.name + ".partial")
    try:
        _remove(beside)
        beside.parent.mkdir(parents=True, exist_ok=True)
        told = FORMATS[to](Export(run, RunImages(run, data), files, dest), beside)
        if to not in SINGLE_FILES:
            (beside / MARK).write_text("written by autonovel export\n", encoding="utf-8")
        if dest.is_dir():
            _remove(dest)
        os.replace(beside, dest)
    except OSError as error:
        raise RunFolderError(f"cannot write {dest}: {error.strerror or error}.") from error
    finally:
        if beside.exists():
            _remove(beside)
    print(f"Wrote {dest}: {told}")


def _check_free(dest: Path, to: str, overwrite: bool) -> None:
    """Say so if something is at ``dest`` that must not be replaced: only an export of ours ever is."""
    if not dest.exists() and not dest.is_symlink():
        return
    single = to in SINGLE_FILES
    if dest.is_dir() and not dest.is_symlink() and not single and not any(dest.iterdir()):
        return
    if not overwrite:
        raise UsageError(f"{dest} already exists. Choose another DEST, or replace it with --overwrite.")
    ours = dest.is_file() if single else (dest / MARK).is_file()
    if not ours:
        kind = "a file" if dest.is_file() else "a folder that no export of autonovel wrote"
        raise UsageError(f"{dest} is {kind}, so --overwrite does not replace it. Choose another DEST.")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
