"""``autonovel export``: one door to all formats, which keeps what is already there."""

from collections.abc import Callable
from pathlib import Path

from autonovel.editing.edited import open_run
from autonovel.errors import RunFolderError, UsageError
from autonovel.export import fiftyone, folders, labelstudio, tables
from autonovel.export.job import HOW, Export
from autonovel.file_names import check_file, check_folder
from autonovel.run_images import RunImages
from autonovel.storage import writing

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
SINGLE_FILES = {"csv": "CSV", "onnx": "an ONNX model"}  # all others are folders


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
    if to in SINGLE_FILES:
        check_file(dest, SINGLE_FILES[to], (f".{to}",))
    else:
        check_folder(dest, f"an export to {to}")
    run = open_run(folder)
    images = RunImages(run, data)
    _check_place(dest, to, folder, images)
    _check_free(dest, to, overwrite)
    job = Export(run, images, files, dest)
    try:
        if to in SINGLE_FILES:
            told = FORMATS[to](job, dest)
        else:
            with writing.replacing_folder(dest) as beside:
                told = FORMATS[to](job, beside)
                writing.write_file(beside / MARK, b"written by autonovel export\n")
    except OSError as error:
        raise RunFolderError(
            f"cannot write {dest}: {error.strerror or error}. Free space, or choose another DEST; what was there is "
            "kept."
        ) from error
    print(f"Wrote {dest}: {told}")


def _check_place(dest: Path, to: str, run: Path, images: RunImages) -> None:
    """Say so if ``dest`` lies where the run or the originals are: neither is ever touched."""
    place = dest.resolve()
    if place.is_relative_to(run.resolve()):
        raise UsageError(f"{dest} lies inside the run folder {run}. Choose another DEST.")
    originals = images.folder
    if originals and place.is_relative_to(originals.resolve()) and (to not in SINGLE_FILES or dest.exists()):
        raise UsageError(f"{dest} lies among the images in {originals}, which stay untouched. Choose another DEST.")


def _check_free(dest: Path, to: str, overwrite: bool) -> None:
    """Say so if something is at ``dest`` that must not be replaced: of folders, only exports of ours ever are."""
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
