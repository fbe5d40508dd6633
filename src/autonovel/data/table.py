"""A table of image files: ``path,label`` with blanks for what is to be discovered, or ``metadata.csv`` in a folder.

    path,label,split
    photos/1.jpg,cat,             a known class
    photos/2.jpg,,                to be discovered
    photos/3.jpg,dog,test         optional: for the test scores

Paths are relative to the folder of the table.  ``metadata.csv`` (or ``metadata.parquet``) in the root of a folder, as
Hugging Face's datasets have it, calls the column ``file_name``; images that it does not name are to be discovered as
well.  Without a column ``label``, sub-folders are the classes.
"""

import os
import posixpath
from pathlib import Path

from autonovel.data import class_notes, folder
from autonovel.data.cells import ENDINGS, read_cells
from autonovel.data.files import WHOLE, Entry
from autonovel.data.listing import Listing
from autonovel.errors import InputError, UsageError
from autonovel.spreadsheet import plain

METADATA = ("metadata.csv", "metadata.parquet")
PATHS = ("path", "file_name")
LABEL, SPLIT = "label", "split"
TRAIN, TEST = ("", "train"), "test"
FEW = 3  # named one by one

Listings = tuple[Listing, Listing | None]


def source_of(place: Path) -> str:
    """Return which source reads ``place``: ``table`` for a file, or a folder with metadata; else ``folder``."""
    return "table" if place.is_file() or metadata(place) is not None else "folder"


def listing_of(place: Path) -> Listings:
    """Return the files of a table or a folder, whichever ``place`` is: for training, and for testing if there are."""
    return load(place) if source_of(place) == "table" else folder.load(place)


def metadata(place: Path) -> Path | None:
    """Return the table of metadata in the root of a folder, if there is one."""
    return next((place / name for name in METADATA if (place / name).is_file()), None)


def root_of(place: Path) -> Path:
    """Return the folder that paths in the table at ``place`` (or the folder ``place``) are relative to."""
    return place.parent if place.suffix.lower() in ENDINGS and not place.is_dir() else place


def moved(before: str, now: Path) -> str:
    """Return where the images of a run lie now: a person may name the folder in which the table of before is."""
    table = now / Path(before).name
    return str(table if Path(before).suffix.lower() in ENDINGS and table.is_file() else now)


def load(place: Path) -> Listings:
    """Return the files for training and those for testing (None if there are none) that a table names."""
    if place.is_dir():
        found = metadata(place)
        if found is None:
            raise UsageError(
                f"{place} is a folder without {METADATA[0]}. Give a table ({', '.join(ENDINGS)}), or read the folder "
                "by its sub-folders with --set data.source=folder."
            )
        return _of_folder(place, found)
    if not place.is_file():
        raise UsageError(
            f"there is no table {place}; give a file with the columns path and label, or a folder with {METADATA[0]}."
        )
    rows = _Rows(place)
    if LABEL not in rows.columns:
        raise InputError(
            f"{place} has the columns {', '.join(rows.columns) or 'none'}; it needs path and label. Leave the label of "
            "images blank that are to be discovered."
        )
    return rows.listings()


