"""Several random starts of one head, trained at once on the same features until one of them is chosen."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from autonovel.networks.heads import ClassHead


class Candidates(nn.Module):
    """Heads that differ in their random start alone.

    Each learns as it would if it were the only one, until one is chosen and the others stand still.  The features below
    learn from all: ``share`` says how much of each, evenly at first, and of the chosen one alone after the choice.
    """

    share: Tensor

    def __init__(self, starts: Sequence[ClassHead]) -> None:
        super().__init__()
        self.starts = nn.ModuleList(starts)
        self.register_buffer("share", torch.full((len(starts),), 1 / len(starts)))

    @property
    def chosen(self) -> bool:
        """Tell whether the choice has been made."""
        return bool(self.share.max() == 1)

    @property
    def best(self) -> ClassHead:
        """Return the chosen head; the first, before the choice."""
        head = self.starts[int(self.share.argmax())]
        assert isinstance(head, ClassHead)
        return head

    def choose(self, number: int) -> None:
        """Let one head count alone from now on; in place, since a recorded step looks there."""
        self.share.zero_()[number] = 1

    def leading(self, logits: Sequence[Tensor]) -> Tensor:
        """Return those of the chosen head out of the logits of all, without asking the device which it is."""
        only = torch.arange(len(self.starts), device=self.share.device) == self.share.argmax()
        return torch.where(only[:, None, None], torch.stack(list(logits)), 0).sum(dim=0)

    def forward(self, z: Tensor) -> Tensor:
        """Return the logits of the chosen head; of the first, before the choice."""
        return self.leading([head(z) for head in self.starts])

    def each(self, z: Tensor, z_hat: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Return the logits of every head for two views; towards the features, a head's gradient has its share."""
        for head, share in zip(self.starts, self.share, strict=True):
            yield head(_weighted(z, share)), head(_weighted(z_hat, share))

    def together(self, terms: Sequence[Tensor]) -> Tensor:
        """Return the mean of a loss over all heads by their shares, whose gradient is each head's own in full.

        After the choice the others stand still: what becomes of them must not trouble the chosen one.
        """
        each = torch.where(self.share > 0, torch.stack(list(terms)), 0)
        total, told = each.sum(), (each * self.share).sum()
        return total - total.detach() + told.detach()


def _weighted(z: Tensor, share: Tensor) -> Tensor:
    """Return ``z``, with ``share`` of the gradient that comes back."""
    still = z.detach()
    return torch.where(share > 0, share * z + (1 - share) * still, still)
