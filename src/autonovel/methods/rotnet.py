"""Stage 1: learn features by telling how far each image was turned (RotNet), from all images alike."""

from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel import augment, draws, settings
from autonovel.data import Batch, ImageSet, Merged, Sampler
from autonovel.methods.views import augmentation
from autonovel.networks import Model, heads
from autonovel.objectives import cross_entropy
from autonovel.training.stage import Progress, Terms


@dataclass(frozen=True)
class Rotation:
    """Four-way classification of rotations by multiples of 90°."""

    settings: settings.Pretrain
    seed: int
    name: str = "1-rotation"
    number: int = 1

    @property
    def n_draws(self) -> int:
        """Return the draws of one view and of one rotation."""
        return 1 + augmentation(self.settings).n_draws

    def prepare(self, model: Model) -> None:
        """Give the model a head for the four rotations."""
        rng = draws.generator(self.seed, 10)
        model.heads["rotation"] = heads.linear_head(model.trunk.n_features, 4, rng)
        model.trunk.freeze(self.settings.frozen, self.settings.frozen_batchnorm)

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of all images, labelled or not, unless told to take the labelled ones alone."""
        members = (~images.unlabelled).nonzero()[:, 0] if self.settings.labelled_only else torch.arange(len(images))
        return Merged(members, self.settings.batch_size, self.seed, self.number)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Nothing depends on the whole set."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the cross-entropy of the rotations of one view of each image."""
        x = augmentation(self.settings).view(batch.images, batch.u[:, 1:])
        x, turns = self._turned(x, batch)
        logits, turns = model(x, "rotation"), model.whole(turns)
        right = logits.argmax(dim=1) == turns
        progress.note("accuracy", right.sum(), len(right))
        return {"rotation": cross_entropy(logits, turns)}

    def _turned(self, x: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        if self.settings.rotations == "four":
            return augment.four_rotations(x)
        turns = (batch.u[:, 0] * 4).floor().long()
        return augment.rotate90(x, turns), turns
