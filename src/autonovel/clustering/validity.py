"""How well a clustering fits its points: the silhouette, from distances that are computed once."""

import torch
from torch import Tensor

from autonovel import draws

BUDGET = 1 << 26  # distances kept


class Silhouette:
    """Mean silhouette of clusterings of the same points (Rousseeuw 1987).

    A point's silhouette is (b − a) / max(a, b): a its mean distance to the other points of its cluster, b that
    to the nearest other cluster.  With at most ``sample`` points it is averaged over all of them, else over that
    many drawn at random, each still compared with all points, so that its expected value is the same.  Distances
    do not depend on the clustering: of each clustering, only their sums per cluster are new, a matrix product.
    """

    def __init__(self, x: Tensor, sample: int, seed: int) -> None:
        n = len(x)
        size = max(1, min(n, sample, BUDGET // max(n, 1)))
        rows = torch.randperm(n, generator=draws.generator(seed, 41))[:size] if size < n else torch.arange(n)
        self.rows = rows.to(x.device)
        middle = x.mean(dim=0)
        self.distances = torch.cdist(x[self.rows] - middle, x - middle)
        self.distances[torch.arange(size, device=x.device), self.rows] = 0  # exactly: rounding would leave a trace

    def __call__(self, labels: Tensor) -> float:
        """Return the mean silhouette of the clustering ``labels``; −1 if all points are in one cluster."""
        return float(self.of_each(labels).mean())

    def standard_error(self, labels: Tensor) -> float:
        """Return how far the mean may be off for the points at hand being a sample."""
        each = self.of_each(labels)
        return float(each.std() / len(each) ** 0.5) if len(each) > 1 else 0.0

    def of_each(self, labels: Tensor) -> Tensor:
        """Return the silhouette of every point that is looked at; −1 if all points are in one cluster."""
        present, cluster = labels.unique(return_inverse=True)
        if len(present) < 2:
            return torch.full((len(self.rows),), -1.0, dtype=torch.float64)
        member = torch.nn.functional.one_hot(cluster, len(present)).to(self.distances.dtype)
        counts = member.sum(dim=0)
        sums = self.distances @ member
        own = cluster[self.rows][:, None]
        inside = sums.gather(1, own)[:, 0] / (counts[own[:, 0]] - 1).clamp(min=1)
        outside = (sums / counts).scatter(1, own, torch.inf).amin(dim=1)
        s = (outside - inside) / torch.maximum(inside, outside).clamp(min=1e-12)
        return torch.where(counts[own[:, 0]] > 1, s, 0).double()
