"""The head of the new classes in joint training, or several random starts of it, and the choice between them."""

from collections.abc import Callable

import torch
from torch import Tensor

from autonovel.networks import Model
from autonovel.networks.candidates import Candidates

Term = Callable[[Tensor, Tensor], Tensor]


class NewHeads:
    """What the head of the new classes says of two views of a batch, or each of several that are candidates for it.

    Attributes:
        logits: n×C^u, of the first view, by the head that leads.
        decided: 1, or 0 while it may still be another head that leads.
    """

    def __init__(self, model: Model, z: Tensor, z_hat: Tensor) -> None:
        head = model.heads["new"]
        self.candidates = head if isinstance(head, Candidates) else None
        both = list(head.each(z, z_hat)) if isinstance(head, Candidates) else [(head(z), head(z_hat))]
        self.probabilities = [(one.softmax(dim=1), other.softmax(dim=1)) for one, other in both]
        self.logits: Tensor = self.candidates.leading([one for one, _ in both]) if self.candidates else both[0][0]
        self.decided: Tensor | float = (self.candidates.share.max() == 1).float() if self.candidates else 1.0

    def over(self, term: Term) -> Tensor:
        """Return a loss of the probabilities of two views: the head's, or the mean over the candidates."""
        terms = [term(p, p_hat) for p, p_hat in self.probabilities]
        return self.candidates.together(terms) if self.candidates else terms[0]


@torch.no_grad()
def tightest(heads: Candidates, z: Tensor) -> int:
    """Return which head has put ``z`` into the tightest classes: the least squared distance to their means.

    The sum of these and of the squared distances of the means, weighted by size, to the origin is the same for all.
    """
    far = [_spread_of_means(head(z.to(heads.share.device)), z) for head in heads.starts]
    return int(torch.stack(far).argmax())


def _spread_of_means(logits: Tensor, z: Tensor) -> Tensor:
    y, z = logits.argmax(dim=1).cpu(), z.double()
    sums = torch.zeros(logits.shape[1], z.shape[1], dtype=z.dtype).index_add_(0, y, z)
    return (sums.square().sum(dim=1) / y.bincount(minlength=len(sums)).clamp(min=1)).sum()
