"""How many new classes there are: the estimate of Han, Vedaldi and Zisserman (DTC, ICCV 2019).

Some known classes play new ones (probes): images of a few of them (anchors) are held in their clusters, the others
(validation) are free like the unlabelled images.  For each candidate count c all are clustered into c + probes
clusters.  Two curves over c, the silhouette and the accuracy on the validation classes, each have a top; the
estimate starts from the mean of the two, and clusters that are too small on the unlabelled images do not count.
Nor, unlike there, do clusters that hold more images of probe classes: stray images in them are no class.
With too few known classes for probes, the silhouette alone decides.

With ``criterion = "icl"`` none of this is done: the unlabelled images alone are taken for round Gaussians.
"""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from autonovel import draws
from autonovel.clustering import search
from autonovel.clustering.gaussians import WardTree
from autonovel.clustering.kmeans import Clusters, class_means, kmeans
from autonovel.clustering.seeding import spread_starts
from autonovel.clustering.validity import Silhouette
from autonovel.errors import InputError
from autonovel.evaluation import accuracy
from autonovel.settings import Count

FEWEST = 4  # unlabelled images in which classes can be counted
Told = Callable[[int], None]


@dataclass(frozen=True)
class Points:
    """What is clustered, in one metric.

    Attributes:
        x: n×d features.
        probe: class of each image of a probe class, −1 for unlabelled images.
        anchors: those probe classes whose images are held in their clusters.
    """

    x: Tensor
    probe: Tensor
    anchors: tuple[int, ...] = ()

    @classmethod
    def unlabelled(cls, x: Tensor) -> "Points":
        """Return points of which none is of a probe class."""
        return cls(x, torch.full((len(x),), -1, device=x.device))

    @property
    def n_probes(self) -> int:
        """Return the number of probe classes."""
        return len(self.probe[self.probe >= 0].unique())

    @property
    def pinned(self) -> Tensor | None:
        """Return the cluster of the anchors' images, −1 for all others; None without anchors."""
        if not self.anchors:
            return None
        out = torch.full_like(self.probe, -1)
        for number, name in enumerate(self.anchors):
            out[self.probe == name] = number
        return out

    def half(self, rows: Tensor) -> "Points":
        """Return these points with only ``rows`` of the unlabelled ones."""
        kept = self.probe >= 0
        kept[(self.probe < 0).nonzero()[:, 0][rows.to(kept.device)]] = True
        return Points(self.x[kept], self.probe[kept], self.anchors)


@dataclass(frozen=True)
class Curve:
    """The values at the candidates that decided, and what they say.

    Attributes:
        index: silhouette (or integrated completed likelihood) by candidate.
        accuracy: on the validation classes, by candidate; empty without probes.
        tops: what each curve says: where it is highest (or, of the silhouette, the least count that is hardly lower).
        candidate: c*, the mean of the tops rounded up.
        number: clusters at c* that are new classes.
        seen: index, and with probes accuracy, of every candidate that was looked at, if only roughly.
        criterion: which index it is.
    """

    index: dict[int, float]
    accuracy: dict[int, float]
    tops: tuple[int, ...]
    candidate: int
    number: int
    seen: dict[int, tuple[float, ...]]
    criterion: str = "silhouette"


@dataclass(frozen=True)
class Estimate:
    """How many new classes there are, and how sure that is.

    Attributes:
        number: the estimate.
        low: smallest estimate on halves of the unlabelled images (or the estimate itself).
        high: largest.
        curve: of all unlabelled images.
        halves: estimates on halves.
    """

    number: int
    low: int
    high: int
    curve: Curve
    halves: tuple[int, ...] = field(default=())


