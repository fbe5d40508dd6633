"""The network that tells of two images whether they show the same class."""

from torch import Generator, Tensor, nn
from torch.nn import functional as F

from autonovel.networks.heads import initialise, linear_head
from autonovel.networks.trunk import Trunk


class PairHead(nn.Module):
    """Two features side by side → Linear, BatchNorm, ReLU, Linear → different or same.

    The first layer has no bias, which BatchNorm would take away again.
    """

    def __init__(self, n_features: int, hidden: int, rng: Generator) -> None:
        super().__init__()
        self.first = nn.Linear(2 * n_features, hidden, bias=False)
        initialise(self.first, rng)
        self.norm = nn.BatchNorm1d(hidden)
        self.last = linear_head(hidden, 2, rng)

    def forward(self, z: Tensor) -> Tensor:
        """Return n×n×2 logits for all ordered pairs of the rows of ``z``.

        The first layer on (z_i, z_j) is A z_i + B z_j: made for each image once and added for each pair, which
        spares a product for every pair.
        """
        left, right = self.first.weight.chunk(2, dim=1)
        hidden = F.linear(z, left)[:, None] + F.linear(z, right)[None, :]
        out: Tensor = self.last(F.relu(self.norm(hidden.flatten(0, 1))))
        return out.view(len(z), len(z), 2)


class SimilarityNetwork(nn.Module):
    """A trunk of its own, and the head on pairs of its features."""

    def __init__(self, trunk: Trunk, head: PairHead) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = head
        self.fixed_statistics = False

    def decide(self, statistics: str) -> None:
        """Stop learning and only judge; BatchNorm uses the batch at hand (``batch``) or what it learned (``known``)."""
        self.requires_grad_(False)
        self.fixed_statistics = statistics == "known"

    def train(self, mode: bool = True) -> "SimilarityNetwork":
        """Set train or eval mode, unless the statistics are to stay fixed."""
        super().train(mode and not self.fixed_statistics)
        return self
