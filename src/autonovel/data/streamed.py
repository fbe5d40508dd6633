"""Images that stay where they are — in files, or in the host's memory — and come to the device batch by batch."""

import hashlib
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autonovel.data.crew import Crew, Decoded, Order
from autonovel.data.decode import UnreadableError, decode, quiet
from autonovel.data.files import FileTable
from autonovel.data.memory import trim
from autonovel.data.pixel_cache import PixelCache
from autonovel.errors import InputError

BYTES_AT_ONCE = 1 << 23  # that a worker sends: containers have little shared memory


@dataclass(frozen=True)
class FilePixels:
    """The pixels of images that are decoded when they are asked for.

    Takes the place of the n×c×h×w tensor in an ``ImageSet``, with those of its ways that are used there.

    Attributes:
        files: the encoded images.
        side: pixels along each side.
        channels: 1 (grey) or 3.
        workers: processes that decode.
        cache: of decoded images, if there is one.
        counts: c×256, how often each value occurs in each channel, once somebody has looked at all images.
        pinned: whether batches come in pinned memory, for a GPU.
        white: the value that is white in grey of more than 8 bits (0: as its kind has it).
        crew: the workers.
    """

    files: FileTable
    side: int
    channels: int
    workers: int
    cache: PixelCache | None = None
    counts: Tensor | None = None
    pinned: bool = False
    white: int = 0
    crew: Crew = field(default_factory=Crew, repr=False, compare=False)

    @property
    def shape(self) -> torch.Size:
        """Return n×c×h×w, as the tensor of all images would have."""
        return torch.Size((len(self.files), self.channels, self.side, self.side))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, rows: Any) -> Tensor:
        """Return a few images, decoded here and now."""
        chosen = torch.arange(len(self))[rows].reshape(-1).tolist()
        return self.whole(self.decode(chosen)).pixels

    def split(self, size: int) -> Iterator[Tensor]:
        """Return all images in order, ``size`` at a time."""
        return self.in_order(iter(torch.arange(len(self)).split(size)))

    def in_order(self, batches: Iterator[Tensor]) -> Iterator[Tensor]:
        """Return the batches of images, in this order, decoded ahead by workers."""
        return (self.whole(done).pixels for done in self.decoded(batches))

    def resized(self, side: int) -> "FilePixels":
        """Return the same images at another size (0: as they are)."""
        return self if side in (0, self.side) else replace(self, side=side, cache=None, counts=None, crew=Crew())

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what workers must know of these pixels to decode them."""
        return id(self.files.text), *self.target, self.workers, self.pinned, self.cache

    @property
    def target(self) -> tuple[int, ...]:
        """Return what is made of a file, by which what was seen and kept of it is named."""
        return self.side, self.channels, *([self.white] if self.white else [])

    def subset(self, rows: Tensor) -> "FilePixels":
        """Return the images ``rows``; they must be all that were counted."""
        return replace(self, files=self.files.subset(rows.numpy()))

    def whole(self, done: Decoded) -> Decoded:
        """Return ``done``, or say which file in it cannot be read."""
        if done.broken:
            row, reason = done.broken[0]
            raise InputError(
                f"{self.files.entry(row).id} cannot be read any more ({reason}); it could be when the run began. "
                f"Restore it in {self.files.root}, then go on with --resume."
            )
        return done

    def decode(self, rows: Sequence[int], summed: bool = False) -> Decoded:
        """Return the images ``rows``, from the cache or their files, with checksums if so told."""
        out = np.zeros((len(rows), self.channels, self.side, self.side), np.uint8)
        broken, sums = [], []
        with quiet():
            for place, row in enumerate(rows):
                try:
                    out[place] = self._one(row)
                except (UnreadableError, OSError) as error:
                    broken.append((row, getattr(error, "strerror", None) or str(error)))
                if summed:
                    sums.append(hashlib.blake2b(out[place], digest_size=8).digest())
        if self.cache is not None:
            self.cache.release()
        return Decoded(torch.from_numpy(out), broken, b"".join(sums))

    def _one(self, row: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        if self.cache is None:
            return decode(self.files.read(row), *self.target)
        slot, key = int(self.files.slots[row]), self.files.key(row, *self.target)
        kept = self.cache.get(slot, key)
        if kept is not None:
            return kept.reshape(self.channels, self.side, self.side)
        pixels = decode(self.files.read(row), *self.target)
        self.cache.put(slot, key, pixels)
        return pixels

    def decoded(self, batches: Iterator[Tensor], summed: bool = False) -> Iterator[Decoded]:
        """Return what workers make of the batches, in this order."""
        for parts in self._in_parts(batches, summed):
            pixels = parts[0].pixels if len(parts) == 1 else torch.cat([part.pixels for part in parts])
            broken = [lost for part in parts for lost in part.broken]
            trim()
            yield Decoded(pixels, broken, b"".join(part.sums for part in parts))

    def parts_in_order(self, batches: Iterator[Tensor]) -> Iterator[list[Tensor]]:
        """Return the batches, each as the parts in which workers send it: a large one need not be copied together."""
        for parts in self._in_parts(batches, False):
            trim()
            yield [self.whole(part).pixels for part in parts]

    def _in_parts(self, batches: Iterator[Tensor], summed: bool) -> Iterator[list[Decoded]]:
        """Return what workers make of each batch, in parts; files that cannot be read are named by their rows."""
        sent: deque[Tensor] = deque()
        many = max(BYTES_AT_ONCE // self.shape[1:].numel(), 1)

        def orders() -> Iterator[Order]:
            for batch in batches:
                sent.append(batch)
                for part in batch.split(many):
                    yield self.files.slots[part.numpy()].tolist(), summed  # workers know the whole table

        done = self.crew.work(replace(self, files=self.files.whole(), crew=Crew()), orders())
        for first in done:
            rows = sent.popleft()
            parts = [first, *itertools.islice(done, len(rows.split(many)) - 1)]
            row_of = dict(zip(self.files.slots[rows.numpy()].tolist(), rows.tolist(), strict=True))
            yield [part._replace(broken=[(row_of[slot], why) for slot, why in part.broken]) for part in parts]


@dataclass(frozen=True)
class HostPixels:
    """Decoded images in the host's memory that a smaller device gets batch by batch, for a GPU in pinned memory."""

    images: Tensor
    pinned: bool = False

    @property
    def shape(self) -> torch.Size:
        """Return n×c×h×w."""
        return self.images.shape

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: Any) -> Tensor:
        """Return the images ``rows``."""
        return self.images[rows]

    def split(self, size: int) -> Iterator[Tensor]:
        """Return all images in order, ``size`` at a time."""
        return iter(self.images.split(size))

    def in_order(self, batches: Iterator[Tensor]) -> Iterator[Tensor]:
        """Return the batches of images, in this order."""
        return (self.images[rows] for rows in batches)

    def parts_in_order(self, batches: Iterator[Tensor]) -> Iterator[list[Tensor]]:
        """Return the batches of images, in this order, each in one part."""
        for rows in batches:
            shape = (len(rows), *self.images.shape[1:])
            batch = torch.empty(shape, dtype=self.images.dtype, pin_memory=self.pinned)
            yield [torch.index_select(self.images, 0, rows, out=batch)]

    def resized(self, side: int) -> "HostPixels":
        """Return the same images at another size (0: as they are)."""
        from autonovel.data.imageset import resize

        return replace(self, images=resize(self.images, side))


Streamed = FilePixels | HostPixels


def in_batches(images: Tensor | Streamed, batches: Iterable[Tensor]) -> Iterator[Tensor]:
    """Return the images of these rows, batch by batch, whether they are in memory or come from files."""
    if isinstance(images, Tensor):
        return (images[rows] for rows in batches)
    return images.in_order(iter(batches))
