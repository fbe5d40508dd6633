"""BatchNorm's statistics, made anew from images as the network is now."""

import torch
from torch import nn

from autonovel import draws
from autonovel.data import ImageSet
from autonovel.data.streamed import in_batches
from autonovel.networks import Model


@torch.no_grad()
def renew_statistics(model: Model, images: ImageSet, batch_size: int, seed: int) -> None:
    """Give BatchNorm, where it is trained, the mean statistics of batches of the plain unlabelled images.

    Its running averages reach some ten steps back.  Where an epoch has fewer, and steps are large, they are those of
    another network, and what it says in eval mode is not what it has learned.  Of several processes each looks at all
    images, so that all end up with the same statistics.
    """
    model.train()
    head = model.heads["new"]
    layers = [
        layer
        for part in (model.trunk, head)
        for layer in part.modules()
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.training and layer.track_running_stats
    ]
    if not layers:  # all have statistics that are held fixed, or there are none
        model.eval()
        return
    usual = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the plain mean over all batches from now on
    rows = images.unlabelled.nonzero()[:, 0]
    rows = rows[torch.randperm(len(rows), generator=draws.generator(seed, 55))]  # of all classes in every batch
    for batch in in_batches(images.images, rows.tensor_split(max(1, len(rows) // batch_size))):
        head(model.clean_features(batch))
    for layer, momentum in zip(layers, usual, strict=True):
        layer.momentum = momentum
    model.eval()
