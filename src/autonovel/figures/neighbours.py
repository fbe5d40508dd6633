"""How far classes overlap, as numbers: whose images are the nearest neighbours of whose."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

NEAREST = 10
CHUNK = 1024


def neighbour_counts(
    z: Tensor, classes: Tensor, n_classes: int, ask: Tensor, tick: Callable[[int, int], None] | None = None
) -> Tensor:
    """Return how many of the nearest neighbours of each class's images are of which class.

    Args:
        z: n×d features of all images.
        classes: class of each image.
        n_classes: number of classes C.
        ask: which images' neighbours are counted, as row numbers; neighbours are sought among all.
        tick: told (done, total) now and then.

    Returns:
        C×C counts: row = class of the image, column = class of one of its ``NEAREST`` nearest neighbours by
        Euclidean distance, the image itself left out.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    z, classes = z.to(device).float(), classes.to(device)
    z = z - z.mean(dim=0)  # distances stay; the rounding of large common parts goes
    squares = z.square().sum(dim=1)
    counts = torch.zeros(n_classes * n_classes, dtype=torch.int64, device=device)
    k = min(NEAREST, len(z) - 1)
    for start in range(0, len(ask), CHUNK):
        rows = ask[start : start + CHUNK].to(device)
        distances = squares - 2 * z[rows] @ z.T  # ‖a − b‖² less ‖a‖², which does not change the order
        distances[torch.arange(len(rows), device=device), rows] = torch.inf
        nearest = distances.topk(k, dim=1, largest=False).indices
        cells = classes[rows][:, None] * n_classes + classes[nearest]
        counts += torch.bincount(cells.flatten(), minlength=n_classes * n_classes)
        if tick:
            tick(min(start + CHUNK, len(ask)), len(ask))
    return counts.view(n_classes, n_classes).cpu()


def purity(counts: Tensor) -> float:
    """Return the share of neighbours that are of their image's own class."""
    return float(counts.diagonal().sum() / counts.sum().clamp(min=1))


def overlap(counts: Tensor, one: int, other: int) -> float:
    """Return the share of the neighbours of two classes' images that are of the other of the two."""
    across = counts[one, other] + counts[other, one]
    return float(across / (counts[one].sum() + counts[other].sum()).clamp(min=1))


def most_overlapping(counts: Tensor, n_known: int) -> list[tuple[int, int]]:
    """Return all pairs of an old and a new class, the most overlapping first."""
    pairs: Iterable[tuple[int, int]] = ((old, new) for old in range(n_known) for new in range(n_known, counts.shape[0]))
    return sorted(pairs, key=lambda pair: (-overlap(counts, *pair), pair))
