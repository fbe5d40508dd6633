"""What teaches the similarity network: same class or not, for every pair of a batch."""

import torch
from torch import Tensor
from torch.nn import functional as F


def pair_cross_entropy(logits: Tensor, same: Tensor, balance: str = "none") -> Tensor:
    """Return the mean over all ordered pairs of −log softmax(logits)[same].

    ``balance="even"`` gives the pairs of one class together the weight of all other pairs together.
    """
    # logits: n×n×2 float, same: n×n bool
    losses = F.cross_entropy(logits.float().flatten(0, 1), same.flatten().long(), reduction="none")
    if balance == "none":
        return losses.mean()
    alike = same.flatten().float()
    sums = torch.stack([(losses * alike).sum(), (losses * (1 - alike)).sum()])
    counts = torch.stack([alike.sum(), (1 - alike).sum()])
    return (sums / counts.clamp(min=1)).sum() / (counts > 0).sum()
