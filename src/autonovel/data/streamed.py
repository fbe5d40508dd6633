"""Images that stay where they are — in files, or in the host's memory — and come to the device batch by batch."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from autonovel.data.decode import UnreadableError, decode, quiet
from autonovel.data.files import FileTable
from autonovel.data.pixel_cache import PixelCache
from autonovel.errors import AutonovelError, InputError

AHEAD = 4  # batches that each worker may have ready


class Decoded(NamedTuple):
    """What a worker makes of one batch.

    Attributes:
        pixels: n×c×h×w uint8, zeros where a file cannot be read.
        broken: row and reason of every file that cannot be read.
        sums: 8 bytes of checksum per image, one after the other, where they were asked for.
    """

    pixels: Tensor
    broken: list[tuple[int, str]]
    sums: bytes


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
    """

    files: FileTable
    side: int
    channels: int
    workers: int
    cache: PixelCache | None = None
    counts: Tensor | None = None

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

    def in_order(self, batches: Iterator[Tensor], pinned: bool = False) -> Iterator[Tensor]:
        """Return the batches of images, in this order, decoded ahead by workers."""
        return (self.whole(done).pixels for done in self.decoded(batches, pinned))

    def resized(self, side: int) -> "FilePixels":
        """Return the same images at another size (0: as they are)."""
        return self if side in (0, self.side) else replace(self, side=side, cache=None, counts=None)

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
            return decode(self.files.read(row), self.side, self.channels)
        slot, key = int(self.files.slots[row]), self.files.key(row, self.side, self.channels)
        kept = self.cache.get(slot, key)
        if kept is not None:
            return kept.reshape(self.channels, self.side, self.side)
        pixels = decode(self.files.read(row), self.side, self.channels)
        self.cache.put(slot, key, pixels)
        return pixels

    def decoded(self, batches: Iterator[Tensor], pinned: bool = False, summed: bool = False) -> Iterator[Decoded]:
        """Return what workers make of the batches, in this order; they stop when the iterator is dropped."""
        loader: DataLoader[Decoded] = DataLoader(
            _Decoding(self, summed),
            batch_sampler=_Rows(batches),
            num_workers=self.workers,
            collate_fn=_as_it_is,
            pin_memory=pinned,
            prefetch_factor=AHEAD,
        )
        try:
            yield from loader
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise AutonovelError(
                f"a process that decodes images has ended ({str(error).splitlines()[0]}). If memory is short, lower "
                "data.workers or the batch size; then go on with --resume."
            ) from error


class _Decoding(Dataset[Decoded]):
    """What a worker holds; a whole batch is asked of it at once."""

    def __init__(self, pixels: FilePixels, summed: bool) -> None:
        self.pixels, self.summed = pixels, summed

    def __getitems__(self, rows: list[int]) -> Decoded:
        return self.pixels.decode(rows, self.summed)


class _Rows:
    """Batches of row numbers as the workers want them; can be gone through once."""

    def __init__(self, batches: Iterable[Tensor]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[list[int]]:
        return (batch.tolist() for batch in self.batches)


def _as_it_is(done: Any) -> Any:
    return done


@dataclass(frozen=True)
class HostPixels:
    """Decoded images in the host's memory that a smaller device gets batch by batch."""

    images: Tensor

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

    def in_order(self, batches: Iterator[Tensor], pinned: bool = False) -> Iterator[Tensor]:
        """Return the batches of images, in this order."""
        return (self.images[rows].pin_memory() if pinned else self.images[rows] for rows in batches)

    def resized(self, side: int) -> "HostPixels":
        """Return the same images at another size (0: as they are)."""
        from autonovel.data.imageset import resize

        return HostPixels(resize(self.images, side))


Streamed = FilePixels | HostPixels
