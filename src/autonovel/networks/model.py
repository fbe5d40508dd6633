"""The whole model: normalisation, trunk Φ and the heads η on top of it."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from autonovel import resampling
from autonovel.networks import heads
from autonovel.networks.trunk import Trunk
from autonovel.training.ranks import ALONE, Ranks


def central(images: Tensor, side: int) -> Tensor:
    """Return the central side×side pixels of images; those that are no larger, and any with ``side`` 0, as they are."""
    top, left = (max(length - side, 0) // 2 if side else 0 for length in images.shape[-2:])
    return images[..., top : top + side, left : left + side] if top or left else images


def size_taken(height: int, width: int, side: int, crop: int) -> tuple[int, int]:
    """Return the size in which a model of this ``side`` and ``crop`` sees images."""
    height, width = resampling.fitting(height, width, side)
    return (min(height, crop), min(width, crop)) if crop else (height, width)


def unaugmented(images: Tensor) -> Tensor:
    """Return images as a set holds them in [0, 1]; of cached views the first, which is the image's own features."""
    return images[:, 0].float() if images.ndim == 3 else images.float() / 255


class Model(nn.Module):
    """Images in [0, 1] → features → logits of the heads by name (``rotation``, ``known``, ``new``).

    It carries its own normalisation, so that whoever holds the weights can predict.  Under
    ``precision="bf16"`` only the trunk runs in bfloat16; features, heads and losses stay float32.
    Where several processes (``ranks``) train it, each sends its share of a batch through the trunk, and the
    features, which are then the whole batch's, through the heads.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, trunk: Trunk, mean: Tensor, std: Tensor, head_width: int = 0, crop: int = 0, side: int = 0
    ) -> None:
        super().__init__()
        self.crop, self.side = crop, side
        self.trunk = trunk
        self.heads = nn.ModuleDict()
        self.head_width = head_width
        self.register_buffer("mean", mean.view(1, -1, 1, 1).float())
        self.register_buffer("std", std.view(1, -1, 1, 1).float())
        self.precision = "float32"
        self.ranks: Ranks = ALONE
        self.share = 0  # images of this process in the batch at hand; 0: it has them all

    @contextlib.contextmanager
    def sharing(self, images: int) -> Iterator[None]:
        """Take what follows to be a share, of so many images, of a batch that all processes have."""
        self.share = images
        try:
            yield
        finally:
            self.share = 0

    def whole(self, x: Tensor) -> Tensor:
        """Return the rows of the whole batch from those of this process's share of it."""
        return self.ranks.whole(x, self.share) if self.share else x

    def features(self, images: Tensor, trunk: Trunk | None = None) -> Tensor:
        """Return z = Φ(x), an n×d float32 tensor, for float images in [0, 1]; Φ may be another ``trunk``.

        For a share of a batch, it is z of the whole batch.
        """
        used = trunk or self.trunk
        if images.ndim == 2:  # pooled features of a pretrained network, computed beforehand
            pooled: Tensor = used(images)
            return self.whole(pooled.float())
        x = self.normalised(images)
        with self._trunk_arithmetic(x):
            z: Tensor = used(x)
        return self.whole(z.float())

    def settled_maps(self, images: Tensor, trunk: Trunk | None = None) -> Tensor:
        """Return what the settled blocks make of float images in [0, 1], in the trunk's own arithmetic.

        They may be those of another ``trunk`` than the model's own.
        """
        x, used = self.normalised(images), trunk or self.trunk
        with self._trunk_arithmetic(x):
            return used.through(x, used.settled)

    def features_of_maps(self, maps: Tensor) -> Tensor:
        """Return the ``features`` of images from their ``settled_maps``."""
        with self._trunk_arithmetic(maps):
            z: Tensor = self.trunk(maps, skip=len(self.trunk.settled))
        return self.whole(z.float())

    def _trunk_arithmetic(self, x: Tensor) -> torch.autocast:
        return torch.autocast(x.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    def normalised(self, images: Tensor) -> Tensor:
        """Return images in [0, 1] as the trunk takes them: larger ones shrunk, of these the centre, normalised."""
        images = self.fitted(images)
        # channels_last is the faster layout of convolutions on GPUs and (by a third here) on CPUs
        return ((images - self.mean) / self.std).contiguous(memory_format=torch.channels_last)

    def fitted(self, images: Tensor) -> Tensor:
        """Return the pixels that the trunk sees: larger images shrunk to ``side``, then their centre of ``crop``."""
        return central(resampling.shrunk(images, self.side), self.crop)

    def clean_features(self, images: Tensor, trunk: Trunk | None = None) -> Tensor:
        """Return Φ of images as a set holds them: uint8 pixels, or cached views, of which the first is the image."""
        return self.features(unaugmented(images.to(self.mean.device)), trunk)

    def new_head(self, n_classes: int, rng: torch.Generator) -> heads.ClassHead:
        """Return a head of random weights for these features: one layer, or two where the network is so described."""
        return heads.class_head(self.trunk.n_features, n_classes, self.head_width, rng)

    def keep_heads(self, *names: str) -> None:
        """Let go of all heads but these."""
        for other in set(self.heads) - set(names):
            del self.heads[other]

    def logits(self, z: Tensor, head: str) -> Tensor:
        """Return the logits of one head for features ``z``."""
        out: Tensor = self.heads[head](z)
        return out

    def forward(self, images: Tensor, head: str) -> Tensor:
        """Return the logits of one head for images in [0, 1]."""
        return self.logits(self.features(images), head)
