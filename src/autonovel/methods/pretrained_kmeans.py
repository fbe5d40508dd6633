"""k-means on a pretrained network's own features, and a classifier of labels and clusters on top of them.

Where such features separate the new classes already, training on a few known ones can only spoil them.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from autonovel import draws, settings
from autonovel.augment import Augmentation
from autonovel.data import Batch, ImageSet, Merged, Sampler
from autonovel.embedding import features
from autonovel.methods.kmeans import centres, nearest
from autonovel.methods.method import Problem
from autonovel.methods.notes import KNOWN_USAGE, note_usage
from autonovel.networks import Adapted, Model, heads
from autonovel.objectives import cross_entropy
from autonovel.settings import Recipe
from autonovel.training.stage import Progress, Stage, Terms

CACHED = Augmentation(cached=True)  # one of the views of an image whose features are there


def own_features(model: Model, images: ImageSet) -> Tensor:
    """Return the pretrained network's features of every image, averaged over the cached views where there are such."""
    pixels, trunk = images.images, model.trunk
    if isinstance(pixels, Tensor) and pixels.ndim == 3:
        assert isinstance(trunk, Adapted)
        z = pixels.float().mean(dim=1)
        return F.normalize(z) if trunk.unit_length else z
    if isinstance(trunk, Adapted):
        mean, std = model.mean.flatten(), model.std.flatten()
        own = Model(trunk.without_adapter(), mean, std, crop=model.crop, side=model.side).to(mean.device)
        own.ranks = model.ranks
        return features(own, pixels)
    return features(model, pixels)


@dataclass(frozen=True)
class PretrainedKMeans:
    """Leaves the adapter out: the delivered model is the pretrained network and its heads."""

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return the classifier, whose material is made by the clustering."""
        return [Classifier(recipe.centres, problem.n_known, problem.n_new, problem.seed)]

    def finish(self, model: Model, images: ImageSet, problem: Problem) -> None:
        """Let the classifier's rows of the new classes be the head of the new classes: its answers have confidence."""
        joint = model.heads["known"]
        assert isinstance(joint, torch.nn.Linear)
        model.heads["new"] = heads.last_rows(joint, problem.n_new)


@dataclass(frozen=True)
class Classifier:
    """Cross-entropy of labels and clusters, on cached views of the pretrained features.

    Where none were cached, the features of the plain images are computed once: the network is held fixed here, and
    views drawn in every step would each have to go through it.
    """

    settings: settings.Centres
    n_known: int
    n_new: int
    seed: int
    name: str = "3-centres"
    number: int = 21

    @property
    def n_draws(self) -> int:
        """Return the draws of one view."""
        return CACHED.n_draws

    def prepare(self, model: Model) -> None:
        """Drop the adapter, hold the network, and add a head for old and new classes."""
        if isinstance(model.trunk, Adapted):
            model.trunk = model.trunk.without_adapter()
        model.trunk.freeze(tuple(model.trunk.blocks), "eval")
        model.heads.clear()
        width, n_classes = model.trunk.n_features, self.n_known + self.n_new
        model.heads["known"] = heads.linear_head(width, n_classes, draws.generator(self.seed, 54))

    def material(self, model: Model, images: ImageSet) -> ImageSet:
        """Return the features of the images with a label each: their own, or C^l + their cluster."""
        z = own_features(model, images)
        free = z[images.unlabelled]
        clusters = nearest(free, model.ranks.lead(lambda: centres(free, self.n_new, self.seed)))
        y = images.y.clone()
        y[images.unlabelled] = self.n_known + clusters
        pixels = images.images
        cached = isinstance(pixels, Tensor) and pixels.ndim == 3
        return replace(images, images=pixels if cached else z[:, None], y=y, truth=None)

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of all images."""
        return Merged(torch.arange(len(images)), self.settings.batch_size, self.seed, self.number)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Nothing changes between epochs."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the cross-entropy of a batch."""
        z = model.features(CACHED.view(batch.images, batch.u))
        logits = model.logits(z, "known")
        progress.note("accuracy", (logits.argmax(dim=1) == batch.y).sum(), len(batch.y))
        note_usage(progress, logits, batch.labelled, KNOWN_USAGE)
        return {"ce": cross_entropy(logits, batch.y)}
