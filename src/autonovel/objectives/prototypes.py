"""Prototypical networks (Snell et al., NIPS 2017): an image belongs to the class whose mean is nearest."""

import torch
from torch import Tensor
from torch.nn import functional as F


def prototype_distances(z: Tensor, n_classes: int, n_support: int) -> Tensor:
    """Return ‖z_q − c_k‖² of every query q from every prototype c_k, the mean of the first images of class k.

    Queries are the other images, class by class.
    """
    # z: (n_classes · m)×d float, the m images of one class one after another; result: (n_classes · (m − s))×n_classes
    grouped = z.float().view(n_classes, -1, z.shape[1])
    prototypes = grouped[:, :n_support].mean(dim=1)
    queries = grouped[:, n_support:].flatten(0, 1)
    return (queries[:, None] - prototypes[None, :]).square().sum(dim=2)


def prototypical(distances: Tensor) -> Tensor:
    """Return the mean over queries of −log softmax(−‖z_q − c_k‖²) at the query's own class."""
    n_queries, n_classes = distances.shape
    own = torch.arange(n_classes, device=distances.device).repeat_interleave(n_queries // n_classes)
    return F.cross_entropy(-distances, own)
