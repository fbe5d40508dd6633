"""A pretrained network with a small trainable layer on top of its pooled features."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn import functional as F

from autonovel import hub
from autonovel.networks.trunk import Trunk

ADAPTER = "adapter"
PRETRAINED = hub.BLOCK  # as a name of blocks to freeze: all but the adapter


class Adapted(Trunk):
    """The blocks of a pretrained network, their average, and an adapter: linear, BatchNorm, ReLU.

    The adapter is a block like the others, the last one: with all others frozen, a step costs next to nothing
    once the pooled features are known, so ``forward`` takes these as well as images.
    """

    def __init__(self, pretrained: Trunk, width: int, unit_length: bool) -> None:
        super().__init__(OrderedDict(pretrained.blocks.items()), width or pretrained.n_features)
        self.unit_length, self.n_pooled = unit_length, pretrained.n_features
        if width:
            # without a bias, which BatchNorm would take away again
            layers = nn.Linear(pretrained.n_features, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()
            self.blocks[ADAPTER] = nn.Sequential(*layers)

    def freeze(self, names: tuple[str, ...], batchnorm: str = "train") -> None:
        """Stop training the blocks ``names``, of which ``pretrained`` stands for all but the adapter."""
        if PRETRAINED in names:
            own = [name for name in self.blocks if name != ADAPTER]
            names = (*own, *(name for name in names if name != PRETRAINED and name not in own))
        super().freeze(names, batchnorm)

    @property
    def settled(self) -> list[str]:
        """Return the leading blocks whose output never changes, before the average; the adapter comes after it."""
        return [name for name in super().settled if name != ADAPTER]

    def pooled(self, x: Tensor, skip: int = 0) -> Tensor:
        """Return the pretrained network's own features of images, scaled to unit length if so told."""
        z = self.average(x, [name for name in self.blocks if name != ADAPTER][skip:])
        return F.normalize(z) if self.unit_length else z

    def without_adapter(self) -> "Adapted":
        """Return the network, the same blocks, with its own features."""
        own = OrderedDict((name, block) for name, block in self.blocks.items() if name != ADAPTER)
        return Adapted(Trunk(own, self.n_pooled), 0, self.unit_length)

    def forward(self, x: Tensor, skip: int = 0) -> Tensor:
        """Return the features of images (n×c×h×w), of their first blocks' output, or of their pooled features (n×d)."""
        z = x if x.ndim == 2 else self.pooled(x, skip)
        return self.blocks[ADAPTER](z) if ADAPTER in self.blocks else z
