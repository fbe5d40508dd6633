"""The baseline: k-means on the features of stage 2, or on raw pixels."""

from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel import draws
from autonovel.clustering import class_means, kmeans
from autonovel.data import ImageSet
from autonovel.data.streamed import in_batches
from autonovel.embedding import CHUNK, features
from autonovel.methods.method import Problem
from autonovel.networks import Model, heads
from autonovel.settings import Recipe
from autonovel.training.stage import Stage

MOST_VALUES = 1 << 28  # pixels clustered side by side: 1 GB of floats
MOST_ROWS = 200_000  # that centres are found from
MOST_ITERATIONS = 300  # scikit-learn's own default
CPU = torch.device("cpu")


def centres(x: Tensor, n_clusters: int, seed: int, restarts: int = 10, device: torch.device = CPU) -> Tensor:
    """Return the cluster centres of the rows of ``x`` by k-means++ with ``restarts`` restarts.

    A GPU makes all restarts at once, where scikit-learn takes seconds for one after the other. Of more than
    ``MOST_ROWS`` a random sample is clustered, in which even a class of a thousandth has 200.
    """
    if len(x) > MOST_ROWS:
        x = x[torch.randperm(len(x), generator=draws.generator(seed, 46))[:MOST_ROWS].sort().values]
    flat = x.flatten(1).float()
    if device.type == "cuda":
        found = kmeans(flat.to(device), n_clusters, seed=seed, restarts=restarts, iterations=MOST_ITERATIONS)
        return found.centres.cpu()
    from sklearn.cluster import KMeans as Estimator

    fitted = Estimator(n_clusters, n_init=restarts, max_iter=MOST_ITERATIONS, random_state=seed % 2**32)
    return torch.from_numpy(fitted.fit(flat.numpy()).cluster_centers_)


def nearest(x: Tensor, points: Tensor) -> Tensor:
    """Return the number of the nearest of ``points`` for every row of ``x``."""
    return torch.cdist(x.flatten(1).float(), points).argmin(dim=1)


def pixel_clusters(images: ImageSet, n_clusters: int, seed: int) -> Tensor:
    """Return the cluster of every unlabelled image by k-means on raw pixels.

    Where these are too many to lie side by side as floats, the centres come from a random sample of the images.
    """
    rows = images.unlabelled.nonzero()[:, 0]
    room = max(MOST_VALUES // max(images.images.shape[1:].numel(), 1), n_clusters)
    if len(rows) <= room:
        pixels = _gather(images, rows)
        return nearest(pixels, centres(pixels, n_clusters, seed))
    sample = rows[torch.randperm(len(rows), generator=draws.generator(seed, 40))[:room].sort().values]
    found = centres(_gather(images, sample), n_clusters, seed)
    return torch.cat([nearest(chunk.float() / 255, found) for chunk in in_batches(images.images, rows.split(CHUNK))])


def _gather(images: ImageSet, rows: Tensor) -> Tensor:
    if isinstance(images.images, Tensor):
        return images.images[rows].float() / 255
    pixels = torch.empty(len(rows), *images.images.shape[1:])
    done = 0
    for chunk in in_batches(images.images, rows.split(CHUNK)):
        pixels[done : done + len(chunk)] = chunk.float() / 255
        done += len(chunk)
    return pixels


@dataclass(frozen=True)
class KMeans:
    """Clusters the features of the unlabelled images.

    Its answer is put into the model as a linear head: argmax of 2⟨c, z⟩ − ‖c‖² is the nearest centre c,
    so that everything downstream treats it as any other method.
    """

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return nothing: k-means trains no network."""
        return []

    def finish(self, model: Model, images: ImageSet, problem: Problem) -> Tensor:
        """Cluster the unlabelled images and make heads of the centres; return the features of all."""
        z = features(model, images.images)
        device = model.mean.device
        found = model.ranks.lead(lambda: centres(z[images.unlabelled], problem.n_new, problem.seed, device=device))
        model.keep_heads("known")  # without stage 2, a head of the pretraining is still there
        if "known" not in model.heads:
            model.heads["known"] = heads.nearest_point_head(class_means(z, images.y)).to(device)
        model.heads["new"] = heads.nearest_point_head(found).to(device)
        return z
