"""How many round Gaussians of one width points are made of: the integrated completed likelihood along Ward's tree.

Where classes are round and equally wide, K of them are K Gaussians with one variance σ² in all d directions.  With n_k
points in cluster k and W(K) the sum of squared distances to the means of K clusters, σ² = W(K) / (n d), and twice the
logarithm of the likelihood of n points together with their clusters is, but for a constant,
−n d log σ² + 2 Σ n_k log(n_k / n).  Its K (d + 1) parameters cost log n each, as in Schwarz's criterion; the sum is the
integrated completed likelihood (ICL) of Biernacki, Celeux and Govaert (2000), here divided by n d.  Unlike Schwarz's
criterion of σ² alone it does not cut a large round class in two: to say in which half a point lies costs more than
the halves explain.

The clusters are those of Ward's tree, which from single points on merges the two clusters whose merging adds least to
W: one tree has the W of every K, without the jumps between clusterings that began elsewhere.
"""

import math

import numpy as np
import torch
from torch import Tensor

from autonovel.errors import UsageError

MOST_POINTS = 20_000  # the tree is made from the distances of all pairs, 8 bytes each: 1.6 GB


class WardTree:
    """Ward's tree of points.

    Attributes:
        scatter: W(K) at place K − 1, down to 0 where every point is a cluster.
        spread: −Σ (n_k / n) log(n_k / n) at place K − 1: what it costs to say in which of K clusters a point lies.
    """

    def __init__(self, x: Tensor) -> None:
        """Make the tree of the rows of ``x``.

        Raises:
            UsageError: if there are too many of them.
        """
        if len(x) > MOST_POINTS:
            raise UsageError(
                f"count.criterion is icl, which compares each of {len(x)} images with all others; up to {MOST_POINTS} "
                "can be. Set count.criterion=silhouette."
            )
        from scipy.cluster.hierarchy import linkage

        self.shape = n, _ = x.shape
        self.merges = linkage(x.double().cpu().numpy(), "ward")
        one, two, height, size = self.merges.T
        sizes = np.concatenate([np.ones(n), size])  # of the points, then of what each merge makes
        added = height**2 / 2  # SciPy's height of a merge is √(2 · what it adds to W)
        joined = _x_log_x(size) - _x_log_x(sizes[one.astype(int)]) - _x_log_x(sizes[two.astype(int)])
        self.scatter = np.concatenate([[0.0], added.cumsum()])[::-1]
        self.spread = math.log(n) - np.concatenate([[0.0], joined.cumsum()])[::-1] / n

    def icl(self, counts: range) -> dict[int, float]:
        """Return the criterion for each number of clusters in ``counts``, for one point and one direction."""
        n, d = self.shape
        nothing = max(1e-12 * float(self.scatter[0]), 1e-300)  # where all points of a cluster are one
        return {
            k: -math.log(max(float(self.scatter[k - 1]), nothing) / (n * d))
            - 2 / d * float(self.spread[k - 1])
            - k * (d + 1) / d * math.log(n) / n
            for k in counts
        }

    def labels(self, k: int) -> Tensor:
        """Return the cluster of each point, of ``k``."""
        from scipy.cluster.hierarchy import cut_tree

        return torch.from_numpy(cut_tree(self.merges, n_clusters=k)[:, 0].astype(np.int64))


def _x_log_x(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = x * np.log(x)
    return found
