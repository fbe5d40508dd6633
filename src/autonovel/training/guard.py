"""Tells a sound epoch from one that went wrong, and says in plain sentences what is wrong.

Pure functions of numbers that were fetched at the end of an epoch: nothing here waits for a device.  ``health.py``
measures, asks, and acts.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

# Below this share of the possible entropy nearly all images sit in one class.
COLLAPSED_ENTROPY = 0.03
# Means of a loss term and sizes of a weight that no sound training reaches: guessing among a million classes costs 14.
HUGE_LOSS, HUGE_WEIGHT = 1e4, 1e6
# A class that once held this share of its fair part, and now nothing, has vanished; one that never did was never there.
ONCE_THERE = 0.5
PATIENCE = 3  # epochs in a row in which a class is empty, before that is told: most fill again
NAMED = 3  # tensors or classes that are named


def usage_entropy(usage: Tensor) -> float:
    """Return the entropy of the share of images in each class, on the scale 0 (one class) to 1 (even)."""
    share = usage.double() / usage.double().sum().clamp(min=1e-12)
    entropy = -(share * share.clamp(min=1e-12).log()).sum()
    return float(entropy / math.log(max(len(usage), 2)))


def ruined(terms: Mapping[str, float], broken: Mapping[str, int], sizes: Mapping[str, float]) -> str | None:
    """Return in a sentence why no further step can mend the numbers of an epoch, or None.

    Args:
        terms: mean of every loss term over the epoch.
        broken: for terms that stopped being finite numbers, the step of the stage at which they did, from 1.
        sizes: the largest absolute value in each tensor of the model and its optimiser; NaN where one is NaN.
    """
    said = []
    bad = {name: value for name, value in terms.items() if not math.isfinite(value)}
    if bad:
        each = ", ".join(f"{name} is {_word(value)}{_since(broken.get(name))}" for name, value in bad.items())
        said.append(f"the loss is no longer a finite number ({each})")
    spoilt = {name: value for name, value in sizes.items() if not math.isfinite(value)}
    if spoilt:
        said.append(f"{_counted(spoilt)} of the model or its optimiser hold numbers that are not finite")
    return "; ".join(said) or None


def diverged(terms: Mapping[str, float], sizes: Mapping[str, float]) -> str | None:
    """Return in a sentence that the numbers, though finite, are of no sound training, or None."""
    large = {name: value for name, value in terms.items() if abs(value) > HUGE_LOSS}
    if large:
        each = ", ".join(f"{name} is {value:.2g}" for name, value in large.items())
        return f"the training diverged: {each} on average"
    grown = {name: value for name, value in sizes.items() if value > HUGE_WEIGHT}
    return f"the training diverged: weights grew beyond {HUGE_WEIGHT:.0e} in {_counted(grown)}" if grown else None


def collapsed(usage: Tensor | None) -> str | None:
    """Return in a sentence that nearly all unlabelled images fall into one new class, or None."""
    if usage is None or len(usage) < 2 or not bool(torch.isfinite(usage).all()) or float(usage.sum()) <= 0:
        return None
    if usage_entropy(usage) >= COLLAPSED_ENTROPY:
        return None
    share = 100 * float(usage.max() / usage.sum())
    return f"the new classes collapsed: {share:.1f} % of the unlabelled images fall into one of them"


def vanished(history: Sequence[Sequence[float]], last: bool) -> list[int]:
    """Return the classes that are to be told of as empty: each once in a training.

    That is when one that held images has held none for ``PATIENCE`` epochs in a row, or holds none in the end.

    Args:
        history: of every epoch so far, the share of images in each class.
        last: whether no epoch is to follow.
    """
    fair = ONCE_THERE / max(len(history[-1]), 1) if history else 1.0
    losses = [_loss(shares, fair) for shares in zip(*history, strict=True)]
    now = len(history) - 1
    return [c for c, (told, empty) in enumerate(losses) if told == now or (last and told is None and empty)]


def _loss(shares: Sequence[float], fair: float) -> tuple[int | None, bool]:
    """Return the epoch after which a class was told of, or None, and whether it is empty now but was there once."""
    there, empty, told = False, 0, None
    for epoch, share in enumerate(shares):
        empty = empty + 1 if there and not share else 0
        if empty == PATIENCE and told is None:
            told = epoch
        there = there or share >= fair
    return told, empty > 0


def _word(value: float) -> str:
    return "not a number (nan)" if math.isnan(value) else f"beyond what a float holds ({value})"


def _since(step: int | None) -> str:
    return "" if step is None else f" since step {step}"


def _counted(tensors: Mapping[str, float]) -> str:
    """Return how many tensors, and the names of the first of them."""
    names = list(tensors)
    more = ", …" if len(names) > NAMED else ""
    return f"{len(names)} tensor{'s' if len(names) > 1 else ''} ({', '.join(names[:NAMED])}{more})"
