"""Diagnostics that the methods leave for the journal."""

import torch
from torch import Tensor

from autonovel.data import Batch
from autonovel.training.stage import Progress

KNOWN_USAGE = "known/usage"


def note_usage(progress: Progress, new: Tensor, taken: Tensor, name: str = "usage") -> None:
    """Leave the share of the taken images in each class of a head: a collapse of the new ones shows here first."""
    classes = torch.arange(new.shape[1], device=new.device)
    chosen = (new.detach().argmax(dim=1)[:, None] == classes) * taken[:, None]
    progress.note(name, chosen.sum(dim=0), taken.sum())


def note_pairs(progress: Progress, same: Tensor, pairs: Tensor, batch: Batch) -> None:
    """Leave how many pairs of different images are called the same, and how often that is right."""
    others = pairs - torch.diag_embed(pairs.diagonal())
    called = same * others
    progress.note("pairs/positive", called.sum(), others.sum())
    if batch.truth is not None:
        alike = (batch.truth[:, None] == batch.truth[None, :]) * others
        progress.note("pairs/precision", (called * alike).sum(), called.sum())
        progress.note("pairs/recall", (called * alike).sum(), alike.sum())
