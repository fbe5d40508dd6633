"""What a finished run found, read from its folder without torch."""

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autonovel.editing.sorting import JUNK, JUNK_NAME, UNREADABLE, Sorting
from autonovel.errors import RunFolderError
from autonovel.spreadsheet import plain_rows
from autonovel.storage.documents import read_json
from autonovel.storage.run_folder import REFINED
from autonovel.storage.shapes import CLASSES, REFINED_FROM, RESULTS, checked, read_shaped, run_facts

COLUMNS = (
    "id", "path", "status", "given_label", "class_id", "class_name", "confidence",
    "second_class", "margin", "nearest_known", "looks_known", "outlier",
)  # fmt: skip
NUMBERS = ("confidence", "margin", "looks_known", "outlier")
LOOKS_KNOWN = 0.5  # mass on known classes from which on an image looks like one of them


def has_class(row: Mapping[str, str]) -> bool:
    """Tell whether a row of ``discovery.csv`` is that of an image in a class, which the model has seen."""
    return row["class_id"] not in ("", "-1")


class FoundRun:
    """A finished run as its training left it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts = run_facts(folder, ())
        if "finished" not in self.facts:
            raise RunFolderError(f"{folder} is not finished. Go on with it first (--resume).")
        run_facts(folder)

    @cached_property
    def table(self) -> list[dict[str, str]]:
        """Return ``discovery.csv`` as it was found: a row per input file."""
        try:
            with (self.folder / "discovery.csv").open(newline="", encoding="utf-8") as file:
                rows = plain_rows(csv.DictReader(file))
        except (OSError, ValueError, csv.Error) as error:
            raise RunFolderError(f"{self.folder / 'discovery.csv'} cannot be read ({error}).") from error
        _check_rows(self.folder / "discovery.csv", rows)
        return rows

    @cached_property
    def found(self) -> Sorting:
        """Return the sorting before any edit."""
        names, n_known = found_classes(self.folder)
        try:
            ids = [row["id"] for row in self.table]
            numbers = [_class_number(row) for row in self.table]
        except (KeyError, ValueError) as error:
            raise RunFolderError(f"{self.folder / 'discovery.csv'} is damaged ({error}).") from error
        beyond = [number for number in numbers if not UNREADABLE <= number < len(names)]
        if beyond:
            raise RunFolderError(
                f"{self.folder / 'discovery.csv'} has images in class {beyond[0]}, and classes.json has {len(names)}."
            )
        return Sorting.found(ids, numbers, names, n_known, self._made_known())

    def _made_known(self) -> list[str]:
        """Return the names of the known classes that corrections of the runs before made so."""
        if not (self.folder / REFINED).exists():
            return []
        about = read_shaped(self.folder / REFINED, REFINED_FROM, ())
        return list(about.get("made_known", about.get("confirmed", [])))  # the former is not in every run

    @cached_property
    def known_again(self) -> dict[int, int]:
        """Return the new classes that may be known ones, since their features lie where those of these do."""
        try:
            told = read_shaped(self.folder / "results.json", RESULTS, ()).get("known_again") or {}
        except RunFolderError:  # a hint, for want of which nobody should be kept from looking
            return {}
        numbers = {name: number for number, name in self.found.names.items()}
        return {numbers[new]: numbers[known] for new, known in told.items() if {new, known} <= numbers.keys()}

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Return which rows are images that the model has seen: neither unreadable nor junk since before the run."""
        return np.array([has_class(row) for row in self.table], dtype=bool)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """Return the model's confidence in the class it found, 0 where there is none."""
        return np.array([float(row["confidence"] or 0) for row in self.table])


def known_look(row: Mapping[str, str]) -> str:
    """Return the known class that an unlabelled image looks like; nothing if it looks new."""
    return "" if row["given_label"] or float(row["looks_known"] or 0) <= LOOKS_KNOWN else row["nearest_known"]


def common_look(looks: Sequence[str]) -> tuple[str, float]:
    """Return the known class that more than half of a class's images look like, and their share; nothing if none is.

    Args:
        looks: ``known_look`` of every image of the class.
    """
    (like, n), *_ = Counter(look for look in looks if look).most_common(1) or [("", 0)]
    return (like, n / len(looks)) if 2 * n > len(looks) else ("", 0.0)


def _check_rows(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Say so if a table is not what a run writes: all columns, and finite numbers where numbers stand."""
    for line, row in enumerate(rows, 2):
        lacking = [name for name in COLUMNS if not isinstance(row.get(name), str)]
        if lacking:
            raise RunFolderError(f"{path} is damaged: row {line} lacks {', '.join(lacking)}.")
        for name in NUMBERS:
            try:
                right = not row[name] or math.isfinite(float(row[name]))
            except ValueError:
                right = False
            if not right:
                raise RunFolderError(f"{path} is damaged: {name} of row {line} is {row[name]!r}, which is no number.")


def _class_number(row: Mapping[str, str]) -> int:
    if has_class(row):
        return int(row["class_id"])
    return JUNK if row["status"] == JUNK_NAME else UNREADABLE


def found_classes(folder: Path) -> tuple[Sequence[str], int]:
    """Return the names of the classes as a run found them, whatever they are called now, and how many are known."""
    path = folder / "classes.json"
    document = checked(path, read_json(path), CLASSES, ("classes",))
    try:
        entries = [*document["classes"], *document.get("gone", [])]
        names = {e["id"]: e.get("found_as", e.get("name")) for e in entries}
        n_known = sum(entry["kind"] == "known" for entry in document["classes"])
        found = {number: names[number] for number in sorted(names) if names[number] is not None}
    except (KeyError, TypeError) as error:
        raise RunFolderError(f"{path} is damaged ({error!r}).") from error
    if list(found) != list(range(len(found))) or n_known > len(found) or len(set(found.values())) < len(found):
        raise RunFolderError(f"{path} is damaged: its classes are not numbered from 0 on, or not called differently.")
    return list(found.values()), n_known
