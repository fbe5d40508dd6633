"""What is in a pile of image files, before anything is made of it: counts, sizes, kinds, odd files, duplicates.

Headers alone are read, so this takes a fraction of a millisecond a file; files that break off further on are found when
they are decoded.
"""

import hashlib
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median_low
from typing import Any, TypeVar

from autonovel.data.decode import UnreadableError, quiet
from autonovel.data.files import WHOLE, FileTable
from autonovel.data.folder import COMPANIONS
from autonovel.data.headers import Header, read_header
from autonovel.data.listing import Listing
from autonovel.data.memory import gigabytes
from autonovel.training.display import Display, Silent
from autonovel.words import of_images

ENDS = 1 << 16  # bytes at each end of a file that are compared before whole files are
AT_ONCE = 256  # files handed to the threads at a time
SECONDS_BETWEEN_UPDATES = 0.25
FEW, MANY = 5, 20  # files and classes that are named one by one

T = TypeVar("T")


@dataclass(frozen=True)
class Duplicates:
    """Files with the same bytes.

    Attributes:
        groups: ids of the files of each group.
        in_two_classes: groups that lie in more than one known class: labels that contradict each other.
        with_and_without_label: groups of which some files have a class and others are to be discovered.
        in_training_and_test: groups of which some are for training and others for testing.
    """

    groups: list[list[str]] = field(default_factory=list)
    in_two_classes: list[list[str]] = field(default_factory=list)
    with_and_without_label: list[list[str]] = field(default_factory=list)
    in_training_and_test: list[list[str]] = field(default_factory=list)

    @property
    def repeated(self) -> int:
        """Return how many files could go without loss."""
        return sum(len(group) - 1 for group in self.groups)


@dataclass(frozen=True)
class Inventory:
    """What is there.

    Attributes:
        root: folder of the files.
        files: number of files, unreadable ones included.
        images: number of files whose header can be read.
        size: bytes of all files.
        smallest, median, largest: width and height; the smallest and the largest by area, medians each for itself.
        formats: number of images of each format.
        kinds: number of images of each kind of pixels, in words.
        turned: images that EXIF says are to be turned.
        animated: images with further pictures behind the first.
        classes: number of readable images of each known class.
        unlabelled: readable images to be discovered.
        test: readable images for testing.
        unreadable: why, by id.
        duplicates: files with the same bytes.
        notes: what else a person should know.
        seconds: that it took.
        table: that says which class files have; nothing where their folders do.
    """

    root: str
    files: int
    images: int
    size: int
    smallest: tuple[int, int] | None
    median: tuple[int, int] | None
    largest: tuple[int, int] | None
    formats: dict[str, int]
    kinds: dict[str, int]
    turned: int
    animated: int
    classes: dict[str, int]
    unlabelled: int
    test: int
    unreadable: dict[str, str]
    duplicates: Duplicates
    notes: tuple[str, ...]
    seconds: float
    table: str = ""

    @property
    def place(self) -> str:
        """Return what a person calls these files by: their folder, or the table that names them."""
        return self.table if self.table and Path(self.table).name not in COMPANIONS else self.root

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)

    def told(self) -> list[str]:
        """Return lines for a terminal."""
        lines = [f"{self.place}: {of_images(self.images)}, {gigabytes(self.size)}"]
        if self.smallest and self.median and self.largest:
            small, middle, large = (f"{width}×{height}" for width, height in (self.smallest, self.median, self.largest))
            lines.append(f"  sizes: {small} to {large}, median {middle}" if small != large else f"  size: all {small}")
            odd = [f"{self.turned:,} turned by EXIF"] * bool(self.turned)
            odd += [f"{self.animated:,} with several pictures, of which the first is taken"] * bool(self.animated)
            lines.append(
                f"  formats: {_counts(self.formats)}; {_counts(self.kinds)}{''.join('; ' + one for one in odd)}"
            )
        lines.append(f"  known classes ({len(self.classes):,}): {_counts(self.classes) or 'none'}")
        lines.append(
            f"  to be discovered: {self.unlabelled:,}" + (f"; for testing: {self.test:,}" if self.test else "")
        )
        if self.unreadable:
            named = ", ".join(f"{name} ({reason})" for name, reason in list(self.unreadable.items())[:FEW])
            lines.append(f"  cannot be read: {len(self.unreadable):,}, {named}{_more(self.unreadable)}")
        return lines + self._told_duplicates() + [f"  note: {note}" for note in self.notes]

    def _told_duplicates(self) -> list[str]:
        found = self.duplicates
        if not found.groups:
            return ["  exact duplicates: none"]
        lines = [f"  exact duplicates: {found.repeated:,} files repeat another ({len(found.groups):,} groups), such as "
                 f"{' = '.join(found.groups[0][:FEW])}"]  # fmt: skip
        for groups, words in (
            (found.in_two_classes, "lie in two known classes, so that one of the labels is wrong"),
            (found.with_and_without_label, "have a label at one place and none at another, so that it is given away"),
            (found.in_training_and_test, "are in training and in test, which flatters the test scores"),
        ):
            if groups:
                lines.append(
                    f"    {len(groups):,} of the groups {words}: {' = '.join(groups[0][:FEW])}{_more(groups, 1)}"
                )
        return lines


