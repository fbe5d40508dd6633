"""New classes that may be known ones after all: their features lie where those of a known class do.

A pile may hold known classes too, and what is found in it is then a new class to the model, whose classifier has
learned to answer with it, so that its own word (looks_known) is of little help.
"""

import itertools
from dataclasses import dataclass

from torch import Tensor

NEAR = 0.25  # of the squared distance of the two known classes that lie nearest to each other: half their distance
FEWEST, MOST = 3, 512  # images of a class: with fewer it is left out, of more a sample will do


@dataclass(frozen=True)
class _Place:
    """Where the features of a class lie, and by how much their mean is off for being of a few images."""

    mean: Tensor
    noise: float

    @classmethod
    def of(cls, z: Tensor) -> "_Place":
        """Return the place of a class with features ``z``; ``noise`` is the expected squared error of their mean."""
        return cls(z.mean(dim=0), float(z.var(dim=0).sum()) / len(z))

    def to(self, other: "_Place") -> float:
        """Return the squared distance of the true means, without bias, so that it may be below zero."""
        return float((self.mean - other.mean).square().sum()) - self.noise - other.noise


def known_again(z: Tensor, class_id: Tensor, n_known: int) -> dict[int, int]:
    """Return the new classes that may be known ones, each with the known class it may be.

    Args:
        z: n×d features.
        class_id: class of each image, new ones from ``n_known`` on.
        n_known: number of known classes.
    """
    return {new: known for new, (known, share) in nearest_known(z, class_id, n_known).items() if share < NEAR}


def nearest_known(z: Tensor, class_id: Tensor, n_known: int) -> dict[int, tuple[int, float]]:
    """Return of each new class the nearest known one, and their squared distance as a share.

    That is of the squared distance of the two known classes that lie nearest to each other; where the network cannot
    tell these apart, nothing is known.
    """
    places = {}
    for number in class_id.unique().tolist():
        rows = (class_id == number).nonzero()[:, 0]
        if len(rows) >= FEWEST:
            places[number] = _Place.of(z[rows[:: -(-len(rows) // MOST)]].double())
    known = {number: place for number, place in places.items() if number < n_known}
    apart = min((one.to(other) for one, other in itertools.combinations(known.values(), 2)), default=0.0)
    if apart <= 0:
        return {}
    found = {}
    for number in sorted(places.keys() - known.keys()):
        distance, nearest = min((places[number].to(place), k) for k, place in known.items())
        found[number] = nearest, distance / apart
    return found
