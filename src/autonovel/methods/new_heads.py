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


def outputs(model: Model, z: Tensor, z_hat: Tensor) -> "OneHead | SeveralHeads":
    """Return what the head of the new classes says of two views of a batch, or each of the candidates for it."""
    head = model.heads["new"]
    return SeveralHeads(head, z, z_hat) if isinstance(head, Candidates) else OneHead(head(z), head(z_hat))


class OneHead:
    """The outputs of a head that is alone.

    Attributes:
        logits: n×C^u, of the first view, by the head that leads.
        decided: 1, or 0 while it may still be another head that leads.
    """

    def __init__(self, logits: Tensor, logits_hat: Tensor) -> None:
        self.logits = logits
        self.decided: Tensor | float = 1.0
        self._p, self._p_hat = logits.softmax(dim=1), logits_hat.softmax(dim=1)

    def over(self, term: Term) -> Tensor:
        """Return a loss of the probabilities of two views."""
        return term(self._p, self._p_hat)


class SeveralHeads:
    """The outputs of several heads, with the attributes of ``OneHead``."""

    def __init__(self, heads: Candidates, z: Tensor, z_hat: Tensor) -> None:
        both = list(heads.each(z, z_hat))
        self.logits = heads.leading([logits for logits, _ in both])
        self.decided: Tensor | float = (heads.share.max() == 1).float()
        self._heads = heads
        self._each = [OneHead(logits, logits_hat) for logits, logits_hat in both]

    def over(self, term: Term) -> Tensor:
        """Return the mean over the candidates of a loss of the probabilities of two views."""
        return self._heads.together([one.over(term) for one in self._each])


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
