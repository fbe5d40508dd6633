"""Scores of a discovery: Hungarian accuracy, NMI, ARI, confusion, and the old / new / all protocols."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """Agreement of clusters with classes, each on the scale 0 to 1 (ARI may be below 0)."""

    acc: float
    nmi: float
    ari: float

    def as_dict(self) -> dict[str, float]:
        """Return the scores by name."""
        return asdict(self)


def _pair(truth: ArrayLike, found: ArrayLike) -> tuple[Ints, Ints]:
    a, b = np.asarray(truth, dtype=np.int64), np.asarray(found, dtype=np.int64)
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise ValueError(f"need two label vectors of one length ≥ 1, got shapes {a.shape} and {b.shape}")
    return a, b


def confusion(truth: ArrayLike, found: ArrayLike) -> tuple[Ints, Ints, Ints]:
    """Return counts (classes × clusters), the classes and the clusters that occur, sorted."""
    a, b = _pair(truth, found)
    classes, rows = np.unique(a, return_inverse=True)
    clusters, columns = np.unique(b, return_inverse=True)
    counts = np.zeros((len(classes), len(clusters)), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts, classes, clusters


def matching(truth: ArrayLike, found: ArrayLike) -> dict[int, int]:
    """Return the best one-to-one map from clusters to classes.

    With more clusters than classes some clusters stay unmatched, and every image in them is an error.
    """
    counts, classes, clusters = confusion(truth, found)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return {int(clusters[c]): int(classes[r]) for r, c in zip(rows, columns, strict=True)}


def accuracy(truth: ArrayLike, found: ArrayLike) -> float:
    """Return the share of images whose cluster is matched to their class (ACC)."""
    counts, _, _ = confusion(truth, found)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / counts.sum())


def score(truth: ArrayLike, found: ArrayLike) -> Scores:
    """Return ACC, NMI (arithmetic mean) and ARI of clusters ``found`` against classes ``truth``."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    a, b = _pair(truth, found)
    return Scores(accuracy(a, b), float(normalized_mutual_info_score(a, b)), float(adjusted_rand_score(a, b)))


@dataclass(frozen=True)
class OldNewAll:
    """Accuracy on images of known classes, of new classes, and of both."""

    old: float
    new: float
    all: float

    def as_dict(self) -> dict[str, float]:
        """Return the accuracies by name."""
        return asdict(self)


HELD_OUT = "held-out test images"
MATCHED_EACH = "matched on each subset (published code)"
MATCHED_ONCE = "matched once on all"
PLAIN_OLD = "plain on old, matched on new"


def incremental(truth: ArrayLike, predicted: ArrayLike, n_known: int) -> dict[str, OldNewAll]:
    """Return old / new / all accuracy of a joint classifier under three protocols, by their names.

    Args:
        truth: true classes; known ones are 0 … n_known − 1.
        predicted: outputs of the joint head; those of known classes are 0 … n_known − 1.
        n_known: number of known classes.

    The first protocol matches outputs to classes anew on each of the three subsets, as the published code
    does, and is the most lenient; the second matches once on all images; the third takes known classes at
    their word and matches only new outputs to new classes, as a user of the classifier would.
    """
    a, b = _pair(truth, predicted)
    old = a < n_known
    if old.all() or not old.any():
        raise ValueError("old / new / all needs images of known and of new classes")
    each = OldNewAll(accuracy(a[old], b[old]), accuracy(a[~old], b[~old]), accuracy(a, b))
    return {
        MATCHED_EACH: each,
        MATCHED_ONCE: _under(matching(a, b), a, b, old),
        PLAIN_OLD: _under(plain_and_matched(a, b, n_known), a, b, old),
    }


def plain_and_matched(truth: ArrayLike, predicted: ArrayLike, n_known: int) -> dict[int, int]:
    """Return the class of every output of a joint head: known ones at their word, new ones matched to new classes."""
    a, b = _pair(truth, predicted)
    usable = (a >= n_known) & (b >= n_known)
    fixed = {number: number for number in range(n_known)}
    return fixed | (matching(a[usable], b[usable]) if usable.any() else {})


def right_under(mapping: Mapping[int, int], truth: ArrayLike, predicted: ArrayLike) -> NDArray[np.bool_]:
    """Return which images are right where ``mapping`` says which class an output stands for."""
    a, b = _pair(truth, predicted)
    right: NDArray[np.bool_] = np.array([mapping.get(int(output), -1) for output in b]) == a
    return right


def _under(mapping: dict[int, int], a: Ints, b: Ints, old: NDArray[np.bool_]) -> OldNewAll:
    right = right_under(mapping, a, b)
    return OldNewAll(float(right[old].mean()), float(right[~old].mean()), float(right.mean()))


@dataclass(frozen=True)
class OfClass:
    """How the images of one true class fare: their number, the share that is right, and what the others are taken for.

    ``taken_for`` counts those by class, most first; those of outputs that no class is matched to are under None.
    """

    number: int
    images: int
    right: float
    taken_for: dict[int | None, int]


def by_class(truth: ArrayLike, found: ArrayLike, mapping: Mapping[int, int]) -> list[OfClass]:
    """Return how every true class fares where ``mapping`` says which class an output stands for."""
    counts, classes, outputs = confusion(truth, found)
    out = []
    for number, row in zip(classes.tolist(), counts.tolist(), strict=True):
        taken: Counter[int | None] = Counter()
        for output, images in zip(outputs.tolist(), row, strict=True):
            taken[mapping.get(output)] += images
        right = taken.pop(number, 0)
        others = {other: images for other, images in taken.most_common() if images}
        out.append(OfClass(number, sum(row), right / sum(row), others))
    return out
