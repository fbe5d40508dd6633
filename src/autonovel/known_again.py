"""New classes that may be known ones after all: their features lie where those of a known class do.

A pile may hold known classes too, and what is found in it is then a new class to the model, whose classifier has
learned to answer with it, so that its own word (looks_known) is of little help.
"""

import torch
from torch import Tensor

NEAR = 0.25  # of the squared distance of the two known classes that lie nearest to each other: half their distance
FEWEST, MOST = 3, 256  # images of a class: with fewer it is left out, of more a sample will do


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
    members = class_id.argsort(stable=True).split(class_id.bincount().tolist())
    there = [number for number, rows in enumerate(members) if len(rows) >= FEWEST]
    known = sum(number < n_known for number in there)
    if known < 2:
        return {}
    samples = [z[members[number][:: -(-len(members[number]) // MOST)]].double() for number in there]
    means = torch.stack([x.mean(dim=0) for x in samples])
    # expected squared error of each mean
    noise = torch.stack([(x - x.mean(dim=0)).square().sum() / (len(x) - 1) / len(x) for x in samples])
    # between the true means, without bias, so that it may be below zero
    apart = torch.cdist(means, means).square() - noise[:, None] - noise
    nearest_two = apart[:known, :known].fill_diagonal_(torch.inf).min()
    if nearest_two <= 0:
        return {}
    distances, nearest = apart[known:, :known].min(dim=1)
    shares = (distances / nearest_two).tolist()
    return {new: (there[k], share) for new, k, share in zip(there[known:], nearest.tolist(), shares, strict=True)}
