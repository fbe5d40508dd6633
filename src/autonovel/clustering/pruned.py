"""Lloyd's algorithm for one restart near its end, where hardly a point changes its cluster.

After Elkan (2003): a centre that moved by δ is at most δ nearer to any point than before.  While that bound
keeps every other centre farther away than a point's own, the point need not be looked at, and the sums of
the clusters change by the few points that moved.  The answer is that of the full passes; only work is saved.
"""

import torch
from torch import Tensor

from autonovel.clustering.empty import fill_empty

LARGEST = 1 << 27  # bounds kept, n×K floats
SLACK = 1e-4  # bounds are trusted only as far as float32 distances are


def fits(n: int, k: int, device: torch.device) -> bool:
    """Tell whether pruning pays: choosing points one by one is for CPUs, and the bounds must fit in memory."""
    return device.type == "cpu" and n * k <= LARGEST


def settle(
    x: Tensor, square: Tensor, centres: Tensor, pinned: Tensor | None, iterations: int, limit: float
) -> tuple[Tensor, int]:
    """Return the centres when they have come to rest or ran out of iterations, and the iterations taken.

    Args:
        x: n×d points.
        square: ‖x‖² of each.
        centres: K×d.
        pinned: cluster of labelled points, −1 for the others; None if there are none.
        iterations: at most.
        limit: squared movement of the centres at which they rest.
    """
    k = len(centres)
    free = None if pinned is None else pinned < 0
    lower = _distances(x, square, centres)
    upper, labels = lower.min(dim=0)
    if pinned is not None:
        labels = torch.where(pinned >= 0, pinned, labels)
        upper = lower.gather(0, labels[None])[0]
    lower.scatter_(0, labels[None], torch.inf)  # no bound on the point's own centre
    counts = torch.bincount(labels, minlength=k)
    sums = ((labels == torch.arange(k)[:, None]).float() @ x).double()
    for taken in range(1, iterations + 1):
        moved = _means(x, labels, centres, sums, counts, pinned)
        drift = (moved - centres).norm(dim=1)
        centres = moved
        if float(drift.square().sum()) <= limit:
            return centres, taken
        lower -= drift[:, None]
        upper += drift[labels]
        doubtful = lower.amin(dim=0) < upper * (1 + SLACK)
        rows = (doubtful if free is None else doubtful & free).nonzero()[:, 0]
        points = x[rows]
        near = _distances(points, square[rows], centres)
        upper[rows], to = near.min(dim=0)
        lower[:, rows] = near.scatter_(0, to[None], torch.inf)
        changed = labels[rows] != to
        if not changed.any():
            return centres, taken
        old, new, points = labels[rows[changed]], to[changed], points[changed].double()
        sums.index_add_(0, new, points).index_add_(0, old, points, alpha=-1)
        counts += torch.bincount(new, minlength=k) - torch.bincount(old, minlength=k)
        labels[rows] = to
    return centres, iterations


def _means(x: Tensor, labels: Tensor, centres: Tensor, sums: Tensor, counts: Tensor, pinned: Tensor | None) -> Tensor:
    if not counts.all():
        sums, counts = sums.clone(), counts.clone()
        distance = (x - centres[labels]).square().sum(dim=1)
        fill_empty(x, labels[None], distance[None], sums[None], counts[None], pinned)
    return torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], centres).float()


def _distances(x: Tensor, square: Tensor, centres: Tensor) -> Tensor:
    """Return the K×n distances between centres and points."""
    scores = torch.addmm(centres.square().sum(dim=1)[:, None], centres, x.T, alpha=-2)
    return scores.add_(square).clamp_(min=0).sqrt_()
