"""Stage 1: learn features by telling how far each image was turned (RotNet), from all images alike.

The classes of labelled images may be told beside it.  Where known classes are many, features that tell both serve
unseen classes better (Gidaris et al., ICCV 2019; CIFAR-100 here); with five known digits of SVHN they seem to serve
others worse.
"""

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
    n_known: int
    seed: int
    name: str = "1-rotation"
    number: int = 1

    @property
    def n_draws(self) -> int:
        """Return the draws of one view and of one rotation."""
        return 1 + augmentation(self.settings).n_draws

    def prepare(self, model: Model) -> None:
        """Give the model a head for the four rotations and, where labels are used, one for the known classes."""
        model.heads["rotation"] = heads.linear_head(model.trunk.n_features, 4, draws.generator(self.seed, 10))
        if self.settings.label_weight:
            model.heads["known"] = model.new_head(self.n_known, draws.generator(self.seed, 11))
        model.trunk.freeze(self.settings.frozen, self.settings.frozen_batchnorm)

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of all images, labelled or not, unless told to take the labelled ones alone."""
        members = (~images.unlabelled).nonzero()[:, 0] if self.settings.labelled_only else torch.arange(len(images))
        return Merged(members, self.settings.batch_size, self.seed, self.number)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Nothing depends on the whole set."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the cross-entropy of the rotations of one view of each image, and of known classes where asked for."""
        x = augmentation(self.settings).view(batch.images, batch.u[:, 1:])
        x, turns = self._turned(x, batch)
        z, turns = model.features(x), model.whole(turns)
        logits = model.logits(z, "rotation")
        right = logits.argmax(dim=1) == turns
        progress.note("accuracy", right.sum(), len(right))
        terms = {"rotation": cross_entropy(logits, turns)}
        if self.settings.label_weight:
            y = model.ranks.share(batch.y)
            y = model.whole(y.repeat_interleave(len(x) // len(y)))  # as often as each image is there
            taught = (y >= 0) & (turns == 0) if self.settings.label_turns == "upright" else y >= 0
            terms["ce"] = self.settings.label_weight * cross_entropy(model.logits(z, "known"), y, taught.float())
        return terms

    def _turned(self, x: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        if self.settings.rotations == "four":
            return augment.four_rotations(x)
        turns = (batch.u[:, 0] * 4).floor().long()
        return augment.rotate90(x, turns), turns
