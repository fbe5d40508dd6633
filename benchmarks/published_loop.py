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

MEAN, STD = torch.tensor([0.49, 0.48, 0.45]).view(3, 1, 1), torch.tensor([0.25, 0.24, 0.26]).view(3, 1, 1)


def _crop_and_flip(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Return a random crop of one padded image, mirrored half of the time."""
    padded = ImageOps.expand(image, 4)
    left, top = (int(shift) for shift in rng.integers(0, 9, 2))
    cut = padded.crop((left, top, left + image.width, top + image.height))
    return cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else cut


def _to_tensor(image: Image.Image) -> Tensor:
    scaled = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)
    return scaled.sub_(MEAN).div_(STD)


class Views(Dataset[tuple[Tensor, int]]):
    """One item per image: ``n_views`` random views stacked, or the four rotations of one."""

    def __init__(self, images: NDArray[np.uint8], y: NDArray[np.int64], n_views: int, rotations: bool) -> None:
        self.images, self.y, self.n_views, self.rotations = images, y, n_views, rotations
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> tuple[Tensor, int]:
        """Return the views of one image and its label."""
        image = Image.fromarray(self.images[number])
        if self.rotations:
            view = _crop_and_flip(image, self.rng)
            return torch.stack([_to_tensor(view.rotate(90 * turns)) for turns in range(4)]), 0
        views = [_to_tensor(_crop_and_flip(image, self.rng)) for _ in range(self.n_views)]
        return torch.stack(views), int(self.y[number])


def loader(images: NDArray[np.uint8], y: NDArray[np.int64], batch: int, n_views: int, rotations: bool) -> DataLoader:  # type: ignore[type-arg]
    """Return a loader with two workers, as the published code sets."""
    data = Views(images, y, n_views, rotations)
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
