"""The feature extractor Φ: named blocks in order, then (unless a network says otherwise) a global average."""

import itertools
from collections import OrderedDict

import torch
from torch import Tensor, nn

from autonovel.errors import UsageError


class Trunk(nn.Module):
    """Named blocks applied in order and averaged over the image, whatever its size.

    The average of ReLU outputs is never negative, so ranking features by value and by magnitude agree.
    """

    def __init__(self, blocks: "OrderedDict[str, nn.Module]", n_features: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict(blocks)
        self.n_features = n_features
        self.frozen: tuple[str, ...] = ()
        self.frozen_batchnorm = "train"

    def freeze(self, names: tuple[str, ...], batchnorm: str = "train") -> None:
        """Stop training the blocks ``names`` (and train all others).

        Args:
            names: blocks to hold fixed, such as ``("stem", "block1")``.
            batchnorm: ``train`` lets their BatchNorm go on using and tracking batch statistics, as the
                published code does; ``eval`` holds the statistics fixed too; ``everywhere`` holds those of all
                blocks fixed, also of blocks that are trained.
        """
        unknown = [name for name in names if name not in self.blocks]
        if unknown:
            raise UsageError(
                f"cannot freeze {', '.join(unknown)}: this network has the blocks "
                f"{', '.join(self.blocks)}. Set frozen to some of these."
            )
        self.frozen, self.frozen_batchnorm = names, batchnorm
        for name, block in self.blocks.items():
            block.requires_grad_(name not in names)
        self.train(self.training)

    def train(self, mode: bool = True) -> "Trunk":
        """Set train or eval mode, with frozen BatchNorm as ``freeze`` was told."""
        super().train(mode)
        if mode and self.frozen_batchnorm != "train":
            for name in self.frozen:
                self.blocks[name].eval()
        if mode and self.frozen_batchnorm == "everywhere":
            for layer in self.modules():
                if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                    layer.eval()
        return self

    @property
    def settled(self) -> list[str]:
        """Return the leading blocks whose output for an image is the same in every step of a stage.

        They are frozen, and their BatchNorm has fixed statistics.
        """
        if self.frozen_batchnorm == "train":
            return []
        return list(itertools.takewhile(lambda name: name in self.frozen, self.blocks))

    def forward(self, x: Tensor, skip: int = 0) -> Tensor:
        """Return the n×d features of images, or of what the first ``skip`` blocks made of them."""
        return self.average(x, list(self.blocks)[skip:])

    def average(self, x: Tensor, names: list[str]) -> Tensor:
        """Return what the blocks ``names`` make of images, averaged over the image."""
        return self.pool(self.through(x, names))

    def through(self, x: Tensor, names: list[str]) -> Tensor:
        """Return what the blocks ``names`` make of ``x``; no autograd graph is built through leading frozen ones."""
        grad = torch.is_grad_enabled()
        leading = True
        for name in names:
            leading = leading and name in self.frozen
            with torch.set_grad_enabled(grad and not leading):
                x = self.blocks[name](x)
        return x

    def pool(self, x: Tensor) -> Tensor:
        """Return n×d features of the map that the blocks end with."""
        return x.float().mean(dim=(2, 3))  # float32: bf16 averages would tie in the ranking
