"""A class in two halves, as k-means on the features finds them."""

import numpy as np
import torch

from autonovel.editing.found import FoundRun
from autonovel.editing.sorting import EditError, Sorting
from autonovel.embedding import Embedding
from autonovel.errors import RunFolderError
from autonovel.methods.kmeans import centres, nearest


def smaller_half(run: FoundRun, sorting: Sorting, number: int) -> tuple[str, ...]:
    """Return the ids of the smaller of the two clusters that k-means finds among the images of a class.

    Args:
        run: whose features are clustered.
        sorting: which images are in which class now.
        number: the class.
    """
    sorting.check_class(number)
    name, rows = sorting.names[number], sorting.members(number)
    rows = rows[run.seen[rows]]  # what was junk before the run has no features
    if len(rows) < 2:
        raise EditError(f"{name!r} has {len(rows)} image(s); splitting needs two or more.")
    z = Embedding.load(run.folder / "embedding.safetensors").z
    readable = np.flatnonzero(run.seen)
    if len(z) != len(readable):
        raise RunFolderError(f"{run.folder} has features of {len(z)} images, but {len(readable)} readable ones.")
    points = z[torch.from_numpy(np.searchsorted(readable, rows))]
    half = nearest(points, centres(points, 2, int(run.facts["seed"]))).numpy()
    smaller = half == int(half.mean() <= 0.5)
    if not smaller.any() or smaller.all():
        raise EditError(f"the images of {name!r} are all alike to the network. Name some yourself.")
    return tuple(sorting.ids[row] for row in rows[smaller])
