"""Batches of images on the device that trains on them.

Two loaders give the same batches: ``Resident`` holds all images on the device, ``Streaming`` brings each
batch there when its turn comes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from autonovel.data.imageset import ImageSet
from autonovel.data.samplers import Sampler
from autonovel.data.streamed import Streamed
from autonovel.training.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Batch:
    """What a step sees.  Shapes are the same in every step of a stage.

    Of several processes, each has the pixels of its own share of the images, but knows the labels of all.

    Attributes:
        images: n×c×h×w uint8, of this process's share.
        y: class of each image, −1 if unlabelled.
        labelled: 1.0 where ``y`` is a class, else 0.0.
        truth: true class of each image for diagnostics, None where nobody knows.
        u: n×k uniform numbers for the random choices of the stage, of this process's share.
        index: number of each image in its set, for stages that remember something of every image.
    """

    images: Tensor
    y: Tensor
    labelled: Tensor
    truth: Tensor | None
    u: Tensor
    index: Tensor


class Loader(Protocol):
    """What the training loop asks of a loader."""

    def start(self, sampler: Sampler, epochs: range) -> None:
        """Be told the order of all batches (of this process's shares of them) to come, before the first."""

    def advance(self) -> None:
        """Bring the next batch of that order to where ``batch`` finds it."""

    def batch(self, index: Tensor, u: Tensor) -> Batch:
        """Return the batch of the images ``index`` (on the device) with their random numbers ``u``."""

    def close(self) -> None:
        """Let go of workers and memory."""


def loader(images: ImageSet, device: torch.device, ranks: Ranks = ALONE) -> Loader:
    """Return the loader for ``images`` as they are held; each of several processes holds, or streams, its own."""
    if isinstance(images.images, Tensor):
        return Resident(images, device, ranks)
    return Streaming(images, images.images, device)


class Resident:
    """All images as uint8 on the device: nothing is decoded, moved or waited for during training."""

    def __init__(self, images: ImageSet, device: torch.device, ranks: Ranks = ALONE) -> None:
        assert isinstance(images.images, Tensor)
        self.ranks = ranks
        self.images = images.images.to(device)
        self.y = images.y.to(device)
        self.truth = None if images.truth is None else images.truth.to(device)

    def start(self, sampler: Sampler, epochs: range) -> None:
        """Nothing is to be done ahead."""

    def advance(self) -> None:
        """Every image is there already."""

    def batch(self, index: Tensor, u: Tensor) -> Batch:
        """Return the batch of the images ``index`` (on the device) with their random numbers ``u``."""
        y = self.y[index]
        truth = None if self.truth is None else self.truth[index]
        return Batch(self.images[self.ranks.share(index)], y, (y >= 0).float(), truth, u, index)

    def close(self) -> None:
        """Nothing is to be let go of."""


class Streaming:
    """One batch at a time as uint8 on the device, decoded ahead in the order that the sampler will ask for.

    The batch lies in one buffer for the whole stage, so that a recorded step finds every batch at the same place.
    """

    def __init__(self, images: ImageSet, pixels: Streamed, device: torch.device) -> None:
        self.pixels, self.device = pixels, device
        self.y = images.y.to(device)
        self.truth = None if images.truth is None else images.truth.to(device)
        self.coming: Iterator[list[Tensor]] = iter(())
        self.buffer = torch.empty(0, dtype=torch.uint8)

    def start(self, sampler: Sampler, epochs: range) -> None:
        """Begin to decode the batches of ``epochs``."""
        order = (index for epoch in epochs for index in sampler.epoch(epoch))
        self.coming = self.pixels.parts_in_order(order)

    def advance(self) -> None:
        """Put the next batch into the buffer."""
        parts = next(self.coming)
        if self.device.type == "cpu":
            self.buffer = parts[0] if len(parts) == 1 else torch.cat(parts)
            return
        shape = (sum(map(len, parts)), *parts[0].shape[1:])
        if self.buffer.shape != shape:
            self.buffer = torch.empty(shape, dtype=parts[0].dtype, device=self.device)
        done = 0
        for part in parts:  # each straight from where the workers' batches are pinned
            self.buffer[done : done + len(part)].copy_(part, non_blocking=part.is_pinned())
            done += len(part)

    def batch(self, index: Tensor, u: Tensor) -> Batch:
        """Return the batch of ``index``, whose share of this process is in the buffer, with the numbers ``u``."""
        y = self.y[index]
        truth = None if self.truth is None else self.truth[index]
        return Batch(self.buffer, y, (y >= 0).float(), truth, u, index)

    def close(self) -> None:
        """Give up what was decoded ahead."""
        self.coming = iter(())
