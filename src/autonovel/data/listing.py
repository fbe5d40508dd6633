"""From a list of image files, some with a class, to the problem: known classes, and images to be discovered."""

import csv
import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from autonovel.cores import usable_cores
from autonovel.data.decode import WHAT_IS_READ, UnreadableError, decode, is_grey, quiet
from autonovel.data.files import Entry, FileTable
from autonovel.data.imageset import ImageSet
from autonovel.data.splits import LabelledImages, first_of_each_class, hold_out
from autonovel.data.streamed import FilePixels
from autonovel.errors import InputError, UsageError
from autonovel.launch import launch
from autonovel.settings import Data
from autonovel.spreadsheet import plain

TRUTH = "truth.csv"


@dataclass(frozen=True)
class Listing:
    """Files in the order of their ids.

    Attributes:
        root: folder of all files.
        entries: the files.
        labels: class of each by where it lies, None for those to be discovered.
        unreadable: files that cannot even be listed: why, by id.
        notes: what a person should know of how they were listed.
        known: names of the known classes where the source itself says them (empty: settings choose).
        table: that says which class files have, where there is one.
    """

    root: Path
    entries: list[Entry]
    labels: list[str | None]
    unreadable: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    table: Path | None = None

    def rows(self, chosen: list[int]) -> "Listing":
        """Return the files ``chosen``."""
        return replace(self, entries=[self.entries[i] for i in chosen], labels=[self.labels[i] for i in chosen])


def problem(train: Listing, test: Listing | None, data: Data, seed: int) -> tuple[ImageSet, ImageSet | None, int]:
    """Return the training set, the test set (or None) and the number of new classes (0 where nobody knows).

    The number is that of the classes in which the source itself has its images; what a table of truth holds is for
    scoring alone.
    """
    if not data.size:
        raise UsageError("image files have many sizes: say to which they are scaled, such as --set data.size=64.")
    if data.new or data.first_new:
        raise UsageError(
            "data.new and data.first_new choose classes of a benchmark; among image files, all that are in no class "
            "folder are to be discovered. Leave both empty."
        )
    if not train.entries:
        raise InputError(". ".join([f"there are no images in {train.root}; {WHAT_IS_READ}", *train.notes]) + ".")
    names = tuple(sorted({label for label in train.labels if label is not None}))
    unknown = [name for name in data.known if name not in names]
    if unknown:
        raise UsageError(f"data.known names {', '.join(unknown)}; the classes in {train.root} are {', '.join(names)}.")
    chosen = tuple(n for n in names if n in data.known) if data.known else names[: data.first_known or None]
    known = train.known or chosen
    true, whole = _true_labels(train, data), train
    if test is not None and data.test_fraction:
        raise UsageError(f"{train.root} has test images of its own; leave data.test_fraction at 0.")
    train, true, test = _chosen(train, true, test, data, seed)
    complete = all(label is not None for label in true)
    new = tuple(sorted({label for label in true if label is not None} - set(known))) if complete else ()
    table = FileTable.of(str(train.root), train.entries)
    channels = _channels(table)
    order = {name: number for number, name in enumerate(known + new)}
    number = {name: place for place, name in enumerate(known)}
    y = [-1 if label is None else number.get(label, -1) for label in train.labels]
    problem = ImageSet(
        images=FilePixels(table, data.size, channels, workers(data), white=data.white),
        y=torch.tensor(y, dtype=torch.int64),
        ids=tuple(entry.id for entry in train.entries),
        class_names=known,
        truth=torch.tensor([order[label] for label in true if label is not None]) if complete else None,
        new_names=new,
        unreadable=train.unreadable,
        ids_are_paths=True,
        notes=train.notes,
        source_labels=_checksum_of_labels(whole) if test is not None else "",
    )
    told = 0 if None in train.labels else len(new)
    return problem, _test_set(test, problem, data) if test is not None else None, told


def _checksum_of_labels(train: Listing) -> str:
    sums = hashlib.blake2b(digest_size=16)
    for entry, label in zip(train.entries, train.labels, strict=True):
        sums.update(json.dumps([entry.id, label]).encode())
    return sums.hexdigest()


