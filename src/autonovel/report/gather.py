"""What the report says of the whole run, as plain data: one dataclass per section, no HTML and no pictures."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from autonovel import evaluation
from autonovel.editing.found import LOOKS_KNOWN
from autonovel.editing.sorting import JUNK
from autonovel.report.subject import Bools, Subject
from autonovel.words import count, counted, listed, look_more_known, on_known_again, on_unlabelled

MOST_CELLS, WORST = 120 * 120, 40

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Headline:
    """The counts of the run, and the primary system's scores where the truth is known.

    Attributes:
        n_new: number of new classes.
        n_empty: how many of them have no image.
        n_known: number of known classes.
        unlabelled: where the unlabelled images are: in new classes, in known ones, marked as junk.
        labelled: the same of the labelled ones.
        unreadable: input files that are in no class because they cannot be read.
        left_out: images marked as junk before the run, which it did not look at.
        n_edits: corrections by a person that all counts follow.
        look_known: of new classes by name, how many unlabelled images look more like a known class; none with none.
        again: new classes that may be known ones, since their features lie where those of these do, in words.
        primary: name of the system that delivers.
        scores: its scores, as found.
    """

    n_new: int
    n_empty: int
    n_known: int
    unlabelled: tuple[int, int, int]
    labelled: tuple[int, int, int]
    unreadable: int
    left_out: int
    n_edits: int
    look_known: dict[str, int]
    again: tuple[str, ...]
    primary: str
    scores: dict[str, float] | None

    @property
    def n_unlabelled(self) -> int:
        """Return how many images came without a label."""
        return sum(self.unlabelled)

    @property
    def n_labelled(self) -> int:
        """Return how many images came with a label."""
        return sum(self.labelled)

    @property
    def sentence(self) -> str:
        """Return the counts in one sentence."""
        new = counted(self.n_new, "new class", "new classes")
        empty = f" ({self.n_empty} of them empty)" if self.n_empty else ""
        unlabelled = counted(self.n_unlabelled, "unlabelled image", "unlabelled images")
        known = counted(self.n_known, "known class", "known classes")
        labelled = counted(self.n_labelled, "labelled image", "labelled images")
        return f"{new}{empty} in {unlabelled}, beside {known} with {labelled}"

    @property
    def details(self) -> str:
        """Return where the images are that a person moved and the files that could not be read; nothing if none."""
        told = []
        if self.n_edits:
            told.append(f"{counted(self.n_edits, 'correction', 'corrections')} by hand, included in all that follows.")
        if any(self.unlabelled[1:]):
            told.append(f"Of the unlabelled images, {_places(self.unlabelled)}.")
        if self.labelled[0] or self.labelled[2]:
            told.append(f"Of the labelled images, {_places(self.labelled)}.")
        if self.unreadable:
            files = counted(self.unreadable, "further file", "further files")
            told.append(f"{files} could not be read.")
        if self.left_out:
            images = counted(self.left_out, "further image", "further images")
            told.append(f"{images}, marked as junk before, {'was' if self.left_out == 1 else 'were'} left out.")
        return " ".join(told)

    @property
    def hint(self) -> str:
        """Return which new classes and images of such look like known ones and what to do; nothing if none do."""
        told = []
        if self.again:
            told.append(on_known_again(self.again))
        if n := sum(self.look_known.values()):
            most = sorted(self.look_known.items(), key=lambda one: -one[1])
            where = listed([f"{name} {count(part)}" for name, part in most])
            told.append(
                f"{look_more_known(n)}: {where} (looks_known above "
                f"{LOOKS_KNOWN} in discovery.csv; nearest_known says which). On a class’s page, autonovel review shows "
                "them together by the order “Looks known first”: move those that are of a known class into it."
            )
        return " ".join(told)


def _places(counts: tuple[int, int, int]) -> str:
    """Return ``7 are in new classes, 2 in known ones and 1 marked as junk`` with what is zero left out."""
    words = ("in new classes", "in known classes", "marked as junk")
    parts = [f"{count(number)} {word}" for number, word in zip(counts, words, strict=True) if number]
    first, rest = parts[0].split(" ", 1)
    parts[0] = f"{first} {'is' if first == '1' else 'are'} {rest}"
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def headline(subject: Subject, results: Results) -> Headline:
    """Return the counts and scores at the top of the page."""
    return Headline(
        n_new=len(subject.new),
        n_empty=sum(not len(subject.members(number)) for number in subject.new),
        n_known=subject.n_known,
        unlabelled=_whereabouts(subject, ~subject.labelled),
        labelled=_whereabouts(subject, subject.labelled),
        unreadable=subject.unreadable,
        left_out=subject.left_out,
        n_edits=subject.n_edits,
        look_known={subject.names[number]: n for number in subject.new if (n := _looking_known(subject, number))},
        again=_again(subject.renamed, results.get("known_again") or {}),
        primary=results["primary"],
        scores=results["systems"].get(results["primary"]),
    )


def _again(called: Mapping[str, str], told: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a run says of new classes that may be known ones, of those that are still ``called`` something."""
    return tuple(
        f"{called[new]} may be {called[known]}" for new, known in told.items() if {new, known} <= called.keys()
    )


