"""Labels that a person gave after a run, laid over what the source says of its images.

    id,label,status
    photos/1.jpg,fox,         of the class fox from now on, whatever it was before
    photos/2.jpg,,            still to be discovered
    photos/3.jpg,,junk        left out, with a row of its own in discovery.csv
    photos/4.jpg,,unreadable  could not be read before; tried once more, and then as its source has it

Images that the table does not name are as their source has them.
"""

import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from autonovel.data.imageset import ImageSet
from autonovel.data.streamed import FilePixels
from autonovel.errors import InputError, UsageError
from autonovel.spreadsheet import harmless, line, plain_rows
from autonovel.storage.run_folder import LABELS

COLUMNS = ("id", "label", "status")
JUNK, UNREADABLE = "junk", "unreadable"
FEW = 3  # named one by one

Relabelled = tuple[ImageSet, ImageSet | None, int]


@dataclass(frozen=True)
class GivenLabels:
    """What a person said of images.

    Attributes:
        labels: class of each image by id, None for those to be discovered.
        junk: ids of images that belong nowhere.
        unreadable: ids of files that could not be read.
        place: where this was read from or will be written to, for messages.
    """

    labels: Mapping[str, str | None]
    junk: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()
    place: str = LABELS

    @classmethod
    def read(cls, path: Path) -> "GivenLabels":
        """Return the table at ``path``."""
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                table = csv.DictReader(file)
                columns = tuple(table.fieldnames or ())
                rows = plain_rows(table)
        except FileNotFoundError as error:
            raise UsageError(
                f"data.labels is {path.name}, but there is no {path}. A relative path is looked for in the run folder; "
                "give an absolute one, or leave data.labels empty."
            ) from error
        except (OSError, ValueError, csv.Error) as error:
            raise InputError(f"{path} cannot be read ({error}).") from error
        if not {"id", "label"} <= set(columns):
            raise InputError(f"{path} has the columns {', '.join(columns) or 'none'}; it needs id and label.")
        read: dict[str, tuple[str, str]] = {}  # label and status
        for number, row in enumerate(rows, 2):
            name, label, status = (row.get(column) or "" for column in COLUMNS)
            if status not in ("", JUNK, UNREADABLE):
                raise InputError(
                    f"line {number} of {path} has the status {status!r}; it can be {JUNK}, {UNREADABLE} or blank."
                )
            said = "" if status else label, status
            if read.setdefault(name, said) != said:
                raise InputError(f"{path} names {name} twice, and not alike. Keep one of the two lines.")
        labels = {name: label or None for name, (label, status) in read.items() if status != UNREADABLE}
        junk, lost = (frozenset(name for name in read if read[name][1] == status) for status in (JUNK, UNREADABLE))
        return cls(labels, junk, lost, str(path))

    def content(self) -> bytes:
        """Return the table as a file holds it."""
        rows = ((harmless(name), harmless(label or ""), JUNK if name in self.junk else "")
                for name, label in self.labels.items())  # fmt: skip
        lost = ((harmless(name), "", UNREADABLE) for name in sorted(self.unreadable))
        return "".join(map(line, [COLUMNS, *rows, *lost])).encode()

    def over(self, train: ImageSet, test: ImageSet | None, n_new: int) -> Relabelled:
        """Return training and test images under these labels, and the number of new classes (0: nobody knows).

        Nobody does where the source says of none of its ``n_new``: the truth is for scoring alone.
        """
        train = train.as_named_in(self.labels)
        notes = self._checked(train)
        given = [self.labels.get(name, _label(train, row)) for row, name in enumerate(train.ids)]
        lost = self._still_unreadable(train)
        kept = torch.tensor([name not in self.junk and name not in lost for name in train.ids])
        names = tuple(sorted({label for label, stays in zip(given, kept.tolist(), strict=True) if stays and label}))
        number = {name: place for place, name in enumerate(names)}
        labelled = replace(
            train,
            y=torch.tensor([-1 if label is None else number.get(label, -1) for label in given], dtype=torch.int64),
            class_names=names,
            notes=(*train.notes, *notes),
            unreadable={**train.unreadable, **lost},
            junk=(*train.junk, *(name for name in train.ids if name in self.junk)),
        )
        labelled = labelled if kept.all() else labelled.rows(kept.nonzero()[:, 0])
        truth = None if train.truth is None else train.truth[kept]
        labelled, test = _renumbered(labelled, truth, train, test)
        return labelled, test, len(labelled.new_names) if n_new else 0

    def _still_unreadable(self, train: ImageSet) -> dict[str, str]:
        """Return why, by id, of the files that could not be read before and still cannot: they are no images."""
        rows = [row for row, name in enumerate(train.ids) if name in self.unreadable]
        if not rows or not isinstance(train.images, FilePixels):
            return {}
        return {train.ids[row]: reason for row, reason in train.images.decode(rows).broken}

    def _checked(self, train: ImageSet) -> tuple[str, ...]:
        """Return what to say of images that are here and not there, or the other way round."""
        there, here = {*self.labels, *self.unreadable}, {*train.ids, *train.unreadable}
        gone, more = [name for name in self.labels if name not in here], len(set(train.ids) - there)
        if len(gone) == len(self.labels):
            raise InputError(
                f"none of the {len(gone):,} images in {self.place} is here. Say where they lie with --data DIR."
            )
        notes = []
        if gone:
            named = ", ".join(gone[:FEW]) + (", …" if len(gone) > FEW else "")
            notes.append(f"{len(gone):,} images in {self.place} are gone and left out: {named}")
        if more:
            notes.append(f"{more:,} images are not in {self.place} and are taken as their source has them")
        return tuple(notes)


