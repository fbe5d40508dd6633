"""Batches of images on the device that trains on them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel.data.imageset import ImageSet


@dataclass(frozen=True)
class Batch:
    """What a step sees.  Shapes are the same in every step of a stage.

    Attributes:
        images: n×c×h×w uint8.
        y: class of each image, −1 if unlabelled.
        labelled: 1.0 where ``y`` is a class, else 0.0.
        truth: true class of each image for diagnostics, None where nobody knows.
        u: n×k uniform numbers for the random choices of the stage.
        index: number of each image in its set, for stages that remember something of every image.
    """

    images: Tensor
    y: Tensor
    labelled: Tensor
    truth: Tensor | None
    u: Tensor
    index: Tensor


class Resident:
    """All images as uint8 on the device: nothing is decoded, moved or waited for during training."""

    def __init__(self, images: ImageSet, device: torch.device) -> None:
        self.images = images.images.to(device)
        self.y = images.y.to(device)
        self.truth = None if images.truth is None else images.truth.to(device)

    def batch(self, index: Tensor, u: Tensor) -> Batch:
        """Return the batch of the images ``index`` (on the device) with their random numbers ``u``."""
        y = self.y[index]
        truth = None if self.truth is None else self.truth[index]
        return Batch(self.images[index], y, (y >= 0).float(), truth, u, index)
