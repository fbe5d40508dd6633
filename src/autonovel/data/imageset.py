"""ImageSet: the one form in which images reach the method, wherever they came from."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from autonovel.data.streamed import FilePixels, HostPixels, Streamed, in_batches

AT_ONCE = 1024  # images of a chunk, where all are looked at


@dataclass(frozen=True)
class ImageSet:
    """Images with what is known of them, in input order.

    Attributes:
        images: n×c×h×w uint8: a tensor (resident), or what stands for one and decodes images when asked (streamed).
        y: known class of each image (0 … C^l − 1, in the order of ``class_names``), −1 if unlabelled.
        ids: one stable name per image.
        class_names: names of the known classes.
        truth: true class of every image, known ones numbered as in ``y`` and new ones after them; only
            for scoring, None where nobody knows.
        new_names: true names of the new classes, where known.
        unreadable: input files that are not among the images: why, by id.
        junk: ids of input images that a person left out as belonging nowhere.
        fingerprint: checksum of the pixels where they come from files, however they are held; else "".
        sums: n×8 uint8, checksums of the single images' pixels, where they come from files.
        ids_are_paths: whether each id is the path of a file, relative to the input folder.
        notes: what a person should know of how the files were listed.
        source_labels: where files are held out, checksum of the labels that a person gave to all of them; else "".
        former_ids: ids in runs of earlier versions, which numbered images anew where a source was not taken whole.
    """

    images: Tensor | Streamed
    y: Tensor
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    truth: Tensor | None = None
    new_names: tuple[str, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    junk: tuple[str, ...] = ()
    fingerprint: str = ""
    sums: Tensor | None = None
    ids_are_paths: bool = False
    notes: tuple[str, ...] = ()
    source_labels: str = ""
    former_ids: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.images)

    @property
    def n_known(self) -> int:
        """Return C^l."""
        return len(self.class_names)

    @property
    def unlabelled(self) -> Tensor:
        """Return which images are unlabelled, as a boolean vector."""
        return self.y < 0

    @property
    def true_names(self) -> tuple[str, ...]:
        """Return names of all true classes, with stand-ins where they have none; the truth must be known."""
        assert self.truth is not None
        names = self.class_names + self.new_names
        return names + tuple(f"class {number}" for number in range(len(names), int(self.truth.max()) + 1))

    def as_named_in(self, run: Collection[str]) -> "ImageSet":
        """Return all images of a run under the ids that ``run`` has for them, current or former ones."""
        if not self.former_ids:
            return self
        former = {*self.former_ids} == {*run} != {*self.ids}
        return replace(self, ids=self.former_ids, former_ids=()) if former else self

    def rows(self, rows: Tensor) -> "ImageSet":
        """Return the images ``rows``, with what is known of them."""
        images: Tensor | Streamed
        if isinstance(self.images, FilePixels):
            images = replace(self.images.subset(rows), counts=None)  # which are of all images
        else:
            held = self.images
            images = replace(held, images=held[rows]) if isinstance(held, HostPixels) else held[rows]
        return replace(
            self,
            images=images,
            y=self.y[rows],
            ids=tuple(self.ids[row] for row in rows.tolist()),
            former_ids=tuple(self.former_ids[row] for row in rows.tolist()) if self.former_ids else (),
            truth=None if self.truth is None else self.truth[rows],
            sums=None if self.sums is None else self.sums[rows],
        )

    def resized(self, side: int) -> "ImageSet":
        """Return the set with images of side×side pixels (0: as they are)."""
        images = self.images
        return replace(self, images=resize(images, side) if isinstance(images, Tensor) else images.resized(side))


def resize(images: Tensor, side: int) -> Tensor:
    """Return uint8 ``images``, of each the central square, scaled to side×side pixels (0: as they are).

    The same square is taken of files.  Pixels are averaged where images shrink.
    """
    if side == 0 or images.shape[2:] == (side, side):
        return images
    height, width = images.shape[2:]
    shorter = min(height, width)
    top, left = (height - shorter) // 2, (width - shorter) // 2
    images = images[:, :, top : top + shorter, left : left + shorter]
    chunks = [
        F.interpolate(chunk.float(), (side, side), mode="bilinear", antialias=True, align_corners=False)
        .round()
        .clamp(0, 255)
        .to(torch.uint8)
        for chunk in images.split(AT_ONCE)
    ]
    return torch.cat(chunks) if chunks else images.new_zeros(0, images.shape[1], side, side)


def value_counts(images: Tensor) -> Tensor:
    """Return c×256: how often each value occurs in each channel of uint8 images."""
    return torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in images.transpose(0, 1)])


def _chunks(images: Tensor | Streamed, rows: Tensor | None) -> Iterable[Tensor]:
    """Return the images (of ``rows``) some at a time, few enough for the cache of a core."""
    return images.split(AT_ONCE) if rows is None else in_batches(images, rows.split(AT_ONCE))


def channel_statistics(images: Tensor | Streamed, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of each channel of uint8 images (of ``rows``), on the scale [0, 1]."""
    if isinstance(images, FilePixels) and images.counts is not None and rows is None:
        counts = images.counts
    else:
        counts = torch.zeros(images.shape[1], 256, dtype=torch.int64)
        for chunk in _chunks(images, rows):
            counts += value_counts(chunk)
    levels = torch.arange(256, dtype=torch.float64) / 255
    share = counts.double() / counts.sum(dim=1, keepdim=True)
    mean = share @ levels
    std = (share @ levels.square() - mean.square()).clamp(min=0).sqrt()
    return mean.float(), std.float().clamp(min=1e-3)
