"""A finished run and its corrections: ``discovery.csv`` as found, ``edits.jsonl`` on top of it.

``edits.jsonl`` only grows, a line per edit, each on disk before it is acknowledged; ``classes.json`` is derived from
it.  The run folder is locked for the moment of an edit only, so several people, or a page and a command, can correct
one run: each edit says on how many edits it is based, and one based on an older state is refused.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from autonovel.editing import edits
from autonovel.editing.found import FoundRun
from autonovel.editing.sorting import JUNK, JUNK_NAME, UNREADABLE, EditError, Sorting, names_now
from autonovel.errors import RunFolderError
from autonovel.storage.documents import read_json, write_json
from autonovel.storage.journal import Journal
from autonovel.storage.run_folder import subfolder_lock

EDITS, CLASSES = "edits.jsonl", "classes.json"
Images = str | PurePath | Iterable[str | PurePath]  # one or several, by their ids
MADE_BY_EDITS = ("found_class", "by_hand")  # columns beside those of discovery.csv


class EditConflictError(EditError):
    """An edit based on a state of the classes that somebody has changed since."""


@dataclass(frozen=True)
class LoggedEdit:
    """An edit of the journal: its number from 1 on, its kind, when it was made, what it did, whether it still holds."""

    number: int
    kind: str
    time: str
    told: str
    in_force: bool


class EditedRun(FoundRun):
    """A finished run as a person has corrected it so far, and the way to correct it further.

    Classes are named by their name or, where no class has that name, by their number.

    Examples:
        >>> run = EditedRun("runs/demo-seed0")  # doctest: +SKIP
        >>> run.rename("new-1", "seven")  # doctest: +SKIP
        >>> run.merge("seven", "new-4")  # doctest: +SKIP
        >>> run.undo()  # doctest: +SKIP
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__(Path(folder))
        self._known_size = -1
        self.behind = ""  # why classes.json does not follow the last edit yet, where that is so
        self._read_edits()

    @property
    def sorting(self) -> Sorting:
        """Return the sorting with all edits made, also those that others have made since."""
        self._read_edits()
        return self._sorting

    @property
    def renamed(self) -> dict[str, str]:
        """Return what classes are called now, by the names they were found under."""
        return names_now(self.found.names, self.sorting.names)

    @property
    def n_edits(self) -> int:
        """Return how many lines the journal has: an edit based on this state says so."""
        self._read_edits()
        return len(self._edits)

    def _read_edits(self) -> None:
        """Read the journal if it has grown."""
        path = self.folder / EDITS
        size = path.stat().st_size if path.exists() else 0
        if size != self._known_size:
            self._take(Journal(path))
            self._known_size = size

    def _take(self, journal: Journal) -> None:
        try:
            made = [edits.from_line(line) for line in journal.lines]
            self._sorting = edits.replay(self.found, made)
        except EditError as error:
            raise RunFolderError(f"{journal.path} does not fit the run ({error}).") from error
        self._edits, self._lines = made, list(journal.lines)

    def edit(self, edit: edits.Edit, based_on: int | None = None) -> None:
        """Make an edit; when this returns, it is on disk.

        Args:
            edit: what to do.
            based_on: number of edits (``n_edits``) of the state it was chosen on; None takes the state as it is.
        """
        with subfolder_lock(self.folder):
            journal = Journal(self.folder / EDITS)
            self._take(journal)
            self.catch_up()
            if based_on is not None and based_on != len(self._edits):
                raise EditConflictError(
                    f"the classes have changed since: the edit is based on {based_on} edits, and there are "
                    f"{len(self._edits)}. Look at them again, then repeat it."
                )
            made = [*self._edits, edit]
            sorting = edits.replay(self.found, made) if isinstance(edit, edits.Undo) else edit.apply(self._sorting)
            time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            journal.append(edits.as_line(edit) | {"time": time, "told": self._told(edit)})
            self._edits, self._lines, self._sorting = made, list(journal.lines), sorting
            self._known_size = journal.path.stat().st_size
            self._write_classes()

    def _write_classes(self) -> None:
        """Derive ``classes.json``; where the disk does not take it, the edit stands all the same."""
        try:
            write_json(self.folder / CLASSES, self._classes_document())
            self.behind = ""
        except RunFolderError as error:
            if not (self.folder / EDITS).exists():
                raise  # the run was deleted meanwhile, and the edit with it
            self.behind = f"The edit is kept, but classes.json does not show it yet: {error} The next edit writes both."

    def catch_up(self) -> None:
        """Derive ``classes.json`` anew where a kill, a full disk or a resumed run came between the last edit and it."""
        if self._edits and read_json(self.folder / CLASSES).get("edits", 0) != len(self._edits):
            self._write_classes()

    def _told(self, edit: edits.Edit) -> str:
        """Return in words what an edit does to the classes as they are."""
        if not isinstance(edit, edits.Undo):
            return edit.told(self._sorting)
        return f"undid: {[one.told for one in self.edits() if one.in_force][-1]}"

    def number(self, name: str | int) -> int:
        """Return the number of the class called ``name``, or numbered so."""
        return self.sorting.number(name)

    def made(self, first: int | None = None) -> list[edits.Edit]:
        """Return the lines of the journal as edits, undos included: all of them, or the ``first`` ones."""
        self._read_edits()
        return self._edits[:first]

    def refine(
        self, *confirm: str | int, every: bool = False, new_classes: int | str = "", **options: Any
    ) -> "EditedRun":
        """Let named and confirmed classes become known, train on in a new run, and return it.

        Args:
            confirm: new classes that become known besides those that have a name, by name or number.
            every: all of them do.
            new_classes: how many are still to be discovered, or ``auto``; the others there are by default.
            options: ``out``, ``seed``, ``sets``, ``device``, ``data``, ``resume``, ``overwrite`` and ``keep_going``, as
                the command's.
        """
        from autonovel.commands.refine import refine

        return EditedRun(refine(self.folder, [str(name) for name in confirm], every, str(new_classes), **options))

    def rename(self, name: str | int, to: str) -> None:
        """Call a class something else."""
        self.edit(edits.Rename(self.number(name), to))

    def merge(self, into: str | int, *others: str | int) -> None:
        """Put all images of ``others`` into class ``into``."""
        self.edit(edits.Merge(tuple(map(self.number, others)), self.number(into)))

    def split(self, name: str | int, images: Images | None = None, to: str | None = None) -> None:
        """Make a class of its own of some images of a class; without ``images``, the smaller part found by k-means."""
        from autonovel.editing.halves import smaller_half

        number = self.number(name)
        chosen = _ids(images) if images is not None else smaller_half(self, self.sorting, number)
        self.edit(edits.Split(number, chosen, to or self.free_name()))

    def move(self, images: Images, to: str | int) -> None:
        """Put images, by their ids, into another class."""
        self.edit(edits.Move(_ids(images), self.number(to)))

    def junk(self, images: Images) -> None:
        """Mark images, by their ids, as belonging nowhere."""
        self.edit(edits.Junk(_ids(images)))

    def junk_class(self, name: str | int) -> None:
        """Mark a whole new class as junk, and what the model puts into it from now on."""
        self.edit(edits.JunkClass(self.number(name)))

    def undo(self) -> None:
        """Take back the last edit in force."""
        self.edit(edits.Undo())

    def free_name(self) -> str:
        """Return a name for a further new class that none has or was found under."""
        taken, number = {*self.sorting.names.values(), *self.found.names.values()}, 1
        while (name := f"new-{number}") in taken:
            number += 1
        return name

    def edits(self) -> list[LoggedEdit]:
        """Return all edits in their order, with what each did and whether it still holds."""
        self._read_edits()
        kept = {id(edit) for edit in edits.in_force(self._edits)}
        return [
            LoggedEdit(number, edit.kind, str(line.get("time", "")), str(line.get("told", edit.kind)), id(edit) in kept)
            for number, (edit, line) in enumerate(zip(self._edits, self._lines, strict=True), 1)
        ]

    def classes(self) -> list[dict[str, Any]]:
        """Return an entry per class as it is now: id, name, kind, size, mean confidence, and what it was found as."""
        sorting, found = self.sorting, self.found
        out = []
        for number, name in sorted(sorting.names.items()):
            rows = sorting.members(number)
            out.append(
                {
                    "id": number,
                    "name": name,
                    "kind": "known" if number < sorting.n_known else "new",
                    "size": len(rows),
                    "confidence": round(float(self.confidence[rows].mean()), 4) if len(rows) else None,
                    "found_as": found.names.get(number),
                }
            )
        return out

    def _classes_document(self) -> dict[str, Any]:
        sorting = self._sorting
        gone = [
            {"id": number, "found_as": name, "answers": _name_of(sorting, sorting.answers[number])}
            for number, name in self.found.names.items()
            if number not in sorting.names
        ]
        junk = len(sorting.members(JUNK))
        return {"edits": len(self._edits), "classes": self.classes(), "gone": gone, "junk": junk}

    def rows(self) -> list[dict[str, str]]:
        """Return ``discovery.csv`` with all edits made, and two more columns.

        Classes are called what they are now, but in ``found_class``, the class as found; ``by_hand`` is ``yes`` where a
        person put the image elsewhere than the model's answer would now.  Confidence, margin and outlier stay what the
        model said of the class it found.
        """
        sorting, found, called = self.sorting, self.found, self.renamed
        was = {name: number for number, name in found.names.items()}
        out = []
        moved = sorting.by_hand(found.class_of)
        for row, number, by_hand in zip(self.table, sorting.class_of.tolist(), moved.tolist(), strict=True):
            new = row | dict(zip(MADE_BY_EDITS, (row["class_name"], ""), strict=True))
            if number != UNREADABLE:
                second = sorting.answers[was[row["second_class"]]] if row["second_class"] in was else UNREADABLE
                new |= {
                    "status": JUNK_NAME if number == JUNK else "ok",
                    "class_id": "" if number == JUNK else str(number),
                    "class_name": sorting.names.get(number, ""),
                    "second_class": "" if second in (number, UNREADABLE) else _name_of(sorting, second),
                    "by_hand": "yes" if by_hand else "",
                    **{column: called.get(row[column], row[column]) for column in ("given_label", "nearest_known")},
                }
            out.append(new)
        return out


def _ids(images: Images) -> tuple[str, ...]:
    """Return the ids of images where one or several are given; those of files are paths and may be given as such."""
    several = [images] if isinstance(images, str | PurePath) else images
    return tuple(one.as_posix() if isinstance(one, PurePath) else one for one in several)


def _name_of(sorting: Sorting, number: int) -> str:
    return JUNK_NAME if number == JUNK else sorting.names[number]


def open_run(folder: str | Path) -> EditedRun:
    """Return the finished run at ``folder``, to look at and to correct."""
    if not Path(folder).is_dir():
        raise RunFolderError(
            f"there is no run folder {folder}. Name the folder of a finished run, such as runs/demo-seed0."
        )
    return EditedRun(folder)
