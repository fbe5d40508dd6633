"""k-means on any device, all restarts in one tensor program, with labelled points held in their clusters.

Lloyd's algorithm as scikit-learn runs it: k-means++ starts, the same tolerance, the restart with the lowest
inertia wins.  The products ⟨c, x⟩ of all restarts are one matrix product, and so are the sums of the points
of each cluster.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel.clustering import pruned
from autonovel.clustering.empty import fill_empty
from autonovel.clustering.seeding import spread_starts

BUDGET = {"cpu": 1 << 20, "cuda": 1 << 26}  # elements of a temporary: what a cache holds, what a GPU keeps busy
FULL_PASSES = 3  # over all points, before only those in doubt are looked at


@dataclass(frozen=True)
class Clusters:
    """A clustering of n points into K clusters.

    Attributes:
        centres: K×d.
        labels: cluster of each point.
        inertia: sum of squared distances of the points to their centres.
        iterations: of the restart that won.
    """

    centres: Tensor
    labels: Tensor
    inertia: float
    iterations: int


def kmeans(
    x: Tensor,
    k: int,
    *,
    seed: int,
    restarts: int = 10,
    iterations: int = 100,
    tol: float = 1e-4,
    pinned: Tensor | None = None,
    starts: Tensor | None = None,
) -> Clusters:
    """Return the best of ``restarts`` clusterings of the rows of ``x`` into ``k`` clusters.

    Args:
        x: n×d points; the device they are on does the work.
        k: number of clusters.
        seed: of the starting centres.
        restarts: clusterings to choose from.
        iterations: at most.
        tol: a restart ends when its centres move by less, squared and relative to the variance of ``x``.
        pinned: class of each labelled point, 0 … m − 1 with none of them empty, and −1 for free points.  A
            labelled point never leaves the cluster of its class, which starts at the mean of its points.
        starts: restarts×(≥ k − m) rows at which the other clusters start; k-means++ if None.
    """
    _check(x, k, pinned)
    x = x.float()
    middle = x.mean(dim=0)
    x = x - middle  # small numbers: ‖c‖² − 2⟨c, x⟩ loses less to rounding
    fixed = class_means(x, pinned) if pinned is not None else x[:0]
    wanted = k - len(fixed)
    if starts is None:
        free = None if pinned is None else pinned < 0
        starts = spread_starts(x, wanted, seed, restarts, fixed if len(fixed) else None, free)
    starts = starts[:, :wanted].to(x.device)
    centres = torch.cat([fixed.expand(len(starts), -1, -1), x[starts]], dim=1)
    square = x.square().sum(dim=1)
    limit = tol * float(square.mean()) / x.shape[1]  # of the mean variance, the middle being 0
    centres, taken = _lloyd(x, centres, pinned, iterations, limit)
    labels, distance, _, _ = _assign(x, square, centres, pinned)
    best = int(distance.sum(dim=1, dtype=torch.float64).argmin())
    own = centres[best]
    inertia = sum(
        float((part - own[to]).square().sum(dtype=torch.float64))
        for part, to in zip(x.split(4096), labels[best].split(4096), strict=True)
    )
    return Clusters(own + middle, labels[best], inertia, int(taken[best]))


def _check(x: Tensor, k: int, pinned: Tensor | None) -> None:
    classes = 0 if pinned is None else int(pinned.max()) + 1
    free = len(x) if pinned is None else int((pinned < 0).sum())
    if x.ndim != 2 or not max(classes, 1) <= k or k - classes > free:
        raise ValueError(
            f"cannot make {k} clusters of points of shape {tuple(x.shape)}, of which {free} are free and the others "
            f"are of {classes} classes: need a row per point, a cluster per class, a free point per other cluster"
        )


def class_means(x: Tensor, pinned: Tensor) -> Tensor:
    """Return the mean of the points of each class 0 … m − 1."""
    classes = int(pinned.max()) + 1
    return torch.stack([x[pinned == number].mean(dim=0) for number in range(classes)]) if classes else x[:0]


def _lloyd(
    x: Tensor, centres: Tensor, pinned: Tensor | None, iterations: int, limit: float, prune: bool | None = None
) -> tuple[Tensor, Tensor]:
    """Return the centres of all restarts when they have come to rest, and the iterations each took.

    Args:
        x: n×d points.
        centres: R×K×d at which the restarts begin.
        pinned: cluster of labelled points, −1 for the others; None if there are none.
        iterations: at most.
        limit: squared movement of the centres at which they rest.
        prune: after the first passes, look only at points in doubt; where it pays if None.
    """
    if prune is None:
        prune = pruned.fits(len(x), centres.shape[1], x.device)
    centres = centres.clone()
    taken = torch.zeros(len(centres), dtype=torch.int64)
    active = torch.arange(len(centres), device=x.device)
    before: Tensor | None = None
    square = x.square().sum(dim=1)
    while len(active) and int(taken[active.cpu()].min()) < iterations:
        labels, distance, sums, counts = _assign(x, square, centres[active], pinned)
        fill_empty(x, labels, distance, sums, counts, pinned)
        moved = torch.where(counts[..., None] > 0, sums / counts.clamp(min=1)[..., None], centres[active])
        shift = (moved - centres[active]).square().sum(dim=(1, 2))
        centres[active] = moved
        taken[active.cpu()] += 1
        going = shift > limit
        if before is not None:
            going &= (labels != before).any(dim=1)
        active, before = active[going], labels[going]
        if prune and len(active) and int(taken[active].min()) >= FULL_PASSES:
            for restart in active.tolist():
                left = iterations - int(taken[restart])
                centres[restart], more = pruned.settle(x, square, centres[restart], pinned, left, limit)
                taken[restart] += more
            break
    return centres, taken


def _assign(x: Tensor, square: Tensor, centres: Tensor, pinned: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return for R restarts the R×n nearest centres and squared distances, and the sums and counts per cluster."""
    restarts, k, d = centres.shape
    flat = centres.reshape(-1, d)
    own = flat.square().sum(dim=1)[:, None]
    numbers = torch.arange(k, device=x.device)[:, None]
    sums, counts = torch.zeros_like(flat), torch.zeros(restarts, k, device=x.device)
    labels = torch.empty(restarts, len(x), dtype=torch.int64, device=x.device)
    distance = torch.empty(restarts, len(x), device=x.device)
    size = max(64, BUDGET.get(x.device.type, BUDGET["cpu"]) // (restarts * k))
    for first in range(0, len(x), size):
        here = slice(first, first + size)
        part = x[here]
        scores = torch.addmm(own, flat, part.T, alpha=-2).view(restarts, k, -1)
        low, to = scores.min(dim=1)
        if pinned is not None:
            to = torch.where(pinned[here] >= 0, pinned[here], to)
            low = scores.gather(1, to[:, None])[:, 0]
        member = (to[:, None] == numbers).float()
        sums += member.view(restarts * k, -1) @ part
        counts += member.sum(dim=2)
        labels[:, here] = to
        distance[:, here] = (low + square[here]).clamp(min=0)
    return labels, distance, sums.view(restarts, k, d), counts