class _Rows:
    """The rows of a table by the id of their image, in the order of the ids."""

    def __init__(self, place: Path) -> None:
        self.place, self.root = place, place.parent
        cells = read_cells(place)
        self.columns, self.notes = cells.columns, list(cells.notes)
        column = next((name for name in PATHS if name in self.columns), None)
        if column is None:
            raise InputError(
                f"{place} has the columns {', '.join(self.columns) or 'none'}; it needs path (or file_name) and label "
                "in its first line."
            )
        self.labels: dict[str, tuple[str, str]] = {}  # label and split
        self.entries: dict[str, Entry] = {}
        self.missing, repeated = 0, 0
        for where, row in cells.rows:
            if not row[column]:
                raise InputError(f"{where} of {place} has no {column}. Fill it in, or remove the line.")
            entry = self._entry(row[column])
            said = plain(row.get(LABEL, "")), self._split(row.get(SPLIT, ""), where)
            if self.labels.setdefault(entry.id, said) != said:
                before = self.labels[entry.id]
                raise InputError(
                    f"{place} names {entry.id} twice, with {_words(before)} and ({where}) with {_words(said)}. "
                    "Keep one of the two."
                )
            repeated += entry.id in self.entries
            self.entries[entry.id] = entry
        if not self.entries:
            raise InputError(f"{place} has no rows under its column names; it needs one per image.")
        if self.missing == len(self.entries):
            first = next(iter(self.entries.values()))
            raise InputError(
                f"none of the {self.missing:,} files in {place} is there; the first was looked for at "
                f"{os.path.join(self.root, first.path)}. Paths are relative to the folder of the table."
            )
        if repeated:
            self.notes.append(f"{place} names {repeated:,} files more than once, alike; each was taken once")

    def _entry(self, path: str) -> Entry:
        """Return the file at ``path``, absolute or below the table's folder; a missing one is found out on reading.

        It may be spelled as on Windows, or as the CSV files that autonovel writes spell a name.
        """
        for spelling in dict.fromkeys((path, path.replace("\\", "/"), plain(path))):
            name = _relative(spelling, self.root)
            try:
                status = os.stat(os.path.join(self.root, name))
            except (OSError, ValueError):
                continue
            return Entry(name, name, WHOLE, status.st_size, status.st_mtime_ns)
        name = _relative(path, self.root)
        self.missing += name not in self.entries
        return Entry(name, name, WHOLE, 0, 0)

    def _split(self, split: str, where: str) -> str:
        if split.lower() in TRAIN:
            return ""
        if split.lower() != TEST:
            raise InputError(f"{where} of {self.place} has the split {split!r}; it can be train, test or blank.")
        return TEST

    def listings(self) -> Listings:
        """Return the files for training, and those for testing if there are any."""
        train, test = ([name for name in sorted(self.entries) if self.labels[name][1] == part] for part in ("", TEST))
        blank = [name for name in test if not self.labels[name][0]]
        if blank:
            raise InputError(f"the test image {blank[0]} in {self.place} has no label; test images need a class each.")
        return self._listing(train), self._listing(test) if test else None

    def _listing(self, names: list[str]) -> Listing:
        labels = [self.labels[name][0] or None for name in names]
        notes = (*self.notes, *class_notes.on_names(labels, "leave their label blank"))
        return Listing(self.root, [self.entries[name] for name in names], labels, {}, notes, table=self.place)


def _words(said: tuple[str, str]) -> str:
    label, split = said
    return (f"the label {label}" if label else "no label") + (f" for {split}" if split else "")


def _relative(path: str, root: Path) -> str:
    """Return ``path`` below ``root`` where it lies there, else as it is."""
    if os.path.isabs(path):
        inside = os.path.relpath(path, os.path.abspath(root))
        return os.path.normpath(path) if inside.startswith(os.pardir) else inside.replace(os.sep, "/")
    return posixpath.normpath(path)


def _of_folder(place: Path, table: Path) -> Listings:
    """Return all images in a folder, with what its metadata says of them."""
    rows = _Rows(table)
    if LABEL not in rows.columns:
        train, test = folder.load(place)
        return _with_missing(train, rows, test), test
    train, test = rows.listings()
    found = folder.everything(place)
    others = [entry for entry in found.entries if entry.id not in rows.entries]
    notes = train.notes
    if others:
        named = ", ".join(entry.id for entry in others[:FEW]) + (", …" if len(others) > FEW else "")
        notes += (f"{table} does not name {len(others):,} images of the folder ({named}); they are to be discovered",)
    pairs = [*zip(train.entries, train.labels, strict=True), *((entry, None) for entry in others)]
    pairs.sort(key=lambda pair: pair[0].id)
    labels = [label for _, label in pairs]
    whole = Listing(place, [entry for entry, _ in pairs], labels, found.unreadable, notes, table=table)
    return whole, test


def _with_missing(train: Listing, rows: _Rows, test: Listing | None) -> Listing:
    """Return ``train`` and the files that the metadata names but the folder does not have, which keep their rows."""
    there = {entry.id for entry in train.entries} | {entry.id for entry in (test.entries if test else [])}
    lost = {name: "No such file or directory" for name in rows.entries if name not in there}
    return Listing(train.root, train.entries, train.labels, {**train.unreadable, **lost}, (*train.notes, *rows.notes))
