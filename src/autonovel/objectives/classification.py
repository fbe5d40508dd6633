"""Cross-entropy of the three kinds of class the method knows: rotations, known classes, pseudo-labels."""

from torch import Tensor
from torch.nn import functional as F


def cross_entropy(logits: Tensor, y: Tensor, w: Tensor | None = None) -> Tensor:
    """Return the mean of −log softmax(logits)[y] over the rows with weight ``w`` (eq. 1).

    Rows of weight 0 may carry any label, also one outside the head: it is replaced before use.
    An empty selection gives 0.
    """
    # logits: n×c float, y: n int64, w: n float in {0, 1}
    if w is None:
        return F.cross_entropy(logits.float(), y)
    losses = F.cross_entropy(logits.float(), y * (w > 0), reduction="none")
    return (losses * w).sum() / w.sum().clamp(min=1)


def pseudo_labels(logits_new: Tensor, n_known: int) -> Tensor:
    """Return ŷ = C^l + argmax of the head of the new classes: targets for the grown head, no gradient."""
    return logits_new.detach().argmax(dim=1) + n_known
