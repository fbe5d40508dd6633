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


def first_of_each_class(source: LabelledImages, count: int) -> LabelledImages:
    """Return the first ``count`` images of each class, in order (0: all images)."""
    if count <= 0:
        return source
    chosen = [(source.labels == number).nonzero()[:count, 0] for number in range(len(source.names))]
    rows = torch.cat(chosen).sort().values
    return LabelledImages(source.images[rows], source.labels[rows], source.names)


def hold_out(source: LabelledImages, fraction: float, seed: int) -> tuple[LabelledImages, LabelledImages | None]:
    """Return the images without, and only, a random share of each class; None if the share is empty."""
    mask = torch.zeros(len(source.labels), dtype=torch.bool)
    for number in range(len(source.names)):
        members = (source.labels == number).nonzero()[:, 0]
        chosen = torch.randperm(len(members), generator=draws.generator(seed, 4, number))
        count = max(round(fraction * len(members)), 1) if fraction else 0
        mask[members[chosen[: min(count, len(members) - 1)]]] = True  # a class never disappears from either
    if not mask.any():
        return source, None
    kept, held = (LabelledImages(source.images[m], source.labels[m], source.names) for m in (~mask, mask))
    return kept, held


def known_and_new(source: LabelledImages, known: tuple[str, ...]) -> ImageSet:
    """Return the images with labels for the ``known`` classes only; all other classes are new.

    Args:
        source: images with labels.
        known: names of the classes whose labels may be used.
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
    return ImageSet(
        images=source.images,
        y=torch.where(truth < len(class_names), truth, -1),
        ids=tuple(f"{number:06d}" for number in range(len(truth))),
        class_names=class_names,
        truth=truth,
        new_names=new,
    )
