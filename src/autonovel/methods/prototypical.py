"""Stage 1 by metric learning: images of one known class lie around a common point (prototypical networks).

Where there are many labelled classes this takes the place of the rotations: the paper's choice on OmniGlot.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel import augment, settings
from autonovel.data import Batch, ByClass, ImageSet, Sampler
from autonovel.data.groups import labels_without
from autonovel.methods.views import augmentation
from autonovel.networks import Model
from autonovel.objectives import prototype_distances, prototypical
from autonovel.training.stage import Progress, Terms


@dataclass(frozen=True)
class Prototypical:
    """Episodes: a few known classes, some images of each for its prototype, the others to be told by the nearest."""

    settings: settings.Pretrain
    seed: int
    name: str = "1-prototypical"
    number: int = 1

    @property
    def n_draws(self) -> int:
        """Return the draws of one view."""
        return augmentation(self.settings).n_draws

    def prepare(self, model: Model) -> None:
        """Leave the model without heads: distances of features alone decide."""
        model.heads.clear()
        model.trunk.freeze(self.settings.frozen, self.settings.frozen_batchnorm)

    def sampler(self, images: ImageSet) -> Sampler:
        """Return episodes of the known classes that are not held out."""
        s = self.settings
        return ByClass(labels_without(images, s.held_out), s.classes_per_batch, s.batch_size, self.seed, self.number)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Nothing depends on the whole set."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the loss of the queries of one episode."""
        s = self.settings
        x = augmentation(s).view(batch.images, batch.u)
        if s.turned:
            x = augment.rotate90(x, model.ranks.share(self._turns(x.device)))
        z = model.features(x)
        distances = prototype_distances(z, s.classes_per_batch, s.support)
        own = torch.arange(s.classes_per_batch, device=z.device).repeat_interleave(
            len(distances) // s.classes_per_batch
        )
        right = distances.detach().argmin(dim=1) == own
        progress.note("accuracy", right.sum(), len(right))
        return {"prototypical": prototypical(distances)}

    def _turns(self, device: torch.device) -> Tensor:
        """Return the quarter turns of each image of an episode, the same for all of one class.

        The place of a class decides, which is another one in every episode.  So characters turned are characters more
        to learn from (Snell et al., section 3.1), while no class is told from itself turned: some look the same.
        """
        s = self.settings
        place = torch.arange(s.classes_per_batch, device=device)
        return (place % 4).repeat_interleave(s.batch_size // s.classes_per_batch)
