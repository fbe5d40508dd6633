"""The order in which the report keeps images: class by class, in each class the surest first.

A place in this order stands for an image wherever the page speaks of one; thumbnails and names come in sheets of
neighbouring places, so that the images of a class need few of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from autonovel.editing.sorting import JUNK, JUNK_NAME
from autonovel.report.sheets import PER_SHEET
from autonovel.report.subject import Ints, Subject

LABELLED, BY_HAND = 1, 2


@dataclass(frozen=True)
class Places:
    """The order.

    Attributes:
        rows: row of the image at each place.
        spans: first place of each class, and the first after it, by class number; in the order of the classes.
    """

    rows: Ints
    spans: dict[int, tuple[int, int]]

    @property
    def of_row(self) -> Ints:
        """Return the place of each image."""
        places = np.empty_like(self.rows)
        places[self.rows] = np.arange(len(self.rows))
        return places

    @property
    def sheets(self) -> list[Ints]:
        """Return the rows on each sheet."""
        return [self.rows[start : start + PER_SHEET] for start in range(0, len(self.rows), PER_SHEET)]


def places(subject: Subject) -> Places:
    """Return the order: new classes, known ones, junk."""
    spans: dict[int, tuple[int, int]] = {}
    parts, start = [np.empty(0, dtype=np.int64)], 0
    for number in (*subject.new, *subject.known, JUNK):
        rows = subject.members(number)
        parts.append(rows[np.argsort(-subject.confidence[rows], kind="stable")])
        spans[number] = (start, start + len(rows))
        start += len(rows)
    return Places(np.concatenate(parts), spans)


def page_data(subject: Subject, order: Places, colours: dict[int, str]) -> dict[str, Any]:
    """Return what the page's script must know of every class and every image."""
    kind = {JUNK: "junk"} | dict.fromkeys(subject.known, "known") | dict.fromkeys(subject.new, "new")
    rows = order.rows
    return {
        "classes": [
            {
                "number": number,
                "name": JUNK_NAME if number == JUNK else subject.names[number],
                "kind": kind[number],
                "colour": colours[number],
                "start": start,
                "end": end,
            }
            for number, (start, end) in order.spans.items()
            if number != JUNK or end > start
        ],
        "confidence": np.rint(1e4 * subject.confidence[rows]).astype(int).tolist(),
        "flags": (LABELLED * subject.labelled[rows] + BY_HAND * subject.by_hand[rows]).astype(int).tolist(),
        "truth": None if subject.truth is None else subject.truth[rows].tolist(),
    }
