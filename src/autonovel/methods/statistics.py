"""BatchNorm's statistics, made anew from images as the network is now."""

import torch

from autonovel import draws
from autonovel.data import ImageSet
from autonovel.data.streamed import in_batches
from autonovel.networks import Model
from autonovel.training.batch_statistics import taken_anew


@torch.no_grad()
def renew_statistics(model: Model, images: ImageSet, batch_size: int, seed: int) -> None:
    """Give BatchNorm, where it is trained, the mean statistics of batches of the plain unlabelled images.

    Its running averages reach some ten steps back.  Where an epoch has fewer, and steps are large, they are those of
    another network, and what it says in eval mode is not what it has learned.  Of several processes each looks at all
    images, so that all end up with the same statistics.
    """
    model.train()
    head = model.heads["new"]
    with taken_anew(model.trunk, head) as any_left:
        if any_left:  # not all held fixed
            rows = images.unlabelled.nonzero()[:, 0]
            rows = rows[torch.randperm(len(rows), generator=draws.generator(seed, 55))]  # of all classes in every batch
            for batch in in_batches(images.images, rows.tensor_split(max(1, len(rows) // batch_size))):
                head(model.clean_features(batch))
    model.eval()
