"""What the report says, as plain data: one dataclass per section, no HTML and no pictures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from autonovel import evaluation
from autonovel.data import ImageSet
from autonovel.discovery import Discovery
from autonovel.report.words import counted

CENTRAL, UNSURE = 24, 8

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Headline:
    """The counts of the run, and the primary system's scores where the truth is known."""

    n_new: int
    n_empty: int
    n_unlabelled: int
    n_known: int
    n_labelled: int
    primary: str
    scores: dict[str, float] | None

    @property
    def sentence(self) -> str:
        """Return the counts in one sentence."""
        new = counted(self.n_new, "new class", "new classes")
        empty = f" ({self.n_empty} of them empty)" if self.n_empty else ""
        unlabelled = counted(self.n_unlabelled, "unlabelled image", "unlabelled images")
        known = counted(self.n_known, "known class", "known classes")
        labelled = counted(self.n_labelled, "labelled image", "labelled images")
        return f"{new}{empty} in {unlabelled}, beside {known} with {labelled}"


def headline(images: ImageSet, found: Discovery, results: Results) -> Headline:
    """Return the counts and scores at the top of the page."""
    new = range(found.n_known, len(found.names))
    n_unlabelled = int(images.unlabelled.sum())
    return Headline(
        n_new=len(new),
        n_empty=sum(not (found.class_id == number).any() for number in new),
        n_unlabelled=n_unlabelled,
        n_known=found.n_known,
        n_labelled=len(images) - n_unlabelled,
        primary=results["primary"],
        scores=results["systems"].get(results["primary"]),
    )


@dataclass(frozen=True)
class SystemRow:
    """One line of the comparison."""

    name: str
    primary: bool
    scores: dict[str, float]
    seconds: float | None


@dataclass(frozen=True)
class Systems:
    """The comparison: its lines, whether any has scores, and the seconds of what all systems share."""

    rows: tuple[SystemRow, ...]
    scored: bool
    shared: dict[str, float]


def systems(results: Results) -> Systems:
    """Return the comparison of systems."""
    scores, seconds = results["systems"], results["seconds"]
    rows = tuple(
        SystemRow(name, name == results["primary"], values or {}, seconds.get(name)) for name, values in scores.items()
    )
    shared = {name: s for name, s in seconds.items() if name not in scores and name not in ("report", "total")}
    return Systems(rows, any(row.scores for row in rows), shared)


@dataclass(frozen=True)
class Incremental:
    """Accuracy of the joint classifier on old, new and all classes, by protocol; and, by system, of each one there is.

    Those of several systems are compared under the published code's protocol.
    """

    split: str
    protocols: dict[str, dict[str, float]]
    by_system: dict[str, dict[str, float]]


def incremental(results: Results) -> Incremental | None:
    """Return the joint classifier's table, or None without one."""
    joint = results["incremental"]
    if joint is None:
        return None
    each = {name: content for name, content in (results.get("joint_classifiers") or {}).items() if content}
    by_system = {name: content["protocols"][evaluation.MATCHED_EACH] for name, content in each.items()}
    return Incremental(joint["split"], joint["protocols"], by_system if len(by_system) > 1 else {})


@dataclass(frozen=True)
class Thumbnail:
    """One image on a card: its row in the set, its name and the probability of its class."""

    row: int
    id: str
    confidence: float


@dataclass(frozen=True)
class Card:
    """One new class.

    Attributes:
        number: its class id.
        name: its name.
        size: number of images in it.
        confidence: mean over its images; None if it is empty.
        true_name: the most frequent true class in it; None if nobody knows, or it is empty.
        true_share: share of that class.
        central: images nearest to the centre.
        unsure: images with the lowest confidence.
    """

    number: int
    name: str
    size: int
    confidence: float | None
    true_name: str | None
    true_share: float
    central: tuple[Thumbnail, ...]
    unsure: tuple[Thumbnail, ...]


def cards(images: ImageSet, found: Discovery) -> tuple[Card, ...]:
    """Return a card for each new class."""
    return tuple(_card(images, found, number) for number in range(found.n_known, len(found.names)))


def _card(images: ImageSet, found: Discovery, number: int) -> Card:
    rows = ((found.class_id == number) & images.unlabelled).nonzero()[:, 0]
    size = len(rows)
    true_name, true_share = _majority(images, rows)
    return Card(
        number=number,
        name=found.names[number],
        size=size,
        confidence=float(found.confidence[rows].mean()) if size else None,
        true_name=true_name,
        true_share=true_share,
        central=_thumbnails(found, rows[found.outlier[rows].argsort(stable=True)][:CENTRAL]),
        # In a small class the least sure would only repeat the central ones.
        unsure=_thumbnails(found, rows[found.confidence[rows].argsort(stable=True)][: min(UNSURE, size // 2)]),
    )


def _thumbnails(found: Discovery, rows: Tensor) -> tuple[Thumbnail, ...]:
    return tuple(Thumbnail(row, found.ids[row], float(found.confidence[row])) for row in rows.tolist())


def _majority(images: ImageSet, rows: Tensor) -> tuple[str | None, float]:
    if images.truth is None or len(rows) == 0:
        return None, 0.0
    counts = images.truth[rows].bincount()
    return true_names(images)[int(counts.argmax())], float(counts.max() / counts.sum())


def true_names(images: ImageSet) -> tuple[str, ...]:
    """Return names of all true classes, with stand-ins where they have none."""
    assert images.truth is not None
    names = images.class_names + images.new_names
    return names + tuple(f"class {number}" for number in range(len(names), int(images.truth.max()) + 1))


@dataclass(frozen=True)
class Confusion:
    """True classes × found new classes of the unlabelled images; matched pairs lead the diagonal.

    Attributes:
        true: names of the rows; classes that no cluster is matched to come last.
        found: names of the columns; clusters that match no class come last.
        counts: images in each cell.
        n_matched: length of the diagonal.
    """

    true: tuple[str, ...]
    found: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    n_matched: int

    @property
    def agreeing(self) -> int:
        """Return how many images lie on the diagonal."""
        return sum(self.counts[i][i] for i in range(self.n_matched))

    @property
    def total(self) -> int:
        """Return how many images are counted."""
        return sum(map(sum, self.counts))


def confusion(images: ImageSet, found: Discovery) -> Confusion | None:
    """Return the confusion after matching, or None where nobody knows the truth."""
    if images.truth is None:
        return None
    truth, clusters = images.truth[images.unlabelled].numpy(), found.class_id[images.unlabelled].numpy()
    counts, classes, present = evaluation.confusion(truth, clusters)
    pairs = sorted((true, cluster) for cluster, true in evaluation.matching(truth, clusters).items())
    rows = _first([true for true, _ in pairs], classes.tolist())
    columns = _first([cluster for _, cluster in pairs], present.tolist())
    ordered = counts[np.searchsorted(classes, rows)][:, np.searchsorted(present, columns)]
    names = true_names(images)
    return Confusion(
        true=tuple(names[number] for number in rows),
        found=tuple(found.names[number] for number in columns),
        counts=tuple(map(tuple, ordered.tolist())),
        n_matched=len(pairs),
    )


def _first(leaders: list[int], everyone: list[int]) -> list[int]:
    return leaders + [number for number in everyone if number not in leaders]
