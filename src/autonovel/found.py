"""What a finished run found, read from its folder without torch."""

import csv
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autonovel.errors import RunFolderError
from autonovel.run_folder import check_format, read_json
from autonovel.sorting import JUNK, JUNK_NAME, UNREADABLE, Sorting
from autonovel.spreadsheet import plain_rows


def has_class(row: Mapping[str, str]) -> bool:
    """Tell whether a row of ``discovery.csv`` is that of an image in a class, which the model has seen."""
    return row["class_id"] not in ("", "-1")


class FoundRun:
    """A finished run as its training left it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts = check_format(folder)
        if "finished" not in self.facts:
            raise RunFolderError(f"{folder} is not finished. Go on with it first (--resume).")

    @cached_property
    def table(self) -> list[dict[str, str]]:
        """Return ``discovery.csv`` as it was found: a row per input file."""
        try:
            with (self.folder / "discovery.csv").open(newline="", encoding="utf-8") as file:
                return plain_rows(csv.DictReader(file))
        except (OSError, ValueError, csv.Error) as error:
            raise RunFolderError(f"{self.folder / 'discovery.csv'} cannot be read ({error}).") from error

    @cached_property
    def found(self) -> Sorting:
        """Return the sorting before any edit."""
        names, n_known = found_classes(self.folder)
        try:
            ids = [row["id"] for row in self.table]
            numbers = [_class_number(row) for row in self.table]
        except (KeyError, ValueError) as error:
            raise RunFolderError(f"{self.folder / 'discovery.csv'} is damaged ({error}).") from error
        return Sorting.found(ids, numbers, names, n_known)

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Return which rows are images that the model has seen: neither unreadable nor junk since before the run."""
        return np.array([has_class(row) for row in self.table], dtype=bool)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """Return the model's confidence in the class it found, 0 where there is none."""
        return np.array([float(row["confidence"] or 0) for row in self.table])


def _class_number(row: Mapping[str, str]) -> int:
    if has_class(row):
        return int(row["class_id"])
    return JUNK if row["status"] == JUNK_NAME else UNREADABLE


def found_classes(folder: Path) -> tuple[Sequence[str], int]:
    """Return the names of the classes as a run found them, whatever they are called now, and how many are known."""
    document = read_json(folder / "classes.json")
    try:
        entries = [*document["classes"], *document.get("gone", [])]
        names = {e["id"]: e.get("found_as", e.get("name")) for e in entries}
        n_known = sum(entry["kind"] == "known" for entry in document["classes"])
        found = [names[number] for number in sorted(names) if names[number] is not None]
    except (KeyError, TypeError) as error:
        raise RunFolderError(f"{folder / 'classes.json'} is damaged ({error!r}).") from error
    return found, n_known
