"""Training steps in the shape of the published loop, for comparison; written from its description, with care.

Images are transformed one by one, as Pillow images, in two loader workers; every view is a pass of its own in float32;
and all ordered pairs of unlabelled images are enumerated.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

FLIP, FLOP = Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.FLIP_TOP_BOTTOM
PAD = 4  # pixels
MEAN, STD = torch.tensor([0.49, 0.48, 0.45]).view(3, 1, 1), torch.tensor([0.25, 0.24, 0.26]).view(3, 1, 1)


def _mirrored_around(image: Image.Image) -> Image.Image:
    """Return the image with its own mirror image around it, without repeating its edge."""
    w, h = image.size
    wide = Image.new(image.mode, (w + 2 * PAD, h + 2 * PAD))
    wide.paste(image, (PAD, PAD))
    wide.paste(image.crop((1, 0, PAD + 1, h)).transpose(FLIP), (0, PAD))
    wide.paste(image.crop((w - PAD - 1, 0, w - 1, h)).transpose(FLIP), (w + PAD, PAD))
    wide.paste(wide.crop((0, PAD + 1, w + 2 * PAD, 2 * PAD + 1)).transpose(FLOP), (0, 0))
    wide.paste(wide.crop((0, h - 1, w + 2 * PAD, h + PAD - 1)).transpose(FLOP), (0, h + PAD))
    return wide


def _crop_and_flip(image: Image.Image, rng: np.random.Generator, mirrored: bool) -> Image.Image:
    """Return a random crop of one padded image, mirrored half of the time; around it is black, or its mirror image."""
    padded = _mirrored_around(image) if mirrored else ImageOps.expand(image, PAD)
    left, top = (int(shift) for shift in rng.integers(0, 2 * PAD + 1, 2))
    cut = padded.crop((left, top, left + image.width, top + image.height))
    return cut.transpose(FLIP) if rng.random() < 0.5 else cut


def _to_tensor(image: Image.Image) -> Tensor:
    scaled = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)
    return scaled.sub_(MEAN).div_(STD)


class Views(Dataset[tuple[Tensor, int]]):
    """One item per image: the four rotations of one random view, a view, or for joint training two of them."""

    def __init__(self, images: NDArray[np.uint8], y: NDArray[np.int64], stage: str) -> None:
        self.images, self.y, self.stage = images, y, stage
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> tuple[Tensor, int]:
        """Return the views of one image and its label."""
        image, joint = Image.fromarray(self.images[number]), self.stage == "joint"
        views = [_crop_and_flip(image, self.rng, mirrored=joint) for _ in range(2 if joint else 1)]
        if self.stage == "rotation":
            return torch.stack([_to_tensor(views[0].rotate(90 * turns)) for turns in range(4)]), 0
        return torch.stack([_to_tensor(view) for view in views]), int(self.y[number])


def loader(images: NDArray[np.uint8], y: NDArray[np.int64], batch: int, stage: str) -> DataLoader:  # type: ignore[type-arg]
    """Return a loader with two workers, as the published code sets."""
    data = Views(images, y, stage)
    return DataLoader(data, batch, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True)


def pair_labels(z: Tensor, k: int) -> Tensor:
    """Return ±1 for all ordered pairs of rows by comparing their sorted top-k indices."""
    ranked = torch.argsort(z, dim=1, descending=True)[:, :k].sort(dim=1).values
    n = len(z)
    one, other = ranked.repeat_interleave(n, dim=0), ranked.repeat(n, 1)
    return torch.where((one == other).all(dim=1), 1.0, -1.0)


def pair_loss(p: Tensor, p_hat: Tensor, s: Tensor) -> Tensor:
    """Return the pairwise loss over all ordered pairs, enumerated."""
    n = len(p)
    score = (p.repeat(n, 1) * p_hat.repeat_interleave(n, dim=0)).sum(dim=1)
    return -torch.log(torch.where(s > 0, score, 1 - score) + 1e-7).mean()


def joint_loss(trunk: nn.Module, heads: tuple[nn.Module, nn.Module], views: Tensor, y: Tensor, n_known: int) -> Tensor:
    """Return the joint loss of two views, each a forward pass of its own."""
    x, x_hat = views[:, 0], views[:, 1]
    z, z_hat = trunk(x), trunk(x_hat)
    known, known_hat, new, new_hat = heads[0](z), heads[0](z_hat), heads[1](z), heads[1](z_hat)
    free = y >= n_known
    p, p_hat = new.softmax(1), new_hat.softmax(1)
    bce = pair_loss(p[free], p_hat[free], pair_labels(z[free].detach(), 5))
    agreement = F.mse_loss(p, p_hat) + F.mse_loss(known.softmax(1), known_hat.softmax(1))
    return F.cross_entropy(known[~free], y[~free]) + bce + 5 * agreement
