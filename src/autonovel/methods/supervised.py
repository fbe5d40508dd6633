"""Stage 2: learn to classify the known classes."""

from dataclasses import dataclass, replace

from autonovel import draws, settings
from autonovel.data import Batch, ImageSet, Merged, Sampler
from autonovel.methods.notes import KNOWN_USAGE, note_usage
from autonovel.methods.views import augmentation
from autonovel.networks import Model
from autonovel.objectives import cross_entropy
from autonovel.training.stage import Progress, Terms


def supervised_stage(recipe: settings.Recipe, n_known: int, seed: int) -> "Supervised":
    """Return stage 2 of a recipe; without pretraining it teaches every block, for epochs of its own."""
    from_scratch = recipe.pretrain.kind == "supervised"
    epochs = (from_scratch and recipe.supervised.scratch_epochs) or recipe.supervised.epochs
    return Supervised(replace(recipe.supervised, epochs=epochs), n_known, seed, from_scratch)


@dataclass(frozen=True)
class Supervised:
    """Cross-entropy of head η^l on the labelled images."""

    settings: settings.Supervised
    n_known: int
    seed: int
    whole_network: bool = False  # no pretraining: train every block
    name: str = "2-supervised"
    number: int = 2

    @property
    def n_draws(self) -> int:
        """Return the draws of one view."""
        return augmentation(self.settings).n_draws

    def prepare(self, model: Model) -> None:
        """Replace the pretraining head by one for the known classes."""
        model.heads.clear()
        model.heads["known"] = model.new_head(self.n_known, draws.generator(self.seed, 20))
        frozen = () if self.whole_network else self.settings.frozen
        model.trunk.freeze(frozen, self.settings.frozen_batchnorm)

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of labelled images."""
        members = (~images.unlabelled).nonzero()[:, 0]
        return Merged(members, self.settings.batch_size, self.seed, self.number)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Nothing depends on the whole set."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the cross-entropy of one view of each image."""
        x = augmentation(self.settings).view(batch.images, batch.u)
        logits = model(x, "known")
        right = logits.argmax(dim=1) == batch.y
        progress.note("accuracy", right.sum(), len(right))
        note_usage(progress, logits, batch.labelled, KNOWN_USAGE)
        return {"ce": cross_entropy(logits, batch.y)}
