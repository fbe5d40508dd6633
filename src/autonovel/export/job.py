"""What every export works on: the corrected rows, and image files put where they are wanted."""

import errno
import io
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from autonovel.data.decode import UnreadableError, quiet
from autonovel.data.files import open_file
from autonovel.data.headers import read_header
from autonovel.editing.edited import EditedRun
from autonovel.editing.sorting import UNREADABLE
from autonovel.errors import InputError, UsageError
from autonovel.run_images import RunImages
from autonovel.storage import writing

LONGEST = 150  # characters of a file name
HOW = ("copy", "hardlink", "symlink")
_UNFIT = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Export:
    """A run to export.

    Attributes:
        run: the run.
        images: its pictures.
        how: how image files are put in place: ``copy``, ``hardlink`` or ``symlink``.
        dest: where the export will be in the end.
    """

    run: EditedRun
    images: RunImages
    how: str
    dest: Path

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """Return ``discovery.csv`` with all edits made."""
        return self.run.rows()

    @cached_property
    def class_names(self) -> list[str]:
        """Return the names of all classes in the order of their numbers."""
        return [name for _, name in sorted(self.run.sorting.names.items())]

    def check_images(self) -> None:
        """Say so if there are no images to export."""
        if self.images.missing:
            raise UsageError(f"this export needs the images. {self.images.missing} Export csv instead, or onnx.")

    def unreadable(self, row: int) -> bool:
        """Tell whether the file of an image could not be read."""
        return bool(self.run.sorting.class_of[row] == UNREADABLE)

    def kept(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the images that are in a class, with their rows; junk and unreadable files are not."""
        for number, row in enumerate(self.rows):
            if row["class_name"]:
                yield number, row

    def watched(self, rows: Iterable[tuple[int, dict[str, str]]]) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield ``rows`` with a bar and the time left, where somebody watches."""
        from rich.console import Console
        from rich.progress import track

        console = Console(stderr=True)
        return iter(track(rows, "writing images", len(self.rows), console=console, disable=not console.is_terminal))

    def left_out(self) -> str:
        """Return in words what ``kept`` leaves out."""
        junk = sum(row["status"] == "junk" for row in self.rows)
        other = sum(not row["class_name"] for row in self.rows) - junk
        parts = [f"{junk:,} marked as junk"] * bool(junk) + [f"{other:,} that could not be read"] * bool(other)
        return f" Left out: {' and '.join(parts)}." if parts else ""

    def put(self, row: int, folder: Path, names: "FreeNames") -> str:
        """Put the file of an image into ``folder`` and return its name there; the original is never touched.

        An image that is no file is written as PNG.
        """
        source = self.images.file(row)
        line = self.run.table[row]
        if source is None:
            name = names.free(fit(line["id"]) + ".png")
            encoded = io.BytesIO()
            self.images.picture(row).save(encoded, "PNG")
            writing.write_file(folder / name, encoded.getvalue(), sync=False)
            return name
        name = names.free(fit(PurePosixPath(line["path"].replace("\\", "/")).name))
        self._check_image(source)
        try:
            if self.how == "symlink":
                writing.place_file(folder / name, lambda to: to.symlink_to(source.resolve(strict=True)))
            elif self.how == "hardlink":
                writing.place_file(folder / name, lambda to: os.link(source.resolve(strict=True), to))
            else:
                writing.place_file(folder / name, lambda to: shutil.copy2(source, to))
        except FileNotFoundError as error:
            raise InputError(f"{source} is gone. Say where the images are with --data DIR.") from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                raise  # of the place it goes to, which is told as such
            hint = " Hard links need one file system: use --files copy." if self.how == "hardlink" else ""
            raise UsageError(f"{source} cannot be put into {folder}: {error.strerror or error}.{hint}") from error
        return name

    def _check_image(self, source: Path) -> None:
        """Refuse to hand on what is no image: a run folder from elsewhere may name any file of this machine."""
        try:
            with quiet(), open_file(os.fspath(source)) as file:
                read_header(file)
        except FileNotFoundError as error:
            raise InputError(f"{source} is gone. Say where the images are with --data DIR.") from error
        except (UnreadableError, OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{source} is not the image it was and is not exported: {reason}.") from error


def fit(name: str) -> str:
    """Return ``name`` as a file name that every system takes."""
    tidy = _UNFIT.sub("_", name).rstrip(" .")
    stem, ending = os.path.splitext(tidy)
    if len(tidy) > LONGEST and len(ending) < LONGEST:
        tidy = stem[: LONGEST - len(ending)] + ending
    tidy = tidy[:LONGEST].rstrip(" .")
    if not tidy or tidy.startswith(".") or _RESERVED.fullmatch(tidy):
        tidy = "_" + tidy
    return tidy


class FreeNames:
    """Names in a folder, each given once; names that differ in case or ending alone count as the same."""

    def __init__(self, by_stem: bool = False) -> None:
        self.taken: set[str] = set()
        self.tried: dict[str, int] = {}  # how far each name has been numbered
        self.by_stem = by_stem

    def free(self, name: str) -> str:
        """Return ``name``, or one with a number in it if it is taken."""
        first, ending = os.path.splitext(name)
        stem, number = first, self.tried.get(name, 0)
        while number or self._key(stem, ending) in self.taken:
            number = max(number, 1) + 1
            stem = f"{first} ({number})"
            if self._key(stem, ending) not in self.taken:
                self.tried[name] = number
                break
        self.taken.add(self._key(stem, ending))
        return stem + ending

    def _key(self, stem: str, ending: str) -> str:
        return (stem if self.by_stem else stem + ending).casefold()
