"""Groups of known classes, such as the characters of one alphabet: what stands before the / in their names."""

import torch
from torch import Tensor

from autonovel.data.imageset import ImageSet


def groups(names: tuple[str, ...], wanted: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the classes of each wanted group; the group of class ``Latin/character01`` is ``Latin``."""
    own = [name.split("/", 1)[0] for name in names]
    return {group: tuple(number for number, of in enumerate(own) if of == group) for group in wanted}


def labels_without(images: ImageSet, held_out: tuple[str, ...]) -> Tensor:
    """Return the label of every image, −1 for unlabelled ones and for those of the groups ``held_out``."""
    hidden = [number for members in groups(images.class_names, held_out).values() for number in members]
    return torch.where(torch.isin(images.y, torch.tensor(hidden, dtype=images.y.dtype)), -1, images.y)
