"""Known or new: the shift between the two parts of a grown head, set once it is trained.

Pseudo-labels have a small weight and come late, so a grown head says "known" too readily: after a short training it
may take a third of the new images for known ones.  Labelled images show known classes and unlabelled ones new classes;
that is enough to set one number, without any label of a new class.

Let E be the share of known images taken for new, and M that of new images taken for known.  With half the weight on
each kind, the number stays the same where known classes hide among the unlabelled images and look to the head as
labelled ones do.  Let f be their share there: then E + (1 − f) M + f (1 − E) = (1 − f)(E + M) + f, which is least where
E + M is.  Where none hide, every class may weigh alike instead, as in a test set with as many images of each: with 80
known classes and 20 new ones, half the weight on each kind gives up four images of the former for one of the latter.
"""

import torch
from torch import Tensor

from autonovel.data import ImageSet
from autonovel.embedding import ROWS, features
from autonovel.networks import Model, heads

TRIED = 400  # shifts that are tried at once; those around the best once more, closer together
FAR = 10.0  # log-odds beyond those of all images: nothing changes there
TOO_MANY = 0.95  # of the errors that saying always the same makes: nothing to be parted
ENOUGH = 20_000  # images of a kind from which on some stand for all


@torch.no_grad()
def rebalance(model: Model, images: ImageSet, n_known: int, n_new: int, by: str) -> None:
    """Shift the new classes' biases in the grown head of ``model`` so that least is mistaken, known for new or reverse.

    Half of the weight is on each of the two (``by`` "kinds"), or an equal part of it on each class ("classes").
    """
    weight = n_known / (n_known + n_new) if by == "classes" else 0.5
    z, device = features(model, images.images), model.mean.device
    odds = torch.cat([log_odds(model.logits(part.to(device), "known"), n_known).cpu() for part in z.split(ROWS)])
    shift = model.ranks.lead(lambda: best_shift(odds[~images.unlabelled], odds[images.unlabelled], weight))
    heads.last_layer(model.heads["known"]).bias[n_known:] += shift


def log_odds(logits: Tensor, n_known: int) -> Tensor:
    """Return log p(new) / p(known) of the n×(known + new) ``logits``."""
    return logits[:, n_known:].logsumexp(dim=1) - logits[:, :n_known].logsumexp(dim=1)


def best_shift(known: Tensor, new: Tensor, weight: float = 0.5) -> float:
    """Return the b with the fewest expected errors, w mean σ(o + b) of ``known`` + (1 − w) mean σ(−o − b) of ``new``.

    0 where no b parts the two kinds, else it might say "new" of everything.

    Args:
        known: log-odds of labelled images, at least one.
        new: log-odds of unlabelled images, at least one.
        weight: w, of the known images.
    """
    known, new = _some(known.double()), _some(new.double())
    every = torch.cat([known, new])
    low, high = -every.max().item() - FAR, -every.min().item() + FAR
    for _ in range(3):
        tried = torch.linspace(low, high, TRIED, dtype=torch.float64)
        of_known = torch.stack([torch.sigmoid(known + b).mean() for b in tried])
        of_new = torch.stack([torch.sigmoid(-new - b).mean() for b in tried])
        errors = weight * of_known + (1 - weight) * of_new
        best = tried[errors == errors.min()].mean().item()  # in the middle, where nothing is in doubt
        step = (high - low) / (TRIED - 1)
        low, high = best - step, best + step
    return best if errors.min() < TOO_MANY * min(weight, 1 - weight) else 0.0


def _some(odds: Tensor) -> Tensor:
    """Return log-odds that stand for all of them: of very many, evenly spaced ones in their order."""
    return odds.sort().values[:: -(-len(odds) // ENOUGH)]
