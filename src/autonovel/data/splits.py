"""From fully labelled images to the problem: some classes known, the others to be discovered."""

from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel import draws
from autonovel.data.imageset import ImageSet
from autonovel.errors import UsageError
from autonovel.settings import Data


@dataclass(frozen=True)
class LabelledImages:
    """What a benchmark's source delivers: all images with all labels.

    Attributes:
        images: n×c×h×w uint8.
        labels: number of each image's class.
        names: of the classes.
        places: of each image in the source, where these are some of its images; None: they are all.
    """

    images: Tensor
    labels: Tensor
    names: tuple[str, ...]
    places: Tensor | None = None

    def rows(self, rows: Tensor) -> "LabelledImages":
        """Return the images ``rows``, numbers or a mask, which keep their places in the source."""
        places = torch.arange(len(self.labels)) if self.places is None else self.places
        return LabelledImages(self.images[rows], self.labels[rows], self.names, places[rows])


def first_of_each_class(source: LabelledImages, count: int) -> LabelledImages:
    """Return the first ``count`` images of each class, in order (0: all images)."""
    if count <= 0:
        return source
    chosen = [(source.labels == number).nonzero()[:count, 0] for number in range(len(source.names))]
    return source.rows(torch.cat(chosen).sort().values)


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
    return source.rows(~mask), source.rows(mask)


def choose_classes(names: tuple[str, ...], data: Data) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the known and of the new classes, in the source's order, as ``data`` chooses them.

    Where new classes are named and nothing is said of known ones, these are all others.
    """
    for key, chosen in (("known", data.known), ("new", data.new)):
        strange = [name for name in chosen if name not in names]
        if strange:
            raise UsageError(f"data.{key} names {', '.join(strange)}; the classes are {', '.join(names)}.")
    known = tuple(name for name in names if name in (data.known or names[: data.first_known]))
    if data.new and not known:
        known = tuple(name for name in names if name not in data.new)
    both = [name for name in data.new if name in known]
    if both:
        raise UsageError(
            f"data.new names {', '.join(both)}, known at the same time. A class is one or the other. (With "
            "data.known=[] and data.first_known=0 all classes but those of data.new are known.)"
        )
    others = tuple(name for name in names if name not in known)
    if not others:
        raise UsageError("data.known names every class, so none is left to discover. Leave some out.")
    if data.first_new > len(others):
        raise UsageError(f"data.first_new is {data.first_new}, but only {len(others)} classes are not known.")
    new = tuple(name for name in others if name in data.new) or others[: data.first_new or None]
    return known, new


def known_and_new(source: LabelledImages, known: tuple[str, ...], new: tuple[str, ...]) -> ImageSet:
    """Return the images of both kinds of classes, with labels for the ``known`` ones only.

    Args:
        source: images with labels.
        known: names of the classes whose labels may be used.
        new: names of the classes to be discovered; images of any other class are left out.
    """
    number = {name: place for place, name in enumerate(known + new)}
    truth = torch.tensor([number.get(name, -1) for name in source.names])[source.labels]
    chosen = truth >= 0
    truth = truth[chosen]
    rows = chosen.nonzero()[:, 0]
    return ImageSet(
        images=source.images if chosen.all() else source.images[chosen],
        y=torch.where(truth < len(known), truth, -1),
        ids=_numbered(rows if source.places is None else source.places[rows]),  # its place in the source
        class_names=known,
        truth=truth,
        new_names=new,
        former_ids=() if source.places is None else _numbered(rows),
    )


def _numbered(places: Tensor) -> tuple[str, ...]:
    return tuple(f"{place:06d}" for place in places.tolist())