def workers(data: Data) -> int:
    """Return how many processes decode."""
    if data.workers:
        return data.workers
    return max(usable_cores() // launch().local_world, 1)


def _chosen(
    train: Listing, true: list[str | None], test: Listing | None, data: Data, seed: int
) -> tuple[Listing, list[str | None], Listing | None]:
    """Return what ``data.per_class`` and ``data.test_fraction`` leave for training, and what is held out."""
    if not (data.per_class or data.test_fraction):
        return train, true, test
    if None in true:
        raise UsageError(
            "data.per_class and data.test_fraction choose images of every class, so the class of every image is "
            f"needed. Give it as {TRUTH} (columns path,label), or leave both at 0."
        )
    names = tuple(sorted({str(label) for label in true}))
    number = {name: i for i, name in enumerate(names)}
    labels = torch.tensor([number[str(label)] for label in true])
    rows = first_of_each_class(LabelledImages(torch.arange(len(labels)), labels, names), data.per_class)
    kept, held = hold_out(rows, data.test_fraction, seed) if test is None else (rows, None)
    if held is not None:
        chosen = held.images.tolist()
        test = Listing(train.root, [train.entries[i] for i in chosen], [true[i] for i in chosen])
    left = kept.images.tolist()
    return train.rows(left), [true[i] for i in left], test


def _test_set(test: Listing, train: ImageSet, data: Data) -> ImageSet:
    """Return test images with their truth: known classes, then the new ones as in training, then any others."""
    names = {str(label) for label in test.labels}
    others = sorted(names - set(train.class_names) - set(train.new_names))
    if others and train.truth is not None:
        raise InputError(f"the test images have classes that no training image has: {', '.join(others)}.")
    order = {name: number for number, name in enumerate((*train.class_names, *train.new_names, *others))}
    truth = torch.tensor([order[str(label)] for label in test.labels])
    assert isinstance(train.images, FilePixels)
    return ImageSet(
        images=FilePixels(
            FileTable.of(str(test.root), test.entries),
            data.size,
            train.images.channels,
            train.images.workers,
            white=data.white,
        ),
        y=torch.where(truth < train.n_known, truth, -1),
        ids=tuple(entry.id for entry in test.entries),
        class_names=train.class_names,
        truth=truth,
        new_names=(*train.new_names, *others),
        unreadable=test.unreadable,
        ids_are_paths=True,
    )


def _channels(table: FileTable) -> int:
    """Return 1 if all images are grey, else 3; looks no further than the first with colours."""
    with quiet():
        for row in range(len(table)):
            try:
                with table.open(row) as file:
                    if not is_grey(file):
                        return 3
            except (UnreadableError, OSError):
                continue  # the survey will tell of it
    return 1


def _true_labels(train: Listing, data: Data) -> list[str | None]:
    """Return the true class of every image: by where it lies, or by the table of truth."""
    path = Path(data.truth) if data.truth else train.root / TRUTH
    if data.truth and not path.is_file():
        path = train.root / data.truth
    if not path.is_file():
        if data.truth:
            raise UsageError(
                f"data.truth is {data.truth}, which is not a file; give a CSV with the columns path,label."
            )
        return list(train.labels)
    ids = {entry.id for entry in train.entries} | set(train.unreadable)
    told = {name if name in ids else plain(name): plain(label) for name, label in _read_truth(path).items()}
    true = [label if label is not None else told.get(entry.id) for entry, label in
            zip(train.entries, train.labels, strict=True)]  # fmt: skip
    strangers = [name for name in told if name not in ids]
    if strangers:
        raise InputError(
            f"{path} names {len(strangers)} files that are not among the images, such as {strangers[0]}; an image of "
            f"{train.root} is called {train.entries[0].id}."
        )
    missing = [row for row, label in enumerate(true) if label is None]
    table = FileTable.of(str(train.root), [train.entries[row] for row in missing])
    readable = next((row for place, row in enumerate(missing) if _can_be_read(table, place)), None)
    if readable is not None:
        raise InputError(
            f"{path} has no label for {len(missing):,} of the unlabelled images, such as {train.entries[readable].id}. "
            "Scores need all of them: complete it, or remove it to go without."
        )
    for row in missing:  # files that cannot be read are left out later, whatever their class
        true[row] = next((label for label in true if label is not None), None)
    for entry, label in zip(train.entries, train.labels, strict=True):
        if label is not None and told.get(entry.id, label) != label:
            raise InputError(f"{path} calls {entry.id} {told[entry.id]}, but it lies in the folder of {label}.")
    return true


def _can_be_read(table: FileTable, row: int) -> bool:
    with quiet():
        try:
            decode(table.read(row), 1, 1)
        except (UnreadableError, OSError):
            return False
    return True


def _read_truth(path: Path) -> dict[str, str]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if not {"path", "label"} <= set(reader.fieldnames or ()):
                raise InputError(
                    f"{path} has the columns {reader.fieldnames}; it needs path and label in its first line."
                )
            named = (((row["path"] or "").strip(), (row["label"] or "").strip()) for row in reader)
            return {name: label for name, label in named if label}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
