"""The head of the new classes in joint training, or several random starts of it, and the choice between them."""

from collections.abc import Callable

import torch
from torch import Tensor

from autonovel.clustering.metric import means_of_classes
from autonovel.data import ImageSet
from autonovel.embedding import ROWS, unlabelled_features
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


def choose_tightest(model: Model, heads: Candidates, images: ImageSet) -> None:
    """Choose the head that puts the unlabelled images into the tightest classes, the same in all processes."""
    z = unlabelled_features(model, images)
    heads.choose(model.ranks.lead(lambda: tightest(heads, z)))


@torch.no_grad()
def tightest(heads: Candidates, z: Tensor) -> int:
    """Return which head has put ``z`` into the tightest classes: the least squared distance to their means.

    That and the squares of the means, weighted by size, have the same sum for all heads: the largest squares win.
    """
    device, exact = heads.share.device, z.double()
    found = [torch.cat([head(rows.to(device)).argmax(dim=1).cpu() for rows in z.split(ROWS)]) for head in heads.starts]
    return int(torch.stack([_squares_of_means(exact, y) for y in found]).argmax())


def _squares_of_means(z: Tensor, y: Tensor) -> Tensor:
    means, own = means_of_classes(z, y)
    return (own.bincount() * means.square().sum(dim=1)).sum()
