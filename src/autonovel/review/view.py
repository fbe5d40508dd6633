"""What the page shows, as plain data: the classes as they are now, the images of one, and edits made."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autonovel.editing import edits
from autonovel.editing.edited import EDITS, EditedRun
from autonovel.editing.found import LOOKS_KNOWN, common_look, known_look
from autonovel.editing.halves import smaller_half
from autonovel.editing.sorting import JUNK, UNREADABLE, EditError
from autonovel.errors import InputError, UsageError
from autonovel.report.pictures import class_colours
from autonovel.review import sheets
from autonovel.run_images import RunImages

SAMPLE = 16
HISTORY = 30


class View:
    """A run for the page.

    Args:
        run: the run.
        data: where its images lie now, if they were moved.
    """

    def __init__(self, run: EditedRun, data: Path | None = None) -> None:
        self.run = run
        self.images = RunImages(run, data)
        self.images_missing = self.images.missing
        self.key = str(run.facts.get("digest", ""))[:12]  # other images have other addresses in a browser's cache
        self._lock = threading.Lock()
        self._numbers = {name: number for number, name in run.found.names.items()}
        self._second = np.array([self._numbers.get(row["second_class"], UNREADABLE) for row in run.table])
        self._look = np.array([look if (look := known_look(row)) in self._numbers else "" for row in run.table])
        self._nearest = np.array([self._numbers.get(row["nearest_known"], UNREADABLE) for row in run.table])
        self._known = np.array([_looks_known(row) for row in run.table])
        self._outlier = np.array([float(row["outlier"] or 1) for row in run.table])
        self._labelled = np.array([bool(row["given_label"]) for row in run.table])

    def state(self) -> dict[str, Any]:
        """Return the classes as they are now, with a few images of each, and the last edits."""
        with self._lock:
            return self._state()

    def _state(self) -> dict[str, Any]:
        sorting, logged = self.run.sorting, self.run.edits()
        colours = class_colours(sorting.n_known, sorting.next_number - sorting.n_known)
        last = [edit for edit in logged if edit.in_force][-1:]
        classes = [
            entry
            | {"colour": colours[entry["id"]], "sample": self._sample(entry["id"])}
            | {"renamable": sorting.renamable(entry["id"])}
            | self._near(entry["id"])
            | self._looks_like(entry["id"])
            for entry in self.run.classes()
        ]
        return {
            "run": self.run.folder.resolve().name,
            "recipe": self.run.facts["recipe"]["name"],
            "key": self.key,
            "cells": {"columns": sheets.COLUMNS, "most": sheets.MOST},
            "missing": self.images_missing,
            "report": self.report is not None,
            "report_older": self._report_is_older(),
            "edits": len(logged),
            "undo": last[0].told if last else None,
            "history": [
                {"number": e.number, "told": e.told, "time": e.time, "in_force": e.in_force, "undo": e.kind == "undo"}
                for e in reversed(logged[-HISTORY:])
            ],
            "unlabelled": int((~self._labelled & (sorting.class_of != UNREADABLE)).sum()),
            "unreadable": int((sorting.class_of == UNREADABLE).sum()),
            "classes": classes,
            "junk": {"size": len(sorting.members(JUNK)), "sample": self._sample(JUNK)},
            "looks_known_above": LOOKS_KNOWN,
            "free_name": self.run.free_name(),
        }

    @property
    def report(self) -> Path | None:
        """Return the report if it is one file: one with files beside it could not reach them through the guard."""
        path = self.run.folder / "report.html"
        return path if path.is_file() and not path.with_suffix("").is_dir() else None

    def _report_is_older(self) -> bool:
        """Tell whether there is a report, and corrections that it does not have."""
        try:
            return self.report is not None and self.report.stat().st_mtime < (self.run.folder / EDITS).stat().st_mtime
        except FileNotFoundError:  # nobody has corrected anything, or the report has just been deleted
            return False

    def _sample(self, number: int) -> list[int]:
        """Return the rows of the most central images of a class."""
        rows = self.run.sorting.members(number)
        order = np.argsort(self._outlier[rows], kind="stable")[:SAMPLE]
        return [int(row) for row in rows[order]]

    def _near(self, number: int) -> dict[str, Any]:
        """Return the class that is most often the second choice for a new class's images, a hint for merging."""
        sorting = self.run.sorting
        seconds = self._second[sorting.members(number)]
        seconds = np.array([sorting.answers[second] for second in seconds[seconds >= 0]], dtype=np.int64)
        seconds = seconds[(seconds != number) & (seconds != JUNK)]
        if number < sorting.n_known or not len(seconds):
            return {"near": None, "near_share": 0.0}
        counts = np.bincount(seconds)
        return {"near": int(counts.argmax()), "near_share": round(float(counts.max() / counts.sum()), 3)}

    def _looks_like(self, number: int) -> dict[str, Any]:
        """Return how many images of a new class look like known ones, and which most of them do, a hint to merge."""
        like, share, looks = "", 0.0, list[str]()
        if number >= self.run.sorting.n_known:
            looks = self._look[self.run.sorting.members(number)].tolist()
            like, share = common_look(looks)
        return {
            "look_known": sum(map(bool, looks)),
            "looks_like": self._numbers[like] if like else None,
            "looks_like_share": round(share, 3),
            "known_again": self.run.known_again.get(number),
        }

    def images_of(self, number: int) -> dict[str, Any]:
        """Return all images of a class (or the junk), the surest first."""
        with self._lock:
            sorting = self.run.sorting
            if number != JUNK:
                sorting.check_class(number)
            rows = sorting.members(number)
            rows = rows[np.argsort(-self.run.confidence[rows], kind="stable")]
            nearest, known = self._nearest[rows], self._known[rows]
            elsewhere = (nearest >= 0) & (nearest != number) & ~np.isnan(known)  # what may look like another class
            return {
                "number": number,
                "edits": self.run.n_edits,
                "rows": [int(row) for row in rows],
                "ids": [sorting.ids[row] for row in rows],
                "confidence": [round(float(value), 4) for value in self.run.confidence[rows]],
                "looks_known": _where(elsewhere.tolist(), known.tolist()),
                "nearest_known": _where(elsewhere.tolist(), nearest.tolist()),
                "labelled": [int(value) for value in self._labelled[rows]],
                "moved": [int(value) for value in sorting.by_hand(self.run.found.class_of)[rows]],
            }

    def edit(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        """Make an edit that the page asks for; when this returns, it is on disk.

        Besides the kinds of ``edits.KINDS`` there is ``halve``, a split into the two parts that k-means finds; a split
        without a name gets a free one.
        """
        line, based_on = wish.get("edit"), wish.get("based_on")
        if not isinstance(line, dict) or type(based_on) is not int:
            raise EditError("a request needs an edit and the number of edits it is based on.")
        with self._lock:
            if line.get("edit") == "halve":
                if type(line.get("number")) is not int:
                    raise EditError("name the class to split by its number.")
                images = smaller_half(self.run, self.run.sorting, line["number"])
                line = {"edit": "split", "number": line["number"], "images": list(images), "name": ""}
            if line.get("edit") == "split" and not line.get("name"):
                line = line | {"name": self.run.free_name()}
            self.run.edit(edits.from_line(line), based_on)
            return {"told": self.run.edits()[-1].told, "state": self._state()}

    def sheet(self, rows: list[int]) -> bytes:
        """Return thumbnails of images, named by their rows."""
        if not 0 < len(rows) <= sheets.MOST:
            raise UsageError(f"ask for 1 to {sheets.MOST} thumbnails at a time.")
        return sheets.sheet([self._picture(row, sheets.CELL) for row in rows])

    def large(self, row: int) -> bytes:
        """Return one image for a close look."""
        picture = self._picture(row, sheets.LARGE)
        if picture is None:
            raise UsageError("this image is not at hand.")
        return sheets.large(picture)

    def _picture(self, row: int, side: int) -> Any:
        if not 0 <= row < len(self.run.table):
            raise UsageError(f"there is no image {row}.")
        if self.images_missing or self.run.found.class_of[row] == UNREADABLE:
            return None
        try:
            return self.images.picture(row, side)
        except InputError:  # a file that is gone by now leaves an empty cell
            return None


def _looks_known(row: Mapping[str, str]) -> float:
    """Return how much an unlabelled image looks like known classes; not a number where nobody asks or knows."""
    return float("nan") if row["given_label"] or not row["looks_known"] else float(row["looks_known"])


def _where(asked: list[bool], values: list[Any]) -> list[Any]:
    return [value if is_so else None for is_so, value in zip(asked, values, strict=True)]
