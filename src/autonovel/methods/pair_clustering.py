"""What KCL and MCL have in common: a clustering that follows the decisions of a similarity network."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel import draws, settings
from autonovel.data import Batch, ImageSet, Merged, Sampler
from autonovel.methods import similarity
from autonovel.methods.linear import LinearClassifier, settle
from autonovel.methods.method import Problem
from autonovel.methods.notes import note_pairs, note_usage
from autonovel.methods.views import augmentation
from autonovel.networks import Model
from autonovel.settings import Recipe
from autonovel.training.stage import Progress, Stage, Terms

PairLoss = Callable[[Tensor, Tensor, Tensor], Tensor]  # of p, s and the pairs


@dataclass(frozen=True)
class Cluster:
    """One view of every unlabelled image, one loss on all ordered pairs of the batch."""

    settings: settings.PairClustering
    n_clusters: int
    statistics: str
    seed: int
    loss: PairLoss
    title: str
    number: int = 15

    @property
    def name(self) -> str:
        """Return the stage's name."""
        return f"4-{self.title}"

    @property
    def n_draws(self) -> int:
        """Return the draws of one view."""
        return augmentation(self.settings).n_draws

    def prepare(self, model: Model) -> None:
        """Add the head of the clusters; from now on the similarity network only judges."""
        s = self.settings
        model.heads.requires_grad_(False)
        model.heads["new"] = model.new_head(self.n_clusters, draws.generator(self.seed, 51))
        similarity.network_of(model).decide(self.statistics)
        model.trunk.freeze(s.frozen, s.frozen_batchnorm)

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of unlabelled images."""
        members = images.unlabelled.nonzero()[:, 0]
        return Merged(members, self.settings.batch_size, self.seed, self.number)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Nothing depends on the whole set."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the loss of the pairs, which the similarity network judges on the same view."""
        x = augmentation(self.settings).view(batch.images, batch.u)
        same = similarity.same_class(model, x)
        logits = model(x, "new")
        pairs = torch.ones_like(same, dtype=torch.float32)
        note_pairs(progress, same, pairs, batch)
        note_usage(progress, logits, torch.ones_like(batch.labelled))
        return {self.title: self.loss(logits.softmax(dim=1), same, pairs)}


@dataclass(frozen=True)
class PairClusteringMethod:
    """Learn similarity on the known classes, cluster the unlabelled images by it, classify old and new on top."""

    title: str
    loss: PairLoss

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return the similarity network, the clustering, and the classifier of the incremental comparison."""
        own: settings.PairClustering = getattr(recipe, self.title)
        clusters = own.out_dim or problem.n_new
        stages: list[Stage] = [
            similarity.LearnSimilarity(recipe.similarity, problem.n_known, problem.n_new, problem.seed),
            Cluster(own, clusters, recipe.similarity.statistics, problem.seed, self.loss, self.title),
        ]
        if recipe.linear.epochs:
            stages.append(LinearClassifier(recipe.linear, problem.n_known, problem.seed))
        return stages

    def finish(self, model: Model, images: ImageSet, problem: Problem) -> None:
        """Let go of the similarity network."""
        settle(model, images, problem)
