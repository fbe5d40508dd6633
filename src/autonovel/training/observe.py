"""What is looked at while a stage trains, without touching it: eval mode, no gradients, no random draws.

An observer looks once before the first step and once after every epoch.  What it sees is a function of the
model alone, so a resumed stage, which begins with the model of its checkpoint, sees the same: nothing has to
be kept for it.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from autonovel import draws, settings
from autonovel.data import ImageSet
from autonovel.kept import KeptFeatures
from autonovel.networks import Model
from autonovel.objectives import pair_labels

CHUNK = 512


class Observer(Protocol):
    """Looks at a model in training."""

    def look(self, model: Model, epochs: int) -> dict[str, Tensor]:
        """Look at ``model`` with ``epochs`` of training behind it; return numbers for the journal by name."""


def observers(stage: settings.Stage, images: ImageSet, seed: int, folder: Path) -> list[Observer]:
    """Return what the settings of a stage ask for; kept features go to ``folder``, the stage's own."""
    found: list[Observer] = []
    if isinstance(stage, settings.Joint):
        if stage.keep_embeddings_at:
            found.append(FeatureKeeper(images, stage.keep_embeddings_at, folder))
        if stage.watch:
            found.append(MovingTarget(images, stage.watch, stage.k, stage.rank_by, seed))
    return found


class FeatureKeeper:
    """Keeps the features of the unlabelled images at chosen epochs, for pictures of how they came apart."""

    def __init__(self, images: ImageSet, at: tuple[int, ...], folder: Path) -> None:
        self.rows = images.unlabelled.nonzero()[:, 0]
        self.images, self.at, self.folder = images.images, at, folder

    def look(self, model: Model, epochs: int) -> dict[str, Tensor]:
        """Write the features if this is one of the epochs."""
        if epochs in self.at:
            chunks = [clean_features(model, self.images[rows]).cpu() for rows in self.rows.split(CHUNK)]
            KeptFeatures(torch.cat(chunks), self.rows, epochs).save(self.folder)
        return {}


class MovingTarget:
    """Counts how many pair labels change from epoch to epoch (the paper's "moving target", section 2.3).

    The labels come from the features that are being learned, so they change while the model learns from
    them.  The pairs are those of a fixed sample of the unlabelled images, without augmentation.
    """

    def __init__(self, images: ImageSet, count: int, k: int, rank_by: str, seed: int) -> None:
        unlabelled = images.unlabelled.nonzero()[:, 0]
        order = torch.randperm(len(unlabelled), generator=draws.generator(seed, 40))
        self.sample = images.images[unlabelled[order[:count]].sort().values]
        self.k, self.rank_by = k, rank_by
        self.before: Tensor | None = None

    def look(self, model: Model, epochs: int) -> dict[str, Tensor]:
        """Return the share of pair labels that differ from the last look; nothing at the first."""
        self.sample = self.sample.to(model.mean.device)
        z = torch.cat([clean_features(model, chunk) for chunk in self.sample.split(CHUNK)])
        now = pair_labels(z, min(self.k, z.shape[1]), self.rank_by)
        before, self.before = self.before, now
        return {} if before is None else flips(before, now)


def flips(before: Tensor, now: Tensor) -> dict[str, Tensor]:
    """Return the share of pair labels that differ, out of the pairs positive in either, and out of all pairs.

    Nearly all pairs are negative and stay so: only the first number shows how unsteady the labels are.
    """
    # before, now: n×n bool, symmetric; a pair of two images is counted once, an image with itself never
    flipped = (before ^ now).triu(diagonal=1).sum()
    either = (before | now).triu(diagonal=1).sum()
    n = len(now)
    return {
        "pairs/flipped": (flipped / either.clamp(min=1)).cpu(),
        "all_pairs/flipped": (flipped / max(n * (n - 1) // 2, 1)).cpu(),
    }


@torch.no_grad()
def clean_features(model: Model, images: Tensor) -> Tensor:
    """Return Φ of uint8 ``images`` without augmentation, on the model's device; the model is left as it was."""
    with eval_mode(model):
        return model.clean_features(images)


@contextlib.contextmanager
def eval_mode(model: Model) -> Iterator[None]:
    """Put ``model`` into eval mode for a while."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