def take(train: Listing, test: Listing | None = None, display: Display | None = None) -> Inventory:
    """Return the inventory of listed files.

    Args:
        train: files for training.
        test: files for testing, if there are any.
        display: for progress.
    """
    start = time.monotonic()
    n_train = len(train.entries)
    entries = [*train.entries, *(test.entries if test else [])]
    table = FileTable.of(str(train.root), entries)
    looked = _in_threads("looking at files", range(len(entries)), lambda row: _look(table, row), display or Silent())
    headers = {row: found for row, found in looked if isinstance(found, Header)}
    failed = {entries[row].id: found for row, found in looked if isinstance(found, str)}
    lost = {**train.unreadable, **(test.unreadable if test else {}), **failed}
    sizes = sorted(((one.width, one.height) for one in headers.values()), key=lambda size: (size[0] * size[1], size))
    labels = Counter(train.labels[row] for row in headers if row < n_train)
    unlabelled = labels.pop(None, 0)
    return Inventory(
        root=str(train.root),
        files=len({entry.id for entry in entries} | set(lost)),
        images=len(headers),
        size=sum(entry.length for entry in entries),
        smallest=sizes[0] if sizes else None,
        median=(median_low(w for w, _ in sizes), median_low(h for _, h in sizes)) if sizes else None,
        largest=sizes[-1] if sizes else None,
        formats=dict(Counter(one.format for one in headers.values()).most_common()),
        kinds=dict(Counter(one.kind for one in headers.values()).most_common()),
        turned=sum(one.turned for one in headers.values()),
        animated=sum(one.animated for one in headers.values()),
        classes={str(name): labels[name] for name in sorted(labels, key=str)},
        unlabelled=unlabelled,
        test=sum(row >= n_train for row in headers),
        unreadable=lost,
        duplicates=_duplicates(train.labels, table, list(headers), display or Silent()),
        notes=train.notes,
        seconds=time.monotonic() - start,
        table=str(train.table or ""),
    )


def inventory_of(place: Path, display: Display | None = None) -> Inventory:
    """Return the inventory of a folder or a table of images, whichever ``place`` is."""
    from autonovel.data.table import listing_of

    return take(*listing_of(place), display)


def _look(table: FileTable, row: int) -> Header | str:
    try:
        with table.open(row) as file:
            return read_header(file)
    except (UnreadableError, OSError) as error:
        return str(getattr(error, "strerror", None) or error)


def _in_threads(title: str, rows: Iterable[int], work: Callable[[int], T], display: Display) -> list[tuple[int, T]]:
    """Return what ``work`` makes of each row, with progress; threads wait for a slow disk beside each other."""
    every, out = list(rows), list[tuple[int, T]]()
    start = told = time.monotonic()
    display.begin(title, len(every), 0, "files")
    with quiet(), ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        for begin in range(0, len(every), AT_ONCE):
            some = every[begin : begin + AT_ONCE]
            out += zip(some, pool.map(work, some), strict=True)
            if time.monotonic() - told >= SECONDS_BETWEEN_UPDATES:
                told = time.monotonic()
                display.update(title, len(out), {}, len(out) / (told - start))
    display.end(title)
    return out


def _duplicates(labels: list[str | None], table: FileTable, rows: list[int], display: Display) -> Duplicates:
    """Return the groups of files with the same bytes: of one length, then of the same ends, then wholly.

    ``labels`` are those of the training images, which come first in ``table``; the others are test images.
    """
    groups = list(_split([rows], lambda row: int(table.numbers[row, 1])))
    for title, key in (("comparing files of one size", _ends), ("comparing whole files", _whole)):
        chosen = [row for group in groups for row in group]
        sums = dict(_in_threads(title, chosen, partial(key, table), display)) if chosen else {}
        groups = list(_split(groups, sums.__getitem__))
    trained = [[labels[row] for row in group if row < len(labels)] for group in groups]
    names = [[table.entry(row).id for row in group] for group in groups]
    return Duplicates(
        names,
        [group for group, given in zip(names, trained, strict=True) if len(set(given) - {None}) > 1],
        [group for group, given in zip(names, trained, strict=True) if None in given and set(given) != {None}],
        [group for group, given in zip(names, trained, strict=True) if 0 < len(given) < len(group)],
    )


def _split(groups: Iterable[list[int]], key: Callable[[int], Any]) -> Iterator[list[int]]:
    """Return the parts of groups that have the same key, those of one member left out."""
    for group in groups:
        parts = defaultdict[Any, list[int]](list)
        for row in group:
            parts[key(row)].append(row)
        yield from (part for part in parts.values() if len(part) > 1)


def _ends(table: FileTable, row: int) -> bytes:
    """Return a checksum of both ends of a file, which for a small one is all of it."""
    try:
        if table.entry(row).offset != WHOLE:
            return _sum(table.read(row))
        with table.open(row) as file:
            first = file.read(ENDS)
            file.seek(max(int(table.numbers[row, 1]) - ENDS, len(first)))
            return _sum(first + file.read(ENDS))
    except OSError:
        return os.urandom(16)  # gone since: like no other


def _whole(table: FileTable, row: int) -> bytes:
    try:
        return _sum(table.read(row)) if int(table.numbers[row, 1]) > 2 * ENDS else b""
    except OSError:
        return os.urandom(16)


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _counts(numbers: dict[str, int]) -> str:
    named = [f"{name} {count:,}" for name, count in list(numbers.items())[:MANY]]
    return ", ".join(named) + _more(numbers, MANY)


def _more(things: Any, shown: int = FEW) -> str:
    return f" and {len(things) - shown:,} more" if len(things) > shown else ""