def _label(images: ImageSet, row: int) -> str | None:
    """Return the class that the source gives an image."""
    number = int(images.y[row])
    return images.class_names[number] if number >= 0 else None


def _renumbered(
    labelled: ImageSet, truth: Tensor | None, source: ImageSet, test: ImageSet | None
) -> tuple[ImageSet, ImageSet | None]:
    """Return ``labelled`` and ``test`` with true classes numbered as the known classes are now, for scoring alone."""
    discovers = bool(labelled.unlabelled.any())
    if not discovers and test is None:  # no clusters that the truth could score
        return replace(labelled, truth=None, new_names=()), None
    named = test if source.truth is None and test is not None else source
    true = named.class_names + named.new_names if named.truth is not None else ()
    match, why = _counterparts(labelled, truth, true) if true else ({}, "")
    notes = labelled.notes
    if match is None:
        labelled = replace(labelled, truth=None, new_names=(), notes=(*notes, f"{why}, so nothing is scored"))
        return labelled, None
    others = tuple(name for place, name in enumerate(true) if place not in match)
    spare = iter(range(labelled.n_known, labelled.n_known + len(others)))
    numbers = torch.tensor([match[place] if place in match else next(spare) for place in range(len(true))])
    scored = discovers and truth is not None
    labelled = replace(
        labelled, truth=numbers[truth] if scored and truth is not None else None, new_names=others if scored else ()
    )
    if test is not None:
        assert test.truth is not None
        moved = numbers[test.truth]
        y = torch.where(moved < labelled.n_known, moved, -1)
        test = replace(test, y=y, truth=moved, class_names=labelled.class_names, new_names=others)
    return labelled, test


def _counterparts(labelled: ImageSet, truth: Tensor | None, true: tuple[str, ...]) -> tuple[dict[int, int] | None, str]:
    """Return the known class that each true class is by now, by places; None, and why, if that is not one to one.

    A class of the same name is the same class; any other known class is what most of its images truly are.
    """
    match = {true.index(name): place for place, name in enumerate(labelled.class_names) if name in true}
    for place, name in enumerate(labelled.class_names):
        if name in true:
            continue
        if truth is None:
            return None, f"nobody says which true class {name} is"
        most = int(Counter(truth[labelled.y == place].tolist()).most_common(1)[0][0])
        if most in match:
            other = labelled.class_names[match[most]]
            return None, f"most images of {name} and of {other} are truly of one class, {true[most]}"
        match[most] = place
    return match, ""
