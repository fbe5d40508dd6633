"""The model before any stage has trained it."""

from pathlib import Path

import torch

from autonovel import networks
from autonovel.data import ImageSet, channel_statistics
from autonovel.networks import Model
from autonovel.settings import Recipe
from autonovel.training import checkpoint


def new_model(recipe: Recipe, images: ImageSet, seed: int) -> Model:
    """Return the untrained model, or the one whose trunk comes from a file or a package."""
    if recipe.pretrain.kind == "imagenet":
        model = networks.pretrained(recipe.network, seed)
    else:
        mean, std = normalisation(recipe, images)
        model = networks.build(recipe.network, images.images.shape[1], mean, std, seed)
    if recipe.pretrain.reads_weights:
        checkpoint.load_trunk(Path(recipe.pretrain.weights), model)
        if recipe.starts_from_a_classifier:
            head = checkpoint.known_head(Path(recipe.pretrain.weights), images.n_known)
            if head is not None:
                model.heads["known"] = head
    return model


def normalisation(recipe: Recipe, images: ImageSet) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the means and deviations of the channels that images are normalised by."""
    if recipe.network.normalise == "imagenet":
        return networks.imagenet_resnet.statistics(images.images.shape[1])
    rows = (~images.unlabelled).nonzero()[:, 0] if recipe.pretrain.labelled_only else None
    return channel_statistics(images.images, rows)
