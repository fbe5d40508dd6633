"""Two views of one image should get one prediction."""

from torch import Tensor


def consistency(p: Tensor, p_hat: Tensor, w: Tensor | None = None, over_classes: str = "mean") -> Tensor:
    """Return the mean squared difference of two views' class probabilities (eq. 4).

    Averaged over the rows of weight ``w``; over the classes it is averaged (``mean``, as the published
    code does) or summed (``sum``, as the equation reads, and so stronger by the number of classes).
    """
    # p, p_hat: n×c float, w: n float in {0, 1}
    squares = (p.float() - p_hat.float()).square()
    rows = squares.mean(dim=1) if over_classes == "mean" else squares.sum(dim=1)
    if w is None:
        return rows.mean()
    return (rows * w).sum() / w.sum().clamp(min=1)
