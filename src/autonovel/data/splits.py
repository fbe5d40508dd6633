"""From fully labelled images to the problem: some classes known, the others to be discovered."""

from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel import draws
from autonovel.data.imageset import ImageSet
from autonovel.errors import UsageError


@dataclass(frozen=True)
class LabelledImages:
    """What a benchmark's source delivers: all images with all labels."""

    images: Tensor
    labels: Tensor
    names: tuple[str, ...]


def known_and_new(
    source: LabelledImages, known: tuple[str, ...], test_fraction: float = 0.0, seed: int = 0
) -> tuple[ImageSet, ImageSet | None]:
    """Return the training set, in which only ``known`` classes have labels, and the held-out test set.

    Args:
        source: images with labels.
        known: names of the classes whose labels may be used; all other classes are new.
        test_fraction: share of every class held out.
        seed: of the choice of held-out images.
    """
    unknown = [name for name in known if name not in source.names]
    if unknown:
        raise UsageError(f"data.known names {', '.join(unknown)}; the classes are {', '.join(source.names)}.")
    new = tuple(name for name in source.names if name not in known)
    if not new:
        raise UsageError("data.known names every class, so none is left to discover. Leave some out.")
    class_names = tuple(name for name in source.names if name in known)
    order = {name: number for number, name in enumerate(class_names + new)}
    truth = torch.tensor([order[name] for name in source.names])[source.labels]
    whole = ImageSet(
        images=source.images,
        y=torch.where(truth < len(class_names), truth, -1),
        ids=tuple(f"{number:06d}" for number in range(len(truth))),
        class_names=class_names,
        truth=truth,
        new_names=new,
    )
    held_out = _held_out(truth, test_fraction, seed)
    if not held_out.any():
        return whole, None
    return subset(whole, ~held_out), subset(whole, held_out)


def _held_out(truth: Tensor, fraction: float, seed: int) -> Tensor:
    mask = torch.zeros(len(truth), dtype=torch.bool)
    for number in truth.unique().tolist():
        members = (truth == number).nonzero()[:, 0]
        chosen = torch.randperm(len(members), generator=draws.generator(seed, 4, number))
        mask[members[chosen[: round(fraction * len(members))]]] = True
    return mask


def subset(images: ImageSet, mask: Tensor) -> ImageSet:
    """Return the images where ``mask`` is true, in order."""
    rows = mask.nonzero()[:, 0].tolist()
    return ImageSet(
        images=images.images[mask],
        y=images.y[mask],
        ids=tuple(images.ids[row] for row in rows),
        class_names=images.class_names,
        truth=None if images.truth is None else images.truth[mask],
        new_names=images.new_names,
    )
