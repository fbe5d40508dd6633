"""The incremental comparison: a linear classifier of old and new classes on the features a method ended with.

KCL, MCL and DTC only cluster the unlabelled images.  As the paper does, their clusters become labels of the
unlabelled images, and a classifier of all classes is trained on frozen features.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from autonovel import draws, settings
from autonovel.clustering import class_means
from autonovel.data import Batch, ImageSet, Merged, Sampler
from autonovel.embedding import features
from autonovel.methods.method import Problem
from autonovel.methods.notes import KNOWN_USAGE, note_usage
from autonovel.networks import Model, heads
from autonovel.objectives import cross_entropy, pseudo_labels
from autonovel.training.stage import Progress, Terms


def n_clusters(model: Model) -> int:
    """Return the number of outputs of the head of the new classes."""
    head = model.heads["new"]
    assert isinstance(head, heads.ClassHead | heads.CentresHead)
    return head.out_features


@torch.no_grad()
def labels_and_clusters(model: Model, images: ImageSet, z: Tensor) -> Tensor:
    """Return the label of every labelled image, and C^l + its cluster for every other, from features ``z``."""
    logits = model.logits(z.to(model.mean.device), "new").cpu()
    return torch.where(images.unlabelled, pseudo_labels(logits, images.n_known), images.y)


@dataclass(frozen=True)
class LinearClassifier:
    """Cross-entropy of labels and pseudo-labels on frozen features, which are computed once, without augmentation."""

    settings: settings.Linear
    n_known: int
    seed: int
    name: str = "9-linear"
    number: int = 19
    n_draws: int = 0

    def prepare(self, model: Model) -> None:
        """Replace the known head by one for old and new classes; nothing else is trained."""
        model.keep_heads("new", "known")
        n_classes = self.n_known + n_clusters(model)
        model.requires_grad_(False)
        model.trunk.freeze(tuple(model.trunk.blocks), "eval")
        model.heads["known"] = heads.linear_head(model.trunk.n_features, n_classes, draws.generator(self.seed, 53))

    def material(self, model: Model, images: ImageSet) -> ImageSet:
        """Return the features in the place of the images, every one with a label."""
        z = features(model, images.images)
        return replace(images, images=z, y=labels_and_clusters(model, images, z), truth=None)

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of all images' features."""
        return Merged(torch.arange(len(images)), self.settings.batch_size, self.seed, self.number)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Nothing changes between epochs."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the cross-entropy of a batch of features."""
        logits = model.logits(model.whole(batch.images), "known")
        progress.note("accuracy", (logits.argmax(dim=1) == batch.y).sum(), len(batch.y))
        note_usage(progress, logits, batch.labelled, KNOWN_USAGE)
        return {"ce": cross_entropy(logits, batch.y)}


def settle(model: Model, images: ImageSet, problem: Problem) -> None:
    """Leave the heads ``known`` and ``new`` alone, the first one true to the features as they are now.

    Without a classifier of all classes the known ones are told by the nearest class mean: the head of stage 2
    belongs to features that have moved since.
    """
    model.keep_heads("new", "known")
    known = model.heads["known"] if "known" in model.heads else None  # noqa: SIM401 - a ModuleDict has no get
    if not isinstance(known, heads.ClassHead) or known.out_features <= problem.n_known:
        z = features(model, images.images)
        model.heads["known"] = heads.nearest_point_head(class_means(z, images.y)).to(model.mean.device)
