"""A sorting: which image is in which class, and what the classes are called, as a person may correct it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autonovel.errors import UsageError
from autonovel.setting_values import nearest
from autonovel.spreadsheet import plain
from autonovel.words import listed

JUNK = -1  # the class number of images that belong nowhere
UNREADABLE = -2  # the class number of files without an image
JUNK_NAME = "junk"
LONGEST_NAME = 120


class EditError(UsageError):
    """An edit that cannot be done on the classes as they are."""


@dataclass(frozen=True)
class Sorting:
    """Which image is in which class, and what the classes are called.

    Attributes:
        ids: name of each image.
        class_of: class number of each image; ``JUNK`` and ``UNREADABLE`` are no classes.
        names: name of each class by number; numbers of merged classes are missing and never used again.
        n_known: classes 0 … n_known − 1 are known.
        answers: for each class the model can answer with, the class that answer stands for now.
        next_number: the number a class made by the next split gets.
        index: row of each image by name.
        made_known: known classes that a person's corrections made so, not the labels of the images' source.
    """

    ids: tuple[str, ...]
    class_of: NDArray[np.int64]
    names: Mapping[int, str]
    n_known: int
    answers: tuple[int, ...]
    next_number: int
    index: Mapping[str, int] = field(repr=False)
    made_known: frozenset[int] = frozenset()

    @classmethod
    def found(
        cls, ids: Sequence[str], class_of: Any, names: Sequence[str], n_known: int, made_known: Iterable[str] = ()
    ) -> "Sorting":
        """Return the sorting that a run found, before any edit; ``made_known`` are names."""
        numbers = np.asarray(class_of, dtype=np.int64)
        index = {name: row for row, name in enumerate(ids)}
        if len(index) != len(numbers):
            raise EditError("the images of this run do not have one name each, so edits cannot name them.")
        every, wanted = range(len(names)), set(made_known)
        made = frozenset(number for number, name in enumerate(names[:n_known]) if name in wanted)
        return cls(tuple(ids), numbers, dict(enumerate(names)), n_known, tuple(every), len(names), index, made)

    def members(self, number: int) -> NDArray[np.int64]:
        """Return the rows of the images in class ``number``."""
        return np.flatnonzero(self.class_of == number)

    def by_hand(self, found: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which images a person put elsewhere than the model's answers for them, ``found``, lead to by now."""
        answers = np.array([*self.answers, UNREADABLE, JUNK], dtype=np.int64)  # found under −2 and −1
        elsewhere: NDArray[np.bool_] = answers[found] != self.class_of
        return elsewhere

    def answer_matrix(self) -> NDArray[np.float32]:
        """Return M of zeros and ones: p·M turns the model's probabilities p into those of the classes by number.

        The last column is junk.
        """
        matrix = np.zeros((len(self.answers), self.next_number + 1), dtype=np.float32)
        matrix[np.arange(len(self.answers)), list(self.answers)] = 1  # JUNK, −1, is the last column
        return matrix

    def rows(self, images: Iterable[str]) -> NDArray[np.int64]:
        """Return the rows of ``images``, or say which of them are not there or have no class to leave.

        An image may also be called as a CSV file of ours calls it.
        """
        wanted = {name: name if name in self.index else plain(name) for name in images}
        if not wanted:
            raise EditError("no image was named. Name at least one by its id, the first column of discovery.csv.")
        missing = [name for name, own in wanted.items() if own not in self.index]
        if missing:
            raise EditError(
                f"this run has no image {listed(missing, most=3)}. Images are named by their id, the first column of "
                "discovery.csv."
            )
        rows = np.unique(np.array([self.index[own] for own in wanted.values()], dtype=np.int64))
        unreadable = [self.ids[row] for row in rows[self.class_of[rows] == UNREADABLE]]
        if unreadable:
            raise EditError(f"{unreadable[0]} could not be read, so it is in no class and cannot be moved.")
        return rows

    def number(self, name: str | int) -> int:
        """Return the number of the class called ``name``, also as a CSV file of ours calls it, or numbered so."""
        for wanted in (name, plain(name)) if isinstance(name, str) else ():
            for number, called in self.names.items():
                if called == wanted:
                    return number
        digits = str(name).lstrip("#")
        if digits.isdecimal() and len(digits) < 10 and int(digits) in self.names:
            return int(digits)
        meant = nearest(str(name), self.names.values())
        raise EditError(f"there is no class {str(name)!r}.{meant} The classes are {describe_classes(self)}.")

    def check_class(self, number: int) -> None:
        """Say so if there is no class ``number``."""
        if number not in self.names:
            raise EditError(f"there is no class {number}. The classes are {describe_classes(self)}.")

    def check_new(self, number: int, wish: str) -> None:
        """Say so if class ``number`` is a known one, which must stay what the labels made it."""
        self.check_class(number)
        if number in self.made_known:
            raise EditError(
                f"{self.names[number]!r} is a known class since this run was refined: it can be renamed, but not "
                f"{wish}. New classes can; or correct it in the run before, and refine that again."
            )
        if number < self.n_known:
            raise EditError(
                f"{self.names[number]!r} is a known class: it comes from your labels and cannot be {wish}. "
                "New classes can."
            )

    def renamable(self, number: int) -> bool:
        """Tell whether a class may be called something else: unless its name comes from the labels of the source."""
        return number >= self.n_known or number in self.made_known

    def checked_name(self, name: str) -> str:
        """Return ``name`` without spaces around it, if a class can be called that."""
        tidy = " ".join(name.split())
        if not tidy or not tidy.isprintable():
            raise EditError(f"a class cannot be called {name!r}. Give a name of printable characters.")
        if len(tidy) > LONGEST_NAME:
            raise EditError(f"the name has {len(tidy)} characters; {LONGEST_NAME} are the most.")
        if tidy == JUNK_NAME:
            raise EditError(f"{JUNK_NAME!r} stands for images that belong nowhere. Mark them as junk.")
        if tidy in self.names.values():
            raise EditError(f"there is a class {tidy!r} already. To make one class of the two, merge them.")
        return tidy


def names_now(found: Mapping[int, str], now: Mapping[int, str]) -> dict[str, str]:
    """Return what classes are called now, by the names they were found under, both given by number."""
    return {was: now[number] for number, was in found.items() if number in now}


def describe_classes(sorting: Sorting) -> str:
    """Return the names of the classes, the first few of many: new ones, which can be corrected, before known ones."""
    return listed([name for number, name in sorted(sorting.names.items(), key=lambda c: c[0] < sorting.n_known)])
