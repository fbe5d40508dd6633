"""The result: which image is in which class, how sure, and what the classes are called."""

import csv
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autonovel.data import ImageSet
from autonovel.editing.found import COLUMNS, found_classes, has_class
from autonovel.editing.sorting import JUNK_NAME
from autonovel.embedding import Embedding
from autonovel.errors import RunFolderError
from autonovel.spreadsheet import harmless_line, line, plain_rows
from autonovel.storage.documents import replace_file, write_json

UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Discovery:
    """Assignments and scores in input order.

    Attributes:
        ids: name of each image.
        given: known class of labelled images, −1 for the others.
        class_id: known classes 0 … C^l − 1, new ones after them, the largest first.
        confidence: probability of the class.
        second: class with the next highest probability.
        margin: confidence less the second's probability.
        nearest_known: most probable known class.
        looks_known: mass of the joint head on the known classes; None without a joint head.
        outlier: rank of the distance to the centre of its class, 0 (central) to 1 (farthest).
        names: names of all classes by id.
        n_known: number of known classes.
        unreadable: input files without an answer: why, by id.
        ids_are_paths: whether ids are paths relative to the input folder.
        junk: images that a person left out before, by id.
    """

    ids: tuple[str, ...]
    given: Tensor
    class_id: Tensor
    confidence: Tensor
    second: Tensor
    margin: Tensor
    nearest_known: Tensor
    looks_known: Tensor | None
    outlier: Tensor
    names: tuple[str, ...]
    n_known: int
    unreadable: Mapping[str, str] = field(default_factory=dict)
    ids_are_paths: bool = False
    junk: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per input under the names of ``COLUMNS``: the images, unreadable files, junk."""
        n = len(self.ids)
        class_id = self.class_id.tolist()
        columns = {
            "id": self.ids,
            "path": self.ids if self.ids_are_paths else [""] * n,
            "status": ["ok"] * n,
            "given_label": [self.names[number] if number >= 0 else "" for number in self.given.tolist()],
            "class_id": class_id,
            "class_name": self._named(class_id),
            "confidence": _decimals(self.confidence),
            "second_class": self._named(self.second.tolist()),
            "margin": _decimals(self.margin),
            "nearest_known": self._named(self.nearest_known.tolist()),
            "looks_known": [""] * n if self.looks_known is None else _decimals(self.looks_known),
            "outlier": _decimals(self.outlier),
        }
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        nothing: dict[str, Any] = dict.fromkeys(COLUMNS, "")
        lost = [
            nothing | {"id": name, "path": name, "status": f"{UNREADABLE}: {reason}"}
            for name, reason in self.unreadable.items()
        ]
        junk = [
            nothing | {"id": name, "path": name if self.ids_are_paths else "", "status": JUNK_NAME}
            for name in self.junk
        ]
        return rows + lost + junk

    def _named(self, numbers: list[int]) -> list[str]:
        return [self.names[number] for number in numbers]

    def classes(self) -> list[dict[str, Any]]:
        """Return one entry per class: id, name, kind, number of images and their mean confidence."""
        out = []
        for number, name in enumerate(self.names):
            members = self.class_id == number
            out.append(
                {
                    "id": number,
                    "name": name,
                    "kind": "known" if number < self.n_known else "new",
                    "size": int(members.sum()),
                    "confidence": round(float(self.confidence[members].mean()), 4) if members.any() else None,
                }
            )
        return out

    def save(self, folder: Path) -> None:
        """Write ``discovery.csv`` and ``classes.json``."""
        lines = [line(COLUMNS), *(harmless_line(COLUMNS, row) for row in self.rows())]
        replace_file(folder / "discovery.csv", "".join(lines).encode())
        write_json(folder / "classes.json", {"classes": self.classes()})


def _decimals(values: Tensor) -> list[str]:
    return [f"{value:.4f}" for value in values.tolist()]


def class_names(known: tuple[str, ...], n_new: int) -> tuple[str, ...]:
    """Return names of all classes; a new one is called ``new-1`` until somebody names it."""
    free = (name for number in itertools.count(1) if (name := f"new-{number}") not in known)
    return known + tuple(itertools.islice(free, n_new))


def by_size(images: ImageSet, p_new: Tensor) -> Tensor:
    """Return the new classes from the largest to the smallest, counted on the unlabelled images."""
    if not p_new.shape[1]:
        return torch.zeros(0, dtype=torch.int64)
    counts = torch.bincount(p_new[images.unlabelled].argmax(dim=1), minlength=p_new.shape[1])
    return counts.argsort(descending=True, stable=True)


def class_probabilities(images: ImageSet, embedding: Embedding) -> Tensor:
    """Return n×(C^l + C^u) probabilities behind the assignments.

    Unlabelled images are judged by the head of the new classes, labelled ones by the head of the known.
    """
    n_known, n_new = images.n_known, embedding.p_new.shape[1]
    p = torch.zeros(len(images), n_known + n_new)
    p[:, : embedding.p_known.shape[1]] = embedding.p_known
    free = images.unlabelled
    p[free] = 0
    p[free, n_known:] = embedding.p_new[free]
    return p


def discover(images: ImageSet, embedding: Embedding) -> Discovery:
    """Return the discovery that ``embedding`` holds for ``images``."""
    n_known, n_new = images.n_known, embedding.p_new.shape[1]
    p = class_probabilities(images, embedding)
    class_id = torch.where(images.unlabelled, p.argmax(dim=1), images.y)
    rows = torch.arange(len(images))
    confidence = p[rows, class_id]
    others = p.clone()
    others[rows, class_id] = -1
    others[images.unlabelled, :n_known] = -1  # their head knows new classes only
    grown = embedding.p_known.shape[1] == n_known + n_new  # one head for all classes
    known = embedding.p_known[:, :n_known]
    return Discovery(
        ids=images.ids,
        given=images.y,
        class_id=class_id,
        confidence=confidence,
        second=others.argmax(dim=1),
        margin=confidence - others.amax(dim=1),
        nearest_known=known.argmax(dim=1),
        looks_known=known.sum(dim=1) if grown else None,
        outlier=_outlier_ranks(embedding.z, class_id),
        names=class_names(images.class_names, n_new),
        n_known=n_known,
        unreadable=images.unreadable,
        ids_are_paths=images.ids_are_paths,
        junk=images.junk,
    )


def _outlier_ranks(z: Tensor, class_id: Tensor) -> Tensor:
    ranks = torch.zeros(len(z))
    for number in class_id.unique():
        members = class_id == number
        distance = (z[members] - z[members].mean(dim=0)).norm(dim=1)
        order = distance.argsort(stable=True).argsort()
        ranks[members] = order.float() / max(len(order) - 1, 1)
    return ranks


def read(folder: Path) -> tuple[ImageSet, tuple[str, ...]]:
    """Return the images of a finished run, without their pixels, and the names of all its classes as found."""
    found, n_known = found_classes(folder)
    names, known = tuple(found), tuple(found[:n_known])
    try:
        with (folder / "discovery.csv").open(newline="", encoding="utf-8") as file:
            rows = [row for row in plain_rows(csv.DictReader(file)) if has_class(row)]
        given = [known.index(row["given_label"]) if row["given_label"] else -1 for row in rows]
        ids = tuple(row["id"] for row in rows)
    except (OSError, KeyError, ValueError, csv.Error) as error:
        raise RunFolderError(f"{folder / 'discovery.csv'} cannot be read ({error}). Finish the run anew.") from error
    nothing = torch.zeros(len(ids), 0, 0, 0, dtype=torch.uint8)
    return ImageSet(nothing, torch.tensor(given, dtype=torch.int64), ids, known), names