def _looking_known(subject: Subject, number: int) -> int:
    return int((subject.look[subject.members(number)] >= 0).sum())


def _whereabouts(subject: Subject, which: Bools) -> tuple[int, int, int]:
    classes = subject.class_of[which]
    in_new, junk = int((classes >= subject.n_known).sum()), int((classes == JUNK).sum())
    return in_new, len(classes) - in_new - junk, junk


@dataclass(frozen=True)
class SystemRow:
    """One line of the comparison."""

    name: str
    primary: bool
    scores: dict[str, float]
    seconds: float | None


@dataclass(frozen=True)
class Systems:
    """The comparison: its lines, whether any has scores, the seconds of what all systems share.

    ``why`` says how the system that delivers was chosen, where trials chose it.
    """

    rows: tuple[SystemRow, ...]
    scored: bool
    shared: dict[str, float]
    why: str


def systems(results: Results) -> Systems:
    """Return the comparison of systems."""
    scores, seconds = results["systems"], results["seconds"]
    rows = tuple(
        SystemRow(name, name == results["primary"], values or {}, seconds.get(name)) for name, values in scores.items()
    )
    shared = {name: s for name, s in seconds.items() if name not in scores and name not in ("report", "total")}
    return Systems(rows, any(row.scores for row in rows), shared, results.get("choice") or "")


@dataclass(frozen=True)
class Incremental:
    """Accuracy of the joint classifier on old, new and all classes, by protocol; and, by system, of each one there is.

    Those of several systems are compared under the published code's protocol.  ``on_unlabelled``
    says how it does on the unlabelled training images.
    """

    split: str
    protocols: dict[str, dict[str, float]]
    by_system: dict[str, dict[str, float]]
    on_unlabelled: str


def incremental(results: Results) -> Incremental | None:
    """Return the joint classifier's table, or None without one."""
    joint = results["incremental"]
    if joint is None:
        return None
    each = {name: content for name, content in (results.get("joint_classifiers") or {}).items() if content}
    by_system = {name: content["protocols"][evaluation.MATCHED_EACH] for name, content in each.items()}
    compared = by_system if len(by_system) > 1 else {}
    said = on_unlabelled(joint["unlabelled"]) if "unlabelled" in joint else ""
    return Incremental(joint["split"], joint["protocols"], compared, said)


@dataclass(frozen=True)
class Agreement:
    """How far the systems agree: in words, and as a table of shares over ``systems``."""

    told: str
    systems: tuple[str, ...]
    shares: tuple[tuple[str, ...], ...]


def agreement(results: Results, subject: Subject) -> Agreement | None:
    """Return how far the systems of the run agree on the unlabelled images, or None where that was not measured."""
    measured = results.get("agreement")
    if not measured:
        return None
    from autonovel.agreement import rounded_down, told

    text = told(measured, subject.renamed)
    shares = tuple(tuple(rounded_down(share) for share in row) for row in measured["shares"])
    return Agreement(text, tuple(measured["systems"]), shares)


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
    def readable(self) -> bool:
        """Return whether the table is small enough to be read, and for a browser to draw."""
        return len(self.true) * len(self.found) <= MOST_CELLS

    @property
    def worst(self) -> list[tuple[str, str, int]]:
        """Return true class, found class and number of images of the largest cells off the diagonal, a few of them."""
        cells = [
            (number, row, column)
            for row, counts in enumerate(self.counts)
            for column, number in enumerate(counts)
            if number and (row != column or row >= self.n_matched)
        ]
        largest = heapq.nlargest(WORST, cells, key=lambda cell: cell[0])
        return [(self.true[row], self.found[column], number) for number, row, column in largest]

    @property
    def agreeing(self) -> int:
        """Return how many images lie on the diagonal."""
        return sum(self.counts[i][i] for i in range(self.n_matched))

    @property
    def total(self) -> int:
        """Return how many images are counted."""
        return sum(map(sum, self.counts))


def confusion(subject: Subject) -> Confusion | None:
    """Return the confusion after matching, or None where nobody knows the truth."""
    counted_ones = ~subject.labelled & (subject.class_of != JUNK)
    if subject.truth is None or not counted_ones.any():
        return None
    truth, clusters = subject.truth[counted_ones], subject.class_of[counted_ones]
    counts, classes, present = evaluation.confusion(truth, clusters)
    pairs = sorted((true, cluster) for cluster, true in evaluation.matching(truth, clusters).items())
    rows = _first([true for true, _ in pairs], classes.tolist())
    columns = _first([cluster for _, cluster in pairs], present.tolist())
    ordered = counts[np.searchsorted(classes, rows)][:, np.searchsorted(present, columns)]
    return Confusion(
        true=tuple(subject.true_names[number] for number in rows),
        found=tuple(subject.names[number] for number in columns),
        counts=tuple(map(tuple, ordered.tolist())),
        n_matched=len(pairs),
    )


def _first(leaders: list[int], everyone: list[int]) -> list[int]:
    return leaders + [number for number in everyone if number not in leaders]
