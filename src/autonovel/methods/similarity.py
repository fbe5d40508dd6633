"""The similarity network of KCL and MCL: learned on pairs of known classes, asked about pairs of unlabelled images.

It starts from the trunk of stage 2, or of stage 1 (``similarity.start``), in a copy of its own: the clustering starts
from the trunk of stage 2, and must not move what judges it.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel import draws, settings
from autonovel.data import Batch, ByClass, ImageSet, Merged, Sampler
from autonovel.methods.notes import note_pairs
from autonovel.methods.views import augmentation
from autonovel.networks import Model, Trunk
from autonovel.networks.similarity import PairHead, SimilarityNetwork
from autonovel.objectives import pair_cross_entropy
from autonovel.stage_names import SIMILARITY
from autonovel.training.stage import Progress, Terms

HEAD = "similarity"
HIDDEN = 4  # times the features


def network_of(model: Model) -> SimilarityNetwork:
    """Return the similarity network that travels with ``model``."""
    found = model.heads[HEAD]
    assert isinstance(found, SimilarityNetwork)
    return found


def pair_logits(model: Model, x: Tensor) -> Tensor:
    """Return n×n×2 logits, different and same, for all ordered pairs of images ``x`` in [0, 1]."""
    network = network_of(model)
    logits: Tensor = network.head(model.features(x, network.trunk))
    return logits


@torch.no_grad()
def same_class(model: Model, x: Tensor) -> Tensor:
    """Return the hard decisions of the similarity network on all ordered pairs, as an n×n boolean matrix."""
    logits = pair_logits(model, x)
    return logits[..., 1] > logits[..., 0]


@dataclass(frozen=True)
class LearnSimilarity:
    """Two-way cross-entropy of all ordered pairs in a batch of labelled images.

    ``trunk`` is what the network starts from; None: the model's own.
    """

    settings: settings.Similarity
    n_known: int
    n_new: int
    seed: int
    name: str = SIMILARITY
    number: int = 14
    trunk: Trunk | None = None

    @property
    def n_draws(self) -> int:
        """Return the draws of one view."""
        return augmentation(self.settings).n_draws

    def prepare(self, model: Model) -> None:
        """Copy a trunk into a similarity network; the model's own is left alone."""
        s, width = self.settings, model.trunk.n_features
        head = PairHead(width, s.hidden or HIDDEN * width, draws.generator(self.seed, 50))
        network = SimilarityNetwork(copy.deepcopy(self.trunk or model.trunk), head)
        network.trunk.freeze(s.frozen, s.frozen_batchnorm)
        model.trunk.freeze(tuple(model.trunk.blocks), "eval")
        model.heads.requires_grad_(False)
        model.heads[HEAD] = network

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of labelled images."""
        s = self.settings
        if s.batch == "merged":
            return Merged((~images.unlabelled).nonzero()[:, 0], s.batch_size, self.seed, self.number)
        classes = s.classes_per_batch or min(self.n_new, self.n_known)
        return ByClass(images.y, classes, s.batch_size, self.seed, self.number)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Nothing depends on the whole set."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the cross-entropy of the pairs of one view of each image."""
        x = augmentation(self.settings).view(batch.images, batch.u)
        logits = pair_logits(model, x)
        same = batch.y[:, None] == batch.y[None, :]
        note_pairs(progress, logits.detach()[..., 1] > logits.detach()[..., 0], torch.ones_like(same).float(), batch)
        return {"similarity": pair_cross_entropy(logits, same, self.settings.balance)}
