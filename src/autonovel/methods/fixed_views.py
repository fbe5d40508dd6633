"""A few views of each image, drawn once for many epochs, so that frozen blocks need to see each only once.

Half the arithmetic of a joint step is a forward pass through blocks that do not learn.  Where their BatchNorm
statistics are fixed as well, what they make of a view never changes; with a fixed number of views, all of it can be
computed before the first step and looked up afterwards.  Every so many epochs other views may take their place: a
network that sees the same eight again and again learns them by heart.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, cat

from autonovel import draws, stopping
from autonovel.augment import Augmentation
from autonovel.data import Batch, ImageSet
from autonovel.data.memory import free_bytes, gigabytes
from autonovel.networks import Model, Trunk
from autonovel.networks.folded import folded
from autonovel.training.display import Display, Silent
from autonovel.words import counted

SHARE = 0.5  # of the free memory that maps may take: activations and gradients need the rest
CHUNK = 512
TITLE = "frozen blocks"


@dataclass
class FixedViews:
    """Views of every image, each a function of (key, image, number), of which ``count`` are in use at a time.

    Attributes:
        augmentation: what a view is.
        count: views of an image.
        key: stream of their draws.
        epochs: after which the next ``count`` views take their place (0: never).
        first: number of the first of those in use, where a recorded step looks it up.
        maps: what the settled blocks make of these, image×view×h×w×c; None where that is not computed ahead, and a
            step makes the same views itself.
    """

    augmentation: Augmentation
    count: int
    key: int
    epochs: int = 0
    first: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.int64))
    maps: Tensor | None = None

    def two(self, model: Model, batch: Batch) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return two views of every image of a batch, pixels or maps, and what makes features of them.

        The second views of all images come after the first of all.
        """
        mine = model.ranks.share(batch.index)
        image, view = cat([mine, mine]), cat(self.pick(batch.u))
        if self.maps is None:
            return self.pixels(cat([batch.images, batch.images]), image, view), model.features
        return self.maps[image, view].movedim(-1, 1), model.features_of_maps

    def pick(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return two different views of every image, by n×2 uniform numbers."""
        first = (u[:, 0] * self.count).floor().long()
        further = 1 + (u[:, 1] * (self.count - 1)).floor().long()
        return first, (first + further) % self.count

    def pixels(self, images: Tensor, image: Tensor, view: Tensor) -> Tensor:
        """Return one view, in [0, 1], of each of uint8 ``images``, whose numbers in their set are ``image``."""
        u = draws.uniform(self.key, self.first + view, image[:, None], self.augmentation.n_draws)
        return self.augmentation.view(images, u[:, 0])

    @contextmanager
    def computed(self, model: Model, images: ImageSet, display: Display, epoch: int) -> Iterator[None]:
        """Compute the maps of the views of ``epoch``, if there is room for them, and let go of them in the end."""
        self.first = torch.tensor(self._first_of(epoch), device=model.mean.device)
        display.say(self._compute(model, images, display))
        try:
            yield
        finally:
            self.maps = None

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Take the views of this epoch into use, in place: a recorded step finds them where the others were."""
        if self._first_of(epoch) == int(self.first):
            return
        self.first.fill_(self._first_of(epoch))
        if self.maps is not None:
            assert isinstance(images.images, Tensor)
            self._fill(self.maps, model, images.images, Silent())

    def _first_of(self, epoch: int) -> int:
        return epoch // self.epochs * self.count if self.epochs else 0

    def _compute(self, model: Model, images: ImageSet, display: Display) -> str:
        """Compute the maps where that can be; return what a person is told."""
        pixels, device = images.images, model.mean.device
        if not isinstance(pixels, Tensor) or not model.trunk.settled:
            why = "no frozen block comes first" if isinstance(pixels, Tensor) else "images come batch by batch"
            return f"The {self.count} views of an image go through all blocks in every step: {why}."
        one = self._map(model, model.trunk, pixels[:1].to(device), torch.zeros(1, dtype=torch.int64, device=device), 0)
        size, (free, where) = len(images) * self.count * one.nbytes, free_bytes(device)
        of = f"of {self.count} views an image: {gigabytes(size)} of the {gigabytes(free)} of {where} that are free"
        too_large = f"Frozen blocks are computed in every step. Their outputs would be too large to keep, {of}."
        if size * _processes_on(device, model) > SHARE * free:
            return too_large
        try:
            maps = torch.empty(len(images), self.count, *one.shape[1:], dtype=one.dtype, device=device)
        except torch.OutOfMemoryError:  # another program was quicker
            return too_large
        self._fill(maps, model, pixels, display)
        self.maps = maps
        how_often = f"every {counted(self.epochs, 'epoch', 'epochs')}" if self.epochs else "once"
        return f"Frozen blocks are computed {how_often}, {of}."

    def _fill(self, maps: Tensor, model: Model, pixels: Tensor, display: Display) -> None:
        start, done = time.monotonic(), 0
        display.begin(TITLE, len(maps) * self.count, 0, of="views")
        trunk, every = folded(model.trunk), torch.arange(len(maps), device=maps.device)
        for part, chunk, numbers in zip(maps.split(CHUNK), pixels.split(CHUNK), every.split(CHUNK), strict=True):
            images = chunk.to(maps.device)
            for view in range(self.count):
                stopping.check()
                part[:, view] = self._map(model, trunk, images, numbers, view)
                done += len(images)
            display.update(TITLE, done, {}, done / (time.monotonic() - start))
        display.end(TITLE)

    @torch.no_grad()
    def _map(self, model: Model, trunk: Trunk, images: Tensor, numbers: Tensor, view: int) -> Tensor:
        """Return what the settled blocks make of one view of uint8 ``images``, whose numbers in their set are given."""
        x = self.pixels(images, numbers, torch.full_like(numbers, view))
        return model.settled_maps(x, trunk).movedim(1, -1).contiguous()


def _processes_on(device: torch.device, model: Model) -> int:
    """Return how many of the processes that train together have the same memory."""
    here = model.ranks.launch.local_world
    return -(-here // torch.cuda.device_count()) if device.type == "cuda" else here