def estimate(points: Points, settings: Count, seed: int, tell: Told = lambda _: None) -> Estimate:
    """Return the number of new classes among the unlabelled ``points``.

    Args:
        points: features of probes and unlabelled images.
        settings: of the count.
        seed: of every random draw.
        tell: is told how many clusterings have been made.
    """
    made = 0

    def tick() -> None:
        nonlocal made
        made += 1
        tell(made)

    whole = sweep(points, settings, seed, tick)
    halves: list[int] = []
    n = int((points.probe < 0).sum())
    for repeat in range(math.ceil(settings.halves / 2)):
        order = torch.randperm(n, generator=draws.generator(seed, 42, repeat))
        for rows in (order[: n // 2], order[n // 2 :])[: settings.halves - 2 * repeat]:
            if len(rows) >= FEWEST:
                halves.append(sweep(points.half(rows), settings, seed, tick).number)
    found = [whole.number, *halves]
    return Estimate(whole.number, min(found), max(found), whole, tuple(halves))


def candidates(points: Points, settings: Count) -> range:
    """Return the counts in question: at least 2 without probes, and never more than half the unlabelled images."""
    least = 0 if points.n_probes else 2
    unlabelled = int((points.probe < 0).sum())
    if unlabelled < FEWEST:
        raise InputError(
            f"{unlabelled} unlabelled images are too few to count classes in; give at least {FEWEST}, or say how many "
            "new classes there are (--new-classes N)."
        )
    most = min(settings.most, unlabelled // 2)
    return range(least, most + 1)


def sweep(points: Points, settings: Count, seed: int, tick: Callable[[], None] = lambda: None) -> Curve:
    """Return the two curves where they matter, and the count they give."""
    if settings.criterion == "icl":
        tick()
        return most_likely(Points.unlabelled(points.x[points.probe < 0]), settings)
    clusterings = _Clusterings(points, settings, seed)
    free = points.probe if points.pinned is None else points.probe.masked_fill(points.pinned >= 0, -2)
    silhouette = Silhouette(points.x[free >= -1], settings.sample, seed)
    validation = free >= 0
    seen: dict[int, tuple[float, ...]] = {}

    def evaluate(c: int, restarts: int) -> tuple[float, ...]:
        labels = clusterings.at(c, restarts).labels
        tick()
        values = [silhouette(labels[free >= -1])]
        if points.n_probes:
            values.append(accuracy(free[validation].cpu().numpy(), labels[validation].cpu().numpy()))
        seen[c] = tuple(values)
        return seen[c]

    asked = candidates(points, settings)
    if settings.search == "exhaustive":
        values = search.exhaustive(asked, evaluate, settings.restarts)
    else:
        values = search.coarse_to_fine(asked, evaluate, settings.restarts, settings.few_restarts)
    found = search.curves(values)
    tops = [search.top(curve) for curve in found]
    if settings.standard_errors:
        error = silhouette.standard_error(clusterings.at(tops[0], settings.restarts).labels[free >= -1])
        enough = found[0][tops[0]] - settings.standard_errors * error

        def nearly_highest(c: int) -> bool:
            if c not in values:  # the search has looked about the top alone
                values[c] = evaluate(c, settings.restarts)
            return values[c][0] >= enough

        tops[0] = search.least(tops[0], asked, nearly_highest)
        found = search.curves(dict(sorted(values.items())))
    candidate = math.ceil(statistics.mean(tops))
    number = clusterings.sizeable(candidate)
    accuracies = found[1] if len(found) > 1 else {}
    return Curve(found[0], accuracies, tuple(tops), candidate, number, dict(sorted(seen.items())))


def most_likely(points: Points, settings: Count) -> Curve:
    """Return the integrated completed likelihood at every count, and the count at which it is highest."""
    asked, tree = candidates(points, settings), WardTree(points.x)
    index = tree.icl(asked)
    best = search.top(index)
    number = int(_large(tree.labels(best).bincount(), settings).sum())
    return Curve(index, {}, (best,), best, number, {c: (value,) for c, value in index.items()}, "icl")


def _large(sizes: Tensor, settings: Count) -> Tensor:
    """Return which clusters are large enough to be classes."""
    return sizes > settings.size_ratio * int(sizes.max())


class _Clusterings:
    """Clusterings of the points for any candidate, all starting from prefixes of the same k-means++ choices."""

    def __init__(self, points: Points, settings: Count, seed: int) -> None:
        self.points, self.settings, self.seed = points, settings, seed
        self.pinned = points.pinned
        self.made: dict[tuple[int, int], Clusters] = {}
        x, pinned = points.x, self.pinned
        most = candidates(points, settings)[-1] + points.n_probes - len(points.anchors)
        anchors, free = None, None
        if pinned is not None:
            anchors, free = class_means(x, pinned), pinned < 0
        self.starts = spread_starts(x, most, seed, settings.restarts, anchors, free)

    def at(self, c: int, restarts: int) -> Clusters:
        """Return the best clustering for candidate ``c``; what was made before is kept."""
        if (c, restarts) not in self.made:
            self.made[c, restarts] = self._make(c, restarts)
        return self.made[c, restarts]

    def _make(self, c: int, restarts: int) -> Clusters:
        s = self.settings
        return kmeans(
            self.points.x, max(c + self.points.n_probes, 1), seed=self.seed, iterations=s.iterations, tol=s.tol,
            pinned=self.pinned, starts=self.starts[:restarts],
        )  # fmt: skip

    def sizeable(self, c: int) -> int:
        """Return how many clusters are new classes: large enough, and made of unlabelled images for the most part."""
        labels, unlabelled = self.at(c, self.settings.restarts).labels, self.points.probe < 0
        k = int(labels.max()) + 1
        sizes = labels[unlabelled].bincount(minlength=k)
        counted = _large(sizes, self.settings)
        if self.settings.majority:
            counted &= sizes > labels[~unlabelled].bincount(minlength=k)
        return int(counted.sum())
