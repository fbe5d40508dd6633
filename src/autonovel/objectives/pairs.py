"""Ranking statistics: which pairs of unlabelled images belong together, and the loss that says so."""

import torch
from torch import Tensor


def _ordered_keys(z: Tensor) -> Tensor:
    """Return int64 keys that sort like ``z`` with ties broken towards the lower column.

    ``topk`` leaves the order of ties open, and ReLU features are full of zeros: without this, the pair
    labels of one batch would differ from device to device.
    """
    bits = z.float().contiguous().view(torch.int32).long()
    magnitude = bits & 0x7FFFFFFF
    order = torch.where(bits < 0, -magnitude, magnitude)  # IEEE floats order as sign-magnitude integers
    d = z.shape[1]
    return order * d + torch.arange(d - 1, -1, -1, device=z.device)


def top_k_sets(z: Tensor, k: int, by: str = "value") -> Tensor:
    """Return top_k(z) of every row as a multi-hot n×d matrix: 1 at its k highest-ranked dimensions.

    ``by`` ranks by signed ``value`` or by ``magnitude`` (for features that can be negative).
    """
    # z: n×d float
    ranked = _ordered_keys(z.detach().abs() if by == "magnitude" else z.detach())
    return torch.zeros_like(z, dtype=torch.float32).scatter_(1, ranked.topk(k, dim=1).indices, 1.0)


def pair_labels(z: Tensor, k: int, by: str = "value") -> Tensor:
    """Return s_ij = 1{top_k(z_i) = top_k(z_j)} as an n×n boolean matrix (eq. 2).

    Two k-sets are equal exactly when they share k members, so one n×n product answers for all pairs.
    """
    m = top_k_sets(z, k, by)
    return m @ m.T == k


def pairs_in_groups(w: Tensor, group: int = 0) -> Tensor:
    """Return an n×n 0/1 matrix of the pairs to compare: both rows taken (``w``) and in one group.

    The taken rows are cut, in order, into groups of ``group``; 0 puts all of them into one.
    """
    # w: n float in {0, 1}
    taken = torch.outer(w, w)
    if group <= 0:
        return taken
    g = torch.div(w.cumsum(0) - 1, group, rounding_mode="floor")
    return taken * (g[:, None] == g[None, :])


def pairwise_bce(p: Tensor, p_hat: Tensor, s: Tensor, pairs: Tensor, eps: float = 1e-7) -> Tensor:
    """Return the binary cross-entropy of the scores ⟨p_i, p̂_j⟩ against s_ij, over ``pairs`` (eq. 3).

    With ``p_hat`` a second view this is the published code's loss, whose diagonal compares two views of
    one image; with ``p_hat = p`` it is the equation as printed.
    """
    # p, p_hat: n×c float; s: n×n bool; pairs: n×n float in {0, 1}
    scores = p.float() @ p_hat.float().T  # must be true float32: TF32's error makes 1 − score meaningless
    losses = -torch.log(torch.where(s, scores, 1 - scores) + eps)
    return (losses * pairs).sum() / pairs.sum().clamp(min=1)
