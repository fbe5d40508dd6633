"""From a corrected run to the next one: which new classes a person confirmed, what each image is labelled with now."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from autonovel.data.given_labels import GivenLabels
from autonovel.editing import edits
from autonovel.editing.edited import EditedRun
from autonovel.editing.sorting import JUNK, UNREADABLE, Sorting
from autonovel.errors import UsageError
from autonovel.labels import KNOWN_ONLY
from autonovel.words import of_images

UNNAMED = re.compile(r"new-\d+")  # what a part split off is called where nobody gives it a name


@dataclass(frozen=True)
class Refinement:
    """What a person made of a run.

    Attributes:
        sorting: the images' classes after the edits.
        n_edits: lines of the journal that were followed.
        confirmed: numbers of the new classes that become known.
        left: numbers of the other new classes that have images; these are still to be discovered.
        gone: names of known classes that have no image any more.
        moved: how many images a person put elsewhere than the model or their labels.
    """

    sorting: Sorting
    n_edits: int
    confirmed: tuple[int, ...]
    left: tuple[int, ...]
    gone: tuple[str, ...]
    moved: int

    def size(self, numbers: Sequence[int]) -> int:
        """Return how many images the classes ``numbers`` have together."""
        return sum(len(self.sorting.members(number)) for number in numbers)

    def named(self, numbers: Sequence[int]) -> list[str]:
        """Return the names of classes."""
        return [self.sorting.names[number] for number in numbers]

    @property
    def known(self) -> dict[str, int]:
        """Return how many images each known class has from now on."""
        numbers = [n for n in self.sorting.names if n < self.sorting.n_known or n in self.confirmed]
        sizes = {self.sorting.names[n]: len(self.sorting.members(n)) for n in numbers}
        return {name: size for name, size in sorted(sizes.items()) if size}

    @property
    def made_known(self) -> list[str]:
        """Return the names of the known classes that a person made so, now or in the runs before."""
        made = [self.sorting.names[number] for number in sorted({*self.sorting.made_known, *self.confirmed})]
        return [name for name in made if name in self.known]

    @property
    def unnamed(self) -> list[str]:
        """Return the names of confirmed classes that nobody gave one."""
        return [name for name in self.named(self.confirmed) if UNNAMED.fullmatch(name)]

    def labels(self) -> GivenLabels:
        """Return the label of every image from now on."""
        sorting, known = self.sorting, {*range(self.sorting.n_known), *self.confirmed}
        labels = {
            name: sorting.names[number] if number in known else None
            for name, number in zip(sorting.ids, sorting.class_of.tolist(), strict=True)
            if number != UNREADABLE
        }
        junk, lost = (frozenset(sorting.ids[row] for row in sorting.members(kind)) for kind in (JUNK, UNREADABLE))
        return GivenLabels(labels, junk, lost)


def refinement(run: EditedRun, confirm: Sequence[str], every: bool, n_edits: int | None = None) -> Refinement:
    """Return what becomes of a run's classes.

    Args:
        run: the run, with its edits.
        confirm: new classes that become known, besides those that a person gave a name, by name or number.
        every: all new classes become known.
        n_edits: follow only so many lines of the journal; None follows all.
    """
    made = run.made(n_edits)
    sorting = edits.replay(run.found, made)
    new = [number for number in sorted(sorting.names) if number >= sorting.n_known and len(sorting.members(number))]
    asked = {_asked_for(sorting, name) for name in confirm}
    confirmed = tuple(n for n in new if every or n in asked or n in named_by_a_person(run.found, made))
    if not confirmed:
        _refuse(run, sorting, new)
    left = tuple(n for n in new if n not in confirmed)
    gone = tuple(sorting.names[n] for n in range(sorting.n_known) if not len(sorting.members(n)))
    moved = int((sorting.by_hand(run.found.class_of) & (sorting.class_of >= 0)).sum())
    return Refinement(sorting, len(made), confirmed, left, gone, moved)


def named_by_a_person(found: Sorting, made: Sequence[edits.Edit]) -> set[int]:
    """Return the numbers of the new classes that a person gave a name: renamed, or split off under a name."""
    sorting, named = found, set[int]()
    for edit in edits.in_force(made):
        if isinstance(edit, edits.Rename):
            named.add(edit.number)
        if isinstance(edit, edits.Split) and not UNNAMED.fullmatch(edit.name.strip()):
            named.add(sorting.next_number)
        sorting = edit.apply(sorting)
    return named & set(sorting.names)


def _asked_for(sorting: Sorting, name: str) -> int:
    number = sorting.number(name)
    if number < sorting.n_known:
        raise UsageError(f"--confirm names {sorting.names[number]!r}, which is a known class already. Name new ones.")
    if not len(sorting.members(number)):
        raise UsageError(f"--confirm names {sorting.names[number]!r}, which has no image. Name a class that has some.")
    return number


def _refuse(run: EditedRun, sorting: Sorting, new: list[int]) -> None:
    if not new:
        raise UsageError(f"{run.folder} has no new class with images, so there is nothing to confirm.")
    called = ", ".join(f"{sorting.names[number]} ({of_images(len(sorting.members(number)))})" for number in new)
    place, first = shlex.quote(str(run.folder)), shlex.quote(sorting.names[new[0]])
    raise UsageError(
        f"no new class of {run.folder} is confirmed. Give a name to those that are right (autonovel review "
        f"{place}, or autonovel rename {place} {first} NAME), or name them here with "
        f"--confirm CLASS, or confirm them all with --all. The new classes: {called}."
    )


def new_classes(found: Refinement, asked: str) -> str:
    """Return the number of new classes to look for: as asked, or as many as are not confirmed; empty for none."""
    if not found.left:
        if asked:
            raise UsageError(
                f"--new-classes is {asked}, but every new class is confirmed, so nothing is left to discover. Leave it "
                "out."
            )
        return ""
    if len(found.left) == 1 and not asked:
        (name,), size = found.named(found.left), found.size(found.left)
        said = shlex.quote(name)
        raise UsageError(
            f"only {name} ({of_images(size)}) is not confirmed, and one class cannot be told apart from itself. "
            f"Confirm it too (--confirm {said}), mark it as junk (autonovel junk RUN --class {said}), or look for "
            "several classes in it (--new-classes 2, or auto)."
        )
    return asked or str(len(found.left))


def system_of(found: Refinement, primary: str) -> str:
    """Return the system that delivers: the one of the run before, as far as there is something to discover."""
    if not found.left:
        return KNOWN_ONLY
    return "rankstats-incremental" if primary == KNOWN_ONLY else primary
