"""What a report is about: every image with its class as it is now, whether the run has just ended or was corrected."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from autonovel.data import ImageSet
from autonovel.discovery import Discovery
from autonovel.editing.found import LOOKS_KNOWN, known_look
from autonovel.editing.sorting import JUNK, UNREADABLE, names_now
from autonovel.kept import load_truth

if TYPE_CHECKING:
    from autonovel.editing.edited import EditedRun

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
NONE = -2  # the class number of what is no class


@dataclass(frozen=True)
class Subject:
    """The images of a run that could be read, in input order, and its classes.

    Attributes:
        ids: name of each image.
        class_of: class number of each image; ``JUNK`` for those that belong nowhere.
        labelled: whether the image came with a label.
        confidence: the model's, in the class it found.
        margin: confidence less the probability of the second class.
        outlier: 0 (central in the class it was found in) to 1.
        second: class that comes next, ``NONE`` where that is the class itself or junk by now.
        nearest_known: most probable known class.
        look: known class that an unlabelled image looks more like than like any new one, else ``NONE``.
        by_hand: whether a person put the image elsewhere than the model did.
        names: names of the classes by number.
        n_known: classes 0 … n_known − 1 are known.
        truth: true class of each image; None where nobody knows.
        true_names: names of the true classes.
        shape: channels, height and width of the images as they were learned from.
        unreadable: how many input files are not among the images.
        left_out: images marked as junk before the run, which it did not look at.
        n_edits: corrections in force.
        found_names: names of the classes as they were found, by number.
    """

    ids: tuple[str, ...]
    class_of: Ints
    labelled: Bools
    confidence: Floats
    margin: Floats
    outlier: Floats
    second: Ints
    nearest_known: Ints
    look: Ints
    by_hand: Bools
    names: Mapping[int, str]
    n_known: int
    truth: Ints | None
    true_names: tuple[str, ...]
    shape: tuple[int, ...]
    unreadable: int = 0
    left_out: int = 0
    n_edits: int = 0
    found_names: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def new(self) -> list[int]:
        """Return the numbers of the new classes."""
        return [number for number in sorted(self.names) if number >= self.n_known]

    @property
    def known(self) -> list[int]:
        """Return the numbers of the known classes."""
        return list(range(self.n_known))

    @property
    def renamed(self) -> dict[str, str]:
        """Return what classes are called now, by the names they were found under."""
        return names_now(self.found_names, self.names)

    def members(self, number: int) -> Ints:
        """Return the rows of the images in a class."""
        return np.flatnonzero(self.class_of == number)


def as_found(images: ImageSet, found: Discovery) -> Subject:
    """Return what a run that has just ended found."""
    names = dict(enumerate(found.names))
    return Subject(
        ids=found.ids,
        class_of=found.class_id.numpy().astype(np.int64),
        labelled=~images.unlabelled.numpy(),
        confidence=found.confidence.numpy().astype(np.float64),
        margin=found.margin.numpy().astype(np.float64),
        outlier=found.outlier.numpy().astype(np.float64),
        second=found.second.numpy().astype(np.int64),
        nearest_known=found.nearest_known.numpy().astype(np.int64),
        look=_looks(images, found),
        by_hand=np.zeros(len(found.ids), dtype=bool),
        names=names,
        n_known=found.n_known,
        truth=None if images.truth is None else images.truth.numpy().astype(np.int64),
        true_names=() if images.truth is None else images.true_names,
        shape=tuple(images.images.shape[1:]),
        unreadable=len(found.unreadable),
        left_out=len(found.junk),
        found_names=names,
    )


def _looks(images: ImageSet, found: Discovery) -> Ints:
    if found.looks_known is None:
        return np.full(len(found.ids), NONE, dtype=np.int64)
    known = images.unlabelled & (found.looks_known.round(decimals=4) > LOOKS_KNOWN)  # as discovery.csv has them
    return torch.where(known, found.nearest_known, NONE).numpy().astype(np.int64)


def corrected(run: "EditedRun") -> tuple[Subject, Ints]:
    """Return a finished run with all corrections made, and the row of ``discovery.csv`` of each image."""
    sorting, found = run.sorting, run.found
    rows = np.flatnonzero(run.seen)
    table = [run.table[row] for row in rows]
    numbers = {name: number for number, name in found.names.items()}
    answers = np.array([*sorting.answers, NONE], dtype=np.int64)  # what is no class found stays so
    class_of = sorting.class_of[rows]
    second = answers[[numbers.get(row["second_class"], -1) for row in table]]
    known = [sorting.names[number] for number in range(sorting.n_known)]
    truth = load_truth(run.folder)
    if truth is not None and len(truth.truth) != len(rows):
        truth = None
    subject = Subject(
        ids=tuple(sorting.ids[row] for row in rows),
        class_of=class_of,
        labelled=np.array([bool(row["given_label"]) for row in table], dtype=bool),
        confidence=run.confidence[rows],
        margin=_column(table, "margin", 1.0),
        outlier=_column(table, "outlier", 1.0),
        second=np.where((second == class_of) | (second == JUNK), NONE, second),
        nearest_known=answers[[numbers.get(row["nearest_known"], -1) for row in table]],
        look=np.array([numbers.get(known_look(row), NONE) for row in table], dtype=np.int64),
        by_hand=sorting.by_hand(found.class_of)[rows],
        names=sorting.names,
        n_known=sorting.n_known,
        truth=None if truth is None else truth.truth.numpy().astype(np.int64),
        true_names=() if truth is None else (*known, *truth.names[len(known) :]),
        shape=tuple(run.facts["images"][1:]),
        unreadable=int((found.class_of == UNREADABLE).sum()),
        left_out=int((~run.seen & (found.class_of != UNREADABLE)).sum()),
        n_edits=sum(edit.in_force for edit in run.edits()),
        found_names=found.names,
    )
    return subject, rows


def _column(table: list[dict[str, str]], name: str, otherwise: float) -> Floats:
    return np.array([_number(row.get(name), otherwise) for row in table], dtype=np.float64)


def _number(text: Any, otherwise: float) -> float:
    return float(text) if text else otherwise
