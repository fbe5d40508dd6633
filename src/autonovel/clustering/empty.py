"""Clusters that lost all their points."""

from torch import Tensor


def fill_empty(
    x: Tensor, labels: Tensor, distance: Tensor, sums: Tensor, counts: Tensor, pinned: Tensor | None
) -> None:
    """Give each empty cluster the free point that lies farthest from its own centre, as scikit-learn does.

    Args:
        x: n×d points.
        labels: R×n clusters of the points in R restarts.
        distance: R×n squared distances to their centres.
        sums: R×K×d sums of the points of each cluster, changed in place.
        counts: R×K numbers of points, changed in place.
        pinned: cluster of labelled points, −1 for the others; None if there are none.

    With fewer distinct points than clusters, some stay empty.
    """
    for restart in (counts == 0).any(dim=1).nonzero()[:, 0].tolist():
        empty = (counts[restart] == 0).nonzero()[:, 0]
        far = distance[restart] if pinned is None else distance[restart] * (pinned < 0)
        away, rows = far.topk(len(empty))
        for cluster, row in zip(empty[away > 0].tolist(), rows[away > 0].tolist(), strict=True):
            old = int(labels[restart, row])
            sums[restart, old] -= x[row]
            counts[restart, old] -= 1
            sums[restart, cluster], counts[restart, cluster] = x[row], 1
