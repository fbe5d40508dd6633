"""What the report says of each class, as plain data: a card with a few images and the classes next to it."""

from dataclasses import dataclass

import numpy as np

from autonovel.report.subject import Ints, Subject

CENTRAL, UNSURE = 24, 8
KNOWN_CENTRAL, KNOWN_UNSURE = 8, 4
CLOSE = 0.2  # a margin below this is a close call


@dataclass(frozen=True)
class Thumbnail:
    """One image on a card: its row in the set, its name and the probability of its class."""

    row: int
    id: str
    confidence: float


@dataclass(frozen=True)
class Near:
    """A class that lies near another one.

    Attributes:
        number: its class number.
        name: its name.
        share: share of the other's images for which it comes next.
        close: share of the other's images for which it comes next by a margin below ``CLOSE``; None if unknown.
    """

    number: int
    name: str
    share: float
    close: float | None


@dataclass(frozen=True)
class Card:
    """One class.

    Attributes:
        number: its class id.
        name: its name.
        found_as: the name it was found under, if that was another.
        size: number of images in it.
        confidence: mean over its images; None if it is empty.
        true_name: the most frequent true class in it; None if nobody knows, or it is empty.
        true_share: share of that class.
        central: images nearest to the centre.
        unsure: images with the lowest confidence.
        near_known: the known class most of its images are next to.
        near_new: the new class most of its images are next to.
    """

    number: int
    name: str
    found_as: str
    size: int
    confidence: float | None
    true_name: str | None
    true_share: float
    central: tuple[Thumbnail, ...]
    unsure: tuple[Thumbnail, ...]
    near_known: Near | None
    near_new: Near | None


def cards(subject: Subject) -> tuple[Card, ...]:
    """Return a card for each new class."""
    return tuple(_card(subject, number, CENTRAL, UNSURE) for number in subject.new)


def known_cards(subject: Subject) -> tuple[Card, ...]:
    """Return a card for each known class, with fewer images."""
    return tuple(_card(subject, number, KNOWN_CENTRAL, KNOWN_UNSURE) for number in subject.known)


def _card(subject: Subject, number: int, central: int, unsure: int) -> Card:
    rows = subject.members(number)
    size, name = len(rows), subject.names[number]
    true_name, true_share = _majority(subject, rows)
    found_as = subject.found_names.get(number, "")
    second_new = np.where(subject.second >= subject.n_known, subject.second, -1)  # merged, a class may be a known one
    return Card(
        number=number,
        name=name,
        found_as=found_as if found_as != name else "",
        size=size,
        confidence=float(subject.confidence[rows].mean()) if size else None,
        true_name=true_name,
        true_share=true_share,
        central=_thumbnails(subject, rows[np.argsort(subject.outlier[rows], kind="stable")][:central]),
        # In a small class the least sure would only repeat the central ones.
        unsure=_thumbnails(
            subject, rows[np.argsort(subject.confidence[rows], kind="stable")][: min(unsure, size // 2)]
        ),
        near_known=_nearest(subject, rows, subject.nearest_known, number, with_margin=False),
        near_new=_nearest(subject, rows, second_new, number) if number >= subject.n_known else None,
    )


def _nearest(subject: Subject, rows: Ints, next_class: Ints, number: int, with_margin: bool = True) -> Near | None:
    """Return the class that ``next_class`` names for most of the images ``rows``, itself and junk left out."""
    named = next_class[rows]
    counts = np.bincount(named[(named >= 0) & (named != number)])
    if not len(counts):
        return None
    nearest = int(counts.argmax())
    chosen = named == nearest
    close = (subject.margin[rows][chosen] < CLOSE).sum() / len(rows) if with_margin else None
    return Near(nearest, subject.names[nearest], float(chosen.mean()), None if close is None else float(close))


def _thumbnails(subject: Subject, rows: Ints) -> tuple[Thumbnail, ...]:
    return tuple(Thumbnail(row, subject.ids[row], float(subject.confidence[row])) for row in rows.tolist())


def _majority(subject: Subject, rows: Ints) -> tuple[str | None, float]:
    if subject.truth is None or len(rows) == 0:
        return None, 0.0
    counts = np.bincount(subject.truth[rows])
    return subject.true_names[int(counts.argmax())], float(counts.max() / counts.sum())
