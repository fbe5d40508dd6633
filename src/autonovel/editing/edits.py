"""Corrections by a person, as data: rename, merge, split, move, junk, undo.

An edit is a small record; a sorting (which image is in which class, and what the classes are called) is a function
of what was found and of the edits in force.  Nothing is ever overwritten, so any edit can be undone, and nothing here
touches a file or needs torch.

What a model's answers mean after edits: an answer for a merged class is one for the class it went into; one for a
class that was split is one for the larger part (as large as the rest: the class itself); one for a class marked as
junk is junk.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from autonovel.editing.sorting import JUNK, EditError, Sorting
from autonovel.words import of_images


class Edit(Protocol):
    """One correction."""

    kind: ClassVar[str]

    def apply(self, sorting: Sorting) -> Sorting:
        """Return ``sorting`` with the correction made, or raise ``EditError``."""
        ...

    def told(self, before: Sorting) -> str:
        """Return what the edit does to the sorting ``before`` it, in words."""
        ...


@dataclass(frozen=True)
class Rename:
    """Give class ``number`` another name."""

    kind: ClassVar[str] = "rename"
    number: int
    name: str

    def apply(self, sorting: Sorting) -> Sorting:
        """Return the sorting under the new name."""
        sorting.check_class(self.number)
        if not sorting.renamable(self.number):
            sorting.check_new(self.number, "renamed")
        if sorting.names[self.number] == " ".join(self.name.split()):
            raise EditError(f"the class is called {sorting.names[self.number]!r} already.")
        return replace(sorting, names={**sorting.names, self.number: sorting.checked_name(self.name)})

    def told(self, before: Sorting) -> str:
        """Return the edit in words."""
        return f"renamed {before.names[self.number]} to {' '.join(self.name.split())}"


@dataclass(frozen=True)
class Merge:
    """Put all images of the new classes ``numbers`` into class ``into``, known or new."""

    kind: ClassVar[str] = "merge"
    numbers: tuple[int, ...]
    into: int

    def apply(self, sorting: Sorting) -> Sorting:
        """Return the sorting with fewer classes."""
        sorting.check_class(self.into)
        if not self.numbers:
            raise EditError("name at least two classes to merge.")
        if self.into in self.numbers:
            raise EditError(f"{sorting.names[self.into]!r} cannot be merged into itself. Name another class.")
        if len(set(self.numbers)) < len(self.numbers):
            raise EditError("a class to merge is named twice. Name each once.")
        for number in self.numbers:
            sorting.check_new(number, "merged away")
        return _dissolved(sorting, self.numbers, self.into)

    def told(self, before: Sorting) -> str:
        """Return the edit in words."""
        return f"merged {', '.join(before.names[n] for n in self.numbers)} into {before.names[self.into]}"


def _dissolved(sorting: Sorting, numbers: tuple[int, ...], into: int) -> Sorting:
    """Return the sorting without the classes ``numbers``, their images and answers going ``into`` another."""
    return replace(
        sorting,
        class_of=np.where(np.isin(sorting.class_of, numbers), into, sorting.class_of),
        names={number: name for number, name in sorting.names.items() if number not in numbers},
        answers=tuple(into if number in numbers else number for number in sorting.answers),
    )


@dataclass(frozen=True)
class Split:
    """Make a class of its own, called ``name``, of some ``images`` of class ``number``."""

    kind: ClassVar[str] = "split"
    number: int
    images: tuple[str, ...]
    name: str

    def apply(self, sorting: Sorting) -> Sorting:
        """Return the sorting with one class more."""
        sorting.check_class(self.number)
        rows = sorting.rows(self.images)
        strangers = rows[sorting.class_of[rows] != self.number]
        old = sorting.names[self.number]
        if len(strangers):
            raise EditError(f"{sorting.ids[strangers[0]]} is not in {old!r}, so it cannot be split off it.")
        left = len(sorting.members(self.number)) - len(rows)
        if left == 0:
            raise EditError(f"these are all images of {old!r}. Rename the class, or leave some images in it.")
        new = sorting.next_number
        moves = len(rows) > left and self.number >= sorting.n_known  # a known class keeps its answers
        return replace(
            _moved(sorting, rows, new),
            names={**sorting.names, new: sorting.checked_name(self.name)},
            answers=tuple(new if moves and number == self.number else number for number in sorting.answers),
            next_number=new + 1,
        )

    def told(self, before: Sorting) -> str:
        """Return the edit in words."""
        return f"split {of_images(len(self.images))} off {before.names[self.number]} as {' '.join(self.name.split())}"


@dataclass(frozen=True)
class Move:
    """Put ``images`` into class ``to``."""

    kind: ClassVar[str] = "move"
    images: tuple[str, ...]
    to: int

    def apply(self, sorting: Sorting) -> Sorting:
        """Return the sorting with the images elsewhere."""
        sorting.check_class(self.to)
        rows = sorting.rows(self.images)
        if (sorting.class_of[rows] == self.to).all():
            raise EditError(f"all of these images are in {sorting.names[self.to]!r} already.")
        return _moved(sorting, rows, self.to)

    def told(self, before: Sorting) -> str:
        """Return the edit in words."""
        return f"moved {of_images(len(self.images))} to {before.names[self.to]}"


@dataclass(frozen=True)
class Junk:
    """Mark ``images`` as belonging nowhere; ``move`` takes them back."""

    kind: ClassVar[str] = "junk"
    images: tuple[str, ...]

    def apply(self, sorting: Sorting) -> Sorting:
        """Return the sorting without the images."""
        rows = sorting.rows(self.images)
        if (sorting.class_of[rows] == JUNK).all():
            raise EditError("all of these images are marked as junk already.")
        return _moved(sorting, rows, JUNK)

    def told(self, before: Sorting) -> str:
        """Return the edit in words."""
        return f"marked {of_images(len(self.images))} as junk"


@dataclass(frozen=True)
class JunkClass:
    """Mark the new class ``number`` as junk: its images belong nowhere, nor does what the model puts into it."""

    kind: ClassVar[str] = "junk-class"
    number: int

    def apply(self, sorting: Sorting) -> Sorting:
        """Return the sorting without the class."""
        sorting.check_new(self.number, "marked as junk")
        return _dissolved(sorting, (self.number,), JUNK)

    def told(self, before: Sorting) -> str:
        """Return the edit in words."""
        return f"marked the class {before.names[self.number]} as junk"


@dataclass(frozen=True)
class Undo:
    """Take back the last edit in force."""

    kind: ClassVar[str] = "undo"

    def apply(self, sorting: Sorting) -> Sorting:
        """Refuse: an undo is about the edits before it, not about a sorting; see ``in_force``."""
        raise EditError("an undo cannot be applied by itself; replay the edits in force.")

    def told(self, before: Sorting) -> str:
        """Return the edit in words."""
        return "undid the last edit"


def _moved(sorting: Sorting, rows: NDArray[np.int64], number: int) -> Sorting:
    class_of = sorting.class_of.copy()
    class_of[rows] = number
    return replace(sorting, class_of=class_of)


KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (Rename, Merge, Split, Move, Junk, JunkClass, Undo)}


def in_force(edits: Iterable[Edit]) -> list[Edit]:
    """Return the edits that no later undo takes back."""
    kept: list[Edit] = []
    for edit in edits:
        if not isinstance(edit, Undo):
            kept.append(edit)
        elif kept:
            kept.pop()
        else:
            raise EditError("there is no edit left to undo.")
    return kept


def replay(found: Sorting, edits: Iterable[Edit]) -> Sorting:
    """Return what a run found, with ``edits`` made one after the other."""
    sorting = found
    for edit in in_force(edits):
        sorting = edit.apply(sorting)
    return sorting


def as_line(edit: Edit) -> dict[str, Any]:
    """Return the edit as plain data for JSON."""
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(edit).items()}  # type: ignore[call-overload]
    return {"edit": edit.kind, **plain}


def from_line(line: Mapping[str, Any]) -> Edit:
    """Return the edit that ``line`` describes; whatever else the line says is left alone."""
    kind = line.get("edit")
    if not isinstance(kind, str) or kind not in KINDS:
        raise EditError(f"an edit is of kind {kind!r}; the kinds are {', '.join(KINDS)}.")
    made = KINDS[kind]
    values = {f.name: _typed(kind, f.name, line.get(f.name), str(f.type)) for f in fields(made)}
    edit: Edit = made(**values)
    return edit


def _typed(kind: str, key: str, value: Any, wanted: str) -> Any:
    """Return a value of an edit from outside, if it is of the type the field is declared with."""
    one: type = str if "str" in wanted else int
    many = "tuple" in wanted
    values = value if many and isinstance(value, list | tuple) else [value]
    right = isinstance(value, list | tuple) == many and all(type(v) is one for v in values)
    if not right:
        needed = f"a list of {'texts' if one is str else 'numbers'}" if many else "a text" if one is str else "a number"
        raise EditError(f"{key!r} of the edit {kind!r} is {str(value)[:60]!r}; it must be {needed}.")
    return tuple(values) if many else value
