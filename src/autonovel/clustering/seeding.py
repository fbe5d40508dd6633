"""Where k-means starts: k-means++ for many restarts at once."""

import math

import torch
from torch import Tensor

from autonovel import draws

BUDGET = 1 << 25  # elements of the largest temporary tensor


def spread_starts(
    x: Tensor, count: int, seed: int, restarts: int, fixed: Tensor | None = None, free: Tensor | None = None
) -> Tensor:
    """Return restarts×count rows of ``x`` that lie far from each other (greedy k-means++).

    Each next row is the best of a few drawn with probability ∝ D², the squared distance to what is chosen
    already.  The first c rows of a restart are themselves such a choice of c rows, so that one call serves
    every smaller number of clusters.

    Args:
        x: n×d points.
        count: rows to choose.
        seed: of the draws, which are the same on every device.
        restarts: independent choices.
        fixed: centres that are there already, m×d.
        free: rows that may be chosen, as a boolean vector (all if None).
    """
    trials = 2 + int(math.log(max(count + (0 if fixed is None else len(fixed)), 1)))
    u = torch.rand(restarts, count, trials, dtype=torch.float64, generator=draws.generator(seed, 40)).to(x.device)
    square = x.square().sum(dim=1)
    near = torch.ones_like(square)  # while nothing is chosen, every row is as likely as any other
    if fixed is not None:
        near = (square + _scores(fixed, x).amin(dim=0)).clamp(min=0)
    if free is not None:
        near = near * free
    group = max(1, BUDGET // (trials * len(x)))
    chosen = [_choose(x, square, near, part, fresh=fixed is None) for part in u.split(group)]
    return torch.cat(chosen)


def _choose(x: Tensor, square: Tensor, near: Tensor, u: Tensor, fresh: bool) -> Tensor:
    restarts, count, trials = u.shape
    allowed = near > 0
    near = near.expand(restarts, -1)
    chosen = torch.empty(restarts, count, dtype=torch.int64, device=x.device)
    for step in range(count):
        mass = near.double().cumsum(dim=1)
        drawn = torch.searchsorted(mass, u[:, step] * mass[:, -1:], right=True).clamp(max=len(x) - 1)
        distance = (_scores(x[drawn.flatten()], x) + square).clamp(min=0).view(restarts, trials, -1) * allowed
        if not (fresh and step == 0):
            distance = torch.minimum(distance, near[:, None])
        best = distance.sum(dim=2).argmin(dim=1)
        rows = torch.arange(restarts, device=x.device)
        near, chosen[:, step] = distance[rows, best], drawn[rows, best]
    return chosen


def _scores(points: Tensor, x: Tensor) -> Tensor:
    """Return ‖p‖² − 2⟨p, x⟩, which is ‖p − x‖² less ‖x‖², for all pairs."""
    return torch.addmm(points.square().sum(dim=1)[:, None], points, x.T, alpha=-2)
