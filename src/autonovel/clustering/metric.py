"""Features in which classes can be counted: the known classes say which differences matter."""

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 8192


def class_metric(parts: list[Tensor], y: Tensor, shrinkage: float, dimensions: int = 0, apart: int = 0) -> Tensor:
    """Return the features side by side, in a metric under which known classes are round and of one size.

    With W the covariance inside the known classes, x ↦ W^(−1/2) (x − mean), scaled to length 1.  Directions in which
    images of one class differ (slant, light, …) count less, so that what lies apart differs as classes do.  Of many
    directions, those along which the means of known classes lie farthest apart may be kept alone, which makes it
    Fisher's discriminant analysis.

    Args:
        parts: features of every image, each n×d, from different depths of training; each gets the same weight.
        y: known class of each image, −1 for the others.
        shrinkage: share of W that is replaced by its mean variance in all directions.
        dimensions: directions of largest variance of all images that are kept (0: all); W is poorly known where a
            class has fewer images than there are directions.
        apart: directions to keep, those along which class means lie farthest apart (0: all).
    """
    known = y >= 0
    x = torch.cat([part / part[~known].var(dim=0).sum().sqrt().clamp(min=1e-12) for part in parts], dim=1)
    x = principal_components(x, dimensions) if 0 < dimensions < x.shape[1] else x - x.mean(dim=0)
    w = _covariance_inside_classes(x[known], y[known])
    round_part = w.trace() / len(w) * torch.eye(len(w), dtype=w.dtype)
    variance, directions = torch.linalg.eigh((1 - shrinkage) * w + shrinkage * round_part)
    scaled = (directions * variance.clamp(min=1e-12 * float(w.trace()) + 1e-30).rsqrt()).float()
    x = x @ scaled
    if 0 < apart < x.shape[1]:
        x = x @ _between_classes(x[known], y[known])[:, :apart]
    return F.normalize(x, dim=1)


def means_of_classes(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean of each class that occurs, and the number of each row's class among them."""
    classes, own = y.unique(return_inverse=True)
    sums = torch.zeros(len(classes), x.shape[1], dtype=x.dtype).index_add_(0, own, x)
    return sums / own.bincount()[:, None], own


def _between_classes(x: Tensor, y: Tensor) -> Tensor:
    """Return orthogonal directions as columns, those first along which the means of the classes vary most."""
    means, _ = means_of_classes(x, y)
    apart = (means - means.mean(dim=0)).double()
    directions: Tensor = torch.linalg.eigh(apart.T @ apart).eigenvectors  # by rising variance
    return directions.flip(1).float()


def principal_components(x: Tensor, count: int) -> Tensor:
    """Return the rows of ``x`` along their ``count`` directions of largest variance."""
    centred = x.double() - x.double().mean(dim=0)
    vectors: Tensor = torch.linalg.eigh(centred.T @ centred).eigenvectors  # by rising variance
    return (centred @ vectors.flip(1)[:, :count]).float()


def _covariance_inside_classes(x: Tensor, y: Tensor) -> Tensor:
    means, own = means_of_classes(x, y)
    w = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64)
    for part, to in zip(x.split(CHUNK), own.split(CHUNK), strict=True):  # float64, a part at a time
        inside = (part - means[to]).double()
        w += inside.T @ inside
    return w / len(x)
