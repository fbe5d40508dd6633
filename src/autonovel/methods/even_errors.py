"""Known or new: the shift between the two parts of a grown head, set once it is trained.

Pseudo-labels have a small weight and come late, so a grown head says "known" too readily: after a short training it
may take a third of the new images for known ones.  Of every training image it is known on which side it belongs, the
labelled on the one, the unlabelled on the other; that is enough to set one number, without any label of a new class.
"""

import torch
from torch import Tensor

from autonovel.data import ImageSet
from autonovel.embedding import ROWS, features
from autonovel.networks import Model, heads

HALVINGS = 100
FAR = 50.0  # log-odds beyond which nothing is in doubt


@torch.no_grad()
def even_out(model: Model, images: ImageSet, n_known: int) -> None:
    """Shift the new classes' biases in the grown head of ``model`` so that both kinds of errors weigh alike."""
    z, device = features(model, images.images), model.mean.device
    odds = torch.cat([log_odds(model.logits(part.to(device), "known"), n_known).cpu() for part in z.split(ROWS)])
    shift = model.ranks.lead(lambda: even_shift(odds[~images.unlabelled], odds[images.unlabelled]))
    heads.last_layer(model.heads["known"]).bias[n_known:] += shift


def log_odds(logits: Tensor, n_known: int) -> Tensor:
    """Return log p(new) / p(known) of the n×(known + new) ``logits``."""
    return logits[:, n_known:].logsumexp(dim=1) - logits[:, :n_known].logsumexp(dim=1)


def even_shift(known: Tensor, new: Tensor) -> float:
    """Return the b for which as much is wrong, in expectation, of known images as of new ones.

    mean σ(o + b) over the log-odds ``known`` equals mean σ(−o − b) over ``new``.  There the logistic loss of b, with
    half the weight on each kind, is least; the one side rises with b and the other falls, so that halving finds it.
    """
    known, new = known.double(), new.double()
    low, high = -torch.cat([known, new]).max().item() - FAR, -torch.cat([known, new]).min().item() + FAR
    for _ in range(HALVINGS):
        b = (low + high) / 2
        too_new = torch.sigmoid(known + b).mean() > torch.sigmoid(-new - b).mean()
        low, high = (low, b) if too_new else (b, high)
    return (low + high) / 2
